"""Where the time of runs goes: the profile of a session by nodes, and the trace of calls that onnxruntime writes."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._types import NodeTime


class Trace:
    """Runs in the trace format that browsers show."""

    def __init__(self, prefix: str) -> None:
        self.path = f"{prefix}{time.strftime('%Y-%m-%d_%H-%M-%S')}.json"
        self.start_ns = time.time_ns()
        self._events: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def add(self, name: str, begin_ns: int) -> None:
        now = time.time_ns()
        event = {
            "cat": "Session",
            "pid": os.getpid(),
            "tid": threading.get_ident(),
            "ts": (begin_ns - self.start_ns) // 1000,
            "dur": (now - begin_ns) // 1000,
            "ph": "X",
            "name": name,
            "args": {},
        }
        with self._lock:
            self._events.append(event)

    def write(self) -> str:
        import json  # here and below: rare, and takes a while to import

        with open(self.path, "w", encoding="utf-8") as file:
            json.dump(self._events, file)
        return self.path


class Profile:
    """Where the time of runs went; made by `InferenceSession.profile`. `print(profile)` shows a table by node."""

    def __init__(self, text: str, table: str, trace: str) -> None:
        import json

        self._text = text
        self._table: dict[str, Any] = json.loads(table)
        self._trace = trace

    @property
    def nodes(self) -> list[NodeTime]:
        """Of the median run, for each node: its name ("node"), operator ("op"), loop, how often it ran ("count") and its
        time together ("ns").

        Those that took longest come first. What lies around nodes (copies, back edges of loops) "is_glue".
        """
        nodes: list[NodeTime] = self._table["nodes"]
        return nodes

    @property
    def total_ns(self) -> float:
        """Nanoseconds of the median run."""
        return float(self._table["total_ns"])

    def trace(self) -> dict[str, Any]:
        """Chrome's trace events, in microseconds: loops hold iterations, iterations hold nodes."""
        import json

        events: dict[str, Any] = json.loads(self._trace)
        return events

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace, for Perfetto (ui.perfetto.dev) and browsers; OSError where the file cannot be written."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._trace)

    def __repr__(self) -> str:
        """How many nodes, and how long a run takes."""
        return (
            f"<treadle.Profile: {sum(not node['is_glue'] for node in self.nodes)} nodes, {self.total_ns:.0f} ns a run>"
        )

    def __str__(self) -> str:
        """A table of the nodes that took longest."""
        return self._text
