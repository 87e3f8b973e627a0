"""Rows run together as the entries of a batch: those of equal sizes, or padded ones with their lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import InvalidArgument
from ._columns import check_sizes, rows_of
from ._fields import Batch, Field, is_open, named_axis, shape_text, without
from ._results import Result, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .._session import InferenceSession
    from ._columns import Rows

# Told how many more rows are done.
Tell = Callable[[int], object]

# Padded rows run together unless they are shorter than this part of the longest, and there are some of them by then.
_WORTH_PADDING = 0.75
_FEW = 16


class NotARowEach(InvalidArgument):
    """An output of a run over several rows does not have an entry for each: no fault of any one row."""


class Runner:
    """Runs of one model over rows; every input and output has an entry for each row along its batch axis."""

    def __init__(
        self,
        session: InferenceSession,
        inputs: Sequence[Field],
        outputs: Sequence[Field],
        bound: Mapping[str, Any],
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self._session = session
        self._bound = bound
        self._names = [field.name for field in outputs]
        first = [field.sizes[0] for field in inputs if field.sizes]
        single = next((field for field in inputs if field.sizes and field.sizes[0] == 1), None)
        name = next((size for size in first if isinstance(size, str)), None)
        self.batch = Batch(name, of_one=single is not None, of_any=single is None)
        self.axes = [self.batch.axis(field) for field in outputs]
        self.why_single = self._why_single(single)

    def _why_single(self, single: Field | None) -> str:
        if single is not None:
            return f"input '{single.name}' takes one row: the size of its first axis is 1"
        for field, axis in zip(self.outputs, self.axes, strict=True):
            if axis is None:
                return f"output '{field.name}' has no axis whose size may be the number of rows"
        return ""

    def run(self, columns: Mapping[str, NDArray[Any]], rows: int, keeps_errors: bool, tell: Tell) -> Table:
        """The table of the outputs for the rows of the columns."""
        whole = rows > 0 and any(is_whole(field, columns[field.column]) for field in self.inputs)
        axes = [None] * len(self.axes) if whole and self._all_whole(columns) else self.axes
        sizes = [
            None if field.sizes is None else without(field.sizes, axis)
            for field, axis in zip(self.outputs, axes, strict=True)
        ]
        results = [Result(field, size, rows) for field, size in zip(self.outputs, sizes, strict=True)]
        table = Table(results, rows, keeps_errors)
        entry = [0 if not is_whole(field, columns[field.column]) else None for field in self.inputs]
        for field, axis in zip(self.inputs, entry, strict=True):
            if axis is not None and rows and field.sizes and not is_open(field.sizes[0]) and field.sizes[0] != 1:
                raise InvalidArgument(
                    f"input '{field.name}' takes {field.of_rows(None)}: the first axis, that of the rows, is fixed at "
                    f"{field.sizes[0]}; bind what is alike for all rows"
                )
        given = [
            rows_of(field, columns[field.column], axis, table.fail)
            for field, axis in zip(self.inputs, entry, strict=True)
        ]
        if rows == 0:
            return table
        self._run_groups(_Pass(self, table, given, entry, axes), not whole and not self.why_single, tell)
        return table

    def _all_whole(self, columns: Mapping[str, NDArray[Any]]) -> bool:
        return all(is_whole(field, columns[field.column]) for field in self.inputs)

    def _run_groups(self, work: _Pass, together: bool, tell: Tell) -> None:
        for rows in work.groups():
            if together:
                work.attempt(rows, work.stacked)
                tell(len(rows))
                continue
            for row in rows:
                work.attempt([row], work.alone)
                tell(1)

    def call(self, feeds: Mapping[str, Any]) -> list[Any]:
        """One run of the model."""
        return self._session.run(self._names, {**feeds, **self._bound})

    def entries(self, values: Sequence[Any], axes: Sequence[int | None], rows: int) -> list[Any]:
        """The outputs of a run over `rows` rows with the rows' axis first; outputs without one are the one row's."""
        found = []
        for field, value, axis in zip(self.outputs, values, axes, strict=True):
            if axis is None:
                found.append([value])
                continue
            array = isinstance(value, np.ndarray)
            size = (value.shape[axis] if axis < value.ndim else None) if array else len(value)
            if size != rows:
                told = shape_text(value) if array else f"{size} elements"
                kind = NotARowEach if rows > 1 else InvalidArgument
                raise kind(
                    f"output '{field.name}' came as {told} from a run over {rows} rows: expected {rows} along axis {axis}"
                )
            found.append(np.moveaxis(value, axis, 0) if array and axis else value)
        return found


def is_whole(field: Field, column: NDArray[Any]) -> bool:
    """Whether rows have all axes of the input, the batch's as well; a single row that has does not decide it."""
    if field.sizes is None or len(column) == 0:
        return False
    rank = len(field.sizes)
    if not column.dtype.hasobject or column.ndim > 1:
        return column.ndim - 1 == rank
    found = False
    for row in column:
        depth = _depth(row)
        if depth == rank - 1:
            return False
        found = found or depth == rank
    return found


