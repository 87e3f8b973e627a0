"""Where treadle and another engine part: outputs, and the first inner value beyond the tolerance."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._comparison import Comparison

if TYPE_CHECKING:
    from ._types import InputValue, PathOrBytes, Serializable


def compare(
    model: PathOrBytes | Serializable,
    input_feed: Mapping[str, InputValue],
    other: PathOrBytes | Serializable = "onnxruntime",
    *,
    rtol: float | None = None,
    atol: float | None = None,
    inner: bool | None = None,
    watch: Sequence[str] = (),
    memory: int = 1 << 28,
    runs: int = 5,
    threads: int = 0,
    save: str | os.PathLike[str] | None = None,
    options: Mapping[str, str] | None = None,
) -> Comparison:
    """Runs the model in treadle and in another engine, and says where they part.

    `other`: "onnxruntime", "reference" (treadle's reference interpreter), or a second model, which treadle runs. Each engine
    has a process of its own. Elements may differ by `atol + rtol * |expected|`; without both by 1e-3 + 1e-3 of the largest
    element; whole numbers must be equal.

    Where an output differs, inner values of both are compared, in bodies for each iteration, and the first one beyond the
    tolerance is found. `inner`: True compares them although the outputs agree, False never. `watch`: only values with these
    names, or that fit these patterns ("*"). `memory`: bytes of inner values that are held at once; more values take more
    runs. `runs`: how many are timed. `threads`: of both engines; 0: as each likes. `save`: a folder that gets the first node
    that differs as a model with its inputs and the other engine's outputs, for `treadle test`. `options`: of treadle's
    session ("jit": "off").

    Raises what `InferenceSession` raises for a model that cannot be read. An engine that refuses the model, or crashes, is
    named in the result, which then does not agree.
    """
    from ._compare_differences import Tolerance  # here and below: rare, and takes a while to import
    from ._compare_engines import ONNXRUNTIME, REFERENCE, TREADLE, Engine
    from ._compare_search import Search, Side, check_feeds

    feeds = check_feeds(input_feed)
    ours_model = _model_of(model)
    name = other if isinstance(other, str) and other in (ONNXRUNTIME, REFERENCE) else TREADLE
    theirs_model = ours_model if name != TREADLE else _model_of(other)
    with contextlib.ExitStack() as stack:
        ours = Side(
            "the model" if name == TREADLE else "treadle",
            stack.enter_context(Engine(TREADLE, threads, options)),
            ours_model,
            feeds,
        )
        theirs_options = options if name == TREADLE else None
        theirs = Side(
            "the other model" if name == TREADLE else name,
            stack.enter_context(Engine(name, threads, theirs_options)),
            theirs_model,
            feeds,
        )
        search = Search(ours, theirs, Tolerance(rtol, atol), memory, watch)
        return search.run(inner, runs, None if save is None else os.fspath(save))


def _model_of(model: Any) -> str | bytes:
    """A path, or the bytes of a binary model."""
    from . import _core
    from ._model import model_source
    from ._text import parse_model

    path, data = model_source(model)
    if path is not None:
        with open(path, "rb") as file:
            if not _core.is_text(file.read(4096)):
                return os.path.abspath(path)
        data = _core.read_file(path)
    assert data is not None
    return parse_model(data) if _core.is_text(data) else data
