"""The callable that engines hand batches of rows to."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .._errors import InvalidArgument
from .._ignored import suggestion
from .._options import SessionOptions
from .._progress import check_progress, told
from .._session import InferenceSession, check_is_here
from ._columns import column_of, common_length
from ._fields import Field, chosen, fields_of
from ._runs import PaddedRunner, Runner
from ._signals import SignalRunner

if TYPE_CHECKING:
    from typing import Literal

    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from .._progress import Progress
    from .._types import PathOrBytes
    from ._keywords import StreamKeywords
    from ._results import Table

_INPUT, _OUTPUT, _OVERRIDABLE = 0, 1, 2
_STREAM_KEYWORDS = ("state", "bind", "hop", "context", "initial", "find_state")
_KEYWORDS = (
    "inputs",
    "outputs",
    "keep",
    "lengths",
    "time",
    "threads",
    "on_error",
    "progress",
    "sess_options",
    *_STREAM_KEYWORDS,
)
_ERROR = "error"


class Predictor:
    """A model over the rows of tables; called with a batch, a dict of columns, it gives a dict of columns.

    A column is an array with an entry for each row, or an array of objects that has an array, a list, a number or a text
    for each row (ragged). A row's value has the axes of the model's input but for the axis of the batch, which is the
    first one; a value that has all axes is one run of its own. A value may lie flat where the model fixes all of its
    sizes but one.

    `model`: a path, the bytes of a model, or a session. `inputs`: names of the model's inputs -> columns (those not named
    are read from columns of their own names); `outputs`: outputs -> columns, only those named, or all; `keep`: columns
    that are handed through.

    Rows of unequal length are never padded silently:

    - `time` (as for `InferenceSession.stream`, with `hop`, `context`, `state`, `bind`, `initial`, `find_state`): each row
      is a signal. The rows run as the streams of a pool, in blocks, so memory is bounded for recordings of any length. A
      row gives what `push` of its whole signal and `flush` give.
    - `lengths="name"`: the model's input of this name takes the lengths of the rows. Rows are sorted, padded with zeros
      along their first open axis, and results cut back.
    - Neither: rows of equal sizes run together. A model that takes one row runs row by row; `why_single` says so.

    An output whose row has sizes that the model fixes becomes an array; any other becomes an array of objects of one
    dimension, with an array for each row.

    `threads`: of a run; None takes OMP_NUM_THREADS where it is set, else 1. `on_error`: "raise" raises the error of a
    row; "column" writes the error into a column `error` (empty for rows that went well; the row's results then are
    NaN, 0 or empty) and goes on. `progress(done, total)` is told of the rows of each batch, with `time` of the samples;
    True shows tqdm's bar. `sess_options`: of the session that is made.

    A predictor pickles by its arguments, as its session does. Raises TypeError and ValueError for arguments that are
    none, InvalidArgument for names and roles that do not fit the model, and what `InferenceSession` raises.
    """

    def __init__(
        self,
        model: PathOrBytes | InferenceSession,
        *,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
        keep: Iterable[str] = (),
        lengths: str | None = None,
        time: Mapping[str, int | str] | None = None,
        threads: int | None = None,
        on_error: Literal["raise", "column"] = "raise",
        progress: Progress = None,
        sess_options: SessionOptions | None = None,
        **stream: Unpack[StreamKeywords],
    ) -> None:
        if on_error not in ("raise", "column"):
            raise ValueError(f"on_error is 'raise' or 'column', not {on_error!r}")
        if isinstance(keep, str):
            raise TypeError(f"keep is a list of columns, not the text {keep!r}")
        check_progress(progress)
        self._source = _Source(model, threads, sess_options)
        self._arguments: dict[str, Any] = {
            "inputs": inputs,
            "outputs": outputs,
            "keep": list(keep),
            "lengths": lengths,
            "time": time,
            "on_error": on_error,
            "progress": progress,
            **stream,
        }
        self._keep: list[str] = self._arguments["keep"]
        self._keeps_errors = on_error == "column"
        self._progress = progress
        self._runner = _runner(self._source.session, inputs, outputs, lengths, time, dict(stream))
        self._check_columns()

    def _check_columns(self) -> None:
        """InvalidArgument where two things would be written into one column."""
        written = [*(field.column for field in self._runner.outputs), *self._keep]
        written += [_ERROR] if self._keeps_errors else []
        for i, column in enumerate(written):
            if column in written[:i]:
                raise InvalidArgument(
                    f"column '{column}' would be written twice: name another one in outputs, or keep less"
                )

    @property
    def session(self) -> InferenceSession:
        """The session that runs the model."""
        return self._source.session

    @property
    def reads(self) -> list[str]:
        """The columns that inputs are read from."""
        return [field.column for field in self._runner.inputs]

    @property
    def keep(self) -> list[str]:
        """The columns that are handed through."""
        return list(self._keep)

    @property
    def why_single(self) -> str:
        """What makes every row run on its own; empty where rows run together."""
        return self._runner.why_single

    def __call__(self, batch: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The columns that are kept, one for each output, and `error` where errors go into a column.

        Raises InvalidArgument for columns that are missing or of unlike lengths, and for values whose type or sizes do not
        fit (the message names row, column, what was expected and what was found); otherwise what runs raise, with the row.
        """
        columns = {
            field.column: column_of(batch, field.column, f"from which input '{field.name}' is read")
            for field in self._runner.inputs
        }
        kept = {name: column_of(batch, name, "which is to be kept") for name in self._keep}
        rows = common_length({**columns, **kept})
        with told(self._progress) as tell:
            table = self._run(columns, rows, tell)
        errors = {_ERROR: table.error_column()} if self._keeps_errors else {}
        return {**kept, **table.columns(), **errors}

    def _run(
        self, columns: Mapping[str, NDArray[Any]], rows: int, tell: Callable[[int, int | None], object] | None
    ) -> Table:
        if isinstance(self._runner, SignalRunner):
            return self._runner.run(columns, rows, self._keeps_errors, tell or _tell_nobody)
        done = 0

        def add(more: int) -> None:
            nonlocal done
            done += more
            if tell is not None:
                tell(done, rows)

        return self._runner.run(columns, rows, self._keeps_errors, add)

    def __getstate__(self) -> dict[str, Any]:
        """The arguments, for pickle: of a model that was given as a path the path, which has to be there as well."""
        return {"source": self._source.state(), "arguments": self._arguments}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        source = dict(state["source"])
        check_is_here(source["model"], source.pop("host"))
        Predictor.__init__(self, **source, **state["arguments"])

    def __repr__(self) -> str:
        """One line: columns that are read and written, and how rows run."""
        read = ", ".join(field.column for field in self._runner.inputs)
        errors = [_ERROR] if self._keeps_errors else []
        written = ", ".join([*self._keep, *(field.column for field in self._runner.outputs), *errors])
        ways = {SignalRunner: "as streams of a pool", PaddedRunner: "padded, together"}
        way = "one by one" if self.why_single else ways.get(type(self._runner), "together")
        return f"<treadle.batch.Predictor: {read} -> {written}, rows {way}>"


