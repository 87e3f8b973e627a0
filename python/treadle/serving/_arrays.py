"""Pushes of a pool, as arrays where streams have chunks of one size, else as dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import InvalidArgument
from ._signature import Signature, as_list
from ._steps import Outputs, Work

if TYPE_CHECKING:
    from .. import StreamPool

LONGEST_WAIT = 64  # pushes until arrays are tried again


class ArrayPush:
    """Pushes steps of different streams, and gives each its result."""

    def __init__(self, pool: StreamPool, signature: Signature) -> None:
        """`push_batch` is the pool's push of arrays, where it has one and streams run together."""
        self._pool, self._signature = pool, signature
        found: Callable[..., Any] | None = getattr(pool, "push_batch", None)
        self.push_batch = None if pool.why_single else found
        self._wait = self._waited = 0
        self._single: tuple[Any, Outputs] | None = None  # sizes of chunks, and the outputs of one stream for them

    def push(self, works: Sequence[Work]) -> None:
        """One push. Raises the pool's errors; then nothing has changed."""
        if len(works) > 1 and self._try(works):
            return
        results = self._pool.push({work.number: work.inputs for work in works})
        for work in works:
            work.result = as_list(results[work.number], len(self._signature.outputs))
        found = works[0].result
        if isinstance(found, list) and all(output is not None for output in found):
            self._single = _form(works[0]), found

    def _try(self, works: Sequence[Work]) -> bool:
        """A push of arrays; False where streams are not alike, and nothing was done."""
        self._waited += 1
        form = _form(works[0])
        if self.push_batch is None or self._single is None or self._waited <= self._wait:
            return False
        if self._signature.entry_axes is None and self._single[0] != form:
            return False
        if any(_form(work) != form for work in works):
            return False
        axis = self._signature.batch_axis
        feed = {n: np.concatenate([work.inputs[n] for work in works], axis=axis(n)) for n in works[0].inputs}
        try:
            results = self.push_batch(np.array([work.number for work in works]), feed)
        except InvalidArgument:  # not equally far, as a rule
            self._waited, self._wait = 0, min(2 * self._wait + 1, LONGEST_WAIT)
            return False
        self._wait = 0
        outputs = as_list(results, len(self._signature.outputs))
        entries = self._signature.entries(outputs, len(works), self._single[1])
        for work, result in zip(works, entries, strict=True):
            work.result = result
        return True


def _form(work: Work) -> tuple[Any, ...]:
    return tuple([array.shape for array in work.inputs.values()])
