"""Values of every kind, to the engine and back."""

import gc

import ml_dtypes
import models
import numpy as np
import pytest
import treadle
from onnx import TensorProto, helper

PLAIN = {
    TensorProto.FLOAT: np.float32,
    TensorProto.UINT8: np.uint8,
    TensorProto.INT8: np.int8,
    TensorProto.UINT16: np.uint16,
    TensorProto.INT16: np.int16,
    TensorProto.INT32: np.int32,
    TensorProto.INT64: np.int64,
    TensorProto.BOOL: np.bool_,
    TensorProto.FLOAT16: np.float16,
    TensorProto.DOUBLE: np.float64,
    TensorProto.UINT32: np.uint32,
    TensorProto.UINT64: np.uint64,
    TensorProto.COMPLEX64: np.complex64,
    TensorProto.COMPLEX128: np.complex128,
    TensorProto.BFLOAT16: ml_dtypes.bfloat16,
    TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    TensorProto.UINT4: ml_dtypes.uint4,
    TensorProto.INT4: ml_dtypes.int4,
    TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
}


@pytest.mark.parametrize("element", PLAIN, ids=lambda e: TensorProto.DataType.Name(e))
@pytest.mark.parametrize("count", [4, 4000])
def test_every_element_type_there_and_back(element, count):
    opset = 25 if element not in (TensorProto.COMPLEX64,) else 21
    data = models.model(
        [models.node("Identity", ["x"], ["y"])],
        [models.value("x", element, ["n"])],
        [models.value("y", element, ["n"])],
        opset=opset,
    )
    x = np.resize(np.array([0, 1, -1 if np.dtype(PLAIN[element]).name[0] not in "ub" else 1, 2]), count).astype(
        PLAIN[element]
    )
    (y,) = treadle.InferenceSession(data).run(None, {"x": x})
    assert y.dtype == x.dtype
    assert np.array_equal(y.view(np.uint8), x.view(np.uint8))


def test_narrow_elements_ignore_their_upper_bits():
    session = treadle.InferenceSession(
        models.model(
            [models.node("Cast", ["x"], ["y"], to=TensorProto.INT32)],
            [models.value("x", TensorProto.INT4, [3])],
            [models.value("y", TensorProto.INT32, [3])],
        )
    )
    x = np.array([0xF7, 0x0F, 0x88], np.uint8).view(ml_dtypes.int4)
    assert session.run(None, {"x": x})[0].tolist() == [7, -1, -8]


def test_strings():
    session = treadle.InferenceSession(models.identity(TensorProto.STRING))
    texts = ["", "abc", "größer", "日本"]
    for x in (texts, np.array(texts), np.array(texts, object), np.array([t.encode() for t in texts], object)):
        (y,) = session.run(None, {"x": x})
        assert y.dtype == object and y.tolist() == texts
    (y,) = session.run(None, {"x": np.array([b"\xff\xfe"], object)})
    assert session.run(None, {"x": y})[0].tolist() == y.tolist()


def tensor_type(element=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_type_proto(element, shape)


def test_sequences_are_lists():
    sequence = helper.make_sequence_type_proto(tensor_type())
    session = treadle.InferenceSession(models.of_type("Identity", sequence, sequence))
    given = [np.float32([1, 2]), np.zeros((0, 3), np.float32), np.float32(5)]
    (got,) = session.run(None, {"x": given})
    assert isinstance(got, list) and len(got) == 3
    for a, b in zip(given, got, strict=True):
        np.testing.assert_array_equal(a, b)
    assert session.run(None, {"x": []})[0] == []
    with pytest.raises(treadle.InvalidArgument):
        session.run(None, {"x": {"a": 1}})


def test_optionals_are_none_or_the_value():
    optional = helper.make_optional_type_proto(tensor_type())
    session = treadle.InferenceSession(models.of_type("Identity", optional, optional))
    assert session.run(None, {"x": None})[0] is None
    np.testing.assert_array_equal(session.run(None, {"x": np.float32([3])})[0], [3])


def test_dlpack_from_another_package():
    class Foreign:
        """Has only DLPack, like a tensor of torch or jax seen from outside."""

        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **_):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    session = treadle.InferenceSession(models.identity(TensorProto.FLOAT))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(session.run(None, {"x": Foreign(x)})[0], x)
    np.testing.assert_array_equal(session.run(None, {"x": Foreign(x[:, ::2])})[0], x[:, ::2])
    shared = treadle.OrtValue.from_dlpack(Foreign(x))
    assert shared.data_ptr() == x.ctypes.data
    np.testing.assert_array_equal(np.from_dlpack(shared), x)
    with pytest.raises(treadle.InvalidArgument):
        session.run(None, {"x": Foreign(x.astype(np.float64))})


