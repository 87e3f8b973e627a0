"""What `explain` says that the loops of the benchmark take as native code, beside what they take."""

from __future__ import annotations

import engines
import measure
import models
import numpy as np
from models.registry import Built

WITHIN = 1.5
CALL_NS = 700  # of a call from Python, with what a loop needs before its first iteration


def iterations(built: Built) -> int:
    """Of an outermost loop that counts up to an input; the benchmark counts those of the innermost one."""
    counts = [int(x) for x in built.inputs.values() if x.ndim == 0 and np.issubdtype(x.dtype, np.integer)]
    return min([*counts, built.iterations])


def estimated_ns(built: Built, session) -> float:
    loops = session.explain(built.inputs, json=True)["loops"]
    outermost = [loop for loop in loops if loop["parent"] is None]
    iterations = [iterations(built) if loop["iterations"] is None else loop["iterations"] for loop in outermost]
    return sum(n * loop["estimated_ns_per_iteration"] for n, loop in zip(iterations, outermost, strict=True))


def bench_explain(options) -> None:
    print("\n| loop | ns an iteration | explain | ratio |\n| --- | --- | --- | --- |")
    ratios = []
    for name, loop in models.LOOPS.items():
        if options.match not in name:
            continue
        built = loop.make(1)
        session = engines.open_native(built.model())
        run = engines.bind(session, built.inputs)
        run()
        found = max(1e9 * measure.best_of(run, options.seconds or 0.1) - CALL_NS, 1.0)
        estimated = estimated_ns(built, session)
        ratios.append(estimated / found)
        print(
            f"| {name} | {found / built.iterations:.1f} | {estimated / built.iterations:.1f} | {ratios[-1]:.2f} |",
            flush=True,
        )
    near = sum(1 / WITHIN <= r <= WITHIN for r in ratios)
    print(f"\nwithin {WITHIN}: {near} of {len(ratios)}")
