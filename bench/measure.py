"""Timing: minima of short series, series taken in turns, and what can be said of their ratios."""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable

# Two-sided 95 % quantiles of Student's t, by degrees of freedom.
STUDENT = {
    4: 2.776,
    5: 2.571,
    6: 2.447,
    7: 2.365,
    8: 2.306,
    9: 2.262,
    10: 2.228,
    11: 2.201,
    12: 2.179,
    13: 2.160,
    14: 2.145,
}


Clock = Callable[[], float]


def best_of(run: Callable[[], object], seconds: float, clock: Clock = time.perf_counter) -> float:
    """The least time of one call, in calls that take `seconds` together; at least one call.

    On virtual machines a clock of processor time can stand still during a call. Such a call is not counted.
    """
    least, stop = math.inf, clock() + seconds
    while True:
        start = clock()
        run()
        end = clock()
        if end > start:
            least = min(least, end - start)
        if end > stop and least < math.inf:
            return least


def in_turns(
    runs: list[Callable[[], object]], rounds: int, seconds: float, clock: Clock = time.perf_counter
) -> list[list[float]]:
    """For each of `runs` the best time of each round; a round takes them one after the other."""
    for run in runs:
        run()
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, taken in zip(runs, times, strict=True):
            taken.append(best_of(run, seconds, clock))
    return times


def alternate(runs: list[Callable[[], object]], seconds: float) -> list[float]:
    """Median seconds of each of `runs`, taken in turns call by call for `seconds`."""
    for run in runs:
        run()
    times: list[list[float]] = [[] for _ in runs]
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop or len(times[0]) < 5:
        for run, taken in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


@dataclasses.dataclass(frozen=True)
class Ratio:
    """A geometric mean with its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}]"


def ratio(over: list[float], under: list[float]) -> Ratio:
    """Of the pairs that both give a positive time: slopes of very fast loops can be lost in noise."""
    logs = [math.log(a / b) for a, b in zip(over, under, strict=True) if a > 0 and b > 0]
    if not logs:
        return Ratio(math.nan, math.nan, math.nan)
    mean = statistics.fmean(logs)
    half = math.inf
    if len(logs) > 4:
        half = STUDENT.get(len(logs) - 1, 1.96) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def at_least(found: Ratio, target: float | None) -> str:
    return verdict(target, found.mean >= (target or 0), found)


def at_most(found: Ratio, target: float | None) -> str:
    return verdict(target, found.mean <= (target or 0), found)


def verdict(target: float | None, holds: bool, found: Ratio) -> str:
    """Near a target the interval decides: it is "even" where the target lies within it."""
    if target is None or math.isnan(found.mean):
        return ""
    if target < 1.3 and found.low <= target <= found.high:
        return "even"
    return "ok" if holds else "missed"
