"""OrtValue and IOBinding: values that stay in the engine's hands between runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from . import _core
from ._errors import InvalidArgument
from ._model import NodeArg

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from ._options import RunOptions
    from ._types import ElementType, InputValue, OutputValue

_TENSOR, _SEQUENCE = 1, 2


def _element(element_type: ElementType) -> int:
    """ONNX's number of an element type, given as such or as a numpy type."""
    if isinstance(element_type, (int, np.integer)) and not isinstance(element_type, bool):
        return int(element_type)
    return int(_core.element_of_dtype(element_type))


def _check_device(device_type: str) -> None:
    if str(device_type).lower() != "cpu":
        raise InvalidArgument(f"there is no device '{device_type}', only 'cpu'")


class OrtDevice:
    """The CPU; InvalidArgument for the name of any other device."""

    def __init__(self, name: str = "cpu", device_id: int = 0) -> None:
        _check_device(name)
        self._name = name
        self._id = device_id

    def __repr__(self) -> str:
        """As it is made."""
        return f"OrtDevice({self._name!r}, {self._id})"

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """The device of this name; InvalidArgument for any but "cpu"."""
        return OrtDevice(ort_device_name, device_id)

    def device_id(self) -> int:
        """The number that the device was made with."""
        return self._id

    def device_type(self) -> int:
        """0: a CPU, in onnxruntime's numbers."""
        return 0

    def device_vendor_id(self) -> int:
        """0: no vendor in particular."""
        return 0

    def device_mem_type(self) -> int:
        """0: ordinary memory."""
        return 0


class OrtValue:
    """A value of any kind. Tensors may share their memory with a numpy array."""

    def __init__(self, value: _core.Value) -> None:
        self._value = value

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: ArrayLike, /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """Shares the array's memory when that is contiguous."""
        _check_device(device_type)
        return cls(_core.Value.from_object(numpy_obj, True))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: ArrayLike, /, onnx_element_type: int) -> OrtValue:
        """The array's bytes as elements of another type of equal width."""
        data = np.ascontiguousarray(data)
        shared = _core.Value.of_shape(int(onnx_element_type), list(data.shape))
        if shared.bytes != data.nbytes:
            raise ValueError(f"an array of {data.dtype} does not hold elements of type {onnx_element_type}")
        _memory(shared)[...] = data.reshape(-1).view(np.uint8)
        return cls(shared)

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: ElementType,
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: Any = None,
    ) -> OrtValue:
        """A new tensor of these sizes, whose elements are not set; InvalidArgument for element types and devices that there are not."""
        _check_device(device_type)
        return cls(_core.Value.of_shape(_element(element_type), [int(d) for d in shape]))

    @classmethod
    def from_dlpack(cls, data: Any, /, is_bool_tensor: bool = False) -> OrtValue:
        """From an object with `__dlpack__`, or a capsule."""
        value = cls(_core.Value.from_dlpack(data))
        if is_bool_tensor and value.element_type() == 2:
            return cls(_core.Value.from_object(value.numpy().astype(bool), False))
        return value

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if dl_device is not None and (int(dl_device[0]), dl_device[1]) != self.__dlpack_device__():
            raise BufferError(f"values are in the CPU's memory, not on device {dl_device}")
        return _core.Value.from_object(self.numpy(), False).dlpack() if copy else self._value.dlpack()

    def to_dlpack(self) -> Any:
        """A DLPack capsule that shares the tensor's memory."""
        return self._value.dlpack()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("the array of an OrtValue is a copy")
        array = np.asarray(self.numpy())
        return array if dtype is None else array.astype(dtype)

    def __reduce__(self) -> tuple[Callable[[bytes], OrtValue], tuple[bytes]]:
        """A tensor as the bytes of a TensorProto; TypeError for other kinds."""
        if not self.is_tensor():
            raise TypeError(f"only tensors can be pickled, and this is {self!r}: pickle what `numpy` gives")
        return _of_proto, (self._value.to_pb(""),)

    def __repr__(self) -> str:
        """Element type and sizes, or the kind of value."""
        return f"<treadle.OrtValue {self._value.type_text or 'without a value'}>"

    def numpy(self) -> OutputValue:
        """A copy: an array, a list for a sequence, a dict for a map, None for an empty optional."""
        return self._value.numpy()

    def to_list(self) -> list[OutputValue]:
        """A sequence as a list of its elements."""
        values: list[OutputValue] = self._value.numpy()
        return values

    def update_inplace(self, np_arr: ArrayLike) -> None:
        """Copies an array of the same type and shape into the tensor; InvalidArgument for another."""
        self._value.write(np_arr)

    def data_ptr(self) -> int:
        """The address of the tensor's memory, valid while the value lives."""
        return self._value.address

    def device_name(self) -> str:
        """ "cpu"."""
        return "cpu"

    def shape(self) -> list[int]:
        """The tensor's sizes."""
        return self._value.shape

    def data_type(self) -> str:
        """As in NodeArg.type: "tensor(float)"."""
        return self._value.type_text.split("[")[0]

    def element_type(self) -> int:
        """ONNX's number of the tensor's element type: 1 for float32, 7 for int64."""
        return self._value.element

    def tensor_size_in_bytes(self) -> int:
        """Bytes of the tensor's elements; 0 for strings."""
        return self._value.bytes

    def has_value(self) -> bool:
        """Whether there is one: an empty optional has none."""
        return self._value.kind != 0 and (self._value.kind != 3 or self._value.numpy() is not None)

    def is_tensor(self) -> bool:
        """Whether the value is a tensor."""
        return self._value.kind == _TENSOR

    def is_sparse_tensor(self) -> bool:
        """False: there are no sparse tensors."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Whether the value is a sequence."""
        return self._value.kind == _SEQUENCE


