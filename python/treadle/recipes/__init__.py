"""Known models and how to stream them: windows, context, states, and what comes before and after the model.

    from treadle import recipes
    detector = recipes.open("silero-vad")  # the model comes from the package silero-vad, or from a path
    for samples in source:  # of any length, at 16 kHz
        probabilities = detector.push(samples)
    probabilities = detector.flush()

The module needs numpy alone. No model comes with treadle (docs/howto/recipes.md).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from .._errors import InvalidArgument
from .._ignored import suggestion
from . import basic_pitch, gtcrn, openwakeword, piper, silero_vad, silero_vad_4, silero_vad_sequence
from ._audio import AudioStream
from ._recipe import Recipe
from ._signature import signature_of
from .basic_pitch import BasicPitch, Notes
from .gtcrn import Denoiser
from .openwakeword import WakeWord
from .piper import Voice
from .silero_vad import SileroVad
from .silero_vad_4 import SileroVad4
from .silero_vad_sequence import SileroVadSequence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._options import SessionOptions
    from .._session import InferenceSession
    from .._types import PathOrBytes, Serializable

__all__ = [
    "AudioStream",
    "BasicPitch",
    "Denoiser",
    "Notes",
    "Recipe",
    "SileroVad",
    "SileroVad4",
    "SileroVadSequence",
    "Voice",
    "WakeWord",
    "get",
    "match",
    "names",
    "open",
]

_RECIPES: dict[str, Recipe] = {
    module.RECIPE.name: module.RECIPE
    for module in (silero_vad, silero_vad_sequence, silero_vad_4, gtcrn, openwakeword, piper, basic_pitch)
}


def names() -> list[str]:
    """The names of all recipes."""
    return list(_RECIPES)


def get(name: str) -> Recipe:
    """The record of a recipe. InvalidArgument for a name that no recipe has; the message says which there are."""
    if name not in _RECIPES:
        hint = suggestion(name, names()) or f"; there are {', '.join(names())}"
        raise InvalidArgument(f"there is no recipe '{name}'{hint}")
    return _RECIPES[name]


Path: TypeAlias = str | os.PathLike[str]
Options: TypeAlias = "SessionOptions | None"


@overload
def open(
    name: Literal["silero-vad"], path: Path | None = None, *, sess_options: Options = None, rate: int = 16000
) -> SileroVad: ...
@overload
def open(
    name: Literal["silero-vad-sequence"], path: Path | None = None, *, sess_options: Options = None
) -> SileroVadSequence: ...
@overload
def open(
    name: Literal["silero-vad-4"],
    path: Path | None = None,
    *,
    sess_options: Options = None,
    rate: int = 16000,
    hop: int | None = None,
) -> SileroVad4: ...
@overload
def open(
    name: Literal["gtcrn"], path: Path | None = None, *, sess_options: Options = None, window: ArrayLike | None = None
) -> Denoiser: ...
@overload
def open(
    name: Literal["openwakeword"], path: Path | None = None, *, sess_options: Options = None, word: str = "hey_jarvis"
) -> WakeWord: ...
@overload
def open(
    name: Literal["piper"], path: Path | None = None, *, sess_options: Options = None, config: Path | None = None
) -> Voice: ...
@overload
def open(name: Literal["basic-pitch"], path: Path | None = None, *, sess_options: Options = None) -> BasicPitch: ...
def open(name: str, path: Path | None = None, *, sess_options: Options = None, **settings: Any) -> Any:
    """The model of a recipe, ready to take a signal: an `AudioStream`, or for "piper" a voice with `run`.

    `path`: the model's file; None takes it from the package that the recipe names, which need not be importable, but
    installed. `sess_options`: of the session that is made. `settings`: what the recipe has besides, as `rate=8000` of
    "silero-vad" or `word="alexa"` of "openwakeword" (docs/howto/recipes.md lists them). `get(name).open(...)` is the same for
    a name that only the running program knows, whose result has no type.

    Raises InvalidArgument for a name that no recipe has, for a setting that the recipe has not, and for a model that is
    none of the recipe's; NoSuchFile where the package is not installed, with what to install; and what
    `InferenceSession` raises.
    """
    return get(name).open(path, sess_options=sess_options, **settings)


def match(model: PathOrBytes | Serializable | InferenceSession) -> Recipe | None:
    """The recipe that a model belongs to, by the names and sizes of its inputs and outputs and its operators, else None.

    `model`: a path, bytes, a ModelProto or a session. The weights do not count, so a model that was trained anew matches
    as well. Raises NoSuchFile where there is no such file, InvalidProtobuf for bytes that are no model.
    """
    signature = signature_of(model)
    return next((recipe for recipe in _RECIPES.values() if recipe.fits(signature)), None)
