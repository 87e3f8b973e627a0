"""What onnxruntime's extension module offers below its Python classes: bindings by inner sessions, and tests of capsules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core
from ._devices import OrtDevice
from ._session import InnerSession
from ._values import IOBinding, OrtValueVector

if TYPE_CHECKING:
    from ._types import InputValue


def is_dlpack_uint8_tensor(capsule: Any, /) -> bool:
    """Whether a DLPack capsule holds a tensor of uint8; treadle's own capsules of bool do not.

    TypeError for what is no such capsule.
    """
    return _core.is_uint8_dlpack(capsule)


class SessionIOBinding(IOBinding):
    """An IOBinding by `InferenceSession._sess`, whose methods take devices as objects."""

    def __init__(self, session: InnerSession) -> None:
        super().__init__(session._session)

    def bind_input(self, name: str, value: InputValue | OrtDevice, *memory: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
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
        """The outputs of the last run, in the order in which they were bound."""
        return self.get_outputs_as_ortvaluevector()