def _depth(row: Any) -> int:
    """How many axes a row has, be it an array, nested arrays or a list."""
    if isinstance(row, np.ndarray) and not row.dtype.hasobject:
        return row.ndim
    if isinstance(row, (np.ndarray, list, tuple)):
        own = row.ndim if isinstance(row, np.ndarray) else 1
        return own + (_depth(row[0]) if len(row) and own == 1 else 0)
    return -1 if row is None else 0


class _Pass:
    """The rows of one batch on their way through a runner."""

    def __init__(
        self,
        runner: Runner,
        table: Table,
        given: Sequence[Rows],
        entry: Sequence[int | None],
        axes: Sequence[int | None],
    ) -> None:
        self.runner, self.table, self.given, self.entry, self.axes = runner, table, given, entry, axes

    def groups(self) -> Iterator[Sequence[int]]:
        """Rows of equal sizes, in the order of the first of each; those whose sizes are unfit fail."""
        if all(isinstance(rows, np.ndarray) for rows in self.given):
            if self._fits(
                [rows.shape[1:] for rows in self.given if isinstance(rows, np.ndarray)], range(self.table.rows)
            ):
                yield range(self.table.rows)
            return
        found: dict[tuple[tuple[int, ...], ...], list[int]] = {}
        for row, values in enumerate(zip(*self.given, strict=True)):
            if row not in self.table.errors:
                found.setdefault(tuple([np.shape(value) for value in values]), []).append(row)
        for shapes, rows in found.items():
            if self._fits(shapes, rows):
                yield rows

    def _fits(self, shapes: Sequence[tuple[int, ...]], rows: Sequence[int]) -> bool:
        try:
            for field, shape, axis in zip(self.runner.inputs, shapes, self.entry, strict=True):
                check_sizes(field, shape, axis)
        except InvalidArgument as e:
            for row in rows:
                self.table.fail(row, e)
            return False
        return True

    def attempt(self, rows: Sequence[int], run: Callable[[Sequence[int]], list[Any]]) -> None:
        """Runs rows together; where that fails, one by one, so that a bad row spoils no other."""
        try:
            found = run(rows)
            self._put(rows, found)
        except NotARowEach:
            raise
        except Exception as e:
            if len(rows) == 1:
                self.table.fail(rows[0], e)
                return
            for row in rows:
                self.attempt([row], run)

    def _put(self, rows: Sequence[int], found: Sequence[Any]) -> None:
        whole = len(rows) == self.table.rows
        for result, values in zip(self.table.results, found, strict=True):
            if whole and isinstance(rows, range):
                result.put_all(values)
            else:
                result.put(rows, values)

    def stacked(self, rows: Sequence[int]) -> list[Any]:
        """One run over rows of equal sizes."""
        feeds = {}
        for field, given in zip(self.runner.inputs, self.given, strict=True):
            if isinstance(given, np.ndarray):
                feeds[field.name] = given if isinstance(rows, range) else given[list(rows)]
            else:
                feeds[field.name] = np.stack([value for value in (given[row] for row in rows) if value is not None])
        return self.runner.entries(self.runner.call(feeds), self.axes, len(rows))

    def alone(self, rows: Sequence[int]) -> list[Any]:
        """One run over one row."""
        feeds = {}
        for field, given, axis in zip(self.runner.inputs, self.given, self.entry, strict=True):
            value = given[rows[0]]
            feeds[field.name] = value if axis is None else np.asarray(value)[None]
        return self.runner.entries(self.runner.call(feeds), self.axes, 1)


