"""Random models of ai.onnx.ml over all attributes, beside onnxruntime and onnx.reference.

Each draw has an answer in plain numpy, written from the specification, which treadle gives always. The judges give it too,
but where `departures` of a draw names a reason: there they contradict each other or the specification.
"""

import contextlib
import os

import numpy as np
import onnx
import pytest
import trees
from one_node import PROTO, close
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

treadle = pytest.importorskip("treadle", reason="the Python package is not built")
onnxruntime = pytest.importorskip("onnxruntime")

DRAWS = 300 if os.environ.get("TREADLE_TEST_LONG") else 60
POSTS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
DTYPES = [np.float32, np.float64, np.int64, np.int32]
ONNXRUNTIME, REFERENCE = "onnxruntime", "onnx.reference"


def make_model(op, version, x, outputs, attributes):
    node = helper.make_node(op, ["x"], [f"y{i}" for i in range(outputs)], domain="ai.onnx.ml", **attributes)
    inputs = [helper.make_tensor_value_info("x", PROTO[x.dtype], x.shape)]
    results = [onnx.ValueInfoProto(name=name) for name in node.output]
    imports = [helper.make_opsetid("ai.onnx.ml", version), helper.make_opsetid("", 18)]
    return helper.make_model(helper.make_graph([node], "g", inputs, results), opset_imports=imports, ir_version=8)


def run_onnxruntime(model, x):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})


def run_reference(model, x):
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model).run(None, {"x": x})


def run_treadle(model, x):
    return treadle.InferenceSession(model.SerializeToString()).run(None, {"x": x})


def agree(found, expected, exactly):
    for a, b in zip(found, expected, strict=True):
        a = np.asarray(a)
        if b.dtype.kind in "OUi":
            assert a.tolist() == b.tolist()
        elif exactly:
            close(a, b, units=64)
        else:
            # The judges sum scores in float, and so do all of us before PROBIT, which is steep near 0 and 1: half of this is seen.
            np.testing.assert_allclose(a.astype(np.float64).reshape(b.shape), b, rtol=5e-4, atol=5e-5)


@contextlib.contextmanager
def judged_by(judge):
    try:
        yield
    except Exception as problem:
        problem.add_note(f"by {judge}")
        raise


def compare(op, version, x, attributes, expected, departures):
    """`departures`: by judge, the reason why it gives another result."""
    model = make_model(op, version, x, len(expected), attributes)
    agree(run_treadle(model, x), expected, exactly=attributes.get("post_transform") not in ("PROBIT", 4))
    for judge, run in ((ONNXRUNTIME, run_onnxruntime), (REFERENCE, run_reference)):
        if not departures.get(judge):
            with judged_by(judge):
                agree(run(model, x), expected, exactly=False)  # they compute in float


def probit(rows):
    """The approximation that engines agree on, of which the specification does not speak."""
    with np.errstate(all="ignore"):
        y = 2 * rows - 1
        log = np.log((1 - y) * (1 + y))
        a = 2 / (3.14159 * 0.147) + 0.5 * log
        return np.sqrt(2) * np.copysign(np.sqrt(np.sqrt(a * a - log / 0.147) - a), y)


def transform(post, rows):
    return probit(rows) if post == "PROBIT" else trees.transform(post, rows)


def labels_of(rng, classes, name):
    """The attribute, and labels by class."""
    if rng.random() < 0.5:
        strings = [f"c{i}" for i in range(classes)]
        return {"classlabels_strings": strings}, np.array(strings, object)
    numbers = [7 * i - 3 for i in range(classes)]
    return {name: numbers}, np.array(numbers, np.int64)


def spread(score, probability):
    """One score of two classes as two: the second is the computed one."""
    return np.concatenate([1 - score if probability else -score, score], axis=1)


def reason(*cases):
    return next((why for holds, why in cases if holds), "")


# Trees ---------------------------------------------------------------------------------------------------------------


def draw_forest(rng, classes, one_id, modes=trees.MODES[:6]):
    features = int(rng.integers(1, 4))
    negative = bool(rng.random() < 0.5)
    forest = [trees.draw_tree(rng, int(rng.integers(0, 4)), features, classes, modes, 1, negative)
              for _ in range(int(rng.integers(1, 5)))]  # fmt: skip

    def rename(tree):
        if isinstance(tree, trees.Leaf):
            tree.weights = [(0 if one_id else c, v) for c, v in tree.weights]
        else:
            rename(tree.true)
            rename(tree.false)

    for tree in forest:
        rename(tree)
    x = trees.draw_rows(rng, int(rng.choice([1, 2, 7, 40])), features).astype(np.float32)
    return forest, x


