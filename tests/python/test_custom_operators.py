"""Operators in Python: types, sizes, attributes, errors, bodies, streams, every tier."""

import threading

import numpy as np
import pytest
import treadle

HEAD = '<ir_version: 10, opset_import: ["" : 20, "test" : 1]>'


def session(text, **options):
    made = treadle.SessionOptions()
    for key, value in options.items():
        made.add_session_config_entry("treadle." + key, value)
    return treadle.InferenceSession((HEAD + text).encode(), made)


@treadle.op(
    "test::SoftClip", inputs=["tensor(float)"], outputs=["tensor(float)"], infer=lambda x, limit=1.0: x, pure=True
)
def soft_clip(x, *, limit=1.0):
    return (np.tanh(x / np.float32(limit)) * np.float32(limit)).astype(np.float32)


X = np.array([0, 1, 10, -3], np.float32)


def test_runs_with_an_attribute_and_its_default():
    y, z = session(
        "g (float[n] x) => (float[n] y, float[n] z) { y = test.SoftClip <limit = 2.0> (x)  z = test.SoftClip (x) }"
    ).run(None, {"x": X})
    np.testing.assert_array_equal(y, soft_clip(X, limit=2.0))
    np.testing.assert_array_equal(z, soft_clip(X))


@pytest.mark.parametrize("options", [{}, {"jit": "off"}, {"jit": "always"}, {"tier": "reference"}], ids=str)
def test_runs_in_bodies_of_every_tier(options):
    made = session(
        """g (int64 n, float[4] x) => (float[4] y, float[m, 4] all) {
          on = Constant <value = bool {1}> ()
          y, all = Loop (n, on, x) <body = step (int64 i, bool go, float[4] h) => (bool go_out, float[4] k, float[4] o) {
            go_out = Identity (go)
            c = test.SoftClip <limit = 3.0> (h)
            one = Constant <value_float = 1.0> ()
            k = Add (c, one)
            o = Neg (k)
          }>
        }""",
        **options,
    )
    h, rows = X, []
    for _ in range(40):
        h = soft_clip(h, limit=3.0) + np.float32(1)
        rows.append(-h)
    for _ in range(3):
        y, everything = made.run(None, {"n": np.array(40), "x": X})
        np.testing.assert_array_equal(y, h)
        np.testing.assert_array_equal(everything, rows)


def test_runs_in_streams():
    made = session(
        "g (float[t] x, float[4] h) => (float[4] k, float[4] y) "
        "{ s = ReduceSum <keepdims = 1> (x)  c = test.SoftClip (s)  k = Add (h, c)  y = Neg (k) }"
    )
    stream = made.stream(state={"h": "k"})
    total = np.zeros(4, np.float32)
    for chunk in ([1.0, 2], [3.0], [-9.0, 1, 1]):
        total = total + soft_clip(np.sum(np.array(chunk, np.float32), keepdims=True))
        pushed = stream.push(x=np.array(chunk, np.float32))
        np.testing.assert_allclose(pushed, -total, rtol=1e-6)


def test_sizes_are_inferred_and_checked():
    made = session("g (float[n, 3] x) => (float[a, b] y) { y = test.SoftClip (x) }")
    assert made.get_outputs()[0].shape[1] == 3  # the other keeps the name that the model gives it

    @treadle.op("test::Lies", outputs=["tensor(float)"], infer=lambda x: [2])
    def lies(x):
        return x

    with pytest.raises(
        treadle.RuntimeException, match=r"/Lies_0 .*gave tensor\(float\)\[4\] as output 0, and has said .*\[2\]"
    ):
        session("g (float[n] x) => (float[m] y) { y = test.Lies (x) }").run(None, {"x": X})

    @treadle.op("test::WrongType", outputs=["tensor(float)"])
    def wrong_type(x):
        return x.astype(np.float64)

    with pytest.raises(treadle.RuntimeException, match=r"gave tensor\(double\)"):
        session("g (float[n] x) => (float[m] y) { y = test.WrongType (x) }").run(None, {"x": X})


