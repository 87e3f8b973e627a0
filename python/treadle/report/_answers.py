"""The first lines of a report: is the model fast, and what would help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._session import InferenceSession


def _time(ns: float) -> str:
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def _all(nodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for node in nodes:
        yield node
        for body in node.get("bodies", []):
            yield from _all(body["nodes"])


def about(data: dict[str, Any], session: InferenceSession | None) -> str:
    """Sizes of the model, its inputs and outputs."""
    nodes = list(_all(data["nodes"]))
    loops = sum(node["op"] in ("Loop", "Scan", "RNN", "LSTM", "GRU") for node in nodes)
    text = f"{len(nodes):,} nodes, {loops:,} loop{'s' if loops != 1 else ''}"
    if session is not None:
        takes = ", ".join(f"{value.name} {value.type}{value.shape}" for value in session.get_inputs())
        gives = ", ".join(value.name for value in session.get_outputs())
        text += f"; from {takes} to {gives}"
    return text


def answers(data: dict[str, Any], refused: str) -> list[dict[str, str]]:
    """Lines of one sentence each; "kind" is "", "bad" or "help"."""
    if refused:
        return [{"kind": "bad", "text": refused}]
    made = [*_speed(data), *_loops(data)]
    errors = [problem for problem in data["problems"] if problem["level"] == "error"]
    if errors:
        made.append({"kind": "bad", "text": f"{len(errors)} errors in the model: the first is {errors[0]['what']}"})
    found = (data["trace"] or {}).get("found")
    if found:
        place = found["places"][0]
        at = "".join(f", iteration {around['iteration']}" for around in place["iterations"])
        reach = "reaches an output" if found["reached"] else "reaches no output"
        made.append({"kind": "bad", "text": f"A NaN is made by {place['op']} {place['node']}{at}, and {reach}."})
    return made + [{"kind": "help", "text": text} for text in _advice(data)][:2]


def _speed(data: dict[str, Any]) -> Iterator[dict[str, str]]:
    times = data["times"]
    if times is None:
        yield {"kind": "help", "text": "Nothing was run: with inputs, the report has times and values."}
        return
    text = f"A run takes {_time(times['usual_ns'])} and {times['peak_bytes'] / 1e6:.3g} MB."
    loops = [
        loop for loop in (data["explanation"] or {}).get("loops", []) if loop.get("measured_ns_per_iteration", 0) > 0
    ]
    if loops:
        top = max(
            loops, key=lambda loop: loop["measured_ns_per_iteration"] * max(loop.get("iterations_per_run") or 1, 1)
        )
        each = _time(top["measured_ns_per_iteration"])
        text += f" An iteration of {top['node']} takes {each}."
    yield {"kind": "", "text": text}


def _loops(data: dict[str, Any]) -> Iterator[dict[str, str]]:
    loops = (data["explanation"] or {}).get("loops", [])
    if not loops:
        yield {"kind": "", "text": "The model has no loop, so its time is that of its nodes."}
        return
    slow = [loop for loop in loops if loop.get("why_not_native")]
    if not slow:
        yield {
            "kind": "",
            "text": f"All {len(loops)} loops are native code, or a part of it."
            if len(loops) > 1
            else "Its loop is native code.",
        }
        return
    yield {"kind": "help", "text": f"{slow[0]['node']} is not native code: {slow[0]['why_not_native']}"}


def _advice(data: dict[str, Any]) -> list[str]:
    found = (data["explanation"] or {}).get("advice", [])
    return [text if isinstance(text, str) else str(text.get("text", "")) for text in found]
