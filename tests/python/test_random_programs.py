"""A few programs of fuzz/programs.py; `fuzz/programs.py --count N` runs more."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "fuzz"))

programs = pytest.importorskip("programs", reason="needs onnxruntime")

COUNT = 1000 if os.environ.get("TREADLE_TEST_LONG") else 60


@pytest.mark.parametrize("first", range(0, COUNT, 20))
def test_tiers_and_onnxruntime_agree(first):
    for seed in range(first, first + 20):
        verdict, detail, _ = programs.check(seed, programs.OPSETS[seed % len(programs.OPSETS)])
        assert verdict != "DIFFERENT", f"seed {seed}: {detail}"
