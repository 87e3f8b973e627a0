"""What runs are made of inside: values over iterations, and where NaN comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ._in_notebooks import drawn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from . import _core
    from ._types import OutputValue

# In the order of treadle_statistic.
_MINIMUM, _MAXIMUM, _MEAN, _NORM, _NAN, _INF, _ZERO = range(7)


class Series:
    """A value of the model over the iterations of the loops around it: numbers and contents, one for each sample."""

    def __init__(self, seen: _core.Trace, index: int, name: str) -> None:
        self._seen = seen
        self._index = index
        self.name = name
        """Its path within the model."""

    def _column(self, which: int) -> NDArray[np.float64]:
        return np.frombuffer(self._seen.column(self._index, which), np.float64)

    @property
    def minimum(self) -> NDArray[np.float64]:
        """Its least number, infinities included; NaN if there are none."""
        return self._column(_MINIMUM)

    @property
    def maximum(self) -> NDArray[np.float64]:
        """Its largest number, infinities included; NaN if there are none."""
        return self._column(_MAXIMUM)

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean of its finite numbers; NaN if there are none."""
        return self._column(_MEAN)

    @property
    def norm(self) -> NDArray[np.float64]:
        """The root of the sum of squares of its finite numbers."""
        return self._column(_NORM)

    @property
    def nan(self) -> NDArray[np.float64]:
        """How many elements are NaN."""
        return self._column(_NAN)

    @property
    def inf(self) -> NDArray[np.float64]:
        """How many elements are infinite."""
        return self._column(_INF)

    @property
    def zero(self) -> NDArray[np.float64]:
        """How many elements are 0."""
        return self._column(_ZERO)

    @property
    def iterations(self) -> NDArray[np.int64]:
        """[samples, loops around the value], the outermost loop first; -1: the same in all iterations."""
        depth, numbers = self._seen.iterations(self._index)
        kept = np.frombuffer(numbers, np.int64)
        if not len(kept) and (contents := self._seen.contents(self._index)):
            kept = np.array([at for at, _ in contents], np.int64)
        return kept.reshape(-1, depth) if depth else np.zeros((len(self), 0), np.int64)

    @property
    def values(self) -> NDArray[Any] | list[Any]:
        """The contents with `values=True`: an array [samples, ...], or a list where types or sizes differ."""
        contents = [value for _, value in self._seen.contents(self._index)]
        arrays = all(isinstance(value, np.ndarray) for value in contents)
        if arrays and contents and len({(value.shape, value.dtype) for value in contents}) == 1:
            return np.stack(contents)
        return contents

    def __len__(self) -> int:
        """How many samples there are."""
        return max(len(self.minimum), len(self._seen.contents(self._index)))

    def __repr__(self) -> str:
        """Its name and the number of samples."""
        return f"<treadle.Series: {self.name}, {len(self)} samples>"


class Trace:
    """A run that was looked into; made by `InferenceSession.trace`. `print(trace)` shows it."""

    def __init__(self, outputs: dict[str, OutputValue], seen: _core.Trace) -> None:
        self.outputs: dict[str, OutputValue] = outputs
        """The results of the run."""
        self._seen = seen
        self._names = seen.names()
        self._index = {name: i for i, (name, why) in enumerate(self._names) if not why}

    @property
    def every(self) -> int:
        """Samples are of every so many iterations: more than asked for if they did not fit in `memory`."""
        return self._seen.every()

    @property
    def missing(self) -> dict[str, str]:
        """Watched values of which nothing was seen, and why."""
        return {name: why for name, why in self._names if why}

    def __getitem__(self, name: str) -> Series:
        """A watched value, by its path, or by its name if only one has it; KeyError with the nearest one."""
        if name in self._index:
            return Series(self._seen, self._index[name], name)
        same = [path for path in self._index if path.endswith("/" + name)]
        if len(same) == 1:
            return self[same[0]]
        if len(same) > 1:
            raise KeyError(f"'{name}' is the name of several values: {', '.join(same)}")
        if name in self.missing:
            raise KeyError(f"'{name}': {self.missing[name]}")
        import difflib

        near = difflib.get_close_matches(name, [*self._index, *(path.split("/")[-1] for path in self._index)], 1)
        raise KeyError(f"no value '{name}' was watched" + (f" (did you mean '{near[0]}'?)" if near else ""))

    def __iter__(self) -> Iterator[str]:
        """The paths of watched values of which something was seen."""
        return iter(self._index)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._index)

    def __contains__(self, name: object) -> bool:
        """Whether something was seen of the value with this path."""
        return name in self._index

    @property
    def found(self) -> dict[str, Any] | None:
        """What `find` found: "places", where it was made from values without it, and "outputs", with the way from there.

        A place has "op", "node", "iterations" (of the loops around it), "inputs" and "result" (names and statistics),
        and "times". Those that reached an output come first; "reached" counts them. "saved" has the "folder" of `save`,
        empty where nothing was saved, and the "problem". None if nothing was to be found.
        """
        found = self._seen.found()
        if found is None:
            return None
        import json

        parts: dict[str, Any] = json.loads(found)
        return parts

    def _repr_html_(self) -> str:
        return drawn("trace_html", self)

    def __repr__(self) -> str:
        """How many values were watched."""
        return f"<treadle.Trace: {len(self)} values>"

    def __str__(self) -> str:
        """What was found, and the ranges of values, the worst first."""
        return self._seen.text()
