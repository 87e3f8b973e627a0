"""The other operators of ai.onnx.ml against numpy: predictors, tables of features, labels, maps."""

import numpy as np
import onnx
import pytest
from one_node import PROTO, close, run, schemas, types_of
from onnx import TensorProto, helper, numpy_helper

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

DOMAIN = "ai.onnx.ml"
NUMBERS = [np.float32, np.float64, np.int32, np.int64]


def table(seed, rows, columns, dtype, low=-5, high=6):
    x = np.random.default_rng(seed).uniform(low, high, (rows, columns))
    return np.trunc(x).astype(dtype) if np.issubdtype(dtype, np.integer) else x.astype(dtype)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_tables(dtype):
    x = table(0, 4, 3, dtype)
    wide = x.astype(np.float64)
    offset, scale = [0.5, -1.0, 2.0], [2.0, 0.25, -1.0]
    (y,) = run("Scaler", 1, [x], [np.float32], {"offset": offset, "scale": scale}, DOMAIN)
    close(y, (wide - offset) * scale)
    norms = {"MAX": wide.max(axis=1), "L1": np.abs(wide).sum(axis=1), "L2": np.sqrt((wide**2).sum(axis=1))}
    for name, norm in norms.items():
        (y,) = run("Normalizer", 1, [x], [np.float32], {"norm": name}, DOMAIN)
        close(y, wide / norm[:, None])
    (y,) = run("Binarizer", 1, [x], [dtype], {"threshold": 1.0}, DOMAIN)
    np.testing.assert_array_equal(y, (x > 1).astype(dtype))
    columns = np.array([2, 0, 2], np.int64)
    (y,) = run("ArrayFeatureExtractor", 1, [x, columns], [dtype], {}, DOMAIN)
    np.testing.assert_array_equal(y, x[:, columns])


@pytest.mark.parametrize("dtype", NUMBERS)
def test_imputer(dtype):
    x = np.array([[1, 2, 3], [3, 2, 1]], dtype)
    kind = "int64" if np.issubdtype(dtype, np.integer) else "float"
    number = int if kind == "int64" else float
    attributes = {f"imputed_value_{kind}s": [number(v) for v in (7, 8, 9)], f"replaced_value_{kind}": number(3)}
    (y,) = run("Imputer", 1, [x], [dtype], attributes, DOMAIN)
    np.testing.assert_array_equal(y, np.where(x == 3, np.array([7, 8, 9], dtype), x))


@pytest.mark.parametrize("dimensions", [None, [2, 1, 3], [1, 4, 2]])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_feature_vectorizer(dtype, dimensions):
    parts = [table(i, 3, c, dtype) for i, c in enumerate((2, 1, 3))]
    attributes = {"inputdimensions": dimensions} if dimensions else {}
    (y,) = run("FeatureVectorizer", 1, parts, [np.float32], attributes, DOMAIN)
    expected = []
    for part, size in zip(parts, dimensions or (2, 1, 3), strict=True):
        cut = part[:, :size]
        expected.append(np.pad(cut, ((0, 0), (0, size - cut.shape[1]))))
    np.testing.assert_array_equal(y, np.concatenate(expected, axis=1).astype(np.float32))


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_linear(dtype, post):
    x = table(1, 5, 4, dtype, -1, 2)
    rng = np.random.default_rng(2)
    w, b = rng.uniform(-1, 1, (3, 4)).astype(np.float32), rng.uniform(-1, 1, 3).astype(np.float32)
    scores = x.astype(np.float64) @ w.T.astype(np.float64) + b
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    posts = {
        "NONE": scores,
        "SOFTMAX": shifted / shifted.sum(axis=1, keepdims=True),
        "LOGISTIC": 1 / (1 + np.exp(-scores)),
    }
    attributes = {"coefficients": w.ravel().tolist(), "intercepts": b.tolist(), "post_transform": post}
    (y,) = run("LinearRegressor", 1, [x], [np.float32], attributes | {"targets": 3}, DOMAIN)
    close(y, posts[post], units=8)
    y, z = run(
        "LinearClassifier", 1, [x], [object, np.float32], attributes | {"classlabels_strings": ["a", "b", "c"]}, DOMAIN
    )
    assert y.tolist() == ["abc"[i] for i in scores.argmax(axis=1)]
    close(z, posts[post], units=8)


