"""Checking and inferring beside the onnx package, from files, and the opening of a model with 512 MB of weights.

`check` is onnx.checker.check_model and treadle.check; `full` infers all types as well (full_check=True, full=True);
`infer` is infer_shapes of both, from bytes to a model with its types.
"""

from __future__ import annotations

import os
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator

import onnx
import treadle
from onnx import TensorProto, helper, numpy_helper, shape_inference

WIDTH = 64


def block(index: int, state: str) -> Iterator[onnx.NodeProto]:
    """Ten nodes of a network with attention, named as exporters name them; makes /layers.INDEX/out from `state`."""
    prefix = f"/model/layers.{index}"

    def node(op: str, inputs: list[str], name: str, **attributes) -> onnx.NodeProto:
        return helper.make_node(op, inputs, [f"{prefix}/{name}_output_0"], name=f"{prefix}/{name}", **attributes)

    def out(name: str) -> str:
        return f"{prefix}/{name}_output_0"

    yield node("LayerNormalization", [state, "gain", "bias"], "norm/LayerNormalization", axis=-1, epsilon=1e-5)
    yield node("MatMul", [out("norm/LayerNormalization"), "weight"], "attn/MatMul")
    yield node("Add", [out("attn/MatMul"), "bias"], "attn/Add")
    yield node("Transpose", [out("attn/Add")], "attn/Transpose", perm=[0, 2, 1])
    yield node("MatMul", [out("attn/Add"), out("attn/Transpose")], "attn/MatMul_1")
    yield node("Mul", [out("attn/MatMul_1"), "scale"], "attn/Mul")
    yield node("Softmax", [out("attn/Mul")], "attn/Softmax", axis=-1)
    yield node("MatMul", [out("attn/Softmax"), out("attn/Add")], "attn/MatMul_2")
    yield node("Add", [state, out("attn/MatMul_2")], "Add")
    yield node("Relu", [out("Add")], "mlp/Relu")


def network(nodes: int) -> bytes:
    made, state = [], "x"
    for index in range(nodes // 10):
        made += block(index, state)
        state = made[-1].output[0]
    ones = numpy_helper.np.ones
    weights = {"weight": ones((WIDTH, WIDTH)), "gain": ones(WIDTH), "bias": ones(WIDTH), "scale": ones(())}
    tensors = [numpy_helper.from_array(w.astype("float32"), name) for name, w in weights.items()]
    sizes = ["batch", 16, WIDTH]
    graph = helper.make_graph(
        made,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)],
        [helper.make_tensor_value_info(state, TensorProto.FLOAT, sizes)],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


ROWS, COLUMNS = 1 << 17, 1 << 10
LARGE_BYTES = ROWS * COLUMNS * 4


def large_model(*weights: TensorProto) -> bytes:
    """y = Gather(weights, i)."""
    graph = helper.make_graph(
        [helper.make_node("Gather", ["weights", "i"], ["y"])],
        "large",
        [helper.make_tensor_value_info("i", TensorProto.INT64, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", COLUMNS])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def write_large_model(path: pathlib.Path) -> None:
    """With 512 MB of zeros in the file, which take no room on most disks."""
    size = LARGE_BYTES
    head = large_model()
    tensor = TensorProto(name="weights", data_type=TensorProto.FLOAT, dims=[ROWS, COLUMNS]).SerializeToString()
    # A second piece of the model's graph, which readers merge with the first: field 7 { field 5 { tensor, raw_data } }.
    raw = b"\x4a" + varint(size)
    for padding in range(4):  # so that the weights lie aligned
        extra = b"\x62" + varint(padding) + b" " * padding if padding else b""  # doc_string
        inner = tensor + extra + raw
        outer = b"\x2a" + varint(len(inner) + size) + inner
        front = head + b"\x3a" + varint(len(outer) + size) + outer
        if len(front) % 4 == 0:
            break
    with path.open("wb") as file:
        file.write(front)
        file.truncate(len(front) + size)


def write_large_model_with_external_data(path: pathlib.Path) -> None:
    """With the same zeros in a file beside the model's."""
    data = path.with_suffix(".bin")
    with data.open("wb") as file:
        file.truncate(LARGE_BYTES)
    weights = TensorProto(name="weights", data_type=TensorProto.FLOAT, dims=[ROWS, COLUMNS])
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value=data.name)
    path.write_bytes(large_model(weights))


def varint(value: int) -> bytes:
    result = b""
    while value >= 0x80:
        result += bytes([value & 0x7F | 0x80])
        value >>= 7
    return result + bytes([value])


def alternate(ours: Callable[[], object], theirs: Callable[[], object], seconds: float) -> tuple[float, float]:
    """The least milliseconds of processor time of each, in turns of five; both work in the calling thread."""
    times: tuple[list[float], list[float]] = ([], [])
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop or len(times[0]) < 3:
        for run, taken in zip((ours, theirs), times, strict=True):
            for _ in range(5):
                start = time.process_time()
                run()
                taken.append(1e3 * (time.process_time() - start))
    return min(times[0]), min(times[1])


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def compare(label: str, path: pathlib.Path, seconds: float) -> None:
    name = str(path)
    check = alternate(lambda: treadle.check(name), lambda: onnx.checker.check_model(name), seconds)
    full = alternate(
        lambda: treadle.check(name, full=True), lambda: onnx.checker.check_model(name, full_check=True), seconds
    )
    data = path.read_bytes()
    infer = alternate(lambda: treadle.infer_shapes(data), lambda: shape_inference.infer_shapes(data), seconds)
    cells = [f"{ours:9.2f} {theirs:9.2f} {theirs / ours:6.1f}x" for ours, theirs in (check, full, infer)]
    print(f"{label:<24} {' '.join(cells)}", flush=True)


def open_large(path: pathlib.Path, run: Callable[[str], object]) -> tuple[float, int]:
    """Median milliseconds, and how much resident memory one more opening takes."""
    run(str(path))  # registries, the page cache
    times = []
    for _ in range(9):
        start = time.perf_counter()
        run(str(path))
        times.append(1e3 * (time.perf_counter() - start))
    before = resident_bytes()
    kept = run(str(path))
    grown = resident_bytes() - before
    del kept
    return statistics.median(times), grown


def bench_check(options) -> None:
    seconds = options.seconds or 0.5
    shared = pathlib.Path(os.environ.get("TREADLE_SHARED", pathlib.Path(__file__).resolve().parents[2] / "shared"))
    titles = " ".join(f"{name:>9} {'onnx':>9} {'':>7}" for name in ("check", "full", "infer"))
    print(f"{'milliseconds of a core':<24} {titles}")
    with tempfile.TemporaryDirectory() as folder:
        for nodes in (2_000, 20_000, 100_000):
            path = pathlib.Path(folder) / f"network-{nodes}.onnx"
            path.write_bytes(network(nodes))
            compare(f"network, {nodes} nodes", path, seconds)
        real = shared / "models" / "silero_vad" / "model.onnx"
        if real.exists():
            compare("silero_vad", real, seconds)
        for place, write in (("in it", write_large_model), ("beside it", write_large_model_with_external_data)):
            large = pathlib.Path(folder) / "large.onnx"
            write(large)
            for label, run in (
                ("check", treadle.check),
                ("full check", lambda path: treadle.check(path, full=True)),
                ("InferenceSession", treadle.InferenceSession),
            ):
                milliseconds, grown = open_large(large, run)
                grown_text = f"resident memory +{grown / (1 << 20):.1f} MiB"
                print(f"{label}, 512 MB {place}: {milliseconds:.2f} ms, {grown_text}", flush=True)
