"""Operators of com.microsoft in loops: the same bits in all tiers.

Without the module of products: a product of a matrix and one column in a loop is rewritten as a sum of elementwise
products, whose order of additions is another one than the reference interpreter's (docs/numerics.md).
"""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["norms", "attention", "tensors", "experts"])
def test_tiers_agree(module):
    script = os.path.join(os.path.dirname(__file__), "contrib_tiers.py")
    run = subprocess.run(
        [sys.executable, script, f"test_contrib_{module}"],
        env=os.environ | {"TREADLE_ISA": "baseline"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