def _of_proto(message: bytes) -> OrtValue:
    return OrtValue(_core.Value.from_pb(message))


def _tensor_type(value: _core.Value | None) -> str | None:
    """Element type and sizes; None where no tensor is there."""
    return value.type_text if value is not None and value.kind == _TENSOR else None


def _memory(value: _core.Value) -> NDArray[np.uint8]:
    """The bytes of a tensor, to write to while `value` lives."""
    import ctypes

    return np.frombuffer(memoryview((ctypes.c_uint8 * value.bytes).from_address(value.address)), np.uint8)


class _Bindable(Protocol):
    """What binding asks of a session: the values that there are."""

    def get_outputs(self) -> list[NodeArg]: ...

    def _all_inputs(self) -> list[NodeArg]: ...


class IOBinding:
    """Inputs and outputs fixed in place, so that runs copy nothing."""

    def __init__(self, session: _Bindable) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, _core.Value | None] = {}
        self._kept: dict[str, Any] = {}
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: InputValue) -> None:
        """Feeds an array, whose memory is read by later runs; InvalidArgument where the model has no such input."""
        self._check("input", name)
        self._inputs[name] = arr_on_cpu

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: ElementType,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Feeds the memory at an address: `shape` elements of a type, row by row, that live until the runs are over.

        InvalidArgument for names, devices and types that there are not.
        """
        _check_device(device_type)
        self._check("input", name)
        self._inputs[name] = _core.Value.from_memory(_element(element_type), [int(d) for d in shape], buffer_ptr)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Feeds a value; InvalidArgument where the model has no such input."""
        self._check("input", name)
        self._inputs[name] = ortvalue._value

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: ElementType | None = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Without a buffer the engine allocates."""
        _check_device(device_type)
        self._check("output", name)
        if buffer_ptr is None:
            self._outputs[name] = None
            return
        if element_type is None or shape is None:
            raise ValueError("a buffer needs `element_type` and `shape`")
        self._outputs[name] = _core.Value.from_memory(_element(element_type), [int(d) for d in shape], buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Has runs write into a value; InvalidArgument where the model has no such output."""
        self._check("output", name)
        self._outputs[name] = ortvalue._value

    def __repr__(self) -> str:
        """Names of the inputs and outputs that are bound."""
        bound = [("inputs", self._inputs), ("outputs", self._outputs)]
        texts = [f"{what} {', '.join(names)}" for what, names in bound if names]
        return f"<treadle.IOBinding: {'; '.join(texts) or 'nothing is bound'}>"

    def synchronize_inputs(self) -> None:
        """Memory of the CPU needs no waiting for."""

    def synchronize_outputs(self) -> None:
        """Memory of the CPU needs no waiting for."""

    def get_outputs(self) -> list[OrtValue]:
        """Of the last run, in the order in which outputs were bound."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[OutputValue]:
        """Copies of the outputs of the last run, in the order in which they were bound."""
        return [value.numpy() for value in self._results]

    def clear_binding_inputs(self) -> None:
        """Forgets what inputs are bound to."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forgets what outputs are bound to, and the outputs of the last run."""
        self._outputs.clear()
        self._results = []

    def _check(self, role: str, name: str) -> None:
        known = self._session.get_outputs() if role == "output" else self._session._all_inputs()
        if all(info.name != name for info in known):
            raise InvalidArgument(f"the model has no {role} '{name}'")

    def _run(self, run_values: Callable[..., Any], run_options: RunOptions | None) -> None:
        names = list(self._outputs)
        given = list(self._outputs.values())
        if not names:
            names = [info.name for info in self._session.get_outputs()]
            given = [None] * len(names)
        bound = [_tensor_type(buffer) for buffer in given]
        values = run_values(names, self._inputs, given, run_options)
        for name, value, buffer, wanted in zip(names, values, given, bound, strict=True):
            if buffer is None:
                continue
            if wanted is not None and wanted != _tensor_type(value):
                raise RuntimeError(
                    f"Error in execution: output '{name}' is bound to {wanted}, but is {value.type_text}"
                )
            if buffer.bytes and value.address != buffer.address:
                buffer.write(value)
        self._results = [OrtValue(value) for value in values]
