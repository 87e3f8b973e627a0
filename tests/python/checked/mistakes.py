"""Mistakes that type checkers must find: a comment names the rule of mypy, then that of pyright, of each such line."""

# ruff: noqa: B018

from __future__ import annotations

import numpy as np
import treadle
import treadle.batch
import treadle.recipes

X = np.ones((2, 3), np.float32)


# --- sessions

session = treadle.InferenceSession("model.onnx")
treadle.InferenceSession()  # call-arg, reportCallIssue
treadle.InferenceSession(42)  # arg-type, reportArgumentType
treadle.InferenceSession("model.onnx", ["CPUExecutionProvider"])  # arg-type, reportArgumentType
treadle.InferenceSession("model.onnx", session_options=treadle.SessionOptions())  # call-arg, reportCallIssue
treadle.InferenceSession("model.onnx", providers=[("CPUExecutionProvider", 1)])  # list-item, reportArgumentType
treadle.InferenceSession("model.onnx", weights="f8")  # arg-type, reportArgumentType
treadle.InferenceSesion("model.onnx")  # attr-defined, reportAttributeAccessIssue

# --- runs

session.run({"x": X})  # call-arg, reportCallIssue
session.run(None, X)  # arg-type, reportArgumentType
session.run(None, {"x": X, 1: X})  # dict-item, reportArgumentType
session.run(None, {"x": {1.5, 2.5}})  # dict-item, reportArgumentType
session.run(None, {"x": lambda: X})  # dict-item, reportArgumentType
session.run([0], {"x": X})  # list-item, reportArgumentType
session.run(None, {"x": X}, treadle.SessionOptions())  # arg-type, reportArgumentType
session.run(None, {"x": X}).shape  # attr-defined, reportAttributeAccessIssue
session.run(None, {"x": X})[0].shpe  # union-attr, reportAttributeAccessIssue
session.runs(None, {"x": X})  # attr-defined, reportAttributeAccessIssue
session.get_inputs()["x"]  # call-overload, reportArgumentType
session.get_inputs()[0].dtype  # attr-defined, reportAttributeAccessIssue
session.get_inputs()[0].shape[0] + 1  # operator, reportOperatorIssue
session.get_modelmeta().metadata  # attr-defined, reportAttributeAccessIssue
session.run_async(None, {"x": X}, print, user="me")  # call-arg, reportCallIssue
session.run_with_ort_values(None, {"x": X})  # dict-item, reportArgumentType
session.counters()["runs"].real.upper()  # attr-defined, reportAttributeAccessIssue

# --- options

options = treadle.SessionOptions()
options.intra_op_threads = 2  # attr-defined, reportAttributeAccessIssue
options.intra_op_num_threads = "2"  # assignment, reportAttributeAccessIssue
options.graph_optimization_level = "all"  # assignment, reportAttributeAccessIssue
options.load_time_limit = "20 s"  # assignment, reportAttributeAccessIssue
options.add_session_config_entry("treadle.jit")  # call-arg, reportCallIssue
options.add_session_config_entry("treadle.jit", True)  # arg-type, reportArgumentType
options.add_free_dimension_override_by_name("n", "2")  # arg-type, reportArgumentType
run_options = treadle.RunOptions()
run_options.timeout = 1.0  # attr-defined, reportAttributeAccessIssue
run_options.iteration_limit = 1.5  # assignment, reportAttributeAccessIssue
run_options.terminate = "yes"  # assignment, reportAttributeAccessIssue

# --- streams

stream = session.stream(state={"h": "hN"}, time={"x": 0})
session.stream(state="h")  # arg-type, reportArgumentType
session.stream(state={"h": 0})  # dict-item, reportArgumentType
session.stream(time={"x": 1.5})  # dict-item, reportArgumentType
session.stream(hops=512)  # call-arg, reportCallIssue
session.stream(warm="yes")  # arg-type, reportArgumentType
session.streams()  # call-arg, reportCallIssue
stream.push(X, X)  # call-arg, reportCallIssue
stream.push(X, options=run_options)  # arg-type, reportArgumentType
stream.push(x=X, run_options=options)  # arg-type, reportArgumentType
stream.push(x=X).shpe  # union-attr, reportAttributeAccessIssue
stream.pending()  # operator, reportCallIssue
stream.pending = 0  # misc, reportAttributeAccessIssue
stream.state = X  # assignment, reportAttributeAccessIssue
stream.load(stream)  # arg-type, reportArgumentType
stream.finish()  # attr-defined, reportAttributeAccessIssue
with session.streams(4) as pool:
    pool.push([X])  # arg-type, reportArgumentType
    pool.flush()  # call-arg, reportCallIssue
    pool.push({"a": X})["b"].shpe  # union-attr, reportAttributeAccessIssue
    pool.push({"a": X})[0]  # index, reportArgumentType
    len(pool) + pool.capacity.real.upper()  # attr-defined, reportAttributeAccessIssue
with session:  # attr-defined, reportGeneralTypeIssues
    pass

# --- tables

predict = treadle.batch.Predictor("model.onnx", input={"x": "a"})  # call-arg, reportCallIssue
treadle.batch.Predictor("model.onnx", on_error="skip")  # arg-type, reportArgumentType
treadle.batch.Predictor("model.onnx", time=["x"])  # arg-type, reportArgumentType
treadle.batch.arrow("model.onnx", thread=1)  # call-arg, reportCallIssue
predict([X])  # arg-type, reportArgumentType
predict({"x": X}).y  # attr-defined, reportAttributeAccessIssue

# --- recipes

treadle.recipes.open("silero-vad", rates=8000)  # call-overload, reportCallIssue
treadle.recipes.open("silero_vad")  # call-overload, reportArgumentType
treadle.recipes.open("piper").push(X)  # attr-defined, reportAttributeAccessIssue
treadle.recipes.match("model.onnx").name  # union-attr, reportOptionalMemberAccess

# --- values

value = treadle.OrtValue.ortvalue_from_numpy(X)
value.shape[0]  # index, reportIndexIssue
value.numpy().shpe  # union-attr, reportAttributeAccessIssue
value.to_numpy()  # attr-defined, reportAttributeAccessIssue
treadle.OrtValue.ortvalue_from_shape_and_type(3, np.float32)  # arg-type, reportArgumentType
binding = session.io_binding()
binding.bind_input("x", "cpu", 0, np.float32, [3])  # call-arg, reportCallIssue
binding.bind_ortvalue_input("x", X)  # arg-type, reportArgumentType

# --- reports

session.explain(json=True).splitlines()  # attr-defined, reportAttributeAccessIssue
session.explain()["loops"]  # index, reportArgumentType
session.profile({"x": X}).nodes[0]["time"]  # typeddict-item, reportGeneralTypeIssues
session.profile({"x": X}, runs="10")  # arg-type, reportArgumentType
treadle.check("model.onnx")[0].text  # attr-defined, reportAttributeAccessIssue
treadle.check("model.onnx", complete=True)  # call-arg, reportCallIssue
treadle.infer_shapes("model.onnx").graph  # attr-defined, reportAttributeAccessIssue
treadle.infer_shapes("model.onnx", rules="ort")  # call-overload, reportCallIssue
treadle.to_text(X)  # arg-type, reportArgumentType
treadle.parse_model("g () => () {}").graph  # attr-defined, reportAttributeAccessIssue
treadle.set_seed("1")  # arg-type, reportArgumentType
treadle.operators()["Loop"]  # call-overload, reportArgumentType
