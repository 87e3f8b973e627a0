"""Gradient against differences: each case is a graph in ONNX's text, evaluated beside each of its arguments' elements."""

import numpy as np
import pytest
from one_node import treadle
from onnx import helper, parser

TRAINING = "ai.onnx.preview.training"
STEP = 1e-6
# name: (arguments with their sizes, body that makes y, sizes of y)
CASES = {
    "Add, Sub, Mul, Div": ("a[3, 4] b[4] c[3, 1]", "p = Mul(a, b) q = Sub(p, c) r = Div(q, b) y = Add(r, a)", "3, 4"),
    "scalars": ("a[] b[2, 3]", "p = Mul(a, b) y = Add(p, a)", "2, 3"),
    "used more than once": ("a[4]", "p = Mul(a, a) q = Mul(p, a) y = Add(q, p)", "4"),
    "Pow": ("a[3] b[3]", "y = Pow(a, b)", "3"),
    "Max, Min": ("a[5] b[5]", "p = Max(a, b) q = Min(p, a) y = Mul(q, b)", "5"),
    "Sum, Mean": ("a[2, 3] b[3] c[2, 1]", "p = Sum(a, b, c) q = Mean(a, p) y = Mul(p, q)", "2, 3"),
    "Where": ("a[6] b[6]", "c = Greater(a, b) y = Where(c, a, b)", "6"),
    "functions": (
        "a[5]",
        "p = Exp(a) q = Log(p) r = Sqrt(p) s = Reciprocal(r) t = Sin(s) u = Cos(q) v = Tan(t) w = Tanh(u) y = Add(v, w)",
        "5",
    ),
    "more functions": (
        "a[5]", "p = Sigmoid(a) q = Softplus(p) r = Erf(q) s = Neg(r) t = Abs(s) u = Identity(t) y = Mul(u, a)", "5",
    ),
    "Relu, LeakyRelu, Clip": (
        "a[2, 6]", "p = Relu(a) q = LeakyRelu<alpha = 0.2>(a) l = Constant<value = double {0.9}>() "
        "h = Constant<value = double {1.7}>() r = Clip(a, l, h) s = Add(p, q) y = Mul(r, s)", "2, 6",
    ),
    "softmax": ("a[3, 4]", "p = Softmax<axis = 0>(a) q = LogSoftmax(a) y = Mul(p, q)", "3, 4"),
    "reductions": (
        "a[3, 4]", "k = Constant<value_ints = [1]>() p = ReduceSum<keepdims = 0>(a, k) q = ReduceMean<axes = [0]>(a) "
        "r = ReduceMean<keepdims = 0>(a) m = ReduceSum(a) s = Mul(p, r) t = Add(q, m) u = Unsqueeze(s, k) y = Mul(u, t)",
        "3, 4",
    ),
    "MatMul": ("a[2, 3, 4] b[4, 5]", "y = MatMul(a, b)", "2, 3, 5"),
    "MatMul of stacks": ("a[2, 1, 3, 4] b[5, 4, 2]", "y = MatMul(a, b)", "2, 5, 3, 2"),
    **{
        f"Gemm, {ta}{tb}": (
            f"a[{'4, 3' if ta else '3, 4'}] b[{'5, 4' if tb else '4, 5'}] c[5]",
            f"y = Gemm<alpha = 0.5, beta = 2.0, transA = {ta}, transB = {tb}>(a, b, c)", "3, 5",
        )
        for ta in (0, 1)
        for tb in (0, 1)
    },
    "places": (
        "a[2, 3, 4]", "s = Constant<value_ints = [6, 4]>() p = Reshape(a, s) q = Transpose(p) k = Constant<value_ints = [0]>() "
        "r = Unsqueeze(q, k) t = Transpose<perm = [2, 0, 1]>(r) u = Squeeze(t) v = Flatten(u) y = Mul(v, v)", "6, 4",
    ),
    "Expand, Concat": (
        "a[1, 3] b[2, 3]", "s = Constant<value_ints = [4, 3]>() p = Expand(a, s) q = Concat<axis = 0>(p, b, a) y = Mul(q, q)",
        "7, 3",
    ),
    "Gather": ("a[4, 2]", "i = Constant<value_ints = [1, 3, 1, 0]>() p = Gather(a, i) y = Mul(p, p)", "4, 2"),
    "a layer": ("x[4, 3] w[3, 5] b[5] v[5, 1]", "p = MatMul(x, w) q = Add(p, b) r = Tanh(q) y = MatMul(r, v)", "4, 1"),
}  # fmt: skip


def parsed(arguments: str, body: str, result: str):
    inputs = ", ".join("double" + (a if not a.endswith("[]") else a[:-2]).replace(a[0], "", 1) + " " + a[0]
                       for a in arguments.replace("] ", "];").split(";"))  # fmt: skip
    text = (
        f'<ir_version: 8, opset_import: ["" : 17, "{TRAINING}" : 1]> g ({inputs}) => (double[{result}] y) {{ {body} }}'
    )
    return parser.parse_model(text)


