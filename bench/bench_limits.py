"""What loops must not cost: memory for scan outputs, time that grows faster than a sequence, plans per length, time to
compile, lists."""

from __future__ import annotations

import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import engines
import measure
import numpy as np
import record
from models.operators import OTHER, Operator
from models.registry import LOOPS, YES, Built, constants

SEQUENCE = """
    g (int64 m, float[1,16] x) => (float[k,16] y) {
      s0 = SequenceEmpty <dtype = 1> ()
      s, v = Loop <body = b (int64 i, bool c, seq(float[1,16]) q, float[1,16] u)
          => (bool c2, seq(float[1,16]) q2, float[1,16] u2) {
        c2 = Identity(c)
        u2 = Mul(u, keep)
        q2 = SequenceInsert(q, u2) }> (m, yes, s0, x)
      y = ConcatFromSequence <axis = 0> (s) }"""
WIDE_OUTPUT = """
    g (int64 m, float[65536] x) => (float[65536] last, float[n,65536] all) {
      last, all = Loop <body = b (int64 i, bool c, float[65536] s) => (bool c2, float[65536] s2, float[65536] e) {
        c2 = Identity(c)
        s2 = Mul(s, keep)
        e = Identity(s2) }> (m, yes, x) }"""
ANY_LENGTH = """
    g (float[4] h0, float[t,4] x) => (float[4] h, float[t,4] y) {
      h, y = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] e) => (float[4] s2, float[4] o) {
        p = Mul(s, keep)
        s2 = Add(p, e)
        o = Tanh(s2) }> (h0, x) }"""
KEEP = constants(np.float32, keep=0.99)
# Lists of 200 elements [4, 64], and what SequenceMap does with each.
LISTS = {
    "cut from a tensor": ("float[n,4,64] x", "s = SplitToSequence <axis = 0, keepdims = 0> (x)"),
    "written out": (", ".join(f"float[4,64] x{k}" for k in range(200)), "s = SequenceConstruct({xs})"),
    "given, of one shape": ("seq(float[p,q]) s", ""),
    "given, of several shapes": ("seq(float[p,q]) s", ""),
}
BODIES = {"product and tanh": "m = MatMul(e, w) r = Tanh(m)", "square and tanh": "m = Mul(e, e) r = Tanh(m)"}


def row(limit: str, target: str | float, found: str) -> None:
    record.keep("limits", limit, target=str(target), found=found)
    print(f"| {limit} | {target} | {found} |", flush=True)


def sequences() -> None:
    """The exponent of time over length: 1 is linear."""
    data = Built(SEQUENCE, YES | KEEP, {}, 0).model()
    lengths, times = (1_000, 4_000, 16_000, 64_000), {}
    session = engines.open_native(data)
    for n in lengths:
        feeds = {"m": np.array(n), "x": np.ones((1, 16), np.float32)}
        session.run(None, feeds)
        times[n] = measure.best_of(engines.bind(session, feeds), 0.2)
    exponent = math.log(times[64_000] / times[4_000]) / math.log(16)
    figures = ", ".join(f"{times[n] / n * 1e9:.0f}" for n in lengths)
    row(f"SequenceInsert, 1,000 to 64,000 elements: {figures} ns each", "linear", f"exponent {exponent:.2f}")


def lengths() -> None:
    session = engines.open_native(Built(ANY_LENGTH, KEEP, {}, 0).model())
    for n in range(1, 1001):
        session.run(None, {"h0": np.zeros(4, np.float32), "x": np.zeros((n, 4), np.float32)})
    found = session.counters()
    row("1,000 sequence lengths", "at most 2 plans, 2 compilations", f"{found['plans']}, {found['compilations']}")


def long_sequences() -> None:
    """What a step of a recurrence and its projection take over a long sequence, against a short one; and the memory
    beside the outputs."""
    for op in ("LSTM", "GRU"):
        times, beside = {}, 0
        for steps in (2_000, 50_000):
            data, feeds = Operator(op, steps, 1, 64, OTHER).build()
            session = engines.open_native(data)
            session.run(None, feeds)
            times[steps] = measure.best_of(engines.bind(session, feeds), 0.3) / steps * 1e9
            beside = session.counters()["peak_bytes_last_run"]
        row(
            f"{op}, H=64: ns a step over 2,000 and 50,000 steps; memory beside inputs and outputs",
            "the same; 1 MB",
            f"{times[2_000]:.0f}, {times[50_000]:.0f}; {beside / 2**20:.2f} MB",
        )


