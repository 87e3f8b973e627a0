"""A session run over a signal that arrives in pieces."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, Protocol, Self

from . import _core
from ._bound import in_order
from ._c import written_options
from ._errors import InvalidArgument
from ._progress import Progress, watched

if TYPE_CHECKING:
    from types import TracebackType

    from ._options import RunOptions
    from ._types import AnyArray, InputValue, OutputValue


class _Closed:
    """What a closed stream or pool holds in place of its core: all that is asked of it is an error."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __getattr__(self, name: str) -> NoReturn:
        raise ValueError(f"the {self._what} is closed")


class Closable:
    """What a stream and a pool have in common: a core, which they give up when they are closed."""

    _what: ClassVar[str]  # for messages
    _core: Any
    _push: Callable[..., Any]
    _flush: Callable[..., Any]

    @property
    def closed(self) -> bool:
        """Whether `close` was called; whatever is asked of the core raises ValueError then."""
        return isinstance(self._core, _Closed)

    def close(self) -> None:
        """Gives up what is carried, samples that wait, and their memory; a second call does nothing."""
        self._core = _Closed(self._what)
        self._push = self._flush = self._refuse

    def _refuse(self, *_: Any) -> NoReturn:
        raise ValueError(f"the {self._what} is closed")

    def __enter__(self) -> Self:
        """The same object; ValueError where it is closed already."""
        if self.closed:
            self._refuse()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        self.close()


def _joined(feed: Mapping[Any, Any], inputs: dict[str, Any]) -> dict[str, Any]:
    for name in inputs:
        if name in feed:
            raise TypeError(f"input '{name}' is given twice")
    return {**feed, **inputs}


class Maker(Protocol):
    """What makes streams: an `InferenceSession`."""

    @property
    def stream(self) -> Callable[..., Stream]: ...
    def _recorded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]: ...


class Origin(NamedTuple):
    """What a stream was made of, to make another one like it: the arguments of `InferenceSession.stream`."""

    session: Maker
    state: dict[str, str]
    find_state: bool
    initial: dict[str, Any]
    bind: dict[str, Any]
    time: dict[str, Any]
    hop: int
    context: int

    def stream(self) -> Stream:
        """A stream in its first state."""
        session, state, find_state, initial, bind, time, hop, context = self
        return session.stream(state, bind, time, hop, context, initial=initial, find_state=find_state)


def _go_on(origin: Origin, snapshot: bytes) -> Stream:
    """What a pickled stream becomes."""
    stream = origin.stream()
    stream.load(snapshot)
    return stream


