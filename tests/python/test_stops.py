"""Whatever operator a run is busy with, it ends soon after it was told to: by its time limit, by `terminate` from another
thread, by a signal.

Every operator that runs has a case (long_runs.py); one that is new needs none where it works element by element, and fails
here otherwise until it has a recipe. Time is that of the processor, which a busy machine changes less than that of the
clock. What is timed runs with TREADLE_TEST_LONG alone; `./dev bench stops` lists how late each operator is.
"""

import contextlib
import os
import signal
import threading
import time

import long_runs
import pytest
import treadle

CASES = long_runs.cases()
LONG_S = 1.0  # no test needs a longer run
SHORT_S = 0.005  # a run that is done sooner says nothing about its operator
PROMISED_S = 0.05  # a run that is done sooner need not be stopped
# How late a stop may come. A kernel that asks now and then is a few milliseconds late, and one that never does as late as
# its run is long.
PATIENCE_S = 0.25
TRIES = 3


class Interrupted(BaseException):
    pass


def interrupt(*_):
    raise Interrupted


@contextlib.contextmanager
def no_stop(options, seconds):
    yield


@contextlib.contextmanager
def time_limit(options, seconds):
    options.time_limit = seconds
    with pytest.raises(treadle.LimitExceeded, match="time limit"):
        yield


@contextlib.contextmanager
def another_thread(options, seconds):
    timer = threading.Timer(seconds, lambda: setattr(options, "terminate", True))
    timer.start()
    with pytest.raises(treadle.Fail, match="cancelled"):
        yield
    timer.join()


@contextlib.contextmanager
def a_signal(options, seconds):
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with pytest.raises(Interrupted):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def open_session(model, threads):
    options = treadle.SessionOptions()
    options.intra_op_num_threads = threads
    return treadle.InferenceSession(model, options)


def seconds_of(session, feeds, stop=no_stop, after=0.0) -> float:
    """The processor time of a run that is stopped after so many seconds."""
    options = treadle.RunOptions()
    start = time.process_time()
    with stop(options, after):
        session._engine.run_values(None, feeds, [], options)
    return time.process_time() - start


def whole_run(session, feeds) -> float:
    """The time of a run that is not stopped, LONG_S at most. The first run, which plans, does not count."""
    for seconds in (SHORT_S / 10, LONG_S):
        options = treadle.RunOptions()
        options.time_limit = seconds
        start = time.process_time()
        with contextlib.suppress(treadle.LimitExceeded):
            session._engine.run_values(None, feeds, [], options)
    return time.process_time() - start


def test_every_operator_has_a_case():
    missing = [name for name, case in CASES.items() if case is None]
    assert not missing, f"add recipes to RECIPES in long_runs.py, or reasons to NO_LONG_RUN: {', '.join(missing)}"


def test_every_recipe_is_of_an_operator():
    names = {long_runs.full_name(op) for op in treadle.operators()}
    unknown = {key.split(":")[0] for key in long_runs.RECIPES} | set(long_runs.NO_LONG_RUN)
    assert unknown <= names


@pytest.mark.skipif(not os.environ.get("TREADLE_TEST_LONG"), reason="looks at time: with TREADLE_TEST_LONG")
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case])
def test_stops(name):
    # Another load of the machine (another guest of its host, say) counts as time of the processor, too: a stop is late
    # if it is late each time.
    for attempt in reversed(range(TRIES)):
        try:
            check_stops(name)
            break
        except (AssertionError, pytest.fail.Exception):
            if not attempt:
                raise


def check_stops(name):
    model, feeds = CASES[name].build()
    session = open_session(model, 1)
    whole = whole_run(session, feeds)
    assert whole >= SHORT_S, f"a run of {whole * 1e3:.1f} ms is too short to be stopped: make the inputs larger"
    if whole < PROMISED_S:
        return
    after = min(whole / 8, PROMISED_S)
    late = max(PROMISED_S, min(PATIENCE_S, whole / 2))
    stops = [(session, time_limit), (session, another_thread), (open_session(model, 2), time_limit)]
    if whole > 10 * SHORT_S:
        stops.append((session, a_signal))  # asked for every few milliseconds
    for stopped, stop in stops:
        used = seconds_of(stopped, feeds, stop, after)
        assert used < after + late, (
            f"{stop.__name__} after {after * 1e3:.1f} ms, {used * 1e3:.1f} of {whole * 1e3:.1f} ms"
        )
