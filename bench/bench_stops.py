"""How late each operator stops, in one thread and in two: the latest of two kinds of figures for every case of
tests/python/long_runs.py.

- The longest stretch of a whole run in which it did not ask whether to stop. Questions are watched by a timer, whose
  signals Python handles when a run asks for them.
- How long after its time limit a run ended, for limits at several points of the whole run. It frees what it had made.

A second table is about first runs, which pack constant weights: how long after their time limits they end, for every kind of
tests/python/packed_weights.py.

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
import packed_weights

TICK_S = 0.0005
TARGET_MS = 50
LIMITS = (0.3, 0.6, 0.95)  # of the whole run
FIRST_LIMITS_S = (0.005, 0.02, 0.05)
PACKED = 24  # of packed_weights: some 100 MB
RUNS = 2  # of which the better one counts: the machine may be at something else
clock = time.process_time


def run(session, feeds, options=None):
    return session._engine.run_values(None, feeds, [], options)


def stretches(session, feeds) -> tuple[float, float, float]:
    """The longest stretch without a question, and the whole run, in seconds; and how long it took by the clock."""
    asked: list[float] = []
    signal.signal(signal.SIGPROF, lambda *_: asked.append(clock()))
    signal.setitimer(signal.ITIMER_PROF, TICK_S, TICK_S)
    try:
        asked.clear()
        began = time.perf_counter()
        start = clock()
        results = run(session, feeds)
        end = clock()
        took = time.perf_counter() - began
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)  # one may be on its way
    del results  # the caller's to free
    times = [start, *(t for t in asked if start < t < end), end]
    return max(b - a for a, b in zip(times, times[1:], strict=False)), end - start, took


def late_after(session, feeds, limit: float) -> float:
    """How long after its time limit, by the clock, a run ends; 0 where it ends before."""
    options = treadle.RunOptions()
    options.time_limit = limit
    at_limit: list[float] = []
    timer = threading.Timer(limit, lambda: at_limit.append(clock()))
    timer.start()
    with contextlib.suppress(treadle.LimitExceeded):
        run(session, feeds, options)
    end = clock()
    timer.cancel()
    timer.join()
    return end - at_limit[0] if at_limit else 0.0


def latest_stop(model: bytes, feeds: dict, threads: int) -> tuple[float, float, float]:
    """The latest stop of a run; the longest stretch of the first one, which plans as well; the whole run. In seconds."""
    options = treadle.SessionOptions()
    options.intra_op_num_threads = threads
    session = treadle.InferenceSession(model, options)
    first, _, _ = stretches(session, feeds)
    latest, whole, took = min(stretches(session, feeds) for _ in range(RUNS))
    for part in LIMITS:
        latest = max(latest, min(late_after(session, feeds, part * took) for _ in range(RUNS)))
    return latest, first, whole


def latest_first_stop(kind: str) -> tuple[float, float]:
    """The latest stop of first runs of new sessions; what a first run takes that nobody stops. In seconds."""
    model, feeds = packed_weights.build(kind, PACKED)
    feeds = {name: long_runs.to_value(value) for name, value in feeds.items()}
    latest = 0.0
    for limit in FIRST_LIMITS_S:
        latest = max(latest, min(late_after(packed_weights.open_session(model), feeds, limit) for _ in range(RUNS)))
    session = packed_weights.open_session(model)
    start = clock()
    run(session, feeds)
    return latest, clock() - start


def tell_late(latest_of: dict[str, float]) -> None:
    late = [name for name, latest in latest_of.items() if latest * 1e3 > TARGET_MS]
    last = max(latest_of, key=latest_of.__getitem__, default=None)
    print(f"\n{len(latest_of)} cases; {len(late)} stop later than {TARGET_MS} ms: {', '.join(late) or 'none'}")
    if last:
        print(f"the latest: {last}, {latest_of[last] * 1e3:.1f} ms\n")


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
    tell_late(latest_of)
    print("| constant weights of 100 MB | latest stop of a first run ms | whole first run |")
    print("| --- | --- | --- |")
    latest_of = {}
    for kind in packed_weights.KINDS:
        if options.match not in kind:
            continue
        latest_of[kind], whole = latest_first_stop(kind)
        print(f"| {kind} | {latest_of[kind] * 1e3:.1f} | {whole * 1e3:.1f} |", flush=True)
    tell_late(latest_of)
