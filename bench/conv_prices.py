"""Prices of what methods of convolution count (src/kernels/isa/conv/prices.h): times of every method on every shape that
it fits, prices fitted to them, and what the choice by them loses to the quickest method."""

from __future__ import annotations

import collections
import math
import pathlib
import re
import subprocess
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

ROOT = pathlib.Path(__file__).parents[1]
PRICES = ROOT / "src" / "kernels" / "isa" / "conv" / "prices.h"
PROGRAM = ROOT / "build" / "bin" / "treadle_conv_costs"
SHAPES = ROOT / "bench" / "native" / "conv_costs" / "models.txt"
FAR = 3  # a method that takes so many times the quickest one's time counts half as much: it is not to be chosen anyway


@dataclass
class Case:
    """A shape in one layout: nanoseconds and counts of each method, and the method that is chosen."""

    isa: str
    layout: str
    shape: str
    chosen: str
    ns: dict[str, float]
    counts: dict[str, np.ndarray]
    orders: dict[str, str]

    @property
    def key(self) -> tuple[str, str]:
        return self.isa, self.shape

    def is_held_out(self) -> bool:
        return zlib.crc32(self.shape.encode()) % 3 == 0


Prices = dict[tuple[str, str], np.ndarray]  # by instruction set and method


def read(lines: list[str]) -> list[Case]:
    cases = []
    for line in lines:
        name, chosen, *methods = line.rstrip("\n").split(" | ")
        isa, layout, shape = name.split(" ", 2)
        case = Case(isa, layout, shape, chosen, {}, {}, {})
        for method in methods:
            what, order, ns, counts = method.split(" ")
            case.ns[what] = float(ns)
            case.orders[what] = order
            case.counts[what] = np.array([float(n) for n in counts.split(",")])
        if case.ns:
            cases.append(case)
    return cases


def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The x >= 0 with the least squares of a @ x - b (Lawson and Hanson)."""
    squares, target = a.T @ a, a.T @ b
    x, free = np.zeros(a.shape[1]), np.zeros(a.shape[1], bool)
    while not free.all():
        gain = np.where(free, -np.inf, target - squares @ x)
        best = int(np.argmax(gain))
        if gain[best] <= 1e-12 * np.abs(target).max():
            break
        free[best] = True
        while True:
            step = np.zeros_like(x)
            step[free] = np.linalg.lstsq(squares[np.ix_(free, free)], target[free], rcond=None)[0]
            bound = free & (step <= 0)
            if not bound.any():
                x = step
                break
            x += np.min(x[bound] / (x[bound] - step[bound] + 1e-300)) * (step - x)
            free &= x > 1e-15 * x.max(initial=0)
            if not free.any():
                break
    return x


def fit_one(counts: np.ndarray, ns: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Least squares of the logarithms of predicted and measured times, by squares of differences that are scaled anew."""
    scale = np.maximum(counts.max(0), 1e-9)
    predicted = ns
    for _ in range(12):
        rows = np.sqrt(weight / (predicted * ns))
        prices = solve(counts / scale * rows[:, None], ns * rows)
        predicted = np.maximum(counts / scale @ prices, 1e-3 * ns)
    return prices / scale


def fit(cases: list[Case]) -> Prices:
    rows = collections.defaultdict(list)
    for case in cases:
        least = min(case.ns.values())
        for method, ns in case.ns.items():
            rows[case.isa, method].append((case.counts[method], ns, 1 / (1 + (ns / least / FAR) ** 2)))
    return {key: fit_one(*(np.array(column) for column in zip(*found, strict=True))) for key, found in rows.items()}


def cost(case: Case, method: str, prices: Prices) -> float:
    return float(prices[case.isa, method] @ case.counts[method])


def cheapest(case: Case, prices: Prices, order: str) -> str | None:
    methods = [m for m in case.ns if case.orders[m] == order and (case.isa, m) in prices]
    return min(methods, key=lambda m: cost(case, m, prices), default=None)


def choices(cases: list[Case], prices: Prices) -> Callable[[Case], str | None]:
    """The choice of isa/conv/methods.cc: an order of sums by its costs in both layouts, then a method of that order."""
    plain, last = ({case.key: case for case in cases if case.layout == layout} for layout in ("nchw", "nhwc"))

    def cost_of_order(first: Case, order: str) -> float:
        nchw = cost(first, cheapest(first, prices, order), prices)
        nhwc = cheapest(last[first.key], prices, order) if first.key in last else None
        return nchw + (nchw if nhwc is None else min(nchw, cost(last[first.key], nhwc, prices)))

    def choose(case: Case) -> str | None:
        if case.key not in plain:
            return None
        first = plain[case.key]
        return cheapest(case, prices, min(sorted(set(first.orders.values())), key=lambda o: cost_of_order(first, o)))

    return choose


def losses(cases: list[Case], choose: Callable[[Case], str | None]) -> dict[tuple[str, str], list[tuple[float, Case]]]:
    """By instruction set and layout, the time of the choice over that of the quickest method it could have been."""
    found = collections.defaultdict(list)
    for case in cases:
        choice = choose(case)
        if choice is None or choice not in case.ns:
            continue
        same = case.layout == "nchw"
        ns = [t for m, t in case.ns.items() if same or case.orders[m] == case.orders[choice]]
        found[case.isa, case.layout].append((case.ns[choice] / min(ns), case))
    return found


def print_losses(title: str, cases: list[Case], choose: Callable[[Case], str | None]) -> None:
    for (isa, layout), found in sorted(losses(cases, choose).items()):
        ratios = [ratio for ratio, _ in found]
        mean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
        share = sum(ratio > 1.05 for ratio in ratios) / len(ratios)
        print(f"| {title} | {isa} | {layout} | {len(ratios)} | {mean:.3f} | {100 * share:.0f} % | {max(ratios):.2f} |")


def write(prices: Prices) -> None:
    """Puts the prices into the header, between the lines that name the instruction sets."""
    text = PRICES.read_text(encoding="utf-8")
    for isa in sorted({isa for isa, _ in prices}):
        rows = "".join(
            f'    {{"{method}", {{{", ".join(f"{price:.3g}" for price in found)}}}}},\n'
            for (of, method), found in prices.items()
            if of == isa
        )
        table = re.compile(rf"(?<=// {isa}\ninline constexpr ConvPrices kPrices\[\] = \{{\n).*?(?=\}};\n)", re.DOTALL)
        if len(table.findall(text)) != 1:
            raise SystemExit(f"{PRICES} has no prices of {isa}")
        text = table.sub(rows, text)
    PRICES.write_text(text, encoding="utf-8")


def bench_conv_prices(options) -> None:
    subprocess.run(
        ["cmake", "--build", ROOT / "build" / "release", "--target", "treadle_conv_costs"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    if options.times and options.times.exists():
        lines = options.times.read_text(encoding="utf-8").splitlines()
    else:
        run = subprocess.run([PROGRAM, SHAPES], check=True, capture_output=True, text=True)
        lines = run.stdout.splitlines()
        if options.times:
            options.times.write_text(run.stdout, encoding="utf-8")
    cases = read(lines)
    held_out = [case for case in cases if case.is_held_out()]
    others = fit([case for case in cases if not case.is_held_out()])
    prices = fit(cases)
    print("| prices | instruction set | layout | shapes | chosen / quickest | lose over 5 % | most |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    print_losses("now", cases, lambda case: case.chosen)
    print_losses("fitted to two thirds, the others", held_out, choices(cases, others))
    print_losses("fitted", cases, choices(cases, prices))
    if options.write:
        write(prices)
