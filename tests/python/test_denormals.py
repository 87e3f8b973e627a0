"""Numbers nearer to 0 than any normal one, by the session's policy (tests/api/denormals_test.cc has the tiers)."""

import platform

import numpy as np
import pytest
import treadle

HALVES = """<ir_version: 10, opset_import: ["" : 22]>
g (float[N] x) => (float[N] y) <float half = {0.5}> { y = Mul (x, half) }"""
SMALL = np.full(8, 1e-38, np.float32)

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "aarch64"), reason="this processor has no such mode"
)


def halves(entries):
    options = treadle.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    return treadle.InferenceSession(treadle.parse_model(HALVES), options).run(None, {"x": SMALL})[0]


@pytest.mark.parametrize(
    ("entries", "kept"),
    [
        ({}, True),
        ({"treadle.denormals": "keep"}, True),
        ({"treadle.denormals": "flush"}, False),
        ({"session.set_denormal_as_zero": "1"}, False),
        ({"session.set_denormal_as_zero": "0"}, True),
        ({"session.set_denormal_as_zero": "1", "treadle.denormals": "keep"}, True),
    ],
)
def test_the_policy_of_a_session(entries, kept):
    assert np.all(halves(entries) > 0) == kept
    assert np.all(SMALL * np.float32(0.5) > 0)


def test_another_word_is_refused():
    with pytest.raises(treadle.InvalidArgument, match="denormals is keep or flush, not 'drop'"):
        halves({"treadle.denormals": "drop"})
