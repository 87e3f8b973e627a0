"""Elements of 8 and 16 bits in native loops: the bits are those of the kernels, which compute in 32 bits."""

import itertools
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
from test_native import BINARY_INTEGER, UNARY_FLOAT, interesting, run_all, scan, session

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

INTEGERS = {"uint8": np.uint8, "int8": np.int8, "uint16": np.uint16, "int16": np.int16}
HALVES = ("float16", "bfloat16")
UNSIGNED = ("uint8", "uint16")
NUMBERS = ("Add", "Sub", "Mul", "Div", "Mod", "Min", "Max")
COMPARISONS = ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
COUNTS = (1, 2, 3, 8, 21, 64, 200)
WIDE = {
    "float": np.float32, "double": np.float64, "int32": np.int32, "int64": np.int64,
    "uint32": np.uint32, "uint64": np.uint64, "bool": np.bool_,
}  # fmt: skip
NUMBER_OF = {name: onnx.TensorProto.DataType.Value(name.upper()) for name in (*INTEGERS, *HALVES, *WIDE)}


def any_integer(dtype, shape, seed):
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, dtype, endpoint=True)


def any_half(shape, seed):
    """Every kind of float16, quiet NaNs among them."""
    bits = any_integer(np.uint16, shape, seed)
    signals = ((bits & 0x7C00) == 0x7C00) & ((bits & 0x3FF) != 0)
    return np.where(signals, bits | 0x200, bits).astype(np.uint16).view(np.float16)


def floats_for(kind, shape, seed):
    """float32 numbers near and far from those that the narrow type has."""
    x = interesting(np.float32, shape, seed)
    steps = any_half(shape, seed + 1).astype(np.float32)
    mixed = np.where(np.random.default_rng(seed).random(shape) < 0.5, x, steps)
    return mixed if kind == "float16" else mixed * np.float32(1 + 2**-9)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("kind", INTEGERS)
