"""The models of ./dev bench realtime over a whole signal, and step by step with their state handed on, compute the same."""

import pathlib
import sys

import numpy as np
import pytest

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

BENCH = pathlib.Path(__file__).parents[2] / "bench"
sys.path.append(str(BENCH))

import realtime_models  # noqa: E402

MODELS = [m for m in realtime_models.all_models() if not m.rtneural or m.rtneural[1] <= 16]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_whole_signal_is_its_steps(model):
    signal = model.signal(24)
    whole = treadle.InferenceSession(model.over_time)
    expected = whole.run(None, {"x": model.laid_out(signal)})[0]
    assert np.abs(expected).max() > 1e-4
    made, states = model.stepping(8)
    steps = treadle.InferenceSession(made).stream(state={name: f"{name}_out" for name in states})
    over_time = whole.stream(time={"x": model.axis})
    for stream in (steps, over_time):
        blocks = [model.laid_out(signal[at : at + 8]) for at in range(0, 24, 8)]
        found = np.concatenate([stream.push(x=block) for block in blocks], axis=model.axis)
        assert np.abs(found - expected).max() < 1e-5