def with_gradient(model, zs: int = 0):
    """The model's derivatives by all inputs but the last `zs`."""
    names = [v.name for v in model.graph.input]
    xs = names[: len(names) - zs]
    held = {"zs": names[len(xs) :]} if zs else {}
    made = [f"d{n}" for n in xs]
    model.graph.node.append(helper.make_node("Gradient", names, made, domain=TRAINING, xs=xs, y="y", **held))
    for v in model.graph.input[: len(xs)]:
        model.graph.output.add().CopyFrom(v)
        model.graph.output[-1].name = f"d{v.name}"
    return model.SerializeToString()


def drawn(model) -> dict:
    random = np.random.default_rng(1)
    sizes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input}
    return {name: np.asarray(random.uniform(0.5, 2, size)) for name, size in sizes.items()}


def by_differences(model: bytes, feeds: dict) -> dict:
    session = treadle.InferenceSession(model)

    def total(name: str, i: int, step: float) -> float:
        moved = feeds[name].copy()
        moved.reshape(-1)[i] += step
        return session.run(["y"], feeds | {name: moved})[0].sum()

    return {
        name: np.array([total(name, i, STEP) - total(name, i, -STEP) for i in range(x.size)]).reshape(x.shape) / (2 * STEP)
        for name, x in feeds.items()
    }  # fmt: skip


@pytest.mark.parametrize("tier", [{"tier": "reference"}, {"jit": "off"}], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_derivatives_are_those_of_differences(case, tier):
    model = parsed(*CASES[case])
    feeds = drawn(model)
    expected = by_differences(model.SerializeToString(), feeds)
    options = treadle.SessionOptions()
    for key, value in tier.items():
        options.add_session_config_entry(f"treadle.{key}", value)
    session = treadle.InferenceSession(with_gradient(model), options)
    y, *made = session.run(None, feeds)
    for (name, wanted), derivative in zip(expected.items(), made, strict=True):
        np.testing.assert_allclose(derivative, wanted, rtol=1e-5, atol=1e-7, err_msg=name)


def test_arguments_of_zs_are_held():
    model = parsed("a[3] b[3]", "y = Mul(a, b)", "3")
    feeds = drawn(model)
    y, da = treadle.InferenceSession(with_gradient(model, 1)).run(None, feeds)
    np.testing.assert_array_equal(da, feeds["b"])


def test_the_function_is_differentiated_where_the_inputs_say():
    """xs name the function's arguments; the inputs say at which point."""
    model = parsed("a[3] b[3]", "p = Exp(b) y = Mul(a, a)", "3")
    model.graph.node.append(helper.make_node("Gradient", ["p"], ["d"], domain=TRAINING, xs=["a"], y="y"))
    model.graph.output.add().CopyFrom(model.graph.output[0])
    model.graph.output[-1].name = "d"
    feeds = drawn(model)
    np.testing.assert_allclose(
        treadle.InferenceSession(model.SerializeToString()).run(["d"], feeds)[0], 2 * np.exp(feeds["b"]), rtol=1e-15
    )


def test_an_argument_that_y_does_not_depend_on_has_zeros():
    model = parsed("a[3] b[2]", "y = Mul(a, a)", "3")
    np.testing.assert_array_equal(treadle.InferenceSession(with_gradient(model)).run(["db"], drawn(model))[0], [0, 0])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("y = Asinh(a)", "Gradient does not differentiate operator Asinh"),
        ("v = Constant<value_ints = [3]>() p = MatMul(a, a) y = Expand(p, v)", "of a vector"),
    ],
)
def test_what_is_not_differentiated_is_named(body, message):
    with pytest.raises(treadle.NotImplemented, match=message):
        treadle.InferenceSession(with_gradient(parsed("a[3]", body, "3"))).run(None, {"a": np.ones(3)})


def test_a_graph_that_needs_its_own_derivative_is_refused():
    model = parsed("a[3]", "y = Mul(a, d)", "3")
    model.graph.node.insert(0, helper.make_node("Gradient", ["a"], ["d"], domain=TRAINING, xs=["a"], y="y"))
    with pytest.raises(treadle.InvalidGraph, match="is made of Gradient's own results"):
        treadle.InferenceSession(model.SerializeToString())


def test_names_that_are_no_values_are_refused():
    model = parsed("a[3]", "y = Mul(a, a)", "3")
    model.graph.node.append(helper.make_node("Gradient", ["a"], ["d"], domain=TRAINING, xs=["a"], y="nothing"))
    model.graph.output.add().CopyFrom(model.graph.output[0])
    model.graph.output[-1].name = "d"
    with pytest.raises(treadle.InvalidGraph, match='"nothing", which Gradient names, is no value of the graph'):
        treadle.InferenceSession(model.SerializeToString())