def test_linear_classifier_of_more_coefficients_than_features():
    """As in logreg_iris, which onnxruntime ships: three classes of two features, and twelve coefficients."""
    x = table(1, 5, 2, np.float32)
    w = np.random.default_rng(2).uniform(-1, 1, 12).astype(np.float32)
    attributes = {"coefficients": w.tolist(), "intercepts": [0.0] * 3, "classlabels_ints": [0, 1, 2]}
    y, z = run("LinearClassifier", 1, [x], [np.int64, np.float32], attributes, DOMAIN)
    close(z, x.astype(np.float64) @ w[:6].reshape(3, 2).T.astype(np.float64), units=8)
    assert y.tolist() == z.argmax(axis=1).tolist()


def kernel(name, x, v, gamma, offset, degree):
    if name == "RBF":
        return np.exp(-gamma * ((x[:, None] - v[None]) ** 2).sum(axis=2))
    dots = x @ v.T
    return {"LINEAR": dots, "POLY": (gamma * dots + offset) ** degree, "SIGMOID": np.tanh(gamma * dots + offset)}[name]


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("name", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(dtype, name):
    rng = np.random.default_rng(3)
    x = table(4, 70, 3, dtype, -1, 2)
    vectors = rng.uniform(-1, 1, (7, 3)).astype(np.float32)
    k = kernel(name, x.astype(np.float64), vectors.astype(np.float64), 0.5, 1.0, 3.0)
    base = {"kernel_type": name, "kernel_params": [0.5, 1.0, 3.0], "support_vectors": vectors.ravel().tolist()}
    weights = rng.uniform(-1, 1, 7).astype(np.float32)
    attributes = base | {"coefficients": weights.tolist(), "rho": [0.25], "n_supports": 7}
    (y,) = run("SVMRegressor", 1, [x], [np.float32], attributes, DOMAIN)
    close(y, (k @ weights.astype(np.float64) + 0.25)[:, None], units=8)
    (y,) = run("SVMRegressor", 1, [x], [np.float32], attributes | {"one_class": 1}, DOMAIN)
    assert set(np.unique(y)) <= {-1.0, 1.0}
    # Three classes with 3, 2 and 2 vectors; row r of the coefficients is for the r-th other class.
    pairs = rng.uniform(-1, 1, (2, 7)).astype(np.float32)
    rho = [0.1, -0.2, 0.3]
    y, z = run("SVMClassifier", 1, [x], [np.int64, np.float32], base | {
        "coefficients": pairs.ravel().tolist(), "rho": rho, "vectors_per_class": [3, 2, 2], "classlabels_ints": [4, 5, 6],
    }, DOMAIN)  # fmt: skip
    of_class = [slice(0, 3), slice(3, 5), slice(5, 7)]
    decisions, votes = [], np.zeros((len(x), 3))
    for i in range(3):
        for j in range(i + 1, 3):
            d = np.full(len(x), np.float64(np.float32(rho[len(decisions)])))
            d += k[:, of_class[i]] @ pairs[j - 1, of_class[i]].astype(np.float64)
            d += k[:, of_class[j]] @ pairs[i, of_class[j]].astype(np.float64)
            votes[np.arange(len(x)), np.where(d > 0, i, j)] += 1
            decisions.append(d)
    close(z, np.stack(decisions, axis=1), units=8)
    assert y.tolist() == [4 + i for i in votes.argmax(axis=1)]


LABELS = {
    np.dtype(np.float32): [1.5, np.nan, -0.0], np.dtype(np.float64): [0.1, np.nan, 7.0],
    np.dtype(np.int16): [3, -7, 900], np.dtype(np.int32): [3, -70000, 8], np.dtype(np.int64): [5, 2**40, 6],
    np.dtype(object): ["a", "", "ä"],
}  # fmt: skip
UNKNOWN = {"f": 99.25, "i": 77, "O": "nobody"}


def as_tensor(values):
    return numpy_helper.from_array(values) if values.dtype != object else helper.make_tensor(
        "t", TensorProto.STRING, values.shape, [v.encode() for v in values])  # fmt: skip


@pytest.mark.parametrize("values", LABELS, ids=str)
@pytest.mark.parametrize("keys", LABELS, ids=str)
def test_label_encoder(keys, values):
    k, v = np.array(LABELS[keys], keys), np.array(LABELS[values], values)
    default = np.array([{"f": -1.0, "i": -1, "O": "?"}[values.kind]], values)
    attributes = {"keys_tensor": as_tensor(k), "values_tensor": as_tensor(v), "default_tensor": as_tensor(default)}
    x = np.array([[LABELS[keys][i] for i in (2, 0)], [LABELS[keys][1], UNKNOWN[keys.kind]]], keys)
    (y,) = run("LabelEncoder", 4, [x], [values], attributes, DOMAIN)
    expected = np.array([[v[2], v[0]], [v[1], default[0]]], values)
    assert y.dtype == expected.dtype
    np.testing.assert_array_equal(y, expected)


def test_label_encoder_of_earlier_versions():
    (y,) = run("LabelEncoder", 1, [np.array(["b", "x"], object)], [np.int64], {"classes_strings": ["a", "b"]}, DOMAIN)
    assert y.tolist() == [1, -1]
    (y,) = run("LabelEncoder", 1, [np.array([0, 5])], [object], {"classes_strings": ["a", "b"]}, DOMAIN)
    assert y.tolist() == ["a", "_Unused"]
    attributes = {"keys_floats": [1.0, 2.0], "values_int64s": [10, 20], "default_int64": -5}
    (y,) = run("LabelEncoder", 2, [np.array([2.0, 3.0], np.float32)], [np.int64], attributes, DOMAIN)
    assert y.tolist() == [20, -5]


def test_category_mapper():
    attributes = {"cats_int64s": [10, 20], "cats_strings": ["x", "y"], "default_int64": -2, "default_string": "?"}
    (y,) = run("CategoryMapper", 1, [np.array([["y", "z"]], object)], [np.int64], attributes, DOMAIN)
    assert y.tolist() == [[20, -2]]
    (y,) = run("CategoryMapper", 1, [np.array([10, 11])], [object], attributes, DOMAIN)
    assert y.tolist() == ["x", "?"]


@pytest.mark.parametrize("dtype", [*NUMBERS, object])
def test_one_hot_encoder(dtype):
    words = dtype is object
    attributes = {"cats_strings": ["a", "b", "c"]} if words else {"cats_int64s": [1, -2, 3]}
    x = np.array(["c", "z", "a"], object) if words else np.array([3, 9, 1]).astype(dtype)
    (y,) = run("OneHotEncoder", 1, [x], [np.float32], attributes, DOMAIN)
    assert y.tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    with pytest.raises(Exception, match="OneHotEncoder"):
        run("OneHotEncoder", 1, [x], [np.float32], attributes | {"zeros": 0}, DOMAIN)


def run_on_map(op, value, key, item, out, attributes):
    """The operator on one map, as the only node of a model."""
    x = onnx.ValueInfoProto(name="x")
    x.type.map_type.key_type = key
    x.type.map_type.value_type.tensor_type.elem_type = item
    y = helper.make_tensor_value_info("y", PROTO[np.dtype(out)], None)
    node = helper.make_node(op, ["x"], ["y"], domain=DOMAIN, **attributes)
    graph = helper.make_graph([node], "one", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(DOMAIN, 1)], ir_version=10)
    return treadle.InferenceSession(model.SerializeToString()).run(None, {"x": value})[0]


