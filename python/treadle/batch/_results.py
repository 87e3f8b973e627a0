"""What rows give, as columns in the rows' order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import InvalidArgument
from ._columns import objects
from ._fields import Field, Size

if TYPE_CHECKING:
    from numpy.typing import NDArray


def located(error: Exception, row: int) -> Exception:
    """The same kind of error, whose message begins with the row."""
    try:
        found = type(error)(f"row {row}: {error}")
    except Exception:
        found = RuntimeError(f"row {row}: {type(error).__name__}: {error}")
    vars(found).update(vars(error))
    return found


class Result:
    """One column. Rows of sizes that the model fixes are an array, others an array of objects, whatever they turn out."""

    def __init__(self, field: Field, sizes: Sequence[Size] | None, rows: int) -> None:
        """`sizes`: of a row's result; None: not known."""
        self.field = field
        self._rows = rows
        self._sizes = sizes
        fixed = [size for size in sizes or () if isinstance(size, int)]
        self._shape = (
            tuple(fixed) if sizes is not None and len(fixed) == len(sizes) and field.dtype is not None else None
        )
        self._column: NDArray[Any] | None = None

    def _start(self) -> NDArray[Any]:
        if self._column is None:
            dtype = np.dtype(np.object_) if self._shape is None else self.field.dtype
            self._column = np.empty((self._rows, *(self._shape or ())), dtype)
        return self._column

    def put_all(self, values: Any) -> None:
        """What all rows give: an array whose first axis is theirs, or a list."""
        if self._shape is not None and isinstance(values, np.ndarray) and values.shape[1:] == self._shape:
            self._column = values
        else:
            self.put(range(self._rows), values)

    def put(self, rows: Sequence[int], values: Any) -> None:
        """What these rows give, in the same form."""
        column = self._start()
        if self._shape is None:
            entries = values if not isinstance(values, np.ndarray) or values.ndim > 1 else map(np.asarray, values)
            for row, value in zip(rows, entries, strict=True):
                column[row] = value
            return
        if isinstance(values, np.ndarray) and values.shape == (len(rows), *self._shape):
            column[list(rows)] = values
            return
        for row, value in zip(rows, values, strict=True):
            if value.shape != self._shape:
                raise InvalidArgument(
                    f"output '{self.field.name}' gave a row of sizes {list(value.shape)}, where the model says "
                    f"{list(self._shape)}"
                )
            column[row] = value

    def put_nothing(self, row: int) -> None:
        """Fills the place of a row that failed: NaN, 0, "" or False; of a ragged column an array without elements."""
        column, dtype = self._start(), self.field.dtype
        if self._shape is None:
            sizes = (0,) if self._sizes is None else tuple(size if isinstance(size, int) else 0 for size in self._sizes)
            column[row] = None if dtype is None else np.zeros(sizes, dtype)
        elif dtype is not None and dtype.hasobject:
            column[row] = ""
        else:
            column[row] = np.nan if dtype is not None and np.issubdtype(dtype, np.inexact) else 0

    def column(self) -> NDArray[Any]:
        """The column, once every row is in it."""
        return self._start()


class Table:
    """The columns of a batch while its rows run, and the errors of rows that failed."""

    def __init__(self, results: Sequence[Result], rows: int, keeps_errors: bool) -> None:
        """`keeps_errors`: the table holds the error of a row that fails; otherwise the error is raised."""
        self.results = results
        self.rows = rows
        self.keeps_errors = keeps_errors
        self.errors: dict[int, str] = {}

    def fail(self, row: int, error: Exception) -> None:
        """Keeps the row's error (the first one), or raises it."""
        if not self.keeps_errors:
            raise located(error, row) from error
        self.errors.setdefault(row, str(error) or type(error).__name__)

    def columns(self) -> dict[str, NDArray[Any]]:
        """A column for each output."""
        for result in self.results:
            for row in self.errors:
                result.put_nothing(row)
        return {result.field.column: result.column() for result in self.results}

    def error_column(self) -> NDArray[Any]:
        """Why each row failed; empty texts for rows that went well."""
        return objects([self.errors.get(row, "") for row in range(self.rows)])
