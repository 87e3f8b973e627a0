# pyright: strict
"""Correct uses of treadle: type checkers find nothing here. tests/python/test_types.py runs this as well."""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile
from typing import Any

import numpy as np
import treadle
import treadle.batch
import treadle.recipes
from numpy.typing import NDArray

DETECTOR = pathlib.Path(__file__).parents[3] / "examples" / "vad" / "silero_vad.onnx"
MODEL = """<ir_version: 10, opset_import: ["" : 17]>
g (float[n,3] x, float[3] h) => (float[n,3] y, float[3] hN) {
  y = Add(x, h)
  axes = Constant<value_ints=[0]>()
  hN = ReduceSum<keepdims=0>(y, axes)
}
"""


def options() -> treadle.SessionOptions:
    chosen = treadle.SessionOptions()
    chosen.intra_op_num_threads = 2
    chosen.graph_optimization_level = treadle.GraphOptimizationLevel.ORT_ENABLE_ALL
    chosen.load_time_limit = 20.5
    chosen.load_memory_limit = None
    chosen.add_session_config_entry("treadle.jit", "off")
    chosen.add_free_dimension_override_by_name("n", 2)
    return chosen


def runs(session: treadle.InferenceSession, x: NDArray[np.float32], h: NDArray[np.float32]) -> None:
    y, hidden = session.run(None, {"x": x, "h": h})
    print(y.shape, y.dtype, y.max(), float(hidden[0]), [row.tolist() for row in y])
    (y,) = session.run(["y"], {"x": x.tolist(), "h": [1, 2, 3.5]}, treadle.RunOptions())
    values = session.run_with_ort_values(["y"], {"x": treadle.OrtValue.ortvalue_from_numpy(x), "h": _value(h)})
    array: NDArray[np.float32] = values[0].numpy()
    assert array.tolist() == np.asarray(values[0]).tolist() and values[0].shape() == list(y.shape)
    names: list[str] = [info.name for info in session.get_inputs()]
    sizes = [size for info in session.get_outputs() for size in info.shape if isinstance(size, int)]
    print(names, sizes, session.get_modelmeta().custom_metadata_map.get("author", ""), session.get_providers()[0])
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_input("h", "cpu", 0, np.float32, [3], h.ctypes.data)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    print(binding.copy_outputs_to_cpu()[0].sum(), binding.get_outputs()[0].data_type().upper())


def _value(array: NDArray[np.float32]) -> treadle.OrtValue:
    value = treadle.OrtValue.ortvalue_from_shape_and_type(array.shape, np.float32)
    value.update_inplace(array)
    return value


def streams(session: treadle.InferenceSession, x: NDArray[np.float32]) -> None:
    with session.stream(state={"h": "hN"}, initial={"h": np.zeros(3, np.float32)}, warm=False) as stream:
        y = stream.push(x)
        y = stream.push(x=x, run_options=None)
        y = stream.push({"x": x.tolist()})
        stream.state = {"h": stream.state["h"] + 1}
        stream.load(stream.save())
        print(y.shape, stream.fork().pending + stream.delay, stream.done, stream.output_names[0].upper())
    with session.streams(4, state={"h": "hN"}) as pool:
        results = pool.push({7: {"x": x}, 8: {"x": x}})
        print(results[7].shape, len(pool), 7 in pool, pool.why_single.upper())
        pool.leave(8)


def limits(session: treadle.InferenceSession, feed: dict[str, NDArray[np.float32]]) -> None:
    run_options = treadle.RunOptions()
    run_options.time_limit = 1.5
    run_options.iteration_limit = None
    run_options.terminate = False
    try:
        session.run(None, feed, run_options)
    except (treadle.LimitExceeded, treadle.InvalidArgument) as problem:
        print(problem.code.upper(), problem.place)

    def done(results: list[NDArray[np.float32]], user: str, error: str) -> None:
        print(len(results), user.upper(), error)

    session.run_async(None, feed, done, "mine")


def reports(session: treadle.InferenceSession, model: bytes, feed: dict[str, NDArray[np.float32]]) -> None:
    text: str = session.explain(feed)
    parts: dict[str, object] = session.explain(json=True)
    problems = [f"{p.severity} {p.path}: {p.message} ({p.line or 0})" for p in treadle.check(model, full=True)]
    typed: bytes = treadle.infer_shapes(model, rules="onnx")
    profile = session.profile(feed, runs=1)
    slowest = max(profile.nodes, key=lambda node: node["ns"] / node["count"])
    print(text, len(parts), problems, treadle.to_text(typed, max_elements=4), slowest["op"].upper(), profile.total_ns)
    print(session.counters()["runs"] + 1, treadle.operators()[0]["name"], session.get_profiling_start_time_ns())


def tables(model: bytes, h: NDArray[np.float32]) -> None:
    predict = treadle.batch.Predictor(model, inputs={"x": "features"}, keep=["id"], bind={"h": h}, on_error="column")
    table: dict[str, NDArray[Any]] = predict({"features": np.ones((2, 3), np.float32), "id": np.arange(2)})
    function = treadle.batch.arrow(model, bind={"h": h}, threads=1)
    print(sorted(table), predict.session.get_inputs()[0].name, predict.why_single.upper(), predict.keep[0], function)


def known_models(detector: str, samples: NDArray[np.int16]) -> None:
    stream = treadle.recipes.open("silero-vad", detector, rate=8000)
    print(stream.push(samples).max(), stream.flush().dtype, stream.hop + 1, treadle.recipes.names()[0].upper())
    recipe: treadle.recipes.Recipe | None = treadle.recipes.match(detector)
    print(recipe.title.upper() if recipe else "", treadle.recipes.get("piper").settings)


def main(folder: str | os.PathLike[str]) -> None:
    model = treadle.parse_model(MODEL)
    path = pathlib.Path(folder) / "model.onnx"
    path.write_bytes(model)
    session = treadle.InferenceSession(path, options(), [("CPUExecutionProvider", {})], enable_fallback=False)
    x, h = np.ones((2, 3), np.float32), np.zeros(3, np.float32)
    runs(session, x, h)
    limits(treadle.InferenceSession(model, weights="f32"), {"x": x, "h": h})
    reports(session, model, {"x": x, "h": h})
    streams(treadle.InferenceSession(model), x)
    tables(model, h)
    known_models(str(DETECTOR), np.zeros(1000, np.int16))
    ort = treadle.as_onnxruntime()
    print(ort.__name__, file=sys.stderr)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(temporary)
