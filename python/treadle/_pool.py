"""Many streams of one model, stepped together."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from . import _core
from ._errors import InvalidArgument
from ._progress import Progress, watched
from ._stream import Closable, Origin, Stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._options import RunOptions
    from ._types import InputValue, Key, OutputValue

_MOST = np.iinfo(np.int64).max  # among the numbers of streams


class StreamPool(Closable):
    """Streams by any names of yours; made by `InferenceSession.streams`.

    Streams that come in one push run together as the entries of a batch. A stream joins with its first chunk, and leaves
    with `flush` or `leave`. Each gives what it would give on its own. Names that are integers from 0 on are what
    `push_batch` takes in an array.

    As a context manager a pool is closed when its block is left, however that is left: all streams leave, and what they
    carry is given up. Nothing is flushed then; `flush` streams inside the block.
    """

    _what = "pool"

    def __init__(
        self, origin: Origin, capacity: int, inputs: Sequence[str], timed: Sequence[str], core: _core.StreamPool
    ) -> None:
        """Not for callers: `InferenceSession.streams` makes pools. `inputs`: names of the inputs that are not bound."""
        self._origin = origin
        self._capacity = capacity
        self._inputs = inputs
        self._timed = timed
        self._cut: Sequence[str] | None = None  # inputs that an array may be for
        self._core: _core.StreamPool = core
        self._push = origin.session._recorded("pool_push", core.push)
        self._flush = origin.session._recorded("pool_flush", core.flush)
        self._push_batch = origin.session._recorded("pool_push_batch", core.push_batch)
        self._numbers: dict[Hashable, int] = {}  # of names that are no numbers themselves: -1 and below
        self._next = -1

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
        return 0 if self.closed else self._core.size

    def __contains__(self, stream: Hashable) -> bool:
        """Whether the stream has joined and not left."""
        if self.closed:
            return False
        number = _own_number(stream)
        return stream in self._numbers if number is None else self._core.contains(number)

    def push(
        self, chunks: Mapping[Key, InputValue], *, run_options: RunOptions | None = None, progress: Progress = None
    ) -> dict[Key, OutputValue]:
        """The next chunk of each stream that has one: an array, or a dict of arrays where several inputs are cut.

        `progress`: as for `InferenceSession.run`, told of each run that the push makes.

        Gives for each stream what `Stream.push` gives. Raises InvalidArgument for chunks that do not fit and for more
        streams than there is room for, otherwise what `Stream.push` raises. A push that fails changes nothing.
        """
        joining: dict[Hashable, int] = {}
        ids = []
        for stream in chunks:
            number = _own_number(stream)
            if number is None:
                number = self._numbers.get(stream)
            if number is None:
                number = joining[stream] = self._next - len(joining)
            ids.append(number)
        feeds = [self._feed(chunk) for chunk in chunks.values()]
        if progress is None:
            results = self._push(ids, feeds, run_options)
        else:
            with watched(progress):
                results = self._push(ids, feeds, run_options)
        self._numbers.update(joining)
        self._next -= len(joining)
        return {stream: self._unpack(result) for stream, result in zip(chunks, results, strict=True)}

    def push_batch(
        self,
        streams: Sequence[int] | NDArray[np.integer],
        feed: InputValue,
        /,
        *,
        lengths: NDArray[np.int64] | None = None,
        run_options: RunOptions | None = None,
        progress: Progress = None,
    ) -> OutputValue:
        """As many samples of each of several streams, as one array, and one array back: the fastest way to push many.

        `streams`: [N], the numbers by which they are known, each from 0 on and given once: names of `push` and all
        other methods. `feed`: what the model takes for a batch of N, entry i of which is the chunk of `streams[i]`; or a
        dict of such arrays where several inputs are cut. Gives what `Stream.push` gives, with N entries along the axis
        of the batch. Nothing is copied of what streams carry while the same numbers come in the same order.

        `lengths`: int64 [N, outputs], written: how much of each output is the stream's own along the axis that pushes
        are joined along, such as frames (1 where there is no such axis); zeros fill up what is shorter than the longest.
        Streams that are not equally far, as after blocks that are no whole number of windows, need it.

        Raises InvalidArgument for chunks that do not fit, without `lengths` for streams that are not equally far, so
        that their results would have unlike sizes, and where the streams of the pool run one by one (`why_single`);
        LimitExceeded for more streams than there is room for; otherwise what `Stream.push` raises. A push that fails
        changes nothing but `lengths`.
        """
        numbers = np.asarray(streams)
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            raise InvalidArgument(
                f"streams come as an array of whole numbers with one axis, not as {numbers.dtype} {list(numbers.shape)}"
            )
        if numbers.size and numbers.min() < 0:
            raise InvalidArgument(f"the numbers of streams begin at 0; one is {numbers.min()}")
        numbers = np.ascontiguousarray(numbers, dtype=np.int64)
        given = self._feed(feed)
        if progress is None:
            return self._unpack(self._push_batch(numbers, given, run_options, lengths))
        with watched(progress):
            return self._unpack(self._push_batch(numbers, given, run_options, lengths))

    def flush(self, stream: Hashable, *, run_options: RunOptions | None = None) -> OutputValue:
        """What the end of the stream's signal brings; the stream leaves. InvalidArgument where the pool has none of it."""
        result = self._unpack(self._flush(self._number(stream), run_options))
        self._numbers.pop(stream, None)
        return result

    def leave(self, stream: Hashable) -> None:
        """Frees the stream's state and its place in the pool; InvalidArgument when the pool has no such stream."""
        number = _own_number(stream)
        if number is None:
            self._core.leave(self._number(stream))
            del self._numbers[stream]
        else:
            self._core.leave(number)

    def fork(self, stream: Hashable) -> Stream:
        """A stream of its own that goes on from where this one is: to look at its state, or to save it."""
        return Stream(self._origin, self._inputs, self._core.fork(self._number(stream)))

    def join(self, name: Hashable, stream: Stream) -> None:
        """A stream of the pool that goes on from where `stream` is, which was made with the same arguments."""
        if name in self:
            raise InvalidArgument(f"the pool has a stream {name!r} already")
        number = _own_number(name)
        self._core.join(self._next if number is None else number, stream._core)
        if number is None:
            self._numbers[name] = self._next
            self._next -= 1

    def done(self, stream: Hashable) -> bool:
        """Whether a loop of the model has ended by its condition, so that no more frames of the stream come."""
        return self._core.done(self._number(stream))

    def close(self) -> None:
        """Frees all streams with their states; a second call does nothing."""
        super().close()
        self._push_batch = self._refuse
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
        number = _own_number(stream)
        if number is None:
            number = self._numbers.get(stream)
        if number is None or not self._core.contains(number):
            raise InvalidArgument(f"the pool has no stream {stream!r}")
        return number

    def _feed(self, chunk: Any) -> dict[str, Any]:
        if isinstance(chunk, Mapping):
            return dict(chunk)
        if self._cut is None:  # no array has come before
            self._cut = self._timed or self._origin.stream()._inputs
        if len(self._cut) != 1:
            known = ", ".join(self._cut)
            raise InvalidArgument(f"say which input a chunk belongs to ({known}): {{stream: {{input: chunk}}}}")
        return {self._cut[0]: chunk}

    @staticmethod
    def _unpack(outputs: list[Any]) -> Any:
        return outputs[0] if len(outputs) == 1 else outputs


def _own_number(name: Hashable) -> int | None:
    """What a stream's name is as a number; None: the pool gives it one."""
    if type(name) is int:
        return name if 0 <= name <= _MOST else None
    if not isinstance(name, int | np.integer):
        return None
    number = operator.index(name)
    return number if 0 <= number <= _MOST else None
