"""Faults planted into models at a known place: the element of a value of a body that one iteration makes becomes another
number. What looks for faults has to find that place.

`plant` edits any model that has operator set 11: `Place` says where, a function says what becomes of the element. A Scan
gets a state that counts its iterations. `differences` plants 40 differences, in real models and in random programs, and
has `treadle.compare` look for them.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import itertools
import pathlib
import sys
import time
from collections.abc import Callable, Iterator

import bench_real
import numpy as np
import onnx
import treadle
from onnx import helper, numpy_helper
from treadle._compare_values import Rows, exposed

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "fuzz"))

from random_programs.blocks import OPSETS  # noqa: E402
from random_programs.generator import make_program  # noqa: E402

LEAST_OPSET = 11  # Range
FLOATS = ("tensor(float)", "tensor(double)", "tensor(float16)")
DRAWN = ("RandomNormal", "RandomUniform", "Bernoulli", "Multinomial", "Dropout")
OFF = 0.01  # what a planted difference adds
# Of a search for planted differences: far below what is planted for elements of at most SMALL.
RELATIVE, ABSOLUTE = 1e-4, 1e-3
SMALL = 5.0
LARGEST = 2 << 20  # bytes of a model


@dataclasses.dataclass(frozen=True)
class Place:
    """An element of a value, in the iteration that makes it. `value`: "q", or "/Scan_1:body/q" in a body."""

    value: str
    iterations: tuple[int, ...]  # of the loops around it, outermost first
    element: int  # its position among all elements

    def __str__(self) -> str:
        """ "/Scan_1:body/q, iteration 41, element 3"."""
        iterations = f", iteration {', '.join(map(str, self.iterations))}" if self.iterations else ""
        return f"{self.value}{iterations}, element {self.element}"


class Body:
    """A graph of the model while it is edited: nodes go in front of the node at `at`."""

    def __init__(self, top: onnx.GraphProto, graph: onnx.GraphProto, at: int) -> None:
        self.top, self.graph, self.at = top, graph, at

    def add(self, operator: str, inputs: list[str], output: str = "", **attributes) -> str:
        """A node; returns the name of its only output."""
        output = output or fresh(operator)
        self.graph.node.insert(self.at, helper.make_node(operator, inputs, [output], name=output, **attributes))
        self.at += 1
        return output

    def constant(self, array: np.ndarray) -> str:
        """An initializer of the model, which all bodies see."""
        name = fresh("constant")
        self.top.initializer.append(numpy_helper.from_array(np.asarray(array), name))
        return name


numbers = itertools.count()


def fresh(word: str) -> str:
    """A name that no model has."""
    return f"planted_{word}_{next(numbers)}"


def name_nodes(graph: onnx.GraphProto) -> None:
    """Gives every node of the graph and of bodies a name of its own, so that paths do not change with nodes that are added."""
    seen = collections.Counter(node.name for node in graph.node)
    for i, node in enumerate(graph.node):
        if not node.name or seen[node.name] > 1:
            node.name = f"{node.op_type}.{i}"
        for _, body in bodies(node):
            name_nodes(body)


def bodies(node: onnx.NodeProto) -> Iterator[tuple[str, onnx.GraphProto]]:
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.name, attribute.g


@dataclasses.dataclass
class Site:
    """The node that makes a value, and the nodes around it."""

    graph: onnx.GraphProto
    index: int
    output: int
    around: list[tuple[onnx.GraphProto, onnx.NodeProto, onnx.GraphProto]]  # a graph, its node, the node's body


def sites(graph: onnx.GraphProto, path: str = "", around: tuple = ()) -> Iterator[tuple[str, Site]]:
    """All values that nodes make, by the names that treadle has for them. Every node has a name."""
    for index, node in enumerate(graph.node):
        for attribute, body in bodies(node):
            inner = f"{path}/{node.name.removeprefix('/')}:{attribute}"
            yield from sites(body, inner, (*around, (graph, node, body)))
        for output, name in enumerate(node.output):
            if name:
                yield f"{path}/{name}" if path else name, Site(graph, index, output, [*around])


def counter_of(top: onnx.GraphProto, graph: onnx.GraphProto, loop: onnx.NodeProto, body: onnx.GraphProto) -> str:
    """The number of the iteration, as a value that the body sees."""
    if loop.op_type == "Loop":
        return body.input[0].name
    counted = Body(top, body, len(body.node))
    before, one = fresh("before"), counted.constant(np.int64(1))
    after = counted.add("Add", [before, one])
    scanned = helper.get_node_attr_value(loop, "num_scan_inputs")
    states = len(loop.input) - scanned
    insert(loop.input, states, Body(top, graph, 0).constant(np.int64(0)))
    insert(body.input, states, helper.make_tensor_value_info(before, onnx.TensorProto.INT64, []))
    insert(body.output, states, helper.make_tensor_value_info(after, onnx.TensorProto.INT64, []))
    insert(loop.output, states, fresh("count"))
    return before


def insert(items, at: int, item) -> None:
    """Into a repeated field of names or messages."""
    kept = [copy.deepcopy(x) for x in items]
    kept.insert(at, item)
    del items[:]
    items.extend(kept)


def plant(model: onnx.ModelProto, place: Place, change: Callable[[Body, str], str]) -> onnx.ModelProto:
    """A copy of the model in which `change` makes another number of the element: it adds nodes to a body, and gets and
    returns the name of a tensor of one axis with all elements of the value. All nodes of the copy have names.
    """
    planted = copy.deepcopy(model)
    name_nodes(planted.graph)
    site = dict(sites(planted.graph))[place.value]
    node = site.graph.node[site.index]
    name = node.output[site.output]
    before = fresh("value")
    node.output[site.output] = before
    body = Body(planted.graph, site.graph, site.index + 1)
    whole = body.constant(np.int64([-1]))
    flat = body.add("Reshape", [before, whole])
    zero, one = (body.constant(np.int64(n)) for n in (0, 1))
    positions = body.add("Range", [zero, body.add("Size", [before]), one])
    chosen = body.add("Equal", [positions, body.constant(np.int64(place.element))])
    loops = [around for around in site.around if around[1].op_type in ("Loop", "Scan")]
    for (graph, loop, inner), iteration in zip(loops, place.iterations, strict=True):
        counter = counter_of(planted.graph, graph, loop, inner)
        is_now = body.add("Equal", [body.add("Reshape", [counter, whole]), body.constant(np.int64([iteration]))])
        chosen = body.add("And", [chosen, is_now])
    changed = body.add("Where", [chosen, change(body, flat), flat])
    body.add("Reshape", [changed, body.add("Shape", [before])], name)
    return planted


def adding(element_type: np.dtype, number: float = OFF) -> Callable[[Body, str], str]:
    """A change by a number."""
    return lambda body, value: body.add("Add", [value, body.constant(np.array([number], element_type))])


# Places ---------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Subject:
    """A model whose nodes all have names, and inputs for it."""

    name: str
    model: onnx.ModelProto
    feeds: dict[str, np.ndarray]

    @property
    def data(self) -> bytes:
        return self.model.SerializeToString()


def opset_of(model: onnx.ModelProto) -> int:
    return max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)


def draws(graph: onnx.GraphProto) -> bool:
    """Whether results are drawn at random, so that two runs differ anyway."""
    return any(node.op_type.startswith(DRAWN) or any(draws(g) for _, g in bodies(node)) for node in graph.node)


def subject(name: str, model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> Subject | None:
    """None for models in which nothing is planted."""
    functions = any(draws(onnx.GraphProto(node=function.node)) for function in model.functions)
    if opset_of(model) < LEAST_OPSET or draws(model.graph) or functions:
        return None
    named = copy.deepcopy(model)
    name_nodes(named.graph)
    return Subject(name, named, feeds)


def shared_subjects(random: np.random.Generator) -> Iterator[Subject]:
    """Real models with loops or branches in any order, then the others."""
    models = []
    for name, data, feeds in bench_real.real_models():
        model = onnx.load_model_from_string(data)
        if len(data) <= LARGEST and (found := subject(name, model, feeds)) is not None:
            models.append((not bench_real.has_control_flow(model.graph), random.random(), found))
    yield from (found for _, _, found in sorted(models, key=lambda item: item[:2]))


def random_subjects(first: int = 0) -> Iterator[Subject]:
    for seed in itertools.count(first):
        opset = OPSETS[seed % len(OPSETS)]
        model, feeds = make_program(seed, opset)
        if (found := subject(f"program {seed} of operator set {opset}", model, feeds[0])) is not None:
            yield found


def run_plainly(data: bytes, feeds: dict[str, np.ndarray]) -> list:
    options = treadle.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("treadle.jit", "off")
    options.add_session_config_entry("treadle.optimize", "0")
    return treadle.InferenceSession(data, options).run(None, feeds)


def draw_place(found: Subject, random: np.random.Generator) -> tuple[Place, np.dtype] | None:
    """An element of a float value, small and finite, of a body if any makes one. None if there is none."""
    handed = exposed(found.data, found.feeds)
    outputs = run_plainly(handed.model, found.feeds)
    known = dict(sites(found.model.graph))
    by_region = collections.defaultdict(list)
    for value in handed.values:
        if not value.left_out and value.name in known and value.type.split("[")[0] in FLOATS:
            by_region[value.region].append(value)
    regions = [region for region in by_region if region] or [*by_region]
    for _ in range(50 if regions else 0):
        values = by_region[regions[random.integers(len(regions))]]
        value = values[random.integers(len(values))]
        rows = Rows(value, outputs)
        iterations = rows.iterations()
        if not iterations:
            continue
        at = iterations[random.integers(len(iterations))]
        elements = np.ravel(rows[at])
        small = np.flatnonzero(np.isfinite(elements) & (np.abs(elements) <= SMALL))
        if small.size:
            return Place(value.name, at, int(random.choice(small))), elements.dtype
    return None


# Planted differences --------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Row:
    """A planted difference and what the search found."""

    model: str
    planted: str
    found: str
    right: bool
    seconds: float


def look_for(found: Subject, place: Place, element_type: np.dtype) -> Row:
    """Compares the model with one in which a number is added to the element."""
    planted = plant(found.model, place, adding(element_type))
    begin = time.perf_counter()
    comparison = treadle.compare(
        found.data, found.feeds, planted.SerializeToString(), rtol=RELATIVE, atol=ABSOLUTE, inner=True, runs=1
    )
    seconds = time.perf_counter() - begin
    first = comparison.first
    if first is None:
        said = comparison.refused or "; ".join(comparison.notes) or "nothing"
        return Row(found.name, str(place), said, False, seconds)
    apart = first.difference
    element = int(np.ravel_multi_index(apart.at, apart.shape)) if apart.shape else 0
    seen = Place(first.name, first.iterations, element)
    return Row(found.name, str(place), str(seen), seen == place, seconds)


def places(
    subjects: Iterator[Subject], count: int, random: np.random.Generator
) -> Iterator[tuple[Subject, Place, np.dtype]]:
    """So many places, one in each model; models that do not run, before or after, are left out."""
    left = count
    for found in subjects:
        if left == 0:
            return
        with contextlib.suppress(*treadle._errors.FAILURES):
            drawn = draw_place(found, random)
            if drawn is None:
                continue
            run_plainly(plant(found.model, drawn[0], adding(drawn[1])).SerializeToString(), found.feeds)
            yield found, *drawn
            left -= 1


def differences(real: int = 20, programs: int = 20, seed: int = 0) -> Iterator[Row]:
    """Rows for so many differences in real models and in random programs."""
    random = np.random.default_rng(seed)
    for subjects, count in ((shared_subjects(random), real), (random_subjects(), programs)):
        for found, place, element_type in places(subjects, count, random):
            yield look_for(found, place, element_type)


def main() -> int:
    rows = []
    for row in differences():
        rows.append(row)
        mark = "right" if row.right else "WRONG"
        print(f"{row.model:32} {mark}  {row.seconds:5.1f} s  {row.planted}", flush=True)
        if not row.right:
            print(f"{'':32} found: {row.found}")
    wrong = sum(not row.right for row in rows)
    print(f"{len(rows) - wrong} of {len(rows)} planted differences found")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
