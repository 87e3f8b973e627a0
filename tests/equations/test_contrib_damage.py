"""Operators of com.microsoft whose operands and attributes a hostile model chose: refused, or harmless."""

import os
import subprocess
import sys

import pytest

COUNT = "60" if os.environ.get("TREADLE_TEST_LONG") else "6"


@pytest.mark.parametrize("module", ["attention", "experts", "nbits", "norms", "products", "tensors"])
def test_damaged_nodes_are_refused_or_harmless(module):
    script = os.path.join(os.path.dirname(__file__), "contrib_damage.py")
    run = subprocess.run([sys.executable, script, f"test_contrib_{module}", COUNT], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
