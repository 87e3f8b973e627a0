"""Inner values of a model: where they are, and what two engines give for them, by iterations."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._compare_differences import Difference, Tolerance, are_equal, difference, distances

Iterations = tuple[int, ...]  # the numbers of the iterations of the loops around a value, outermost first
# When a value is made: positions of nodes, each followed by the number of the iteration.
Moment = tuple[float, ...]

_LIKELY_SIZE = 16  # of an axis that is not known before the run


@dataclasses.dataclass(frozen=True)
class InnerValue:
    """A value and, if the model hands it out, where (treadle_model_expose in treadle.h)."""

    name: str
    node: str
    op: str
    type: str
    sizes: list[int | None] | None
    inputs: list[str]
    around: list[dict[str, str]]
    place: list[int]
    output: int | None
    log_at: int | None
    ran: int | None
    left_out: str
    is_state: bool  # what the body of a loop hands to its next iteration

    @property
    def loops(self) -> list[str]:
        """The loops around it."""
        return [around["node"] for around in self.around if around["op"] != "If"]

    @property
    def region(self) -> tuple[str, ...]:
        """The bodies around it."""
        return tuple(f"{around['node']}:{around['attribute']}" for around in self.around)

    def moment(self, iterations: Iterations) -> Moment:
        """When an iteration makes it. A node's outputs are made after all that its bodies make."""
        numbers = iter(iterations)
        moment: list[float] = []
        for position, around in zip(self.place, self.around, strict=False):
            moment += [position, 0 if around["op"] == "If" else next(numbers)]
        return (*moment, self.place[-1], math.inf)

    def bytes_of_one(self) -> int:
        """How large it is in an iteration, as far as that is known."""
        count = math.prod(_LIKELY_SIZE if size is None else size for size in self.sizes or [None])
        return max(1, count) * 8

    def in_words(self, iterations: Iterations) -> str:
        """ "/Scan_1 body, iteration 41"; empty at the top."""
        words, numbers = [], iter(iterations)
        for around in self.around:
            if around["op"] == "If":
                words.append(f"{around['node']} {around['attribute']}")
            else:
                words.append(f"{around['node']} body, iteration {next(numbers)}")
        return ", ".join(words)


@dataclasses.dataclass(frozen=True)
class ExposedModel:
    """A model that hands inner values out."""

    model: bytes
    values: list[InnerValue]


def exposed(model: str | bytes, feeds: Mapping[str, Any], wanted: Sequence[str] = ()) -> ExposedModel:
    """The model with the wanted values, or with all that nodes make, as further outputs."""
    data, text = _core.expose_model(*source(model), feeds, wanted)
    return ExposedModel(data, [InnerValue(**fields) for fields in json.loads(text)])


def source(model: str | bytes) -> tuple[str | None, bytes | None]:
    """As functions of the engine take it."""
    return (model, None) if isinstance(model, str) else (None, model)


# What a run made ----------------------------------------------------------------------------------------------------


class Rows:
    """What a run made of a value: one array for each iteration that made it."""

    def __init__(self, value: InnerValue, outputs: Sequence[Any]) -> None:
        assert value.output is not None
        self._whole: NDArray[Any] | None = None
        if value.log_at is not None:
            elements = zip(outputs[value.log_at], outputs[value.output], strict=True)
            self._by_iteration = {tuple(np.ravel(at).tolist()): np.asarray(x) for at, x in elements}
            return
        self._whole = np.asarray(outputs[value.output])
        self._loops = len(value.loops)
        shape = self._whole.shape[: self._loops]
        self._ran = np.ones(shape, bool) if value.ran is None else np.asarray(outputs[value.ran]).reshape(shape)

    @property
    def is_stacked(self) -> bool:
        """Whether all rows have one size."""
        return self._whole is not None

    def iterations(self) -> list[Iterations]:
        """Those that made the value, in order."""
        if self._whole is None:
            return list(self._by_iteration)
        return [tuple(at) for at in np.argwhere(self._ran).tolist()]

    def __getitem__(self, at: Iterations) -> Any:
        return self._by_iteration[at] if self._whole is None else self._whole[at]

    def stacked(self) -> NDArray[Any]:
        """One row for each of `iterations`."""
        assert self._whole is not None
        rows = self._whole[self._ran] if self._loops else self._whole[np.newaxis]
        return rows.reshape(len(rows), math.prod(rows.shape[1:]))

    @property
    def bytes(self) -> int:
        """Of all rows."""
        if self._whole is None:
            return sum(x.nbytes for x in self._by_iteration.values())
        return int(self._whole.nbytes)


