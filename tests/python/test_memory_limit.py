"""Limits of a run's memory: texts, states that grow, memory of kernels, and the machine's memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time

import numpy as np
import pytest
import treadle

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
TIERS = ["program", "reference"]


def session(text: str, tier: str = "program") -> treadle.InferenceSession:
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("treadle.tier", tier)
    return treadle.InferenceSession((HEAD + text).encode(), options)


def limits(**values) -> treadle.RunOptions:
    options = treadle.RunOptions()
    for name, limit in values.items():
        setattr(options, name, limit)
    return options


def growing(element: str, width: int, axis: int) -> str:
    """A state that gets one more position along `axis` in each of 100 million iterations."""
    shapes = ["N", str(width)] if axis == 0 else [str(width), "N"]
    one = ",".join("1" if s == "N" else s for s in shapes)
    at, after = ",".join(shapes), ",".join(s.replace("N", "P") for s in shapes)
    return f"""g ({element}[{one}] x) => (y) {{
      n = Constant<value_int=100000000>()
      y = Loop(n, , x) <body = b (int64 i, bool c, {element}[{at}] s) => (bool d, {element}[{after}] o) {{
        d = Identity(c) o = Concat<axis={axis}>(s, x) }}> }}"""


@pytest.mark.parametrize("axis", [0, 1])
def test_a_state_that_grows_reaches_its_limit_and_fails_there(axis):
    """Near the limit, the state takes the remaining memory in a few steps, without a copy of everything in each
    iteration.
    """
    width = 64
    x = np.ones((1, width) if axis == 0 else (width, 1), np.float32)
    limit = 8 << 20
    grown = session(growing("float", width, axis))
    begin = time.process_time()
    with pytest.raises(treadle.LimitExceeded, match=rf"the memory limit of {limit} bytes was reached") as failed:
        grown.run(None, {"x": x}, limits(memory_limit=limit))
    assert time.process_time() - begin < 20  # a copy of 4 MB in each of thousands of iterations takes minutes
    iteration = int(str(failed.value).split("iteration ")[1].split(":")[0])
    # Along the outermost axis memory grows where it is; elsewhere there is the old and the new for a moment.
    least = 0.8 if axis == 0 else 0.4
    assert iteration * width * 4 > least * limit
    peak = grown.counters()["peak_bytes_last_run"]
    assert peak <= limit


@pytest.mark.parametrize("tier", TIERS)
def test_a_text_that_doubles_is_counted(tier):
    double = session(
        """g (string x) => (y) { n = Constant<value_int=40>() y = Loop(n, , x) <body = b (int64 i, bool c, string s)
           => (bool d, string o) { d = Identity(c) o = StringConcat(s, s) }> }""",
        tier,
    )
    with pytest.raises(treadle.LimitExceeded, match="the memory limit of 50000000 bytes was reached"):
        double.run(None, {"x": np.array("0123456789", dtype=object)}, limits(memory_limit=50_000_000))


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    "node",
    [
        'StringNormalizer<case_change_action="UPPER">(x)',
        "StringConcat(x, x)",
        "Expand(x, sizes)",
        "Concat<axis=0>(x, x)",
        "Gather(x, places)",
        "Cast<to=8>(numbers)",
    ],
)
def test_texts_are_counted(node, tier):
    """Two million bytes of texts go in, a limit of one million refuses to make more of them."""
    inputs = "string[20] x, int64[2] sizes, int64[40] places, double[60000] numbers"
    feed = {
        "x": np.array(["ab" * 50_000] * 20, dtype=object),
        "sizes": np.array([3, 20]),
        "places": np.arange(40) % 20,
        "numbers": np.random.default_rng(1).normal(size=60000),
    }
    feed = {name: value for name, value in feed.items() if name in node}
    inputs = [part for part in inputs.split(", ") if part.split()[-1] in feed]
    texts = session(f"g ({', '.join(inputs)}) => (y) {{ y = {node} }}", tier)
    with pytest.raises(treadle.LimitExceeded, match="the memory limit of 1000000 bytes was reached"):
        texts.run(None, feed, limits(memory_limit=1_000_000))
    texts.run(None, feed, limits(memory_limit=100_000_000))


def test_texts_of_a_run_are_given_back():
    double = session("g (string[N] x) => (y) { y = StringConcat(x, x) }")
    x = np.array(["ab" * 500] * 1000, dtype=object)
    for _ in range(20):
        double.run(None, {"x": x}, limits(memory_limit=6_000_000))


NO_LIMIT = """
import numpy as np, treadle
text = b'<ir_version: 10, opset_import: ["" : 21]> g (float[N] x, int64[2] sizes) => (y) { y = Expand(x, sizes) }'
session = treadle.InferenceSession(text)
try:
    session.run(None, {"x": np.ones(1 << 20, np.float32), "sizes": np.array([1 << 20, 1 << 20])})
except treadle.LimitExceeded as refused:
    print(refused)
"""


def test_without_a_limit_the_machine_is_one():
    """Four tebibytes, which the system would hand out without having them."""
    ran = subprocess.run([sys.executable, "-c", NO_LIMIT], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert "memory" in ran.stdout


def test_memory_of_a_run_stays_below_its_limit():
    """Measures the process's memory, not the counted bytes."""
    text = """g (float[N] x) => (y) { n = Constant<value_int=1000000>() y = Loop(n, , x) <body = b
      (int64 i, bool c, float[P] s) => (bool d, float[Q] o) { d = Identity(c) o = Concat<axis=0>(s, s) }> }"""
    doubling = session(text)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(treadle.LimitExceeded):
        doubling.run(None, {"x": np.ones(1000, np.float32)}, limits(memory_limit=100 << 20))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 130 << 10


def test_preparing_for_a_size_that_data_decide_stays_below_the_limit():
    """The tables of a transform are gigabytes where its length is: they are refused before they are made."""
    text = """g (float[1,4,1] x, double k) => (y) {
      axis = Constant<value = int64 {1}>() n = Cast<to = 7>(k) y = DFT(x, n, axis) }"""
    transform = session(text)
    x = np.ones((1, 4, 1), np.float32)

    def run(length, **values):
        feeds = {"x": x, "k": np.array(float(length))}
        return transform.run(None, feeds, limits(**values))[0].shape

    assert run(1000, memory_limit=1 << 20) == (1, 1000, 2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(treadle.LimitExceeded, match="memory limit of 104857600 bytes"):
        run(1 << 25, memory_limit=100 << 20)
    if "LD_PRELOAD" not in os.environ:  # a sanitizer keeps what was freed
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 130 << 10
    assert run(1000, memory_limit=1 << 20) == (1, 1000, 2)
