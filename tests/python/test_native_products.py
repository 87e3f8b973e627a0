"""Rows times matrices, the step of most recurrences: written out in native loops, with the bits of the kernels."""

import numpy as np
import pytest
from test_native import DTYPES, interesting, run_all, session

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

HEAD = '<ir_version: 10, opset_import: ["" : 22]>'
ITERATIONS = 5


def weights(dtype, shape, seed=7):
    values = np.random.default_rng(seed).standard_normal(shape) * 3
    if dtype not in ("float", "double"):
        values = np.abs(values).astype(int)
    return ", ".join(str(v) for v in values.ravel().tolist())


def loop(dtype, k, n, product, shape, constant):
    """States and rows of k elements; the product has n, of which the state takes as many as it has."""
    t = f"{dtype}[1,{k}]"
    matrix = f"{dtype}[{shape[0]},{shape[1]}]"
    given = f"<{matrix} w = {{{weights(dtype, shape)}}}>" if constant else ""
    argument = "" if constant else f", {matrix} w"
    return f"""{HEAD}
    g ({t} start, {dtype}[{ITERATIONS},1,{k}] rows, {dtype}[{n}] bias, int64[{k}] picked{argument})
        => ({t} last, {dtype}[{ITERATIONS},1,{n}] ys)
    {given} {{
      last, ys = Scan <num_scan_inputs = 1, body = b ({t} state, {t} row) => ({t} next, {dtype}[1,{n}] y) {{
        mixed = Add(row, state)
        {product}
        next = Gather <axis = 1> (y, picked)
      }}> (start, rows)
    }}"""


SIZES = ((8, 3), (17, 5), (33, 40), (64, 64), (64, 192), (30, 256), (128, 100))


@pytest.mark.parametrize("constant", (True, False), ids=("packed", "plain"))
@pytest.mark.parametrize("size", SIZES)
def test_rows_times_matrices(size, constant):
    k, n = size
    for dtype in ("float", "double", "int32", "uint64"):
        text = loop(dtype, k, n, "y = MatMul(mixed, w)", (k, n), constant)
        run_all(text, feeds(dtype, k, n, constant))


def feeds(dtype, k, n, constant, shape=None):
    made = {"start": np.ones((1, k)), "rows": np.random.default_rng(k).standard_normal((ITERATIONS, 1, k))}
    if dtype not in ("float", "double"):
        made["rows"] = np.abs(made["rows"]) * 10
    made["bias"] = np.arange(n)
    if not constant:
        made["w"] = np.random.default_rng(n).uniform(0, 3, shape or (k, n))
    made = {name: value.astype(DTYPES[dtype]) for name, value in made.items()}
    return made | {"picked": np.arange(k) % n}


@pytest.mark.parametrize("constant", (True, False), ids=("packed", "plain"))
@pytest.mark.parametrize("transposed", (0, 1))
def test_gemm_of_one_row(transposed, constant):
    k, n = 24, 70
    shape = (n, k) if transposed else (k, n)
    for alpha, beta in ((1, 1), (0.5, 1), (1, 2), (0.25, 0)):
        product = f"y = Gemm <alpha = {float(alpha)}, beta = {float(beta)}, transB = {transposed}> (mixed, w, bias)"
        run_all(loop("float", k, n, product, shape, constant), feeds("float", k, n, constant, shape))


def test_special_numbers():
    k, n = 16, 37
    given = feeds("float", k, n, True)
    given["rows"] = interesting(np.float32, (ITERATIONS, 1, k), 3)
    for product in ("y = MatMul(mixed, w)", "p = MatMul(mixed, w)\n q = Add(p, bias)\n y = Tanh(q)"):
        run_all(loop("float", k, n, product, (k, n), True), given)


def calls(k, product, more=""):
    """Kernels that the native code of a loop calls; `more`: constants beside w."""
    text = loop("float", k, k, product, (k, k), True)
    text = text.replace("next = Gather <axis = 1> (y, picked)", "next = Identity(y)").replace(
        f", int64[{k}] picked", ""
    )
    native = session(text.replace(f"<float[{k},{k}] w", f"<{more}float[{k},{k}] w"), jit="always")
    given = feeds("float", k, k, True)
    del given["picked"]
    native.run(None, given)
    (made,) = native.explain(given, json=True)["loops"]
    assert made["tier"] == "native"
    return made["calls"]


def test_no_kernel_is_called():
    assert calls(64, "p = MatMul(mixed, w)\n y = Tanh(p)") == []


def test_matrices_that_leave_the_cache_between_iterations_are_left_to_kernels():
    k = 208
    assert calls(k, "p = MatMul(mixed, w)\n y = Tanh(p)") == []
    second = f"float[{k},{k}] v = {{{weights('float', (k, k))}}}, "
    found = calls(k, "p = MatMul(mixed, w)\n t = Tanh(p)\n q = MatMul(t, v)\n y = Tanh(q)", second)
    assert len(found) == 2


@pytest.mark.parametrize("op", ("RNN", "GRU", "LSTM"))
def test_recurrent_operators(op):
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    for hidden in (5, 32, 64):
        text = f"""{HEAD}
        g (float[7,1,9] x, float[1,{gates * hidden},9] w) => (float[7,1,1,{hidden}] y)
        <float[1,{gates * hidden},{hidden}] r = {{{weights("float", (gates * hidden, hidden))}}}> {{
          y = {op} <hidden_size = {hidden}> (x, w, r)
        }}"""
        rng = np.random.default_rng(hidden)
        given = {"x": rng.standard_normal((7, 1, 9)), "w": rng.standard_normal((1, gates * hidden, 9))}
        run_all(text, {name: value.astype(np.float32) for name, value in given.items()})