def test_sizes_that_data_decide_and_several_outputs():
    @treadle.op("test::Positive", outputs=["", "tensor(int64)"])
    def positive(x, low=None):
        kept = x[x > (0 if low is None else low)]
        return kept, len(kept)

    made = session(
        """g (float[n] x, float low) => (float[a] y, int64 count, double[b] z) {
          y, count = test.Positive (x)
          d = Cast <to = 11> (x)
          l = Cast <to = 11> (low)
          z = test.Positive (d, l)
        }"""
    )
    y, count, z = made.run(None, {"x": X, "low": np.float32(5)})
    assert y.tolist() == [1, 10] and count == 2 and count.dtype == np.int64
    assert z.tolist() == [10] and z.dtype == np.float64


def test_any_number_of_inputs_texts_sequences_and_all_attributes():
    seen = {}

    @treadle.op("test::Join", outputs=["tensor(string)"])
    def join(*parts, **attributes):
        seen.update(attributes)
        flat = [str(t) for part in parts for t in (part if isinstance(part, list) else [part])]
        return np.array([attributes["by"].join(flat)], object)

    made = session(
        """g (string[1] a, seq(float[1]) s) => (string[1] y) {
          y = test.Join <by = "-", i = 3, f = 0.5, ints = [1, 2], floats = [1.5], texts = ["a", "b"], t = float[2] {1, 2}> (a, s, a)
        }"""
    )
    [y] = made.run(None, {"a": np.array(["ü"], object), "s": [np.ones(1, np.float32)]})
    assert y[0] == "['ü']-[1.]-['ü']"
    assert seen["i"] == 3 and seen["f"] == 0.5 and seen["ints"] == [1, 2] and seen["floats"] == [1.5]
    assert seen["texts"] == ["a", "b"] and seen["t"].tolist() == [1, 2]


def test_errors_come_out_with_their_place():
    @treadle.op("test::Fails", outputs=[""])
    def fails(x):
        raise KeyError("nothing here")

    made = session(
        """g (int64 n, float[4] x) => (float[4] y) {
          on = Constant <value = bool {1}> ()
          y = Loop (n, on, x) <body = step (int64 i, bool go, float[4] h) => (bool go_out, float[4] k) {
            go_out = Identity (go)
            k = test.Fails (h)
          }>
        }"""
    )
    with pytest.raises(KeyError, match="nothing here") as caught:
        made.run(None, {"n": np.array(2), "x": X})
    assert any("/Loop_1:body/Fails_1" in note and "iteration 0" in note for note in caught.value.__notes__)
    with pytest.raises(treadle.InvalidGraph, match='no attribute "wrong"'):
        session("g (float[n] x) => (float[n] y) { y = test.SoftClip <wrong = 1> (x) }")
    with pytest.raises(treadle.InvalidGraph, match=r"expected tensor\(float\)"):
        session("g (double[n] x) => (float[n] y) { y = test.SoftClip (x) }")

    @treadle.op("test::Needs")
    def needs(x, *, size):
        return x

    with pytest.raises(treadle.InvalidGraph, match='"size".* required'):
        session("g (float[n] x) => (float[n] y) { y = test.Needs (x) }")


def test_objects_that_are_no_operator_are_refused():
    with pytest.raises(treadle.InvalidArgument, match="treadle has an operator Add"):
        treadle.op("ai.onnx::Add")(lambda x: x)
    with pytest.raises(ValueError, match="no name of an operator"):
        treadle.op("Add")
    with pytest.raises(treadle.InvalidArgument, match=r'type "float"'):
        treadle.op("test::Bad", inputs=["float"])(lambda x: x)
    with pytest.raises(TypeError, match="default is None"):
        treadle.op("test::Bad")(lambda x, y=3: x)
    with pytest.raises(ValueError, match="2 types for 1 parameters"):
        treadle.op("test::Bad", inputs=["", ""])(lambda x: x)


def test_a_later_function_takes_the_place_of_an_earlier_one():
    text = "g (float[n] x) => (float[n] y) { y = test.Again (x) }"
    treadle.op("test::Again")(lambda x: x + np.float32(1))
    first = session(text)
    treadle.op("test::Again")(lambda x: x + np.float32(2))
    assert session(text).run(None, {"x": X})[0][0] == 2 and first.run(None, {"x": X})[0][0] == 1


