"""Models as C: drawn operators and sizes give the engine's bits, and the files keep their promises."""

import ctypes
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest
import treadle
from onnx import TensorProto, helper, numpy_helper

sys.path.append(str(pathlib.Path(__file__).parents[1] / "suites"))  # behind the module `models` of these tests
import compiled

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler")

PROCESSORS = {"fma": ("avx2", ["-march=haswell"]), "baseline": ("baseline", [])}


def usable(isa: str) -> bool:
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    return isa == "baseline" or {"avx2", "fma", "f16c"} <= set(flags)


def run_both(folder: pathlib.Path, model: onnx.ModelProto, feeds: dict, processor: str) -> str:
    """The difference between the engine's results and those of the C; empty if there is none."""
    isa, flags = PROCESSORS[processor]
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    np.savez(folder / "feeds.npz", **feeds)
    # The instruction set is chosen once for a process.
    script = f"""
import sys, numpy as np, treadle
sys.path.insert(0, {str(pathlib.Path(compiled.__file__).parent)!r})
import compiled
options = treadle.SessionOptions()
options.intra_op_num_threads = 1
options.add_session_config_entry("treadle.jit", "off")
session = treadle.InferenceSession("model.onnx", options)
feeds = dict(np.load("feeds.npz"))
np.savez("expected.npz", *session.run(None, feeds))
source, header, fixed = compiled.written(session, feeds, ["prefix=model", "libm=1", "fma={int(isa != "baseline")}"])
open("model.c", "w").write(source)
open("model.h", "w").write(header)
open("fixed", "w").write(" ".join(fixed))
"""
    environment = {**os.environ, "TREADLE_ISA": isa}
    subprocess.run([sys.executable, "-c", script], cwd=folder, env=environment, check=True)
    command = ["gcc", "-std=c11", "-O2", *flags, "-ffp-contract=off", "-shared", "-fPIC", *compiled.WARNINGS]
    made = subprocess.run(
        [*command, "model.c", "-o", "model.so", "-lm"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    with np.load(folder / "expected.npz") as archive:
        expected = [archive[name] for name in archive.files]
    fixed = (folder / "fixed").read_text().split()
    given = {name: value for name, value in feeds.items() if name not in fixed}
    got = compiled.run_compiled(folder / "model.so", (folder / "model.h").read_text(), "model", given, expected)
    return "; ".join(filter(None, map(compiled.difference, got, expected)))


def model_of(
    nodes, inputs: dict, outputs: list[str], constants: dict | None = None, opset: int = 18
) -> onnx.ModelProto:
    def info(name, array):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    graph = helper.make_graph(
        nodes,
        "drawn",
        [info(name, array) for name, array in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return onnx.shape_inference.infer_shapes(model)


def sizes(random) -> int:
    """Around the lengths at which the order of a sum changes."""
    return int(
        random.choice([1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 383, 384, 511, 512, 513, 1100])
    )


def drawn_reduction(random):
    op = random.choice(
        ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare"]
    )
    dtype = random.choice([np.float32, np.float64, np.float16, np.int32, np.int64])
    shape = [int(random.choice([1, 2, 3])), sizes(random), int(random.choice([1, 2, 5, 17]))]
    random.shuffle(shape)
    axes = random.choice([0, 1, 2], size=int(random.integers(1, 4)), replace=False)
    x = (random.standard_normal(shape) * (1 if op == "ReduceProd" else 3)).astype(dtype)
    node = helper.make_node(op, ["x", "axes"], ["y"], keepdims=int(random.integers(2)))
    return model_of([node], {"x": x}, ["y"], {"axes": np.array(axes, np.int64)}), {"x": x}


def drawn_softmax(random):
    op = random.choice(["Softmax", "LogSoftmax", "Hardmax"])
    shape = [int(random.choice([1, 3])), sizes(random), int(random.choice([1, 4]))]
    x = (random.standard_normal(shape) * 5).astype(random.choice([np.float32, np.float64, np.float16]))
    return model_of([helper.make_node(op, ["x"], ["y"], axis=int(random.integers(3)))], {"x": x}, ["y"]), {"x": x}


def drawn_product(random):
    m, n, k = (sizes(random) % 70 + 1 for _ in range(3))
    dtype = random.choice([np.float32, np.float64, np.int32])
    a = (random.standard_normal((m, k)) * 3).astype(dtype)
    b = (random.standard_normal((k, n)) * 3).astype(dtype)
    c = (random.standard_normal(n) * 3).astype(dtype)
    attributes = {"transA": int(random.integers(2)), "transB": int(random.integers(2))}
    a, b = a.T.copy() if attributes["transA"] else a, b.T.copy() if attributes["transB"] else b
    if dtype != np.int32:
        attributes |= {"alpha": float(random.choice([1, 0.5])), "beta": float(random.choice([1, 2]))}
    node = helper.make_node("Gemm", ["a", "b", "c"], ["y"], **attributes)
    inputs, constants = {"a": a, "c": c}, {}
    (constants if random.integers(2) else inputs)["b"] = b
    return model_of([node], inputs, ["y"], constants), inputs


def drawn_elementwise(random):
    """A chain of functions, broadcast against operands of other shapes."""
    shape = [int(random.choice([1, 2, 3, 8, 17])) for _ in range(3)]
    inputs = {"x": (random.standard_normal(shape) * 2).astype(np.float32)}
    nodes, value = [], "x"
    for i in range(int(random.integers(1, 6))):
        made = f"t{i}"
        if random.integers(2):
            op = str(
                random.choice(
                    [
                        "Tanh",
                        "Sigmoid",
                        "Exp",
                        "Softplus",
                        "Erf",
                        "Floor",
                        "Ceil",
                        "Round",
                        "Abs",
                        "Neg",
                        "Elu",
                        "Relu",
                        "Sin",
                        "Mish",
                    ]
                )
            )
            nodes.append(helper.make_node(op, [value], [made]))
        else:
            other = f"b{i}"
            inputs[other] = (random.standard_normal([int(random.choice([1, d])) for d in shape]) * 2).astype(np.float32)
            op = str(random.choice(["Add", "Sub", "Mul", "Max", "Min", "Div"]))
            nodes.append(helper.make_node(op, [value, other] if random.integers(2) else [other, value], [made]))
        value = made
    return model_of(nodes, inputs, [value]), inputs


def drawn_loop(random):
    """A recurrence over rows with a state, whose rows are collected."""
    hidden, steps = int(random.choice([1, 4, 16, 33])), int(random.choice([1, 5, 40]))
    op = str(random.choice(["LSTM", "GRU", "RNN"]))
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    directions = int(random.integers(1, 3))
    constants = {
        "W": (random.standard_normal((directions, gates * hidden, 3)) / 2).astype(np.float32),
        "R": (random.standard_normal((directions, gates * hidden, hidden)) / 2).astype(np.float32),
        "B": random.standard_normal((directions, 2 * gates * hidden)).astype(np.float32),
    }
    x = random.standard_normal((steps, int(random.choice([1, 2])), 3)).astype(np.float32)
    attributes = {"linear_before_reset": int(random.integers(2))} if op == "GRU" else {}
    if directions == 2:
        attributes["direction"] = "bidirectional"
    node = helper.make_node(op, ["x", "W", "R", "B"], ["y", "h"], hidden_size=hidden, **attributes)
    return model_of([node], {"x": x}, ["y", "h"], constants), {"x": x}


DRAWN = [drawn_reduction, drawn_softmax, drawn_product, drawn_elementwise, drawn_loop]


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize(("draw", "seed"), list(itertools.product(DRAWN, range(6))))
def test_bits_are_the_engines(tmp_path, draw, seed, processor):
    if not usable(PROCESSORS[processor][0]):
        pytest.skip("the processor has no fused multiply-add")
    model, feeds = draw(np.random.default_rng(seed))
    assert run_both(tmp_path, model, feeds, processor) == ""


def session_of(nodes, inputs, outputs, constants=None, **other):
    return treadle.InferenceSession(model_of(nodes, inputs, outputs, constants, **other).SerializeToString())


def test_names_are_identifiers_and_do_not_clash(tmp_path):
    x = np.ones((2, 3), np.float32)
    inputs = {"a b": x, "a-b": x, "int": x, "1st": x, "*/ evil /*": x}
    nodes = [helper.make_node("Sum", list(inputs), ["y"])]
    session = session_of(nodes, inputs, ["y"])
    assert compiled.fields_of(session.write_c()[1], "inputs") == [
        "a b", "a-b", "int", "1st", "* / evil / *",
    ]  # fmt: skip
    for prefix in ("one", "two"):
        source, header = session.write_c(prefix)
        (tmp_path / f"{prefix}.c").write_text(source)
        (tmp_path / f"{prefix}.h").write_text(header)
    main = '#include "one.h"\n#include "two.h"\nint main(void) { return sizeof(one_inputs) != sizeof(two_inputs); }\n'
    (tmp_path / "main.c").write_text(main)
    command = ["gcc", "-std=c11", *compiled.WARNINGS, "main.c", "one.c", "two.c", "-o", "both"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stderr == ""
    assert subprocess.run([tmp_path / "both"], check=False).returncode == 0


def test_nothing_but_memcpy_is_called(tmp_path):
    x = np.ones((5, 1, 4), np.float32)
    model, _ = drawn_loop(np.random.default_rng(1))
    session = treadle.InferenceSession(model.SerializeToString())
    source, header = session.write_c()
    assert "math.h" not in source
    (tmp_path / "model.c").write_text(source)
    (tmp_path / "model.h").write_text(header)
    subprocess.run(["gcc", "-std=c11", "-O2", "-c", "model.c"], cwd=tmp_path, check=True)
    listed = subprocess.run(["nm", "-u", "model.o"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"U (\w+)", listed)) <= {"memcpy", "memset", "memchr"}, x.shape


# Roots and multiply-adds are instructions, for which GCC would call the C library as well, for the sake of errno.
@pytest.mark.parametrize("level", ["-O0", "-Os", "-O3"])
@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_roots_call_no_library(tmp_path, dtype, compiler, level):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    x = np.array([[0, -0.0, 2, 3e-310, 1e-40, -1, np.inf, np.nan, 1.7]], dtype)
    nodes = [helper.make_node("Sqrt", ["x"], ["root"]), helper.make_node("Exp", ["root"], ["y"])]
    session = treadle.InferenceSession(model_of(nodes, {"x": x}, ["root", "y"]).SerializeToString())
    source, header = session._engine.write_c(["prefix=model"], {})
    (tmp_path / "model.c").write_text(source)
    (tmp_path / "model.h").write_text(header)
    flags = ["-std=c11", "-march=haswell", *compiled.WARNINGS]
    subprocess.run([compiler, level, *flags, "-c", "-fPIC", "model.c"], cwd=tmp_path, check=True)
    listed = subprocess.run(["nm", "-u", "model.o"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"U (\w+)", listed)) <= {"memcpy", "memset"}
    if usable("avx2"):
        subprocess.run([compiler, "-shared", "model.o", "-o", "model.so"], cwd=tmp_path, check=True)
        root, _ = compiled.run_compiled(tmp_path / "model.so", header, "model", {"x": x}, [x, x])
        with np.errstate(invalid="ignore"):
            assert not compiled.difference(root, np.sqrt(x))


def test_an_index_out_of_range_is_an_error(tmp_path):
    data = np.arange(12, dtype=np.float32).reshape(4, 3)
    index = np.array([1, 3], np.int64)
    session = session_of(
        [helper.make_node("Gather", ["data", "index"], ["y"])], {"index": index}, ["y"], {"data": data}
    )
    source, header = session.write_c()
    (tmp_path / "model.c").write_text(source)
    (tmp_path / "model.h").write_text(header)
    subprocess.run(["gcc", *compiled.FLAGS, "model.c", "-o", "model.so"], cwd=tmp_path, check=True)
    library = tmp_path / "model.so"
    got = compiled.run_compiled(library, header, "model", {"index": index}, [data[index]])
    assert (got[0] == data[index]).all()
    with pytest.raises(AssertionError, match="returned 2"):
        compiled.run_compiled(library, header, "model", {"index": np.array([1, 4])}, [data[index]])


def test_what_cannot_be_written_is_named():
    x = np.ones(4, np.float32)
    session = session_of([helper.make_node("Sin", ["x"], ["y"], name="wave")], {"x": x}, ["y"])
    with pytest.raises(treadle.NotImplemented, match=r"wave \(Sin-7\): Sin of float has no formula in C"):
        session.write_c()


def test_open_sizes_are_asked_for():
    node = helper.make_node("Relu", ["x"], ["y"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])
    graph = helper.make_graph([node], "g", [x], [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    session = treadle.InferenceSession(model.SerializeToString())
    with pytest.raises(treadle.InvalidArgument, match="input 'x' is .*: say its size 'N'"):
        session.write_c()
    assert "8 elements" in session.write_c(dims={"N": 2})[1]
    assert "12 elements" in session.write_c(dims={"x:0": 3})[1]
    with pytest.raises(treadle.InvalidArgument, match="no input has an open size 'M'"):
        session.write_c(dims={"N": 2, "M": 2})
    for wrong in ("dim=N", "dim==2", "prefix=a b", "fma=yes", "other=1"):
        with pytest.raises(treadle.InvalidArgument):
            session._engine.write_c([wrong], {})


def test_scratch_and_results_are_within_their_bounds(tmp_path):
    """Under the sanitizers, with memory of exactly the sizes that the header says."""
    random = np.random.default_rng(3)
    model, feeds = drawn_loop(random)
    session = treadle.InferenceSession(model.SerializeToString())
    source, header = session.write_c()
    (tmp_path / "model.c").write_text(source)
    (tmp_path / "model.h").write_text(header)
    counts = [int(n) for n in re.findall(r"(\d+) elements", header)]
    main = f"""
#include <stdlib.h>
#include "model.h"
int main(void) {{
  float *x = calloc({counts[0]}, 4), *y = calloc({counts[1]}, 4), *h = calloc({counts[2]}, 4);
  void *scratch = malloc(MODEL_SCRATCH_BYTES);
  const model_inputs inputs = {{x}};
  const model_outputs outputs = {{y, h}};
  const int failed = model_run(&inputs, &outputs, scratch);
  free(x), free(y), free(h), free(scratch);
  return failed;
}}
"""
    (tmp_path / "main.c").write_text(main)
    command = [
        "gcc",
        "-std=c11",
        "-g",
        "-O1",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover",
        "main.c",
        "model.c",
        "-o",
        "run",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "run"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ctypes.sizeof(ctypes.c_float) == 4


def compile_apart(folder: pathlib.Path, source: str, header: str) -> ctypes.CDLL:
    (folder / "model.c").write_text(source)
    (folder / "model.h").write_text(header)
    command = ["gcc", "-std=c11", "-O1", "-march=haswell", "-shared", "-fPIC", *compiled.WARNINGS]
    made = subprocess.run(
        [*command, "model.c", "-o", "model.so", "-lm"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    return ctypes.CDLL(str(folder / "model.so"))


def aligned(size: int) -> np.ndarray:
    room = np.full(size + 64, 0xA5, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + size]


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def pointers(arrays: list[np.ndarray]):
    return (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])


# Two layers whose weights are equal, a state, and a bias that is too short to be apart.
LAYERS = """<ir_version: 10, opset_import: ["" : 22]>
layers (float[2,16] x, float[2,16] h) => (float[2,16] y, float[2,16] next) {
  a = MatMul (x, w)
  b = MatMul (a, again)
  c = Add (b, h)
  next = Tanh (c)
  short = Constant <value_floats = [0.5]> ()
  y = Add (next, short)
}"""


def layers() -> bytes:
    model = onnx.ModelProto()
    model.ParseFromString(treadle.parse_model(LAYERS))
    w = np.random.default_rng(5).standard_normal((16, 16)).astype(np.float32)
    model.graph.initializer.extend(numpy_helper.from_array(w, name) for name in ("w", "again"))
    return model.SerializeToString()


def test_weights_beside_the_source(tmp_path):
    session = treadle.InferenceSession(layers())
    source, header = session.write_c(weights=tmp_path / "model.weights")
    weights = (tmp_path / "model.weights").read_bytes()
    assert f"MODEL_WEIGHTS_BYTES {len(weights)}\n" in header
    assert len(weights) == 16 * 16 * 4  # equal constants are there once
    assert len(source) + 3000 < len(session.write_c()[0])
    code = compile_apart(tmp_path, source, header)
    given = aligned(len(weights))
    given[:] = np.frombuffer(weights, np.uint8)
    random = np.random.default_rng(1)
    feeds = [random.standard_normal((2, 16)).astype(np.float32) for _ in range(2)]
    results = [np.zeros((2, 16), np.float32) for _ in range(2)]
    scratch = aligned(int(re.search(r"_SCRATCH_BYTES (\d+)", header).group(1)))
    assert code.model_run(pointers(feeds), pointers(results), pointer(given), pointer(scratch)) == 0
    plain = treadle.InferenceSession(layers()).write_c()
    (tmp_path / "plain").mkdir()
    compile_apart(tmp_path / "plain", *plain)
    wanted = compiled.run_compiled(
        tmp_path / "plain" / "model.so", plain[1], "model", {"x": feeds[0], "h": feeds[1]}, results
    )
    assert all(np.array_equal(r, w) for r, w in zip(results, wanted, strict=True))


def test_weights_beside_the_source_of_a_stream(tmp_path):
    stream = treadle.InferenceSession(layers()).stream(state={"h": "next"})
    source, header = stream.write_c(weights=tmp_path / "model.weights")
    weights = (tmp_path / "model.weights").read_bytes()
    code = compile_apart(tmp_path, source, header)
    given = aligned(len(weights))
    given[:] = np.frombuffer(weights, np.uint8)
    state = aligned(4096)
    code.model_begin(pointer(state))
    scratch = aligned(int(re.search(r"_SCRATCH_BYTES (\d+)", header).group(1)))
    random = np.random.default_rng(1)
    for _ in range(3):
        x, y = random.standard_normal((2, 16)).astype(np.float32), np.zeros((2, 16), np.float32)
        status = code.model_push(pointer(state), pointers([x]), pointers([y]), pointer(given), pointer(scratch))
        assert status == 0
        np.testing.assert_allclose(y, stream.push(x=x), rtol=1e-5, atol=1e-6)


def test_a_file_of_weights_that_cannot_be_written():
    session = treadle.InferenceSession(layers())
    with pytest.raises(treadle.InvalidArgument, match=r"/nowhere/w cannot be written: No such file or directory"):
        session.write_c(weights="/nowhere/w")
    with pytest.raises(treadle.InvalidArgument, match="weights: expected the name of a file"):
        session.write_c(weights="")
