"""Each rule of src/op/size_rules.h gives the sizes that numpy gives, wherever it is used: in inference with symbols and
with numbers, in dynamic kernels and in native code. Nodes and sizes are drawn."""

import dataclasses
import re

import numpy as np
import onnx
import pytest
import treadle
from onnx import TensorProto, helper, numpy_helper

DRAWS = 40


@dataclasses.dataclass
class Drawn:
    """A node over x and over lists of integers, which are constants or given to an iteration."""

    op: str
    sizes: tuple  # of x
    lists: dict = dataclasses.field(default_factory=dict)  # by the input's position
    attributes: dict = dataclasses.field(default_factory=dict)
    outputs: int = 1
    reads_x: bool = True

    def inputs(self) -> list:
        names = ["x"] if self.reads_x else []
        last = max(self.lists, default=-1)
        return names + [f"list{i}" if i in self.lists else "" for i in range(len(names), last + 1)]


def sizes_of(rng, rank: int, least: int = 0) -> tuple:
    return tuple(int(n) for n in rng.integers(least, 6, rank))


FAR = [np.iinfo(np.int64).max, np.iinfo(np.int64).min + 1, np.iinfo(np.int32).max, -(1 << 40)]


def drawn_slice(rng) -> Drawn:
    rank = int(rng.integers(1, 4))
    axes = rng.permutation(rank)[: rng.integers(1, rank + 1)]
    bounds = [[int(rng.choice(FAR)) if rng.random() < 0.3 else int(rng.integers(-7, 8)) for _ in axes] for _ in "be"]
    steps = [int(rng.choice([1, 1, 1, 2, 3, -1, -2])) for _ in axes]
    signed = [int(a) - rank * int(rng.integers(2)) for a in axes]
    return Drawn("Slice", sizes_of(rng, rank), {1: bounds[0], 2: bounds[1], 3: signed, 4: steps})


def sliced(x, d: Drawn) -> list:
    """By steps backwards, the specification moves a start in front of the axis to 0, where numpy takes nothing."""
    for begin, end, axis, step in zip(*(d.lists[i] for i in (1, 2, 3, 4)), strict=True):
        n = x.shape[axis]
        begin, end = (bound + n if bound < 0 else bound for bound in (begin, end))
        low, high = (0, n) if step > 0 else (-1, n - 1)
        begin, end = min(max(begin, 0), high), min(max(end, low), high)
        x = np.take(x, np.arange(begin, end, step) if n else np.arange(0), axis)
    return [x]


def drawn_reshape(rng) -> Drawn:
    sizes = sizes_of(rng, int(rng.integers(1, 4)), 1)
    target = list(rng.permutation(sizes)) + [1] * int(rng.integers(3))
    target = [int(n) for n in rng.permutation(target)]
    for i in range(min(len(target), len(sizes))):
        if target[i] == sizes[i] and rng.random() < 0.5:
            target[i] = 0
    if rng.random() < 0.7:
        target[int(rng.integers(len(target)))] = -1
    if len(target) > 1 and rng.random() < 0.2:
        target[int(rng.integers(len(target)))] += 1
    return Drawn("Reshape", sizes, {1: target})


def reshaped(x, d: Drawn) -> list:
    target = [x.shape[i] if n == 0 else n for i, n in enumerate(d.lists[1])]
    if x.size == 0 and -1 in target:
        raise ValueError("which sizes there are is for the rule to say")
    return [x.reshape(target)]


def drawn_squeeze(rng) -> Drawn:
    sizes = tuple(1 if rng.random() < 0.6 else n for n in sizes_of(rng, int(rng.integers(1, 4))))
    axes = [i - len(sizes) * int(rng.integers(2)) for i, n in enumerate(sizes) if n == 1 and rng.random() < 0.8]
    return Drawn("Squeeze", sizes, {1: axes or [0]})


def drawn_unsqueeze(rng) -> Drawn:
    rank, more = int(rng.integers(0, 3)), int(rng.integers(1, 3))
    axes = rng.permutation(rank + more)[:more]
    return Drawn("Unsqueeze", sizes_of(rng, rank), {1: [int(a) - (rank + more) * int(rng.integers(2)) for a in axes]})


