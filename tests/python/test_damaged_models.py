"""A few damaged models of fuzz/mutations.py; `fuzz/mutations.py --count N MODEL...` damages more."""

import os
import pathlib
import signal
import sys

import models
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "fuzz"))

import mutations  # noqa: E402

COUNT = 2000 if os.environ.get("TREADLE_TEST_LONG") else 100
SOURCES = [models.endless(), models.division(), models.accumulator(), models.add()]


@pytest.mark.parametrize("first", range(0, COUNT, 50))
def test_damaged_models_are_refused_or_run(first):
    for seed in range(first, first + 50):
        opset = mutations.OPSETS[seed % len(mutations.OPSETS)]
        data = (
            SOURCES[seed % 8] if seed % 8 < len(SOURCES) else mutations.make_program(seed, opset)[0].SerializeToString()
        )
        _, found = mutations.check(data, seed)
        assert not found, f"seed {seed}: {found}"


@pytest.mark.parametrize("kind", [kind for kind in mutations.KINDS if kind != "binary"])
def test_damaged_files_of_other_kinds_are_refused_or_harmless(kind):
    for seed in range(COUNT // 4):
        _, found = mutations.check(models.accumulator(), seed, kind=kind)
        assert not found, f"seed {seed}: {found}"


@pytest.mark.parametrize("size", [0, 1, 7, 40, 100])
def test_every_cut_of_a_model_is_refused(size):
    outcome, found = mutations.in_child(lambda: cut(models.division()[:size]))
    assert (outcome, found) == ("refused", "")


def cut(data: bytes) -> str:
    try:
        mutations.treadle.InferenceSession(data)
    except mutations.REFUSALS as problem:
        return mutations.refused(problem)
    return "ran"


def test_a_crash_and_a_hang_would_be_seen(monkeypatch):
    assert "SIGKILL" in mutations.in_child(lambda: os.kill(os.getpid(), signal.SIGKILL))[1]
    monkeypatch.setattr(mutations, "SECONDS", 1)
    assert "still at it" in mutations.in_child(lambda: [0 for _ in iter(int, 1)])[1]
    assert "ZeroDivisionError" in mutations.in_child(lambda: str(1 // 0))[1]
