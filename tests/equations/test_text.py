"""Operators on strings against Python's own string functions, or loops written from the specification."""

import os
import re

import numpy as np
import onnx
import pytest
from one_node import run
from onnx import helper

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

DRAWS = 300 if os.environ.get("TREADLE_TEST_LONG") else 60
ALPHABET = ["a", "b", "B", "Ä", "ß", "é", " ", "\t", "\u2003", "\u00a0", ",", "x1", "日本", "😀", "İ"]


def draw_text(rng, longest=9):
    return "".join(ALPHABET[int(i)] for i in rng.integers(len(ALPHABET), size=int(rng.integers(0, longest + 1))))


def draw_texts(rng, shape):
    return np.array([draw_text(rng) for _ in range(int(np.prod(shape)))], object).reshape(shape)


SHAPES = [(), (1,), (4,), (2, 3), (0,), (2, 0), (2, 1, 3)]


@pytest.mark.parametrize("seed", range(DRAWS))
def test_split(seed):
    rng = np.random.default_rng(seed)
    x = draw_texts(rng, SHAPES[seed % len(SHAPES)])
    attributes = {}
    delimiter = [None, "", ",", "a", "aB", " ", "\u00a0"][int(rng.integers(7))]
    if delimiter is not None:
        attributes["delimiter"] = delimiter
    limit = [None, 0, 1, 2, 100][int(rng.integers(5))]
    if limit is not None:
        attributes["maxsplit"] = limit
    y, z = run("StringSplit", 20, [x], [object, np.int64], attributes)
    parts = [text.split(delimiter or None, -1 if limit is None else limit) for text in x.ravel()]
    most = max(map(len, parts), default=0)
    assert z.shape == x.shape
    assert z.ravel().tolist() == [len(p) for p in parts]
    assert y.shape == (*x.shape, most)
    assert y.reshape(-1, most).tolist() == [p + [""] * (most - len(p)) for p in parts] if most else y.size == 0


@pytest.mark.parametrize(("a", "b"), [((), ()), ((3,), ()), ((2, 1), (3,)), ((2, 3), (2, 3)), ((0, 1), (4,))])
def test_concat(a, b):
    rng = np.random.default_rng(7)
    x, y = draw_texts(rng, a), draw_texts(rng, b)
    (z,) = run("StringConcat", 20, [x, y], [object])
    expected = x + y
    assert z.shape == np.shape(expected)
    assert z.tolist() == np.asarray(expected, object).tolist()


@pytest.mark.parametrize(
    "pattern", ["", "a*", r"\w+@(.*)\.(com|org)", r"[ab]+\d?", ".", r"(?i)ab", r"\p{L}+", r"^ab$", "a|ab"]
)
def test_full_match(pattern):
    texts = ["", "a", "aaa", "ab", "AB", "b1", "b12", "me@x.com", "me@x.net", "日", "日本", "a\n", "é"]
    (y,) = run("RegexFullMatch", 20, [np.array(texts, object)], [np.bool_], {"pattern": pattern})
    translated = pattern.replace(r"\p{L}", r"[^\W\d_]").replace(r"\w", "[0-9A-Za-z_]")
    assert y.tolist() == [re.fullmatch(translated, t) is not None for t in texts]


def test_a_pattern_must_be_a_regular_expression():
    with pytest.raises(Exception, match="expected a regular expression"):
        run("RegexFullMatch", 20, [np.array(["a"], object)], [np.bool_], {"pattern": "a)(("})
    (y,) = run("RegexFullMatch", 20, [np.array(["a", ""], object)], [np.bool_])
    assert y.tolist() == [False, True]


