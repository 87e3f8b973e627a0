"""Fixed sizes of a model's inputs that become open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from . import _core
from ._model import model_source

if TYPE_CHECKING:
    from ._types import Message, PathOrBytes


@overload
def open_sizes(model: PathOrBytes, *sizes: str) -> bytes: ...
@overload
def open_sizes(model: Message, *sizes: str) -> Message: ...
def open_sizes(model: Any, *sizes: str) -> Any:
    """The model with fixed sizes of its inputs opened: a ModelProto for a ModelProto, else bytes.

    Nodes that hold an old size in a constant follow where one meaning is certain: the shape of a Reshape or Expand, the
    first state of a recurrence or loop, what is declared of a value. Inference at two and at three times the old sizes
    agrees with the result.

    model: a path, bytes or a ModelProto
    sizes: "frames:0=batch" makes axis 0 of the input frames a size of any value, called batch

    Raises InvalidArgument for an input, axis or symbol that does not fit, and InvalidGraph with all nodes that stand in
    the way. `treadle convert --open` does the same, and runs the model with both sizes.
    """
    opened, _ = _core.open_sizes(*model_source(model), list(sizes))
    return type(model).FromString(opened) if hasattr(model, "SerializeToString") else opened
