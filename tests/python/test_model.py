"""check() and infer_shapes()."""

import models
import onnx
import pytest
import treadle


def broken() -> bytes:
    return models.model(
        [models.node("Add", ["x", "y"], ["z"], name="sum")],
        [models.value("x", shape=[2]), models.value("y", shape=[3])],
        [models.value("z")],
    )


def test_check(tmp_path):
    assert treadle.check(models.add()) == []
    assert treadle.check(models.parse(models.division())) == []
    path = tmp_path / "broken.onnx"
    path.write_bytes(broken())
    with pytest.raises(treadle.InvalidGraph) as caught:
        treadle.check(path)
    assert "broken.onnx" in str(caught.value) and "sum" in caught.value.place
    with pytest.raises(TypeError):
        treadle.check(3)


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
