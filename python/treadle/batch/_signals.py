"""Rows that are signals: they run as the streams of a pool, block by block, so that their lengths need not agree."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._errors import InvalidArgument
from ._columns import check_sizes, rows_of
from ._fields import Batch, Field, Size, is_open, named_axis, without
from ._results import Result, Table
from ._runs import is_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .._pool import StreamPool
    from .._session import InferenceSession

    Signal: TypeAlias = dict[str, NDArray[Any]]  # by input, with all axes that the model's input has

# Streams that a pool runs together at most: more rows wait until one has ended.
_STREAMS = 256
# The most elements that one push takes of all its streams together, so that memory does not grow with a recording.
_BLOCK = 1 << 18


class SignalRunner:
    """Streams of one model, one for each row. An output joins the results of `push` and `flush` of the row's stream."""

    def __init__(
        self,
        session: InferenceSession,
        inputs: Sequence[Field],
        axes: Mapping[str, Any],
        roles: Mapping[str, Any],
    ) -> None:
        """`inputs`: inputs that columns feed; `axes`: the time axis of each; `roles`: other arguments of `streams`."""
        stream = session.stream(time=axes, **roles)
        self.output_axes = stream.output_axes
        self.inputs = inputs
        self.outputs: Sequence[Field] = []
        self.hop = int(roles.get("hop", 0))
        self.time = [_time_axis(field, axes[field.name]) for field in inputs]
        self._batch = [_batch_axis(field, time) for field, time in zip(inputs, self.time, strict=True)]
        self._joined = {name for name in self.output_axes if name in axes}
        self._length = next((_size(field, time) for field, time in zip(inputs, self.time, strict=True)), None)
        self._rows = Batch(_size(inputs[0], self._batch[0]), of_one=True, of_any=True)
        self._arguments = {"time": axes, **roles}
        self._session = session
        self.why_single = self.pool(1).why_single

    def pool(self, streams: int) -> StreamPool:
        """Room for so many rows at once."""
        return self._session.streams(streams, **self._arguments)

    def run(
        self, columns: Mapping[str, NDArray[Any]], rows: int, keeps_errors: bool, tell: Callable[[int, int], object]
    ) -> Table:
        """The table of the streams' outputs; calls `tell(done, total)` with numbers of samples."""
        whole = [is_whole(field, columns[field.column]) for field in self.inputs]
        batch = [None if all_axes else axis for all_axes, axis in zip(whole, self._batch, strict=True)]
        cut = [None if all(whole) else self._output_batch(field) for field in self.outputs]
        results = [Result(field, self._sizes(field, axis), rows) for field, axis in zip(self.outputs, cut, strict=True)]
        table = Table(results, rows, keeps_errors)
        given = [
            rows_of(field, columns[field.column], axis, table.fail)
            for field, axis in zip(self.inputs, batch, strict=True)
        ]
        signals: dict[int, Signal] = {}
        for row in range(rows):
            if row not in table.errors:
                try:
                    signals[row] = self._signal([part[row] for part in given], batch)
                except InvalidArgument as e:
                    table.fail(row, e)
        _Pass(self, table, signals, cut, tell).run()
        return table

    def is_stacked(self, field: Field) -> bool:
        """Whether hops give a row each along a new first axis, as the output itself has no axis of time."""
        if self.hop == 0 or self.output_axes[field.name] != 0 or field.name in self._joined:
            return False
        return field.sizes is None or named_axis(field.sizes, self._length) != 0

    def _output_batch(self, field: Field) -> int | None:
        """The batch axis, of size one, of a stream's output."""
        stacked = self.is_stacked(field)
        if field.sizes is None:
            return None
        axis = self._rows.axis(field, None if stacked else self.output_axes[field.name])
        return axis + 1 if stacked and axis is not None else axis

    def _sizes(self, field: Field, batch: int | None) -> list[Size] | None:
        """The sizes of a row's result, open along time."""
        if field.sizes is None:
            return None
        sizes: list[Size] = [None, *field.sizes] if self.is_stacked(field) else list(field.sizes)
        frames = self.output_axes[field.name]
        if frames is not None:
            sizes[frames] = None
        return list(without(sizes, batch))

    def _signal(self, values: Sequence[Any], batch: Sequence[int | None]) -> Signal:
        """A row as the model's inputs take it."""
        signal: Signal = {}
        for field, value, axis in zip(self.inputs, values, batch, strict=True):
            # A window's size may be fixed: how much of a signal there is has nothing to do with it.
            time = self.time[self.inputs.index(field)]
            check_sizes(_with_open(field, time), value.shape, axis)
            signal[field.name] = value if axis is None else np.expand_dims(value, axis)
        lengths = {
            field.column: _length(signal, field, time) for field, time in zip(self.inputs, self.time, strict=True)
        }
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"'{column}' has {length}" for column, length in lengths.items())
            raise InvalidArgument(f"the signals of a row are of one length, found: {told}")
        return signal


def _time_axis(field: Field, wanted: int | str) -> int:
    """The number of an axis that is given by its number or by the name of its size."""
    if isinstance(wanted, str):
        found = named_axis(field.sizes or (), wanted)
        return 0 if found is None else found
    return wanted % len(field.sizes) if field.sizes else wanted


def _size(field: Field, axis: int | None) -> Size:
    return None if field.sizes is None or axis is None else field.sizes[axis]


def _batch_axis(field: Field, time: int) -> int | None:
    """The first axis but for time's that may have a size of 1."""
    sizes = field.sizes or ()
    return next((i for i, size in enumerate(sizes) if i != time and (is_open(size) or size == 1)), None)