def splits(tree):
    if isinstance(tree, trees.Split):
        yield tree
        yield from splits(tree.true)
        yield from splits(tree.false)


def takes_nan_for_unequal(forest, x):
    """Where NaN is tracked false, the specification sends it to the false branch of any comparison."""
    unequal = any(s.mode == "BRANCH_NEQ" and not s.missing_is_true for tree in forest for s in splits(tree))
    return unequal and bool(np.isnan(x).any()), "takes BRANCH_NEQ for true where a NaN is tracked false"


def leaves(tree):
    if isinstance(tree, trees.Leaf):
        yield from tree.weights
    else:
        yield from leaves(tree.true)
        yield from leaves(tree.false)


def has_zero_rows(post, rows):
    return post == "SOFTMAX_ZERO" and bool((np.abs(rows) <= 1e-7).all(axis=1).any()), "divides zero by zero"


def all_reached(forest, x, targets):
    """Whether some tree votes for each of the targets, in every row."""
    return all(any(c == t for tree in forest for c, _ in trees.leaf_of(tree, row).weights)
               for row in x for t in range(targets))  # fmt: skip


def base_values(rng, count):
    return {"base_values": [float(v) / 4 for v in rng.integers(-2, 3, count)]} if rng.random() < 0.3 else {}


@pytest.mark.parametrize("seed", range(DRAWS))
def test_tree_classifier(seed):
    rng = np.random.default_rng(seed)
    classes, post = int(rng.choice([2, 2, 3, 4])), POSTS[seed % 5]
    forest, x = draw_forest(rng, classes, one_id=bool(rng.random() < 0.5))
    base = base_values(rng, classes)
    named, labels = labels_of(rng, classes, "classlabels_int64s")
    attributes = trees.as_old(forest, "class") | {"post_transform": post} | named | base
    votes = [w for tree in forest for w in leaves(tree)]
    ids, probable = {c for c, _ in votes}, all(v >= 0 for _, v in votes)
    one_score = classes == 2 and ids == {0}
    rows = trees.scores(forest, x, classes, base=base.get("base_values"))
    if one_score:
        rows = spread(rows[:, :1], post == "PROBIT" or (post == "NONE" and probable))
    departures = {
        ONNXRUNTIME: reason(
            takes_nan_for_unequal(forest, x),
            (one_score and post not in ("NONE", "LOGISTIC"), "leaves the transform or a score out"),
            (one_score and post == "LOGISTIC" and probable, "compares the untransformed score with 0.5"),
            (classes == 2 and base, "adds base_values of two classes to one of them"),
            (classes == 2 and not one_score, "takes the second class's score for the only one"),
            (not all_reached(forest, x, classes), "has classes that no tree votes for behind all others"),
            has_zero_rows(post, rows),
        ),
        REFERENCE: reason(
            (one_score and post == "NONE" and not probable, "has 1 - s where onnxruntime has -s; the text is silent"),
            (post == "PROBIT", "has 0 where probabilities are 0 or 1, and chooses the label by what is NaN"),
            (post == "SOFTMAX_ZERO", "counts zeros when it divides"),
            (len(ids) == 1 and not one_score, "takes any only class id for the only score"),
        ),
    }
    top = labels[np.argmax(rows, axis=1)]
    version = int(rng.choice([1, 3]))
    compare("TreeEnsembleClassifier", version, x, attributes, [top, transform(post, rows)], departures)


@pytest.mark.parametrize("labels", [["a", "b"], [4, -2]])
def test_one_score_of_two_classes(labels):
    """The results of onnxruntime and onnx.reference for sums of 0 and 0.605."""
    split = trees.Split("BRANCH_LEQ", 0, 0.0, [], False, trees.Leaf([(0, 0.0)]), trees.Leaf([(0, 0.605)]))
    named = {"classlabels_strings" if isinstance(labels[0], str) else "classlabels_int64s": labels}
    attributes = trees.as_old([split], "class") | {"post_transform": "LOGISTIC"} | named
    x = np.array([[0.0], [1.0]], np.float32)
    expected = [np.array(labels, object), np.array([[0.5, 0.5], [0.35319, 0.64681]])]
    model = make_model("TreeEnsembleClassifier", 1, x, 2, attributes)
    for run in (run_onnxruntime, run_reference, run_treadle):
        agree(run(model, x), expected, exactly=False)


