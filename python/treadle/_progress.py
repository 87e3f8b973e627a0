"""Callbacks and bars that show the progress of a run."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from . import _core

# Called with (done, total); total is None when it is unknown. True: tqdm's bar.
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


def check_progress(progress: Progress) -> None:
    """TypeError when `progress` is neither a bool, None nor callable."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise TypeError(f"progress is True or is called with (done, total), and is a {type(progress).__name__}")


@contextlib.contextmanager
def told(progress: Progress) -> Iterator[Callable[[int, int | None], object] | None]:
    """The callback that gets (done, total) during the `with` block; None without one."""
    check_progress(progress)
    if progress is True:
        bar = _Bar()
        with contextlib.closing(bar.bar):
            yield bar
    else:
        yield progress or None


@contextlib.contextmanager
def watched(progress: Progress) -> Iterator[None]:
    """While it lasts, `progress` is told of the runs of this thread."""
    with told(progress) as watcher:
        if watcher is None:
            yield
            return
        before = _core.watch(watcher)
        try:
            yield
        finally:
            _core.watch(before)