def drawn_split(rng) -> Drawn:
    sizes = sizes_of(rng, int(rng.integers(1, 3)))
    axis = int(rng.integers(len(sizes)))
    parts = int(rng.integers(1, 4))
    if rng.random() < 0.5:
        return Drawn("Split", sizes, {}, {"axis": axis, "num_outputs": parts}, parts)
    cuts = sorted(int(n) for n in rng.integers(0, sizes[axis] + 1, parts - 1))
    listed = [int(n) for n in np.diff([0, *cuts, sizes[axis]])]
    return Drawn("Split", sizes, {1: listed}, {"axis": axis}, parts)


def split(x, d: Drawn) -> list:
    axis = d.attributes["axis"]
    if 1 in d.lists:
        if sum(d.lists[1]) != x.shape[axis]:
            raise ValueError("other sizes")
        return np.split(x, np.cumsum(d.lists[1])[:-1], axis)
    part = -(-x.shape[axis] // d.outputs)
    return np.split(x, [part * i for i in range(1, d.outputs)], axis)


def drawn_concat(rng) -> Drawn:
    sizes = sizes_of(rng, int(rng.integers(1, 4)))
    return Drawn("Concat", sizes, {}, {"axis": int(rng.integers(-len(sizes), len(sizes)))})


def drawn_range(rng) -> Drawn:
    begin, end = (int(n) for n in rng.integers(-9, 10, 2))
    delta = int(rng.choice([-3, -2, -1, 1, 2, 3, 4]))
    return Drawn("Range", (), {0: begin, 1: end, 2: delta}, reads_x=False)


def drawn_gather(rng) -> Drawn:
    sizes = sizes_of(rng, int(rng.integers(1, 4)), 1)
    axis = int(rng.integers(len(sizes)))
    count = int(rng.integers(0, 4))
    return Drawn("Gather", sizes, {1: [int(n) for n in rng.integers(0, sizes[axis], count)]}, {"axis": axis})


def drawn_reduction(rng) -> Drawn:
    sizes = sizes_of(rng, int(rng.integers(1, 4)), 1)
    axes = rng.permutation(len(sizes))[: rng.integers(1, len(sizes) + 1)]
    keep = int(rng.integers(2))
    return Drawn("ReduceMax", sizes, {1: [int(a) for a in axes]}, {"keepdims": keep})


def drawn_expand(rng) -> Drawn:
    sizes = tuple(1 if rng.random() < 0.5 else n for n in sizes_of(rng, int(rng.integers(0, 4))))
    target = [n if n != 1 else int(rng.integers(0, 5)) for n in sizes]
    target = [n if rng.random() < 0.7 else 1 for n in target]
    return Drawn("Expand", sizes, {1: [int(n) for n in rng.integers(0, 4, rng.integers(3))] + target})


def summed(x, d: Drawn) -> list:
    return [x.max(tuple(d.lists[1]), keepdims=bool(d.attributes["keepdims"]))]


# How a node is drawn, and numpy's result.
RULES = {
    "slice": (drawn_slice, sliced),
    "reshape": (drawn_reshape, reshaped),
    "squeeze": (drawn_squeeze, lambda x, d: [x.squeeze(tuple(d.lists[1]))]),
    "unsqueeze": (drawn_unsqueeze, lambda x, d: [np.expand_dims(x, tuple(d.lists[1]))]),
    "split": (drawn_split, split),
    "concat": (drawn_concat, lambda x, d: [np.concatenate([x, x + x], d.attributes["axis"])]),
    "range": (drawn_range, lambda x, d: [np.arange(d.lists[0], d.lists[1], d.lists[2])]),
    "gather": (drawn_gather, lambda x, d: [np.take(x, d.lists[1], d.attributes["axis"])]),
    "reduce": (drawn_reduction, summed),
    "broadcast": (drawn_expand, lambda x, d: [np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(d.lists[1])))]),
}


def drawn(rule: str) -> list:
    rng = np.random.default_rng(sum(rule.encode()))
    return [RULES[rule][0](rng) for _ in range(DRAWS)]


def expected(rule: str, x, d: Drawn) -> list | None:
    """numpy's result; None if the node is invalid for x."""
    try:
        return RULES[rule][1](x, d)
    except (ValueError, IndexError):
        return None


def values(sizes: tuple):
    return np.arange(np.prod(sizes, dtype=int), dtype=np.float32).reshape(sizes)


def nodes_of(d: Drawn) -> list:
    names = [f"y{i}" for i in range(d.outputs)]
    if d.op == "Concat":
        more = helper.make_node("Add", ["x", "x"], ["more"])
        return [more, helper.make_node(d.op, ["x", "more"], names, **d.attributes)]
    return [helper.make_node(d.op, d.inputs(), names, **d.attributes)]