class _Source:
    """What the session of a predictor is made of."""

    def __init__(
        self, model: PathOrBytes | InferenceSession, threads: int | None, sess_options: SessionOptions | None
    ) -> None:
        self._model, self._threads, self._options = model, threads, sess_options
        if isinstance(model, InferenceSession):
            if threads is not None or sess_options is not None:
                raise TypeError("a session has its options already: give threads and sess_options with a path or bytes")
            self.session = model
            return
        self.session = InferenceSession(model, _with_threads(sess_options, threads))

    def state(self) -> dict[str, Any]:
        """For pickle: arguments of a predictor, and where they were given."""
        model = self._model
        if isinstance(model, (str, os.PathLike)):
            model = os.path.abspath(os.fspath(model))
        elif isinstance(model, (bytearray, memoryview)):
            model = bytes(model)
        return {"model": model, "threads": self._threads, "sess_options": self._options, "host": os.uname().nodename}


def _with_threads(options: SessionOptions | None, threads: int | None) -> SessionOptions:
    """Options with the number of threads: as given, or the environment's (which sessions heed by themselves), or 1."""
    found = copy.copy(options) if options is not None else SessionOptions()
    if threads is None:
        if found.intra_op_num_threads == 0 and not os.environ.get("OMP_NUM_THREADS"):
            found.intra_op_num_threads = 1
        return found
    if threads < 1:
        raise ValueError(f"threads is a number of threads, at least 1, not {threads}")
    if found.intra_op_num_threads not in (0, threads):
        raise ValueError(f"threads={threads}, but sess_options say intra_op_num_threads={found.intra_op_num_threads}")
    found.intra_op_num_threads = threads
    return found


