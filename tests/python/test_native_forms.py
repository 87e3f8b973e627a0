"""Wide bodies as native code: long steps as functions, tiles in loops, kernels that stay calls. Compiling stays cheap."""

import os
import subprocess
import sys

import numpy as np
import pytest
from test_native import assert_same_bits, interesting, run_all, session

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

LONG = ("Tanh", "Sigmoid", "Exp", "Log", "Erf", "Softplus", "Gelu", "Mish", "Elu", "Sin", "Atan")


def wide_body(operations, width, unary=LONG, dtype="float", seed=0):
    """A Scan with a state of `width`, whose body is a random net of cheap and of long operations."""
    rng = np.random.default_rng(seed)
    values, lines = ["s", "x"], []
    for i in range(operations):
        # The last value is always used, so nothing is dropped.
        a, b = values[-1], values[rng.integers(max(0, len(values) - 8), len(values))]
        op = rng.choice(["Add", "Mul", "Sub", "Max", "Where", "Row", "long"])
        if op == "long":
            lines.append(f"v{i} = {rng.choice(unary)} ({a})")
        elif op == "Where":
            lines.append(f"c{i} = Greater({a}, {b})  v{i} = Where (c{i}, {b}, x)")
        elif op == "Row":
            lines.append(f"v{i} = Sub ({a}, half)")
        else:
            lines.append(f"v{i} = {op} ({a}, {b})")
        values.append(f"v{i}")
        if i % 3 == 2:
            lines.append(f"t{i} = Tanh (v{i})")  # everything stays within bounds
            values.append(f"t{i}")
    body = "\n".join(lines)
    return f"""<ir_version: 10, opset_import: ["" : 22]>
    g ({dtype}[{width}] s0, {dtype}[T,{width}] xs) => ({dtype}[{width}] last, {dtype}[T,{width}] ys) {{
      half = Constant <value = {dtype} {{0.5}}> ()
      last, ys = Scan <num_scan_inputs = 1, body = b ({dtype}[{width}] s, {dtype}[{width}] x) => ({dtype}[{width}] t, {dtype}[{width}] y) {{
        {body}
        t = Tanh ({values[-1]})
        y = Add (t, {values[-3]})
      }}> (s0, xs)
    }}"""


def feeds_for(width, dtype=np.float32, iterations=5):
    rng = np.random.default_rng(width)
    return {
        "s0": rng.standard_normal(width).astype(dtype),
        "xs": rng.standard_normal((iterations, width)).astype(dtype),
    }


def native_bytes(text, feeds):
    s = session(text, jit="always", jit_cache="off")
    s.run(None, feeds)
    (loop,) = s.explain(json=True)["loops"]
    assert loop["tier"] == "native"
    return loop["code_bytes"]


@pytest.mark.parametrize("width", [1, 3, 16, 20, 64, 100, 158, 161, 1000])
@pytest.mark.parametrize("operations", [12, 60, 260])
def test_wide_bodies(operations, width):
    run_all(wide_body(operations, width, seed=operations), feeds_for(width))


@pytest.mark.parametrize("width", [2, 30, 75])
def test_wide_bodies_of_doubles(width):
    run_all(wide_body(80, width, ("Tanh", "Exp", "Sigmoid", "Sqrt"), "double"), feeds_for(width, np.float64))


@pytest.mark.parametrize("op", LONG)
def test_long_steps_as_functions(op):
    """Vectors of each length by themselves, on arguments of all kinds."""
    width, times = 70, 30
    lines = "\n".join(f"a{i} = Add ({'x' if i == 0 else f'r{i - 1}'}, s)  r{i} = {op} (a{i})" for i in range(times))
    sums = "t0 = Identity (r0)\n" + "\n".join(f"t{i} = Max (t{i - 1}, r{i})" for i in range(1, times))
    text = f"""<ir_version: 10, opset_import: ["" : 22]>
    g (float[{width}] s0, float[T,{width}] xs) => (float[{width}] last, float[T,{width}] ys) {{
      last, ys = Scan <num_scan_inputs = 1, body = b (float[{width}] s, float[{width}] x) => (float[{width}] t, float[{width}] y) {{
        {lines}
        {sums}
        y = Identity (t{times - 1})
        t = Neg (s)
      }}> (s0, xs)
    }}"""
    run_all(text, {"s0": np.zeros(width, np.float32), "xs": interesting(np.float32, (6, width), 3)})


def test_a_division_that_fails_among_tiles():
    """A node that can fail is written in place, never as a function, and names the same place."""
    width = 150
    steps = "\n".join(f"a{i} = Add ({'x' if i == 0 else f'd{i - 1}'}, s)  d{i} = Div (a{i}, z)" for i in range(40))
    text = f"""<ir_version: 10, opset_import: ["" : 22]>
    g (int64[{width}] s0, int64[T,{width}] xs, int64[T,{width}] zs) => (int64[{width}] last, int64[T,{width}] ys) {{
      last, ys = Scan <num_scan_inputs = 2, body = b (int64[{width}] s, int64[{width}] x, int64[{width}] z)
          => (int64[{width}] t, int64[{width}] y) {{
        {steps}
        t = Identity (d39)
        y = Add (t, x)
      }}> (s0, xs, zs)
    }}"""
    rng = np.random.default_rng(0)
    feeds = {name: rng.integers(1, 9, (6, width)) for name in ("xs", "zs")} | {"s0": np.ones(width, np.int64)}
    run_all(text, feeds)
    feeds["zs"][4, 77] = 0
    messages = set()
    for entries in ({"tier": "reference"}, {"jit": "off"}, {"jit": "always"}, {"jit": "always", "jit_iteration": 2}):
        with pytest.raises(Exception, match="iteration 4") as failure:
            session(text, **entries).run(None, feeds)
        messages.add(str(failure.value))
    assert len(messages) == 1, messages


