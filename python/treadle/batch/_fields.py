"""Inputs and outputs of a model as a table sees them: type, sizes, and which axis the rows of a batch lie along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from .._errors import InvalidArgument
from .._ignored import suggestion

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .._session import InferenceSession

# A size is a number, the name that the model gives it, or None where the model leaves it open without a name.
Size: TypeAlias = int | str | None

_DTYPES: dict[str, type[Any]] = {
    "float": np.float32,
    "double": np.float64,
    "float16": np.float16,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "bool": np.bool_,
    "complex64": np.complex64,
    "complex128": np.complex128,
    "string": np.object_,
}


def _element(type_name: str) -> np.dtype[Any] | None:
    """The numpy type of a tensor's elements, object for strings; None for a type that no column of arrays can hold."""
    if not type_name.startswith("tensor("):
        return None
    name = type_name[len("tensor(") : -1]
    if name == "bfloat16":
        import ml_dtypes  # rare

        found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return found
    return np.dtype(_DTYPES[name]) if name in _DTYPES else None


class Field(NamedTuple):
    """An input or an output, and the column that it is read from or written to."""

    name: str
    column: str
    dtype: np.dtype[Any] | None  # None: no tensor (outputs only)
    sizes: tuple[Size, ...] | None  # None: the model does not say how many axes there are

    @property
    def is_text(self) -> bool:
        """Whether the elements are strings."""
        return self.dtype is not None and self.dtype.hasobject

    def of_rows(self, axis: int | None) -> str:
        """What a row has to be, for messages: "float32 [T, 40]", without the axis of the batch."""
        kind = "strings" if self.is_text else str(self.dtype)
        if self.sizes is None:
            return kind
        sizes = [size for i, size in enumerate(self.sizes) if i != axis]
        return f"{kind} [{', '.join('?' if size is None else str(size) for size in sizes)}]"


def fields_of(session: InferenceSession, role: int) -> dict[str, Field]:
    """Inputs that runs need (0), outputs (1) or inputs with a default (2), each with the column of its own name."""
    found: dict[str, Field] = {}
    for name, type_name, shape in session._engine.infos(role):
        sizes = None if shape is None else tuple(shape)
        found[name] = Field(name, name, _element(type_name), sizes)
    return found


def chosen(what: str, given: Mapping[str, str] | None, known: Mapping[str, Field]) -> list[Field]:
    """All inputs, or the outputs that `given` names, with the columns of `given`; all fields without `given`.

    InvalidArgument for names that the model lacks.
    """
    if given is None:
        return list(known.values())
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} is a dict from the model's names to columns, not a {type(given).__name__}")
    for name in given:
        if name not in known:
            told = ", ".join(known) or "nothing"
            raise InvalidArgument(
                f"{what}: there is no '{name}' to be in a column{suggestion(name, known)} (there is: {told})"
            )
    names = list(known) if what == "inputs" else list(given)
    return [known[name]._replace(column=given.get(name, name)) for name in names]


def is_open(size: Size) -> bool:
    """Whether runs may choose the size."""
    return not isinstance(size, int)


def named_axis(sizes: Sequence[Size], name: Size) -> int | None:
    """The first axis whose size the model calls `name`; None where there is none, or no name."""
    return next((i for i, size in enumerate(sizes) if isinstance(name, str) and size == name), None)


class Batch(NamedTuple):
    """How the axis of the rows is found in outputs."""

    name: Size  # of its size, in the inputs
    of_one: bool  # it may have a size that the model fixes at 1
    of_any: bool  # it may have a size that the model leaves open

    def axis(self, field: Field, skip: int | None = None) -> int | None:
        """The axis of the output that is called like the inputs' one, else the first that may be it; None: none may.

        `skip`: the axis of time.
        """
        if field.sizes is None:
            return 1 if skip == 0 else 0
        named = named_axis(field.sizes, self.name)
        if named is not None and named != skip:
            return named
        for i, size in enumerate(field.sizes):
            if i != skip and ((self.of_any and is_open(size)) or (self.of_one and size == 1)):
                return i
        return None


def without(sizes: Sequence[Size], axis: int | None) -> tuple[Size, ...]:
    """The sizes but for the one of `axis`."""
    return tuple(size for i, size in enumerate(sizes) if i != axis)


def shape_text(array: NDArray[Any]) -> str:
    """ "float64 [3, 40]", for messages."""
    kind = "strings" if array.dtype.kind in "OUT" else str(array.dtype)
    return f"{kind} [{', '.join(map(str, array.shape))}]"
