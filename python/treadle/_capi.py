"""What onnxruntime's extension module offers below its Python classes: vectors of values, and sessions and bindings by it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from ._devices import OrtDevice, OrtEpDevice, OrtMemoryInfo, check_is_cpu
from ._errors import InvalidArgument
from ._values import IOBinding, OrtValue, _borrowed

if TYPE_CHECKING:
    from ._model import ModelMetadata, NodeArg
    from ._options import RunOptions, SessionOptions
    from ._session import InferenceSession
    from ._types import ElementType, InputValue, OutputValue

_BOOL = 9


def is_dlpack_uint8_tensor(capsule: Any, /) -> bool:
    """Whether a DLPack capsule holds a tensor of uint8; treadle's own capsules of bool do not.

    TypeError for what is no such capsule.
    """
    return _core.is_uint8_dlpack(capsule)


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
        """A DLPack capsule of each tensor, or what `to_tensor` makes of the capsules."""
        capsules = [value.to_dlpack() for value in self._values]
        return capsules if to_tensor is None else [to_tensor(capsule) for capsule in capsules]


class Session:
    """A session as onnxruntime's extension has it: `InferenceSession._sess`."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    @property
    def inputs_meta(self) -> list[NodeArg]:
        """`InferenceSession.get_inputs`."""
        return self._session.get_inputs()

    @property
    def outputs_meta(self) -> list[NodeArg]:
        """`InferenceSession.get_outputs`."""
        return self._session.get_outputs()

    @property
    def overridable_initializers(self) -> list[NodeArg]:
        """`InferenceSession.get_overridable_initializers`."""
        return self._session.get_overridable_initializers()

    @property
    def model_meta(self) -> ModelMetadata:
        """`InferenceSession.get_modelmeta`."""
        return self._session.get_modelmeta()

    @property
    def session_options(self) -> SessionOptions:
        """`InferenceSession.get_session_options`."""
        return self._session.get_session_options()

    @property
    def input_meminfos(self) -> list[OrtMemoryInfo]:
        """`InferenceSession.get_input_memory_infos`."""
        return self._session.get_input_memory_infos()

    @property
    def output_meminfos(self) -> list[OrtMemoryInfo]:
        """`InferenceSession.get_output_memory_infos`."""
        return self._session.get_output_memory_infos()

    @property
    def input_epdevices(self) -> list[OrtEpDevice]:
        """`InferenceSession.get_input_epdevices`."""
        return self._session.get_input_epdevices()

    def get_providers(self) -> list[str]:
        """`InferenceSession.get_providers`."""
        return self._session.get_providers()

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """`InferenceSession.get_provider_options`."""
        return self._session.get_provider_options()

    def end_profiling(self) -> str:
        """`InferenceSession.end_profiling`."""
        return self._session.end_profiling()

    @property
    def get_profiling_start_time_ns(self) -> int:
        """`InferenceSession.get_profiling_start_time_ns`, which is a number here, as in onnxruntime."""
        return self._session.get_profiling_start_time_ns()

    def run(
        self,
        output_names: Sequence[str],
        input_feed: Mapping[str, InputValue],
        run_options: RunOptions | None = None,
    ) -> list[OutputValue]:
        """`InferenceSession.run`."""
        return self._session.run(output_names, input_feed, run_options)

    def run_with_ort_values(
        self, input_feed: Mapping[str, OrtValue], output_names: Sequence[str], run_options: RunOptions | None = None
    ) -> OrtValueVector:
        """`InferenceSession.run_with_ort_values`, with the feed first; InvalidArgument where no output is named."""
        if not output_names:
            raise InvalidArgument("At least one output should be requested.")
        return OrtValueVector(self._session.run_with_ort_values(output_names, input_feed, run_options))

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: OrtValueVector,
        fetch_names: Sequence[str],
        fetches: OrtValueVector,
        fetch_devices: Sequence[OrtDevice],
    ) -> None:
        """`InferenceSession.run_with_ortvaluevector`."""
        self._session.run_with_ortvaluevector(run_options, feed_names, feeds, fetch_names, fetches, fetch_devices)

    def run_with_iobinding(self, binding: IOBinding, run_options: RunOptions | None = None) -> None:
        """`InferenceSession.run_with_iobinding`."""
        self._session.run_with_iobinding(binding, run_options)


class SessionIOBinding(IOBinding):
    """An IOBinding by `InferenceSession._sess`, whose methods take devices as objects."""

    def __init__(self, session: Session) -> None:
        super().__init__(session._session)

    def bind_input(self, name: str, value: InputValue | OrtDevice, *memory: Any) -> None:  # type: ignore[override]
        """Feeds an array; or by device, element type, shape and address the memory there."""
        if isinstance(value, OrtDevice):
            super().bind_input(name, value, value.device_id(), *memory)
        elif memory:
            raise TypeError("an input is bound to an array, or to a device, element type, shape and address")
        else:
            self.bind_cpu_input(name, value)

    def bind_output(self, name: str, device: OrtDevice, *memory: Any) -> None:  # type: ignore[override]
        """Leaves the memory to the engine, or by element type, shape and address has runs write there."""
        super().bind_output(name, device, device.device_id(), *memory)

    def get_outputs(self) -> OrtValueVector:  # type: ignore[override]
        """Of the last run, in the order in which outputs were bound."""
        return self.get_outputs_as_ortvaluevector()
