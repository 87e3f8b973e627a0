"""What streams cost a core, for treadle.serving.capacity: build/venv/bin/python bench/bench_capacity.py

By model and block: microseconds of a push and of each step in it, by `Streams.step` and by `Streams.step_rows`; snapshots.
Then latencies: `Streams` under random arrivals in simulated time, each push as long as it was measured to take, beside what
`capacity.latency` computes from the same costs. Times are by the clock of the thread, which does not count the time of other programs: medians of the least of three.
"""

from __future__ import annotations

import argparse
import functools
import pathlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import treadle
from models.registry import Built
from treadle.serving import capacity
from treadle.serving.streams import Answer, Step, Streams

HERE = pathlib.Path(__file__).parent
SILERO = HERE.parent / "examples" / "vad" / "silero_vad.onnx"
SIZES = (1, 4, 16, 64, 256)  # steps of a push
BUSY = (0.2, 0.4, 0.6)  # share of a core's time that steps take
REPEATS = 3  # of each push, of which the least counts: the machine has other programs
RNG = np.random.default_rng(1)


@dataclass
class Case:
    """A model, how its streams are made, and the block of one stream, with the axis of its batch."""

    model: bytes | str
    roles: dict[str, Any]
    name: str
    block: np.ndarray
    axis: int


def recurrent(kind: str, features: int, hidden: int) -> bytes:
    gates = {"LSTM": 4, "GRU": 3}[kind]
    text = f"""
    g (float[T,B,{features}] x) => (float[T,1,B,{hidden}] y) {{
      y, h = {kind} <hidden_size = {hidden}> (x, W, R, b)
    }}"""
    shapes = {"W": (1, gates * hidden, features), "R": (1, gates * hidden, hidden), "b": (1, 2 * gates * hidden)}
    weights = {name: (RNG.standard_normal(shape) * 0.1).astype(np.float32) for name, shape in shapes.items()}
    return Built(text, weights, {}, 0).model()


def frames(count: int, features: int) -> np.ndarray:
    return RNG.standard_normal((count, 1, features)).astype(np.float32)


def cases() -> dict[str, Case]:
    time_of_x = {"time": {"x": 0}}
    silero = {"time": {"input": 1}, "hop": 512, "context": 64, "state": {"state": "stateN"}}
    silero["bind"] = {"sr": np.array(16000)}
    found = {}
    for kind, features, hidden in (("LSTM", 40, 64), ("GRU", 40, 128), ("LSTM", 80, 256)):
        for count in (1, 10):
            model = recurrent(kind, features, hidden)
            label = f"{kind} {features}-{hidden}, {10 * count} ms"
            found[label] = Case(model, time_of_x, "x", frames(count, features), 1)
    for count in (1, 3):
        samples = RNG.standard_normal((1, 512 * count)).astype(np.float32)
        found[f"silero VAD, {32 * count} ms"] = Case(str(SILERO), silero, "input", samples, 0)
    return found


def least(make: Callable[[], Callable[[], object]]) -> float:
    """Seconds of the thread's own time, of REPEATS; what `make` does beforehand is not counted."""
    found = np.inf
    for _ in range(REPEATS):
        do = make()
        begun = time.thread_time()
        do()
        found = min(found, time.thread_time() - begun)
    return float(found)


def medians(makers: list[Callable[[], Callable[[], object]]], seconds: float) -> list[float]:
    """Microseconds that each takes, in turns."""
    took: list[list[float]] = [[] for _ in makers]
    until = time.perf_counter() + seconds * len(makers)
    while time.perf_counter() < until:
        for make, found in zip(makers, took, strict=True):
            found.append(least(make))
    return [float(np.median(found)) * 1e6 for found in took]


def line(sizes: list[int], took: list[float]) -> tuple[float, float]:
    """What a push and each step in it cost, so that relative errors are small."""
    weights = 1 / np.array(took)
    terms = np.stack([np.ones(len(sizes)), np.array(sizes, float)], axis=1)
    found = np.linalg.lstsq(terms * weights[:, None], np.ones(len(sizes)), rcond=None)[0]
    return max(0.0, float(found[0])), float(found[1])


def streams_of(case: Case) -> Streams:
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    session = treadle.InferenceSession(case.model, options)
    return Streams(session, capacity=2 * max(SIZES), idle_s=1e9, **case.roles)


