"""Operators of com.microsoft, and products with one column, in loops: the same bits in all tiers."""

import os
import subprocess
import sys

import pytest

CONTRIB = [f"test_contrib_{kind}" for kind in ("norms", "attention", "tensors", "experts", "products")]


@pytest.mark.parametrize("module", [*CONTRIB, "column_products"])
def test_tiers_agree(module):
    script = os.path.join(os.path.dirname(__file__), "contrib_tiers.py")
    run = subprocess.run(
        [sys.executable, script, module],
        env=os.environ | {"TREADLE_ISA": "baseline"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