def test_impure_nodes_run_as_often_as_they_are_written():
    calls = []

    def count(x):
        calls.append(1)
        return x

    text = """g (int64 n, float[4] x) => (float[4] y) {
      on = Constant <value = bool {1}> ()
      c = Constant <value = float[4] {1, 2, 3, 4}> ()
      y = Loop (n, on, x) <body = step (int64 i, bool go, float[4] h) => (bool go_out, float[4] k) {
        go_out = Identity (go)
        t = test.Count (c)
        k = Add (h, t)
      }>
    }"""
    treadle.op("test::Count")(count)
    session(text).run(None, {"n": np.array(5), "x": X})
    assert len(calls) == 5
    calls.clear()
    treadle.op("test::Count", pure=True)(count)
    session(text).run(None, {"n": np.array(5), "x": X})
    assert len(calls) <= 2


def test_arrays_are_the_functions_own():
    kept = []

    @treadle.op("test::Keeps")
    def keeps(x):
        kept.append(x)
        x[...] += 1
        return x

    made = session("g (float[n] x) => (float[n] y) { a = Neg (x)  y = test.Keeps (a) }")
    [first] = made.run(None, {"x": X})
    [second] = made.run(None, {"x": -X})
    assert (
        kept[0].tolist() == (1 - X).tolist() == first.tolist()
        and kept[1].tolist() == (1 + X).tolist() == second.tolist()
    )


def test_sessions_from_many_threads():
    made = session("g (float[n] x) => (float[n] y) { y = test.SoftClip (x) }")
    found = []

    def work(k):
        x = np.full(1000, k, np.float32)
        found.append(all(np.array_equal(made.run(None, {"x": x})[0], soft_clip(x)) for _ in range(50)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


class Opaque:
    pass


# The operator's result, the type of its output, and the error; None: the result is taken as the array.
RETURNED = {
    "nothing": (None, "tensor(float)", TypeError, r"test::Returns returned None as output 0, expected an array.* of tensor\(float\)"),
    "nothing of any type": (None, "", TypeError, "returned None as output 0, expected an array, a number or a list"),
    "a list with nothing in it": ([1.0, None], "tensor(float)", TypeError, "returned list of object as output 0"),
    "an object": (Opaque(), "tensor(float)", TypeError, "returned Opaque of object as output 0"),
    "an object for texts": (Opaque(), "tensor(string)", Exception, "output 0"),
    "a dict": ({"y": 1.0}, "tensor(float)", TypeError, "returned dict of object as output 0"),
    "a text": ("3.5", "tensor(float)", TypeError, "returned str of <U3 as output 0"),
    "a fraction": (1.5, "tensor(int64)", TypeError, "returned float of float64 as output 0"),
    "a complex number": (1j, "tensor(float)", TypeError, "returned complex of complex128 as output 0"),
    "too large a number": (300, "tensor(uint8)", TypeError, "returned int .*300"),
    "rows of unlike lengths": ([[1.0], [1.0, 2.0]], "tensor(float)", TypeError, "returned list .*inhomogeneous"),
    "a generator": ((n for n in [1.0]), "tensor(float)", TypeError, "returned generator of object as output 0"),
    "too few": ((), "tensor(float)", ValueError, "test::Returns returned 0 outputs, expected 1"),
    "too many": ((1.0, 2.0), "tensor(float)", ValueError, "test::Returns returned 2 outputs, expected 1"),
    "another type": (np.ones(3), "tensor(float)", treadle.RuntimeException, r"test::Returns gave tensor\(double\)\[3\] as output 0"),
    "objects in an array": (np.array([Opaque()], object), "tensor(float)", Exception, "output 0"),
    "every other element": (np.arange(6, dtype=np.float32)[::2], "tensor(float)", None, ""),
    "backwards": (np.arange(3, dtype=np.float32)[::-1], "tensor(float)", None, ""),
    "transposed": (np.arange(6, dtype=np.float32).reshape(2, 3).T, "tensor(float)", None, ""),
    "read-only": (np.broadcast_to(np.float32(2), (2, 3)), "tensor(float)", None, ""),
    "a number": (2, "tensor(float)", None, ""),
    "a bool": (True, "tensor(int64)", None, ""),
    "a list": ([1, 2], "tensor(double)", None, ""),
    "an empty list": ([], "tensor(int64)", None, ""),
    "texts": (["a", "bc"], "tensor(string)", None, ""),
    "an element of numpy's": (np.float64(2.5), "tensor(float)", None, ""),
}  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"tier": "reference"}], ids=str)
@pytest.mark.parametrize("what", RETURNED)
def test_the_returned_value_is_the_output_or_an_error(what, options):
    returned, output, kind, message = RETURNED[what]

    @treadle.op("test::Returns", inputs=["tensor(float)"], outputs=[output])
    def returns(x):
        return returned

    made = session("g (float[n] x) => (y) { y = test.Returns (x) }", **options)
    for _ in range(2):
        if kind:
            with pytest.raises(kind, match=message):
                made.run(None, {"x": X})
            continue
        [found] = made.run(None, {"x": X})
        np.testing.assert_array_equal(found, np.array(returned, found.dtype))


