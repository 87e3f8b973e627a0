"""Nodes of every operator in sessions that have run other sizes before: earlier runs of a session change nothing.

    python histories.py COUNT [--seed N] [--only TEXT] [--part I OF] [--tiers NAME...] [--show-refusals]

A walk is one session that is fed one thing after the other: sizes that the node takes, sizes that it refuses, and wrong
contents of integer inputs. Each step gives the same bits, or is refused in the same words, as in a new session. Some
walks have the node in the body of a Loop or a Scan, and some hide all sizes from planning: there it gives what the node
alone gives, and refuses in the same words. Each refusal says where, of which operand, what was found and what is
expected. COUNT: at least so many steps behind the first ones of their sessions, over all operators.

Lines begin with "at" (what runs now), "wrong", "vague" (a refusal that says too little) and "done" (the counts).
"""

import argparse
import collections
import dataclasses
import functools
import re
import signal
import sys

import numpy as np
import onnx
from every_operator import Sample, samples
from odd_sizes import bits, is_random, limit_memory, near, resized, session
from one_node import treadle
from onnx import TensorProto, helper

SECONDS, MEMORY = 60, 8 << 30
TIERS = {
    "default": {},
    "native": {"jit": "always"},
    "reference": {"tier": "reference"},
    "plain": {"optimize": "0"},
}
WRONG_INTEGERS = (-1000, -3, -2, -1, 0, 1, 2, 3, 7, 1000)
LENGTH = 6  # steps of a walk
# In some operators the caches' length, a number, names the wrong operand: a plan that knows the number reports it
# earlier.
SAID_BY_DATA = ("com.microsoft.GroupQueryAttention", "com.microsoft.SparseAttention")
# Lowered in the run where no plan knows sizes, without the rewrites that planning makes.
LOWERED_IN_RUN = (
    "com.microsoft.GroupQueryAttention", "com.microsoft.PackedAttention", "com.microsoft.PackedMultiHeadAttention",
    "com.microsoft.QMoE", "com.microsoft.SparseAttention",
)  # fmt: skip
FORMS = 6  # of models around a node, at most
PROBES = 24  # feeds that are drawn for a sample


# Feeds ---------------------------------------------------------------------------------------------------------------


def sized(sample: Sample) -> list:
    return [i for i, x in enumerate(sample.inputs) if isinstance(x, np.ndarray)]


def axes_of(inputs) -> list:
    return [(i, axis, n) for i, x in enumerate(inputs) if isinstance(x, np.ndarray) for axis, n in enumerate(x.shape)]


def with_sizes(inputs, changes: dict) -> tuple:
    """`changes`: (input, axis) to size."""
    made = list(inputs)
    for (i, axis), size in changes.items():
        shape = list(made[i].shape)
        shape[axis] = size
        made[i] = resized(made[i], shape)
    return tuple(made)


def other_size(n: int, random) -> int:
    return int(random.choice([n + 1, max(n - 1, 0), 1, n + 3, 2 * n]))


def equal_sizes_changed(inputs, random) -> tuple:
    """All axes of one size are changed, as axes that belong together are."""
    axes = axes_of(inputs)
    if not axes:
        return inputs
    chosen = axes[random.integers(len(axes))][2]
    new = other_size(chosen, random)
    return with_sizes(inputs, {(i, axis): new for i, axis, n in axes if n == chosen})


def one_size_changed(inputs, random) -> tuple:
    axes = axes_of(inputs)
    if not axes:
        return inputs
    i, axis, n = axes[random.integers(len(axes))]
    return with_sizes(inputs, {(i, axis): other_size(n, random)})


def rank_changed(inputs, random) -> tuple:
    there = [i for i, x in enumerate(inputs) if isinstance(x, np.ndarray)]
    if not there:
        return inputs
    i = int(random.choice(there))
    made, x = list(inputs), inputs[i]
    if x.ndim and random.integers(2):
        made[i] = np.take(x, 0, int(random.integers(x.ndim))) if 0 not in x.shape else x.reshape(-1)
    else:
        made[i] = np.expand_dims(x, int(random.integers(x.ndim + 1)))
    made[i] = np.asarray(made[i], x.dtype)
    return tuple(made)


