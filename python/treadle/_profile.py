"""Where the time of runs goes: the profile of a session by nodes, and the trace of calls that onnxruntime writes."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

from ._in_notebooks import drawn

if TYPE_CHECKING:
    from ._types import NodeTime


class CallTrace:
    """Loading, runs, and the nodes of runs, as onnxruntime's profiler writes them and as browsers show them."""

    def __init__(self, prefix: str) -> None:
        self.start_ns = time.time_ns()
        self.path = f"{prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S')}_{self.start_ns // 1_000_000 % 1000:03}.json"
        self.origin_ns = time.monotonic_ns()
        self._events: list[str] = []  # as JSON
        self._lock = threading.Lock()

    def add(self, name: str, begin_ns: int) -> None:
        """What has taken from `begin_ns` of the monotonic clock until now."""
        import json  # here and below: rare, and takes a while to import

        event = {
            "cat": "Session",
            "pid": os.getpid(),
            "tid": threading.get_native_id(),
            "dur": self._microsecond(time.monotonic_ns()) - self._microsecond(begin_ns),
            "ts": self._microsecond(begin_ns),
            "ph": "X",
            "name": name,
            "args": {},
        }
        with self._lock:
            self._events.append(json.dumps(event))

    def _microsecond(self, at_ns: int) -> int:
        """Begins and ends are rounded alike, so an event never ends behind the one that it lies in."""
        return (at_ns - self.origin_ns) // 1000

    def add_run(self, name: str, begin_ns: int) -> None:
        if name == "model_run":
            self.add("SequentialExecutor::Execute", begin_ns)
        self.add(name, begin_ns)

    def add_nodes(self, events: str) -> None:
        """A JSON array of events."""
        with self._lock:
            self._events += [events[1:-1]] if events != "[]" else []

    def write(self) -> str:
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("[" + ",\n".join(self._events) + "]\n")
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
        """For each node: its name ("node"), operator ("op"), loop, how often a run ran it ("count"), and its time together
        ("ns"): the median over the runs, beside the least and the most.

        A time that something else on the machine interrupted is left out: see `interrupted_runs`.
        Those that took longest come first. What lies around nodes (copies, back edges of loops) "is_glue".
        """
        nodes: list[NodeTime] = self._table["nodes"]
        return nodes

    @property
    def total_ns(self) -> float:
        """Nanoseconds of all nodes together, which is about the median run."""
        return float(self._table["total_ns"])

    @property
    def interrupted_runs(self) -> int:
        """In how many runs some node took more than twice its fastest time and half a millisecond."""
        return int(self._table["interrupted_runs"])

    @property
    def loops(self) -> list[dict[str, Any]]:
        """For each loop of a run: its name ("node"), operator ("op"), the loop around it ("parent", a place in this list),
        how often it ran ("times") and its iterations together ("iterations").

        A loop inside whose length is planned has "iterations_each_time" in the place of the last two.
        """
        loops: list[dict[str, Any]] = self._table["loops"]
        return loops

    @property
    def memory(self) -> dict[str, Any]:
        """What one run held in memory, without inputs, outputs and weights.

        "steps" are the nodes in the order of the program, each with "node", "op", "planned" (bytes in use of the memory
        that the plan lays out, "arena_bytes" in all) and "held" (bytes of values whose sizes only the run knows). "peak" is
        the number of the step that holds most, and "holders" are the five largest values that are alive there: "name",
        "what" ("output", "state", "scratch", "scratch and spare memory"), "node" that makes it, "bytes", and whether it is
        "planned".
        """
        memory: dict[str, Any] = self._table["memory"]
        return memory

    def trace(self) -> dict[str, Any]:
        """Chrome's trace events, in microseconds: loops hold iterations, iterations hold nodes."""
        import json

        events: dict[str, Any] = json.loads(self._trace)
        return events

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace, for Perfetto (ui.perfetto.dev) and browsers; OSError where the file cannot be written."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._trace)

    def _repr_html_(self) -> str:
        return drawn("profile_html", self)

    def __repr__(self) -> str:
        """How many nodes, and how long a run takes."""
        return (
            f"<treadle.Profile: {sum(not node['is_glue'] for node in self.nodes)} nodes, {self.total_ns:.0f} ns a run>"
        )

    def __str__(self) -> str:
        """A table of the nodes that took longest."""
        return self._text
