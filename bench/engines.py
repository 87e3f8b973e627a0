"""What is measured side by side, one thread each. An engine makes a function of no arguments that runs a model once and
gives its outputs."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import onnxruntime
import treadle
import yardsticks
from models import Built, Loop

Run = Callable[[], list[np.ndarray]]


def open_ours(
    data: bytes, jit: str = "off", threads: int = 1, cache: str = "off", weights: str = "f32"
) -> treadle.InferenceSession:
    """The program tier; with `jit` "always" the native tier. `cache`: a folder for native code, or "off"."""
    options = treadle.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("treadle.jit", jit)
    options.add_session_config_entry("treadle.jit_cache", cache)
    return treadle.InferenceSession(data, options, weights=weights)


def open_native(data: bytes, threads: int = 1) -> treadle.InferenceSession:
    return open_ours(data, "always", threads)


def open_theirs(data: bytes, threads: int = 1) -> onnxruntime.InferenceSession:
    """Its threads go on spinning after a run: with more than one, no other engine in this process can be timed."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def bind(session, feeds: dict[str, np.ndarray]) -> Run:
    return lambda: session.run(None, feeds)


def import_jax():
    """jax on one thread of the processor, or why it is not there."""
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    try:
        import jax
    except ImportError as problem:
        return None, f"no column for jax: {problem}"
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    return jax, f"jax {jax.__version__}"


def jax_run(jax, loop: Loop, built: Built) -> Run | None:
    """None: the loop is not among those that jax expresses."""
    import jax_loops

    function = jax_loops.LOOPS.get(loop.jax)
    if function is None:
        return None
    compiled = jax.jit(function)
    values = {name: jax.numpy.asarray(v) for name, v in (built.weights | built.inputs).items()}
    wanted = {name: values[name] for name in jax_loops.arguments(function)}
    return lambda: jax.block_until_ready(compiled(**wanted))


def yardstick_run(loop: Loop, built: Built, like: list[np.ndarray]) -> Run:
    outputs = [np.empty_like(a) for a in like]
    return yardsticks.bind(loop.yardstick, built.sizes, built.yardstick_arrays(), outputs)


def runs_by_all(name: str, data: bytes, feeds: dict) -> dict:
    """Runs of a model by onnxruntime and by both tiers, whose results are compared before anything is timed."""
    opened = {"onnxruntime": open_theirs, "program": open_ours, "native": open_native}
    runs = {engine: bind(open_one(data), feeds) for engine, open_one in opened.items()}
    expected = runs["onnxruntime"]()[0]
    for engine, run in runs.items():
        if not np.allclose(run()[0], expected, rtol=1e-3, atol=1e-4):
            print(f"NOT THE SAME RESULTS: {name}, {engine}")
    return runs
