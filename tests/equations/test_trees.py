"""Tree ensembles of every version against a walk through nested Python objects."""

import os

import numpy as np
import pytest
import trees
from one_node import close, run
from onnx import helper, numpy_helper

DOMAIN = "ai.onnx.ml"
DRAWS = 300 if os.environ.get("TREADLE_TEST_LONG") else 40
POSTS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]
AGGREGATES = ["AVERAGE", "SUM", "MIN", "MAX"]


def draw(seed, modes, weights, negative=True):
    rng = np.random.default_rng(seed)
    features, targets = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    forest = [
        trees.draw_tree(rng, int(rng.integers(0, 8)), features, targets, modes, weights, negative)
        for _ in range(int(rng.integers(1, 12)))
    ]
    x = trees.draw_rows(rng, int(rng.choice([0, 1, 2, 5, 8, 13, 64, 65, 130])), features)
    return rng, forest, x, targets


def tensor_of(dtype):
    return lambda values: numpy_helper.from_array(np.asarray(values, dtype))


@pytest.mark.parametrize("seed", range(DRAWS))
def test_regressor(seed):
    rng, forest, x, targets = draw(seed, trees.MODES[:6], None)
    dtype = [np.float32, np.float64, np.int32, np.int64][seed % 4]
    if np.issubdtype(dtype, np.integer):
        x = np.nan_to_num(np.trunc(x))
    aggregate, post = AGGREGATES[int(rng.integers(4))], POSTS[int(rng.integers(4))]
    base = [0.5 * t for t in range(targets)] if rng.random() < 0.5 else None
    version = int(rng.choice([1, 3]))
    tensors = tensor_of(np.float64) if version == 3 and rng.random() < 0.5 else None
    attributes = trees.as_old(forest, "target", tensors)
    attributes |= {"n_targets": targets, "aggregate_function": aggregate, "post_transform": post}
    if base:
        attributes["base_values"] = base
    (y,) = run("TreeEnsembleRegressor", version, [x.astype(dtype)], [np.float32], attributes, DOMAIN)
    expected = trees.transform(post, trees.scores(forest, x, targets, aggregate, base)) if len(x) else y
    close(y, expected, units=16)


@pytest.mark.parametrize("seed", range(DRAWS))
def test_classifier(seed):
    rng, forest, x, _ = draw(seed, trees.MODES[:6], None)
    classes = int(rng.integers(3, 6))
    for tree in forest:
        spread(tree, rng, classes)
    post = POSTS[int(rng.integers(4))]
    strings = seed % 2 == 1
    labels = [f"c{i}" for i in range(classes)] if strings else [7 * i - 3 for i in range(classes)]
    attributes = trees.as_old(forest, "class") | {"post_transform": post}
    attributes["classlabels_strings" if strings else "classlabels_int64s"] = labels
    types = [object if strings else np.int64, np.float32]
    y, z = run("TreeEnsembleClassifier", int(rng.choice([1, 3])), [x.astype(np.float32)], types, attributes, DOMAIN)
    if not len(x):
        return
    expected = trees.scores(forest, x, classes)
    assert y.tolist() == [labels[i] for i in np.argmax(expected, axis=1)]
    close(z, trees.transform(post, expected), units=16)


def spread(tree, rng, targets):
    if isinstance(tree, trees.Leaf):
        tree.weights = [(int(rng.integers(targets)), v) for _, v in tree.weights]
    else:
        spread(tree.true, rng, targets)
        spread(tree.false, rng, targets)


