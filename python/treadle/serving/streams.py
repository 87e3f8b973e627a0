"""Sequences: streams by the ids of callers, which start, go on, end, are put away as snapshots and taken up again.

`Streams` takes steps of many streams, pushes those that can go together as one batch, and answers each for itself. It
needs no server and knows of no protocol.
"""

from __future__ import annotations

import logging
import re
import time as clocks
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._errors import Fail, InvalidArgument, InvalidProtobuf, LimitExceeded, NotImplemented, RuntimeException
from ._arrays import ArrayPush
from ._signature import Signature, as_list, rows_of, stacked
from ._statistics import Statistics
from ._steps import (
    Answer,
    BadStep,
    Full,
    Id,
    Outputs,
    Retiring,
    Rows,
    Step,
    StepError,
    Unavailable,
    UnknownSequence,
    Work,
)

if TYPE_CHECKING:
    from .. import InferenceSession, Stream

__all__ = [
    "Answer",
    "BadStep",
    "Full",
    "Id",
    "Retiring",
    "Rows",
    "Statistics",
    "Step",
    "StepError",
    "Streams",
    "Unavailable",
    "UnknownSequence",
]

LONGEST_ID = 128  # bytes, as Triton has it
OF_THE_STEP = (InvalidArgument, InvalidProtobuf, RuntimeException, LimitExceeded, Fail, NotImplemented)
log = logging.getLogger("treadle.serving")


