"""Products of float32 matrices beside onnxruntime and the machine's roof.

TREADLE_ISA picks treadle's instruction set; onnxruntime takes the widest that it knows. Engines take turns, each in a
process of its own: threads of onnxruntime's pool go on spinning after a run, so another engine must not run meanwhile.
"""

from __future__ import annotations

import dataclasses
import math
import multiprocessing
import time
from collections.abc import Callable

import engines
import measure
import numpy as np
import roof
from onnx import TensorProto, helper, numpy_helper

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 1024)
SIZES = ((64, 64), (256, 256), (512, 512), (1024, 1024), (2048, 2048), (4096, 4096), (64, 1024), (1024, 64),
         (768, 3072), (3072, 768))  # N, K  # fmt: skip
THREADS = (1, 2)
SETTLE = 0.3  # seconds until the threads of a pool have stopped spinning


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    model: bytes
    feeds: dict[str, np.ndarray]
    operations: float = math.nan


def product(m: int, n: int, k: int) -> Case:
    rng = np.random.default_rng(0)
    w = rng.standard_normal((k, n)).astype(np.float32)
    x, y = (helper.make_tensor_value_info(v, TensorProto.FLOAT, s) for v, s in (("x", (m, k)), ("y", (m, n))))
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "product", [x], [y], [numpy_helper.from_array(w, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    feeds = {"x": rng.standard_normal((m, k)).astype(np.float32)}
    return Case(f"{m} x {n} x {k}", model.SerializeToString(), feeds, 2.0 * m * n * k)


class Engine:
    """A process that opens models and times their runs. Used in turns with others."""

    def __init__(self, opened: Callable, threads: int):
        here, there = multiprocessing.get_context("spawn").Pipe()
        self.pipe = here
        arguments = (there, opened, threads)
        self.process = multiprocessing.get_context("spawn").Process(target=serve, args=arguments, daemon=True)
        self.process.start()

    def open(self, case: Case) -> None:
        self.pipe.send((case.model, case.feeds))
        self.pipe.recv()

    def best(self, seconds: float) -> float:
        self.pipe.send(seconds)
        return self.pipe.recv()

    def close(self) -> None:
        self.pipe.close()
        self.process.join()


def serve(pipe, opened: Callable, threads: int) -> None:
    run = None
    while True:
        try:
            message = pipe.recv()
        except EOFError:
            return
        if isinstance(message, tuple):
            run = engines.bind(opened(message[0], threads=threads), message[1])
            run()
            pipe.send(None)
        else:
            pipe.send(measure.best_of(run, message))


def in_turns(pair: tuple[Engine, Engine], case: Case, options, threads: int) -> tuple[float, float]:
    """The least times of treadle and of onnxruntime."""
    least = [math.inf, math.inf]
    for engine in pair:
        engine.open(case)
    for _ in range(max(2, options.rounds // 3)):
        for i, engine in enumerate(pair):
            if threads > 1:
                time.sleep(SETTLE)
            least[i] = min(least[i], engine.best(options.seconds or 0.02))
    return least[0], least[1]


def figures(pair: tuple[Engine, Engine], case: Case, options, threads: int) -> str:
    ours, theirs = in_turns(pair, case, options, threads)
    rates = [case.operations / t / 1e9 for t in (ours, theirs)]
    share = case.operations / ours / roof.multiply_add_rate() / threads
    return f"{rates[0]:.0f} / {rates[1]:.0f} ({theirs / ours:.2f}, {share:.0%})"


def bench_products(options) -> None:
    print(f"\nroof of a thread: {roof.multiply_add_rate() / 1e9:.0f} billions of operations a second")
    for threads in THREADS:
        pair = Engine(engines.open_ours, threads), Engine(engines.open_theirs, threads)
        print(f"\n| N x K, threads: {threads} |" + "".join(f" M = {m} |" for m in ROWS))
        print("| --- |" + " --- |" * len(ROWS))
        for n, k in SIZES:
            name = f"{n} x {k}"
            if options.match in name:
                cells = (figures(pair, product(m, n, k), options, threads) for m in ROWS)
                print(f"| {name} | {' | '.join(cells)} |", flush=True)
        for engine in pair:
            engine.close()
