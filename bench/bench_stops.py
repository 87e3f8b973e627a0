"""How late each operator stops, in one thread and in two: the latest of two kinds of figures for every case of
tests/python/long_runs.py.

- The longest stretch of a whole run in which it did not ask whether to stop. Questions are watched by a timer, whose
  signals Python handles when a run asks for them.
- How long after its time limit a run ended, for limits at several points of the whole run. It frees what it had made.

Time is that of the processor, all threads together, which other work on the machine changes less than that of the clock.
"""

from __future__ import annotations

import contextlib
import pathlib
import signal
import sys
import threading
import time

import treadle

sys.path.append(str(pathlib.Path(__file__).parents[1] / "tests" / "python"))
import long_runs

TICK_S = 0.0005
TARGET_MS = 50
LIMITS = (0.3, 0.6, 0.95)  # of the whole run
RUNS = 2  # of which the better one counts: the machine may be at something else
clock = time.process_time


def run(session, feeds, options=None):
    return session._engine.run_values(None, feeds, [], options)


def stretches(session, feeds) -> tuple[float, float]:
    """The longest stretch without a question, and the whole run, in seconds."""
    asked: list[float] = []
    before = signal.signal(signal.SIGPROF, lambda *_: asked.append(clock()))
    signal.setitimer(signal.ITIMER_PROF, TICK_S, TICK_S)
    try:
        asked.clear()
        start = clock()
        results = run(session, feeds)
        end = clock()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    del results  # the caller's to free
    times = [start, *(t for t in asked if start < t < end), end]
    return max(b - a for a, b in zip(times, times[1:], strict=False)), end - start


def late_after(session, feeds, limit: float) -> float:
    """How long after its time limit a run ends."""
    options = treadle.RunOptions()
    options.time_limit = limit
    at_limit: list[float] = []
    timer = threading.Timer(limit, lambda: at_limit.append(clock()))
    timer.start()
    start = clock()
    with contextlib.suppress(treadle.LimitExceeded):
        run(session, feeds, options)
    end = clock()
    timer.cancel()
    timer.join()
    return end - at_limit[0] if at_limit else end - start - limit


def latest_stop(model: bytes, feeds: dict, threads: int) -> tuple[float, float, float]:
    """The latest stop of a run; the longest stretch of the first one, which plans as well; the whole run. In seconds."""
    options = treadle.SessionOptions()
    options.intra_op_num_threads = threads
    session = treadle.InferenceSession(model, options)
    first, _ = stretches(session, feeds)
    latest, whole = min(stretches(session, feeds) for _ in range(RUNS))
    for part in LIMITS:
        latest = max(latest, min(late_after(session, feeds, part * whole) for _ in range(RUNS)))
    return latest, first, whole


def bench_stops(options) -> None:
    print("| operator | latest stop ms | in two threads | in the first run | whole run |")
    print("| --- | --- | --- | --- | --- |")
    latest_of = {}
    for name, case in long_runs.cases().items():
        if case is None or options.match not in name:
            continue
        model, feeds = case.build()
        latest, first, whole = latest_stop(model, feeds, 1)
        shared, _, _ = latest_stop(model, feeds, 2)
        latest_of[name] = max(latest, shared, first)
        print(
            f"| {name} | {latest * 1e3:.1f} | {shared * 1e3:.1f} | {first * 1e3:.1f} | {whole * 1e3:.1f} |", flush=True
        )
    late = [name for name, latest in latest_of.items() if latest * 1e3 > TARGET_MS]
    print(f"\n{len(latest_of)} cases; {len(late)} stop later than {TARGET_MS} ms: {', '.join(late) or 'none'}")
