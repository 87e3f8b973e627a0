"""Single operators beside onnxruntime, one core, processor time, in turns; single_operators.py has the cases.

TREADLE_ISA picks treadle's instruction set; onnxruntime takes the widest that it knows.
"""

from __future__ import annotations

import math
import time

import engines
import measure
import numpy as np
import record
import single_operators
from single_operators import Case

TARGET = 0.95
SECONDS = 0.004  # of one measurement of one engine
TOLERANCES = {"float16": 2e-3, "bfloat16": 2e-2}  # of the largest element; 2e-5 for other types


def same(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether results agree: floats within a tolerance, integers that came of floats within 1."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return False
    if ours.dtype == bool or ours.size == 0:
        return np.array_equal(ours, theirs)
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    whole = np.issubdtype(ours.dtype, np.integer)
    finite = b[np.isfinite(b)]
    most = 1.0 if whole else TOLERANCES.get(str(ours.dtype), 2e-5) * (1.0 + float(np.abs(finite).max(initial=0.0)))
    return np.allclose(a, b, rtol=0, atol=most, equal_nan=True)


def opened(case: Case, engine) -> tuple[engines.Run | None, str]:
    try:
        run = engines.bind(engine(case.model()), case.inputs)
        run()
    except Exception as problem:
        return None, str(problem).splitlines()[0][:100]
    return run, ""


def measure_case(case: Case, options) -> float:
    """Prints a row; how many times as fast as onnxruntime, NaN where one of them does not run the case."""
    ours, problem = opened(case, engines.open_ours)
    theirs, their_problem = opened(case, engines.open_theirs)
    if ours is None or theirs is None:
        print(f"| {case.op} | {case.name} | {their_problem} | {problem} | |", flush=True)
        return math.nan
    agree = all(same(a, b) for a, b in zip(ours(), theirs(), strict=True))
    times = measure.in_turns([ours, theirs], options.rounds, options.seconds or SECONDS, time.thread_time)
    taken = [min(series) for series in times]
    ratio = taken[1] / taken[0]
    record.keep("operators", case.title(), operator=case.op, onnxruntime=taken[1], treadle=taken[0], agree=agree)
    row = [case.op, case.name, f"{1e6 * taken[1]:.1f}", f"{1e6 * taken[0]:.1f}", f"{ratio:.2f}"]
    print(f"| {' | '.join(row)} |{'' if agree else ' RESULTS DIFFER'}", flush=True)
    return ratio


def bench_operators(options) -> None:
    print("\n| operator | case | onnxruntime us | treadle us | ratio |")
    print("| --- | --- | --- | --- | --- |")
    chosen = [case for case in single_operators.cases() if options.match in case.title()]
    ratios = [(measure_case(case, options), case) for case in chosen]
    measured = [(ratio, case) for ratio, case in ratios if not math.isnan(ratio)]
    if not measured:
        return
    mean = math.exp(sum(math.log(ratio) for ratio, _ in measured) / len(measured))
    slower = sorted(((ratio, case.title()) for ratio, case in measured if ratio < TARGET))
    print(f"\n{len(measured)} cases, geometric mean {mean:.2f}, {len(slower)} below {TARGET}:")
    for ratio, title in slower:
        print(f"  {ratio:.2f} {title}")
