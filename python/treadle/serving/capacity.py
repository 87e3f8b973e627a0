"""Computes, from measured costs, how many machines live streams need, how long steps take, and the cost of a failure.

Nothing here runs a model. `bench/bench_capacity.py` measures what `Cost` holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Callers", "Cost", "Death", "Latency", "Plan", "death", "latency", "plan"]

FULLEST = 0.95  # share of a core's time that steps may take: beyond it, waits grow without bound


def _check(**values: float) -> None:
    for name, value in values.items():
        if not value >= 0 or math.isinf(value):
            raise ValueError(f"{name} is a number that is not negative, not {value}")


@dataclass(frozen=True)
class Cost:
    """What streams cost one core, in seconds of its time and in bytes.

    `push_s`: a push, however many steps it holds; `step_s`: each step in it; `transport_s`: receiving a step and sending
    its answer; `save_s`: a snapshot with an answer; `load_s`: a start from a snapshot, more than a step; `state_bytes`: of
    a snapshot. ValueError where one is negative, and where steps cost nothing.
    """

    push_s: float
    step_s: float
    transport_s: float = 0.0
    save_s: float = 0.0
    load_s: float = 0.0
    state_bytes: int = 0

    def __post_init__(self) -> None:
        """Refuses costs that cannot be."""
        _check(**vars(self))
        if not self.step_s + self.transport_s > 0:
            raise ValueError("a step takes some time: step_s or transport_s is above 0")

    def each_s(self, snapshot_every: int) -> float:
        """Seconds of a core that a step adds to a push, its share of a snapshot included."""
        return self.step_s + self.transport_s + self.save_s / snapshot_every


@dataclass(frozen=True)
class Callers:
    """Who sends: `streams` live streams, each with a block every `block_s` seconds and a snapshot every so many blocks.

    ValueError where there is no stream, no time between blocks, or no whole number of blocks between snapshots.
    """

    streams: int
    block_s: float
    snapshot_every: int = 1

    def __post_init__(self) -> None:
        """Refuses callers that cannot be."""
        if not self.streams >= 1 or not 0 < self.block_s < math.inf or not self.snapshot_every >= 1:
            raise ValueError(f"streams and snapshot_every are at least 1, block_s is above 0: {self}")


@dataclass(frozen=True)
class Latency:
    """Seconds from a step's arrival to its answer, on one core; `batch`: steps of a push on average, `busy`: share of time."""

    mean_s: float
    p50_s: float
    p99_s: float
    batch: float
    busy: float


@dataclass(frozen=True)
class Plan:
    """What serves the callers.

    `streams_per_core`: live streams of a core; `machines`: those that die and are replaced included; `latency`: of a core
    with its share while all machines live, `spare_lost`: while as many are away as may be; `together_s`: the longest wait
    where all callers of a core send at one moment; `snapshot_bytes_per_s`: of all callers together.
    """

    streams_per_core: int
    machines: int
    latency: Latency
    spare_lost: Latency
    together_s: float
    snapshot_bytes_per_s: float


@dataclass(frozen=True)
class Death:
    """What the death of one machine costs.

    `streams`: that move; `each`: to every machine that is left; `repeated`: blocks that a stream has computed again on
    average, `repeated_most`: at most; `first_s` and `last_s`: seconds from the death to the first and to the last stream's
    next answer; `level_s`: until the machines that are left have made up for what waited.
    """

    streams: int
    each: int
    repeated: float
    repeated_most: int
    first_s: float
    last_s: float
    level_s: float


