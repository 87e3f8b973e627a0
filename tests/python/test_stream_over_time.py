"""Streams over time: the results of the pushes and the flush are those of one run over the whole signal."""

import models
import numpy as np
import pytest
import treadle
from models import node, value
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(7)


def floats(*shape):
    return (RNG.standard_normal(shape) * 0.3).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def scalar(number):
    return np.array(number, np.int64)


class Case:
    """A model over x, whose `axis` is time, with outputs that have their frames along `joined` (None: final states)."""

    def __init__(self, nodes, shape, axis, joined, weights=None, *, lengths=(300,), outputs=("y",)):
        self.shape, self.axis, self.joined, self.lengths = shape, axis, joined, lengths
        # A convolution of another number of frames may sum in another order (docs/numerics.md).
        self.exact = not any(n.op_type in {"Conv", "ConvTranspose"} for n in nodes)
        self.model = models.model(
            nodes,
            [value("x", shape=["T" if i == axis else size for i, size in enumerate(shape)])],
            [value(name, shape=None) for name in outputs],
            initializers=[numpy_helper.from_array(w, name) for name, w in (weights or {}).items()],
        )

    def signal(self, length):
        return floats(*(length if i == self.axis else size for i, size in enumerate(self.shape)))

    def part(self, x, begin, end):
        return x[tuple(slice(begin, end) if i == self.axis else slice(None) for i in range(x.ndim))]


def push_all(stream, case, x, sizes):
    """The outputs of all pushes of blocks of these sizes, in turn, and of the flush."""
    names, at, turn = stream.output_names, 0, 0
    pushed = []
    while at < x.shape[case.axis]:
        size = sizes[turn % len(sizes)]
        pushed.append(stream.push(x=case.part(x, at, at + size)))
        at += size
        turn += 1
    pushed.append(stream.flush())
    if len(names) == 1:
        pushed = [[p] for p in pushed]
    return [
        pushed[-1][i] if axis is None else np.concatenate([p[i] for p in pushed], axis=axis)
        for i, axis in enumerate(case.joined)
    ]


def expect_same(case, blocks):
    session = treadle.InferenceSession(case.model)
    for length in case.lengths:
        x = case.signal(length)
        want = session.run(None, {"x": x})
        for sizes in blocks:
            got = push_all(session.stream(time={"x": case.axis}), case, x, sizes)
            for g, w in zip(got, want, strict=True):
                if case.exact:
                    np.testing.assert_array_equal(g, w)
                else:
                    np.testing.assert_allclose(g, w, atol=1e-6)


def lstm(inputs, hidden, name):
    return {
        f"W{name}": floats(1, 4 * hidden, inputs),
        f"R{name}": floats(1, 4 * hidden, hidden),
        f"B{name}": floats(1, 8 * hidden),
    }


def convolution_and_gru():
    weights = {"w": floats(8, 4, 5), "b": floats(8), "W": floats(1, 48, 8), "R": floats(1, 48, 16), "B": floats(1, 96)}
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], pads=[4, 0]),
        node("Relu", ["c"], ["r"]),
        node("Transpose", ["r"], ["t"], perm=[2, 0, 1]),
        node("GRU", ["t", "W", "R", "B"], ["y", "h"], hidden_size=16),
    ]
    return Case(nodes, (1, 4, 0), 2, (0, None), weights, lengths=(4000,), outputs=("y", "h"))


def stack_of_lstms():
    weights, nodes, at = {"one": ints(1)}, [], "x"
    for layer in "012":
        weights |= lstm(4 if layer == "0" else 16, 16, layer)
        names = [at, f"W{layer}", f"R{layer}", f"B{layer}"]
        nodes.append(node("LSTM", names, [f"whole{layer}"], hidden_size=16))
        at = "y" if layer == "2" else f"y{layer}"
        nodes.append(node("Squeeze", [f"whole{layer}", "one"], [at]))
    return Case(nodes, (0, 2, 4), 0, (0,), weights, lengths=(4000,))


