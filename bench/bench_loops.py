"""Loops: nanoseconds an iteration of treadle's tiers, onnxruntime, jax and hand-written C++, as slopes (time at 10 N iterations -
time at N) / 9 N; and what a call costs."""

from __future__ import annotations

import dataclasses
import statistics

import bench_limits
import engines
import measure
import models
import numpy as np
import onnx
import record

IDENTITY = '<ir_version: 8, opset_import: ["" : 17]> g (float x) => (float y) { y = Identity(x) }'
SECONDS = 0.005  # of one measurement of one engine
ENGINES = ("onnxruntime", "jax", "C++", "program", "native")


@dataclasses.dataclass
class Found:
    loop: models.Loop
    slopes: dict[str, list[float]]  # by engine, seconds an iteration in each round
    problems: list[str]

    def ratio(self, over: str, under: str) -> measure.Ratio:
        return measure.ratio(self.slopes.get(over, []), self.slopes.get(under, []))

    def nanoseconds(self, engine: str) -> str:
        return f"{statistics.median(self.slopes[engine]) * 1e9:.4g}" if engine in self.slopes else ""


def differs(got, expected, built: models.Built) -> str:
    """Says where outputs are not those of onnxruntime; empty: nowhere."""
    for k, (a, b) in enumerate(zip(got, expected, strict=True)):
        a = np.asarray(a)
        if a.shape != b.shape:
            return f"output {k} has the shape {a.shape}, not {b.shape}"
        if built.compared is not None and k not in built.compared:
            continue
        wrong = ~np.isclose(a, b, rtol=built.tolerance, atol=built.tolerance)
        if wrong.mean() > built.allowed_mismatch:
            return f"{wrong.sum()} of {wrong.size} elements of output {k} differ"
    return ""


def open_all(loop: models.Loop, built: models.Built, jax) -> tuple[dict[str, engines.Run], list[str]]:
    """All engines that run the loop, checked against each other."""
    data = built.model()
    runs = {"onnxruntime": engines.bind(engines.open_theirs(data), built.inputs)}
    expected = runs["onnxruntime"]()
    if jax:
        runs["jax"] = engines.jax_run(jax, loop, built)
    runs["C++"] = engines.yardstick_run(loop, built, expected)
    runs["program"] = engines.bind(engines.open_ours(data), built.inputs)
    runs["native"] = engines.bind(engines.open_native(data), built.inputs)
    runs = {name: run for name, run in runs.items() if run}
    problems = []
    for name, run in runs.items():
        if problem := differs(run(), expected, built):
            problems.append(f"{loop.name}, {name}: {problem}")
    return runs, problems


def measure_loop(loop: models.Loop, jax, rounds: int, seconds: float) -> Found:
    short, long = loop.make(1), loop.make(10)
    (fast, problems), (slow, more) = open_all(loop, short, jax), open_all(loop, long, jax)
    names = list(fast)
    times = measure.in_turns([run for name in names for run in (fast[name], slow[name])], rounds, seconds)
    slopes = {}
    for k, name in enumerate(names):
        pairs = zip(times[2 * k], times[2 * k + 1], strict=True)
        slopes[name] = [(b - a) / (long.iterations - short.iterations) for a, b in pairs]
    return Found(loop, slopes, problems + more)


def print_row(found: Found) -> None:
    cells = [found.loop.name, *(found.nanoseconds(name) for name in ENGINES)]
    cells += [f"{found.ratio('onnxruntime', 'native').mean:.1f}", str(found.ratio("native", "C++"))]
    print(f"| {' | '.join(cells)} |", flush=True)
    against_hand = found.ratio("native", "C++")
    medians = {name: statistics.median(slopes) for name, slopes in found.slopes.items()}
    record.keep("loops", found.loop.name, group=found.loop.group.title, iteration=medians,
                onnxruntime_over_native=found.ratio("onnxruntime", "native").mean, native_over_hand=against_hand.mean,
                interval=f"{against_hand.low:.2f} to {against_hand.high:.2f}")  # fmt: skip


def print_classes(all_found: list[Found]) -> None:
    """The table of targets: a class is as good as its worst loop."""
    print("\n| class | against onnxruntime: target | least | | native / C++: target | most | |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    groups: dict[models.Class, list[Found]] = {}
    for found in all_found:
        groups.setdefault(found.loop.group, []).append(found)
    for group, members in groups.items():
        if group.onnxruntime is None and group.yardstick is None:
            continue
        slowest = min((m.ratio("onnxruntime", "native") for m in members), key=lambda r: r.mean)
        farthest = max((m.ratio("native", "C++") for m in members), key=lambda r: r.mean)
        cells = [group.title, f"{group.onnxruntime or ''}", f"{slowest.mean:.1f}"]
        cells += [measure.at_least(slowest, group.onnxruntime), f"{group.yardstick or ''}", str(farthest)]
        cells += [measure.at_most(farthest, group.yardstick)]
        print(f"| {' | '.join(cells)} |", flush=True)


def bench_calls(rounds: int, seconds: float) -> None:
    data = onnx.parser.parse_model(IDENTITY).SerializeToString()
    feeds = {"x": np.array(1, np.float32)}
    runs = [engines.bind(open_one(data), feeds) for open_one in (engines.open_theirs, engines.open_ours)]
    theirs, ours = (statistics.median(t) * 1e9 for t in measure.in_turns(runs, rounds, seconds))
    print("\n| a call from Python | onnxruntime ns | treadle ns | ratio |\n| --- | --- | --- | --- |")
    record.keep("calls", "Identity", onnxruntime=theirs / 1e9, treadle=ours / 1e9)
    print(f"| Identity | {theirs:.0f} | {ours:.0f} | {theirs / ours:.1f} |", flush=True)


def bench_loops(options) -> None:
    jax, said = engines.import_jax()
    print(
        f"{said}\n\n| loop | {' | '.join(f'{name} ns/iteration' for name in ENGINES)} | onnxruntime / native | native / C++ |"
    )
    print("| --- |" + " --- |" * (len(ENGINES) + 2))
    found = []
    for name, loop in models.LOOPS.items():
        if options.match in name:
            found.append(measure_loop(loop, jax, options.rounds, options.seconds or SECONDS))
            print_row(found[-1])
    print_classes(found)
    bench_calls(options.rounds, options.seconds or SECONDS)
    if not options.match:
        bench_limits.bench_limits()
    for problem in [p for f in found for p in f.problems]:
        print(f"\nNOT THE SAME RESULTS: {problem}")
    print()
