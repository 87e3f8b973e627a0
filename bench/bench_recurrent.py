"""LSTM and GRU over a grid of batches and widths, one core: how many times as fast as onnxruntime, in processor time.

TREADLE_ISA picks the instruction set; onnxruntime takes the widest that it knows.
"""

from __future__ import annotations

import math
import statistics
import time

import engines
import models
import record
from models.operators import Class

BATCHES = (1, 2, 4, 8, 16, 32, 64)
WIDTHS = (32, 64, 128, 256, 512, 1024)
GRID = Class("LSTM and GRU, a grid of batches and widths")
STEPS, FEW_STEPS = 40, 24
LARGE = 64 * 256**2  # batch by weights of a gate, from here on FEW_STEPS
SECONDS = 0.004  # of one measurement of one engine


def operator(op: str, batch: int, width: int) -> models.Operator:
    return models.Operator(op, FEW_STEPS if batch * width**2 >= LARGE else STEPS, batch, width, GRID)


def least(run: engines.Run, seconds: float) -> float:
    """Of one call, in processor time of this thread: what else the machine does counts for nobody."""
    best, stop = math.inf, time.perf_counter() + seconds
    while True:
        start = time.thread_time()
        run()
        best = min(best, time.thread_time() - start)
        if time.perf_counter() > stop:
            return best


def times(o: models.Operator, rounds: int, seconds: float) -> dict[str, float]:
    """Seconds of a run, the least of all rounds, by engine."""
    runs = engines.runs_by_all(o.name, *o.build())
    found = dict.fromkeys(runs, math.inf)
    for _ in range(rounds):
        for name, run in runs.items():
            found[name] = min(found[name], least(run, seconds))
    return found


def print_row(op: str, width: int, found: dict[int, dict[str, float]], tier: str) -> None:
    cells = [f"{t['onnxruntime'] / t[tier]:.2f}" for t in found.values()]
    print(f"| {op} H={width}, {tier} | {' | '.join(cells)} |", flush=True)


def bench_recurrent(options) -> None:
    print(f"\n| onnxruntime / treadle | {' | '.join(f'B={batch}' for batch in BATCHES)} |")
    print("| --- |" + " --- |" * len(BATCHES))
    summary = []
    for op in ("LSTM", "GRU"):
        ratios = {"program": {}, "native": {}}
        for width in WIDTHS:
            grid = {batch: operator(op, batch, width) for batch in BATCHES}
            if not any(options.match in o.name for o in grid.values()):
                continue
            found = {batch: times(o, options.rounds, options.seconds or SECONDS) for batch, o in grid.items()}
            for batch, t in found.items():
                record.keep("recurrent", grid[batch].name, operator=op, batch=batch, width=width, **t)
            for tier, of_tier in ratios.items():
                print_row(op, width, found, tier)
                of_tier |= {grid[batch].name: t["onnxruntime"] / t[tier] for batch, t in found.items()}
        for tier, of_tier in ratios.items():
            if not of_tier:
                continue
            worst = min(of_tier, key=of_tier.__getitem__)
            mean = statistics.geometric_mean(of_tier.values())
            summary.append(f"{op}, {tier}: geometric mean {mean:.2f}, least {of_tier[worst]:.2f} ({worst})")
    print("\n" + "\n".join(summary))
