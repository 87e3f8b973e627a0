"""What a step brings and gives: inputs are checked before they come near a pool, outputs of a last step are joined."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._steps import BadStep, Outputs

if TYPE_CHECKING:
    from .. import InferenceSession, NodeArg, Stream

DTYPES = {
    **{kind: np.dtype(kind) for kind in ("float16", "double", "bool")},
    **{f"{sign}int{bits}": np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float": np.dtype(np.float32),
    "string": np.dtype(object),
}
KNOWN_FORMS = 1024  # types and shapes of inputs that are remembered to be good


def element(info: NodeArg) -> str:
    """The element type of "tensor(float)": "float"; the whole type of a value that is no tensor."""
    found = re.fullmatch(r"tensor\((\w+)\)", info.type)
    return found[1] if found else info.type


class Signature:
    """The inputs of a step of a session's streams, and the axes along which outputs of pushes are joined."""

    def __init__(self, session: InferenceSession, stream: Stream, time: Mapping[str, int | str]) -> None:
        """`stream`: any stream of the session; its text says along which axes outputs are joined."""
        self.inputs = [info for info in session.get_inputs() if info.name in stream._inputs]
        by_name = {info.name: info for info in session.get_outputs()}
        self.outputs = [by_name[name] for name in stream.output_names]
        text = str(stream)
        axes = {name: int(axis) for name, axis in re.findall(r"^  time   (.*) along axis (\d+)  ", text, re.MULTILINE)}
        self.timed = {info.name: axes[info.name] for info in self.inputs if info.name in axes}
        self.steps_only = not self.timed  # a run per push, with nothing to flush
        self._lines = [self._line(text, name) for name in stream.output_names]
        self.joined_axes = [self._kind(line) for line in self._lines]
        self._good: set[tuple[Any, ...]] = set()
        self.entry_axes: list[int | None] | None = None  # of results of a batch, once `entries` has seen one

    @staticmethod
    def _line(text: str, name: str) -> str:
        """What the text of a stream says of an output."""
        return next(line for line in text.splitlines() if line.startswith(f"  output {name}  "))

    @staticmethod
    def _kind(line: str) -> int | None:
        """The axis along which outputs of several pushes are joined; None when the last one replaces the others."""
        found = re.search(r", (?:(?:frames|joined) along axis (\d+)|(stacked)|so far|as it is)$", line)
        assert found, line
        return int(found[1]) if found[1] else 0 if found[2] else None

    def checked(self, given: Mapping[str, Any] | NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The inputs of a step by name; BadStep where names, types, ranks or fixed sizes do not fit."""
        if not isinstance(given, Mapping):
            if len(self.inputs) != 1:
                raise BadStep(f"a step brings its inputs by name: {self._names()}")
            given = {self.inputs[0].name: given}
        if len(given) != len(self.inputs):
            raise BadStep(f"a step brings {self._names()}, not {', '.join(given) or 'nothing'}")
        result = {}
        for info in self.inputs:
            if info.name not in given:
                raise BadStep(f"a step brings {self._names()}, not {', '.join(given)}")
            array = np.asarray(given[info.name])
            form = (info.name, array.dtype, array.shape)
            if form not in self._good:
                self._check(info, array)
                if len(self._good) >= KNOWN_FORMS:
                    self._good.clear()
                self._good.add(form)
            result[info.name] = array
        return result

    def _names(self) -> str:
        return ", ".join(f"'{info.name}'" for info in self.inputs) or "no inputs"

    def _check(self, info: NodeArg, array: NDArray[Any]) -> None:
        wanted = DTYPES.get(element(info))
        said = f"input '{info.name}' is {array.dtype} {list(array.shape)}, expected {info.type} {info.shape}"
        if wanted is not None and array.dtype != wanted:
            raise BadStep(said)
        if info.shape is None:
            return
        if array.ndim != len(info.shape):
            raise BadStep(said)
        for axis, (size, fixed) in enumerate(zip(array.shape, info.shape, strict=True)):
            if isinstance(fixed, int) and size != fixed and axis != self.timed.get(info.name):
                raise BadStep(said)

    def batch_axis(self, name: str) -> int:
        """The axis of an input along which the streams of a batch lie: the first that is neither time nor fixed."""
        [info] = [info for info in self.inputs if info.name == name]
        for axis, size in enumerate(info.shape or [None, None]):
            if axis != self.timed.get(name) and (not isinstance(size, int) or size == 1):
                return axis
        return 0

    def row_axes(self, inputs: Mapping[str, NDArray[Any]], rows: int) -> dict[str, int]:
        """The axis of each input along which `rows` streams lie; BadStep where the inputs are not those of so many."""
        axes = {}
        for info in self.inputs:
            if (array := inputs.get(info.name)) is None:
                raise BadStep(f"there is no input '{info.name}' in the request")
            axis = axes[info.name] = self.batch_axis(info.name)
            if array.ndim <= axis or array.shape[axis] != rows:
                shape = list(array.shape)
                raise BadStep(f"input '{info.name}' has the shape {shape}, and no row for each of {rows} sequences")
        self.checked(inputs)
        return axes

    def batch_axis_out(self, output: int, single: NDArray[Any]) -> int:
        """The axis along which the results of several streams are joined; `single`: the result of one stream."""
        if self.entry_axes is not None:
            return self.entry_axes[output] or 0
        symbols = {info.shape[self.batch_axis(info.name)] for info in self.inputs if info.shape}
        shape = self.outputs[output].shape or []
        stacked = single.ndim - len(shape)
        for axis, size in enumerate(shape):
            if isinstance(size, str) and size in symbols:
                return axis + max(stacked, 0)
        ones = [axis for axis, size in enumerate(single.shape) if size == 1 and axis != self.joined_axes[output]]
        return ones[0] if ones else 0

    def entries(self, outputs: Outputs, count: int, single: Outputs) -> list[Outputs]:
        """The outputs of each stream, cut from the results of a batch; `single`: the outputs of one stream."""
        axes = self.entry_axes
        if axes is None:
            axes = [self._entry_axis(*found) for found in zip(single, outputs, self.joined_axes, strict=True)]
            if all(output is not None for output in outputs):
                self.entry_axes = axes
        columns: list[list[Any]] = []
        for array, axis in zip(outputs, axes, strict=True):
            if array is None or axis is None:
                columns.append([array] * count)
                continue
            before = (slice(None),) * axis
            columns.append([array[(*before, slice(row, row + 1))] for row in range(count)])
        return [list(row) for row in zip(*columns, strict=True)]

    @staticmethod
    def _entry_axis(one: Any, several: Any, joined: int | None) -> int | None:
        """The axis along which the streams of a batch lie: where sizes differ, the axis apart that pushes are joined along."""
        if several is None:
            return None
        return next((a for a in range(several.ndim) if a != joined and several.shape[a] != one.shape[a]), None)

    def answer_shapes(self) -> list[list[int | str | None]]:
        """Shapes of the outputs of an answer, None where any size may come."""
        shapes: list[list[int | str | None]] = []
        for info, line, axis in zip(self.outputs, self._lines, self.joined_axes, strict=True):
            shape = list(info.shape or [])
            if line.endswith(", stacked"):
                shape = [None, *shape]
            elif axis is not None and axis < len(shape):
                shape[axis] = None
            shapes.append(shape)
        return shapes

    def dtype_out(self, output: int) -> np.dtype[Any]:
        """The element type of an output."""
        return DTYPES.get(element(self.outputs[output]), np.dtype(object))

    def joined(self, pushed: Outputs, flushed: Outputs) -> Outputs:
        """What a push and the flush behind it gave, as one result for each output."""
        results = []
        for first, last, axis in zip(pushed, flushed, self.joined_axes, strict=True):
            if first is None or last is None:
                results.append(first if last is None else last)
            else:
                results.append(last if axis is None else np.concatenate([first, last], axis=axis))
        return results

    def ended(self, stream: Stream, inputs: Mapping[str, Any]) -> Outputs:
        """What the last step of a stream gives, its end included."""
        pushed = as_list(stream.push(inputs), len(self.outputs))
        if self.steps_only:
            return pushed
        given = {name: value for name, value in inputs.items() if name not in self.timed}
        return self.joined(pushed, as_list(stream.flush(given), len(self.outputs)))


def as_list(results: Any, count: int) -> Outputs:
    """Results of a push as a list, also of a model with one output."""
    return [results] if count == 1 else list(results)


def rows_of(inputs: Mapping[str, NDArray[Any]], axes: Mapping[str, int], row: int) -> dict[str, NDArray[Any]]:
    """The inputs of one stream out of those of a batch."""
    return {name: array[(slice(None),) * axes[name] + (slice(row, row + 1),)] for name, array in inputs.items()}


def stacked(
    results: Sequence[Outputs], signature: Signature, lengths: NDArray[np.int64] | None = None
) -> Outputs | None:
    """Results of several streams as entries of a batch; None where their sizes differ.

    With `lengths`, [streams, outputs], sizes along the axis of time may differ: zeros fill up what is shorter, and
    `lengths` gets what is each stream's own.
    """
    outputs: Outputs = []
    for k, joined in enumerate(signature.joined_axes):
        parts = [result[k] for result in results]
        given = [part for part in parts if part is not None]
        if lengths is not None:
            lengths[:, k] = [0 if p is None else 1 if joined is None else p.shape[joined] for p in parts]
            parts = _filled_up(parts, joined) if given else parts
        if not given:
            outputs.append(None)
        elif any(part is None for part in parts) or len({part.shape for part in parts}) != 1:
            return None
        else:
            outputs.append(np.concatenate(parts, axis=signature.batch_axis_out(k, given[0])))
    return outputs


def _filled_up(parts: Sequence[NDArray[Any] | None], axis: int | None) -> list[NDArray[Any]]:
    """Results of one output, as long as the longest along `axis`."""
    like = next(part for part in parts if part is not None)
    shape = list(like.shape)
    if axis is not None:
        shape[axis] = max(part.shape[axis] for part in parts if part is not None)
    filled = []
    for part in parts:
        if part is not None and part.shape == tuple(shape):
            filled.append(part)
            continue
        filled.append(np.zeros(shape, like.dtype))
        if part is not None and axis is not None:
            filled[-1][(*(slice(None),) * axis, slice(part.shape[axis]))] = part
    return filled
