"""Types of arguments. Type checkers read this module; running programs import it only by asking for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypedDict

from .._options import SessionOptions
from .._progress import Progress
from .._types import InputValue


class StreamKeywords(TypedDict, total=False):
    """Arguments of `InferenceSession.stream`, beside `time`, that a predictor hands on."""

    state: Mapping[str, str] | None
    bind: Mapping[str, InputValue] | None
    hop: int
    context: int
    initial: Mapping[str, InputValue] | None
    find_state: bool


class PredictorKeywords(StreamKeywords, total=False):
    """Arguments of `treadle.batch.Predictor`, beside the model."""

    inputs: Mapping[str, str] | None
    outputs: Mapping[str, str] | None
    keep: Iterable[str]
    lengths: str | None
    time: Mapping[str, int | str] | None
    threads: int | None
    on_error: Literal["raise", "column"]
    progress: Progress
    sess_options: SessionOptions | None
