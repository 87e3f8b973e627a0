"""Who is told how far a run is."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from . import _core

# Told (done, total), total None where nobody knows; True: tqdm's bar.
Progress: TypeAlias = Callable[[int, int | None], object] | bool | None


class _Bar:
    """tqdm's bar."""

    def __init__(self) -> None:
        try:
            tqdm: Any = importlib.import_module("tqdm.auto").tqdm
        except ImportError as e:
            raise ImportError(
                "progress=True shows tqdm's bar, and tqdm is not installed: pip install tqdm, or give a callable"
            ) from e
        self.bar = tqdm(mininterval=0)

    def __call__(self, done: int, total: int | None) -> None:
        self.bar.total = total
        self.bar.update(done - self.bar.n)


@contextlib.contextmanager
def watched(progress: Progress) -> Iterator[None]:
    """While it lasts, `progress` is told of the runs of this thread."""
    if progress is None or progress is False:
        yield
        return
    if progress is not True and not callable(progress):
        raise TypeError(f"progress is True or is called with (done, total), and is a {type(progress).__name__}")
    with contextlib.ExitStack() as stack:
        told = progress
        if told is True:
            told = _Bar()
            stack.callback(told.bar.close)
        before = _core.watch(told)
        stack.callback(_core.watch, before)
        yield
