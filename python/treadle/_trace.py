"""What runs are made of inside: values over iterations, and where NaN comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._types import OutputValue

_COLUMNS = ("minimum", "maximum", "mean", "norm", "nan", "inf", "zero")


class Series:
    """A value of the model over the iterations of the loops around it.

    `minimum`, `maximum`, `mean`, `norm`, `nan`, `inf` and `zero` have an element for each sample: the range of its
    numbers (NaN if there are none), the mean and the root of the sum of squares of those that are finite, and counts of
    elements.
    """

    minimum: NDArray[np.float64]
    maximum: NDArray[np.float64]
    mean: NDArray[np.float64]
    norm: NDArray[np.float64]
    nan: NDArray[np.float64]
    inf: NDArray[np.float64]
    zero: NDArray[np.float64]

    def __init__(self, name: str, depth: int, iterations: bytes, columns: list[bytes], contents: list[Any]) -> None:
        self.name = name
        """Its path within the model."""
        self._samples = np.frombuffer(iterations, np.int64).reshape(-1, depth) if depth else None
        self._contents = contents
        for column, numbers in zip(_COLUMNS, columns, strict=True):
            setattr(self, column, np.frombuffer(numbers, np.float64))
        if contents and not len(self.minimum):
            self._samples = np.array([at for at, _ in contents], np.int64).reshape(len(contents), depth)

    @property
    def iterations(self) -> NDArray[np.int64]:
        """[samples, loops around the value], the outermost loop first; -1: the same in all iterations."""
        if self._samples is None:
            return np.zeros((len(self), 0), np.int64)
        return self._samples

    @property
    def values(self) -> NDArray[Any] | list[Any]:
        """The contents with `values=True`: an array [samples, ...], or a list where types or sizes differ."""
        contents = [value for _, value in self._contents]
        arrays = all(isinstance(value, np.ndarray) for value in contents)
        if arrays and contents and len({(value.shape, value.dtype) for value in contents}) == 1:
            return np.stack(contents)
        return contents

    def __len__(self) -> int:
        """How many samples there are."""
        return max(len(self.minimum), len(self._contents))

    def __repr__(self) -> str:
        """Its name and the number of samples."""
        return f"<treadle.Series: {self.name}, {len(self)} samples>"


class Trace:
    """A run that was looked into; made by `InferenceSession.trace`. `print(trace)` shows it."""

    def __init__(
        self,
        names: list[str],
        outputs: list[Any],
        text: str,
        found: str | None,
        series: list[tuple[Any, ...]],
        every: int,
    ) -> None:
        self.outputs: dict[str, OutputValue] = dict(zip(names, outputs, strict=True))
        """The results of the run."""
        self.every: int = every
        """Samples are of every so many iterations: more than asked for if they did not fit in `memory`."""
        self.missing: dict[str, str] = {name: why for name, why, *_ in series if why}
        """Watched values of which nothing was seen, and why."""
        self._text = text
        self._found = found
        self._series: dict[str, Series] = {}
        for name, why, *parts in series:
            if not why:
                self._series[name] = Series(name, *parts)

    def __getitem__(self, name: str) -> Series:
        """A watched value, by its path, or by its name if only one has it; KeyError with the nearest one."""
        if name in self._series:
            return self._series[name]
        same = [path for path in self._series if path.endswith("/" + name)]
        if len(same) == 1:
            return self._series[same[0]]
        if len(same) > 1:
            raise KeyError(f"'{name}' is the name of several values: {', '.join(same)}")
        if name in self.missing:
            raise KeyError(f"'{name}': {self.missing[name]}")
        import difflib

        near = difflib.get_close_matches(name, [*self._series, *(path.split("/")[-1] for path in self._series)], 1)
        raise KeyError(f"no value '{name}' was watched" + (f" (did you mean '{near[0]}'?)" if near else ""))

    def __iter__(self) -> Iterator[str]:
        """The paths of watched values of which something was seen."""
        return iter(self._series)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._series)

    def __contains__(self, name: object) -> bool:
        """Whether something was seen of the value with this path."""
        return name in self._series

    @property
    def found(self) -> dict[str, Any] | None:
        """What `find` found: "places", where it was made from values without it, and "outputs", with the way from there.

        A place has "op", "node", "iterations" (of the loops around it), "inputs" and "result" (names and statistics),
        and "times". Those that reached an output come first; "reached" counts them. None if nothing was to be found.
        """
        if self._found is None:
            return None
        import json

        parts: dict[str, Any] = json.loads(self._found)
        return parts

    def __repr__(self) -> str:
        """How many values were watched."""
        return f"<treadle.Trace: {len(self)} values>"

    def __str__(self) -> str:
        """What was found, and the ranges of values, the worst first."""
        return self._text
