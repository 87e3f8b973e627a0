"""Runs and steps over arrays that are bound once: they read and write the arrays in place, and give what runs and pushes do."""

import numpy as np
import pytest
import treadle

CELL = """<ir_version: 10, opset_import: ["" : 22]>
cell (float[1, 4] x, float[1, 4] h) => (float[1, 4] y, float[1, 4] hN) <float[4, 4] w = {
  0.5, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 0.5}> {
  a = MatMul (h, w)
  hN = Add (a, x)
  y = Tanh (hN)
}"""
CHOSEN = """<ir_version: 10, opset_import: ["" : 22]>
g (float[N] x) => (int64[1, M] y) { y = NonZero (x) }"""
TEXTS = """<ir_version: 10, opset_import: ["" : 22]>
g (float[1] x) => (string[1] y) { y = Cast <to = 8> (x) }"""


def session_of(text):
    return treadle.InferenceSession(treadle.parse_model(text))


def row(seed):
    return np.random.default_rng(seed).standard_normal((1, 4)).astype(np.float32)


def test_a_bound_run_reads_and_writes_arrays_in_place():
    session = session_of(CELL)
    x, h = row(1), row(2)
    bound = session.bind(None, {"x": x, "h": h})
    assert bound.why is None
    places = bound.outputs
    for seed in range(5):
        x[:] = row(seed)
        results = bound.run()
        assert all(result is place for result, place in zip(results, places, strict=True))
        for result, expected in zip(results, session.run(None, {"x": x, "h": h}), strict=True):
            np.testing.assert_array_equal(result, expected)


def test_arrays_for_results_are_written():
    session = session_of(CELL)
    y = np.zeros((1, 4), np.float32)
    x, h = row(1), row(2)
    bound = session.bind(["hN", "y"], {"x": x, "h": h}, outputs={"y": y})
    assert bound.run()[1] is y
    np.testing.assert_array_equal(y, session.run(["y"], {"x": x, "h": h})[0])


def test_results_larger_than_what_is_copied():
    session = session_of(
        """<ir_version: 10, opset_import: ["" : 22]>
        g (float[N] x) => (float[N] y) { y = Neg (x) }"""
    )
    x = np.arange(100_000, dtype=np.float32)
    bound = session.bind(None, {"x": x})
    first = bound.run()[0]
    x += 1
    assert bound.run()[0] is first
    np.testing.assert_array_equal(first, -x)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": np.zeros((1, 4)), "h": row(1)}, "'x' cannot be used in place|float"),
        ({"x": np.zeros((1, 8), np.float32)[:, ::2], "h": row(1)}, "'x' cannot be used in place"),
        ({"x": np.zeros((1, 5), np.float32), "h": row(1)}, "x"),
    ],
)
def test_what_does_not_fit_is_refused(given, message):
    with pytest.raises(treadle.InvalidArgument, match=message):
        session_of(CELL).bind(None, given)


def test_other_refusals():
    session = session_of(CELL)
    x, h = row(1), row(2)
    with pytest.raises(TypeError, match="numpy arrays"):
        session.bind(None, {"x": [[1, 2, 3, 4]], "h": h})
    with pytest.raises(treadle.InvalidArgument, match="no output 'z'"):
        session.bind(None, {"x": x, "h": h}, outputs={"z": x})
    with pytest.raises(treadle.InvalidArgument, match="does not fit: expected"):
        session.bind(["y"], {"x": x, "h": h}, outputs={"y": np.zeros((1, 5), np.float32)})
    with pytest.raises(treadle.InvalidArgument, match="has memory of input 'x'"):
        session.bind(["y"], {"x": x, "h": h}, outputs={"y": x})
    frozen = np.zeros((1, 4), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(treadle.InvalidArgument, match="may be written"):
        session.bind(["y"], {"x": x, "h": h}, outputs={"y": frozen})


def test_results_whose_sizes_depend_on_data_come_as_new_arrays():
    x = np.array([1, 0, 2], np.float32)
    bound = session_of(CHOSEN).bind(None, {"x": x})
    assert bound.why
    np.testing.assert_array_equal(bound.run()[0], [[0, 2]])
    x[:] = 0, 0, 3
    np.testing.assert_array_equal(bound.run()[0], [[2]])


def test_texts():
    x = np.array([2], np.float32)
    bound = session_of(TEXTS).bind(None, {"x": x})
    assert bound.run()[0].tolist() == ["2"]
    x[0] = 3
    assert bound.run()[0].tolist() == ["3"]


def test_steps_are_like_pushes():
    session = session_of(CELL)
    stepped, pushed = session.stream(), session.stream()
    x = np.zeros((1, 4), np.float32)
    place = stepped.bind(x=x)
    for seed in range(8):
        x[:] = row(seed)
        assert stepped.step() is place
        np.testing.assert_array_equal(place, pushed.push(x))
        np.testing.assert_array_equal(stepped.state["h"], pushed.state["h"])
    assert "steps are bound" in str(stepped)


def test_a_step_needs_something_bound():
    stream = session_of(CELL).stream()
    with pytest.raises(treadle.InvalidArgument, match="nothing is bound"):
        stream.step()
    x = row(1)
    stream.bind(x)
    stream.step()
    with pytest.raises(treadle.InvalidArgument, match="nothing is bound"):
        stream.fork().step()
    stream.unbind()
    with pytest.raises(treadle.InvalidArgument, match="nothing is bound"):
        stream.step()
    with stream:
        stream.bind(x)
    with pytest.raises(ValueError, match="closed"):
        stream.step()


def test_steps_write_into_the_array_that_is_given():
    stream = session_of(CELL).stream()
    x, y = row(1), np.zeros((1, 4), np.float32)
    assert stream.bind({"x": x}, outputs={"y": y}) is y
    assert stream.step() is y
    np.testing.assert_array_equal(y, session_of(CELL).stream().push(x))