def test_inputs_are_not_copied_and_not_kept():
    session = treadle.InferenceSession(models.identity(TensorProto.FLOAT))
    x = np.zeros(1000, np.float32)
    import sys

    before = sys.getrefcount(x)
    for _ in range(10):
        session.run(None, {"x": x})
    gc.collect()
    assert sys.getrefcount(x) == before
    value = treadle.OrtValue.ortvalue_from_numpy(x)
    assert sys.getrefcount(x) == before + 1
    address = x.__array_interface__["data"][0]
    assert value.data_ptr() == address
    del value
    assert sys.getrefcount(x) == before


def test_ort_value():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    value = treadle.OrtValue.ortvalue_from_numpy(x)
    assert value.shape() == [2, 3] and value.data_type() == "tensor(float)" and value.element_type() == 1
    assert value.is_tensor() and value.has_value() and value.device_name() == "cpu"
    assert value.tensor_size_in_bytes() == 24
    copy = value.numpy()
    copy[0, 0] = 9
    assert x[0, 0] == 0
    value.update_inplace(x + 1)
    assert x[0, 0] == 1
    with pytest.raises(treadle.InvalidArgument):
        value.update_inplace(x[0])
    empty = treadle.OrtValue.ortvalue_from_shape_and_type([2, 2], np.int64)
    assert empty.shape() == [2, 2] and empty.numpy().dtype == np.int64
    typed = treadle.OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([0x3F80], np.uint16), TensorProto.BFLOAT16)
    assert typed.numpy().astype(np.float32).tolist() == [1.0]
    session = treadle.InferenceSession(models.identity(TensorProto.FLOAT))
    (result,) = session.run_with_ort_values(["y"], {"x": treadle.OrtValue.ortvalue_from_numpy(x)})
    np.testing.assert_array_equal(result.numpy(), x)


def test_io_binding_writes_in_place():
    session = treadle.InferenceSession(models.add())
    x = np.ones((2, 3), np.float32)
    y = np.arange(3, dtype=np.float32)
    z = np.zeros((2, 3), np.float32)
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_input("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    binding.bind_output("z", "cpu", 0, np.float32, z.shape, z.ctypes.data)
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    np.testing.assert_array_equal(z, x + y)
    y += 1
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(z, x + y)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], z)
    binding.clear_binding_outputs()
    binding.bind_output("z")
    session.run_with_iobinding(binding, treadle.RunOptions())
    assert binding.get_outputs()[0].shape() == [2, 3]
    target = treadle.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    binding.bind_ortvalue_output("z", target)
    binding.bind_ortvalue_input("x", treadle.OrtValue.ortvalue_from_numpy(x * 2))
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(target.numpy(), 2 * x + y)
    with pytest.raises(treadle.InvalidArgument):
        binding.bind_output("q")
    with pytest.raises(treadle.InvalidArgument):
        binding.bind_input("x", "cuda", 0, np.float32, [1], 0)


def test_tensors_are_copied_into_others():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    source, target = (
        treadle.OrtValue.ortvalue_from_numpy(x),
        treadle.OrtValue.ortvalue_from_shape_and_type(x.shape, x.dtype),
    )
    treadle.copy_tensors([source], [target])
    np.testing.assert_array_equal(target.numpy(), x)
    with pytest.raises(treadle.InvalidArgument, match="same type and shape"):
        treadle.copy_tensors([treadle.OrtValue.ortvalue_from_numpy(x[:1])], [target])
    with pytest.raises(treadle.InvalidArgument, match="no streams"):
        treadle.copy_tensors([source], [target], object())


def test_arrays_of_values_that_numpy_cannot_share():
    texts = treadle.OrtValue.ortvalue_from_numpy(np.array(["a", "b"]))
    assert np.asarray(texts).tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="copy"):
        np.asarray(texts, copy=False)
    assert np.asarray(treadle.OrtValue.ortvalue_from_numpy(np.float32(3))).shape == ()