def costs(case: Case, seconds: float) -> tuple[Streams, tuple[float, float], tuple[float, float], capacity.Cost]:
    """Of a push and of a step in it, by `step` and by `step_rows`; and of the first, with snapshots, as a Cost."""
    streams = streams_of(case)
    ids = list(range(1, max(SIZES) + 1))
    streams.step([Step(i, case.block, start=True) for i in ids])

    def by_step_of(size: int) -> Callable[[], object]:
        return push_of(streams, case.block, range(size))

    def by_rows_of(size: int) -> Callable[[], object]:
        block = np.concatenate([case.block] * size, case.axis)
        return lambda: streams.step_rows(ids[:size], {case.name: block})

    [answer] = streams.step([Step(1, case.block, snapshot=True)])
    assert isinstance(answer, Answer)
    one = Step(ids[-1] + 1, case.block)

    def leave_and_start(state: bytes) -> Callable[[], object]:
        streams.leave(one.id)
        return lambda: streams.step([Step(one.id, case.block, start=True, state=state)])

    single = medians([functools.partial(by_step_of, size) for size in SIZES], seconds)
    rows = medians([functools.partial(by_rows_of, size) for size in SIZES], seconds)
    by_step, by_rows = line(list(SIZES), single), line(list(SIZES), rows)
    plain, saved, loaded = medians(
        [
            lambda: lambda: streams.step([Step(1, case.block)]),
            lambda: lambda: streams.step([Step(1, case.block, snapshot=True)]),
            lambda: leave_and_start(answer.state),
        ],
        seconds,
    )
    save, load = saved - plain, loaded - plain
    found = (by_step[0], by_step[1], 0.0, max(0.0, save), max(0.0, load))
    return streams, by_step, by_rows, capacity.Cost(*(value * 1e-6 for value in found), len(answer.state))


@dataclass
class Ran:
    """Random arrivals: seconds from each to its answer, and sizes of the pushes with the microseconds that they took."""

    waits: np.ndarray
    sizes: list[int]
    took: list[float]


def push_of(streams: Streams, block: np.ndarray, numbers: range) -> Callable[[], object]:
    """Steps of streams that take turns."""
    steps = [Step(k % max(SIZES) + 1, block.copy()) for k in numbers]
    return lambda: streams.step(steps)


def arrivals(streams: Streams, block: np.ndarray, rate: float, count: int) -> Ran:
    """Steps run, time is simulated: a push begins when the one before it has ended, with all steps that have come."""
    came = np.cumsum(np.random.default_rng(2).exponential(1 / rate, count))
    ran, now, first = Ran(np.empty(count), [], []), 0.0, 0
    while first < count:
        now = max(now, came[first])
        last = min(int(np.searchsorted(came, now, side="right")), first + max(SIZES))
        took = least(functools.partial(push_of, streams, block, range(first, last)))
        now += took
        ran.waits[first:last] = now - came[first:last]
        ran.sizes.append(last - first)
        ran.took.append(took * 1e6)
        first = last
    return ran


def compared(name: str, ran: Ran, rate: float) -> str:
    """A row: what ran, and what is computed from the costs that pushes had in that run."""
    p50, p99 = np.quantile(ran.waits, [0.5, 0.99]) * 1e6
    push, step = line(ran.sizes, ran.took)
    shown = f"| {name} | {rate:,.0f} | {push:.0f} + {step:.1f} "
    if rate * step * 1e-6 > capacity.FULLEST:
        return f"{shown}| {p50:.0f}, - | {p99:.0f}, - | {np.mean(ran.sizes):.1f}, - |"
    found = capacity.latency(rate, push * 1e-6, step * 1e-6)
    return (
        f"{shown}| {p50:.0f}, {found.p50_s * 1e6:.0f} | {p99:.0f}, {found.p99_s * 1e6:.0f} "
        f"| {np.mean(ran.sizes):.1f}, {found.batch:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.4, help="of each measurement")
    parser.add_argument("--count", type=int, default=40_000, help="random arrivals")
    parser.add_argument("--match", default="", metavar="TEXT", help="only models with TEXT in the name")
    options = parser.parse_args()
    chosen = {name: case for name, case in cases().items() if options.match in name}
    print("| model, block | push us | step us | rows: push us | row us | snapshot bytes | save us | load us |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    kept = {}
    for name, case in chosen.items():
        streams, by_step, by_rows, cost = costs(case, options.seconds)
        kept[name] = streams, case, cost
        shown = (*by_step, *by_rows, cost.state_bytes, cost.save_s * 1e6, cost.load_s * 1e6)
        print(f"| {name} | " + " | ".join(f"{v:,.0f}" if v >= 20 else f"{v:.1f}" for v in shown) + " |", flush=True)
    print("\n| model, block | steps/s | costs, us | p50 us: ran, computed | p99 us | steps of a push |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, (streams, case, cost) in kept.items():
        for busy in BUSY:
            rate = busy / cost.step_s
            print(compared(name, arrivals(streams, case.block, rate, options.count), rate), flush=True)


if __name__ == "__main__":
    main()