@pytest.mark.parametrize("seed", range(DRAWS))
def test_tree_regressor(seed):
    rng = np.random.default_rng(seed)
    targets, post, aggregate = int(rng.integers(1, 4)), POSTS[seed % 5], ["SUM", "AVERAGE", "MIN", "MAX"][seed % 4]
    forest, x = draw_forest(rng, targets, one_id=False)
    base = base_values(rng, targets)
    attributes = trees.as_old(forest, "target") | base
    attributes |= {"n_targets": targets, "aggregate_function": aggregate, "post_transform": post}
    rows = trees.scores(forest, x, targets, aggregate, base.get("base_values"))
    departures = {
        ONNXRUNTIME: reason(
            takes_nan_for_unequal(forest, x),
            (base and not all_reached(forest, x, targets), "adds base_values only where some tree votes for a target"),
            (targets == 1 and post not in ("NONE", "PROBIT"), "leaves the transform of a single target out"),
            has_zero_rows(post, rows),
        ),
        REFERENCE: reason(
            (post != "NONE", "knows no transforms"),
            (aggregate in ("MIN", "MAX"), "has the largest float where no tree votes for a target"),
        ),
    }
    version = int(rng.choice([1, 3]))
    compare("TreeEnsembleRegressor", version, x, attributes, [transform(post, rows)], departures)


@pytest.mark.parametrize("seed", range(DRAWS))
def test_tree_ensemble(seed):
    rng = np.random.default_rng(seed)
    dtype = [np.float32, np.float64][seed % 2]
    targets, post, aggregate = int(rng.integers(1, 4)), int(rng.integers(5)), int(rng.integers(4))
    forest, x = draw_forest(rng, targets, one_id=False, modes=trees.MODES)
    attributes = trees.as_new(forest, lambda values: numpy_helper.from_array(np.array(values, dtype)))
    attributes["nodes_modes"] = numpy_helper.from_array(np.array(attributes["nodes_modes"], np.uint8))
    attributes |= {"n_targets": targets, "aggregate_function": aggregate, "post_transform": post}
    name = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"][post]
    rows = trees.scores(forest, x, targets, ["AVERAGE", "SUM", "MIN", "MAX"][aggregate])
    is_member = any(s.mode == "BRANCH_MEMBER" for tree in forest for s in splits(tree))
    departures = {
        ONNXRUNTIME: reason(
            takes_nan_for_unequal(forest, x),
            (name in ("SOFTMAX", "LOGISTIC"), "has the numbers of the two the other way round"),
            (is_member and np.any(x != np.trunc(x)), "looks for the whole part of a number in small sets"),
            (targets == 1 and name not in ("NONE", "PROBIT"), "leaves the transform of a single target out"),
            has_zero_rows(name, rows),
        ),
        REFERENCE: reason(
            (any(isinstance(tree, trees.Leaf) for tree in forest), "reads a tree of one leaf as the tree before"),
            (name in ("SOFTMAX", "LOGISTIC"), "has the numbers of the two the other way round"),
            (name in ("PROBIT", "SOFTMAX_ZERO"), "has ways of its own for probabilities of 0 and 1, and for zeros"),
            (aggregate >= 2, "has the largest float where no tree votes for a target"),
        ),
    }
    compare("TreeEnsemble", 5, x.astype(dtype), attributes, [transform(name, rows)], departures)


# Linear and support vector machines ----------------------------------------------------------------------------------


def draw_rows(rng, dtype, features):
    x = rng.integers(-6, 7, (int(rng.choice([1, 2, 7, 40])), features)) / (1 if np.issubdtype(dtype, np.integer) else 4)
    return x.astype(dtype)


