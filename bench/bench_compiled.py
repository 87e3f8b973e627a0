"""Models as C: bytes and time of what `treadle compile` writes, by gcc and clang, beside the engine, onnxruntime and
emx-onnx-cgen.

-O3 for this processor, or for AVX2 with TREADLE_ISA=avx2, which limits the engine as well; one thread; all take turns.
The engine's runs are bound, and its loops native code. TREADLE_GTCRN names a file of GTCRN's streaming form.
"""

from __future__ import annotations

import resource
import time

import c_stream
import c_table
import compiled_code
import compiled_models
import engines
import measure
import numpy as np
import record
from compiled_code import COMPILERS, OurCode, Refused, TheirCode

SECONDS = 0.004  # of one measurement
TOLERANCE = 1e-3  # of emx-onnx-cgen, by the greatest value of an output; the C has the engine's bits on AVX2
LOOPS, OTHERS = 1.3, 2.0  # what the C may take of the engine's time
STACK = 120 << 20  # emx-onnx-cgen keeps all memory there


def differs(got: list[np.ndarray], expected: list[np.ndarray]) -> str:
    for k, (a, b) in enumerate(zip(got, expected, strict=True)):
        limit = TOLERANCE * float(np.abs(b.astype(np.float64)).max(initial=1))
        if not np.allclose(a.astype(np.float64), b.astype(np.float64), atol=limit, rtol=TOLERANCE):
            return f"other results than treadle in output {k}"
    return ""


def runs_of(case: compiled_models.Case) -> tuple[dict[str, object], dict[str, str]]:
    """What runs, by name, and why others do not."""
    model, feeds = case.make()
    expected = engines.open_ours(model).run(None, feeds)
    runs, problems = {"treadle": c_stream.BoundRun(model, feeds, "always")}, {}
    name = "".join(c if c.isalnum() else "_" for c in case.name)
    try:
        runs["onnxruntime"] = c_table.TableSession(c_table.THEIRS, model, feeds)
    except RuntimeError as problem:
        problems["onnxruntime"] = str(problem).splitlines()[0]
    given = {n: v for n, v in feeds.items() if n not in case.fixed}
    writers = {
        "C": (OurCode, given, lambda: compiled_code.ours(model, feeds, case.fixed)),
        "emx": (TheirCode, feeds, lambda: compiled_code.theirs(model, feeds, expected)),
    }
    for writer, (kind, arguments, write) in writers.items():
        try:
            written = write()
        except Refused as problem:
            problems[writer] = str(problem)
            continue
        for compiler in COMPILERS:
            try:
                runs[f"{writer} {compiler}"] = kind(written, f"{writer}_{name}", compiler, arguments, expected)
            except Refused as problem:
                problems[f"{writer} {compiler}"] = str(problem)
    for what, run in list(runs.items()):
        run.run(2)
        if isinstance(run, compiled_code.Code) and (problem := differs(run.results(), expected)):
            if isinstance(run, OurCode):
                raise RuntimeError(f"{case.name}, {what}: {problem}")
            problems[what] = problem
            del runs[what]
    return runs, problems


def least_times(runs: dict[str, object], rounds: int, seconds: float) -> dict[str, float]:
    """Seconds of a run."""
    calls = {}
    for name, run in runs.items():
        begin = time.perf_counter()
        run.run(3)
        calls[name] = max(1, int(seconds / 4 / max((time.perf_counter() - begin) / 3, 1e-9)))
    series = measure.in_turns([lambda n=n, r=r: r.run(calls[n]) for n, r in runs.items()], rounds, seconds)
    return {name: min(times) / calls[name] for name, times in zip(runs, series, strict=True)}


def cells(case: compiled_models.Case, found: dict, runs: dict) -> list[str]:
    limit, listed = LOOPS if case.loops else OTHERS, []
    number = lambda value, unit=1.0: f"{value / unit:,.1f}" if value < 100 * unit else f"{value / unit:,.0f}"  # noqa: E731
    for engine in ("treadle", "onnxruntime"):
        listed.append(number(found[engine] * 1e6) if engine in found else "")
    for writer in ("C", "emx"):
        for compiler in COMPILERS:
            listed.append(number(found[f"{writer} {compiler}"] * 1e6) if f"{writer} {compiler}" in found else "")
    ratios = [found[f"C {c}"] / found["treadle"] for c in COMPILERS if f"C {c}" in found]
    listed.append(" / ".join(f"{r:.2f}" for r in ratios))
    listed.append("" if not ratios else "ok" if max(ratios) <= limit else "clang" if min(ratios) <= limit else "missed")
    for writer in ("C", "emx"):
        code = runs.get(f"{writer} gcc")
        listed.append(
            f"{number(code.code, 1024)} / {number(code.data, 1024)} / {number(code.working, 1024)}" if code else ""
        )
    return listed


def bench_compiled(options) -> None:
    resource.setrlimit(resource.RLIMIT_STACK, (STACK, resource.getrlimit(resource.RLIMIT_STACK)[1]))
    head = ["model", "treadle us", "onnxruntime us", *(f"{w} {c} us" for w in ("C", "emx") for c in COMPILERS)]
    head += ["C / treadle", "target", "C, KiB of code / data / memory", "emx, KiB of code / data / memory"]
    print(f"\n-march={compiled_code.PROCESSOR}\n\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for case in compiled_models.all_cases():
        if options.match not in case.name:
            continue
        if case.absent:
            print(f"| {case.name} |  {case.absent} |", flush=True)
            continue
        runs, problems = runs_of(case)
        found = least_times(runs, options.rounds, options.seconds or SECONDS)
        bytes_of = {f"{name} bytes": [run.code, run.data, run.working] for name, run in runs.items() if name[0] in "Ce"}
        record.keep("compiled", case.name, loops=case.loops, **found, **bytes_of, refused=problems)
        print(f"| {' | '.join([case.name, *cells(case, found, runs)])} |", flush=True)
        for what, why in problems.items():
            print(f"  {what}: {why}", flush=True)