@pytest.mark.parametrize("size", [1, 160, 480, 512, 4000])
@pytest.mark.parametrize("make", [convolution_and_gru, stack_of_lstms])
def test_blocks_of_one_size(make, size):
    expect_same(make(), [[size]])


def conv(x, y, w="w", **attributes):
    return node("Conv", [x, w], [y], **attributes)


def transform(length):
    """Filters of a windowed transform, which fold (src/kernels/fold.h)."""
    basis = np.fft.fft(np.eye(length))[: length // 2 + 1] * np.hanning(length + 1)[:-1]
    return np.concatenate([basis.real, basis.imag])[:, None].astype(np.float32)


W = {"w": floats(4, 4, 5)}
AXIS2 = {"zero": ints(0), "one": ints(1), "minus1": ints(-1), "minus4": ints(-4), "all": ints(2**62), "axis": ints(2)}

CASES = {
    "strides and an operand that waits": Case(
        [
            conv("x", "a", "w3", pads=[1, 1], strides=[2]),
            conv("a", "b", pads=[2, 2]),
            node("Add", ["a", "b"], ["c"]),
            conv("c", "y", "w4", strides=[3], pads=[1, 0]),
            node("MaxPool", ["c"], ["p"], kernel_shape=[3], pads=[1, 1], strides=[2]),
        ],
        (1, 4, 0),
        2,
        (2, 2),
        W | {"w3": floats(4, 4, 3), "w4": floats(4, 4, 4)},
        lengths=(8, 13, 14, 100),
        outputs=("y", "p"),
    ),
    "shorter than the first block": Case(
        [conv("x", "a", "w3", pads=[1, 1], strides=[2]), conv("a", "b", pads=[2, 2]), node("Add", ["a", "b"], ["y"])],
        (1, 4, 0),
        2,
        (2,),
        W | {"w3": floats(4, 4, 3)},
        lengths=(1, 2, 3, 5, 6, 7, 9),
    ),
    "end cut off": Case(
        [conv("x", "a", pads=[4, 4]), node("Slice", ["a", "zero", "minus4", "axis"], ["y"])],
        (1, 4, 0),
        2,
        (2,),
        W | AXIS2,
    ),
    "pads of its own": Case(
        [node("Pad", ["x", "p"], ["a"]), conv("a", "y")], (1, 4, 0), 2, (2,), W | {"p": ints(0, 0, 4, 0, 0, 0)}
    ),
    "reflected": Case(
        [node("Pad", ["x", "p"], ["a"], mode="reflect"), conv("a", "y")],
        (1, 4, 0),
        2,
        (2,),
        W | {"p": ints(0, 0, 2, 0, 0, 2)},
    ),
    "edges": Case(
        [node("Pad", ["x", "p"], ["a"], mode="edge"), conv("a", "y")],
        (1, 4, 0),
        2,
        (2,),
        W | {"p": ints(0, 0, 3, 0, 0, 1)},
    ),
    "cropped": Case([node("Pad", ["x", "p"], ["y"])], (1, 4, 0), 2, (2,), {"p": ints(0, 0, -3, 0, 0, -2)}),
    "delayed": Case(
        [
            node("Slice", ["x", "zero", "minus1", "axis"], ["s"]),
            node("Concat", ["frame", "s"], ["d"], axis=2),
            node("Sub", ["x", "d"], ["y"]),
        ],
        (1, 4, 0),
        2,
        (2,),
        AXIS2 | {"frame": floats(1, 4, 1)},
    ),
    "differences": Case(
        [
            node("Slice", ["x", "one", "all", "axis"], ["a"]),
            node("Slice", ["x", "zero", "minus1", "axis"], ["b"]),
            node("Sub", ["a", "b"], ["y"]),
        ],
        (1, 4, 0),
        2,
        (2,),
        AXIS2,
    ),
    "sums": Case(
        [node("CumSum", ["x", "axis"], ["y"]), node("CumSum", ["x", "axis"], ["e"], exclusive=1)],
        (2, 0),
        1,
        (1, 1),
        {"axis": scalar(1)},
        outputs=("y", "e"),
    ),
    "transposed convolution": Case(
        [
            conv("x", "a", "w3", strides=[2], pads=[1, 1]),
            node("ConvTranspose", ["a", "u"], ["y"], strides=[2], pads=[1, 1], output_padding=[1]),
        ],
        (1, 4, 0),
        2,
        (2,),
        {"w3": floats(4, 4, 3), "u": floats(4, 3, 3)},
    ),
    "transform of windowed frames": Case(
        [conv("x", "y", strides=[16], pads=[64, 0])],
        (1, 1, 0),
        2,
        (2,),
        {"w": transform(128)},
    ),
    "pools": Case(
        [
            node("MaxPool", ["x"], ["a"], kernel_shape=[5], strides=[1], pads=[2, 2]),
            node("AveragePool", ["a"], ["y"], kernel_shape=[4], strides=[2], pads=[1, 1]),
        ],
        (1, 4, 0),
        2,
        (2,),
        lengths=(99, 100),
    ),
    "frames left out": Case(
        [node("MaxPool", ["x"], ["y"], kernel_shape=[1], strides=[3])], (1, 4, 0), 2, (2,), lengths=(98, 99, 100)
    ),
    "same size": Case([conv("x", "y", auto_pad="SAME_LOWER")], (1, 4, 0), 2, (2,), {"w": floats(4, 4, 4)}),
    "a picture of frames": Case(
        [
            conv("x", "a", pads=[2, 1, 0, 1]),
            node("Transpose", ["a"], ["t"], perm=[0, 2, 1, 3]),
            node("Shape", ["t"], ["s"]),
            node("Gather", ["s", "zero"], ["b"]),
            node("Gather", ["s", "one"], ["n"]),
            node("Concat", ["b", "n", "minus1"], ["sizes"], axis=0),
            node("Reshape", ["t", "sizes"], ["y"]),
        ],
        (1, 1, 0, 8),
        2,
        (1,),
        AXIS2 | {"w": floats(3, 1, 3, 3)},
    ),
    "samples put into frames": Case(
        [node("Reshape", ["x", "sizes"], ["r"]), node("MatMul", ["r", "w"], ["y"])],
        (1, 0),
        1,
        (1,),
        {"sizes": ints(1, -1, 10), "w": floats(10, 3)},
    ),
    "time and batch in one axis": Case(
        [
            node("Shape", ["x"], ["s"]),
            node("Reshape", ["x", "rows"], ["r"]),
            node("Gemm", ["r", "w"], ["g"]),
            node("Slice", ["s", "zero", "two"], ["bt"]),
            node("Concat", ["bt", "three"], ["sizes"], axis=0),
            node("Reshape", ["g", "sizes"], ["y"]),
        ],
        (1, 0, 6),
        1,
        (1,),
        {"rows": ints(-1, 6), "w": floats(6, 3), "zero": ints(0), "two": ints(2), "three": ints(3)},
    ),
    "positions": Case(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "one"], ["t"]),
            node("Range", ["zero", "t", "one"], ["r"]),
            node("Cast", ["r"], ["rf"], to=TensorProto.FLOAT),
            node("Add", ["x", "rf"], ["y"]),
        ],
        (2, 0),
        1,
        (1,),
        {"zero": scalar(0), "one": scalar(1)},
    ),
    "as many as there are frames": Case(
        [
            node("Shape", ["x"], ["s"]),
            node("ConstantOfShape", ["s"], ["k"]),
            node("Expand", ["v", "s"], ["e"]),
            node("Add", ["k", "e"], ["y"]),
        ],
        (2, 0),
        1,
        (1,),
        {"v": floats(2, 1)},
    ),
    "the last frame": Case(
        [
            node("LSTM", ["x", "W", "R"], ["h"], hidden_size=5, layout=1),
            node("Squeeze", ["h", "two"], ["q"]),
            node("Gather", ["q", "minus1"], ["y"], axis=1),
        ],
        (2, 0, 4),
        1,
        (None,),
        {"W": floats(1, 20, 4), "R": floats(1, 20, 5), "two": ints(2), "minus1": scalar(-1)},
    ),
    "every frame on its own": Case(
        [
            node("ReduceMean", ["x", "minus1"], ["m"], keepdims=1),
            node("Softmax", ["x"], ["p"], axis=-1),
            node("Mul", ["m", "p"], ["y"]),
        ],
        (2, 0, 4),
        1,
        (1,),
        {"minus1": ints(-1)},
    ),
    "scan": Case(
        [
            node(
                "Scan",
                ["s0", "x"],
                ["f", "y"],
                num_scan_inputs=1,
                scan_input_axes=[1],
                scan_output_axes=[1],
                body=helper.make_graph(
                    [node("Add", ["s", "xi"], ["a"]), node("Tanh", ["a"], ["t"]), node("Mul", ["t", "t"], ["o"])],
                    "body",
                    [value("s", shape=[3]), value("xi", shape=[3])],
                    [value("t", shape=[3]), value("o", shape=[3])],
                ),
            )
        ],
        (3, 0),
        1,
        (None, 1),
        {"s0": floats(3)},
        outputs=("f", "y"),
    ),
    "a loop that keeps all frames so far": Case(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "zero"], ["n"]),
            node(
                "Loop",
                ["n", "", "none"],
                ["", "y"],
                body=helper.make_graph(
                    [
                        node("Gather", ["x", "i"], ["xi"]),
                        node("Unsqueeze", ["xi", "axis0"], ["row"]),
                        node("Concat", ["past", "row"], ["all"], axis=0),
                        node("ReduceMean", ["all", "axis0"], ["m"], keepdims=0),
                        node("Identity", ["c"], ["c2"]),
                    ],
                    "body",
                    [
                        value("i", TensorProto.INT64, []),
                        value("c", TensorProto.BOOL, []),
                        value("past", shape=["K", 3]),
                    ],
                    [value("c2", TensorProto.BOOL, []), value("all", shape=["L", 3]), value("m", shape=[3])],
                ),
            ),
        ],
        (0, 3),
        0,
        (0,),
        {"none": floats(0, 3), "zero": scalar(0), "axis0": ints(0)},
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_any_blocks(name):
    expect_same(CASES[name], [[1], [2, 0, 7], [40], [1000]])