class Streams:
    """Live streams of one model by the ids of callers.

    Any interleaving of steps, starts, ends, idle times, snapshots and failures gives each stream what it would give on
    its own. One thread at a time.
    """

    def __init__(
        self,
        session: InferenceSession,
        *,
        name: str = "model",
        capacity: int = 4096,
        idle_s: float = 300.0,
        clock: Callable[[], float] = clocks.monotonic,
        **stream: Any,
    ) -> None:
        """Room for `capacity` streams; one without a step for more than `idle_s` seconds leaves, as if it had ended.

        `name`: the model's, for messages. `clock`: seconds, which never go back. `stream`: how streams are made, as for
        `InferenceSession.streams`. ValueError for a capacity below 1 or a negative `idle_s`.
        """
        if capacity < 1 or not idle_s >= 0:
            raise ValueError(f"capacity is at least 1 and idle_s not negative, not {capacity} and {idle_s}")
        self.name, self.capacity, self.idle_s, self._clock = name, capacity, idle_s, clock
        self.statistics = Statistics()
        self._arguments = stream
        self._first = session.stream(**stream)
        # While a start replaces a stream that lives, both have a place.
        self._pool = session.streams(2 * capacity, **{k: v for k, v in stream.items() if k != "warm"})
        self.signature = Signature(session, self._first, stream.get("time") or {})
        self._live: dict[Id, int] = {}
        self._free = list(range(2 * capacity - 1, -1, -1))
        self._seen = np.zeros(2 * capacity)  # when each number was last used
        self._next_sweep = -np.inf
        self._arrays = ArrayPush(self._pool, self.signature)
        self._retiring = False

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs of an answer, in their order."""
        return self._pool.output_names

    @property
    def why_single(self) -> str:
        """What makes every stream run on its own; empty when they run together."""
        return self._pool.why_single

    @property
    def retiring(self) -> bool:
        """Whether `retire` was called."""
        return self._retiring

    def __len__(self) -> int:
        """Streams that live, those included that have been idle for too long and were not looked for yet."""
        return len(self._live)

    def __contains__(self, sequence: Id) -> bool:
        """Whether a step of this id without START would find its stream."""
        return self._find(sequence, self._clock()) >= 0

    def __repr__(self) -> str:
        """One line: the model, streams, and for how many there is room."""
        return f"<treadle.serving.Streams of '{self.name}': {len(self)} of {self.capacity}>"

    def step(self, steps: Sequence[Step]) -> list[Answer | Exception]:
        """Answers in the order of `steps`; a StepError where a step was refused, which changes nothing for anybody.

        Steps that can go together are one push of the pool. Steps of one id run in their order.
        """
        answers: list[Answer | Exception] = [StepError()] * len(steps)
        self._sweep(now := self._clock())
        upcoming = [k for k, step in enumerate(steps) if type(step.id) in (int, str)]
        for k in set(range(len(steps))).difference(upcoming) if len(upcoming) < len(steps) else ():
            answers[k] = self._refused(self._no_id(steps[k].id))
        while upcoming:
            taken, turn, later = set[Id](), list[int](), list[int]()
            for k in upcoming:
                sequence = steps[k].id
                (later if sequence in taken else turn).append(k)
                if sequence:
                    taken.add(sequence)
            self._turn(steps, turn, answers, now)
            upcoming = later
        return answers

    def _turn(self, steps: Sequence[Step], turn: list[int], answers: list[Answer | Exception], now: float) -> None:
        """Steps of different streams."""
        works: list[tuple[int, Work]] = []
        fresh: set[int] = set()
        for k in turn:
            try:
                works.append((k, self._admit(steps[k], now, fresh)))
            except StepError as e:
                answers[k] = self._refused(e)
        self._run([work for _, work in works])
        for k, work in works:
            answers[k] = self._finish(work, now)

    def _admit(self, step: Step, now: float, fresh: set[int]) -> Work:
        """Lets a step in, or raises a StepError and changes nothing; `fresh`: numbers that are taken by starts of this turn."""
        inputs = self.signature.checked(step.inputs)
        if not step.id:
            return self._whole(step, inputs)
        self._check_id(step.id)
        number = self._find(step.id, now)
        if step.start:
            return self._start(step, inputs, number, fresh)
        if number < 0:
            raise self._unknown(step.id)
        if step.state:
            raise BadStep(f"sequence {step.id} goes on already: a snapshot is given together with the START flag")
        return Work(step, inputs, number, own=self._pool.fork(number) if step.end else None)

    def _unknown(self, sequence: Id) -> UnknownSequence:
        return UnknownSequence(
            f"inference request for sequence {sequence} to model '{self.name}' must specify the START flag on the first "
            "request of the sequence"
        )

    def _whole(self, step: Step, inputs: dict[str, NDArray[Any]]) -> Work:
        if step.state or step.snapshot:
            raise BadStep(f"a request to model '{self.name}' without a sequence id has no snapshots")
        return Work(step, inputs, own=self._first.fork())

    def _start(self, step: Step, inputs: dict[str, NDArray[Any]], old: int, fresh: set[int]) -> Work:
        if self._retiring:
            raise Retiring(f"model '{self.name}' is about to end here: sequence {step.id} cannot start")
        stream = self._loaded(step) if step.state else None
        if step.end:
            return Work(step, inputs, old=old, own=stream or self._first.fork())
        if old < 0 and len(self._live) + len(fresh) >= self.capacity:
            self._sweep(self._clock(), at_once=True)
            if len(self._live) + len(fresh) >= self.capacity:
                raise Full(
                    f"model '{self.name}' has room for {self.capacity} sequences: sequence {step.id} cannot start"
                )
        number = self._free.pop()
        if stream is not None:
            try:
                self._pool.join(number, stream)
            except OF_THE_STEP as e:
                self._free.append(number)
                raise self._bad_snapshot(step, e) from e
        if old < 0:
            fresh.add(number)
        return Work(step, inputs, number, old, joined=stream is not None)

    def _loaded(self, step: Step) -> Stream:
        """The stream that a snapshot holds."""
        stream = self._first.fork()
        try:
            stream.load(step.state)
        except OF_THE_STEP as e:
            raise self._bad_snapshot(step, e) from e
        return stream

    def _bad_snapshot(self, step: Step, error: Exception) -> BadStep:
        return BadStep(f"the snapshot of sequence {step.id} is none of a stream of model '{self.name}': {error}")

    @staticmethod
    def _check_id(sequence: Id) -> None:
        if isinstance(sequence, str):
            if len(sequence.encode("utf-8", "surrogatepass")) > LONGEST_ID:
                raise BadStep(f"a sequence id has {LONGEST_ID} bytes at most")
        elif not 0 < sequence < 1 << 64:
            raise Streams._no_id(sequence)

    @staticmethod
    def _no_id(found: object) -> BadStep:
        return BadStep(f"a sequence id is a text or an integer of 64 bits without a sign, not {found!r:.100}")

    def _run(self, works: list[Work]) -> None:
        """Results of all, as outputs or errors."""
        for work in works:
            if work.own is not None:
                try:
                    work.result = self.signature.ended(work.own, work.inputs)
                except Exception as e:
                    work.result = self._failed(work, e)
        if together := [work for work in works if work.own is None]:
            self._push(together)

    def _push(self, works: list[Work]) -> None:
        """One push; where it fails, two of the halves, so that only the step that is at fault fails."""
        begun = clocks.perf_counter()
        try:
            self._arrays.push(works)
        except Exception as e:
            if len(works) == 1:
                works[0].result = self._failed(works[0], e)
            else:
                middle = len(works) // 2
                self._push(works[:middle])
                self._push(works[middle:])
            return
        self.statistics.count_push(len(works), clocks.perf_counter() - begun)

    def _failed(self, work: Work, error: Exception) -> Exception:
        """A BadStep where the step is at fault, else the error itself."""
        if not isinstance(error, OF_THE_STEP):
            return error
        said = re.sub(r"^stream \d+: ", "", str(error))
        failed = BadStep(f"sequence {work.step.id} of model '{self.name}': {said}" if work.step.id else said)
        failed.__cause__ = error
        return failed

    def _finish(self, work: Work, now: float) -> Answer | Exception:
        """The answer; a stream starts, goes on or leaves as the step says, unless the step has failed."""
        if isinstance(work.result, Exception):
            self._undo(work)
            return self._refused(work.result)
        self.statistics.steps += 1
        step = work.step
        if not step.id:
            return Answer(work.result)
        if step.start:
            self.statistics.started += 1
            if work.old >= 0:
                log.warning(
                    "sequence %s of model '%s' starts while it is live: the stream that it was is dropped",
                    step.id,
                    self.name,
                )
                self.statistics.replaced += 1
                self._release(step.id, work.old)
        if step.end:
            self.statistics.ended += 1
            if work.number >= 0:
                self._release(step.id, work.number)
            return Answer(work.result)
        self._live[step.id] = work.number
        self._seen[work.number] = now
        if not (step.snapshot or self._retiring):
            return Answer(work.result)
        take = self.hand_out if self._retiring else self.snapshot
        return Answer(work.result, take(step.id), self._retiring)

    def _undo(self, work: Work) -> None:
        """Undoes the effects of a start: the stream leaves the pool, and its number is free."""
        if work.step.start and work.number >= 0:
            if work.joined:
                self._pool.leave(work.number)
            self._free.append(work.number)

    def _refused(self, error: Exception) -> Exception:
        self.statistics.refused[type(error).__name__] += 1
        return error

    def step_rows(
        self,
        ids: Sequence[Id],
        inputs: Mapping[str, NDArray[Any]],
        *,
        start: Sequence[bool] | None = None,
        end: Sequence[bool] | None = None,
        snapshot: bool = False,
        states: Sequence[bytes] | None = None,
        lengths: bool = False,
    ) -> Rows:
        """Steps of several streams at once, whose chunks are the entries of the inputs' batch axis; all or none.

        `start`, `end`, `states`: one of each for each id, as in `Step`. `lengths`: results may have unlike sizes, as those
        of streams that are not equally far, and the answer says how long each is. Raises the StepError of the first row
        that is refused, and without `lengths` of rows whose results have unlike sizes; nothing has changed then for any of
        them.
        """
        self._sweep(now := self._clock())
        try:
            axes = self._check_rows(ids, inputs)
            room = np.zeros((len(ids), len(self.signature.outputs)), np.int64) if lengths else None
            started, ended, given = start or [], end or [], states or []
            for what, values in (("start", started), ("end", ended), ("snapshot", given)):
                if values and len(values) != len(ids):
                    raise BadStep(f"{len(ids)} sequences have {len(values)} values of {what}")
            if (
                self._arrays.push_batch
                and not any(started)
                and not any(ended)
                and not any(given)
                and not self._retiring
            ):
                return self._rows_together(self._arrays.push_batch, ids, inputs, snapshot, room, now)
            return self._rows_apart(ids, inputs, axes, started, ended, given, snapshot, room, now)
        except StepError as e:
            self.statistics.refused[type(e).__name__] += len(ids)
            raise

    def _check_rows(self, ids: Sequence[Id], inputs: Mapping[str, NDArray[Any]]) -> dict[str, int]:
        """The batch axis of each input."""
        if self.why_single:
            raise BadStep(
                f"model '{self.name}' takes one sequence in a request, as streams run on their own: {self.why_single}"
            )
        if len(set(ids)) != len(ids) or not all(ids):
            raise BadStep("the sequences of one request have ids, each another one")
        return self.signature.row_axes(inputs, len(ids))

    def _rows_together(
        self,
        push_batch: Callable[..., Any],
        ids: Sequence[Id],
        inputs: Mapping[str, NDArray[Any]],
        snapshot: bool,
        lengths: NDArray[np.int64] | None,
        now: float,
    ) -> Rows:
        """Rows of streams that live and go on: one push of arrays, and no work by the row."""
        begun = clocks.perf_counter()
        try:
            numbers = np.fromiter(map(self._live.__getitem__, ids), np.int64, len(ids))
        except KeyError:
            numbers = np.zeros(0, np.int64)
        if len(numbers) != len(ids) or now - self._seen[numbers].min(initial=now) > self.idle_s:
            raise self._unknown(next(i for i in ids if self._find(i, now) < 0))
        try:
            room = {} if lengths is None else {"lengths": lengths}
            outputs = as_list(push_batch(numbers, dict(inputs), **room), len(self.signature.outputs))
        except OF_THE_STEP as e:
            raise BadStep(f"sequences of model '{self.name}': {e}") from e
        self._seen[numbers] = now
        self.statistics.steps += len(ids)
        self.statistics.count_push(len(ids), clocks.perf_counter() - begun)
        return Rows(outputs, [self.snapshot(i) for i in ids] if snapshot else [], lengths=lengths)

    def _rows_apart(
        self,
        ids: Sequence[Id],
        inputs: Mapping[str, NDArray[Any]],
        axes: Mapping[str, int],
        start: Sequence[bool],
        end: Sequence[bool],
        states: Sequence[bytes],
        snapshot: bool,
        lengths: NDArray[np.int64] | None,
        now: float,
    ) -> Rows:
        """Rows that start or end: a step for each of them, taken back together where one fails."""
        works: list[Work] = []
        fresh: set[int] = set()
        before: list[tuple[int, Stream]] = []
        try:
            for k, sequence in enumerate(ids):
                starts, ends = bool(start) and bool(start[k]), bool(end) and bool(end[k])
                step = Step(sequence, rows_of(inputs, axes, k), starts, ends, snapshot, states[k] if states else b"")
                works.append(self._admit(step, now, fresh))
            before = [(w.number, self._pool.fork(w.number)) for w in works if w.own is None and not w.step.start]
            outputs = self._outputs_of(works, lengths)
        except StepError:
            for work in works:
                if work.step.start and work.number in self._pool and not work.joined:
                    self._pool.leave(work.number)
                self._undo(work)
            for number, stream in before:
                self._pool.leave(number)
                self._pool.join(number, stream)
            raise
        answers = [self._finish(work, now) for work in works]
        good = [answer for answer in answers if isinstance(answer, Answer)]
        kept = [answer.state for answer in good] if snapshot or self._retiring else []
        return Rows(outputs, kept, self._retiring, lengths)

    def _outputs_of(self, works: list[Work], lengths: NDArray[np.int64] | None) -> Outputs:
        self._run(works)
        results: list[Outputs] = []
        for work in works:
            if isinstance(work.result, Exception):
                raise work.result
            results.append(work.result)
        if (outputs := stacked(results, self.signature, lengths)) is None:
            raise BadStep("the sequences give results of unlike sizes: ask for their lengths, or make steps one by one")
        return outputs

    def snapshot(self, sequence: Id) -> bytes:
        """The state of a stream that lives, for `Step.state` here or in another process; UnknownSequence where none does."""
        if (number := self._live.get(sequence, -1)) < 0:
            raise UnknownSequence(f"model '{self.name}' has no sequence {sequence}")
        self.statistics.snapshots += 1
        return self._pool.fork(number).save()

    def hand_out(self, sequence: Id) -> bytes:
        """The snapshot of a stream that leaves with it; UnknownSequence where none lives."""
        state = self.snapshot(sequence)
        self.statistics.handed_out += 1
        self._release(sequence, self._live[sequence])
        return state

    def leave(self, sequence: Id) -> bool:
        """Drops a stream, whose caller has gone; False where there is none."""
        if (number := self._live.get(sequence, -1)) < 0:
            return False
        self.statistics.left += 1
        self._release(sequence, number)
        return True

    def retire(self) -> None:
        """From now on no stream starts, and each that makes a step leaves with a snapshot in its answer (`Answer.moved`)."""
        self._retiring = True

    def drain(self) -> dict[Id, bytes]:
        """Retires, and hands out the snapshots of all streams that live; they have left then."""
        self.retire()
        self._sweep(self._clock(), at_once=True)
        return {sequence: self.hand_out(sequence) for sequence in list(self._live)}

    def reload(self, session: InferenceSession) -> None:
        """Streams go on with another session, such as one of a newer file; nothing has changed where that fails.

        Raises InvalidArgument where a stream does not fit the new model, or as making streams does.
        """
        arguments = {**self._arguments, "capacity": self.capacity, "idle_s": self.idle_s}
        other = Streams(session, name=self.name, clock=self._clock, **arguments)
        for sequence, number in self._live.items():
            stream = other._first.fork()
            stream.load(self._pool.fork(number).save(), other_weights=True)
            other._pool.join(taken := other._free.pop(), stream)
            other._live[sequence] = taken
            other._seen[taken] = self._seen[number]
        other.statistics, other._retiring = self.statistics, self._retiring
        self.__dict__.update(other.__dict__)

    def _find(self, sequence: Id, now: float) -> int:
        """The number of a stream that lives, or -1; one that has been idle for too long leaves."""
        number = self._live.get(sequence, -1)
        if number >= 0 and now - self._seen[number] > self.idle_s:
            self.statistics.idled += 1
            self._release(sequence, number)
            return -1
        return number

    def _sweep(self, now: float, at_once: bool = False) -> None:
        """Streams that have been idle for too long leave; looked for several times within that time, not at each step."""
        if now < self._next_sweep and not at_once:
            return
        self._next_sweep = now + self.idle_s / 8
        for sequence in list(self._live):
            self._find(sequence, now)

    def _release(self, sequence: Id, number: int) -> None:
        """A stream leaves, and its number is free."""
        self._pool.leave(number)
        self._free.append(number)
        if self._live.get(sequence) == number:
            del self._live[sequence]