@pytest.mark.parametrize(
    ("key", "item"),
    [
        ("int64", "string"),
        ("int64", "float"),
        ("int64", "double"),
        ("string", "int64"),
        ("string", "float"),
        ("string", "double"),
    ],
)
def test_dict_vectorizer(key, item):
    words = ["a", "c", "b", "z"] if key == "string" else [4, 2, 9, 1]
    types = {"string": object, "int64": np.int64, "float": np.float32, "double": np.float64}
    given = ["p", "q"] if item == "string" else [4, 8]
    attributes = {f"{key}_vocabulary": words}
    value = {words[0]: given[0], words[1]: given[1]}
    y = run_on_map("DictVectorizer", value, getattr(TensorProto, key.upper()), getattr(TensorProto, item.upper()),
                   types[item], attributes)  # fmt: skip
    assert y.tolist() == [[*given, *(["", ""] if item == "string" else [0, 0])]]


@pytest.mark.parametrize("to", ["TO_FLOAT", "TO_INT64", "TO_STRING"])
@pytest.mark.parametrize("item", ["string", "float"])
def test_cast_map(item, to):
    value = {5: "3", 0: "7", 2: "-1"} if item == "string" else {5: 3.0, 0: 7.0, 2: -1.0}
    out = {"TO_FLOAT": np.float32, "TO_INT64": np.int64, "TO_STRING": object}[to]
    convert = {"TO_FLOAT": float, "TO_INT64": int, "TO_STRING": lambda v: v if isinstance(v, str) else f"{v:f}"}[to]
    kind = getattr(TensorProto, item.upper())
    y = run_on_map("CastMap", value, TensorProto.INT64, kind, out, {"cast_to": to})
    assert y.tolist() == [[convert(value[k]) for k in (0, 2, 5)]]
    y = run_on_map("CastMap", value, TensorProto.INT64, kind, out, {"cast_to": to, "map_form": "SPARSE", "max_map": 7})
    empty = "" if to == "TO_STRING" else 0
    assert y.tolist() == [[convert(value[k]) if k in value else empty for k in range(7)]]
    with pytest.raises(Exception, match="key 5"):
        run_on_map("CastMap", value, TensorProto.INT64, kind, out, {"cast_to": to, "map_form": "SPARSE", "max_map": 5})


