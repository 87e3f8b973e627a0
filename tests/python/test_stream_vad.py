"""A trained model over windows (a declared pair, a context of 64 samples), in blocks of any size and in a pool."""

import pathlib
import sys

import numpy as np
import pytest
import treadle

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples" / "vad"))

import vad  # noqa: E402

ROLES = {
    "state": {"state": "stateN"},
    "bind": {"sr": np.array(vad.RATE, np.int64)},
    "time": {"input": 1},
    "hop": vad.HOP,
    "context": vad.CONTEXT,
}


@pytest.fixture(scope="module")
def session():
    return treadle.InferenceSession(vad.MODEL)


@pytest.fixture(scope="module")
def recording():
    return vad.read_wav(vad.RECORDING)[None, : 60 * vad.HOP + 100]


def by_hand(session, samples):
    """A run per window, its state fed back."""
    state, context, found = np.zeros((2, 1, 128), np.float32), np.zeros((1, vad.CONTEXT), np.float32), []
    for a in range(0, samples.shape[1] - vad.HOP + 1, vad.HOP):
        window = np.concatenate([context, samples[:, a : a + vad.HOP]], axis=1)
        out, state = session.run(["output", "stateN"], {"input": window, "state": state, **ROLES["bind"]})
        context = window[:, -vad.CONTEXT :]
        found.append(out)
    return np.stack(found)


@pytest.mark.parametrize("size", [1, 160, 480, 512, 4000])
def test_blocks_of_one_size(session, recording, size):
    expected = by_hand(session, recording)
    one_run = session.stream(**ROLES)
    np.testing.assert_array_equal(one_run.push(input=recording), expected)
    tail = one_run.flush()
    stream = session.stream(**ROLES, warm=size)
    parts = [stream.push(input=recording[:, a : a + size]) for a in range(0, recording.shape[1], size)]
    np.testing.assert_array_equal(np.concatenate(parts), expected)
    np.testing.assert_array_equal(stream.flush(), tail)


def test_a_pool(session, recording):
    """Five streams at places of their own, some of which pause."""
    pool = session.streams(8, **ROLES)
    single = {i: session.stream(**ROLES) for i in range(5)}
    rng = np.random.default_rng(5)
    at = {i: 1000 * i for i in single}
    for _ in range(12):
        here = [i for i in single if rng.random() < 0.8]
        chunks = {i: recording[:, at[i] : at[i] + 700] for i in here}
        for i, out in pool.push(chunks).items():
            np.testing.assert_allclose(out, single[i].push(input=chunks[i]), atol=1e-5)
            at[i] += 700
    assert len(pool) == len(single)