def tensor_of(name: str, value) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(value, np.int64), name)


def type_of(d: Drawn) -> int:
    return TensorProto.INT64 if d.op == "Range" else TensorProto.FLOAT


def model_of(graph: onnx.GraphProto) -> bytes:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()


def simple_model(d: Drawn, sizes: list) -> bytes:
    """The node with lists that are constants."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)]
    outputs = [helper.make_tensor_value_info(f"y{i}", type_of(d), None) for i in range(d.outputs)]
    lists = [tensor_of(f"list{i}", value) for i, value in d.lists.items()]
    return model_of(helper.make_graph(nodes_of(d), "g", inputs, outputs, lists))


def evaluated(size, numbers: dict) -> int | None:
    """None: it is unknown."""
    if size.HasField("dim_value"):
        return size.dim_value
    if not size.dim_param or size.dim_param.startswith("unk__"):
        return None
    names = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "ceil": lambda a: -int(-a // 1)}
    return eval(re.sub("/", "//", size.dim_param), {"min": min, "max": max, **names}, numbers)


@pytest.mark.parametrize("rule", RULES)
def test_symbols(rule):
    """Sizes that inference states over symbols are those of every run."""
    rng = np.random.default_rng(1)
    stated = 0
    for d in drawn(rule):
        symbols = [f"n{i}" if rng.random() < 0.7 else n for i, n in enumerate(d.sizes)]
        try:
            model = onnx.load_from_string(treadle.infer_shapes(simple_model(d, symbols)))
        except Exception:  # of several kinds
            assert expected(rule, values(d.sizes), d) is None, d
            continue
        for _ in range(5):
            sizes = [int(rng.integers(0, 8)) if isinstance(n, str) else n for n in symbols]
            numbers = {n: size for n, size in zip(symbols, sizes, strict=True) if isinstance(n, str)}
            made = expected(rule, values(tuple(sizes)), d)
            for output, y in zip(model.graph.output, made or [], strict=made is not None):
                shape = output.type.tensor_type.shape
                assert len(shape.dim) == y.ndim, d
                for size, n in zip(shape.dim, y.shape, strict=True):
                    states = evaluated(size, numbers)
                    assert states in (None, n), (d, sizes, size)
                    stated += states is not None
    assert stated > DRAWS // 2


def test_a_size_that_reshape_keeps():
    """What it keeps stays the symbol that it is, even one that no rule knows to be positive."""
    text = b"""<ir_version: 9, opset_import: ["" : 18]> g (float[2,3,n] x) => (int64 count)
        <int64[4] kept = {0, 3, 0, 1}> {
          pooled = AveragePool <kernel_shape = [3]> (x)
          y = Reshape(pooled, kept)
          count = Size(y) }"""
    model = onnx.load_from_string(treadle.infer_shapes(text))
    y = next(value for value in model.graph.value_info if value.name == "y")
    assert [d.dim_param or d.dim_value for d in y.type.tensor_type.shape.dim] == [2, 3, "n-2", 1]


@pytest.mark.parametrize("rule", RULES)
def test_numbers(rule):
    """Sizes and contents of nodes that are planned, and an error where numpy has one."""
    for d in drawn(rule):
        x = values(d.sizes)
        made = expected(rule, x, d)
        try:
            results = treadle.InferenceSession(simple_model(d, list(d.sizes))).run(None, {"x": x})
        except Exception:  # of several kinds
            assert made is None, d
            continue
        assert made is not None, d
        for ours, theirs in zip(results, made, strict=True):
            np.testing.assert_array_equal(ours, theirs, str(d))


# --- in loops, where sizes and lists change from iteration to iteration

VARIED = {"slice": (1, 2), "reshape": (1,), "range": (0, 1, 2)}  # lists that are not constants
ITERATIONS = 12


def again(rng, rule: str, d: Drawn) -> Drawn:
    """A node like `d` with other sizes, and other lists where these vary."""
    sizes = tuple(1 if n == 1 and rng.random() < 0.7 else int(rng.integers(0, 7)) for n in d.sizes)
    lists = dict(d.lists)
    if rule == "slice":
        lists |= {i: [int(rng.integers(-7, 8)) for _ in lists[i]] for i in (1, 2)}
    if rule == "reshape":
        lists[1] = [int(n) for n in rng.choice([-1, 0, 1, 2, 3, 4, 6], len(lists[1]))]
    if rule == "range":
        lists = drawn_range(rng).lists
    if rule == "split" and 1 in lists:
        sizes = tuple(sum(lists[1]) if i == d.attributes["axis"] else n for i, n in enumerate(sizes))
    return dataclasses.replace(d, sizes=sizes, lists=lists)


def iterations(rng, rule: str, d: Drawn) -> list:
    """Nodes like `d` whose results numpy knows."""
    found = [d] if expected(rule, values(d.sizes), d) is not None else []
    for _ in range(1000):
        if len(found) == ITERATIONS:
            break
        another = again(rng, rule, d)
        if expected(rule, values(another.sizes), another) is not None:
            found.append(another)
    return found


def loop_model(rule: str, d: Drawn) -> bytes:
    """A Loop over `sizes`, a row for each iteration, and over the lists that vary."""
    varied = VARIED.get(rule, ())
    type_name = "int64" if d.op == "Range" else "float"
    lists = {i: value for i, value in d.lists.items() if i not in varied}
    words = [f"int64[{len(value)}] list{i} = {{{', '.join(map(str, value))}}}" for i, value in lists.items()]
    rows = "".join(f", int64[t,k{i}] lists{i}" for i in varied)
    picks = [f"list{i} = Gather <axis = 0> (lists{i}, i)" for i in varied if d.op != "Range"]
    for i in varied if d.op == "Range" else ():
        picks += [f"one{i} = Gather <axis = 0> (lists{i}, i)", f"list{i} = Squeeze(one{i})"]
    attributes = ", ".join(f"{name} = {value}" for name, value in d.attributes.items())
    outputs = ", ".join(f"y{i}" for i in range(d.outputs))
    inputs = ", ".join(d.inputs()) if d.op != "Concat" else "x, more"
    inserts = [f"s{i + 1} = SequenceInsert(s{i}, z{i})" for i in range(d.outputs)]
    twice = [f"z{i} = {'Add' if d.op == 'Range' else 'Mul'}(y{i}, y{i})" for i in range(d.outputs)]
    body = [*picks, "more = Add(x, x)", f"{outputs} = {d.op} <{attributes}> ({inputs})", *twice, *inserts]
    return f"""<ir_version: 9, opset_import: ["" : 18]>
    g (int64[t,r] sizes, float[n] all{rows}) => (seq({type_name}) ys)
    <{", ".join([*words, "bool yes = {1}, int64[1] zero = {0}"])}> {{
      shape = Shape <start = 0, end = 1> (sizes)
      iterations = Squeeze(shape)
      empty = SequenceEmpty <dtype = {type_of(d)}> ()
      ys = Loop <body = b (int64 i, bool go, seq({type_name}) s0) => (bool go2, seq({type_name}) s{d.outputs}) {{
        go2 = Identity(go)
        own = Gather <axis = 0> (sizes, i)
        count = ReduceProd <keepdims = 1> (own)
        part = Slice(all, zero, count)
        x = Reshape <allowzero = 1> (part, own)
        {" ".join(body)} }}> (iterations, yes, empty) }}""".encode()


@pytest.mark.parametrize("jit", ["off", "always"])
@pytest.mark.parametrize("rule", RULES)
def test_iterations(rule, jit):
    """Dynamic kernels and native code give numpy's results; twice, because a run starts with the memory of the one
    before.
    """
    rng = np.random.default_rng(3)
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("treadle.jit", jit)
    for d in drawn(rule)[:12]:
        rows = iterations(rng, rule, d)
        if not rows:
            continue
        feeds = {"sizes": np.array([row.sizes for row in rows], np.int64), "all": np.arange(400, dtype=np.float32)}
        for i in VARIED.get(rule, ()):
            feeds[f"lists{i}"] = np.array([np.atleast_1d(row.lists[i]) for row in rows], np.int64)
        wanted = [y for row in rows for y in expected(rule, values(row.sizes), row)]
        session = treadle.InferenceSession(loop_model(rule, d), options)
        for results in (session.run(None, feeds)[0], session.run(None, feeds)[0]):
            for ours, theirs in zip(results, wanted, strict=True):
                np.testing.assert_array_equal(ours, theirs + theirs if d.op == "Range" else theirs * theirs, str(d))