def _with_open(field: Field, time: int) -> Field:
    if field.sizes is None:
        return field
    return field._replace(sizes=tuple(None if i == time else size for i, size in enumerate(field.sizes)))


def _length(signal: Signal, field: Field, time: int) -> int:
    return int(signal[field.name].shape[time])


class _Pass:
    """The signals of one batch on their way through a pool."""

    def __init__(
        self,
        runner: SignalRunner,
        table: Table,
        signals: dict[int, Signal],
        cut: Sequence[int | None],
        tell: Callable[[int, int], object],
    ) -> None:
        self._runner, self._table, self._cut, self._tell = runner, table, cut, tell
        self._signals = signals
        self._lengths = {row: _length(signal, runner.inputs[0], runner.time[0]) for row, signal in signals.items()}
        self._parts: dict[int, list[Any]] = {row: [] for row in signals}
        self._at = dict.fromkeys(signals, 0)
        names = list(runner.output_axes)
        self._places = [names.index(field.name) for field in runner.outputs]

    def run(self) -> None:
        """All signals to their ends, the longest first."""
        waiting = collections.deque(sorted(self._signals, key=lambda row: -self._lengths[row]))
        if not waiting:
            return
        streams = min(len(waiting), _STREAMS)
        block = self._block(streams)
        total, done = sum(self._lengths.values()), 0
        active: list[int] = []
        with self._runner.pool(streams) as pool:
            while active or waiting:
                while waiting and len(active) < streams:
                    active.append(waiting.popleft())
                done += self._step(pool, active, block)
                active = [row for row in active if row in self._parts]
                self._tell(done, total)

    def _block(self, streams: int) -> int:
        """Samples of each stream in a push: a power of two, or whole hops."""
        signal = next(iter(self._signals.values()))
        time = self._runner.time[0]
        elements = sum(part.size // max(part.shape[time], 1) for part in signal.values())
        samples = max(_BLOCK // (streams * max(elements, 1)), 1)
        hop = self._runner.hop
        return max(samples // hop, 1) * hop if hop else int(2 ** (samples.bit_length() - 1))

    def _step(self, pool: StreamPool, active: Sequence[int], block: int) -> int:
        """Pushes the next block of each signal; signals that have ended leave. Returns the number of samples."""
        chunks = {row: self._chunk(row, block) for row in active}
        self._push(pool, chunks)
        samples = 0
        for row in active:
            before = self._at[row]
            self._at[row] = min(before + block, self._lengths[row])
            samples += self._lengths[row] - before if row in self._table.errors else self._at[row] - before
            if row not in self._table.errors and self._at[row] == self._lengths[row]:
                self._end(pool, row)
            if row in self._table.errors:
                if row in pool:
                    pool.leave(row)
                self._parts.pop(row, None)
        return samples

    def _chunk(self, row: int, block: int) -> Signal:
        begin, left = self._at[row], self._lengths[row] - self._at[row]
        chunk: Signal = {}
        for field, time in zip(self._runner.inputs, self._runner.time, strict=True):
            part = self._signals[row][field.name][(slice(None),) * time + (slice(begin, begin + block),)]
            hop = self._runner.hop
            # Pads the last hop with zeros, as a flush would, so that the stream still runs together with the others.
            if hop and left <= block and left % hop:
                part = np.pad(part, [(0, hop - left % hop) if axis == time else (0, 0) for axis in range(part.ndim)])
            chunk[field.name] = part
        return chunk

    def _push(self, pool: StreamPool, chunks: Mapping[int, Signal]) -> None:
        """One push of all; where that fails, one by one, so that a bad row spoils no other."""
        try:
            found = pool.push(chunks)
        except Exception as e:
            if len(chunks) == 1:
                [row] = chunks
                self._table.fail(row, e)
                return
            for row, chunk in chunks.items():
                self._push(pool, {row: chunk})
            return
        for row, values in found.items():
            self._parts[row].append(values)

    def _end(self, pool: StreamPool, row: int) -> None:
        """What the end of the signal brings, and the row's results into the table."""
        parts = self._parts.pop(row)
        try:
            if self._runner.hop:
                pool.leave(row)
            else:
                parts.append(pool.flush(row))
            for i, (field, axis) in enumerate(zip(self._runner.outputs, self._cut, strict=True)):
                value = self._joined(field, (self._one(part, self._places[i]) for part in parts))
                self._table.results[i].put([row], [_entry(field, value, axis)])
        except Exception as e:
            self._table.fail(row, e)

    def _one(self, part: Any, place: int) -> Any:
        return part if len(self._runner.output_axes) == 1 else part[place]

    def _joined(self, field: Field, parts: Iterable[Any]) -> Any:
        """What all pushes gave for an output."""
        axis = self._runner.output_axes[field.name]
        found = [part for part in parts if part is not None]
        if not found:
            raise InvalidArgument(f"output '{field.name}' has no value, as the signal has no samples")
        if axis is None:
            return found[-1]
        if all(isinstance(part, np.ndarray) for part in found):
            return np.concatenate(found, axis) if len(found) > 1 else found[0]
        return [entry for part in found for entry in part]


def _entry(field: Field, value: Any, axis: int | None) -> Any:
    """The one entry of the batch."""
    if axis is None or not isinstance(value, np.ndarray):
        return value
    if value.shape[axis] != 1:
        raise InvalidArgument(
            f"output '{field.name}' came with sizes {list(value.shape)}: expected 1 along axis {axis}, that of the rows"
        )
    return value.squeeze(axis)
