"""Sample by sample and block by block, from C: nanoseconds of a sample, beside RTNeural, Neural Amp Modeler's core and
onnxruntime; and how punctual pushes are.

treadle streams each model as it was trained, over a whole signal; onnxruntime gets the same model with its state as inputs
and outputs, whose memory stays in place. One thread each; engines take turns. TREADLE_RTNEURAL and TREADLE_NAM are checkouts
of the peers (peers.py), TREADLE_GTCRN a file of GTCRN's streaming form.
"""

from __future__ import annotations

import ctypes
import dataclasses
import math
import os
import pathlib
import time

import c_stream
import c_table
import measure
import numpy as np
import onnx
import peers
import realtime_models
import record

BLOCKS = (1, 32, 256)
SECONDS = 0.004  # of one measurement of one engine
TOLERANCE = 1e-4
FAST_TANH = 0.05  # what approximations of tanh by Neural Amp Modeler may do to results
PUSHES = 1_000_000
GTCRN_PUSHES = 20_000
RATE, GTCRN_RATE, GTCRN_HOP = 48000, 16000, 256
ENGINES = ("treadle", "RTNeural static", "RTNeural dynamic", "NAM", "onnxruntime")
LOCK_CURRENT, LOCK_FUTURE = 1, 2


@dataclasses.dataclass
class Measured:
    """`run(calls)`; `first`: the results of the first block, [frames, channels]."""

    run: object
    first: np.ndarray
    tolerance: float = TOLERANCE
    holder: object = None


def ours(model: realtime_models.Model, signal: np.ndarray) -> Measured:
    chunk = model.laid_out(signal)
    stream = c_stream.CStream(model.over_time, {}, {"x": chunk}, {"x": model.axis}, jit="always")
    first = stream.result()
    sizes = list(chunk.shape)
    sizes[2 if model.axis == 0 else 1] = first.size // len(signal)
    return Measured(stream.step, model.frames_of(first.reshape(sizes)), holder=stream)


def theirs(model: realtime_models.Model, signal: np.ndarray) -> Measured:
    made, states = model.stepping(len(signal))
    session = c_table.SteppingSession(c_table.THEIRS, made, {"x": model.laid_out(signal)}, states)
    session.step()
    return Measured(session.step, model.frames_of(session.results["y"].copy()), holder=session)


def engines(model: realtime_models.Model, block: int) -> dict[str, Measured]:
    signal = model.signal(block)
    found = {"treadle": ours(model, signal)}
    for back_end, library in peers.rtneural().items() if model.rtneural else ():
        for name, is_static in (("static", True), ("dynamic", False)):
            net = peers.rtneural_net(library, *model.rtneural, is_static, signal)
            found[f"RTNeural {name}, {back_end}"] = Measured(net.run, net.result(), FAST_TANH, net)
    if model.nam and peers.nam():
        net = peers.nam_net(peers.nam(), model.nam, signal)
        # The core lets silence through the network before the first sample.
        found["NAM"] = Measured(net.run, net.result(), math.inf, net)
    found["onnxruntime"] = theirs(model, signal)
    return found


def check_results(what: str, found: dict[str, Measured]) -> None:
    expected = found["treadle"].first
    for name, engine in found.items():
        if engine.first.shape != expected.shape or np.abs(engine.first - expected).max() > engine.tolerance:
            raise RuntimeError(f"{what}: {name} gives other results than treadle")


def least_times(found: dict[str, Measured], block: int, rounds: int, seconds: float) -> dict[str, float]:
    """Seconds of a sample, by engine; of a peer's back ends the fastest."""
    calls = {}
    for name, engine in found.items():
        engine.run(2)
        begin = time.perf_counter()
        engine.run(8)
        calls[name] = max(1, int(seconds / 4 / max((time.perf_counter() - begin) / 8, 1e-9)))
    runs = [lambda name=name, engine=engine: engine.run(calls[name]) for name, engine in found.items()]
    series = measure.in_turns(runs, rounds, seconds)
    least: dict[str, float] = {}
    for name, times in zip(found, series, strict=True):
        column = name.partition(",")[0]
        least[column] = min(least.get(column, math.inf), min(times) / calls[name] / block)
    return least


def gtcrn() -> tuple[bytes, dict[str, tuple[int, ...]], dict[str, np.ndarray]] | None:
    """The model, its states and a spectrum; None: there is no model."""
    path = os.environ.get("TREADLE_GTCRN")
    if not path:
        return None
    model = pathlib.Path(path).read_bytes()
    inputs = onnx.load_from_string(model).graph.input
    sizes = {i.name: tuple(d.dim_value for d in i.type.tensor_type.shape.dim) for i in inputs}
    chunk = np.random.default_rng(0).standard_normal(sizes.pop("mix")).astype(np.float32)
    return model, sizes, {"mix": chunk}