@pytest.mark.parametrize("seed", range(DRAWS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_tree_ensemble(seed, dtype):
    rng, forest, x, targets = draw(seed, trees.MODES, 1)
    aggregate, post = int(rng.integers(4)), int(rng.integers(4))
    attributes = trees.as_new(forest, tensor_of(dtype))
    attributes |= {"n_targets": targets, "aggregate_function": aggregate, "post_transform": post}
    attributes["nodes_modes"] = numpy_helper.from_array(np.array(attributes["nodes_modes"], np.uint8))
    (y,) = run("TreeEnsemble", 5, [x.astype(dtype)], [dtype], attributes, DOMAIN)
    assert y.dtype == dtype
    assert y.shape == (len(x), targets)
    if len(x):
        expected = trees.scores(forest, x, targets, AGGREGATES[aggregate])
        close(y, trees.transform(POSTS[post], expected), units=16)


def test_probit():
    split = trees.Split(
        "BRANCH_LEQ", 0, 0.0, [], False, trees.Leaf([(0, 0.25), (1, 0.9)]), trees.Leaf([(0, 0.5), (1, 0.01)])
    )
    attributes = trees.as_old([split], "target") | {"n_targets": 2, "post_transform": "PROBIT"}
    x = np.array([[0.0], [1.0]], np.float32)
    (y,) = run("TreeEnsembleRegressor", 1, [x], [np.float32], attributes, DOMAIN)
    # Engines agree on an approximation of the inverse error function that is good to three digits.
    np.testing.assert_allclose(y, trees.transform("PROBIT", trees.scores([split], x, 2)), atol=5e-3)


def test_infinite_thresholds_and_features():
    values = [-np.inf, np.inf, 0.0, 3.0]
    x = np.array([[-np.inf], [np.inf], [0.0], [-0.0], [np.nan], [np.finfo(np.float32).max]])
    for mode in trees.MODES[:6]:
        for value in values:
            for missing in (False, True):
                split = trees.Split(mode, 0, value, [], missing, trees.Leaf([(0, 1.0)]), trees.Leaf([(0, 2.0)]))
                attributes = trees.as_old([split], "target") | {"n_targets": 1}
                for dtype in (np.float32, np.float64):
                    (y,) = run("TreeEnsembleRegressor", 1, [x.astype(dtype)], [np.float32], attributes, DOMAIN)
                    np.testing.assert_array_equal(y, trees.scores([split], x.astype(dtype), 1), f"{mode} {value}")


def test_double_thresholds_split_doubles():
    value = 0.1  # no float
    split = trees.Split("BRANCH_LT", 0, value, [], False, trees.Leaf([(0, 1.0)]), trees.Leaf([(0, 2.0)]))
    attributes = trees.as_old([split], "target", tensor_of(np.float64)) | {"n_targets": 1}
    x = np.array([[np.nextafter(value, 0)], [value], [np.nextafter(value, 1)], [np.float32(value)]])
    (y,) = run("TreeEnsembleRegressor", 3, [x], [np.float32], attributes, DOMAIN)
    assert y.ravel().tolist() == [1, 2, 2, 2]
    (y,) = run("TreeEnsembleRegressor", 3, [x.astype(np.float32)], [np.float32], attributes, DOMAIN)
    np.testing.assert_array_equal(y, trees.scores([split], x.astype(np.float32), 1))


def test_rows_beyond_a_set_lead_on():
    """Branches of a set that are comparisons themselves: reached from several intervals, written once."""
    leaf = [trees.Leaf([(0, float(i))]) for i in range(4)]
    inner = [trees.Split("BRANCH_LEQ", 0, v, [], False, a, b) for v, a, b in ((0.0, *leaf[:2]), (1.0, *leaf[2:]))]
    root = trees.Split("BRANCH_MEMBER", 0, 0.0, [-2.0, -1.0, 0.0, 2.0, 3.0], True, *inner)
    attributes = trees.as_new([root], tensor_of(np.float32)) | {"n_targets": 1}
    attributes["nodes_modes"] = helper.make_tensor("m", 2, [3], attributes["nodes_modes"])
    x = np.array([[v] for v in (-3, -2, -1.5, -1, 0, 0.5, 1, 2, 2.5, 3, 4, np.nan)], np.float32)
    (y,) = run("TreeEnsemble", 5, [x], [np.float32], attributes, DOMAIN)
    np.testing.assert_array_equal(y, trees.scores([root], x, 1))
