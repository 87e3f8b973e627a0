"""Models as text, against the onnx package."""

import numpy as np
import onnx
import onnx.parser
import onnx.printer
import pytest

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
main (float[N] x) => (float[N] y)
   <float[1] w = {2.5}>
{
   [scale] t = Mul (x, w)
   y = If (c) <
      then_branch = a () => (float[N] p) { p = Add <axis = -1, z = [1.0, inf]> (t, t) },
      else_branch = b () => (float[N] q) { q = Neg (t) }>
   c = Constant <value: tensor = bool {1}> ()
}
"""
RUNS = """<ir_version: 8, opset_import: ["" : 17]>
main (float[N] x) => (float[N] y) { y = Add (x, x) }
"""


def test_reads_the_same_texts_as_onnx():
    assert treadle.parse_model(TEXT) == onnx.parser.parse_model(TEXT).SerializeToString(deterministic=True)


def test_onnx_reads_the_written_text():
    model = onnx.parser.parse_model(TEXT)
    assert onnx.parser.parse_model(treadle.to_text(model)) == model


def test_reads_texts_that_onnx_writes():
    model = onnx.parser.parse_model(TEXT)
    assert treadle.parse_model(onnx.printer.to_text(model)) == model.SerializeToString(deterministic=True)


def test_parts():
    model = onnx.parser.parse_model(TEXT)
    for part, parse in ((model.graph, treadle.parse_graph), (model.graph.node[1], treadle.parse_node)):
        assert parse(treadle.to_text(part)) == part.SerializeToString(deterministic=True)
    function = onnx.helper.make_function(
        "local", "f", ["x"], ["y"], [onnx.helper.make_node("Neg", ["x"], ["y"])], [onnx.helper.make_opsetid("", 17)]
    )
    assert treadle.parse_function(treadle.to_text(function)) == function.SerializeToString(deterministic=True)


def test_keeps_unknown_fields_and_documentation():
    model = onnx.parser.parse_model(TEXT)
    model.graph.node[0].doc_string = "two\nlines"
    model.graph.input[0].metadata_props.add(key="k", value="v")
    model.graph.initializer[0].CopyFrom(
        onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(model.graph.initializer[0]), "w")
    )
    data = model.SerializeToString(deterministic=True) + b"\xd2\x3e\x03abc"
    text = treadle.to_text(data)
    assert treadle.parse_model(text) == data
    assert onnx.parser.parse_model(text).graph.node[1].op_type == "If"


def test_texts_run(tmp_path):
    path = tmp_path / "model.onnx"  # the contents tell
    path.write_text(RUNS)
    for source in (path, str(path), RUNS.encode()):
        (y,) = treadle.InferenceSession(source).run(None, {"x": [1.0, 2.0]})
        assert y.tolist() == [2, 4]


def test_external_data_of_a_text_lies_beside_it(tmp_path):
    (tmp_path / "w.bin").write_bytes(b"\0\0\x80\x3f\0\0\0\x40")
    path = tmp_path / "model.onnxtxt"
    path.write_text(RUNS.replace("{ y", '<float[2] w = ["location": "w.bin"]> { y').replace("(x, x)", "(x, w)"))
    (y,) = treadle.InferenceSession(path).run(None, {"x": [1.0, 2.0]})
    assert y.tolist() == [2, 4]


def test_errors_show_the_place(tmp_path):
    path = tmp_path / "model.onnxtxt"
    path.write_text(RUNS.replace("Add (x", "Add [x"))
    with pytest.raises(Exception, match=r"model\.onnxtxt:2:45: expected '\(', found '\['\n.*\n.*\^"):
        treadle.InferenceSession(path)


def test_long_texts_of_constants():
    """They are longer than what a text holds in place."""
    long = "a text that is longer than fifteen bytes"
    model = f"""<ir_version: 10, opset_import: ["" : 18]>
        g (bool c) => (string y, string[2] z, string u) {{
          y = Constant<value_string = "{long}">() z = Constant<value_strings = ["{long}", "b"]>()
          u = If(c) <then_branch = t () => (string v) {{ v = Constant<value_string = "{long}!">() }},
                     else_branch = e () => (string w) {{ w = Constant<value_string = "{long}?">() }}>
        }}"""
    for _ in range(20):
        y, z, u = treadle.InferenceSession(model.encode()).run(None, {"c": np.array(True)})
        assert (y.item(), z.tolist(), u.item()) == (long, [long, "b"], long + "!")
