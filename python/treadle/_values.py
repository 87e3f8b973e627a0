"""OrtValue and IOBinding: values that stay in the engine's hands between runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from . import _core
from ._devices import OrtDevice, OrtMemoryInfo, check_is_cpu
from ._errors import InvalidArgument
from ._model import NodeArg

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from ._options import RunOptions
    from ._types import ElementType, InputValue, OutputValue

_TENSOR, _SEQUENCE = 1, 2
_STRING, _BOOL = 8, 9
# Element types that numpy stores in another layout than the engine: strings, and types narrower than a byte.
_NOT_BY_BYTES = frozenset((_STRING, 21, 22, 23, 25, 26, 27, 28))


def _element(element_type: ElementType) -> int:
    """ONNX's number of an element type, given as such or as a numpy type."""
    if isinstance(element_type, (int, np.integer)) and not isinstance(element_type, bool):
        return int(element_type)
    return int(_core.element_of_dtype(element_type))


class OrtValue:
    """A value of any kind. Tensors may share their memory with a numpy array."""

    def __init__(self, value: _core.Value | OrtValue, numpy_obj: object = None, session: object = None) -> None:
        self._value: _core.Value = value._value if isinstance(value, OrtValue) else value
        # The owners of the memory, if the value itself keeps no reference to them.
        self._owners = (numpy_obj, session)

    @property
    def _ortvalue(self) -> OrtValue:
        """The value itself, which is onnxruntime's inner value as well."""
        return self

    def _get_c_value(self) -> OrtValue:
        return self

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: ArrayLike, /, device_type: str | OrtDevice = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """Shares the array's memory when that is contiguous; InvalidArgument for devices that there are not."""
        check_is_cpu(device_type)
        return cls(_core.Value.from_object(numpy_obj, True))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: ArrayLike, /, onnx_element_type: int) -> OrtValue:
        """The array's bytes as elements of another type of equal width."""
        data = np.ascontiguousarray(data)
        shared = _core.Value.of_shape(int(onnx_element_type), list(data.shape))
        if shared.bytes != data.nbytes:
            raise ValueError(f"an array of {data.dtype} does not hold elements of type {onnx_element_type}")
        np.asarray(_Memory(shared))[...] = data.reshape(-1).view(np.uint8)
        return cls(shared)

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: ElementType,
        device_type: str | OrtDevice = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: OrtMemoryInfo | None = None,
    ) -> OrtValue:
        """A new tensor of these sizes, whose elements are not set; InvalidArgument for element types and devices that there are not."""
        check_is_cpu(device_type if memory_info is None else memory_info._device())
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
        """On the tensor's memory where numpy can read that, unless a copy is asked for; ValueError where none is allowed."""
        view = None if copy else self._view()
        array = np.asarray(self.numpy()) if view is None else view
        wanted = array.dtype if dtype is None else np.dtype(dtype)
        if copy is False and (view is None or wanted != array.dtype):
            raise ValueError(f"the array of {self!r} as {wanted} is a copy")
        return array if wanted == array.dtype else array.astype(wanted)

    def _view(self) -> NDArray[Any] | None:
        """The tensor's memory as an array, which may be written to where nothing else shares the memory.

        None for strings, for elements that are narrower than a byte, and for what is no tensor.
        """
        if not self.is_tensor() or self._value.element in _NOT_BY_BYTES:
            return None
        dtype = np.dtype(_core.Value.of_shape(self._value.element, [0]).numpy().dtype)
        shape = self._value.shape
        if not self._value.bytes:
            return np.empty(shape, dtype)
        view: NDArray[Any] = np.asarray(_Memory(self._value)).view(dtype).reshape(shape)
        return view

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


class _Memory:
    """The bytes of a tensor as numpy takes them; an array on them keeps the tensor."""

    def __init__(self, value: _core.Value) -> None:
        self._value = value
        self.__array_interface__ = {
            "version": 3,
            "shape": (value.bytes,),
            "typestr": "|u1",
            "data": (value.address, not value.writable),
        }


def _borrowed(element_type: ElementType, shape: Sequence[int], address: int) -> _core.Value:
    """A tensor on a caller's memory; RuntimeError for strings, which have no memory that could be lent."""
    element = _element(element_type)
    if element == _STRING:
        raise RuntimeError(
            "Only binding non-string Tensors is currently supported: bind_cpu_input and bind_ortvalue_input take strings"
        )
    return _core.Value.from_memory(element, [int(d) for d in shape], address)