@pytest.mark.parametrize("seed", range(DRAWS))
def test_linear_classifier(seed):
    rng = np.random.default_rng(seed)
    classes, features, post = int(rng.choice([2, 2, 3, 4])), int(rng.integers(1, 5)), POSTS[seed % 5]
    x = draw_rows(rng, DTYPES[seed % 4], features)
    one_score = classes == 2 and bool(rng.random() < 0.6)
    w = rng.uniform(-1, 1, (1 if one_score else classes, features)).astype(np.float32)
    b = rng.uniform(-1, 1, len(w)).astype(np.float32)
    named, labels = labels_of(rng, classes, "classlabels_ints")
    attributes = {"coefficients": w.ravel().tolist(), "intercepts": b.tolist(), "post_transform": post} | named
    attributes["multi_class"] = int(rng.integers(2))
    rows = x.astype(np.float64) @ w.T.astype(np.float64) + b
    top = labels[(rows[:, 0] > 0).astype(int) if one_score else np.argmax(rows, axis=1)]
    if one_score:
        rows = spread(rows, post in ("NONE", "PROBIT"))
    departures = {
        ONNXRUNTIME: reason(
            (one_score and post not in ("NONE", "LOGISTIC"), "leaves the transform or a score out"),
            has_zero_rows(post, rows),
        ),
        REFERENCE: reason(
            (one_score and post == "NONE", "has -s where onnxruntime has 1 - s; the text is silent"),
            (post == "PROBIT", "has 0 where probabilities are 0 or 1, and chooses the label by what is NaN"),
            (not np.issubdtype(x.dtype, np.floating), "rounds scores of integers"),
        ),
    }
    compare("LinearClassifier", 1, x, attributes, [top, transform(post, rows)], departures)


@pytest.mark.parametrize("seed", range(DRAWS))
def test_linear_regressor(seed):
    rng = np.random.default_rng(seed)
    targets, features, post = int(rng.integers(1, 4)), int(rng.integers(1, 5)), POSTS[seed % 5]
    x = draw_rows(rng, DTYPES[seed % 4], features)
    w = rng.uniform(-1, 1, (targets, features)).astype(np.float32)
    b = rng.uniform(-1, 1, targets).astype(np.float32)
    attributes = {"coefficients": w.ravel().tolist(), "targets": targets, "post_transform": post}
    with_intercepts = bool(rng.random() < 0.7)
    if with_intercepts:
        attributes["intercepts"] = b.tolist()
    rows = x.astype(np.float64) @ w.T.astype(np.float64) + (b if with_intercepts else 0)
    departures = {
        ONNXRUNTIME: reason(
            (x.dtype != np.float32, "takes float only"),
            (targets == 1 and post not in ("NONE", "PROBIT"), "leaves the transform of a single target out"),
            has_zero_rows(post, rows),
        ),
        REFERENCE: reason(
            (post != "NONE", "knows no transforms"),
            (not with_intercepts, "wants intercepts"),
            (not np.issubdtype(x.dtype, np.floating), "rounds coefficients to integers"),
        ),
    }
    compare("LinearRegressor", 1, x, attributes, [transform(post, rows)], departures)


KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]


def kernel(name, x, v, gamma, offset, degree):
    if name == "RBF":
        return np.exp(-gamma * ((x[:, None] - v[None]) ** 2).sum(axis=2))
    dots = x @ v.T
    return {"LINEAR": dots, "POLY": (gamma * dots + offset) ** degree, "SIGMOID": np.tanh(gamma * dots + offset)}[name]


@pytest.mark.parametrize("seed", range(DRAWS))
def test_support_vector_regressor(seed):
    rng = np.random.default_rng(seed)
    features, post, name = int(rng.integers(1, 4)), POSTS[seed % 5], KERNELS[seed % 4]
    supports = int(rng.integers(0, 5))
    x = draw_rows(rng, np.float32, features)
    v = rng.uniform(-1, 1, (max(supports, 1), features)).astype(np.float32)
    weights = rng.uniform(-1, 1, supports or features).astype(np.float32)
    rho = rng.uniform(-1, 1, 1).astype(np.float32)
    attributes = {"kernel_type": name, "kernel_params": [0.5, 0.25, 2.0], "n_supports": supports, "rho": rho.tolist()}
    attributes |= {"coefficients": weights.tolist(), "post_transform": post, "one_class": int(rng.random() < 0.3)}
    wide = x.astype(np.float64)
    if supports:
        attributes["support_vectors"] = v.ravel().tolist()
        sums = kernel(name, wide, v.astype(np.float64), 0.5, 0.25, 2.0) @ weights.astype(np.float64)
    else:
        sums = wide @ weights.astype(np.float64)  # a linear machine, whatever kernel is named
    rows = (sums + rho)[:, None]
    if attributes["one_class"]:
        rows = np.where(rows > 0, 1.0, -1.0)
    departures = {
        ONNXRUNTIME: reason((post != "NONE", "leaves the transform out")),
        REFERENCE: reason((post != "NONE", "leaves the transform out")),
    }
    compare("SVMRegressor", 1, x, attributes, [transform(post, rows)], departures)