@dataclasses.dataclass(frozen=True)
class Finding:
    """What two runs make of a value."""

    first: Iterations | None  # the first iteration beyond the tolerance
    difference: Difference | None  # there
    apart: dict[Iterations, float]  # the largest difference of each iteration


def compared(ours: Rows, theirs: Rows, tolerance: Tolerance) -> Finding:
    """Compares iteration by iteration. One that only one engine made is a difference."""
    at_ours, at_theirs = ours.iterations(), theirs.iterations()
    if ours.is_stacked and theirs.is_stacked and at_ours == at_theirs:
        a, b = ours.stacked(), theirs.stacked()
        if a.shape == b.shape and a.dtype == b.dtype:
            return _stacked(at_ours, a, b, ours, theirs, tolerance)
    return _one_by_one(at_ours, at_theirs, ours, theirs, tolerance)


def _stacked(
    at: list[Iterations], a: NDArray[Any], b: NDArray[Any], ours: Rows, theirs: Rows, tolerance: Tolerance
) -> Finding:
    if a.size == 0:
        return Finding(None, None, {})
    if are_equal(a, b):
        return Finding(None, None, dict.fromkeys(at, 0.0))
    away = distances(a, b)
    beyond = (away > tolerance.allowed(b)).any(axis=1)
    apart = dict(zip(at, away.max(axis=1).tolist(), strict=True))
    if not beyond.any():
        return Finding(None, None, apart)
    first = at[int(beyond.argmax())]
    return Finding(first, difference(ours[first], theirs[first], tolerance), apart)


def _one_by_one(
    at_ours: list[Iterations], at_theirs: list[Iterations], ours: Rows, theirs: Rows, tolerance: Tolerance
) -> Finding:
    apart: dict[Iterations, float] = {}
    in_ours, in_theirs = set(at_ours), set(at_theirs)
    first: tuple[Iterations, Difference] | None = None
    for at in sorted(in_ours | in_theirs):
        if at in in_ours and at in in_theirs:
            found = difference(ours[at], theirs[at], tolerance)
        else:
            found = Difference(
                False, math.inf, problem=f"only the {'first' if at in in_ours else 'other'} one runs this"
            )
        apart[at] = found.largest
        if not found.agrees and first is None:
            first = at, found
    if first is None:
        return Finding(None, None, apart)
    return Finding(first[0], first[1], apart)


# Which values belong together ---------------------------------------------------------------------------------------


def pairs(ours: Sequence[InnerValue], theirs: Sequence[InnerValue]) -> dict[str, str]:
    """Names of values of another model by those of this one: the same names, otherwise the same operators in the same
    order within a body."""
    names = {value.name for value in theirs}
    found = {value.name: value.name for value in ours if value.name in names}
    lone_ours = [value for value in ours if value.name not in found]
    lone_theirs = [value for value in theirs if value.name not in found]
    for kind in dict.fromkeys((value.region, value.op) for value in lone_ours):
        a, b = ([v.name for v in lone if (v.region, v.op) == kind] for lone in (lone_ours, lone_theirs))
        if len(a) == len(b):
            found |= dict(zip(a, b, strict=True))
    return found


def groups(
    values: Sequence[InnerValue], counts: Mapping[tuple[str, ...], int], most_bytes: int
) -> Iterator[list[InnerValue]]:
    """Values that fit into memory together. `counts`: how often bodies run."""
    group: list[InnerValue] = []
    size = 0
    for value in values:
        one = value.bytes_of_one() * counts.get(value.region, 1)
        if group and size + one > most_bytes:
            yield group
            group, size = [], 0
        group.append(value)
        size += one
    if group:
        yield group