def loop_case(condition):
    """Reads x by its iteration counter, which it also computes with."""
    nodes = [
        node("Gather", ["x", "i"], ["xi"], axis=1),
        node("Cast", ["i"], ["fi"], to=TensorProto.FLOAT),
        node("Mul", ["fi", "k"], ["ki"]),
        node("Add", ["s", "xi"], ["a"]),
        node("Add", ["a", "ki"], ["b"]),
        node("Tanh", ["b"], ["t"]),
        condition,
    ]
    body = helper.make_graph(
        nodes,
        "body",
        [value("i", models.INT64, []), value("c", TensorProto.BOOL, []), value("s", shape=[3])],
        [value("c2", TensorProto.BOOL, []), value("t", shape=[3]), value("t", shape=[3])],
    )
    weights = {
        "s0": floats(3),
        "k": np.array(0.01, np.float32),
        "one": scalar(1),
        "limit": scalar(133),
        "true": np.array(True),
    }
    outside = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "one"], ["n"]),
        node("Loop", ["n", "true", "s0"], ["f", "y"], body=body),
    ]
    return Case(outside, (3, 0), 1, (None, 0), weights, outputs=("f", "y"))


def test_a_loop_counts_on():
    expect_same(loop_case(node("Identity", ["c"], ["c2"])), [[1], [7], [40], [1000]])


