"""Comparisons for the tests of servers."""

import numpy as np
import pytest
import treadle


def session(server, model):
    return treadle.InferenceSession(str(server.repository / model / "1" / "model.onnx"))


def rows(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def flags(step, steps):
    return {"sequence_start": step == 0, "sequence_end": step == steps - 1}


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def refusal(call, *arguments, **options) -> str:
    """The server's message about a request that it refuses."""
    from triton_client import Error

    with pytest.raises(Error) as found:
        call(*arguments, **options)
    return found.value.message()