def test_operators_of_integers(kind, count):
    shape = (4, count)
    x, y = (any_integer(INTEGERS[kind], shape, seed) for seed in (1, 2))
    y = np.where(y == 0, 3, y).astype(y.dtype)
    operators = [(op, kind) for op in (*NUMBERS, *BINARY_INTEGER)] + [(op, "bool") for op in COMPARISONS]
    lines, outputs = [], []
    for op, out in operators:
        lines.append(f"r{op} = {op} (x, x2)")
        outputs.append((f"r{op}", out))
    for op in ("BitwiseNot", "Abs", "Sign", "Shrink") + (() if kind in UNSIGNED else ("Neg",)):
        lines.append(f"u{op} = {op} (x)")
        outputs.append((f"u{op}", kind))
    if kind in UNSIGNED:
        for way in ("LEFT", "RIGHT"):
            lines.append(
                f'h{way} = BitShift <direction = "{way}"> (x, x2)  g{way} = BitShift <direction = "{way}"> (x, three)'
            )
            outputs += [(f"h{way}", kind), (f"g{way}", kind)]
    lines.append("c = Clip (x, low, high)  w = Greater (x, x2)  v = Where (w, x, x2)")
    outputs += [("c", kind), ("v", kind)]
    low, high = (3, 100) if kind in UNSIGNED else (-50, 77)
    text = f"""<ir_version: 10, opset_import: ["" : 22]>
    g ({kind}[{count}] start, {kind}[4,{count}] xs, {kind}[4,{count}] x2s) => ({kind}[{count}] last, {", ".join(f"{t}[4,{count}] {n}s" for n, t in outputs)})
    <{kind} low = {{{low}}}, {kind} high = {{{high}}}, {kind} three = {{3}}> {{
      last, {", ".join(f"{n}s" for n, _ in outputs)} = Scan <num_scan_inputs = 2,
        body = b ({kind}[{count}] s, {kind}[{count}] x, {kind}[{count}] x2) => ({kind}[{count}] t, {", ".join(f"{t}[{count}] {n}" for n, t in outputs)}) {{
          t0 = Mul (s, x)  t = Add (t0, x2)
          {" ".join(lines)}
      }}> (start, xs, x2s)
    }}"""
    got = run_all(text, {"start": x[0], "xs": x, "x2s": y})
    with np.errstate(all="ignore"):
        expected = x[0]
        for a, b in zip(x, y, strict=True):
            expected = expected * a + b
        np.testing.assert_array_equal(got[0], expected)
        np.testing.assert_array_equal(got[1], x + y)
        np.testing.assert_array_equal(got[5], np.mod(x, y))


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("count", (1, 3, 16, 21, 200))
def test_operators_of_narrow_floats(kind, count):
    """Some at a time, so that bodies stay short enough to be written out."""
    x, y = floats_for(kind, (4, count), 1), floats_for(kind, (4, count), 5)
    unary = [op for op in UNARY_FLOAT if op != "Celu" and (kind, op) != ("bfloat16", "Shrink")]
    calls = [f"{op} (x)" for op in unary] + [f"{op} (x, x2)" for op in (*NUMBERS, "Pow", *COMPARISONS) if op != "Mod"]
    calls.append("Mod <fmod = 1> (x, x2)")
    for first in range(0, len(calls), 6):
        some = list(enumerate(calls[first : first + 6]))
        bools = [call.startswith((*COMPARISONS, "Is")) for _, call in some]
        lines = "\n".join(f"r{i} = {call}" for i, call in some)
        lines += "\n" + "\n".join(f"y{i} = Cast <to = {9 if bools[i] else 1}> (r{i})" for i, _ in some)
        outputs = [("bool" if bools[i] else "float", f"y{i}") for i, _ in some]
        text = f"""<ir_version: 10, opset_import: ["" : 22]>
        g (float[1] start, float[4,{count}] xs, float[4,{count}] x2s)
            => (float[1] last, {", ".join(f"{t}[4,{count}] {n}s" for t, n in outputs)}) <float[1] one = {{1}}> {{
          last, {", ".join(f"{n}s" for _, n in outputs)} = Scan <num_scan_inputs = 2,
            body = b (float[1] s, float[{count}] xf, float[{count}] x2f)
                => (float[1] t, {", ".join(f"{t}[{count}] {n}" for t, n in outputs)}) {{
              t = Add (s, one)
              x = Cast <to = {NUMBER_OF[kind]}> (xf)
              x2 = Cast <to = {NUMBER_OF[kind]}> (x2f)
              {lines}
          }}> (start, xs, x2s)
        }}"""
        run_all(text, {"start": np.zeros(1, np.float32), "xs": x, "x2s": y})


def numbers_of(source, shape):
    if source in INTEGERS or source in ("int32", "int64", "uint32", "uint64"):
        return any_integer(INTEGERS.get(source) or WIDE[source], shape, 3)
    if source == "double":  # on both sides of a midpoint between float16 numbers
        near = 1 + np.array([0, 2**-11, 2**-40, 2**-12])[:, None]
        return floats_for("float16", shape, 4).astype(np.float64) * near
    return interesting(np.bool_, shape, 3) if source == "bool" else floats_for(source, shape, 3)


@pytest.mark.parametrize("count", (1, 21, 200))
@pytest.mark.parametrize("source", (*INTEGERS, *HALVES, *WIDE))
def test_casts_to_all(source, count):
    targets = [t for t in (*INTEGERS, *HALVES, *WIDE) if t != source and not (source in WIDE and t in WIDE)]
    narrow = source in HALVES
    lines = [f"n = Cast <to = {NUMBER_OF[source]}> (x)" if narrow else "n = Identity (x)"]
    for t in targets:
        lines.append(f"m{t} = Cast <to = {NUMBER_OF[t]}> (n)")
        lines.append(f"y{t} = Cast <to = 1> (m{t})" if t in HALVES else f"y{t} = Identity (m{t})")
    outputs = [("float" if t in HALVES else t, f"y{t}") for t in targets]
    body = "\n".join(lines)
    text = f"""<ir_version: 10, opset_import: ["" : 22]>
    g (float[1] start, {"float" if narrow else source}[4,{count}] xs)
        => (float[1] last, {", ".join(f"{t}[4,{count}] {n}s" for t, n in outputs)}) <float[1] one = {{1}}> {{
      last, {", ".join(f"{n}s" for _, n in outputs)} = Scan <num_scan_inputs = 1,
        body = b (float[1] s, {"float" if narrow else source}[{count}] x)
            => (float[1] t, {", ".join(f"{t}[{count}] {n}" for t, n in outputs)}) {{
          t = Add (s, one)
          {body}
      }}> (start, xs)
    }}"""
    run_all(text, {"start": np.zeros(1, np.float32), "xs": numbers_of(source, (4, count))})