@pytest.mark.parametrize("size", [1, 7, 40, 133, 134, 1000])
def test_a_loop_that_stops_is_done(size):
    case = loop_case(node("Less", ["i", "limit"], ["c2"]))
    expect_same(case, [[size]])
    stream = treadle.InferenceSession(case.model).stream(time={"x": 1})
    x, at = case.signal(300), 0
    while at < 300:
        stream.push(x=x[:, at : at + size])
        at += size
        assert stream.done == (at >= 134)  # the iteration with number 133 is the last one


def recurrence(op, gates, **attributes):
    weights = {"W": floats(1, gates * 5, 4), "R": floats(1, gates * 5, 5), "B": floats(1, 2 * gates * 5)}
    nodes = [node(op, ["x", "W", "R", "B"], ["y", "h"], hidden_size=5, **attributes)]
    layout = attributes.get("layout", 0)
    return Case(nodes, (2, 0, 4) if layout else (0, 2, 4), layout, (layout, None), weights, outputs=("y", "h"))


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize(
    ("op", "gates", "options"),
    [
        ("RNN", 1, {}),
        ("RNN", 1, {"activations": ["Relu"], "clip": 0.5}),
        ("GRU", 3, {"linear_before_reset": 1}),
        ("LSTM", 4, {"input_forget": 1}),
    ],
)
def test_recurrent_operators(op, gates, options, layout):
    expect_same(recurrence(op, gates, layout=layout, **options), [[1], [3, 7], [160], [1000]])