def contents_changed(inputs, random) -> tuple:
    there = [i for i, x in enumerate(inputs) if isinstance(x, np.ndarray) and x.dtype.kind in "iu" and x.size]
    if not there:
        return one_size_changed(inputs, random)
    i = int(random.choice(there))
    made, x = list(inputs), inputs[i].copy()
    limits = np.iinfo(x.dtype) if x.dtype.kind in "iu" else None
    value = min(max(int(random.choice(WRONG_INTEGERS)), limits.min), limits.max)
    x.reshape(-1)[random.integers(x.size)] = value
    made[i] = x
    return tuple(made)


CHANGES = (equal_sizes_changed, equal_sizes_changed, one_size_changed, one_size_changed, rank_changed, contents_changed)


def small(inputs) -> bool:
    return sum(x.size for x in inputs if isinstance(x, np.ndarray)) < 1 << 18


def drawn_feeds(sample: Sample, random) -> list:
    """The sample's own inputs, and others made of them by one or two changes."""
    made = [sample.inputs]
    while len(made) < PROBES:
        inputs = made[random.integers(len(made))] if random.integers(3) == 0 else sample.inputs
        changed = CHANGES[random.integers(len(CHANGES))](inputs, random)
        if small(changed):
            made.append(changed)
    return made


# Models --------------------------------------------------------------------------------------------------------------


def without_shapes(sample: Sample, i: int):
    x, name = sample.inputs[i], f"x{i}"
    if not isinstance(x, np.ndarray):
        return helper.make_value_info(name, sample.types[i])
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), None)


def named(sample: Sample, inputs=None) -> onnx.NodeProto:
    node = onnx.NodeProto()
    node.CopyFrom(sample.node)
    node.name = "the_node"
    if inputs is not None:
        node.input[:] = inputs
    return node


def bytes_of(sample: Sample, graph) -> bytes:
    opsets = [helper.make_opsetid(d, v) for d, v in sample.opsets]
    if not any(d in ("", "ai.onnx") for d, _ in sample.opsets):
        opsets.append(helper.make_opsetid("", 17))
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def alone(sample: Sample) -> bytes:
    values = [without_shapes(sample, i) for i, x in enumerate(sample.inputs) if x is not None]
    made = [onnx.ValueInfoProto(name=name) for name in sample.node.output if name]
    return bytes_of(sample, helper.make_graph([named(sample)], "one", values, made))


