"""Predictors over Arrow's record batches, as Spark's mapInArrow hands them to Python."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ._columns import objects
from ._predictor import Predictor

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from .._session import InferenceSession
    from .._types import PathOrBytes
    from ._keywords import PredictorKeywords


class ArrowFunction:
    """A function from record batches to record batches; made by `arrow`. It pickles by the arguments of its predictor."""

    def __init__(self, predictor: Predictor) -> None:
        """`predictor`: runs the batches."""
        self._predictor = predictor

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """A record batch for each one that has rows: kept columns as they are, and a column for each output.

        Rows of arrays become lists, of several axes lists of lists. Needs pyarrow. Errors are those of the predictor.
        """
        pyarrow = _pyarrow()
        kept = set(self._predictor.keep)
        for batch in batches:
            if batch.num_rows == 0:  # nothing that a type could be told from
                continue
            names = batch.schema.names
            given = {name: to_numpy(batch.column(name)) for name in self._predictor.reads if name in names}
            # Kept columns stay Arrow's: numbers of their rows stand for them on the way.
            stand_in = {name: np.arange(batch.num_rows) for name in kept if name in names and name not in given}
            found = self._predictor({**given, **stand_in})
            columns = [batch.column(name) if name in kept else to_arrow(column) for name, column in found.items()]
            yield pyarrow.RecordBatch.from_arrays(columns, names=list(found))

    def __repr__(self) -> str:
        """What it is a function over."""
        return f"<treadle.batch.ArrowFunction over {self._predictor!r}>"


def arrow(model: PathOrBytes | InferenceSession, **arguments: Unpack[PredictorKeywords]) -> ArrowFunction:
    """A function over Arrow's record batches for Spark: `table.mapInArrow(arrow("model.onnx"), schema)`.

    Arguments and errors are those of `Predictor`.
    """
    return ArrowFunction(Predictor(model, **arguments))


def _pyarrow() -> Any:
    return importlib.import_module("pyarrow")


def to_numpy(column: Any) -> NDArray[Any]:
    """An Arrow array with an entry for each row; rows of lists as arrays (None where there is no list)."""
    pyarrow = _pyarrow()
    kind = column.type
    if isinstance(column, pyarrow.ExtensionArray):
        return to_numpy(column.storage)
    if pyarrow.types.is_fixed_size_list(kind) and not column.null_count:
        inner = to_numpy(column.flatten())
        return inner.reshape(len(column), kind.list_size, *inner.shape[1:])
    if pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind):
        values = to_numpy(column.flatten())
        ends = np.cumsum([0, *column.value_lengths().fill_null(0).to_pylist()])
        rows: list[Any] = [values[begin:end] for begin, end in zip(ends[:-1], ends[1:], strict=True)]
        for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)):
            rows[row] = None
        return objects(rows)
    if column.null_count or pyarrow.types.is_fixed_size_list(kind):
        return objects(column.to_pylist())
    found: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return found


def to_arrow(column: NDArray[Any]) -> Any:
    """The Arrow array of a column that has rows: rows of arrays as lists, of lists where they have several axes."""
    pyarrow = _pyarrow()
    ragged = column.dtype.hasobject and any(isinstance(row, np.ndarray) for row in column.flat)
    if column.ndim == 1 and not ragged:
        return pyarrow.array(column.tolist() if column.dtype.hasobject else column)
    rows = [np.asarray(row) for row in column]
    flat = np.concatenate([row.ravel() for row in rows])
    values = pyarrow.array(flat.tolist(), pyarrow.string()) if flat.dtype.hasobject else pyarrow.array(flat)
    for axis in reversed(range(rows[0].ndim)):
        lengths = [length for row in rows for length in [row.shape[axis]] * math.prod(row.shape[:axis])]
        values = pyarrow.ListArray.from_arrays(np.cumsum([0, *lengths], dtype=np.int32), values)
    return values
