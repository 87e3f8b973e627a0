"""Runs whose arguments are bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from . import _core
from ._errors import InvalidArgument

if TYPE_CHECKING:
    from ._types import AnyArray, OutputValue


def in_order(names: Iterable[str], outputs: Mapping[str, AnyArray] | None) -> list[AnyArray | None] | None:
    """Arrays for results, by name, in the order of the results."""
    if outputs is None:
        return None
    known = list(names)
    for name in outputs:
        if name not in known:
            raise InvalidArgument(f"there is no output '{name}': expected {', '.join(known)}")
    return [outputs.get(name) for name in known]


class BoundRun:
    """A run over arrays that are bound once; made by `InferenceSession.bind`. One thread at a time may run it."""

    def __init__(self, core: _core.BoundRun) -> None:
        """Not for callers: `InferenceSession.bind` makes bound runs."""
        self._core = core

    def run(self) -> list[OutputValue]:
        """Runs the model over what the bound inputs hold now. Returns the results in the order of the outputs: the same
        arrays each time, written in place, unless the sizes of a result have changed.

        Raises what `InferenceSession.run` raises, and Busy while another thread runs it.
        """
        return self._core.run()

    @property
    def outputs(self) -> Sequence[OutputValue]:
        """What the last run gave."""
        return self._core.results()

    @property
    def why(self) -> str | None:
        """Why a run takes as long as `InferenceSession.run`, as where sizes depend on data. None: it does not."""
        return self._core.why or None

    def __repr__(self) -> str:
        """One line."""
        return f"<treadle.BoundRun{': ' + self.why if self.why else ''}>"
