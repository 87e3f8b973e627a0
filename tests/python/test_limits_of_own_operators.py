"""time_limit, terminate, signals and progress around operators of the program's own: a run looks before and after each
call, wherever the node stands, in every tier; so do loading and planning, which call functions of such operators too.
"""

import contextlib
import signal
import time

import numpy as np
import pytest
import treadle

HEAD = '<ir_version: 10, opset_import: ["" : 21, "limits" : 1]>\n'
X = np.zeros(2, np.float32)
STOPS_AT = 3  # the call in which the reason to stop comes up
LIMIT_S = 0.2
BODY = "(int64 i, bool go, float[N] h) => (bool go2, float[N] k) { go2 = Identity (go) NODES }"
LOOP = f"n = Constant <value_int = 40> () c = Constant <value = bool {{1}}> () y = Loop (n, c, x) <body = b {BODY}>"


def in_loop(nodes: str) -> str:
    return LOOP.replace("NODES", nodes)


PLACES = {
    "chain": "a = limits.Counts (x) b = limits.Counts (a) c = limits.Counts (b) d = limits.Counts (c) y = Identity (d)",
    "last nodes": "a = limits.Counts (x) b = limits.Counts (a) y = limits.Counts (b)",
    "loop": in_loop("k = limits.Counts (h)"),
    "loop beside work": in_loop("m = Exp (h) l = limits.Counts (m) k = Log (l)"),
    "loop within": in_loop(
        "m = Constant <value_int = 2> () k = Loop (m, go, h) <body = inner (int64 j, bool on, float[N] g) => "
        "(bool on2, float[N] o) { on2 = Identity (on) o = limits.Counts (g) }>"
    ),
    "branch": in_loop(
        "k = If (go) <then_branch = t () => (p) { p = limits.Counts (h) }, else_branch = e () => (q) { q = Neg (h) }>"
    ),
    "scan": "z = Constant <value = float[40, 2] {" + ", ".join(["0"] * 80) + "}> () f = CastLike (z, x) "
    "y, w = Scan <num_scan_inputs = 1, body = b (float[N] s, float[N] r) => (float[N] s2, float[N] o) "
    "{ t = limits.Counts (s) s2 = Add (t, r) o = Identity (r) }> (x, f)",
}
TIERS = [{}, {"jit": "always"}, {"jit": "off"}, {"tier": "reference"}, {"optimize": "0"}]


class Interrupted(BaseException):
    pass


def interrupt(*_):
    raise Interrupted


class Calls:
    """The operator's counts, and its action in the call that ends the run."""

    count = 0
    stop = staticmethod(lambda: None)
    inferred = 0
    slow_inference = 0.0


@treadle.op(
    "limits::Counts",
    inputs=["tensor(float)"],
    outputs=["tensor(float)"],
    infer=lambda x: infer_counts(x),
)
def counts(x):
    Calls.count += 1
    if Calls.count == STOPS_AT:
        Calls.stop()
    return x + np.float32(1)


def infer_counts(x):
    Calls.inferred += 1
    time.sleep(Calls.slow_inference)
    return x


def open_session(nodes: str, options: dict) -> treadle.InferenceSession:
    made = treadle.SessionOptions()
    for key, value in options.items():
        made.add_session_config_entry(f"treadle.{key}", value)
    return treadle.InferenceSession((HEAD + f"g (float[N] x) => (float[M] y) {{ {nodes} }}").encode(), made)


def begin(stop=lambda: None):
    Calls.count, Calls.inferred, Calls.slow_inference = 0, 0, 0.0
    Calls.stop = staticmethod(stop)


@contextlib.contextmanager
def terminated(options):
    begin(lambda: setattr(options, "terminate", True))
    with pytest.raises(treadle.Fail, match="cancelled"):
        yield
    assert Calls.count == STOPS_AT


@contextlib.contextmanager
def out_of_time(options):
    options.time_limit = LIMIT_S
    begin(lambda: time.sleep(1.5 * LIMIT_S))
    with pytest.raises(treadle.LimitExceeded, match=r"time limit of .* was reached"):
        yield
    assert Calls.count <= STOPS_AT  # fewer where the machine is busy


@contextlib.contextmanager
def signalled(options):
    before = signal.signal(signal.SIGALRM, interrupt)
    begin(lambda: signal.raise_signal(signal.SIGALRM))
    try:
        with pytest.raises(Interrupted):
            yield
    finally:
        signal.signal(signal.SIGALRM, before)
    assert Calls.count == STOPS_AT


