"""Columns of a batch as the rows that a model takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._errors import InvalidArgument
from ._fields import Field, is_open, shape_text, without

if TYPE_CHECKING:
    from numpy.typing import NDArray

    # The rows of a column: an array whose first axis is theirs, or one by one, None where a row is unfit.
    Rows: TypeAlias = NDArray[Any] | list[NDArray[Any] | None]

# Told of a row that is unfit, and why.
Refuse: TypeAlias = Callable[[int, Exception], None]


def column_of(batch: Mapping[str, Any], name: str, what_for: str) -> NDArray[Any]:
    """The column as an array; InvalidArgument where the batch lacks it or it has no rows at all."""
    try:
        column = batch[name]
    except KeyError:
        known = ", ".join(map(str, batch.keys())) or "none"
        raise InvalidArgument(f"the batch has no column '{name}', {what_for} (columns: {known})") from None
    found = column if isinstance(column, np.ndarray) else _listed(column)
    if found.ndim == 0:
        raise InvalidArgument(
            f"column '{name}' is a single {shape_text(found)}, not an array with an entry for each row"
        )
    return found


def _listed(column: Any) -> NDArray[Any]:
    """A list, or a series of another library; lists of arrays of unlike sizes become an array of objects."""
    if not isinstance(column, (list, tuple)):
        return np.asarray(column)
    if any(isinstance(row, (np.ndarray, list, tuple)) or row is None for row in column):
        return objects(column)
    return np.asarray(column)


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """An array of one dimension that holds the values as they are, also where these are arrays of equal sizes."""
    found = np.empty(len(values), np.object_)
    for i, value in enumerate(values):
        found[i] = value
    return found


def common_length(columns: Mapping[str, NDArray[Any]]) -> int:
    """How many rows there are; InvalidArgument where the columns do not agree."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"'{name}' has {length}" for name, length in lengths.items())
        raise InvalidArgument(f"the columns of a batch have as many rows each, found: {told}")
    return next(iter(lengths.values()), 0)


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, bytes))


def rows_of(field: Field, column: NDArray[Any], axis: int | None, refuse: Refuse) -> Rows:
    """The rows of a column, of the type that the model's input takes; `axis`: of the batch, in the input.

    A column whose type is wrong as a whole raises InvalidArgument; `refuse` is told of single rows of a ragged one.
    """
    if field.is_text:
        if column.dtype.kind in "UST" or (column.dtype.hasobject and all(map(_is_text, column.flat))):
            return column
    elif not column.dtype.hasobject:
        if column.dtype != field.dtype and len(column):
            raise InvalidArgument(
                f"column '{field.column}': input '{field.name}' takes rows of {field.of_rows(axis)}, found "
                f"{shape_text(column[0])}; give the column as {field.dtype}"
            )
        return column if column.dtype == field.dtype else column.astype(field.dtype)
    if column.ndim > 1:
        column = objects(list(column))
    together = _together(field, column, axis)
    if together is not None:
        return together
    return [_checked_row(field, i, row, axis, refuse) for i, row in enumerate(column)]


def _together(field: Field, column: NDArray[Any], axis: int | None) -> NDArray[Any] | None:
    """Rows that are arrays of one shape and of the right type as one array; None where they are not."""
    first = column[0] if len(column) else None
    if not isinstance(first, np.ndarray) or first.ndim == 0 or field.is_text:
        return None
    shape, dtype = first.shape, field.dtype
    if not all(isinstance(row, np.ndarray) and row.shape == shape and row.dtype == dtype for row in column):
        return None
    sizes = unfolded(field, first, axis).shape
    return np.concatenate(column).reshape(len(column), *sizes)


def _checked_row(field: Field, i: int, row: Any, axis: int | None, refuse: Refuse) -> NDArray[Any] | None:
    if isinstance(row, np.ndarray) and row.dtype == field.dtype and not field.is_text:
        return unfolded(field, row, axis)
    try:
        return unfolded(field, _as_array(field, row), axis)
    except (TypeError, ValueError, InvalidArgument) as e:
        found = shape_text(row) if isinstance(row, np.ndarray) else f"a {type(row).__name__}"
        why = str(e) if isinstance(e, InvalidArgument) else f"found {found}: {e}"
        refuse(i, InvalidArgument(f"column '{field.column}': input '{field.name}' takes {field.of_rows(axis)}, {why}"))
        return None


def _as_array(field: Field, row: Any) -> NDArray[Any]:
    """A row that is a list, a number, a text or nested arrays. Lists have no type of their own, arrays have."""
    if row is None:
        raise InvalidArgument("found nothing (None)")
    if field.is_text:
        found = np.asarray(row, np.object_)
        if not all(map(_is_text, found.flat)):
            raise InvalidArgument(f"found {shape_text(np.asarray(row))} with something else than strings in it")
        return found
    found, typed = _stacked(row)
    if found.dtype == field.dtype:
        return found
    if typed or field.dtype is None or not (found.size == 0 or np.can_cast(found.dtype, field.dtype, "same_kind")):
        raise InvalidArgument(f"found {shape_text(found)}")
    return found.astype(field.dtype)


def _stacked(row: Any) -> tuple[NDArray[Any], bool]:
    """Nested arrays and lists as one array, and whether a type was said: arrays have one, lists of numbers do not."""
    if not (isinstance(row, np.ndarray) and row.dtype.hasobject):
        return np.asarray(row), isinstance(row, (np.ndarray, np.generic))
    parts = [_stacked(part) for part in row]
    return (np.stack([part for part, _ in parts]) if parts else np.zeros(0)), any(typed for _, typed in parts)


def unfolded(field: Field, row: NDArray[Any], axis: int | None) -> NDArray[Any]:
    """A row that lies flat, put into its sizes where the model fixes all but one of them; else the row as it is."""
    if field.sizes is None or row.ndim != 1:
        return row
    sizes = without(field.sizes, axis)
    if len(sizes) < 2 or sum(map(is_open, sizes)) > 1:
        return row
    wanted = [-1 if is_open(size) else size for size in sizes]
    fixed = int(np.prod([size for size in sizes if isinstance(size, int)], dtype=np.int64))
    if fixed == 0 or row.size % fixed or (-1 not in wanted and row.size != fixed):
        return row
    return row.reshape([int(size) for size in wanted if isinstance(size, int)])


def check_sizes(field: Field, shape: tuple[int, ...], axis: int | None) -> None:
    """InvalidArgument where a row of these sizes is none that the input takes. `axis` None: the row is all of it."""
    if field.sizes is None:
        return
    sizes = without(field.sizes, axis)
    alike = len(sizes) == len(shape)
    if alike and all(is_open(size) or size == found for size, found in zip(sizes, shape, strict=True)):
        return
    raise InvalidArgument(
        f"column '{field.column}': input '{field.name}' takes {field.of_rows(axis)}, found {field.dtype} "
        f"[{', '.join(map(str, shape))}]"
    )