def test_strides_whose_blocks_do_not_fit():
    """Six samples a frame: blocks that never hold a whole number of them."""
    nodes = [
        conv("x", "a", "w3", strides=[2], pads=[1, 1], dilations=[2]),
        node("AveragePool", ["a"], ["y"], kernel_shape=[4], strides=[3], pads=[2, 1], count_include_pad=1),
    ]
    case = Case(nodes, (1, 4, 0), 2, (2,), {"w3": floats(4, 4, 3)}, lengths=(5, 6, 7, 11, 12, 13, 97))
    expect_same(case, [[1], [4], [5, 1], [7], [25]])


REFUSED = {
    "Softmax '/sm' needs all of time axis 1 \\(T\\) of 'r'.*'x' -> Relu '/relu'": (
        [node("Relu", ["x"], ["r"], name="relu"), node("Softmax", ["r"], ["y"], name="sm", axis=1)],
        {},
    ),
    "MatMul .*pairs all positions with all|MatMul .*sums along it": (
        [node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), node("MatMul", ["x", "t"], ["y"])],
        {},
    ),
    "LSTM .*direction is bidirectional": (
        [
            node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
            node("LSTM", ["t", "W", "R"], ["y"], hidden_size=5, direction="bidirectional"),
        ],
        {"W": floats(2, 20, 3), "R": floats(2, 20, 5)},
    ),
    "LSTM .*direction is reverse": (
        [
            node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
            node("LSTM", ["t", "W", "R"], ["y"], hidden_size=5, direction="reverse"),
        ],
        {"W": floats(1, 20, 3), "R": floats(1, 20, 5)},
    ),
    "Scan .*runs backwards": (
        [
            node(
                "Scan",
                ["x"],
                ["y"],
                num_scan_inputs=1,
                scan_input_axes=[1],
                scan_input_directions=[1],
                body=helper.make_graph(
                    [node("Neg", ["a"], ["b"])], "body", [value("a", shape=[1, 3])], [value("b", shape=[1, 3])]
                ),
            )
        ],
        {},
    ),
    "LayerNormalization .*normalises over axis 1": (
        [node("LayerNormalization", ["x", "scale"], ["y"], axis=1)],
        {"scale": floats(1)},
    ),
    "InstanceNormalization .*runs over axis 1|InstanceNormalization .*axis": (
        [
            node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
            node("InstanceNormalization", ["t", "scale", "scale"], ["y"]),
        ],
        {"scale": floats(3)},
    ),
    "GlobalAveragePool .*windows run along axis 2": (
        [node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), node("GlobalAveragePool", ["t"], ["y"])],
        {},
    ),
    "ReduceMean .*reduces axis 1": ([node("ReduceMean", ["x", "one"], ["y"])], {"one": ints(1)}),
    "Div .*computes with the length": (
        [
            node("Shape", ["x"], ["s"], start=1, end=2),
            node("Cast", ["s"], ["sf"], to=TensorProto.FLOAT),
            node("Div", ["x", "sf"], ["y"]),
        ],
        {},
    ),
    "output 'y' follows from the length": (
        [node("Shape", ["x"], ["s"]), node("Cast", ["s"], ["y"], to=TensorProto.FLOAT)],
        {},
    ),
    "Slice .*ends at a fixed frame": (
        [node("Slice", ["x", "zero", "five", "one"], ["y"])],
        {"zero": ints(0), "five": ints(5), "one": ints(1)},
    ),
}


