"""The smallest model that still fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from . import _core
from ._model import model_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._types import Message, PathOrBytes


@overload
def reduce(model: PathOrBytes, fails: Callable[[bytes], object], *, attempts: int = 1000) -> bytes: ...
@overload
def reduce(model: Message, fails: Callable[[bytes], object], *, attempts: int = 1000) -> Message: ...
def reduce(model: Any, fails: Callable[[bytes], object], *, attempts: int = 1000) -> Any:
    """The smallest model found for which `fails` is true: a ModelProto for a ModelProto, else bytes.

    The search takes out outputs, nodes, functions, branches, bodies, states, iterations, sizes and contents of tensors,
    and asks `fails` about each smaller model. It makes the same attempts each time.

    model:    a path, bytes or a ModelProto
    fails:    is called with a serialised model; some do not load. An exception ends the search, and is raised: catch
              those of models that fail in another way
    attempts: calls of `fails` at most

    Raises ValueError if `fails` is false for `model` itself. `treadle reduce` does the same with a shell command, which
    may also crash or take too long.
    """

    def fails_as_given(candidate: bytes, attempt: int) -> object:
        failed = fails(candidate)
        if attempt == 1 and not failed:
            raise ValueError("the model does not fail as it is: nothing to keep")
        return failed

    reduced = _core.reduce_model(*model_source(model), fails_as_given, attempts)
    return type(model).FromString(reduced) if hasattr(model, "SerializeToString") else reduced