@pytest.mark.parametrize("change", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("sensitive", [0, 1])
@pytest.mark.parametrize("rank", [1, 2])
def test_normalizer(change, sensitive, rank):
    words = ["Monday", "TUESDAY", "tuesday", "ÄRGER", "ärger", "", "straße", "МОСКВА", "thursday"]
    stop = ["tuesday", "Ärger", "москва"]
    x = np.array(words, object).reshape((1, -1) if rank == 2 else -1)
    attributes = {"case_change_action": change, "is_case_sensitive": sensitive, "stopwords": stop}
    (y,) = run("StringNormalizer", 10, [x], [object], attributes)
    stopped = set(stop) if sensitive else {w.casefold() for w in stop}
    kept = [w for w in words if (w if sensitive else w.casefold()) not in stopped]
    mapping = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[change]
    assert y.ndim == rank
    # One letter stays one letter: the capital of sharp s is not SS.
    assert [w.replace("\u1e9e", "SS") for w in y.ravel()] == [mapping(w) for w in kept]


def test_normalizer_of_stop_words_only():
    for x in (np.array(["a", "A"], object), np.array([["a"]], object), np.array([], object)):
        (y,) = run("StringNormalizer", 10, [x], [object], {"stopwords": ["A"]})
        assert y.shape == (1,) * x.ndim
        assert y.ravel().tolist() == [""]
    with pytest.raises(Exception, match=r"\[1,C\]"):
        run("StringNormalizer", 10, [np.array([["a"], ["b"]], object)], [object])


def tfidf(x, grams, columns, weights, mode, shortest, longest, skips):
    """Counts of n-grams (tuples) whose words stand the same distance from each other, up to skips + 1."""
    rows = np.atleast_2d(x)
    y = np.zeros((len(rows), max(columns) + 1))
    for r, row in enumerate(rows.tolist()):
        for gram, column, weight in zip(grams, columns, weights, strict=True):
            n = len(gram)
            if not shortest <= n <= longest:
                continue
            count = 0
            for distance in range(1, skips + 2):
                if n == 1 and distance > 1:
                    break
                starts = range(len(row) - (n - 1) * distance)
                count += sum(tuple(row[s : s + n * distance : distance][:n]) == gram for s in starts)
            if mode == "IDF":
                count = min(count, 1)
            y[r, column] += count * (1 if mode == "TF" else weight)
    return y if np.ndim(x) == 2 else y[0]


@pytest.mark.parametrize("seed", range(DRAWS))
@pytest.mark.parametrize("kind", ["int32", "int64", "string"])
def test_tfidf(seed, kind):
    rng = np.random.default_rng(seed)
    grams, counts, pool = [], [], []
    for n in range(1, int(rng.integers(2, 5))):
        counts.append(len(pool))
        for gram in sorted({tuple(rng.integers(0, 4, n).tolist()) for _ in range(int(rng.integers(0, 5)))}):
            grams.append(gram)
            pool.extend(gram)
    if not grams:
        pytest.skip("an empty pool")
    columns = rng.permutation(len(grams)).tolist()
    if rng.random() < 0.3:
        columns = [c // 2 for c in columns]
    weights = (rng.integers(1, 9, len(grams)) / 4).tolist()
    shortest = int(rng.integers(1, len(counts) + 1))
    longest = int(rng.integers(shortest, len(counts) + 2))
    mode = ["TF", "IDF", "TFIDF"][seed % 3]
    skips = int(rng.integers(0, 6))
    attributes = {"mode": mode, "ngram_counts": counts, "ngram_indexes": columns, "weights": weights,
                  "min_gram_length": shortest, "max_gram_length": longest, "max_skip_count": skips}  # fmt: skip
    x = rng.integers(0, 5, (int(rng.integers(1, 4)), int(rng.integers(0, 9))))
    if rng.random() < 0.4:
        x = x[0]
    expected = tfidf(x, grams, columns, weights, mode, shortest, longest, skips)
    if kind == "string":
        attributes["pool_strings"] = [f"w{v}" for v in pool]
        x = np.array([f"w{v}" for v in x.ravel()], object).reshape(x.shape)
    else:
        attributes["pool_int64s"] = pool
        x = x.astype(kind)
    (y,) = run("TfIdfVectorizer", 9, [x], [np.float32], attributes)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y, expected, rtol=1e-6)


@pytest.mark.parametrize("seed", range(DRAWS))
def test_tfidf_far_apart(seed):
    """Rows that are not walked for each distance: words that are rare or everywhere, n-grams of up to four."""
    rng = np.random.default_rng(seed)
    words = [2, 4, 40][seed % 3]
    by_length = [sorted({tuple(rng.integers(0, words, n).tolist()) for _ in range(3)}) for n in range(1, 5)]
    counts = np.cumsum([0, *(n * len(grams) for n, grams in enumerate(by_length, 1))])[:-1].tolist()
    grams = [gram for some in by_length for gram in some]
    x = rng.integers(0, words + 1, (2, int(rng.integers(60, 200))))
    skips = int(rng.integers(20, 250))
    expected = tfidf(x, grams, range(len(grams)), [1] * len(grams), "TF", 1, 4, skips)
    attributes = {"mode": "TF", "ngram_counts": counts, "ngram_indexes": list(range(len(grams))),
                  "min_gram_length": 1, "max_gram_length": 4, "max_skip_count": skips,
                  "pool_int64s": [word for gram in grams for word in gram]}  # fmt: skip
    (y,) = run("TfIdfVectorizer", 9, [x], [np.float32], attributes)
    np.testing.assert_array_equal(y, expected)


def test_two_operators_in_a_body_of_a_loop():
    """Strings that flow through a loop, each iteration one word longer."""
    body = helper.make_graph(
        [
            helper.make_node("StringConcat", ["text", "word"], ["longer"]),
            helper.make_node("Identity", ["go"], ["continues"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("go", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("text", onnx.TensorProto.STRING, [2]),
        ],
        [
            helper.make_tensor_value_info("continues", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("longer", onnx.TensorProto.STRING, [2]),
        ],
    )
    graph = helper.make_graph(
        [
            helper.make_node("Loop", ["n", "", "start"], ["end"], body=body),
            helper.make_node("RegexFullMatch", ["end"], ["match"], pattern="a(bc)*"),
        ],
        "g",
        [
            helper.make_tensor_value_info("n", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("start", onnx.TensorProto.STRING, [2]),
            helper.make_tensor_value_info("word", onnx.TensorProto.STRING, []),
        ],
        [
            helper.make_tensor_value_info("end", onnx.TensorProto.STRING, [2]),
            helper.make_tensor_value_info("match", onnx.TensorProto.BOOL, [2]),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    session = treadle.InferenceSession(model.SerializeToString())
    feed = {"n": np.array(3), "start": np.array(["a", "b"], object), "word": np.array("bc", object)}
    end, match = session.run(None, feed)
    assert end.tolist() == ["abcbcbc", "bbcbcbc"]
    assert match.tolist() == [True, False]


@pytest.mark.parametrize("axis", (0, 1, -1))
@pytest.mark.parametrize(
    "indices", (np.int64(-2), np.array([1, 0, 1]), np.array([[0], [-1]], np.int32), np.zeros(0, np.int64))
)
def test_gather(axis, indices):
    x = draw_texts(np.random.default_rng(7), (3, 2, 4))
    indices = np.asarray(indices)
    [y] = run("Gather", 13, [x, indices], [object], {"axis": axis})
    assert np.array_equal(y, np.take(x, indices, axis))


def test_gather_names_an_index_outside():
    with pytest.raises(Exception, match=r"index 2.*2"):
        run("Gather", 13, [np.array(["a", "b"], object), np.array([0, 2])], [object])


LOOP = """<ir_version: 10, opset_import: ["" : 22]>
g (string[V] words, int64 m, string before, string stop) => (string last, string[N] rows, bool[N] same, string[N] kept) {
  yes = Constant <value = bool {1}> ()
  last, rows, same, kept = Loop <body = b (int64 i, bool c, string s)
      => (bool c, string next, string row, bool equal, string old) {
    size = Size (words)
    at = Mod (i, size)
    word = Gather (words, at)
    equal = Equal (word, stop)
    next = If (equal) <then_branch = t () => (string a) { a = Identity (before) },
                       else_branch = e () => (string d) { d = StringConcat (word, before) }>
    row = StringConcat (s, word)
    old = Identity (s)
  }> (m, yes, before)
}"""


# Texts short and long, so that a text may be stored in the string or in memory of its own. Memory that is used again
# must not show its earlier contents, nor change a value that is still referenced elsewhere.
@pytest.mark.parametrize("jit", ("off", "always"))
@pytest.mark.parametrize("words", (["a", "stop", "bc"], ["x" * 40, "stop", "", "y" * 90, "日本"], ["stop"], ["only"]))
def test_loop(words, jit):
    options = treadle.SessionOptions()
    options.add_session_config_entry("treadle.jit", jit)
    session = treadle.InferenceSession(LOOP.encode(), options)
    for m in (0, 1, 7, 200, 3):
        feeds = {"words": np.array(words, object), "m": np.int64(m)}
        feeds |= {"before": np.array("<>", object), "stop": np.array("stop", object)}
        last, rows, same, kept = session.run(None, feeds)
        s, expected = "<>", []
        for i in range(m):
            word = words[i % len(words)]
            expected.append((s + word, word == "stop", s))
            s = "<>" if word == "stop" else word + "<>"
        assert str(last) == s
        assert list(zip(rows.tolist(), same.tolist(), kept.tolist(), strict=True)) == expected
