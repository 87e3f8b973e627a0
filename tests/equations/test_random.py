"""The random operators: the distributions of their results, seeds, types."""

import numpy as np
import pytest
from one_node import run, schemas, treadle, types_of
from onnx import TensorProto, helper

MANY = 100_000


def element(dtype):
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def cases(op, parameter="T"):
    return [(s.since_version, t) for s in schemas(op) for t in types_of(s, parameter)]


def uniformity(x):
    """Kolmogorov's distance of x from the uniform distribution on [0, 1), times the root of the count."""
    x = np.sort(x)
    n = len(x)
    return np.sqrt(n) * max(np.max(np.arange(1, n + 1) / n - x), np.max(x - np.arange(n) / n))


def made(op, version, dtype, shape, **attributes):
    """By the operator that takes a shape, or by its Like form."""
    options = {"dtype": element(dtype)} | attributes
    if op.endswith("Like"):
        return run(op, version, [np.zeros(shape, np.int32)], [dtype], options)[0]
    return run(op, version, [], [dtype], options | {"shape": shape})[0]


@pytest.mark.parametrize("version, dtype", cases("RandomUniform"), ids=str)
@pytest.mark.parametrize("op", ["RandomUniform", "RandomUniformLike"])
def test_uniform(op, version, dtype):
    y = made(op, version, dtype, (MANY,), low=2.0, high=6.0)
    assert y.dtype == dtype and y.shape == (MANY,)
    y = y.astype(np.float64)
    assert y.min() >= 2 and y.max() <= 6
    assert abs(y.mean() - 4) < 0.03 and abs(y.std() - 4 / np.sqrt(12)) < 0.02
    if np.dtype(dtype).itemsize >= 4:
        assert uniformity((y - 2) / 4) < 2.2  # one in ten thousand
        halves = y.reshape(-1, 2)
        assert abs(np.corrcoef(halves[:, 0], halves[:, 1])[0, 1]) < 0.02


@pytest.mark.parametrize("dtype", types_of(schemas("RandomUniform")[-1]), ids=str)
@pytest.mark.parametrize("low, high", [(1, 2), (0, 1), (-2, -1), (-1, 0), (0, 1e-6), (-1e-7, 1e-7), (3, 3.1)])
def test_uniform_numbers_stay_below_high(dtype, low, high):
    y = made("RandomUniform", 22, dtype, (MANY,), low=float(low), high=float(high), seed=2.0).astype(np.float64)
    high = float(np.float32(high))
    rounded = float(np.array(low, np.float32).astype(dtype))  # the type's own nearest to `low`
    assert y.min() >= min(rounded, low) and y.max() < high


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("low, high", [(-3e38, 3e38), (0, 1e-42), (-2e-38, 1e-38)])
def test_uniform_ranges_wider_and_narrower_than_a_float(dtype, low, high):
    y = made("RandomUniform", 22, dtype, (MANY,), low=float(low), high=float(high), seed=2.0).astype(np.float64)
    assert y.min() >= low and y.max() < float(np.float32(high))
    assert abs((y.mean() - low) / (high - low) - 0.5) < 0.01
    assert abs(y.std() / (high - low) - 1 / np.sqrt(12)) < 0.01


@pytest.mark.parametrize("version, dtype", cases("RandomNormal"), ids=str)
@pytest.mark.parametrize("op", ["RandomNormal", "RandomNormalLike"])
def test_normal(op, version, dtype):
    y = made(op, version, dtype, (MANY,), mean=-1.0, scale=3.0).astype(np.float64)
    z = (y + 1) / 3
    assert abs(z.mean()) < 0.02 and abs(z.std() - 1) < 0.02
    assert abs((z**3).mean()) < 0.06 and abs((z**4).mean() - 3) < 0.2
    assert abs(np.mean(np.abs(z) < 1) - 0.6827) < 0.01
    halves = z.reshape(-1, 2)
    assert abs(np.corrcoef(halves[:, 0], halves[:, 1])[0, 1]) < 0.02


@pytest.mark.parametrize("op", ["RandomUniform", "RandomNormal", "RandomUniformLike", "RandomNormalLike"])
def test_seeds(op):
    first, again, other = (made(op, 22, np.float32, (3, 5), seed=seed) for seed in (7.0, 7.0, 8.0))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    free = [made(op, 22, np.float32, (64,)) for _ in range(3)]
    assert not np.array_equal(free[0], free[1]) and not np.array_equal(free[1], free[2])


def test_a_prefix_does_not_depend_on_the_count():
    short, long = (made("RandomNormal", 22, np.float32, (n,), seed=1.0) for n in (5, 2000))
    np.testing.assert_array_equal(short, long[:5])


@pytest.mark.parametrize("op, version", [(op, v) for op in ("RandomNormalLike", "RandomUniformLike") for v in (1, 22)])
def test_like_takes_shapes_of_every_type(op, version):
    schema = next(s for s in schemas(op) if s.since_version == version)
    types = next(c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == "T1")
    for text in types:
        name = text[len("tensor(") : -1]
        kind = getattr(TensorProto, name.upper())
        graph = helper.make_graph(
            [helper.make_node(op, ["x"], ["y"], dtype=TensorProto.DOUBLE)],
            "like",
            [helper.make_tensor_value_info("x", kind, [2, 3])],
            [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [2, 3])],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
        x = np.full((2, 3), "", object) if name == "string" else np.zeros((2, 3), helper.tensor_dtype_to_np_dtype(kind))
        (y,) = treadle.InferenceSession(model.SerializeToString()).run(None, {"x": x})
        assert y.shape == (2, 3) and y.std() > 0, text


