"""The receivers of a run's progress: a function, or tqdm's bar."""

import os
import signal
import sys
import threading
import time

import models
import numpy as np
import pytest
import treadle

HEAD = '<ir_version: 10, opset_import: ["" : 22]>\n'
# x' = sin(x), `m` times.
COUNTED = (
    HEAD
    + """g (int64 m, float[4] x) => (float[4] y) <bool yes = {1}> {
    y = Loop (m, yes, x) <body = b (int64 i, bool go, float[4] s) => (bool on, float[4] t) {
      on = Identity (go)
      t = Sin (s)
    }>
  }"""
)
# s' = s + 1 until it is above `most`.
CONDITIONAL = (
    HEAD
    + """g (float most) => (float y) <float zero = {0}, float one = {1}, bool yes = {1}> {
    y = Loop (, yes, zero) <body = b (int64 i, bool go, float s) => (bool on, float t) {
      t = Add (s, one)
      on = Less (t, most)
    }>
  }"""
)
# A window's sum, and the state that grows by it.
WINDOWS = (
    HEAD
    + """g (float[T] x, float state) => (float y, float stateN) {
    sum = ReduceSum <keepdims = 0> (x)
    stateN = Add (state, sum)
    y = Neg (stateN)
  }"""
)
X = np.float32([1, 2, 3, 4])
FOREVER = np.int64(1 << 40)


def session(text, **entries):
    options = treadle.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry(f"treadle.{key}", value)
    return treadle.InferenceSession(text.encode(), options)


class Enough(Exception):
    pass


class Told:
    """Remembers all reports; raises at call number `last`."""

    def __init__(self, last=None):
        self.calls = []
        self.last = last

    def __call__(self, done, total):
        self.calls.append((done, total))
        if len(self.calls) == self.last:
            raise Enough(done)


TIERS = pytest.mark.parametrize("tier", [{"jit": "off"}, {"jit": "always"}, {"tier": "reference"}], ids=str)


@TIERS
def test_the_end_of_a_run_is_told(tier):
    told = Told()
    (y,) = session(COUNTED, **tier).run(None, {"m": np.int64(9), "x": X}, progress=told)
    assert told.calls[-1] == (9, 9)
    np.testing.assert_array_equal(y, session(COUNTED, **tier).run(None, {"m": np.int64(9), "x": X})[0])


@TIERS
def test_an_exception_of_the_callback_stops_the_run_and_reaches_the_caller(tier):
    model = session(COUNTED, **tier)
    told = Told(last=3)
    with pytest.raises(Enough):
        model.run(None, {"m": FOREVER, "x": X}, progress=told)
    done = [d for d, _ in told.calls]
    assert done == sorted(set(done)) and done[-1] > 0
    assert {t for _, t in told.calls} == {None if "tier" in tier else FOREVER}
    with pytest.raises(Enough):
        model.run(None, {"m": np.int64(1), "x": X}, progress=Told(last=1))
    model.run(None, {"m": np.int64(1), "x": X})


def test_the_total_of_a_loop_that_ends_by_a_condition_is_unknown():
    told = Told()
    session(CONDITIONAL, jit="off").run(None, {"most": np.float32(4e6)}, progress=told)
    *before, last = told.calls
    assert last == (4_000_000, 4_000_000)
    assert before and all(total is None and done < 4_000_000 for done, total in before)


def test_is_told_about_every_50_ms():
    times = []

    def told(done, total):
        times.append(time.monotonic())
        if len(times) == 8:
            raise Enough

    with pytest.raises(Enough):
        session(COUNTED).run(None, {"m": FOREVER, "x": X}, progress=told)
    assert np.diff(times).min() > 0.04


def test_runs_within_it_are_not_told():
    model = session(COUNTED)
    calls = []

    def told(done, total):
        model.run(None, {"m": np.int64(2), "x": X})
        calls.append((done, total))

    model.run(None, {"m": np.int64(5), "x": X}, progress=told)
    assert calls[-1] == (5, 5) and all(total == 5 for _, total in calls)


def test_threads_that_share_options_are_told_of_their_own_runs():
    model = session(COUNTED)
    options = treadle.RunOptions()
    told = [Told(), Told(), None]

    def work(i):
        for _ in range(20):
            model.run(None, {"m": np.int64(100 + i), "x": X}, options, progress=told[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {t for _, t in told[0].calls} == {100}
    assert {t for _, t in told[1].calls} == {101}


def test_limits_hold_as_without_it():
    model = session(COUNTED)
    options = treadle.RunOptions()
    options.iteration_limit = 10
    with pytest.raises(treadle.LimitExceeded):
        model.run(None, {"m": FOREVER, "x": X}, options, progress=Told())
    options = treadle.RunOptions()
    timer = threading.Timer(0.1, lambda: setattr(options, "terminate", True))
    timer.start()
    with pytest.raises(treadle.Fail, match="cancelled"):
        model.run(None, {"m": FOREVER, "x": X}, options, progress=Told())


def test_ctrl_c_stops_a_watched_run():
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        session(COUNTED).run(None, {"m": FOREVER, "x": X}, progress=Told())


def test_pushes_of_several_runs_count_runs():
    told = Told()
    stream = session(WINDOWS).stream(time={"x": 0}, hop=4, state={"state": "stateN"})
    stream.push(x=np.ones(400, np.float32), progress=told)
    assert told.calls[-1] == (100, 100)
    with pytest.raises(Enough):
        stream.push({"x": np.ones(400, np.float32)}, progress=Told(last=1))
    assert stream.state["state"] == 400, "a push that fails changes nothing"


def test_pushes_over_time_count_iterations():
    stream = session(models.SUMS).stream(time={"x": 0})
    for length in (30, 50):
        told = Told()
        stream.push(x=np.ones(length, np.float32), progress=told)
        assert told.calls[-1] == (length, length)


def test_pushes_of_a_pool_are_told():
    pool = session(models.SUMS).streams(4, time={"x": 0})
    told = Told()
    pool.push({name: np.ones(30, np.float32) for name in "ab"}, progress=told)
    assert told.calls[-1] == (30, 30)
    with pytest.raises(Enough):
        pool.push({"a": np.ones(30, np.float32)}, progress=Told(last=1))


def test_true_shows_the_bar_of_tqdm(capsys):
    session(COUNTED).run(None, {"m": np.int64(9), "x": X}, progress=True)
    assert "100%" in capsys.readouterr().err
    session(COUNTED).run(None, {"m": np.int64(9), "x": X}, progress=False)
    assert capsys.readouterr().err == ""


def test_without_tqdm_true_raises_an_error_with_a_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="pip install tqdm, or give a callable"):
        session(COUNTED).run(None, {"m": np.int64(9), "x": X}, progress=True)


def test_anything_else_is_refused():
    with pytest.raises(TypeError, match="is a str"):
        session(COUNTED).run(None, {"m": np.int64(9), "x": X}, progress="yes")