@pytest.mark.parametrize("message", list(REFUSED))
def test_models_that_cannot_be_streamed_are_refused_with_the_reason(message):
    nodes, weights = REFUSED[message]
    session = treadle.InferenceSession(Case(nodes, (1, 0, 3), 1, (1,), weights).model)
    with pytest.raises(treadle.InvalidArgument, match="(?s)cannot be streamed because .*(" + message + ")"):
        session.stream(time={"x": 1})


@pytest.mark.parametrize("iterations", ["length", "m"])
def test_the_refusal_of_a_loop_that_slices_its_frames_names_the_operator(iterations):
    reason = {
        "length": "its body reads 'x' by Slice '/loop:body/cut', and only frames that a Gather takes",
        "m": "in its body, at Slice '/loop:body/cut': it cuts a part out of it",
    }[iterations]
    model = f"""<ir_version: 10, opset_import: ["" : 22]> g (float[1,t,4] x, int64 m, float[1,1,4] h0) => (float y) {{
      first = Constant <value = int64[1] {{0}}> ()  axes = Constant <value = int64[1] {{1}}> ()
      frames = Shape <start = 1, end = 2> (x)  length = Squeeze(frames, first)  one = Constant <value = int64 {{1}}> ()
      [loop] h, y = Loop <body = b (int64 i, bool c, float[1,1,4] s) => (bool d, float[1,1,4] u, float[1,1,4] row) {{
        d = Identity(c)  j = Add(i, one)  begin = Unsqueeze(i, first)  end = Unsqueeze(j, first)
        [cut] e = Slice(x, begin, end, axes)  u = Add(s, e)  row = Identity(u) }}> ({iterations}, , h0) }}"""
    with pytest.raises(treadle.InvalidArgument) as caught:
        treadle.InferenceSession(model.encode()).stream(time={"x": 1})
    assert f"Loop '/loop' needs all of time axis 1 (t) of 'x': {reason}" in str(caught.value)


def test_attention_over_all_of_time():
    model = models.model(
        [node("Attention", ["x", "x", "x"], ["y"], name="att", q_num_heads=1, kv_num_heads=1)],
        [value("x", shape=["B", "T", 4])],
        [value("y", shape=None)],
        opset=23,
    )
    session = treadle.InferenceSession(model)
    with pytest.raises(treadle.InvalidArgument, match="Attention '/att' needs .* relates its positions to all others"):
        session.stream(time={"x": 1})
    assert "has no" not in str(session.stream(time={"x": 0}))  # along the batch it can


def test_unknown_axes():
    model = models.model([node("Relu", ["x"], ["y"])], [value("x", shape=None)], [value("y", shape=None)])
    with pytest.raises(treadle.InvalidArgument, match="rank of 'x' is not known"):
        treadle.InferenceSession(model).stream(time={"x": 1})
    model = models.model([node("Relu", ["x"], ["y"])], [value("x", shape=["A", "B"])], [value("y", shape=None)])
    session = treadle.InferenceSession(model)
    for axis in (2, -3):
        with pytest.raises(treadle.InvalidArgument, match="time axis of 'x'"):
            session.stream(time={"x": axis})
    with pytest.raises(treadle.InvalidArgument, match="no input or output 'z'"):
        session.stream(time={"z": 0})