@pytest.mark.parametrize("half", [0x3C01, 0x0001, 0x83FF, 0x7BFF, 0x7C00, 0xFC00, 0x8000, 0x0400])
def test_every_float16_goes_through_float32_and_back(half):
    start = np.arange(0, 65536, 64, dtype=np.uint16).view(np.float16)
    text = """<ir_version: 10, opset_import: ["" : 22]>
    g (float16[1024] s0, float16[T] h) => (float16[1024] last, float16[T,1024] ys) {
      last, ys = Scan <num_scan_inputs = 1, body = b (float16[1024] s, float16 x) => (float16[1024] t, float16[1024] y) {
        a = Abs (s)  t = Neg (a)  y = Add (s, x)
      }}> (s0, h)
    }""".replace("}}>", "}>")
    with np.errstate(all="ignore"):
        run_all(text, {"s0": np.nan_to_num(start, nan=1), "h": np.array([half] * 3, np.uint16).view(np.float16)})


@pytest.mark.parametrize("kind", [*INTEGERS, "float16"])
def test_moves(kind):
    dtype = INTEGERS.get(kind) or np.float16
    text = f"""<ir_version: 10, opset_import: ["" : 22]>
    g ({kind}[6] s0, {kind}[T] xs, {kind}[4] table) => ({kind}[6] last, {kind}[T,2] ys)
    <int64[1] from1 = {{1}}, int64[1] to6 = {{6}}, int64[1] zero = {{0}}, int64[2] some = {{4, 1}}, int64[1,1] at = {{2}}> {{
      last, ys = Scan <num_scan_inputs = 1, body = b ({kind}[6] s, {kind} x) => ({kind}[6] t, {kind}[2] y) {{
        tail = Slice (s, from1, to6)
        one = Unsqueeze (x, zero)
        shifted = Concat <axis = 0> (tail, one)
        t = ScatterND (shifted, at, one)
        y = Gather <axis = 0> (t, some)
      }}> (s0, xs)
    }}"""
    x = (any_integer(dtype, 11, 1) if dtype != np.float16 else any_half(11, 1)).astype(dtype)
    got = run_all(text, {"s0": x[:6], "xs": x, "table": x[:4]})
    assert got[0].dtype == dtype


@pytest.mark.parametrize("count", [3, 16, 64, 300])
@pytest.mark.parametrize("kind", [*INTEGERS, *HALVES])
def test_reductions_and_extremes(kind, count):
    x = (
        floats_for(kind, (4, 5, count), 1)
        if kind in HALVES
        else np.round(interesting(np.float32, (4, 5, count), 2) * 3)
    )
    x = np.clip(np.nan_to_num(x), -200, 200).astype(np.float32)
    kinds = ["ReduceMax", "ReduceMin"] + (
        ["ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceProd"] if kind in HALVES else []
    )
    for op, axis in itertools.product([*kinds, "ArgMax", "ArgMin"], (0, 1)):
        if kind in ("int16", "uint16") and op.startswith("Reduce"):
            continue
        arg = op.startswith("Arg")
        line = f"r = {op} <axis = {axis}, keepdims = 0> (n)" if arg else f"r = {op} <keepdims = 0> (n, axes)"
        out = count if axis == 0 else 5
        back = "y = Identity (r)" if arg else "y = Cast <to = 1> (r)"
        made = "int64" if arg else "float"
        text = f"""<ir_version: 10, opset_import: ["" : 22]>
        g (float[1] start, float[4,5,{count}] xs) => (float[1] last, {made}[4,{out}] ys) <int64[1] axes = {{{axis}}}> {{
          last, ys = Scan <num_scan_inputs = 1, body = b (float[1] s, float[5,{count}] x) => (float[1] t, {made}[{out}] y) {{
            one = Constant <value = float[1] {{1}}> ()
            t = Add (s, one)
            n = Cast <to = {NUMBER_OF[kind]}> (x)
            {line}
            {back}
          }}> (start, xs)
        }}"""
        run_all(text, {"start": np.zeros(1, np.float32), "xs": x})


