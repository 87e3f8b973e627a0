"""How late each operator hears that it should stop, in one thread and in two.

For every case of tests/python/long_runs.py, the longest stretch of processor time in which a run did not ask whether to
stop. Questions are watched by a timer, whose signals Python handles when a run asks for them: about every 5 ms.
"""

from __future__ import annotations

import pathlib
import signal
import sys
import time

import treadle

sys.path.append(str(pathlib.Path(__file__).parents[1] / "tests" / "python"))
import long_runs

TICK_S = 0.0005
TARGET_MS = 50
RUNS = 2  # of which the better one counts: the machine may be at something else


def stretches(session, feeds) -> tuple[float, float]:
    """The longest stretch without a question, and the whole run, in milliseconds."""
    asked: list[float] = []
    before = signal.signal(signal.SIGALRM, lambda *_: asked.append(time.process_time()))
    signal.setitimer(signal.ITIMER_REAL, TICK_S, TICK_S)
    start = time.process_time()
    asked.clear()
    try:
        session._sess.run_values(None, feeds, [], None)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        end = time.process_time()
        signal.signal(signal.SIGALRM, before)
    times = [start, *(t for t in asked if start < t < end), end]
    return max(b - a for a, b in zip(times, times[1:], strict=False)) * 1e3, (end - start) * 1e3


def latest_stop(model: bytes, feeds: dict, threads: int) -> tuple[float, float, float]:
    """The longest stretch of a run; of the first one, which plans as well; and the whole run."""
    options = treadle.SessionOptions()
    options.intra_op_num_threads = threads
    session = treadle.InferenceSession(model, options)
    first, _ = stretches(session, feeds)
    latest, whole = min(stretches(session, feeds) for _ in range(RUNS))
    return latest, first, whole


def bench_stops(options) -> None:
    rows = []
    for name, case in long_runs.cases().items():
        if case is None or options.match not in name:
            continue
        model, feeds = case.build()
        latest, first, whole = latest_stop(model, feeds, 1)
        shared, _, _ = latest_stop(model, feeds, 2)
        rows.append((max(latest, shared), name, latest, shared, first, whole))
        print(f"\r{name:60}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(
        "\n| operator | latest stop ms | in two threads | in the first run | whole run |\n| --- | --- | --- | --- | --- |"
    )
    for _, name, *figures in sorted(rows):
        print(f"| {name} | {' | '.join(f'{figure:.1f}' for figure in figures)} |")
    late = sum(row[0] > TARGET_MS for row in rows)
    print(f"\n{len(rows)} cases, {late} of them stop later than {TARGET_MS} ms")