@pytest.mark.parametrize("seed", range(DRAWS))
def test_support_vector_classifier(seed):
    rng = np.random.default_rng(seed)
    classes, features, post = int(rng.choice([2, 2, 3, 4])), int(rng.integers(1, 4)), POSTS[seed % 5]
    linear, name, low = bool(rng.random() < 0.25), KERNELS[seed % 4], -1 if rng.random() < 0.6 else 0
    x = draw_rows(rng, DTYPES[seed % 4], features)
    named, labels = labels_of(rng, classes, "classlabels_ints")
    attributes = {"kernel_type": name, "kernel_params": [0.5, 0.25, 2.0], "post_transform": post} | named
    wide = x.astype(np.float64)
    if linear:
        w, rho = rng.uniform(low, 1, (classes, features)).astype(np.float32), np.float32(rng.uniform(-1, 1))
        attributes |= {"coefficients": w.ravel().tolist(), "rho": [float(rho)]}
        rows = wide @ w.T.astype(np.float64) + rho
        winners = np.argmax(rows, axis=1)
    else:
        per_class = [int(n) for n in rng.integers(1, 4, classes)]
        first = np.cumsum([0, *per_class])
        v = rng.uniform(-1, 1, (first[-1], features)).astype(np.float32)
        w = rng.uniform(low, 1, (classes - 1, first[-1])).astype(np.float32)
        rho = rng.uniform(-0.5, 0.5, classes * (classes - 1) // 2).astype(np.float32)
        attributes |= {"coefficients": w.ravel().tolist(), "rho": rho.tolist(), "vectors_per_class": per_class}
        attributes["support_vectors"] = v.ravel().tolist()
        k = kernel(name, wide, v.astype(np.float64), 0.5, 0.25, 2.0)
        votes, rows = np.zeros((len(x), classes)), []
        for i in range(classes):
            for j in range(i + 1, classes):
                of_i, of_j = slice(first[i], first[i + 1]), slice(first[j], first[j + 1])
                pair = k[:, of_i] @ w[j - 1, of_i].astype(np.float64) + k[:, of_j] @ w[i, of_j].astype(np.float64)
                rows.append(pair + rho[len(rows)])
                votes[np.arange(len(x)), np.where(rows[-1] > 0, i, j)] += 1
        rows = np.stack(rows, axis=1)
        winners = np.argmax(votes, axis=1)
        if classes == 2:
            rows = spread(rows, post == "PROBIT")
    one_score = classes == 2 and not linear
    departures = {
        ONNXRUNTIME: reason(
            (one_score and post not in ("NONE", "LOGISTIC"), "leaves the transform or a score out"),
            (classes == 2, "chooses the label by a threshold that depends on the signs of all coefficients"),
            has_zero_rows(post, rows),
        ),
        REFERENCE: reason(
            (classes == 2, "chooses the label by a threshold that depends on the signs of all coefficients"),
            (linear, "has labels of its own, 0 and 1, where there is one rho"),
            (not np.issubdtype(x.dtype, np.floating), "rounds scores of integers"),
            ("classlabels_strings" in named, "fails on labels that are strings"),
            (post == "PROBIT", "has 0 where probabilities are 0 or 1"),
        ),
    }
    compare("SVMClassifier", 1, x, attributes, [labels[winners], transform(post, rows)], departures)


# Preparing features --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_normalizer(norm, dtype):
    rng = np.random.default_rng(5)
    x = draw_rows(rng, dtype, 4)
    x[0] = 0
    wide = x.astype(np.float64)
    divisors = {"MAX": wide.max(axis=1), "L1": np.abs(wide).sum(axis=1), "L2": np.sqrt((wide**2).sum(axis=1))}[norm]
    rows = wide / np.where(divisors == 0, 1, divisors)[:, None]
    departures = {
        ONNXRUNTIME: "",
        REFERENCE: reason((not np.issubdtype(dtype, np.floating), "rounds integers"),
                          (norm == "MAX", "takes the largest magnitude")),
    }  # fmt: skip
    compare("Normalizer", 1, x, {"norm": norm}, [rows.astype(np.float32)], departures)


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_scaler(count, dtype):
    rng = np.random.default_rng(6)
    x = draw_rows(rng, dtype, 4)
    offset, scale = (rng.uniform(-1, 1, count).astype(np.float32) for _ in range(2))
    rows = (x.astype(np.float64) - offset) * scale
    departures = {REFERENCE: reason((not np.issubdtype(dtype, np.floating), "rounds integers"))}
    compare("Scaler", 1, x, {"offset": offset.tolist(), "scale": scale.tolist()}, [rows.astype(np.float32)], departures)