def test_delay_and_waiting_samples():
    case = CASES["strides and an operand that waits"]
    stream = treadle.InferenceSession(case.model).stream(time={"x": 2})
    y, p = stream.push(x=case.signal(3))
    assert y.shape == (1, 4, 0) and p.shape == (1, 4, 0) and stream.pending == 3
    assert stream.delay == 8 and "delay 8" in str(stream)
    assert treadle.InferenceSession(CASES["end cut off"].model).stream(time={"x": 2}).delay == 0
    assert treadle.InferenceSession(CASES["same size"].model).stream(time={"x": 2}).delay == 1


def test_axes_along_which_results_go_together():
    session = treadle.InferenceSession(CASES["strides and an operand that waits"].model)
    assert session.stream(time={"x": 2}).output_axes == {"y": 2, "p": 2}


def test_save_fork_and_reset():
    case = convolution_and_gru()
    session = treadle.InferenceSession(case.model)
    x = case.signal(60)
    want, _ = session.run(None, {"x": x})
    stream = session.stream(time={"x": 2})
    empty = stream.save()
    stream.push(x=x[:, :, :33])
    fork, snapshot = stream.fork(), stream.save()
    loaded = session.stream(time={"x": 2})
    loaded.load(snapshot)
    for other in (stream, fork, loaded):
        np.testing.assert_array_equal(other.push(x=x[:, :, 33:])[0], want[33:])
    stream.flush()
    with pytest.raises(treadle.InvalidArgument, match="reset"):
        stream.push(x=x)
    stream.reset()
    np.testing.assert_array_equal(stream.push(x=x)[0], want)
    loaded.load(empty)
    np.testing.assert_array_equal(loaded.push(x=x)[0], want)
    with pytest.raises(treadle.InvalidArgument):
        session.stream(find_state=False).load(snapshot)
    for cut in range(0, len(snapshot), 97):
        with pytest.raises((treadle.InvalidArgument, treadle.InvalidProtobuf, treadle.Fail)):
            loaded.load(snapshot[:cut])


def test_a_pair_that_the_caller_carries():
    weights = {"W": floats(1, 20, 4), "R": floats(1, 20, 5)}
    model = models.model(
        [node("LSTM", ["x", "W", "R", "", "", "h0", "c0"], ["y", "hn", "cn"], hidden_size=5)],
        [value("x", shape=["T", 1, 4]), value("h0", shape=[1, 1, 5]), value("c0", shape=[1, 1, 5])],
        [value(name, shape=None) for name in ("y", "hn", "cn")],
        initializers=[numpy_helper.from_array(w, name) for name, w in weights.items()],
    )
    session = treadle.InferenceSession(model)
    x, h0, c0 = floats(30, 1, 4), floats(1, 1, 5), floats(1, 1, 5)
    want, hn, cn = session.run(None, {"x": x, "h0": h0, "c0": c0})
    stream = session.stream(time={"x": 0}, initial={"h0": h0, "c0": c0})
    assert stream.output_names == ["y"]
    np.testing.assert_array_equal(np.concatenate([stream.push(x=x[i : i + 7]) for i in range(0, 30, 7)]), want)
    np.testing.assert_array_equal(stream.state["h0"], hn)
    stream.state = {"h0": h0, "c0": c0}
    np.testing.assert_array_equal(stream.push(x=x), want)


def test_final_states_are_those_so_far():
    case = convolution_and_gru()
    session = treadle.InferenceSession(case.model)
    x = case.signal(20)
    stream = session.stream(time={"x": 2})
    assert stream.push(x=x[:, :, :0])[1] is None
    stream.push(x=x[:, :, :5])
    got = stream.push(x=x[:, :, 5:12])[1]
    np.testing.assert_array_equal(got, session.run(["h"], {"x": x[:, :, :12]})[0])
    np.testing.assert_array_equal(stream.push(x=x[:, :, :0])[1], got)


