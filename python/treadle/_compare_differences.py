"""How far values of two engines are apart, by the rule of `treadle test` (cli/compare.h)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """|found - expected| <= absolute + relative * |expected|, element by element. If neither is given: 1e-3 + 1e-3 times
    the largest |expected|. Whole numbers, truth values and texts must be equal."""

    relative: float | None = None
    absolute: float | None = None

    def allowed(self, expected: NDArray[Any]) -> NDArray[np.float64]:
        """What elements may differ by. The last axis of `expected` has the elements of one value."""
        if is_exact(expected.dtype):
            return np.zeros(expected.shape)
        least = 1 / 64 if expected.dtype.name == "bfloat16" else 0.0
        with np.errstate(invalid="ignore"):
            size = np.abs(_as_floats(expected))
        size = np.where(np.isfinite(size), size, 0.0)
        if self.relative is None and self.absolute is None:
            largest = size.max(axis=-1, keepdims=True, initial=0)
            return np.broadcast_to(1e-3 + max(1e-3, least) * largest, expected.shape)
        relative = max(1e-3 if self.relative is None else self.relative, least)
        return (1e-7 if self.absolute is None else self.absolute) + relative * size

    def __str__(self) -> str:
        """As a formula for people."""
        if self.relative is None and self.absolute is None:
            return "1e-3 + 1e-3 of the largest"
        relative = 1e-3 if self.relative is None else self.relative
        return f"{1e-7 if self.absolute is None else self.absolute:g} + {relative:g} of each"


@dataclasses.dataclass(frozen=True)
class Difference:
    """Two values, `found` by treadle and `expected` by the other engine."""

    agrees: bool
    largest: float = 0.0  # difference; infinite where one is no number, or where types or sizes differ
    at: tuple[int, ...] = ()  # the element that is furthest off
    found: Any = None
    expected: Any = None
    wrong: int = 0  # elements beyond the tolerance
    count: int = 0
    shape: tuple[int, ...] = ()
    problem: str = ""  # where the values cannot be compared element by element
    first_at: tuple[int, ...] = ()  # the first element beyond the tolerance


def _problem(text: str) -> Difference:
    return Difference(False, float("inf"), problem=text)


def _described(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, list):
        return f"a sequence of {len(value)}"
    if isinstance(value, dict):
        return f"a map of {len(value)}"
    array = np.asarray(value)
    return f"{array.dtype}{list(array.shape)}"


def is_exact(dtype: np.dtype[Any]) -> bool:
    """Whether values of the type have to be equal."""
    return dtype.kind in "biuOSU"


def _as_floats(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def are_equal(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether arrays of one shape have the same bytes, which most have."""
    return a.dtype.kind != "O" and a.shape == b.shape and a.tobytes() == b.tobytes()


def distances(found: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.float64]:
    """The differences of elements of the same type: 0 for equal ones and for two NaNs, infinite beside one NaN."""
    if found.dtype.kind in "OSU":
        return np.where(found == expected, 0.0, np.inf)
    with np.errstate(all="ignore"):
        same = (found == expected) | ((found != found) & (expected != expected))
        apart = np.abs(_as_floats(found) - _as_floats(expected))
    return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))


def difference(found: Any, expected: Any, tolerance: Tolerance) -> Difference:
    """Of two values of any kind; of sequences and maps that of their first elements that do not agree."""
    if isinstance(expected, dict):
        if not isinstance(found, dict) or list(found) != list(expected):
            return _problem(f"{_described(found)} against {_described(expected)}, or other keys")
        return difference(np.array([*found.values()]), np.array([*expected.values()]), tolerance)
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return _problem(f"{_described(found)} against {_described(expected)}")
        each = [difference(a, b, tolerance) for a, b in zip(found, expected, strict=True)]
        return next((d for d in each if not d.agrees), max(each, key=lambda d: d.largest, default=Difference(True)))
    if found is None or expected is None:
        same = found is None and expected is None
        return Difference(True) if same else _problem(f"{_described(found)} against {_described(expected)}")
    a, b = np.asarray(found), np.asarray(expected)
    if a.shape != b.shape or a.dtype != b.dtype:
        return _problem(f"{_described(a)} against {_described(b)}")
    return _of_arrays(a, b, tolerance)


def _of_arrays(a: NDArray[Any], b: NDArray[Any], tolerance: Tolerance) -> Difference:
    if a.size == 0 or are_equal(a, b):
        return Difference(True, count=a.size, shape=a.shape)
    apart = distances(a, b).reshape(-1)
    beyond = apart > tolerance.allowed(b.reshape(-1))
    wrong, worst = int(beyond.sum()), int(apart.argmax())
    at, first_at = (
        tuple(int(i) for i in np.unravel_index(element, a.shape)) for element in (worst, int(beyond.argmax()))
    )
    found, expected = (_plain(array.reshape(-1)[worst]) for array in (a, b))
    return Difference(
        wrong == 0, float(apart[worst]), at, found, expected, wrong, a.size, a.shape, first_at=first_at if wrong else ()
    )


def _plain(element: Any) -> Any:
    """As a number or text of Python's own."""
    if isinstance(element, np.generic) and element.dtype.kind in "biufcUS":
        return element.item()
    return element if isinstance(element, str) else float(element)