class PaddedRunner(Runner):
    """Rows of unequal length: sorted, padded with zeros, told to the model by their lengths, and cut back."""

    def __init__(
        self,
        session: InferenceSession,
        inputs: Sequence[Field],
        outputs: Sequence[Field],
        bound: Mapping[str, Any],
        lengths: Field,
    ) -> None:
        """`lengths`: the input that takes how long each row is."""
        super().__init__(session, inputs, outputs, bound)
        if (
            lengths.sizes is not None
            and len(lengths.sizes) != 1
            or lengths.dtype not in (np.dtype(np.int32), np.dtype(np.int64))
        ):
            raise InvalidArgument(
                f"lengths: input '{lengths.name}' takes {lengths.of_rows(None)}, expected int32 or int64 [rows]"
            )
        if self.why_single:
            raise InvalidArgument(f"lengths: rows cannot run together, as {self.why_single}; leave lengths out")
        self._lengths = lengths
        self._ragged = [self._ragged_axis(field) for field in inputs]
        names = {field.sizes[axis] for field, axis in zip(inputs, self._ragged, strict=True) if field.sizes and axis}
        if len(names) != 1:
            told = ", ".join(sorted(map(str, names))) or "none of their sizes is open"
            raise InvalidArgument(f"lengths: the inputs have one length in common, found: {told}")
        [self._length] = names
        self._cut = [self._cut_axis(field, axis) for field, axis in zip(outputs, self.axes, strict=True)]

    @staticmethod
    def _ragged_axis(field: Field) -> int | None:
        """The first open axis behind the batch's."""
        return next((i for i, size in enumerate(field.sizes or ()) if i and is_open(size)), None)

    def _cut_axis(self, field: Field, batch: int | None) -> int | None:
        """The axis of an output that is as long as the rows."""
        if field.sizes is None:
            raise InvalidArgument(f"lengths: the model does not say which axis of output '{field.name}' is the length")
        others = [i for i, size in enumerate(field.sizes) if i != batch and is_open(size)]
        named = named_axis(field.sizes, self._length)
        if named is not None or not others:
            return named
        if self._length is None and field.sizes[others[0]] is None:
            return others[0]
        raise InvalidArgument(
            f"lengths: axis {others[0]} of output '{field.name}' ({field.sizes[others[0]]}) is not the length "
            f"({self._length}) of the inputs, so what of it belongs to a row is not known; leave it out of outputs"
        )

    def _run_groups(self, work: _Pass, together: bool, tell: Tell) -> None:
        if not together:
            raise InvalidArgument("lengths: rows without the axis of the batch are expected")
        for rows, lengths in self._padded_together(work):
            work.attempt(rows, lambda part, known=lengths: self._run_padded(work, part, known))  # type: ignore[misc]
            tell(len(rows))

    def _padded_together(self, work: _Pass) -> Iterator[tuple[list[int], dict[int, int]]]:
        """Rows that run together, the longest first, and the length of each."""
        lengths: dict[int, int] = {}
        kinds: dict[tuple[Any, ...], list[int]] = {}
        for group in work.groups():
            try:
                length, kind = self._length_of(work, group[0])
            except InvalidArgument as e:
                for row in group:
                    work.table.fail(row, e)
                continue
            lengths.update(dict.fromkeys(group, length))
            kinds.setdefault(kind, []).extend(group)
        for rows in kinds.values():
            rows.sort(key=lambda row: -lengths[row])  # stable: rows of equal length stay in their order
            at = 0
            while at < len(rows):
                end = at + 1
                shortest = lengths[rows[at]] * _WORTH_PADDING
                while end < len(rows) and (lengths[rows[end]] >= shortest or end - at < _FEW):
                    end += 1
                yield rows[at:end], lengths
                at = end

    def _length_of(self, work: _Pass, row: int) -> tuple[int, tuple[Any, ...]]:
        """The length of a row, and all its other sizes."""
        lengths, others = {}, []
        for field, given, axis in zip(self.inputs, work.given, self._ragged, strict=True):
            shape = np.asarray(given[row]).shape
            if axis is not None:
                lengths[field.column] = shape[axis - 1]
                shape = (*shape[: axis - 1], *shape[axis:])
            others.append(shape)
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"'{column}' has {length}" for column, length in lengths.items())
            raise InvalidArgument(f"the columns of a row are of one length, found: {told}")
        return next(iter(lengths.values())), tuple(others)

    def _run_padded(self, work: _Pass, rows: Sequence[int], lengths: Mapping[int, int]) -> list[Any]:
        known = [lengths[row] for row in rows]
        feeds: dict[str, Any] = {self._lengths.name: np.array(known, self._lengths.dtype)}
        for field, given, axis in zip(self.inputs, work.given, self._ragged, strict=True):
            if isinstance(given, np.ndarray):
                feeds[field.name] = given if list(rows) == list(range(len(given))) else given[list(rows)]
                continue
            values = [np.asarray(given[row]) for row in rows]
            feeds[field.name] = np.stack(values) if axis is None else _padded(values, axis - 1, max(known))
        found = self.entries(self.call(feeds), work.axes, len(rows))
        return [self._cut_back(i, values, known) for i, values in enumerate(found)]

    def _cut_back(self, output: int, values: Any, lengths: Sequence[int]) -> Any:
        cut, batch = self._cut[output], self.axes[output]
        if cut is None or batch is None:
            return values
        axis = cut - (cut > batch)  # of a row's result
        if values.shape[axis + 1] != max(lengths):
            raise InvalidArgument(
                f"output '{self.outputs[output].name}' came with {values.shape[axis + 1]} along axis {cut} from rows padded "
                f"to {max(lengths)}: what of it belongs to a row is not known"
            )
        before = (slice(None),) * axis
        return [row[(*before, slice(length))] for row, length in zip(values, lengths, strict=True)]


def _padded(values: Sequence[NDArray[Any]], axis: int, length: int) -> NDArray[Any]:
    shape = list(values[0].shape)
    shape[axis] = length
    out = np.zeros((len(values), *shape), values[0].dtype)
    before = (slice(None),) * axis
    for place, value in zip(out, values, strict=True):
        place[(*before, slice(value.shape[axis]))] = value
    return out
