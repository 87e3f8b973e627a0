"""Cast between numbers and texts: as onnxruntime 1.32 writes numbers, and the forms that are read."""

import ml_dtypes
import numpy as np
import pytest
import treadle
from onnx import TensorProto, helper

WAYS = {
    "default": {},
    "native": {"treadle.jit": "always"},
    "reference": {"treadle.tier": "reference"},
    "unoptimised": {"treadle.optimize": "0"},
}
SPECIAL = {np.nan: "NaN", np.inf: "INF", -np.inf: "-INF", 0.0: "0", 1.5: "1.5"}
# Element type, values, texts: printed by onnxruntime 1.32.0.
WRITTEN = {
    "float": (
        TensorProto.FLOAT,
        np.array([-0.0, 1e10, 1e-7, 123456789, 16777217, 0.1, 1 / 3, 1e38, 1e-45, 99999995, 5e-5, 3.4028235e38], "f4"),
        "-0 1e+10 1e-07 1.2345679e+08 16777216 0.1 0.33333334 9.9999997e+37 1.4012985e-45 99999992 4.9999999e-05 3.4028235e+38",
    ),
    "double": (
        TensorProto.DOUBLE,
        np.array([-0.0, 1e10, 1 / 3, 1e300, 5e-324, 0.1 + 0.2, 1e16, 123456789012345678, 16777217, 99999995]),
        "-0 1e+10 0.33333333 1e+300 4.9406565e-324 0.3 1e+16 1.2345679e+17 16777217 99999995",
    ),
    "float16": (TensorProto.FLOAT16, np.array([-0.0, 65504, 6e-8, 0.1, 1 / 3], "f2"), "-0 65504 5.9604645e-08 0.099975586 0.33325195"),
    "bfloat16": (
        TensorProto.BFLOAT16,
        np.array([-0.0, 65504, 6e-8, 0.1, 1 / 3], ml_dtypes.bfloat16),
        "-0 65536 6.0070306e-08 0.10009766 0.33398438",
    ),
    "float8e4m3fn": (TensorProto.FLOAT8E4M3FN, np.array([-0.0, 448, 0.1, 1 / 3], ml_dtypes.float8_e4m3fn), "-0 448 0.1015625 0.34375"),
    "float8e4m3fnuz": (TensorProto.FLOAT8E4M3FNUZ, np.array([0.1, 1 / 3], ml_dtypes.float8_e4m3fnuz), "0.1015625 0.34375"),
    "float8e5m2": (TensorProto.FLOAT8E5M2, np.array([-0.0, 448, 0.1, 1 / 3], ml_dtypes.float8_e5m2), "-0 448 0.09375 0.3125"),
    "float8e5m2fnuz": (TensorProto.FLOAT8E5M2FNUZ, np.array([448, 0.1], ml_dtypes.float8_e5m2fnuz), "448 0.09375"),
    "bool": (TensorProto.BOOL, np.array([True, False]), "1 0"),
    **{
        np.dtype(kind).name: (number, np.array([np.iinfo(kind).min, np.iinfo(kind).max, 65], kind), f"{np.iinfo(kind).min} {np.iinfo(kind).max} 65")
        for number, kind in ((2, "u1"), (3, "i1"), (4, "u2"), (5, "i2"), (6, "i4"), (7, "i8"), (12, "u4"), (13, "u8"))
    },
}  # fmt: skip


