"""Many streams of one model, stepped together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from . import _core
from ._errors import InvalidArgument
from ._profile import Recorder
from ._stream import Stream


class StreamPool:
    """Streams by any names of yours; made by `InferenceSession.streams`.

    Streams that come in one push run together as the entries of a batch. A stream joins with its first chunk, and leaves
    with `flush` or `leave`. Each gives what it would give on its own.
    """

    def __init__(self, recorded: Recorder, capacity: int, timed: list[str], core: _core.StreamPool) -> None:
        self._recorded = recorded
        self._capacity = capacity
        self._timed = timed
        self._core = core
        self._push = recorded("pool_push", core.push)
        self._flush = recorded("pool_flush", core.flush)
        self._numbers: dict[Hashable, int] = {}
        self._next = 0

    @property
    def output_names(self) -> list[str]:
        return self._core.output_names()

    @property
    def capacity(self) -> int:
        return self._capacity

    @property
    def why_single(self) -> str:
        """What makes every stream run on its own; empty when they run together."""
        return self._core.why_single

    @property
    def runs(self) -> int:
        """Runs made so far, each for one or more streams."""
        return self._core.runs

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, stream: Hashable) -> bool:
        return stream in self._numbers

    def push(self, chunks: Mapping[Hashable, Any], *, run_options: Any = None) -> dict[Hashable, Any]:
        """The next chunk of each stream that has one: an array, or a dict of arrays where several inputs are cut.

        Gives for each stream what `Stream.push` gives. A push that fails changes nothing.
        """
        numbers = dict(self._numbers)
        upcoming = self._next
        for stream in chunks:
            if stream not in numbers:
                numbers[stream] = upcoming
                upcoming += 1
        feeds = [self._feed(chunk) for chunk in chunks.values()]
        results = self._push([numbers[stream] for stream in chunks], feeds, run_options)
        self._numbers, self._next = numbers, upcoming
        return {stream: self._unpack(result) for stream, result in zip(chunks, results, strict=True)}

    def flush(self, stream: Hashable, *, run_options: Any = None) -> Any:
        """What the end of the stream's signal brings; the stream leaves."""
        result = self._unpack(self._flush(self._number(stream), run_options))
        del self._numbers[stream]
        return result

    def leave(self, stream: Hashable) -> None:
        self._core.leave(self._number(stream))
        del self._numbers[stream]

    def fork(self, stream: Hashable) -> Stream:
        """A stream of its own that goes on from where this one is: to look at its state, or to save it."""
        return Stream(self._recorded, self._core.fork(self._number(stream)))

    def join(self, name: Hashable, stream: Stream) -> None:
        """A stream of the pool that goes on from where `stream` is, which was made with the same arguments."""
        if name in self._numbers:
            raise InvalidArgument(f"the pool has a stream {name!r} already")
        self._core.join(self._next, stream._core)
        self._numbers[name] = self._next
        self._next += 1

    def done(self, stream: Hashable) -> bool:
        """Whether a loop of the model has ended by its condition, so that no more frames of the stream come."""
        return self._core.done(self._number(stream))

    def _number(self, stream: Hashable) -> int:
        if stream not in self._numbers:
            raise InvalidArgument(f"the pool has no stream {stream!r}")
        return self._numbers[stream]

    def _feed(self, chunk: Any) -> dict[str, Any]:
        if isinstance(chunk, Mapping):
            return dict(chunk)
        if len(self._timed) != 1:
            raise InvalidArgument("say which input a chunk belongs to: {stream: {input: chunk}}")
        return {self._timed[0]: chunk}

    @staticmethod
    def _unpack(outputs: list[Any]) -> Any:
        return outputs[0] if len(outputs) == 1 else outputs
