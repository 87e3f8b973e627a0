"""A session run over a signal that arrives in pieces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _core
from ._profile import Recorder
from ._progress import Progress, watched


def _joined(feed: Mapping[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
    for name in inputs:
        if name in feed:
            raise TypeError(f"input '{name}' is given twice")
    return {**feed, **inputs}


class Stream:
    """State that is carried from run to run; made by `InferenceSession.stream`. `print(stream)` says what is carried.

    `push` takes any number of samples and gives, for each output that is not a state, what the completed hops gave:
    joined along the output's time axis where it has one, else stacked along a new first axis. A model with one such
    output gives its array, with several a list in the order of `output_names`.
    """

    def __init__(self, recorded: Recorder, core: _core.Stream) -> None:
        self._recorded = recorded
        self._core = core
        self._push = recorded("stream_push", core.push)
        self._flush = recorded("stream_flush", core.flush)

    @property
    def output_names(self) -> list[str]:
        return self._core.output_names()

    @property
    def pending(self) -> int:
        """Samples that wait for their hop."""
        return self._core.pending

    @property
    def delay(self) -> int:
        """Samples by which a stream over time lags behind a run over all that has come."""
        return self._core.delay

    @property
    def done(self) -> bool:
        """Whether a loop of the model has ended by its condition, so that no more frames come."""
        return self._core.done

    @property
    def state(self) -> dict[str, Any]:
        """A copy of what is carried, by the names of inputs."""
        return self._core.state()

    @state.setter
    def state(self, values: Mapping[str, Any]) -> None:
        backup = self._core.save()
        try:
            for name, value in values.items():
                self._core.set_state(name, value)
        except Exception:
            self._core.load(backup)
            raise

    def push(
        self,
        feed: Mapping[str, Any] | None = None,
        /,
        *,
        run_options: Any = None,
        progress: Progress = None,
        **inputs: Any,
    ) -> Any:
        """Inputs by keyword, or in a dict when their names are no identifiers. A push that fails changes nothing.

        `progress`: as for `InferenceSession.run`; of a push that makes several runs, it counts runs.
        """
        if progress is not None:
            with watched(progress):
                return self.push(feed, run_options=run_options, **inputs)
        return self._push(inputs if feed is None else _joined(feed, inputs), run_options)

    def flush(self, feed: Mapping[str, Any] | None = None, /, *, run_options: Any = None, **inputs: Any) -> Any:
        """Pads the samples that wait with zeros to a whole hop and runs it; empty results when nothing waits.

        Without a hop: the frames that the end of the signal brings. The stream has ended then, until `reset`.
        """
        return self._flush(_joined(feed or {}, inputs), run_options)

    def reset(self) -> None:
        """Back to the first state; samples that wait are dropped."""
        self._core.reset()

    def fork(self) -> Stream:
        """A second stream that goes on from here on its own."""
        return Stream(self._recorded, self._core.fork())

    def save(self) -> bytes:
        """State and waiting samples, for `load` on a stream of the same model that was made alike."""
        return self._core.save()

    def load(self, snapshot: bytes) -> None:
        self._core.load(bytes(snapshot))

    def __repr__(self) -> str:
        return self._core.text().rstrip()