# The mean of the last frames, which wait in a list: how long a row is, only an iteration tells.
WINDOW = """<ir_version: 10, opset_import: ["" : 21]> g (float[n,2] x) => (float[n,k] y) {
  shape = Shape <start = 0, end = 1> (x)  iterations = Squeeze(shape)  empty = SequenceEmpty()
  queue, y = Loop <body = b (int64 i, bool c, seq(float) q) => (bool d, seq(float) r, float[k] o) {
    d = Identity(c)
    frame = Gather(x, i)
    longer = SequenceInsert(q, frame)
    length = SequenceLength(longer)
    four = Constant <value = int64 {4}> ()
    full = Greater(length, four)
    r = If (full) <then_branch = t () => (seq(float) a) { first = Constant <value = int64 {0}> ()  a = SequenceErase(longer, first) },
                   else_branch = e () => (seq(float) z) { z = Identity(longer) }>
    frames = ConcatFromSequence <axis = 0, new_axis = 1> (r)
    axes = Constant <value = int64[1] {0}> ()
    o = ReduceMean <keepdims = 0> (frames, axes) }> (iterations, , empty)
}"""


def test_a_flush_without_frames_has_the_sizes_of_those_before():
    session = treadle.InferenceSession(WINDOW.encode())
    x = floats(9, 2)
    stream = session.stream(time={"x": 0})
    pushed = [stream.push(x=x[:4]), stream.push(x=x[4:]), stream.flush()]
    assert pushed[-1].shape == (0, 2)
    np.testing.assert_array_equal(np.concatenate(pushed), session.run(None, {"x": x})[0])


SCAN_8 = """<ir_version: 8, opset_import: ["" : 8]>
g (float[2, T] x, double[3] d) => (float[2, T] y, float[1, 2, 3] z)
<float[1, 2, 3] whole = {1, 2, 3, 4, 5, 6}, int64[1, 2, 3] other = {6, 5, 4, 3, 2, 1}> {
  y = Relu (x)
  rows, z = Scan <num_scan_inputs = 2, body = outer (float[3] a, int64[3] b) => (double[1, 2, 3] row, float[3] a)
    <int64[1, 2, 3] inside = {1, 2, 3, 4, 5, 6}> {
      row, flags = Scan <num_scan_inputs = 1, body = inner (int64[3] c) => (double[3] d, bool flag) {
        flag = Constant <value = bool {1}> ()
      }> ("", inside)
  }> ("", whole, other)
}"""


def test_scans_of_version_8_in_streams():
    """They are lowered at planning, when rows without readers are already gone."""
    session = treadle.InferenceSession(SCAN_8.encode())
    feeds = {"x": np.arange(-4, 4, dtype=np.float32).reshape(2, 4), "d": np.ones(3)}
    y, z = session.run(None, feeds)
    stream = session.stream(time={"x": 1}, bind={"d": feeds["d"]})
    for at in (0, 2):
        part, constant = stream.push(x=feeds["x"][:, at : at + 2])
        np.testing.assert_array_equal(part, y[:, at : at + 2])
        np.testing.assert_array_equal(constant, z)


@pytest.mark.parametrize(("size", "rows"), [("3", 3), ("T", 0)])
def test_rows_of_no_iteration_have_the_sizes_that_the_model_states(size, rows):
    """Those that it leaves open are 0, in blocks as in one run."""
    model = f"""<ir_version: 10, opset_import: ["" : 18]>
        g (float[{size}] x, int64 n) => (float[r, s] y) {{
          v = Loop(n, ) <body = f (int64 i, bool c) => (bool d, float[{size}] e) {{ d = Identity(c) e = Identity(x) }}>
          a = Constant<value_ints = [0]>() y = ReduceSum(v, a)
        }}"""
    session = treadle.InferenceSession(model.encode())
    x, n = np.ones(3, np.float32), np.array(0)
    [whole] = session.run(None, {"x": x, "n": n})
    assert whole.shape == (1, rows)
    stream = session.stream(time={"x": 0}, bind={"n": n}, find_state=False)
    blocks = [stream.push({"x": x[i : i + 1]}) for i in range(3)]
    np.testing.assert_array_equal(np.concatenate(blocks, axis=1), whole)