@pytest.mark.parametrize("to", [10, 11])
def test_a_zero_that_is_converted_keeps_its_sign(to):
    """Two selections by one comparison of a conversion's result."""
    body = f"c = Cast <to = {to}> (x)  r = Relu (c)  g = LeakyRelu (c)  f = Cast <to = 1> (r)  q = Cast <to = 1> (g)  e = Exp (q)\n y = Mul (f, e)"
    for count in (1, 8, 16):
        x = np.where(np.arange(3 * count).reshape(3, count) % 3, -0.0, -2).astype(np.float32)
        got = run_all(scan(body, [("x", "float")], "float", 3, count), {"start": np.zeros(1, np.float32), "xs": x})
        assert np.signbit(got[1])[x == 0].all()


def test_division_by_zero_is_found():
    text = """<ir_version: 10, opset_import: ["" : 22]>
    g (int8[1] s0, int8[T] xs) => (int8[1] last) {
      last = Scan <num_scan_inputs = 1, body = b (int8[1] s, int8 x) => (int8[1] t) { t = Div (s, x) }> (s0, xs)
    }"""
    feeds = {"s0": np.array([-128], np.int8), "xs": np.array([-1, 1, 0], np.int8)}
    messages = set()
    for entries in ({"jit": "off"}, {"jit": "always"}, {"tier": "reference"}):
        with pytest.raises(Exception, match="iteration 2") as failure:
            session(text, **entries).run(None, feeds)
        messages.add(str(failure.value))
    assert len(messages) == 1, messages


@pytest.mark.parametrize("count", [1, 3, 32, 300])
@pytest.mark.parametrize("kind", ["uint8", "float16", "int64"])
def test_gathers_by_indices_of_the_run(kind, count):
    """Along any axis, from either end, and beyond it."""
    dtype = INTEGERS.get(kind) or (np.float16 if kind == "float16" else np.int64)
    for shape, axis, out in (((9,), 0, "{n}"), ((3, 9, 2), 1, "3,{n},2"), ((4, 9), 1, "4,{n}")):
        sizes = out.format(n=count)
        text = f"""<ir_version: 10, opset_import: ["" : 22]>
        g ({kind}[{",".join(map(str, shape))}] table, int32[T,{count}] xs) => (int64 last, {kind}[T,{sizes}] ys)
        <int64 zero = {{0}}, int64 one = {{1}}> {{
          last, ys = Scan <num_scan_inputs = 1, body = b (int64 s, int32[{count}] x) => (int64 t, {kind}[{sizes}] y) {{
            t = Add (s, one)
            y = Gather <axis = {axis}> (table, x)
          }}> (zero, xs)
        }}"""
        table = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        at = np.random.default_rng(count).integers(-9, 9, (5, count)).astype(np.int32)
        got = run_all(text, {"table": table, "xs": at}, compilations=None)
        np.testing.assert_array_equal(got[1], np.stack([np.take(table, row, axis) for row in at]))
        at[3, -1] = 9
        messages = set()
        for entries in ({"jit": "off"}, {"jit": "always"}):
            with pytest.raises(Exception, match="index 9 is out of range, expected -9 to 8") as failure:
                session(text, **entries).run(None, {"table": table, "xs": at})
            messages.add(str(failure.value))
        assert len(messages) == 1, messages