def gtcrn_engines() -> dict[str, Measured]:
    model, states, chunk = gtcrn()
    stream = c_stream.CStream(model, {name: f"{name}_out" for name in states}, chunk, jit="always")
    session = c_table.SteppingSession(c_table.THEIRS, model, chunk, states)
    first = stream.result()
    session.step()
    theirs = session.results["enh"].ravel().copy()
    return {
        "treadle": Measured(stream.step, first, holder=stream),
        "onnxruntime": Measured(session.step, theirs, 1e-3, session),
    }


def row(name: str, block: str, least: dict[str, float], unit: float) -> str:
    cells = [f"{least[e] / unit:,.1f}" if e in least else "" for e in ENGINES]
    rivals = [(t, e) for e, t in least.items() if e not in ("treadle", "onnxruntime")]
    ratios = [f"{least['onnxruntime'] / least['treadle']:.1f}"]
    ratios += [f"{min(rivals)[0] / least['treadle']:.2f}" if rivals else ""]
    return f"| {' | '.join([name, block, *cells, *ratios])} |"


def bench_speed(options) -> None:
    head = ["model", "block", *(f"{e} ns" for e in ENGINES), "onnxruntime / treadle", "fastest peer / treadle"]
    print(f"\nNanoseconds of a sample.\n\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for model in realtime_models.all_models():
        if options.match not in model.name:
            continue
        for block in BLOCKS:
            found = engines(model, block)
            check_results(f"{model.name}, blocks of {block}", found)
            least = least_times(found, block, options.rounds, options.seconds or SECONDS)
            record.keep("realtime", f"{model.name}, {block}", model=model.name, block=block, **least)
            print(row(model.name, f"{block}", least, 1e-9), flush=True)
    if gtcrn() and options.match in "GTCRN":
        found = gtcrn_engines()
        check_results("GTCRN", found)
        least = least_times(found, 1, options.rounds, options.seconds or 0.05)
        record.keep("realtime", "GTCRN", model="GTCRN, a hop of 16 ms", block=1, **least)
        print(row("GTCRN, a hop of 16 ms", "1 hop", least, 1e-9), flush=True)


@dataclasses.dataclass
class Jitter:
    median: float
    p9999: float
    most: float
    faults: int
    switches: int
    waits: int


def jitter(run, pushes: int) -> Jitter:
    times = np.zeros(pushes, np.int64)
    times.fill(1)  # its pages are there
    run(min(pushes // 10, 10_000))
    faults, switches, waits = run(pushes, times)
    times.sort()
    at = [times[math.ceil(q * pushes) - 1] / 1e9 for q in (0.5, 0.9999, 1.0)]
    return Jitter(*at, int(faults), int(switches), int(waits))


def lock_memory() -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(LOCK_CURRENT | LOCK_FUTURE) == 0:
        return "Memory is locked"
    return f"Memory is NOT locked ({os.strerror(ctypes.get_errno())})"


def be_punctual() -> str:
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(80))
    except PermissionError as problem:
        return f"the scheduler is NOT SCHED_FIFO ({problem.strerror})"
    return "the scheduler is SCHED_FIFO"


def watched(options):
    """The name, the signal's time in a push, the number of pushes, and the engines."""
    for model, block in ((realtime_models.lstm(16), 1), (realtime_models.gru(32), 1), (realtime_models.conv1d(16), 32)):
        yield f"{model.name}, blocks of {block}", block / RATE, PUSHES, lambda m=model, b=block: engines(m, b)
    wavenet = next(m for m in realtime_models.all_models() if m.name == "NAM WaveNet, standard")
    yield f"{wavenet.name}, blocks of 64", 64 / RATE, PUSHES // 10, lambda: engines(wavenet, 64)
    if gtcrn():
        yield "GTCRN, a hop", GTCRN_HOP / GTCRN_RATE, GTCRN_PUSHES, gtcrn_engines


def bench_jitter(options) -> None:
    """Many pushes in a row by a thread that nothing else interrupts but the machine."""
    locked, scheduler = lock_memory(), be_punctual()
    print(f"\n{locked}, {scheduler}. Microseconds of a push.\n")
    head = ["model", "pushes", "engine", "median", "p99.99", "max", "max, of the signal's time", "page faults"]
    head += ["context switches", "waits"]
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for name, signal, pushes, make in watched(options):
        if options.match not in name:
            continue
        found = make()
        for engine in ("treadle", "onnxruntime"):
            result = jitter(found[engine].run, pushes)
            record.keep(
                "jitter", f"{name}, {engine}", model=name, engine=engine, pushes=pushes, signal=signal, **vars(result)
            )
            cells = [name, f"{pushes:,}", engine]
            cells += [f"{t * 1e6:,.2f}" for t in (result.median, result.p9999, result.most)]
            cells += [f"{result.most / signal:.1%}", *map(str, (result.faults, result.switches, result.waits))]
            print(f"| {' | '.join(cells)} |", flush=True)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    ctypes.CDLL(None).munlockall()


def bench_realtime(options) -> None:
    bench_speed(options)
