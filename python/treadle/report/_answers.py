"""The first lines of a report: is the model fast, and what would help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._model import NodeArg
    from .._session import InferenceSession


_LOOPS = ("Loop", "Scan", "RNN", "LSTM", "GRU")
_NOTABLE = 0.05  # a share of a run from which a node is worth a sentence
_MOST_LETTERS = 30  # of the operators of a group


def _time(ns: float) -> str:
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def _bytes(size: float) -> str:
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} bytes"


def _all(nodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for node in nodes:
        yield node
        for body in node.get("bodies", []):
            yield from _all(body["nodes"])


def _briefly(value: NodeArg) -> str:
    sizes = ", ".join("?" if size is None else str(size) for size in value.shape)
    return f"{value.name} {value.type}" + (f"[{sizes}]" if value.type.startswith("tensor") else "")


def about(data: dict[str, Any], session: InferenceSession | None) -> str:
    """Sizes of the model, its inputs and outputs."""
    nodes = list(_all(data["nodes"]))
    loops = sum(node["op"] in _LOOPS for node in nodes)
    text = f"{len(nodes):,} node{'s' if len(nodes) != 1 else ''}, {loops or 'no'} loop{'s' if loops != 1 else ''}"
    if session is not None:
        takes = ", ".join(_briefly(value) for value in session.get_inputs()) or "no inputs"
        gives = ", ".join(value.name for value in session.get_outputs())
        text += f"; from {takes} to {gives}"
    return text


def answers(data: dict[str, Any], refused: str) -> list[dict[str, str]]:
    """Lines of one sentence each; "kind" is "", "bad" or "help"."""
    if refused:
        return [{"kind": "bad", "text": refused}]
    advice = _advice(data)
    made = [*_speed(data), *_loops(data, advice), *_pushes(data)]
    errors = [problem for problem in data["problems"] if problem["level"] == "error"]
    if errors:
        made.append({"kind": "bad", "text": f"{len(errors)} errors in the model: the first is {errors[0]['what']}"})
    trace = data["trace"] or {}
    if "left_out" in trace:
        made.append({"kind": "help", "text": f"Values over iterations are left out: {trace['left_out']}"})
    found = trace.get("found")
    if found:
        place = found["places"][0]
        at = "".join(f", iteration {around['iteration']}" for around in place["iterations"])
        reach = "reaches an output" if found["reached"] else "reaches no output"
        made.append({"kind": "bad", "text": f"A NaN is made by {place['op']} {place['node']}{at}, and {reach}."})
    return made + [{"kind": "help", "text": f"Would help: {text}"} for text in advice][:2]


def _speed(data: dict[str, Any]) -> Iterator[dict[str, str]]:
    times = data["times"]
    if times is None:
        yield {"kind": "help", "text": "Nothing was run: with inputs, the report has times and values."}
        return
    run = f"A run of one window of {data['window']:,} samples" if data.get("window") else "A run"
    text = f"{run} takes {_time(times['usual_ns'])} and {_bytes(times['peak_bytes'])}."
    largest = next((node for node in times["nodes"] if node["node"]), None)
    part = largest["ns"] / times["profiled_ns"] if largest and times["profiled_ns"] > 0 else 0
    if largest and part >= _NOTABLE:
        op = largest["op"] if len(largest["op"]) <= _MOST_LETTERS else largest["op"][: _MOST_LETTERS - 3] + "..."
        text += f" {op} {largest['node']} takes {100 * part:.0f} % of it, more than any other node."
    yield {"kind": "", "text": text}


def _loops(data: dict[str, Any], advice: list[str]) -> Iterator[dict[str, str]]:
    """Of a loop that the advice names, nothing is said twice."""
    loops = (data["explanation"] or {}).get("loops", [])
    if not loops:
        had = any(node["op"] in _LOOPS for node in _all(data["nodes"]))
        why = "No loop is left to run after rewriting" if had else "The model has no loop"
        yield {"kind": "", "text": f"{why}, so its time is that of plain nodes."}
        return
    slow = [loop for loop in loops if loop.get("why_not_native")]
    if not slow:
        text = (
            f"All {len(loops)} loops are native code, or a part of it."
            if len(loops) > 1
            else "Its loop is native code."
        )
        yield {"kind": "", "text": text}
    elif not any(slow[0]["node"] in text for text in advice[:2]):
        yield {"kind": "help", "text": f"{slow[0]['node']} is not native code: {slow[0]['why_not_native']}"}


def _pushes(data: dict[str, Any]) -> Iterator[dict[str, str]]:
    if data["pushes"]:
        yield {"kind": "", "text": data["pushes"]["summary"]}


def _advice(data: dict[str, Any]) -> list[str]:
    found = (data["explanation"] or {}).get("advice", [])
    return [text if isinstance(text, str) else str(text.get("text", "")) for text in found]