BYTES = """<ir_version: 10, opset_import: ["" : 22]>
g (uint8[T] text, uint8[256] table) => (uint16 last, uint8[T] states) {
  start = Constant <value = uint16 {65535}> ()
  zero = Constant <value = uint8 {0}> ()
  last, s, states = Scan <num_scan_inputs = 1, body = b (uint16 crc, uint8 s, uint8 x) => (uint16 crc2, uint8 s2, uint8 y) {
    eight = Constant <value = uint16 {8}> ()
    top = BitShift <direction = "RIGHT"> (crc, eight)
    low = Cast <to = 2> (top)
    mixed = BitwiseXor (low, x)
    at = Cast <to = 7> (mixed)
    looked = Gather (table, at)
    wide = Cast <to = 4> (looked)
    up = BitShift <direction = "LEFT"> (crc, eight)
    crc2 = BitwiseXor (up, wide)
    sum = Add (s, looked)
    is = Less (x, s)
    s2 = Where (is, sum, x)
    y = Identity (s2)
  }> (start, zero, text)
}"""


def test_a_loop_over_bytes_calls_no_kernel():
    feeds = {"text": any_integer(np.uint8, 300, 1), "table": any_integer(np.uint8, 256, 2)}
    run_all(BYTES, feeds)
    native = session(BYTES, jit="always")
    native.run(None, feeds)
    (loop,) = native.explain(json=True)["loops"]
    assert loop["tier"] == "native" and loop["calls"] == []


SCRIPT = """
import sys
import test_native_narrow as t
for kind in t.INTEGERS:
    for count in (1, 21):
        t.test_operators_of_integers(kind, count)
    t.test_moves(kind)
for kind in t.HALVES:
    for count in (1, 21):
        t.test_operators_of_narrow_floats(kind, count)
for kind in ("int8", *t.HALVES):
    t.test_reductions_and_extremes(kind, 64)
for kind in (*t.INTEGERS, *t.HALVES, *t.WIDE):
    t.test_casts_to_all(kind, 21)
t.test_every_float16_goes_through_float32_and_back(0x3C01)
"""


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_on_every_instruction_set(isa):
    here = os.path.dirname(__file__)
    env = {**os.environ, "TREADLE_ISA": isa, "PYTHONPATH": os.pathsep.join(filter(None, [here, *sys.path]))}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=env)
    if "cannot run" in done.stderr:
        pytest.skip(f"this machine has no {isa}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("count", (100, 161, 333, 1000))
def test_masks(count):
    """Groups that hold nothing but bytes go through memory in vectors that are full of bytes."""
    text = f"""<ir_version: 10, opset_import: ["" : 22]>
    g (int64 m, bool[{count}] start, bool[{count}] other, uint8[{count}] bytes, bool one)
        => (bool[{count}] last, uint8[{count}] sums)
    <bool yes = {{1}}, int64[2] edges = {{1, 1}}, int64[1] at0 = {{0}}, int64[1] at2 = {{2}},
     int64[1] to0 = {{{count}}}, int64[1] to2 = {{{count + 2}}}, bool no = {{0}}> {{
      last, sums = Loop <body = b (int64 i, bool c, bool[{count}] s, uint8[{count}] u)
          => (bool c2, bool[{count}] s2, uint8[{count}] u2) {{
        c2 = Identity (c)
        p = Pad (s, edges, no)
        left = Slice (p, at0, to0)
        right = Slice (p, at2, to2)
        both = And (left, right)
        either = Xor (left, other)
        some = Or (both, either)
        not = Not (some)
        s2 = Xor (not, one)
        raised = Add (u, bytes)
        u2 = Where (s2, raised, bytes) }}> (m, yes, start, bytes) }}"""
    rng = np.random.default_rng(count)
    start, other = rng.random((2, count)) < 0.5
    data = any_integer(np.uint8, count, count)
    for one in (False, True):
        s, u = start, data
        for _ in range(9):
            p = np.pad(s, 1)
            s = ~((p[:-2] & p[2:]) | (p[:-2] ^ other)) ^ one
            u = np.where(s, u + data, data)
        feeds = {"m": np.array(9), "start": start, "other": other, "bytes": data, "one": np.array(one)}
        last, sums = run_all(text, feeds)
        np.testing.assert_array_equal(last, s)
        np.testing.assert_array_equal(sums, u)
