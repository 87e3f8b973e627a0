"""What a comparison of two engines found, and its text."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

from ._compare_differences import Difference, Tolerance
from ._in_notebooks import drawn

_MOST_LEFT_OUT = 5  # lines
_INDENT = " " * 12


@dataclasses.dataclass(frozen=True)
class OutputDifference:
    """How far an output of the model is off."""

    name: str
    difference: Difference


@dataclasses.dataclass(frozen=True)
class FirstDifference:
    """The first inner value, in the order of a run, that is beyond the tolerance."""

    name: str  # of the value
    node: str  # that makes it
    op: str
    where: str  # the loops and branches around it, with the numbers of iterations
    iterations: tuple[int, ...]  # of the loops around it, outermost first
    difference: Difference
    inputs: dict[str, float]  # the largest difference of each value that the node reads
    constants: dict[str, Difference]  # the node's weights that are others in the second model
    alone: Difference | None = None  # the node alone in both engines, on treadle's inputs
    why_not_alone: str = ""
    saved: str = ""  # the folder

    @property
    def verdict(self) -> str:
        """What the node alone does on equal inputs: it "has other constants" or "computes differently". Where it does
        neither, it "only amplifies" what comes in."""
        if self.alone is None:
            return ""
        if self.constants and not self.alone.agrees:
            return "has other constants"
        return "only amplifies" if self.alone.agrees else "computes differently"


@dataclasses.dataclass(frozen=True)
class Cost:
    """What a run takes in an engine that has a process of its own."""

    engine: str
    version: str
    seconds: float  # the median of several runs
    peak_bytes: int  # of the whole process


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What `compare` found. As a text it is for people."""

    agrees: bool
    tolerance: Tolerance
    outputs: list[OutputDifference]
    first: FirstDifference | None
    drift: dict[str, list[tuple[int, float]]]  # of states of loops: iteration, and the largest difference there
    costs: list[Cost]  # treadle's, then the other engine's
    left_out: dict[str, str]  # inner values that were not compared, and why
    notes: list[str]
    refused: str = ""  # why an engine gave no results

    def to_json(self) -> str:
        """All of it as JSON. Numbers that JSON lacks are texts."""
        fields = dataclasses.asdict(self)
        if self.first is not None:
            fields["first"]["verdict"] = self.first.verdict
        return json.dumps(_plain(fields), ensure_ascii=False)

    def _repr_html_(self) -> str:
        return drawn("comparison_html", self)

    def __str__(self) -> str:
        """For people."""
        return "\n".join(map(_harmless, _lines(self))) + "\n"


def _harmless(line: str) -> str:
    """What terminals obey, in names of a model, as escapes (src/base/harmless.h)."""
    return (
        line
        if line.isprintable()
        else "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    )


def _lines(comparison: Comparison) -> list[str]:
    """One fact a line, the result first."""
    lines = [f"result      {_result(comparison)}"]
    width = max((len(output.name) for output in comparison.outputs), default=0)
    lines += [_output(output, comparison.tolerance, width) for output in comparison.outputs]
    if comparison.first is not None:
        lines += _first(comparison.first)
    lines += [f"note        {note}" for note in comparison.notes]
    lines += [f"drift       {name}  {_marks(marks)}" for name, marks in comparison.drift.items()]
    if comparison.left_out:
        lines.append(f"left out    {len(comparison.left_out)} inner values, which were not compared:")
        left_out = [*comparison.left_out.items()][:_MOST_LEFT_OUT]
        lines += [f"{_INDENT}{name}: {why}" for name, why in left_out]
    if comparison.costs:
        lines.append("time        " + ";  ".join(_cost(cost) for cost in comparison.costs))
    return lines


def _result(comparison: Comparison) -> str:
    if comparison.refused:
        return comparison.refused
    names = " and ".join(cost.engine for cost in comparison.costs)
    if not comparison.agrees and all(output.difference.agrees for output in comparison.outputs):
        return f"{names} agree in the outputs, and differ inside"
    return f"{names} {'agree' if comparison.agrees else 'differ'}"


def _output(output: OutputDifference, tolerance: Tolerance, width: int) -> str:
    apart = output.difference
    if apart.agrees:
        return f"output      {output.name:{width}}  agrees     largest difference {_number(apart.largest)}"
    if apart.problem:
        return f"output      {output.name:{width}}  DIFFERENT  {apart.problem}"
    how = f"beyond {tolerance}" if isinstance(apart.found, (float, complex)) else "differ"
    many = f"{apart.wrong:,} of {apart.count:,} {how}{_first_at(apart)}"
    return f"output      {output.name:{width}}  DIFFERENT  {_apart(apart)} ({many})"


def _apart(apart: Difference) -> str:
    if apart.problem:
        return apart.problem
    at = f" at {list(apart.at)}" if apart.at else ""
    return f"largest {_number(apart.largest)}{at}: {_number(apart.found)} against {_number(apart.expected)}"


def _first_at(apart: Difference) -> str:
    """Where the first is not the largest, too."""
    return f", the first at {list(apart.first_at)}" if apart.first_at and apart.first_at != apart.at else ""


def _first(first: FirstDifference) -> list[str]:
    where = f"{first.where}: " if first.where else ""
    off = max(first.inputs.values(), default=0.0)
    inputs = f"its inputs by at most {_number(off)}" if off else "its inputs are equal"
    lines = [
        f"first       {where}{first.op} {first.node} is off, {inputs}",
        f"{_INDENT}{first.name}: {_apart(first.difference)}",
    ]
    for name, apart in first.constants.items():
        some = f" in {apart.wrong:,} of {apart.count:,} elements" if apart.count > 1 and apart.wrong else ""
        lines.append(f"{_INDENT}constant {name} differs{some}: {_apart(apart)}{_first_at(apart)}")
    if first.alone is not None:
        lines.append(f"{_INDENT}alone on these inputs off by {_number(first.alone.largest)}: it {first.verdict}")
    elif first.why_not_alone:
        lines.append(f"{_INDENT}not run alone: {first.why_not_alone}")
    if first.saved:
        lines.append(f"{_INDENT}saved: {first.saved} (treadle test {first.saved})")
    return lines


def _marks(marks: list[tuple[int, float]]) -> str:
    return "   ".join(f"{at}: {_number(apart)}" for at, apart in marks)


def _cost(cost: Cost) -> str:
    is_this_treadle = cost.engine not in ("treadle", "onnxruntime")  # whose version is said already
    version = "" if is_this_treadle else f" {cost.version}"
    return f"{cost.engine}{version}: {cost.seconds * 1e3:.3g} ms, {cost.peak_bytes / 1e6:.0f} MB"


def _number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) and not math.isnan(value) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return str(value) if isinstance(value, complex) else value
