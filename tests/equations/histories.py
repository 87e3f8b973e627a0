"""Nodes of every operator in sessions that have run other sizes before: what a session has run changes nothing.

    python histories.py COUNT [--seed N] [--only TEXT] [--part I OF] [--tiers NAME...]

A walk is one session that is fed one thing after the other: sizes that the node takes, sizes that it refuses, and wrong
contents of integer inputs. Each step gives the same bits, or is refused in the same words, as in a new session. Each
refusal says where, what was found and what is expected. Some walks have the node in the body of a Loop, and some hide
all sizes from planning. COUNT: at least so many steps behind the first ones of their sessions, over all operators.

Lines begin with "at" (what runs now), "wrong", "vague" (a refusal that says too little) and "done" (the counts).
"""

import argparse
import collections
import dataclasses
import re
import resource
import signal
import sys

import numpy as np
import onnx
from every_operator import Sample, samples
from odd_sizes import bits, is_random, resized, session
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
    """All axes of one size, as those are that belong together."""
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


def named(sample: Sample) -> onnx.NodeProto:
    node = onnx.NodeProto()
    node.CopyFrom(sample.node)
    node.name = "the_node"
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


def in_loop(sample: Sample, results: list) -> bytes:
    """Two iterations of a Loop, whose body captures the inputs and stacks the results."""
    outputs = [name for name in sample.node.output if name]
    kinds = [helper.np_dtype_to_tensor_dtype(y.dtype) for y in results]
    infos = [helper.make_tensor_value_info(n, k, None) for n, k in zip(outputs, kinds, strict=True)]
    body = helper.make_graph(
        [named(sample), helper.make_node("Identity", ["go"], ["go_on"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("go_on", TensorProto.BOOL, []), *infos],
    )
    count = helper.make_node("Constant", [], ["n"], value_int=2)
    loop = helper.make_node("Loop", ["n", ""], [f"s{name}" for name in outputs], name="the_loop", body=body)
    values = [without_shapes(sample, i) for i, x in enumerate(sample.inputs) if x is not None]
    made = [onnx.ValueInfoProto(name=f"s{name}") for name in outputs]
    return bytes_of(sample, helper.make_graph([count, loop], "outer", values, made))


def hides_sizes(sample: Sample) -> bytes:
    """No plan knows a size of what the node is given: each axis has been picked over by flags that only a run knows."""
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
    node = named(sample)
    node.input[:] = inputs
    values = [without_shapes(sample, i) for i, x in enumerate(sample.inputs) if x is not None]
    values.append(helper.make_tensor_value_info("all", TensorProto.BOOL, []))
    made = [onnx.ValueInfoProto(name=name) for name in sample.node.output if name]
    return bytes_of(sample, helper.make_graph([*nodes, node], "hidden", values, made))


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


def outcome_of(made, feeds: dict) -> Outcome:
    try:
        results = made.run(None, feeds)
    except REFUSALS as problem:
        return Outcome(refusal=f"{type(problem).__name__}: {problem}")
    shown = ", ".join(f"{y.dtype}{list(y.shape)}" if isinstance(y, np.ndarray) else type(y).__name__ for y in results)
    return Outcome(results=b"".join(map(bits, results)), shown=shown)


def shapes_text(inputs) -> str:
    def text(x):
        if not isinstance(x, np.ndarray):
            return "-" if x is None else type(x).__name__
        few = f" {x.ravel().tolist()}" if x.dtype.kind in "iu" and x.size <= 6 else ""
        return f"{x.dtype}{list(x.shape)}{few}"

    return " ".join(map(text, inputs))


# What says, in other words, what is expected.
EXPECTED = (
    "expected", "do not broadcast", "does not broadcast", "cannot be multiplied", "is out of range", "must not be",
    "keep type and shape", "but axis", "the ones before it have", "transform takes", "only 1 can be squeezed",
)  # fmt: skip


def vagueness(refusal: str) -> str:
    """What a refusal of a feed leaves open; empty: nothing."""
    if not re.search(r"the_node|the_loop|'?x\d+", refusal):
        return "where"
    said = refusal.rpartition("): ")[2]
    if not re.search(r"\d|\[\]|'|nothing|none|scalar|neither", said):
        return "what was found"
    return "" if any(words in said for words in EXPECTED) else "what is expected"


class Walker:
    """All walks of one model in one tier."""

    def __init__(self, sample: Sample, model: bytes, tier: str, what: str, counts):
        self.sample, self.model, self.options = sample, model, TIERS[tier]
        self.name = f"{sample.op} ({sample.name}) {what}, {tier}"
        self.counts, self.fresh = counts, {}
        self.more = {"all": np.array(True)} if what == "without known sizes" else {}

    def new_session(self):
        return session(self.model, **self.options)

    def expected(self, number: int, feeds: dict) -> Outcome:
        """In a new session."""
        if number not in self.fresh:
            self.fresh[number] = outcome_of(self.new_session(), feeds)
        return self.fresh[number]

    def walk(self, probes: list, order: list) -> None:
        made, before = self.new_session(), []
        for step, number in enumerate(order):
            feeds = self.sample.with_inputs(probes[number]).fed() | self.more
            found, wanted = outcome_of(made, feeds), self.expected(number, feeds)
            if step:
                self.counts["steps"] += 1
                self.counts["refused"] += bool(wanted.refusal)
            differs = found != wanted if not is_random(self.sample) else found.refusal != wanted.refusal
            if differs:
                self.report(probes, [*before, number], found, wanted)
            before.append(number)

    def report(self, probes, order, found: Outcome, wanted: Outcome) -> None:
        self.counts["wrong"] += 1
        text = [shapes_text(probes[n]) for n in order]
        print(
            f"wrong {self.name}: {text[-1]}\n    after  {'; '.join(text[:-1])}"
            f"\n    found  {found.refusal or found.shown}\n    wanted {wanted.refusal or wanted.shown}",
            flush=True,
        )


def walks_of(sample: Sample, tiers: list, walks: int, seed: int, counts) -> None:
    random = np.random.default_rng([seed, *sample.name.encode()])
    probes = drawn_feeds(sample, random)
    first = outcome_and_results(sample)
    if first is None:
        return  # ImageDecoder
    models = [("alone", alone(sample))]
    in_loops = dict(sample.opsets).get("", 17) >= 11
    if in_loops:
        models += [("without known sizes", model) for model in [hides_sizes(sample)] if opens(model)]
    if in_loops and all(isinstance(y, np.ndarray) for y in first):
        models += [("in a Loop", model) for model in [in_loop(sample, first)] if opens(model)]
    for what, model in models:
        orders = [order_of(probes, random) for _ in range(walks)]
        if what == "without known sizes":  # nodes for the sample's ranks stand in front of it
            orders = [[n for n in order if ranks(probes[n]) == ranks(sample.inputs)] for order in orders]
        for tier in tiers:
            walker = Walker(sample, model, tier, what, counts)
            for order in orders:
                print(f"at {walker.name}", flush=True)
                signal.alarm(SECONDS)
                walker.walk(probes, order)
            for n, outcome in walker.fresh.items():
                if not outcome.refusal:
                    continue
                if missing := vagueness(outcome.refusal):
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
    parser.add_argument("--tiers", nargs="+", default=list(TIERS))
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    part, parts = options.part
    found = [s for s in samples(options.most) if options.only in f"{s.op} {s.name}"]
    found = found[part::parts]
    counts = collections.Counter()
    a_walk = (LENGTH - 1) * len(options.tiers) * 3 * len(found)
    walks = max(1, -(-options.count // max(a_walk, 1)))
    for sample in found:
        walks_of(sample, options.tiers, walks, options.seed, counts)
    print(
        f"done {counts['steps']} steps, {counts['refused']} of them refused, {counts['wrong']} wrong, {counts['vague']} vague, {len(found)} nodes",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