def test_two_nodes_without_a_seed_differ():
    nodes = [helper.make_node("RandomNormal", [], [n], shape=[8]) for n in ("a", "b")]
    outputs = [helper.make_tensor_value_info(n, 1, [8]) for n in ("a", "b")]
    model = helper.make_model(helper.make_graph(nodes, "two", [], outputs), opset_imports=[helper.make_opsetid("", 22)])
    session = treadle.InferenceSession(model.SerializeToString())
    a, b = session.run(None, {})
    again, _ = session.run(None, {})
    assert not np.array_equal(a, b) and not np.array_equal(a, again)


@pytest.mark.parametrize("version, dtype", cases("Bernoulli", "T1"), ids=str)
@pytest.mark.parametrize("result", types_of(schemas("Bernoulli")[-1], "T2"), ids=str)
def test_bernoulli(version, dtype, result):
    p = np.tile(np.array([0, 0.25, 0.5, 1], dtype), 20_000)
    (y,) = run("Bernoulli", version, [p], [result], {"dtype": element(result)})
    rates = y.astype(np.float64).reshape(-1, 4)
    assert set(np.unique(rates)) == {0, 1}
    np.testing.assert_allclose(rates.mean(0), [0, 0.25, 0.5, 1], atol=0.02)  # of 20,000 draws: over five deviations
    assert rates[:, 0].max() == 0 and rates[:, 3].min() == 1


def test_bernoulli_keeps_the_type_and_the_seed():
    p = np.full(100, 0.5, np.float16)
    first, again = (run("Bernoulli", 22, [p], [np.float16], {"seed": 3.0})[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("version, dtype", cases("Multinomial", "T1"), ids=str)
@pytest.mark.parametrize("result", [np.int32, np.int64])
def test_multinomial(version, dtype, result):
    weights = np.array([[1, 2, 1, 0], [0, 0, 3, 1]], np.float64)
    with np.errstate(divide="ignore"):
        x = (np.log(weights) + 5).astype(dtype)  # not normalised
    (y,) = run("Multinomial", version, [x], [result], {"sample_size": 20_000, "dtype": element(result)})
    assert y.shape == (2, 20_000) and y.dtype == result
    counts = np.stack([np.bincount(row, minlength=4) for row in y]) / 20_000
    np.testing.assert_allclose(counts, weights / weights.sum(1, keepdims=True), atol=0.02)  # over five deviations
    assert counts[0, 3] == counts[1, 0] == counts[1, 1] == 0


def test_multinomial_refuses_rows_without_classes():
    with pytest.raises(treadle.RuntimeException):
        run("Multinomial", 22, [np.full((1, 2), -np.inf, np.float32)], [np.int32])


def test_loops_draw_anew():
    """A random node in a body runs in every iteration, although its inputs do not change."""
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("RandomUniform", [], ["u"], shape=[4]), helper.make_node("Identity", ["c"], ["d"])]
    body = helper.make_graph(nodes, "body", [info("i", 7, []), info("c", 9, [])], [info("d", 9, []), info("u", 1, [4])])
    graph = helper.make_graph(
        [helper.make_node("Loop", ["m", ""], ["us"], body=body)], "g", [info("m", 7, [])], [info("us", 1, None)]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])
    (us,) = treadle.InferenceSession(model.SerializeToString()).run(None, {"m": np.int64(50)})
    assert us.shape == (50, 4) and len(np.unique(us, axis=0)) == 50


def dropout(version, dtype, x, ratio):
    """Output and mask of Dropout in training, in versions that ask for training by an attribute or by an input."""
    if version < 12:
        return run("Dropout", version, [x], [dtype, dtype], {"is_test": 0, "ratio": ratio})
    inputs = [x, np.array(ratio, np.float32), np.array(True)]
    return run("Dropout", version, inputs, [dtype, np.bool_], {"seed": 5})


@pytest.mark.parametrize("version, dtype", [c for c in cases("Dropout") if c[0] in (1, 6, 12, 13, 22)], ids=str)
def test_dropout_in_training(version, dtype):
    x = np.tile(np.array([1, -2, 0.5, np.nan], dtype), MANY // 4 + 1)[:-3]  # of uneven size
    y, mask = dropout(version, dtype, x, 0.75)
    kept = mask.astype(bool)
    assert mask.shape == x.shape and set(np.unique(mask.astype(np.float32))) == {0, 1}
    assert abs(kept.mean() - 0.25) < 0.01  # over five deviations
    expected = np.where(kept, x.astype(np.float64) * 4, 0).astype(dtype)
    np.testing.assert_array_equal(y.astype(np.float64), expected.astype(np.float64))
    neighbours = kept[: len(kept) // 2 * 2].reshape(-1, 2)
    assert abs(np.corrcoef(neighbours[:, 0], neighbours[:, 1])[0, 1]) < 0.025


@pytest.mark.parametrize("version", [12, 22])
def test_dropout_without_training_keeps_everything(version):
    x = np.arange(1003, dtype=np.float32)
    y, mask = run("Dropout", version, [x, np.array(0.5, np.float32), np.array(False)], [np.float32, np.bool_])
    np.testing.assert_array_equal(y, x)
    assert mask.all()