@pytest.mark.parametrize("labels", [["no", "yes", "ö"], [3, -1, 2**40]])
@pytest.mark.parametrize("shape", [(4, 3), (3,), (0, 3), (1, 3)])
def test_zip_map(labels, shape):
    x = np.random.default_rng(5).uniform(0, 1, shape).astype(np.float32)
    words = isinstance(labels[0], str)
    node = helper.make_node("ZipMap", ["x"], ["z"], domain=DOMAIN,
                            **{"classlabels_strings" if words else "classlabels_int64s": labels})  # fmt: skip
    z = onnx.ValueInfoProto(name="z")
    kind = z.type.sequence_type.elem_type.map_type
    kind.key_type = TensorProto.STRING if words else TensorProto.INT64
    kind.value_type.tensor_type.elem_type = TensorProto.FLOAT
    graph = helper.make_graph(
        [node], "one", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None] * len(shape))], [z]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(DOMAIN, 1)], ir_version=10)
    session = treadle.InferenceSession(model.SerializeToString())
    (maps,) = session.run(None, {"x": x})
    assert maps == [dict(zip(labels, row, strict=True)) for row in np.atleast_2d(x).tolist()]
    with pytest.raises(Exception, match=r"\[N,3\]"):
        session.run(None, {"x": x[..., :2]})


def test_every_type_of_the_schemas_is_drawn():
    assert {np.dtype(t) for t in NUMBERS} == set(types_of(schemas("Scaler", DOMAIN)[0]))
    assert set(LABELS) - {np.dtype(object)} == set(types_of(schemas("LabelEncoder", DOMAIN)[-1], "T1"))