def session_of(nodes, inputs, outputs, way, initializers=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    options = treadle.SessionOptions()
    for key, value in WAYS[way].items():
        options.add_session_config_entry(key, value)
    return treadle.InferenceSession(model.SerializeToString(), options)


def texts_of(session, feed):
    runs = [session.run(None, feed)[0].tolist() for _ in range(2)]
    assert runs[0] == runs[1]
    return runs[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", WRITTEN)
def test_numbers_are_written_as_onnxruntime_writes_them(name, way):
    element, values, expected = WRITTEN[name]
    y = helper.make_tensor_value_info("y", TensorProto.STRING, None)
    x = helper.make_tensor_value_info("x", element, ["n"])
    for cast in (
        helper.make_node("Cast", ["x"], ["y"], to=TensorProto.STRING),
        helper.make_node("CastLike", ["x", "text"], ["y"]),
    ):
        text = helper.make_tensor("text", TensorProto.STRING, [1], [b"a"])
        session = session_of([cast], [x], [y], way, [text])
        assert texts_of(session, {"x": values}) == expected.split(" ")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_texts_of_infinities_and_nans(dtype, way):
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x = helper.make_tensor_value_info("x", element, ["n"])
    y = helper.make_tensor_value_info("y", TensorProto.STRING, ["n"])
    session = session_of([helper.make_node("Cast", ["x"], ["y"], to=8)], [x], [y], way)
    values = np.array(list(SPECIAL), dtype)
    assert texts_of(session, {"x": values}) == list(SPECIAL.values())
    assert texts_of(session, {"x": -values[:1]}) == ["NaN"]


@pytest.mark.parametrize("way", WAYS)
def test_in_loops_the_texts_are_the_same(way):
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[n] x) => (string[n] y, string[n] z, string last) {
      first = Constant <value = string {"none"}> ()
      count = Size (x)
      last, y = Loop (count, "", first) <body = b (int64 i, bool c, string s) => (bool c1, string t, string t1) {
        c1 = Identity (c)
        e = Gather (x, i)
        t = Cast <to = 8> (e)
        t1 = Identity (t)
      }>
      z = Scan <num_scan_inputs = 1, body = d (float e) => (string t) { t = Cast <to = 8> (e) }> (x)
    }"""
    options = treadle.SessionOptions()
    for key, value in WAYS[way].items():
        options.add_session_config_entry(key, value)
    session = treadle.InferenceSession(text.encode(), options)
    values = WRITTEN["float"][1]
    for _ in range(2):
        y, z, last = session.run(None, {"x": values})
        assert y.tolist() == z.tolist() == WRITTEN["float"][2].split(" ") and str(last) == y[-1]


READ = {
    "float": (["1", " 1\t", "+3", "1.5", "-0", "1e3", "0x10", "-0X1.8p3", "+0x2", "inf", "-INF", "+Infinity", "nan", "-NaN", ".5", "5."],
              [1, 1, 3, 1.5, -0.0, 1000, 16, -12, 2, np.inf, -np.inf, np.inf, np.nan, np.nan, 0.5, 5]),
    "int64": (["1", " -7 ", "+3", "1.9", "-1.9", "9223372036854775807"], [1, -7, 3, 1, -1, 2**63 - 1]),
    "uint8": (["1", "255", "1.5"], [1, 255, 1]),
    "bool": (["1", "0", "2"], [True, False, True]),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", READ)
def test_numbers_are_read(name, way):
    texts, expected = READ[name]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(name if name != "float" else "f4"))
    x = helper.make_tensor_value_info("x", TensorProto.STRING, ["n"])
    y = helper.make_tensor_value_info("y", element, ["n"])
    session = session_of([helper.make_node("Cast", ["x"], ["y"], to=element)], [x], [y], way)
    found = session.run(None, {"x": np.array(texts, object)})[0]
    assert np.array_equal(found, np.array(expected, found.dtype), equal_nan=name == "float")
    if name == "float":
        assert np.signbit(found[4])
    for text in ("", "abc", "1.5abc", "0x", "1 2"):
        with pytest.raises(treadle.RuntimeException, match="expected the text of a number"):
            session.run(None, {"x": np.array([text], object)})


def test_printed_numbers_read_back_unchanged():
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])
    nodes = [
        helper.make_node("Cast", ["x"], ["t"], to=TensorProto.STRING),
        helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT),
    ]
    values = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    found = session_of(nodes, [x], [y], "default").run(None, {"x": values})[0]
    np.testing.assert_allclose(found, values, rtol=1e-7)