def test_code_does_not_grow_with_the_width():
    """Nor beyond what an operation may cost: less than 100 bytes of code for each instruction of LLVM's."""
    narrow = native_bytes(wide_body(60, 16), feeds_for(16))
    for width in (64, 100, 160, 1000):
        assert native_bytes(wide_body(60, width), feeds_for(width)) < 4 * narrow + 8000, width
    assert native_bytes(wide_body(400, 100), feeds_for(100)) < 60_000


def test_broadcast_operands_in_tiles():
    columns = 23
    steps = "\n".join(
        f"a{i} = Mul ({'x' if i == 0 else f'b{i - 1}'}, row)  b{i} = Tanh (a{i})  c{i} = Add (b{i}, column)  e{i} = Max (c{i}, s)"
        for i in range(30)
    )
    text = f"""<ir_version: 10, opset_import: ["" : 22]>
    g (float[6,{columns}] s0, float[T,6,{columns}] xs, float[{columns}] row, float[6,1] column)
        => (float[6,{columns}] last, float[T,6,{columns}] ys) {{
      last, ys = Scan <num_scan_inputs = 1, body = b (float[6,{columns}] s, float[6,{columns}] x)
          => (float[6,{columns}] t, float[6,{columns}] y) {{
        {steps}
        t = Sub (e29, e11)
        y = Add (t, e3)
      }}> (s0, xs)
    }}"""
    rng = np.random.default_rng(5)
    shapes = {"s0": (6, columns), "xs": (5, 6, columns), "row": (columns,), "column": (6, 1)}
    run_all(text, {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()})


def test_long_states_in_blocks():
    """A loop whose iterations are elementwise over long states, with more steps than strips of four vectors could hold."""
    steps = "\n".join(f"a{i} = Mul ({'x' if i == 0 else f'b{i - 1}'}, k)  b{i} = Tanh (a{i})" for i in range(60))
    text = f"""<ir_version: 10, opset_import: ["" : 22]>
    g (int64 n, float[1003] x0) => (float[1003] last) {{
      yes = Constant <value = bool {{1}}> ()
      k = Constant <value = float {{1.5}}> ()
      last = Loop <body = b (int64 i, bool c, float[1003] x) => (bool d, float[1003] y) {{
        {steps}
        d = Identity (c)
        y = Add (b59, x)
      }}> (n, yes, x0)
    }}"""
    x = np.random.default_rng(1).standard_normal(1003).astype(np.float32)
    run_all(text, {"n": np.array(7, np.int64), "x0": x})


@pytest.mark.parametrize("isa", ["baseline", "avx2"])
def test_other_instruction_sets(isa):
    script = """
import sys
sys.path.insert(0, sys.argv[1])
from test_native_forms import feeds_for, run_all, wide_body
for operations, width in ((12, 33), (60, 50), (260, 20)):
    run_all(wide_body(operations, width), feeds_for(width))
"""
    env = {**os.environ, "TREADLE_ISA": isa, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", script, os.path.dirname(__file__)], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_results_are_those_of_the_reference_within_rounding():
    text, feeds = wide_body(60, 100), feeds_for(100)
    ours = session(text, jit="always").run(None, feeds)
    for a, b in zip(ours, session(text, tier="reference").run(None, feeds), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    assert_same_bits(ours, session(text, jit="off").run(None, feeds))


@pytest.mark.parametrize("dtype", ["float", "double", "float16"])
@pytest.mark.parametrize("shape", [(3, 5), (2, 70), (1, 159), (2, 383), (1, 384), (2, 900)])
def test_products_of_rows_of_any_length(shape, dtype):
    """Rows that native code multiplies itself, and those that it leaves to a kernel, which multiplies in lanes."""
    rows, n = shape
    numpy_type = {"float": np.float32, "double": np.float64, "float16": np.float16}[dtype]
    text = f"""<ir_version: 10, opset_import: ["" : 22]>
    g ({dtype}[{rows},{n}] s0, {dtype}[T,{rows},{n}] xs) => ({dtype}[{rows},{n}] last, {dtype}[T,{rows}] ys) {{
      last, ys = Scan <num_scan_inputs = 1, body = b ({dtype}[{rows},{n}] s, {dtype}[{rows},{n}] x)
          => ({dtype}[{rows},{n}] t, {dtype}[{rows}] y) {{
        axis = Constant <value = int64[1] {{1}}> ()
        t = Max (s, x)
        y = ReduceProd <keepdims = 0> (t, axis)
      }}> (s0, xs)
    }}"""
    rng = np.random.default_rng(n)
    feeds = {
        "s0": rng.uniform(0.9, 1.1, (rows, n)).astype(numpy_type),
        "xs": rng.uniform(0.9, 1.1, (4, rows, n)).astype(numpy_type),
    }
    assert_same_bits(run_all(text, feeds, compilations=None), session(text, tier="reference").run(None, feeds))
