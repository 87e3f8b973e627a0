"""The search for the first inner value that differs: models that hand inner values out, run by both engines."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from ._compare_differences import Difference, Tolerance, difference
from ._compare_engines import ONNXRUNTIME, Engine, Reply, Request
from ._compare_values import (
    ExposedModel,
    Finding,
    InnerValue,
    Iterations,
    Moment,
    Rows,
    compared,
    exposed,
    groups,
    pairs,
    source,
)
from ._comparison import Comparison, Cost, FirstDifference, OutputDifference
from ._errors import FAILURES
from ._proto import initializers
from ._values import OrtValue

_REFUSED: tuple[type[Exception], ...] = (*FAILURES, LookupError)

MOST_MARKS = 8  # of the drift of a state
# Element types that onnxruntime's Python package does not hand out as arrays.
_NO_ARRAYS = ("bfloat16", "float8", "float6", "float4", "int4", "uint4", "int2", "uint2")
_MANY_ITERATIONS = 4096  # as many as hardly a loop makes


def check_feeds(input_feed: Mapping[str, Any]) -> dict[str, Any]:
    """Values as arrays, lists and dicts, which every engine takes. TypeError for what is no dict."""
    if not isinstance(input_feed, Mapping):
        raise TypeError(f"input_feed is a dict from names to values, not a {type(input_feed).__name__}")
    feeds = {}
    for name, value in input_feed.items():
        if isinstance(value, OrtValue):
            value = value.numpy()
        feeds[name] = value if value is None or isinstance(value, (list, dict)) else np.asarray(value)
    return feeds


class Side:
    """An engine, and the model that it runs."""

    def __init__(self, title: str, engine: Engine, model: str | bytes, feeds: dict[str, Any]) -> None:
        self.title, self.engine, self.model, self.feeds = title, engine, model, feeds

    def run(self, runs: int = 0, rewrites: bool = True) -> Reply:
        """Of the model as it is."""
        return self.engine.run(Request(self.model, self.feeds, runs, rewrites))

    def run_other(self, model: bytes, feeds: dict[str, Any] | None = None) -> Reply:
        """Of a model made of this one."""
        return self.engine.run(Request(model, self.feeds if feeds is None else feeds))

    def expose(self, wanted: Sequence[str] = ()) -> ExposedModel:
        """The model with inner values as outputs."""
        return exposed(self.model, self.feeds, wanted)

    def hands_out(self, value: InnerValue) -> bool:
        """Whether the engine can give the contents."""
        element = value.type.removeprefix("tensor(")
        return self.engine.name != ONNXRUNTIME or not element.startswith(_NO_ARRAYS)


class Search:
    """A comparison while it is made."""

    def __init__(self, ours: Side, theirs: Side, tolerance: Tolerance, memory: int, watch: Sequence[str]) -> None:
        self.ours, self.theirs = ours, theirs
        self.tolerance, self.memory, self.watch = tolerance, memory, watch
        self.is_same_model = ours.model is theirs.model
        self.left_out: dict[str, str] = {}
        self.drift: dict[str, list[tuple[int, float]]] = {}
        self.notes: list[str] = []
        self.names: dict[str, str] = {}  # of values of the other model
        self.outputs_differed = False  # in a run that handed inner values out

    def run(self, inner: bool | None, runs: int, save: str | None) -> Comparison:
        """The whole comparison."""
        ours, theirs = self.ours.run(runs), self.theirs.run(runs)
        costs = [
            Cost(side.title, reply.version, reply.seconds, reply.peak_bytes)
            for side, reply in ((self.ours, ours), (self.theirs, theirs))
            if not reply.problem
        ]
        for side, reply in ((self.ours, ours), (self.theirs, theirs)):
            if reply.problem:
                how = "gives no result" if reply.crashed else "refuses the model"
                return self._result(False, [], None, costs, refused=f"{side.title} {how}: {reply.problem}")
        outputs = self._compared_outputs(ours, theirs)
        agree = all(output.difference.agrees for output in outputs)
        first = None
        if inner or (inner is None and not agree):
            first = self._search(save)
            if first is None and not agree:
                self._note_rewrites(ours, theirs)
        return self._result(agree and first is None, outputs, first, costs)

    def _result(
        self,
        agrees: bool,
        outputs: list[OutputDifference],
        first: FirstDifference | None,
        costs: list[Cost],
        refused: str = "",
    ) -> Comparison:
        return Comparison(agrees, self.tolerance, outputs, first, self.drift, costs, self.left_out, self.notes, refused)

    def _compared_outputs(self, ours: Reply, theirs: Reply) -> list[OutputDifference]:
        by_name = dict(zip(theirs.names, theirs.outputs, strict=False))
        found = []
        for name, value in zip(ours.names, ours.outputs, strict=False):
            if name in by_name:
                apart = difference(value, by_name[name], self.tolerance)
            else:
                apart = Difference(False, float("inf"), problem=f"{self.theirs.title} has no such output")
            found.append(OutputDifference(name, apart))
        return found

    # ---- The first value that differs

    def _search(self, save: str | None) -> FirstDifference | None:
        try:
            values = self._values()
        except FAILURES as problem:
            self.notes.append(f"inner values are not compared: {problem}")
            return None
        first: tuple[Moment, InnerValue, Finding] | None = None
        for group in groups(values, self._counts(values), self.memory):
            for value, ours, theirs in self._runs(group):
                finding = compared(ours, theirs, self.tolerance)
                self._note_drift(value, finding)
                if finding.first is None:
                    continue
                moment = value.moment(finding.first)
                if first is None or moment < first[0]:
                    first = moment, value, finding
        return None if first is None else self._described(first[1], first[2], save)

    def _values(self) -> list[InnerValue]:
        """The values that can be compared, in the order of a run."""
        all_ours = self.ours.expose().values
        if self.is_same_model:
            self.names = {value.name: value.name for value in all_ours}
        else:
            self.names = pairs(all_ours, self.theirs.expose().values)
        found = []
        for value in all_ours:
            if not self._is_watched(value):
                continue
            if value.left_out:
                self.left_out[value.name] = value.left_out
            elif value.name not in self.names:
                self.left_out[value.name] = "the other model has no such value"
            elif not self.theirs.hands_out(value):
                self.left_out[value.name] = f"{self.theirs.title} hands out no {value.type}"
            else:
                found.append(value)
        return found

    def _is_watched(self, value: InnerValue) -> bool:
        last = value.name.rpartition("/")[2]
        fits = (value.name == name or last == name or fnmatch.fnmatchcase(value.name, name) for name in self.watch)
        return not self.watch or any(fits)

    def _counts(self, values: list[InnerValue]) -> dict[tuple[str, ...], int]:
        """How often each body runs, which one of its values tells."""
        if sum(value.bytes_of_one() for value in values) * _MANY_ITERATIONS <= self.memory:
            return {}
        least: dict[tuple[str, ...], InnerValue] = {}
        for value in values:
            known = least.get(value.region)
            if value.loops and (known is None or value.bytes_of_one() < known.bytes_of_one()):
                least[value.region] = value
        return {value.region: len(ours.iterations()) for value, ours, _ in self._runs([*least.values()])}

    def _runs(self, group: list[InnerValue]) -> Iterator[tuple[InnerValue, Rows, Rows]]:
        """What both engines make of the values. A value with which an engine fails is left out."""
        if not group:
            return
        ours = self.ours.expose([value.name for value in group])
        theirs = ours if self.is_same_model else self.theirs.expose([self.names[value.name] for value in group])
        replies = self.ours.run_other(ours.model), self.theirs.run_other(theirs.model)
        problems = [
            f"{side.title} fails when it is handed out: {reply.problem}"
            for side, reply in zip((self.ours, self.theirs), replies, strict=True)
            if reply.problem
        ]
        if problems and len(group) == 1:
            self.left_out[group[0].name] = problems[0]
        elif problems:
            yield from self._runs(group[: len(group) // 2])
            yield from self._runs(group[len(group) // 2 :])
        else:
            yield from self._rows(group, ours, theirs, *replies)

    def _rows(
        self, group: list[InnerValue], ours: ExposedModel, theirs: ExposedModel, reply: Reply, their_reply: Reply
    ) -> Iterator[tuple[InnerValue, Rows, Rows]]:
        differs = (not output.difference.agrees for output in self._compared_outputs(reply, their_reply))
        self.outputs_differed |= any(differs)
        mine = {value.name: value for value in ours.values}
        others = {value.name: value for value in theirs.values}
        for value in group:
            a, b = mine[value.name], others[self.names[value.name]]
            if b.left_out:
                self.left_out[value.name] = b.left_out
            else:
                yield value, Rows(a, reply.outputs), Rows(b, their_reply.outputs)

    def _note_drift(self, value: InnerValue, finding: Finding) -> None:
        if not value.is_state or len(value.loops) != 1 or not any(finding.apart.values()):
            return
        at = sorted(finding.apart)
        marks = {round(i * (len(at) - 1) / (MOST_MARKS - 1)) for i in range(MOST_MARKS)}
        marks |= {at.index(finding.first)} if finding.first is not None else set()
        self.drift[value.name] = [(at[i][0], finding.apart[at[i]]) for i in sorted(marks)]

    def _note_rewrites(self, ours: Reply, theirs: Reply) -> None:
        """Where no inner value differs: handing values out keeps engines from some rewrites."""
        if self.outputs_differed:
            self.notes.append("no inner value that was compared is beyond the tolerance")
            return
        self.notes.append("no output differs any more when inner values are handed out, so a rewrite matters")
        for side, title, pair in (
            (self.ours, "treadle's", lambda reply: (reply, theirs)),
            (self.theirs, f"{self.theirs.title}'s", lambda reply: (ours, reply)),
        ):
            reply = side.run(rewrites=False)
            if reply.problem:
                continue
            if all(output.difference.agrees for output in self._compared_outputs(*pair(reply))):
                self.notes.append(f"the outputs agree without {title} rewrites")

    # ---- The node alone

    def _described(self, value: InnerValue, finding: Finding, save: str | None) -> FirstDifference:
        assert finding.first is not None and finding.difference is not None
        lone = LoneNode(self, value, finding.first)
        alone = lone.run()
        self._note_nan(lone)
        if save is not None and lone.can_be_saved:
            lone.save(save)
        return FirstDifference(
            name=value.name,
            node=value.node,
            op=value.op,
            where=value.in_words(finding.first),
            iterations=finding.first,
            difference=finding.difference,
            inputs=lone.apart,
            constants=lone.constants,
            alone=alone,
            why_not_alone=lone.why_not,
            saved=save if save is not None and lone.can_be_saved else "",
        )

    def _note_nan(self, lone: LoneNode) -> None:
        """Engines hand a NaN on in different ways, so its cause comes before the difference."""
        names = [name for name in lone.inputs if name in lone.contents and _has_nan(lone.contents[name][0])]
        if names:
            self.notes.append(f"{names[0]} has nan, which engines treat differently: treadle run --find nan says why")


def _has_nan(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc" and bool(np.isnan(value).any())


def _array(tensor: bytes) -> Any:
    return _core.Value.from_pb(tensor).numpy()


class LoneNode:
    """The node of a value as a model of its own, with the inputs that it has in an iteration."""

    def __init__(self, search: Search, value: InnerValue, iterations: Iterations) -> None:
        self.search, self.value, self.iterations = search, value, iterations
        self.why_not = ""
        self.apart: dict[str, float] = {}  # how far the inputs are apart
        self.contents: dict[str, tuple[Any, Any]] = {}  # by the names of values: treadle's, the other engine's
        self.constants: dict[str, Difference] = {}  # of the node here, which the node of the other model has otherwise
        self.model = b""
        self.inputs: list[str] = []  # names of values
        # What the other engine makes of treadle's inputs or, if the other model has another node there, of its own.
        self.expected: list[Any] = []

    @property
    def can_be_saved(self) -> bool:
        """Whether there are expected outputs."""
        return bool(self.expected)

    def run(self) -> Difference | None:
        """How far the engines are apart on treadle's inputs; None where the node cannot be run alone."""
        try:
            self.model, self.inputs = self._lone_model(self.search.ours, self.value.node)
            if self.search.is_same_model:
                self._fetch(self.inputs)
                return self._compared(self.model, self.inputs)
            self._fetch([*self.inputs, self.value.name])
            self.expected = [self.contents[self.value.name][1]] if self._makes_one_value() else []
            return self._compared(*self._others_model())
        except _REFUSED as problem:
            self.why_not = str(problem)
            return None

    def _lone_model(self, side: Side, node: str) -> tuple[bytes, list[str]]:
        model, text = _core.node_model(*source(side.model), side.feeds, node)
        return model, json.loads(text)

    def _others_model(self) -> tuple[bytes, list[str]]:
        """The node by which the other model makes the value. LookupError where that is another kind of node."""
        name = self.search.names[self.value.name]
        (other,) = self.search.theirs.expose([name]).values
        if other.op != self.value.op:
            raise LookupError(f"the models compute it differently: {self.value.op} here, {other.op} in the other model")
        model, inputs = self._lone_model(self.search.theirs, other.node)
        back = {self.search.names.get(mine, mine): mine for mine in self.inputs}
        inputs = [back.get(name, name) for name in inputs]
        if unknown := [name for name in inputs if name not in self.contents]:
            raise LookupError(f"the other model computes it of {unknown[0]}, which is no input of the node here")
        self._note_constants(model)
        return model, inputs

    def _note_constants(self, theirs: bytes) -> None:
        """Pairs the constants by their order, in which the node reads them."""
        mine, others = initializers(self.model), initializers(theirs)
        if len(mine) != len(others):
            return
        for name, a, b in zip(mine, mine.values(), others.values(), strict=True):
            with contextlib.suppress(*FAILURES, TypeError):  # a type that numpy lacks
                apart = difference(_array(a), _array(b), Tolerance(0, 0))
                if not apart.agrees:
                    self.constants[name] = apart

    def _fetch(self, names: list[str]) -> None:
        """The contents of values that the node reads, in both engines. LookupError where an engine does not say them."""
        search = self.search
        inner = [name for name in names if name not in search.ours.feeds]
        for name in names:
            if name in search.ours.feeds:
                value = search.ours.feeds[name]
                self.contents[name] = value, search.theirs.feeds[name]
        if not inner:
            return
        ours = search.ours.expose(inner)
        values = {value.name: value for value in ours.values}
        for value in ours.values:
            if value.left_out:
                raise LookupError(f"its input {value.name} is not handed out: {value.left_out}")
        renamed = {name: search.names.get(name, name) for name in inner}
        theirs = ours if search.is_same_model else search.theirs.expose([*renamed.values()])
        their_values = {value.name: value for value in theirs.values}
        reply, their_reply = search.ours.run_other(ours.model), search.theirs.run_other(theirs.model)
        for side, answer in ((search.ours, reply), (search.theirs, their_reply)):
            if answer.problem:
                raise LookupError(f"{side.title} does not hand out its inputs: {answer.problem}")
        for name in inner:
            at = self.iterations[: len(values[name].loops)]
            a = Rows(values[name], reply.outputs)[at]
            b = Rows(their_values[renamed[name]], their_reply.outputs)[at]
            self.contents[name] = a, b
            if name in self.inputs:
                self.apart[name] = difference(a, b, search.tolerance).largest

    def _compared(self, theirs: bytes, their_inputs: list[str]) -> Difference | None:
        search = self.search
        reply = search.ours.run_other(self.model, self._feeds(self.model, self.inputs))
        their_reply = search.theirs.run_other(theirs, self._feeds(theirs, their_inputs))
        for side, answer in ((search.ours, reply), (search.theirs, their_reply)):
            if answer.problem:
                self.why_not = f"{side.title} does not run the node alone: {answer.problem}"
                return None
        self.expected = their_reply.outputs
        return difference(reply.outputs, their_reply.outputs, search.tolerance)

    def _makes_one_value(self) -> bool:
        from ._session import InferenceSession

        return len(InferenceSession(self.model).get_outputs()) == 1

    def _feeds(self, model: bytes, names: list[str]) -> dict[str, Any]:
        """treadle's inputs, by the names that the model of the node has for them."""
        from ._session import InferenceSession

        inputs = (value.name for value in InferenceSession(model).get_inputs())
        return dict(zip(inputs, (self.contents[name][0] for name in names), strict=True))

    def save(self, folder: str) -> None:
        """For `treadle test`."""
        data = os.path.join(folder, "test_data_set_0")
        os.makedirs(data, exist_ok=True)
        with open(os.path.join(folder, "model.onnx"), "wb") as file:
            file.write(self.model)
        values = {f"input_{i}": self.contents[name][0] for i, name in enumerate(self.inputs)}
        values |= {f"output_{i}": value for i, value in enumerate(self.expected)}
        for name, value in values.items():
            with open(os.path.join(data, f"{name}.pb"), "wb") as file:
                file.write(_core.Value.from_object(np.asarray(value), False).to_pb(name))
        tolerance = self.search.tolerance
        limits = {"rtol": tolerance.relative, "atol": tolerance.absolute}
        if any(limit is not None for limit in limits.values()):
            with open(os.path.join(folder, "meta.json"), "w", encoding="utf-8") as file:
                json.dump({name: limit for name, limit in limits.items() if limit is not None}, file)