def looped(sample: Sample, results: list, inputs: list, in_front=(), in_body=()) -> bytes:
    """Two iterations of a Loop, whose body captures the inputs and stacks the results."""
    outputs = [name for name in sample.node.output if name]
    body = helper.make_graph(
        [*in_body, named(sample, inputs), helper.make_node("Identity", ["go"], ["go_on"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("go_on", TensorProto.BOOL, []), *rows_of(sample, results)],
    )
    count = helper.make_node("Constant", [], ["n"], value_int=2)
    loop = helper.make_node("Loop", ["n", ""], [f"s{name}" for name in outputs], name="the_loop", body=body)
    return bytes_of(sample, outer(sample, [*in_front, count, loop], in_front or in_body))


def scanned(sample: Sample, results: list) -> bytes:
    """Two iterations of a Scan, whose rows are the inputs; no plan knows their sizes."""
    outputs = [name for name in sample.node.output if name]
    nodes, hidden = hidden_inputs(sample)
    nodes.append(helper.make_node("Constant", [], ["first"], value_ints=[0]))
    rows, names = [], list(hidden)
    for i, x in enumerate(sample.inputs):
        if isinstance(x, np.ndarray):
            nodes += [
                helper.make_node("Unsqueeze", [hidden[i], "first"], [f"row{i}"]),
                helper.make_node("Concat", [f"row{i}", f"row{i}"], [f"rows{i}"], axis=0),
            ]
            names[i] = f"r{i}"
            kind = helper.np_dtype_to_tensor_dtype(x.dtype)
            rows.append((f"rows{i}", helper.make_tensor_value_info(names[i], kind, None)))
    body = helper.make_graph([named(sample, names)], "body", [info for _, info in rows], rows_of(sample, results))
    scan = helper.make_node(
        "Scan", [n for n, _ in rows], [f"s{n}" for n in outputs], "the_loop", body=body, num_scan_inputs=len(rows)
    )
    return bytes_of(sample, outer(sample, [*nodes, scan], True))


def rows_of(sample: Sample, results: list) -> list:
    outputs = [name for name in sample.node.output if name]
    kinds = [helper.np_dtype_to_tensor_dtype(y.dtype) for y in results]
    return [helper.make_tensor_value_info(n, k, None) for n, k in zip(outputs, kinds, strict=True)]


def outer(sample: Sample, nodes: list, hides: bool) -> onnx.GraphProto:
    """The graph that holds a loop."""
    values = [without_shapes(sample, i) for i, x in enumerate(sample.inputs) if x is not None]
    if hides:
        values.append(helper.make_tensor_value_info("all", TensorProto.BOOL, []))
    made = [onnx.ValueInfoProto(name=f"s{name}") for name in sample.node.output if name]
    return helper.make_graph(nodes, "outer", values, made)


def hidden_inputs(sample: Sample) -> tuple:
    """Nodes, and their results from the inputs: each axis is picked by flags that are only known in the run."""
    nodes, inputs = [], []
    for i, x in enumerate(sample.inputs):
        name = f"x{i}"
        for axis in range(x.ndim) if isinstance(x, np.ndarray) else ():
            made = f"{name}_{axis}"
            nodes += [
                helper.make_node("Shape", [name], [f"{made}_shape"]),
                helper.make_node("Constant", [], [f"{made}_at"], value_ints=[axis]),
                helper.make_node("Gather", [f"{made}_shape", f"{made}_at"], [f"{made}_size"]),
                helper.make_node("Expand", ["all", f"{made}_size"], [f"{made}_flags"]),
                helper.make_node("Compress", [name, f"{made}_flags"], [made], axis=axis),
            ]
            name = made
        inputs.append("" if x is None else name)
    return nodes, inputs


def hides_sizes(sample: Sample) -> bytes:
    nodes, inputs = hidden_inputs(sample)
    values = [without_shapes(sample, i) for i, x in enumerate(sample.inputs) if x is not None]
    values.append(helper.make_tensor_value_info("all", TensorProto.BOOL, []))
    made = [onnx.ValueInfoProto(name=name) for name in sample.node.output if name]
    return bytes_of(sample, helper.make_graph([*nodes, named(sample, inputs)], "hidden", values, made))


@dataclasses.dataclass(frozen=True)
class Form:
    """A model around a sample's node."""

    what: str
    model: bytes
    loops: bool = False  # results are stacked, two alike
    hides: bool = False  # no plan knows a size of the node's inputs


def forms_of(sample: Sample, results: list) -> list:
    made = [Form("alone", alone(sample))]
    opset = dict(sample.opsets).get("", 17)
    if opset < 11:
        return made
    nodes, hidden = hidden_inputs(sample)
    if nodes:
        made.append(Form("without known sizes", hides_sizes(sample), hides=True))
    if all(isinstance(y, np.ndarray) for y in results):
        made.append(Form("in a Loop", looped(sample, results, list(sample.node.input)), loops=True))
        if nodes:
            captured, own = looped(sample, results, hidden, nodes), looped(sample, results, hidden, (), nodes)
            made.append(Form("in a Loop around sizes that it captures", captured, True, True))
            made.append(Form("in a Loop that hides sizes", own, True, True))
        if nodes and opset >= 13:
            made.append(Form("in a Scan without known sizes", scanned(sample, results), True, True))
    return made[:1] + [form for form in made[1:] if opens(form.model)]


# Walks ---------------------------------------------------------------------------------------------------------------

REFUSALS = (
    treadle.Fail, treadle.InvalidArgument, treadle.InvalidGraph, treadle.LimitExceeded, treadle.NotImplemented,
    treadle.RuntimeException,
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Outcome:
    refusal: str = ""
    results: bytes = b""
    shown: str = ""
    values: tuple = dataclasses.field(default=(), compare=False)

    @property
    def said(self) -> str:
        """The text of a refusal without its place."""
        return re.split(r"\(\w+-\d+\): ", self.refusal)[-1]


def outcome_of(made, feeds: dict, loops: bool) -> Outcome:
    try:
        results = made.run(None, feeds)
    except REFUSALS as problem:
        return Outcome(refusal=f"{type(problem).__name__}: {problem}")
    if loops:
        first, second = ([np.asarray(y[i], y.dtype) for y in results] for i in (0, 1))
        results = first if [bits(y) for y in first] == [bits(y) for y in second] else [*first, *second]
    shown = ", ".join(f"{y.dtype}{list(y.shape)}" if isinstance(y, np.ndarray) else type(y).__name__ for y in results)
    return Outcome(results=b"".join(map(bits, results)), shown=shown, values=tuple(results))


def shapes_text(inputs) -> str:
    def text(x):
        if not isinstance(x, np.ndarray):
            return "-" if x is None else type(x).__name__
        few = f" {x.ravel().tolist()}" if x.dtype.kind in "iu" and x.size <= 6 else ""
        return f"{x.dtype}{list(x.shape)}{few}"

    return " ".join(map(text, inputs))


@functools.cache
def names_of_operators() -> dict:
    """By operator: the words of the names of its inputs, outputs and attributes, of all versions."""
    words = {}
    for op in treadle.operators():
        name = f"{op['domain']}.{op['name']}" if op["domain"] else op["name"]
        named = [x["name"] for v in op["versions"] for x in [*v["inputs"], *v["outputs"], *v["attributes"]]]
        words[name] = {word.lower() for n in named for word in [n, *n.split("_")]}
    return words


# Words that a refusal may contain beside the names of the operator's inputs, outputs and attributes. The last ones are
# the names that the nodes of a lowering give their inputs.
OTHERS = ("index", "input", "inputs", "state", "sequence", "sequence_lens", "attn_mask", "target")


# Refusals that do not name the operand yet.
UNNAMED = ("lengths have shape", "attention_bias has shape", "Pad repeats elements", "has a negative size")


def vagueness(sample: Sample, outcome: Outcome) -> str:
    """The part that a refusal of a feed leaves open; empty: none."""
    if not re.search(r"the_node|the_loop|'?x\d+", outcome.refusal):
        return "where"
    said = outcome.said
    words = {word.lower() for word in re.findall(r"\w+", said)}
    # For a node in a body, or one that a lowering made, that node's operator names the operands.
    operators = [sample.op, *re.findall(r"\((\w+)-\d+\)", outcome.refusal)]
    named = set().union(*(names_of_operators().get(op, set()) for op in operators))
    is_named = words & named or words & set(OTHERS) or any(u in said for u in UNNAMED)
    if not is_named:
        return "which operand"
    if not re.search(r"\d|\[\]|'|nothing|none|scalar|neither|left out", said):
        return "what was found"
    return "" if "expected" in said else "what is expected"


class Walker:
    """All walks of one model in one tier."""

    def __init__(self, sample: Sample, form: Form, tier: str, counts):
        self.sample, self.form, self.options = sample, form, TIERS[tier]
        self.name = f"{sample.op} ({sample.name}) {form.what}, {tier}"
        self.counts, self.fresh = counts, {}
        self.more = {"all": np.array(True)} if form.hides else {}

    def new_session(self):
        return session(self.form.model, **self.options)

    def feeds(self, probe) -> dict:
        return self.sample.with_inputs(probe).fed() | self.more

    def expected(self, number: int, probe) -> Outcome:
        """In a new session."""
        if number not in self.fresh:
            self.fresh[number] = outcome_of(self.new_session(), self.feeds(probe), self.form.loops)
        return self.fresh[number]

    def walk(self, probes: list, order: list) -> None:
        made, before = self.new_session(), []
        for step, number in enumerate(order):
            found = outcome_of(made, self.feeds(probes[number]), self.form.loops)
            wanted = self.expected(number, probes[number])
            if step:
                self.counts["steps"] += 1
                self.counts["refused"] += bool(wanted.refusal)
            differs = found != wanted if not is_random(self.sample) else found.refusal != wanted.refusal
            if differs:
                self.report(probes, [*before, number], found, wanted)
            before.append(number)

    def compare(self, alone: "Walker", probes: list) -> None:
        """Compares with the node alone: the same results, or refused in the same words."""
        for number, found in self.fresh.items():
            wanted = alone.expected(number, probes[number])
            if found.refusal and wanted.refusal:
                differs = found.said != wanted.said and self.sample.op not in SAID_BY_DATA
            else:
                differs = bool(found.refusal or wanted.refusal) or not self.are_alike(found, wanted)
            if differs:
                self.report(probes, [number], found, wanted)

    def are_alike(self, found: Outcome, wanted: Outcome) -> bool:
        if self.form.hides and self.sample.op in LOWERED_IN_RUN:
            return near(list(found.values), list(wanted.values))
        return is_random(self.sample) or found.results == wanted.results

    def report(self, probes, order, found: Outcome, wanted: Outcome) -> None:
        self.counts["wrong"] += 1
        text = [shapes_text(probes[n]) for n in order]
        print(
            f"wrong {self.name}: {text[-1]}\n    after  {'; '.join(text[:-1])}"
            f"\n    found  {found.refusal or found.shown}\n    wanted {wanted.refusal or wanted.shown}",
            flush=True,
        )


def walks_of(sample: Sample, tiers: list, walks: int, seed: int, counts, show: bool) -> None:
    random = np.random.default_rng([seed, *sample.name.encode()])
    probes = drawn_feeds(sample, random)
    first = outcome_and_results(sample)
    if first is None:
        return  # ImageDecoder
    alone = {}
    for form in forms_of(sample, first):
        orders = [order_of(probes, random) for _ in range(walks)]
        if form.hides:  # nodes for the sample's ranks stand in front of it
            orders = [[n for n in order if ranks(probes[n]) == ranks(sample.inputs)] for order in orders]
        for tier in tiers:
            walker = Walker(sample, form, tier, counts)
            for order in orders:
                print(f"at {walker.name}", flush=True)
                signal.alarm(SECONDS)
                walker.walk(probes, order)
            if form.what == "alone":
                alone[tier] = walker
            else:
                walker.compare(alone[tier], probes)
            for n, outcome in walker.fresh.items():
                if not outcome.refusal:
                    continue
                if show:
                    print(f"refused {walker.name}: {shapes_text(probes[n])}: {outcome.refusal}", flush=True)
                if missing := vagueness(sample, outcome):
                    counts["vague"] += 1
                    print(f"vague {walker.name}: {shapes_text(probes[n])}: {outcome.refusal} [{missing}]", flush=True)


def opens(model: bytes) -> bool:
    """Optional results, for example, are no rows of a scan output."""
    try:
        return bool(session(model))
    except REFUSALS:
        return False


def outcome_and_results(sample: Sample):
    try:
        return session(alone(sample)).run(None, sample.fed())
    except REFUSALS:
        return None


def ranks(inputs) -> list:
    return [x.ndim if isinstance(x, np.ndarray) else None for x in inputs]


def order_of(probes: list, random) -> list:
    """The sample's own feed comes early in most walks, since sizes that are refused teach a session little."""
    order = [int(n) for n in random.integers(len(probes), size=LENGTH)]
    if random.integers(4):
        order[0] = 0
    return order


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1))
    parser.add_argument("--show-refusals", action="store_true")
    parser.add_argument("--tiers", nargs="+", default=list(TIERS))
    options = parser.parse_args()
    limit_memory(MEMORY)
    part, parts = options.part
    found = [s for s in samples(options.most) if options.only in f"{s.op} {s.name}"]
    found = found[part::parts]
    counts = collections.Counter()
    a_walk = (LENGTH - 1) * len(options.tiers) * FORMS * len(found)
    walks = max(1, -(-options.count // max(a_walk, 1)))
    for sample in found:
        walks_of(sample, options.tiers, walks, options.seed, counts, options.show_refusals)
    print(
        f"done {counts['steps']} steps, {counts['refused']} of them refused, {counts['wrong']} wrong, {counts['vague']} vague, {len(found)} nodes",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
