"""Convolutional networks and transformers of real sizes with random weights beside onnxruntime, on one thread and on two.

TREADLE_ISA picks treadle's instruction set; onnxruntime takes the widest that it knows. Each engine has a process of its
own (bench_products).
"""

from __future__ import annotations

import math

import convolutional
import engines
import numpy as np
import record
import transformers
from bench_products import THREADS, Case, Engine, in_turns


def compare(case: Case) -> None:
    """Results of both engines; rounding in fifty layers adds up."""
    [ours], [theirs] = (opened(case.model).run(None, case.feeds) for opened in (engines.open_ours, engines.open_theirs))
    np.testing.assert_allclose(ours, theirs, atol=1e-3 * float(np.abs(theirs).max()), err_msg=case.name)


def bench_networks(options) -> None:
    cases = [
        Case(n, *make()) for n, make in (convolutional.NETWORKS | transformers.NETWORKS).items() if options.match in n
    ]
    for case in cases:
        compare(case)
    for threads in THREADS:
        pair = Engine(engines.open_ours, threads), Engine(engines.open_theirs, threads)
        print(f"\n| network, threads: {threads} | onnxruntime ms | treadle ms | ratio |\n| --- | --- | --- | --- |")
        ratios = []
        for case in cases:
            ours, theirs = in_turns(pair, case, options, threads)
            ratios.append(theirs / ours)
            record.keep("networks", case.name, **{f"threads {threads}": {"onnxruntime": theirs, "treadle": ours}})
            print(f"| {case.name} | {theirs * 1e3:.2f} | {ours * 1e3:.2f} | {ratios[-1]:.2f} |", flush=True)
        for engine in pair:
            engine.close()
        if ratios:
            print(f"\ngeometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, least {min(ratios):.2f}")