class Stream(_core.StreamBase, Closable):
    """A session whose states go from run to run; made by `InferenceSession.stream`. `print(stream)` lists the states.

    `push` takes any number of samples and gives, for each output that is not a state, what the completed hops gave:
    joined along the output's time axis where it has one, else stacked along a new first axis. A model with one such
    output gives its array, with several a list in the order of `output_names`.

    As a context manager a stream is closed when its block is left, however that is left: the state and the samples that
    wait are given up. Nothing is flushed then, since nobody could take what a flush gives; `flush` inside the block.
    One thread at a time may use a stream; `Busy` is raised in another one.
    """

    _what = "stream"

    def __init__(self, origin: Origin, inputs: Sequence[str], core: _core.Stream) -> None:
        """Not for callers: `InferenceSession.stream` makes streams. `inputs`: names of inputs that are not bound."""
        states = core.state_names()
        self._origin = origin
        self._inputs = [name for name in inputs if name not in states]
        self._core: _core.Stream = core
        self._push = origin.session._recorded("stream_push", core.push)
        if self._push == core.push:  # else the extension must not push alone
            self._set_core(core, sys.intern(self._inputs[0]) if len(self._inputs) == 1 else None)
        self._flush = origin.session._recorded("stream_flush", core.flush)

    def close(self) -> None:
        """Frees the states and the samples that wait; a second call does nothing."""
        self._set_core(None, None)
        super().close()

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs that a push gives, in their order: those of the model that are not states."""
        return self._core.output_names()

    @property
    def output_axes(self) -> dict[str, int | None]:
        """For each output the axis along which the results of pushes go together, as `numpy.concatenate` joins them.

        None where they do not: each push gives the newest value.
        """
        axes = self._core.output_axes()
        return {name: None if axis < 0 else axis for name, axis in zip(self.output_names, axes, strict=True)}

    @property
    def pending(self) -> int:
        """Samples that wait for their hop, or for the stride of a convolution."""
        return self._core.pending

    @property
    def delay(self) -> int:
        """Samples by which a stream over time lags behind a run over all that has come."""
        return self._core.delay

    def breaks_realtime(self, samples: int = 0) -> str | None:
        """Why pushes of so many samples (0: one hop) may not keep real time: the first node that asks for memory, takes a
        lock or makes a system call, or what the session lacks. None: they keep it, from C and C++ with outputs handed in;
        Python itself promises no times. Plans pushes of this size; compile loops before, with `warm`.
        """
        return self._core.breaks_realtime(samples)

    def write_c(
        self,
        prefix: str = "model",
        *,
        samples: int = 0,
        end: bool = True,
        dims: Mapping[str, int] | None = None,
        fma: bool = True,
        libm: bool = False,
        weights: str | os.PathLike[str] | None = None,
    ) -> tuple[str, str]:
        """The stream as C: the texts of one source and of its header `<prefix>.h`, which need no runtime.

        `samples`: how many each push takes (0: one hop). Without `end` there is no function for the end of the signal.
        The other arguments are those of `InferenceSession.write_c`. Bound inputs and first values of states are those of
        the stream; what it carries now does not count. Raises NotImplemented with every node that cannot be written, and
        InvalidArgument for a number of samples that is no multiple of the hop.
        """
        options = written_options(prefix, dims, fma, libm, weights) + [f"end={int(end)}"]
        if samples:
            options.append(f"samples={samples}")
        return self._core.write_c(options)

    @property
    def done(self) -> bool:
        """Whether a loop of the model has ended by its condition, so that no more frames come."""
        return self._core.done

    @property
    def state(self) -> dict[str, OutputValue]:
        """A copy of the states, by the names of their inputs.

        Assigned values (of some states, or all) replace the states; InvalidArgument for names, types and shapes that
        do not fit, and then no state has changed.
        """
        return self._core.state()

    @state.setter
    def state(self, values: Mapping[str, InputValue]) -> None:
        backup = self._core.save()
        try:
            for name, value in values.items():
                self._core.set_state(name, value)
        except Exception:
            self._core.load(backup, True)
            raise

    @_core.push_method
    def push(
        self,
        feed: InputValue = None,
        /,
        *,
        run_options: RunOptions | None = None,
        progress: Progress = None,
        **inputs: InputValue,
    ) -> OutputValue:
        """Runs the model over the samples that have arrived; returns the array of the one output, or a list of several.

        Inputs by keyword, or in a dict when their names are no identifiers. An array alone is the chunk of the one input
        that is neither a state, nor bound, nor given by keyword. Chunks have the shape of their input, with any number
        of samples along its time axis where the stream has one. Without a whole hop the results have 0 frames.

        `progress`: as for `InferenceSession.run`; of a push that makes several runs, it counts runs.

        Raises InvalidArgument for what does not fit (an array alone where several inputs are open: the message names
        them), RuntimeException where data make an operator fail, LimitExceeded at a limit of `run_options`, Busy while
        another thread pushes, ValueError once the stream is closed. A push that fails changes nothing.
        """
        if feed is None:
            given: Mapping[str, InputValue] = inputs
        elif isinstance(feed, Mapping):
            given = _joined(feed, inputs)
        else:
            given = {self._open_input(inputs): feed, **inputs}
        if progress is None:
            return self._push(given, run_options)
        with watched(progress):
            return self._push(given, run_options)

    def bind(
        self,
        feed: AnyArray | Mapping[str, AnyArray] | None = None,
        /,
        *,
        outputs: Mapping[str, AnyArray] | None = None,
        run_options: RunOptions | None = None,
        **inputs: AnyArray,
    ) -> OutputValue:
        """Binds the arguments of `push`, so that `step` takes hardly longer than the arithmetic of the model.

        Each step reads the arrays as they are then: they must be contiguous and of the input's type. `outputs`: arrays
        for results, by name; there are new ones for the others. Returns the arrays of results, as `push` does; their
        contents mean nothing yet. What the inputs hold is pushed to a copy of the stream meanwhile. A fork is not bound.
        Raises what `push` raises, and InvalidArgument for arrays that cannot be used in place.
        """
        if feed is None:
            given: Mapping[str, Any] = inputs
        elif isinstance(feed, Mapping):
            given = _joined(feed, inputs)
        else:
            given = {self._open_input(inputs): feed, **inputs}
        return self._core.bind(dict(given), in_order(self.output_names, outputs), run_options)

    def step(self) -> OutputValue:
        """A push of what the bound arrays hold now, to the last bit. Returns the results as `push` does: the same arrays
        each time, written in place, unless the sizes of a result have changed. Raises what `push` raises, and
        InvalidArgument where nothing is bound.
        """
        return self._core.step()

    def unbind(self) -> None:
        """Lets go of the bound arrays."""
        self._core.unbind()

    def _open_input(self, given: Mapping[str, Any]) -> str:
        """The input that an array alone is for."""
        found = [name for name in self._inputs if name not in given]
        if len(found) != 1:
            takes = f"takes {', '.join(found)}: give each by its name" if found else "has no input left"
            raise InvalidArgument(f"an array alone is for a stream with one input; this one {takes}")
        return found[0]

    def flush(
        self,
        feed: Mapping[str, InputValue] | None = None,
        /,
        *,
        run_options: RunOptions | None = None,
        **inputs: InputValue,
    ) -> OutputValue:
        """Pads the samples that wait with zeros to a whole hop and runs it; empty results when nothing waits.

        Without a hop: the frames that the end of the signal brings. The stream has ended then, until `reset`. Inputs
        that do not run over time are given as to `push`. Results and errors are those of `push`.
        """
        return self._flush(_joined(feed or {}, inputs), run_options)

    def reset(self) -> None:
        """Back to the first state; samples that wait are dropped. Raises Busy while another thread pushes."""
        self._core.reset()

    def fork(self) -> Stream:
        """A second stream that goes on from here on its own."""
        return Stream(self._origin, self._inputs, self._core.fork())

    def save(self) -> bytes:
        """State and waiting samples, for `load` on a stream of the same model that was made alike."""
        return self._core.save()

    def load(self, snapshot: bytes, *, other_weights: bool = False) -> None:
        """Goes on from a snapshot of `save`; InvalidArgument when it is of another model or another kind of stream.

        `other_weights`: the model's constants may have other contents, so that streams move on to a newer model.
        """
        self._core.load(bytes(snapshot), other_weights)

    def __reduce__(self) -> tuple[Callable[[Origin, bytes], Stream], tuple[Origin, bytes]]:
        """The session, the arguments that the stream was made with, and a snapshot, from which the copy goes on."""
        return _go_on, (self._origin, self.save())

    def __str__(self) -> str:
        """What is carried, and along which axes: a line for each input and output."""
        return repr(self) if self.closed else self._core.text().rstrip()

    def __repr__(self) -> str:
        """One line: inputs, states, outputs, samples that wait."""
        if self.closed:
            return "<treadle.Stream, closed>"
        inputs, states = ", ".join(self._inputs) or "nothing", len(self._core.state_names())
        carried = f"{states} state{'s' * (states != 1)}"
        waits = f", {self.pending} pending" if self.pending else ""
        return f"<treadle.Stream: {inputs} -> {', '.join(self.output_names) or 'nothing'}, {carried}{waits}>"