def test_outputs_that_are_several():
    returned = None

    @treadle.op("test::Pair", inputs=["tensor(float)"], outputs=["tensor(float)", "tensor(int64)"])
    def pair(x):
        return returned

    both = session("g (float[n] x) => (y, z) { y, z = test.Pair (x) }")
    first = session("g (float[n] x) => (y) { y = test.Pair (x) }")
    returned = (X, None)
    with pytest.raises(TypeError, match=r"test::Pair returned None as output 1, .* of tensor\(int64\)"):
        both.run(None, {"x": X})
    np.testing.assert_array_equal(first.run(None, {"x": X})[0], X)
    returned = [X, 3]
    with pytest.raises(
        ValueError, match=r"returned 1 outputs, expected 2 \(a list is one output, a tuple is several\)"
    ):
        both.run(None, {"x": X})
    returned = (X, 3)
    assert both.run(None, {"x": X})[1] == 3


@pytest.mark.parametrize(
    "returned", [5, "ab", {"a": 1}, [2.5], [[3]], [Opaque()]], ids=str.split("number text dict fraction list object")
)
def test_infer_returns_sizes_or_an_error(returned):
    @treadle.op("test::Infers", outputs=["tensor(float)"], infer=lambda x: returned)
    def infers(x):
        return x

    with pytest.raises(
        TypeError, match="infer of operator test::Infers returned .* as the sizes of output 0, expected"
    ):
        session("g (float[4] x) => (y) { y = test.Infers (x) }")


def test_infer_says_sizes_of_more_outputs_than_a_node_has():
    sizes = ([4], [])

    @treadle.op("test::Two", outputs=["tensor(float)", "tensor(int64)"], infer=lambda x: sizes)
    def two(x):
        return x, len(x)

    made = session("g (float[4] x) => (y) { y = test.Two (x) }")
    assert made.get_outputs()[0].shape == [4]
    np.testing.assert_array_equal(made.run(None, {"x": X})[0], X)
    sizes = ([4], [], [1])
    with pytest.raises(ValueError, match="infer of operator test::Two returned sizes of 3 outputs, expected at most 2"):
        session("g (float[4] x) => (y) { y = test.Two (x) }")


def test_sizes_that_the_model_states():
    """A model's own words about an operator's result are no promise of the operator: results behind it are right."""

    @treadle.op("test::Longer", inputs=["tensor(float)"], outputs=["tensor(float)"])
    def longer(x):
        return np.concatenate([x, x])

    for options in ({}, {"tier": "reference"}):
        made = session("g (float[4] x) => (float[m] z) { y = test.Longer (x)  z = Add (y, y) }", **options)
        np.testing.assert_array_equal(made.run(None, {"x": X})[0], np.concatenate([X, X]) * 2)
        stated = session(
            "g (float[4] x) => (float[4] z) <float[4] y> { y = test.Longer (x)  z = Add (y, y) }", **options
        )
        try:
            found = stated.run(None, {"x": X})[0]
        except treadle.RuntimeException as error:
            assert "test.Longer" in str(error) or "Longer" in str(error)
        else:
            np.testing.assert_array_equal(found, np.concatenate([X, X]) * 2)
