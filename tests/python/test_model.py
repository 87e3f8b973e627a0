"""check() and infer_shapes()."""

import models
import onnx
import pytest
import treadle


def broken() -> bytes:
    return models.model(
        [models.node("Add", ["x", "y"], ["z"], name="sum"), models.node("Ad", ["z", "zz"], ["w"])],
        [models.value("x", shape=[2]), models.value("y", shape=[3])],
        [models.value("w", shape=[2])],
    )


def test_check_finds_nothing_in_sound_models():
    assert treadle.check(models.add()) == []
    assert treadle.check(models.parse(models.division()), full=True) == []
    with pytest.raises(TypeError):
        treadle.check(3)


def test_check_reports_every_problem(tmp_path):
    path = tmp_path / "broken.onnx"
    path.write_bytes(broken())
    unknown_name, unknown_operator = treadle.check(path)
    assert (unknown_name.code, unknown_name.severity, unknown_name.path) == ("name-unknown", "error", "/Ad_1")
    assert unknown_operator.code == "operator-unknown"
    assert "did you mean" in unknown_operator.hint
    assert "/Ad_1 (Ad): " in str(unknown_operator) and "[operator-unknown]" in str(unknown_operator)


def test_full_check_infers(tmp_path):
    model = models.model(
        [models.node("Add", ["x", "y"], ["z"], name="sum")],
        [models.value("x", shape=[2]), models.value("y", shape=[3])],
        [models.value("z", shape=[2])],
    )
    assert treadle.check(model) == []
    (problem,) = treadle.check(model, full=True)
    assert (problem.code, problem.path, problem.operator) == ("inference", "/sum", "Add-14")
    assert "[2]" in problem.found and "[3]" in problem.found


def test_infer_shapes():
    proto = models.parse(
        models.model(
            [models.node("Transpose", ["x"], ["t"]), models.node("Neg", ["t"], ["y"])],
            [models.value("x", shape=["n", 3])],
            [models.value("y")],
        )
    )
    typed = treadle.infer_shapes(proto)
    assert isinstance(typed, onnx.ModelProto)
    shape = typed.graph.output[0].type.tensor_type.shape
    assert shape.dim[0].dim_value == 3 and shape.dim[1].dim_param == "n"
    assert [v.name for v in typed.graph.value_info] == ["t"]
    assert isinstance(treadle.infer_shapes(proto.SerializeToString()), bytes)


@pytest.mark.parametrize("stash_type", [0, 7, 17, 99])
def test_statistics_that_are_no_floats_are_refused(stash_type):
    text = f"""
      <ir_version: 8, opset_import: ["" : 17]>
      normal (float[2, 2] x) => (y) {{
        v, mean = LayerNormalization <stash_type = {stash_type}> (x, x)
        y = LogSoftmax (mean)
      }}"""
    with pytest.raises(treadle.InvalidGraph, match=f"stash_type is {stash_type}, expected a float type"):
        treadle.InferenceSession(onnx.parser.parse_model(text).SerializeToString())
