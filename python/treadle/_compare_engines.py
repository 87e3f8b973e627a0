"""Engines that run models, each in a process of its own: an engine that crashes takes nothing else along, and the
process's peak of memory is that of one engine. A process answers the requests that come on its standard input.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pickle
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import IO, Any

TREADLE, REFERENCE, ONNXRUNTIME = "treadle", "reference", "onnxruntime"

_WARM_S = 0.2  # runs before those that are timed
_MOST_S = 10.0  # of all timed runs together


@dataclasses.dataclass(frozen=True)
class Request:
    """A model and what to do with it."""

    model: str | bytes  # a path, or the bytes
    feeds: dict[str, Any]
    runs: int = 0  # that are timed; 0: one run, which is not
    rewrites: bool = True  # whether the engine may change the graph


@dataclasses.dataclass(frozen=True)
class Reply:
    """What an engine did with a model."""

    outputs: list[Any] = dataclasses.field(default_factory=list)
    names: list[str] = dataclasses.field(default_factory=list)
    seconds: float = 0.0  # the median of the timed runs
    peak_bytes: int = 0  # of the process so far
    version: str = ""
    problem: str = ""  # why there is no result
    crashed: bool = False


class Engine:
    """An engine in its own process, which starts with the first request and again after a crash."""

    def __init__(self, name: str, threads: int = 0, entries: Mapping[str, str] | None = None) -> None:
        self.name = name
        self._settings = (threads, dict(entries or {}))
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def run(self, request: Request) -> Reply:
        """The reply, or one that says why there is none."""
        process = self._process or self._start()
        try:
            _write(process.stdin, request)
            reply = _read(process.stdout)
        except BrokenPipeError:
            reply = None
        if isinstance(reply, Reply):
            return reply
        return Reply(problem=self._how_it_ended(), crashed=True)

    def _start(self) -> subprocess.Popen[bytes]:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as the process
        program = f"from treadle._compare_engines import serve; serve({self.name!r})"
        command = [sys.executable, "-P", "-W", "ignore", "-c", program]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, env=_environment()
        )
        _write(self._process.stdin, self._settings)
        return self._process

    def _how_it_ended(self) -> str:
        assert self._process is not None and self._said is not None
        status = self._process.wait()
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        self._end()
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return f"its process {how}" + (f": {lines[-1][:300]}" if lines else "")

    def _end(self) -> None:
        if self._process is None or self._said is None:
            return
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._said.close()
        self._process = None


def _environment() -> dict[str, str]:
    """Without a folder that stands for onnxruntime on treadle (docs/drop-in.md), and with this package first."""
    here = os.path.dirname(os.path.abspath(__file__))
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    others = [folder for folder in folders if folder and not os.path.abspath(folder).startswith(here + os.sep)]
    package = os.path.dirname(here)
    return os.environ | {"PYTHONPATH": os.pathsep.join([package, *others])}


def _write(stream: IO[bytes] | None, message: Any) -> None:
    assert stream is not None
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(struct.pack("<q", len(data)))
    stream.write(data)
    stream.flush()


def _read(stream: IO[bytes] | None) -> Any:
    """None at the end."""
    assert stream is not None
    head = stream.read(8)
    if len(head) < 8:
        return None
    (size,) = struct.unpack("<q", head)
    data = stream.read(size)
    return pickle.loads(data) if len(data) == size else None


# In the process of an engine ----------------------------------------------------------------------------------------


def _peak_bytes() -> int:
    """The peak of the process itself; getrusage counts that of the process that started it as well."""
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def _open_treadle(request: Request, tier: str, threads: int, entries: Mapping[str, str]) -> Any:
    from ._options import SessionOptions
    from ._session import InferenceSession

    options = SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    for key, value in entries.items():
        options.add_session_config_entry(f"treadle.{key}", value)
    if tier == REFERENCE:
        options.add_session_config_entry("treadle.tier", REFERENCE)
    if not request.rewrites:
        options.add_session_config_entry("treadle.optimize", "0")
    return InferenceSession(request.model, options)


def _open_onnxruntime(request: Request, threads: int) -> Any:
    import importlib  # onnxruntime has no types

    onnxruntime = importlib.import_module("onnxruntime")

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    if not request.rewrites:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(request.model, options, providers=["CPUExecutionProvider"])


def _version(engine: str) -> str:
    if engine == ONNXRUNTIME:
        import importlib  # onnxruntime has no types

        return str(importlib.import_module("onnxruntime").__version__)
    from . import _core

    return _core.version()


def _median(session: Any, feeds: dict[str, Any], runs: int) -> float:
    begin = time.perf_counter()
    while time.perf_counter() - begin < _WARM_S:
        session.run(None, feeds)
    if hasattr(session, "_engine"):
        session._engine.wait_compiled()
        session.run(None, feeds)
    times: list[float] = []
    while len(times) < runs and (not times or sum(times) < _MOST_S):
        begin = time.perf_counter()
        session.run(None, feeds)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def _answer(engine: str, request: Request, threads: int, entries: Mapping[str, str]) -> Reply:
    try:
        version = _version(engine)
        if engine == ONNXRUNTIME:
            session = _open_onnxruntime(request, threads)
        else:
            session = _open_treadle(request, engine, threads, entries)
        outputs = session.run(None, request.feeds)
        seconds = _median(session, request.feeds, request.runs) if request.runs else 0.0
        names = [output.name for output in session.get_outputs()]
        return Reply(outputs, names, seconds, _peak_bytes(), version)
    except ModuleNotFoundError as problem:
        return Reply(problem=f"{problem.name} is not installed for {sys.executable}: pip install {problem.name}")
    except Exception as problem:  # an engine's own exceptions are of many classes
        return Reply(problem=str(problem) or type(problem).__name__)


def serve(engine: str) -> None:
    """Answers requests until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks ends this one
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what engines print is no answer
    threads, entries = _read(sys.stdin.buffer)
    while (request := _read(sys.stdin.buffer)) is not None:
        _write(answers, _answer(engine, request, threads, entries))
