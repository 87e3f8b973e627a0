"""Steps of sequences, answers to them, and the errors that refuse a step.

Servers map errors to statuses: `Unavailable` to 503 or UNAVAILABLE, others to 400 or INVALID_ARGUMENT.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .. import Stream

Id = int | str  # of a sequence; 0 and "" stand for no sequence
Outputs = list[Any]  # an array for each output, or None where the stream has none yet


class StepError(Exception):
    """A step was refused; nothing has changed for the stream that it was for, nor for any other."""


class BadStep(StepError):
    """Inputs, an id or a snapshot that do not fit, or data that make an operator fail."""


class UnknownSequence(StepError):
    """The step is for a stream that has not been started, has ended, or was idle for too long."""


class Unavailable(StepError):
    """Nothing is wrong with the step, but it cannot be made here and now; another server may take it."""


class Full(Unavailable):
    """There is no room for another stream."""


class Retiring(Unavailable):
    """The server is about to end: no stream starts here any more."""


@dataclass(slots=True)
class Step:
    """The next chunk of one stream.

    `id`: whose; 0 or "" is a whole signal in one step, of which nothing is kept. `inputs`: arrays by name, each with one
    entry of the batch, or the array alone of a model with one input. `start`: a new stream, or one that goes on from the
    snapshot `state`. `end`: the stream ends with this step, and its answer holds what the end brings. `snapshot`: the
    answer is to hold the state behind this step.
    """

    id: Id
    inputs: Mapping[str, NDArray[Any]] | NDArray[Any]
    start: bool = False
    end: bool = False
    snapshot: bool = False
    state: bytes = b""


@dataclass(slots=True)
class Answer:
    """What a step gave.

    `outputs`: an array for each output, in the order of `Streams.output_names`; None where the stream has none yet.
    `state`: the snapshot that was asked for, empty behind an end. `moved`: the stream has left with this answer, since the
    server is about to end; it goes on elsewhere from `state`.
    """

    outputs: Outputs
    state: bytes = b""
    moved: bool = False


@dataclass(slots=True)
class Rows:
    """What steps of several streams gave, put together along the batch axis of each output; snapshots row by row.

    `lengths`: where they were asked for, [rows, outputs]: how much of each output is the row's own along the axis of time,
    1 where there is none; the rest is zeros.
    """

    outputs: Outputs
    states: list[bytes] = field(default_factory=list)
    moved: bool = False
    lengths: NDArray[np.int64] | None = None


@dataclass(slots=True)
class Work:
    """A step that `Streams` has let in."""

    step: Step
    inputs: dict[str, NDArray[Any]]
    number: int = -1  # in the pool; -1: none
    old: int = -1  # of the stream that a start replaces
    own: Stream | None = None  # that runs it apart from the pool: its last step
    joined: bool = False  # into the pool, before the push
    result: Outputs | StepError | Exception = field(default_factory=list)