class OrtValueVector:
    """Values in a row, which grow at the end."""

    def __init__(self, values: Iterable[OrtValue] = ()) -> None:
        self._values = list(values)

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> OrtValue:
        return self._values[index]

    def __iter__(self) -> Iterator[OrtValue]:
        return iter(self._values)

    def __repr__(self) -> str:
        """The values."""
        return f"<treadle.OrtValueVector {self._values}>"

    def push_back(self, value: OrtValue | Any, is_bool_tensor: bool = False) -> None:
        """Appends a value, or the tensor of a DLPack capsule or of an object with `__dlpack__`."""
        self._values.append(value if isinstance(value, OrtValue) else OrtValue.from_dlpack(value, is_bool_tensor))

    def push_back_batch(
        self,
        tensors: Sequence[Any],
        data_ptrs: Sequence[int],
        element_types: Sequence[ElementType],
        shapes: Sequence[Sequence[int]],
        devices: Sequence[OrtDevice],
    ) -> None:
        """Appends a tensor for each address, on the memory there, and keeps the objects in `tensors`, whose memory it is.

        InvalidArgument for devices other than the CPU, ValueError where the sequences differ in length.
        """
        rows = zip(tensors, data_ptrs, element_types, shapes, devices, strict=True)
        values = []
        for owner, address, element_type, shape, device in rows:
            check_is_cpu(device)
            values.append(OrtValue(_borrowed(element_type, shape, address), owner))
        self._values += values

    def reserve(self, size: int, /) -> None:
        """Has nothing to do: the vector grows by itself."""

    def shrink_to_fit(self) -> None:
        """Has nothing to do: the vector has no spare room."""

    def element_type_at(self, index: int) -> int:
        """ONNX's number of the element type of one tensor."""
        return self._values[index].element_type()

    def bool_tensor_indices(self) -> list[int]:
        """Which of the values are tensors of bool."""
        return [i for i, value in enumerate(self._values) if value.is_tensor() and value.element_type() == _BOOL]

    def dlpack_at(self, index: int) -> Any:
        """A DLPack capsule that shares the memory of one tensor."""
        return self._values[index].to_dlpack()

    def to_dlpacks(self, to_tensor: Callable[[Any], Any] | None = None) -> list[Any]:
        """A DLPack capsule of each tensor; with `to_tensor`, its results for the capsules."""
        capsules = [value.to_dlpack() for value in self._values]
        return capsules if to_tensor is None else [to_tensor(capsule) for capsule in capsules]


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: None = None) -> None:
    """Copies each tensor into its counterpart of the same type and shape; InvalidArgument where these differ.

    RuntimeError where there are not as many of the one as of the other. There are no streams of a device.
    """
    if stream is not None:
        raise InvalidArgument("there are no streams of a device: tensors are copied when copy_tensors returns")
    if len(src) != len(dst):
        raise RuntimeError(f"Invalid arguments provided to CopyTensors: {len(src)} tensors to copy into {len(dst)}")
    for source, target in zip(src, dst, strict=True):
        target._value.write(source._value)


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
        device_type: str | OrtDevice,
        device_id: int,
        element_type: ElementType,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Feeds the memory at an address: `shape` elements of a type, row by row, that live until the runs are over.

        InvalidArgument for names, devices and types that there are not, RuntimeError for strings.
        """
        check_is_cpu(device_type)
        self._check("input", name)
        self._inputs[name] = _borrowed(element_type, shape, buffer_ptr)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Feeds a value; InvalidArgument where the model has no such input."""
        self._check("input", name)
        self._inputs[name] = ortvalue._value

    def bind_output(
        self,
        name: str,
        device_type: str | OrtDevice = "cpu",
        device_id: int = 0,
        element_type: ElementType | None = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Without a buffer the engine allocates."""
        check_is_cpu(device_type)
        self._check("output", name)
        if buffer_ptr is None:
            self._outputs[name] = None
            return
        if element_type is None or shape is None:
            raise ValueError("a buffer needs `element_type` and `shape`")
        self._outputs[name] = _borrowed(element_type, shape, buffer_ptr)

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
        """The outputs of the last run, in the order in which they were bound."""
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        """`get_outputs` as an OrtValueVector."""
        return OrtValueVector(self._results)

    def copy_outputs_to_cpu(self) -> list[OutputValue]:
        """Copies of the outputs of the last run, in the order in which they were bound."""
        return [value.numpy() for value in self._results]

    def clear_binding_inputs(self) -> None:
        """Unbinds all inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Unbinds all outputs, and drops the outputs of the last run."""
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