STOPS = [terminated, out_of_time, signalled]


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("tier", TIERS, ids=str)
@pytest.mark.parametrize("place", PLACES)
def test_runs_end_with_the_call(place, tier, stop):
    session = open_session(PLACES[place], tier)
    for _ in range(2):  # planned, and as planned before
        options = treadle.RunOptions()
        with stop(options):
            session.run(None, {"x": X}, options)
    begin()
    session.run(None, {"x": X})
    assert Calls.count >= STOPS_AT, "a session that was stopped runs again"


@pytest.mark.parametrize("tier", TIERS, ids=str)
def test_a_run_that_is_stopped_before_its_first_call_makes_none(tier):
    session = open_session(PLACES["chain"], tier)
    options = treadle.RunOptions()
    options.terminate = True
    begin()
    with pytest.raises(treadle.Fail, match="cancelled"):
        session.run(None, {"x": X}, options)
    assert Calls.count == 0


STREAM = "t = ReduceSum <keepdims = 0> (x) c = limits.Counts (t) k = Add (h, c) y = Neg (k)"


def open_stream(tier: dict, **more) -> treadle.Stream:
    options = treadle.SessionOptions()
    for key, value in tier.items():
        options.add_session_config_entry(f"treadle.{key}", value)
    text = HEAD + f"g (float[t] x, float h) => (float k, float y) {{ {STREAM} }}"
    session = treadle.InferenceSession(text.encode(), options)
    return session.stream(state={"h": "k"}, time={"x": 0}, hop=2, **more)


@pytest.mark.parametrize("tier", TIERS, ids=str)
def test_pushes_of_many_hops_end_with_the_call(tier):
    stream = open_stream(tier)
    options = treadle.RunOptions()
    with terminated(options):
        stream.push(x=np.zeros(40, np.float32), run_options=options)
    options = treadle.RunOptions()
    with out_of_time(options):
        stream.push(x=np.zeros(40, np.float32), run_options=options)
    begin()
    stream.push(x=np.zeros(8, np.float32))
    assert Calls.count == 4, "a push that was stopped changes nothing"


@pytest.mark.parametrize("tier", TIERS, ids=str)
def test_pushes_of_pools_end_with_the_call(tier):
    options = treadle.SessionOptions()
    for key, value in tier.items():
        options.add_session_config_entry(f"treadle.{key}", value)
    text = (
        HEAD
        + "g (float[2] x, float[2] h) => (float[2] k, float[2] y) { c = limits.Counts (x) k = Add (h, c) y = Neg (k) }"
    )
    pool = treadle.InferenceSession(text.encode(), options).streams(8, state={"h": "k"})
    chunks = dict.fromkeys("abcde", X)
    run_options = treadle.RunOptions()
    with terminated(run_options):
        pool.push(chunks, run_options=run_options)


def test_progress_is_told_between_calls():
    told = []

    def tell(done, total):
        told.append(done)
        if len(told) == 2:
            raise Interrupted

    session = open_session(in_loop("k = limits.Counts (h)"), {"jit": "off"})
    begin(lambda: time.sleep(0.1))  # long enough to be told
    with pytest.raises(Interrupted):
        session.run(None, {"x": X}, progress=tell)
    assert STOPS_AT - 1 <= told[1] <= 40


@pytest.mark.parametrize("tier", [{}, {"tier": "reference"}], ids=str)
def test_loading_looks_between_functions_of_the_operators(tier):
    begin()
    options = treadle.SessionOptions()
    options.load_time_limit = LIMIT_S
    Calls.slow_inference = 1.5 * LIMIT_S
    with pytest.raises(treadle.LimitExceeded, match="for loading"):
        treadle.InferenceSession((HEAD + f"g (float[N] x) => (float[M] y) {{ {PLACES['chain']} }}").encode(), options)
    assert Calls.inferred <= 2


def test_planning_looks_between_functions_of_the_operators():
    begin()
    session = open_session(PLACES["chain"], {})
    begin()
    Calls.slow_inference = 1.5 * LIMIT_S
    options = treadle.RunOptions()
    options.time_limit = LIMIT_S
    with pytest.raises(treadle.LimitExceeded, match=r"time limit"):
        session.run(None, {"x": X}, options)
    assert Calls.inferred <= 2 and Calls.count == 0
