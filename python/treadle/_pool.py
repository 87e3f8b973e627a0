"""Many streams of one model, stepped together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from . import _core
from ._errors import InvalidArgument
from ._progress import Progress, watched
from ._stream import Closable, Origin, Stream

if TYPE_CHECKING:
    from ._options import RunOptions
    from ._types import InputValue, Key, OutputValue


class StreamPool(Closable):
    """Streams by any names of yours; made by `InferenceSession.streams`.

    Streams that come in one push run together as the entries of a batch. A stream joins with its first chunk, and leaves
    with `flush` or `leave`. Each gives what it would give on its own.

    As a context manager a pool is closed when its block is left, however that is left: all streams leave, and what they
    carry is given up. Nothing is flushed then; `flush` streams inside the block.
    """

    _what = "pool"

    def __init__(
        self, origin: Origin, capacity: int, inputs: Sequence[str], timed: Sequence[str], core: _core.StreamPool
    ) -> None:
        """Not for callers: `InferenceSession.streams` makes pools. `inputs`: those that are not bound."""
        self._origin = origin
        self._capacity = capacity
        self._inputs = inputs
        self._timed = timed
        self._core: _core.StreamPool = core
        self._push = origin.session._recorded("pool_push", core.push)
        self._flush = origin.session._recorded("pool_flush", core.flush)
        self._numbers: dict[Hashable, int] = {}
        self._next = 0

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs that a push gives for each stream, in their order."""
        return self._core.output_names()

    @property
    def capacity(self) -> int:
        """Streams that there is room for."""
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
        """How many streams have joined and not left."""
        return len(self._numbers)

    def __contains__(self, stream: Hashable) -> bool:
        """Whether the stream has joined and not left."""
        return stream in self._numbers

    def push(
        self, chunks: Mapping[Key, InputValue], *, run_options: RunOptions | None = None, progress: Progress = None
    ) -> dict[Key, OutputValue]:
        """The next chunk of each stream that has one: an array, or a dict of arrays where several inputs are cut.

        `progress`: as for `InferenceSession.run`, told of each run that the push makes.

        Gives for each stream what `Stream.push` gives. Raises InvalidArgument for chunks that do not fit and for more
        streams than there is room for, otherwise what `Stream.push` raises. A push that fails changes nothing.
        """
        numbers = dict(self._numbers)
        upcoming = self._next
        for stream in chunks:
            if stream not in numbers:
                numbers[stream] = upcoming
                upcoming += 1
        feeds = [self._feed(chunk) for chunk in chunks.values()]
        ids = [numbers[stream] for stream in chunks]
        if progress is None:
            results = self._push(ids, feeds, run_options)
        else:
            with watched(progress):
                results = self._push(ids, feeds, run_options)
        self._numbers, self._next = numbers, upcoming
        return {stream: self._unpack(result) for stream, result in zip(chunks, results, strict=True)}

    def flush(self, stream: Hashable, *, run_options: RunOptions | None = None) -> OutputValue:
        """What the end of the stream's signal brings; the stream leaves. InvalidArgument where the pool has none of it."""
        result = self._unpack(self._flush(self._number(stream), run_options))
        del self._numbers[stream]
        return result

    def leave(self, stream: Hashable) -> None:
        """Gives up what the stream carries and makes room; InvalidArgument where the pool has no such stream."""
        self._core.leave(self._number(stream))
        del self._numbers[stream]

    def fork(self, stream: Hashable) -> Stream:
        """A stream of its own that goes on from where this one is: to look at its state, or to save it."""
        return Stream(self._origin, self._inputs, self._core.fork(self._number(stream)))

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

    def close(self) -> None:
        """Gives up all streams, what they carry, and their memory; a second call does nothing."""
        super().close()
        self._numbers = {}

    def __reduce__(self) -> NoReturn:
        """Raises TypeError: streams are pickled one by one."""
        raise TypeError(
            "a pool cannot be pickled: pickle its streams, which `fork` gives, and let `join` take them into another pool"
        )

    def __repr__(self) -> str:
        """One line: how many streams, for how many there is room, outputs, and whether they run one by one."""
        if self.closed:
            return "<treadle.StreamPool, closed>"
        single = ", run one by one" if self.why_single else ""
        outputs = ", ".join(self.output_names) or "nothing"
        return f"<treadle.StreamPool: {len(self)} of {self._capacity} streams -> {outputs}{single}>"

    def _number(self, stream: Hashable) -> int:
        if self.closed:
            self._refuse()
        if stream not in self._numbers:
            raise InvalidArgument(f"the pool has no stream {stream!r}")
        return self._numbers[stream]

    def _feed(self, chunk: Any) -> dict[str, Any]:
        if isinstance(chunk, Mapping):
            return dict(chunk)
        if len(self._timed) != 1:
            known = ", ".join(self._timed or self._inputs)
            raise InvalidArgument(f"say which input a chunk belongs to ({known}): {{stream: {{input: chunk}}}}")
        return {self._timed[0]: chunk}

    @staticmethod
    def _unpack(outputs: list[Any]) -> Any:
        return outputs[0] if len(outputs) == 1 else outputs