def _tell_nobody(done: int, total: int) -> None:
    """The callback for progress of callers that pass none."""


def _runner(
    session: InferenceSession,
    inputs: Mapping[str, str] | None,
    outputs: Mapping[str, str] | None,
    lengths: str | None,
    time: Mapping[str, int | str] | None,
    stream: dict[str, Any],
) -> Runner | SignalRunner:
    """What runs rows, as the arguments of a predictor say."""
    _check_roles(lengths, time, stream)
    needed, given = fields_of(session, _INPUT), fields_of(session, _OUTPUT)
    bound = dict(stream.get("bind") or {})
    for name in bound:
        if name not in needed and name not in fields_of(session, _OVERRIDABLE):
            raise InvalidArgument(f"bind: the model has no input '{name}' (it has: {', '.join(needed) or 'none'})")
    open_inputs = {name: field for name, field in needed.items() if name not in bound and name != lengths}
    if time is not None:
        return _signals(session, inputs, outputs, dict(time), stream, open_inputs, given)
    fed = _fed(inputs, open_inputs)
    wanted = chosen("outputs", outputs, given)
    if lengths is None:
        return Runner(session, fed, wanted, bound)
    if lengths not in needed:
        raise InvalidArgument(f"lengths: the model has no input '{lengths}' (it has: {', '.join(needed) or 'none'})")
    return PaddedRunner(session, fed, wanted, bound, needed[lengths])


def _check_roles(lengths: str | None, time: Mapping[str, int | str] | None, stream: Mapping[str, Any]) -> None:
    for name in stream:
        if name not in _STREAM_KEYWORDS:
            raise TypeError(f"Predictor() has no argument '{name}'{suggestion(name, _KEYWORDS)}")
        if time is None and name != "bind":
            raise TypeError(f"{name} is for signals: say in time= which axis of an input is time")
    if time is not None and lengths is not None:
        raise TypeError("rows are signals (time=) or padded (lengths=), not both")


def _fed(inputs: Mapping[str, str] | None, known: Mapping[str, Field]) -> list[Field]:
    """The inputs that columns feed."""
    for name, field in known.items():
        if field.dtype is None:
            raise InvalidArgument(f"input '{name}' is no tensor of a type that a column can hold: bind it")
    found = chosen("inputs", inputs, known)
    if not found:
        raise InvalidArgument("no input is left for columns: all are bound")
    return found


def _signals(
    session: InferenceSession,
    inputs: Mapping[str, str] | None,
    outputs: Mapping[str, str] | None,
    time: dict[str, int | str],
    stream: dict[str, Any],
    known: Mapping[str, Field],
    given: Mapping[str, Field],
) -> SignalRunner:
    states = session.stream(time=time, **stream)._core.state_names()
    left = {name: field for name, field in known.items() if name not in states}
    for name in left:
        if name not in time:
            raise InvalidArgument(
                f"input '{name}' is neither bound, nor a state, nor does time= say which axis is time"
            )
    runner = SignalRunner(session, _fed(inputs, left), time, stream)
    runner.outputs = chosen("outputs", outputs, {name: given[name] for name in runner.output_axes})
    return runner
