"""Types that signatures name. Type checkers read this module; running programs import it only by asking for it."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypedDict, TypeVar

from numpy.typing import ArrayLike, DTypeLike, NDArray


class SupportsDLPack(Protocol):
    """An array of another library (torch, jax, an OrtValue), whose memory can be read."""

    def __dlpack__(self) -> Any:
        """A DLPack capsule."""
        ...

    def __dlpack_device__(self) -> tuple[Any, int]:
        """Type and number of the device that the memory is on."""
        ...


class Serializable(Protocol):
    """A message of protobuf's: an onnx.ModelProto, GraphProto, FunctionProto, NodeProto."""

    def SerializeToString(self) -> bytes:
        """The bytes of the message."""
        ...


# A message whose type the result has as well.
Message = TypeVar("Message", bound=Serializable)

# The name of a stream of a pool.
Key = TypeVar("Key", bound=Hashable)

# The path of a model, or the bytes of one.
PathOrBytes: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview

# The types that an input may have. None is an empty optional; sequences hold values, dicts are maps.
InputValue: TypeAlias = (
    ArrayLike | SupportsDLPack | None | Sequence["InputValue"] | Mapping[str, "InputValue"] | Mapping[int, "InputValue"]
)

# An array of any element type, where nothing is converted: the memory of one is read or written in place.
AnyArray: TypeAlias = NDArray[Any]

# The types of an output. Nearly always it is an array, so type checkers check uses as of an array. A sequence is a list, a
# map is a dict, an empty optional is None; only the model says which, so `Any` permits these uses.
OutputValue: TypeAlias = NDArray[Any] | Any

# An element type: ONNX's number of it, or anything that numpy takes for one.
ElementType: TypeAlias = DTypeLike | int

# The name of an execution provider, alone or with its options.
Provider: TypeAlias = str | tuple[str, Mapping[str, Any]]


class OtherKeywords(TypedDict, total=False):
    """Keywords of onnxruntime's sessions that its documentation does not name."""

    disabled_optimizers: Sequence[str] | None
    enable_fallback: bool
    read_config_from_model: bool | int | None


class NodeTime(TypedDict):
    """The time of one node in a profile: the median over its runs, without interrupted runs."""

    node: str  # its name; empty for work outside of nodes
    op: str
    method: str  # how its kernel computes, as in "direct"; empty where there is one way
    loop: str  # that it stands in; empty outside of loops
    is_glue: bool  # copies, jumps and back edges
    count: int  # how often it ran
    ns: float  # nanoseconds of all these together
    least_ns: float  # in the fastest run
    most_ns: float  # in the slowest run