def _poisson(means: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Chances of each of the counts, which are consecutive, for each of the means: [means, counts]."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, counts[-1] + 1)))])[counts]
    found: NDArray[np.float64] = np.exp(counts * np.log(means)[:, None] - means[:, None] - logs)
    return found


def _sizes(rate: float, push_s: float, step_s: float) -> NDArray[np.int64]:
    """Sizes of pushes that are not all too rare: six deviations around the mean of a busy core."""
    mean = rate * push_s / (1 - rate * step_s)
    spread = math.sqrt((mean + 1) / (1 - (rate * step_s) ** 2))
    return np.arange(max(1, int(mean - 6 * spread)), int(mean + 6 * spread) + 20)


def _stationary(moves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares of states, where `moves[i, j]` is the chance of j after i."""
    moves = moves / moves.sum(axis=1, keepdims=True)
    shares: NDArray[np.float64] = np.full(len(moves), 1 / len(moves))
    for _ in range(100_000):
        after = shares @ moves
        if np.abs(after - shares).sum() < 1e-10:
            break
        shares = after
    return shares


def latency(rate: float, push_s: float, step_s: float) -> Latency:
    """The latency of steps on one core, which pushes all n steps that wait at once, in `push_s + n * step_s` seconds.

    Steps arrive at random (a Poisson process), `rate` a second. The sizes of pushes are a Markov chain; its stationary
    distribution is computed, without a simulation. ValueError for negative numbers, and when steps take more than
    FULLEST of the core.
    """
    _check(rate=rate, push_s=push_s, step_s=step_s)
    if rate * step_s > FULLEST:
        raise ValueError(
            f"{rate:,.0f} steps a second of {step_s * 1e6:.4g} us each are more than {FULLEST:.0%} of a core's time"
        )
    if not rate:
        return Latency(push_s + step_s, push_s + step_s, push_s + step_s, 1.0, 0.0)
    sizes = _sizes(rate, push_s, step_s)
    took: NDArray[np.float64] = push_s + sizes.astype(np.float64) * step_s
    others = np.arange(max(0, sizes[0] - 1), sizes[-1] + 1)
    chances = _poisson(rate * took, others)  # of steps that come during a push
    moves = chances[:, others >= sizes[0]].copy()
    if sizes[0] == 1:
        moves[:, 0] += chances[:, 0]  # no step has arrived: the next one is pushed alone
    shares = _stationary(moves)
    idle = float(shares @ np.exp(-rate * took))  # pushes during which no step arrives
    waiting = shares * took * rate
    waiting, alone = waiting / (waiting.sum() + idle), idle / (waiting.sum() + idle)
    each = waiting[:, None] * chances / chances.sum(axis=1, keepdims=True)
    own = push_s + (others + 1) * step_s  # the push that a step is in, with the steps that arrived in the same time

    def below(seconds: float) -> float:
        """Chance of an answer within so many seconds: the rest of a push, at random, then the own one."""
        within = np.clip((seconds - own)[None, :] / took[:, None], 0.0, 1.0)
        return float((each * within).sum() + alone * (seconds >= push_s + step_s))

    mean = float((each * (took[:, None] / 2 + own[None, :])).sum() + alone * (push_s + step_s))
    batch, length = float(shares @ sizes), float(shares @ took)
    longest = float(took[-1] + own[-1])
    p50, p99 = _quantile(below, 0.5, longest), _quantile(below, 0.99, longest)
    return Latency(mean, p50, p99, batch, length / (length + idle / rate))


def _quantile(below: Callable[[float], float], share: float, high: float) -> float:
    low = 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if below(middle) >= share else (middle, high)
    return high


def plan(cost: Cost, callers: Callers, *, p99_s: float, cores: int = 1, spare: int = 1, busiest: float = 0.8) -> Plan:
    """Machines of `cores` cores each, a process on every core, so that steps are answered within `p99_s` seconds.

    99 of 100 steps keep to that also while `spare` machines are away, and a core's work is then at most the share `busiest`
    of what it can do. ValueError where not even one stream on a core keeps to it, and for numbers that cannot be.
    """
    _check(p99_s=p99_s, spare=spare)
    if cores < 1 or not 0 < busiest <= FULLEST:
        raise ValueError(f"cores is at least 1 and busiest above 0 and at most {FULLEST}, not {cores} and {busiest}")
    each = cost.each_s(callers.snapshot_every)

    def at(streams: float) -> Latency:
        return latency(streams / callers.block_s, cost.push_s, each)

    most = int(busiest * callers.block_s / each)
    if most < 1 or at(1).p99_s > p99_s:
        raise ValueError(f"one stream on a core takes more than {p99_s} s or the share {busiest} of its time: {cost}")
    low, high = 1, most + 1
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        low, high = (middle, high) if at(middle).p99_s <= p99_s else (low, middle)
    needed = math.ceil(callers.streams / (low * cores))
    all_of_them = (needed + spare) * cores
    return Plan(
        low,
        needed + spare,
        at(callers.streams / all_of_them),
        at(callers.streams / (needed * cores)),
        cost.push_s + math.ceil(callers.streams / all_of_them) * each,
        callers.streams / callers.block_s / callers.snapshot_every * cost.state_bytes,
    )


def death(cost: Cost, callers: Callers, *, machines: int, cores: int = 1, notice_s: float = 0.0) -> Death:
    """One of `machines` fails; its streams go on from snapshots on the machines that are left.

    `notice_s`: seconds until callers know and the balancer sends them to another machine; steps of that time wait at
    the callers. ValueError where the machines that are left cannot keep up, and for numbers that cannot be.
    """
    _check(notice_s=notice_s)
    if machines < 2 or cores < 1:
        raise ValueError(f"machines is at least 2 and cores at least 1, not {machines} and {cores}")
    every, each = callers.snapshot_every, cost.each_s(callers.snapshot_every)
    moved = math.ceil(callers.streams / machines)
    arriving = math.ceil(moved / (machines - 1))
    busy = callers.streams / ((machines - 1) * cores) / callers.block_s * each
    if busy >= 1:
        raise ValueError(f"{machines - 1} machines are left for {callers.streams:,} streams: {busy:.2f} of their time")
    before = callers.streams / (machines * cores) / callers.block_s * each
    repeated = (every + 1) / 2  # since the snapshot, the block on its way included
    start = cost.load_s + cost.transport_s + cost.save_s / every + repeated * cost.step_s
    waits = arriving / cores * (start + notice_s / callers.block_s * each)
    return Death(
        moved,
        arriving,
        repeated,
        every,
        notice_s + cost.push_s + start,
        notice_s + cost.push_s + arriving / cores * start / (1 - before),
        notice_s + waits / (1 - busy),
    )