def map_over_list(name: str, body: str) -> float:
    """How many times faster than onnxruntime."""
    inputs, makes = LISTS[name]
    x = np.random.default_rng(1).standard_normal((200, 4, 64)).astype(np.float32)
    names = [f"x{k}" for k in range(200)]
    feeds = {"x": x} if "cut" in name else dict(zip(names, x, strict=True)) if "written" in name else {"s": list(x)}
    if "several" in name:
        feeds["s"] = [e[: 1 + k % 4] for k, e in enumerate(x)]
    text = f"""g ({inputs}) => (seq(float[a,b]) t) {{
      {makes.format(xs=", ".join(names))}
      t = SequenceMap <body = b (float[c,d] e) => (float[c,d] r) {{ {BODIES[body]} }}> (s) }}"""
    w = np.random.default_rng(2).standard_normal((64, 64)).astype(np.float32) / 8
    data = Built(text, {"w": w}, {}, 0).model()
    runs = [engines.bind(s, feeds) for s in (engines.open_native(data), engines.open_theirs(data))]
    for ours, theirs in zip(runs[0]()[0], runs[1]()[0], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    ours, theirs = (min(times) for times in measure.in_turns(runs, 5, 0.05))
    return theirs / ours


def maps_over_lists() -> None:
    for name in LISTS:
        found = ", ".join(f"{map_over_list(name, body):.1f} ({body})" for body in BODIES)
        row(f"SequenceMap over 200 elements, {name}: times faster than onnxruntime", "1", found)


def resident(name: str) -> int:
    """Bytes, of a line of the process's status."""
    [line] = [t for t in pathlib.Path("/proc/self/status").read_text().splitlines() if t.startswith(name)]
    return int(line.split()[1]) * 1024


def peak_of_wide_output(iterations: int) -> None:
    """In a process of its own: prints how many times its size a scan output takes."""
    session = engines.open_native(Built(WIDE_OUTPUT, YES | KEEP, {}, 0).model())
    x = np.ones(65536, np.float32)
    session.run(None, {"m": np.array(4), "x": x})
    before = resident("VmRSS")
    output = session.run(["all"], {"m": np.array(iterations), "x": x})[0]
    print((resident("VmHWM") - before) / output.nbytes)


def wide_output() -> None:
    done = subprocess.run(
        [sys.executable, __file__, "2000"], capture_output=True, text=True, env=os.environ, check=False
    )
    row("peak memory of a 500 MB scan output", "1.05 times the output", done.stdout.strip()[:5] or done.stderr[-200:])


def chain_of(operations: int, width: int, functions: bool) -> bytes:
    """A Loop of so many operations on `width` elements; with `functions`, each third is a Tanh."""

    def line(k: int) -> str:
        if functions and k % 3 == 2:
            return f"v{k + 1} = Tanh(v{k})"
        return f"v{k + 1} = {'Mul' if k % 2 else 'Add'}(v{k}, w{k % 7})"

    lines = "\n".join(line(k) for k in range(operations))
    text = f"""
    g (int64 m, float[{width}] x) => (float[{width}] y) {{
      y = Loop <body = b (int64 i, bool c, float[{width}] v0) => (bool c2, float[{width}] v{operations}) {{
        c2 = Identity(c)
        {lines} }}> (m, yes, x) }}"""
    weights = YES | {f"w{k}": np.full(width, 0.9 + k / 50, np.float32) for k in range(7)}
    return Built(text, weights, {}, 0).model()


def first_run(open_one, data: bytes, width: int) -> float:
    session = open_one(data)
    feeds = {"m": np.array(3), "x": np.ones(width, np.float32)}
    start = time.perf_counter()
    session.run(None, feeds)
    return time.perf_counter() - start


def compile_times() -> None:
    """A first run with compilation, or with code from the disk, less one without."""
    for operations, width, functions in ((10, 16, 0), (200, 16, 0), (1000, 16, 0), (200, 100, 1), (1000, 100, 1)):
        data = chain_of(operations, width, bool(functions))
        what = f"{operations} operations" + (f" on {width} elements, each third a Tanh" if functions else "")
        with tempfile.TemporaryDirectory() as folder:
            openers = (
                engines.open_ours,
                engines.open_native,
                lambda data, cache=folder: engines.open_ours(data, "always", cache=cache),
            )
            first_run(openers[2], data, width)  # which leaves its code in the folder
            program, native, found = (
                statistics.median(first_run(opener, data, width) for _ in range(5)) for opener in openers
            )
        target = 12 + 0.06 * max(0, operations - 200)
        row(f"compile time of a loop of {what}, ms", f"{target:g}", f"{(native - program) * 1e3:.1f}")
        row(
            f"compile time of a loop of {what}, from the disk cache, ms",
            "0.2",
            f"{max(found - program, 0.0) * 1e3:.2f}",
        )


def long_body(operations: int) -> bytes:
    """A Loop of so many operations on one number; each reads the one before and one of the thirty before that."""
    rng = np.random.default_rng(1)
    pairs = [(k, rng.integers(max(0, k - 30), k + 1)) for k in range(operations)]
    lines = "\n".join(f"v{k + 1} = {'Sub' if k % 2 else 'Max'}(v{k}, v{j})" for k, j in pairs)
    text = f"""
    g (int64 m, float[1] x) => (float[1] y) {{
      y = Loop <body = b (int64 i, bool c, float[1] v0) => (bool c2, float[1] v{operations}) {{
        c2 = Identity(c)
        {lines} }}> (m, yes, x) }}"""
    return Built(text, YES, {}, 0).model()


def long_bodies() -> None:
    for operations in (1_000, 4_000, 16_000):
        data = long_body(operations)
        program, native = (
            statistics.median(first_run(opener, data, 1) for _ in range(3))
            for opener in (engines.open_ours, engines.open_native)
        )
        row(
            f"compile time of a loop of {operations} operations, each of which reads an earlier one as well: us each",
            "the same",
            f"{(native - program) / operations * 1e6:.0f}",
        )


def sessions_of_one_model() -> None:
    built = next(loop for name, loop in LOOPS.items() if name.startswith("gru_cell")).make(1)
    data, count = built.model(), 500

    def opened() -> object:
        session = engines.open_ours(data)
        session.run(None, built.inputs)
        return session

    kept = [opened()]
    before = resident("VmRSS")
    kept += [opened() for _ in range(count)]
    each = (resident("VmRSS") - before) / count
    row(f"{count} sessions of a GRU loop, weights {len(data) >> 10} KB: KB each", "600", f"{each / 1024:.0f}")


def bench_limits() -> None:
    print("\n| limit | target | found |\n| --- | --- | --- |")
    compile_times()
    long_bodies()
    sessions_of_one_model()
    sequences()
    lengths()
    long_sequences()
    maps_over_lists()
    wide_output()


if __name__ == "__main__":
    peak_of_wide_output(int(sys.argv[1]))
