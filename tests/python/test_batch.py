"""treadle.batch: a predictor's results for a table are those of plain loops over its rows."""

import os
import pathlib
import pickle
import subprocess
import sys
import tracemalloc

import models
import numpy as np
import pytest
import treadle
from models import INT64, model, node, value
from onnx import TensorProto, helper
from treadle.batch import Predictor

# y[t] = tanh(y[t - 1] + sum of x[t]) and the last y, over [N, T, 2].
RECURRENT = """<ir_version: 10, opset_import: ["" : 22]>
g (float[N,T,2] x) => (float[N,T] y, float[N] last)
<float[1] zero = {0}, int64[1] two = {2}, int64[1] one = {1}> {
  sums = ReduceSum <keepdims = 0> (x, two)
  n = Shape <start = 0, end = 1> (x)
  begin = Expand (zero, n)
  last, y = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
                  body = b (float[N] h, float[N] e) => (float[N] t, float[N] o) {
    s = Add (h, e)
    t = Tanh (s)
    o = Identity (t)
  }> (begin, sums)
}"""

# A window of 6 samples with 2 of context: its sum times gain, added to the state.
WINDOWS = """<ir_version: 10, opset_import: ["" : 22]>
g (float[N,6] x, float[1,N] state, float gain) => (float[N,1] level, float[1,N] stateN)
<int64[1] one = {1}, int64[2] turned = {1, 0}, int64[1] zero = {0}> {
  sum = ReduceSum <keepdims = 1> (x, one)
  scaled = Mul (sum, gain)
  row = Transpose <perm = [1, 0]> (scaled)
  stateN = Add (state, row)
  level = Transpose <perm = [1, 0]> (stateN)
}"""


def lstm() -> bytes:
    """y[N, T, 3] and the last state [1, N, 3] of an LSTM over x[N, T, 2], told how long its rows are."""
    rng = np.random.default_rng(1)
    weights = {
        name: rng.standard_normal(shape).astype(np.float32) for name, shape in (("W", (1, 12, 2)), ("R", (1, 12, 3)))
    }
    return model(
        [
            node("Transpose", ["x"], ["xt"], perm=[1, 0, 2]),
            node("LSTM", ["xt", "W", "R", "", "lengths"], ["yt", "last"], hidden_size=3),
            node("Squeeze", ["yt", "one"], ["ys"]),
            node("Transpose", ["ys"], ["y"], perm=[1, 0, 2]),
        ],
        [value("x", shape=["N", "T", 2]), value("lengths", TensorProto.INT32, ["N"])],
        [value("y", shape=["N", "T", 3]), value("last", shape=[1, "N", 3])],
        initializers=[
            *(helper.make_tensor(name, models.FLOAT, w.shape, w.tobytes(), raw=True) for name, w in weights.items()),
            helper.make_tensor("one", INT64, [1], [1]),
        ],
    )


def picked() -> bytes:
    """y[n] = table[i[n]]: an index out of range makes the operator fail."""
    table = helper.make_tensor("table", models.FLOAT, [4], [10.0, 11.0, 12.0, 13.0])
    return model(
        [node("Gather", ["table", "i"], ["y"])],
        [value("i", INT64, ["n"])],
        [value("y", shape=["n"])],
        initializers=[table],
    )


def ragged(*rows):
    column = np.empty(len(rows), object)
    for i, row in enumerate(rows):
        column[i] = row
    return column


def signals(*lengths, width=2):
    rng = np.random.default_rng(7)
    return ragged(*(rng.standard_normal((length, width)).astype(np.float32) for length in lengths))


def assert_rows(found, expected, **tolerance):
    assert found.dtype == object and found.shape == (len(expected),)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, **tolerance)


def test_a_dense_column_is_one_run():
    predict = Predictor(models.add(), outputs={"z": "sums"}, keep=["id"], bind={"y": np.float32([1, 2, 3])})
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    before = predict.session.counters()["runs"]
    found = predict({"x": x, "id": np.arange(4), "more": np.zeros(4)})
    assert list(found) == ["id", "sums"]
    np.testing.assert_array_equal(found["sums"], x + [1, 2, 3])
    np.testing.assert_array_equal(found["id"], np.arange(4))
    assert predict.session.counters()["runs"] == before + 1


def test_columns_by_their_names_and_rows_that_are_lists():
    predict = Predictor(models.add(), inputs={"x": "left"}, bind={"y": [1.0, 2.0, 3.0]})
    assert predict.reads == ["left"]
    for column in (
        [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
        [np.float32([1, 2, 3]), [4, 5, 6]],
        ragged([1, 2, 3], (4.0, 5, 6)),
    ):
        np.testing.assert_array_equal(predict({"left": column})["z"], np.float32([[2, 4, 6], [5, 7, 9]]))


def test_rows_of_equal_length_run_together():
    session = treadle.InferenceSession(RECURRENT.encode())
    predict = Predictor(session)
    rows = signals(3, 5, 3, 1, 5, 3)
    before = session.counters()["runs"]
    found = predict({"x": rows})
    assert session.counters()["runs"] == before + 3  # lengths
    expected = [session.run(None, {"x": row[None]}) for row in rows]
    assert_rows(found["y"], [y[0] for y, _ in expected], rtol=1e-6)
    np.testing.assert_allclose(found["last"], np.concatenate([last for _, last in expected]), rtol=1e-6)


@pytest.mark.parametrize("lengths", [(4,), (4, 4), ()])
def test_ragged_results_are_objects_for_all_sizes(lengths):
    predict = Predictor(RECURRENT.encode())
    dense = np.zeros((len(lengths), 4, 2), np.float32)
    for column in (dense, signals(*lengths)):
        found = predict({"x": column})
        assert found["y"].dtype == object and found["y"].shape == (len(lengths),)
        assert [row.shape for row in found["y"]] == [(4,)] * len(lengths)
        assert found["last"].dtype == np.float32 and found["last"].shape == (len(lengths),)


def test_rows_that_lie_flat_or_nested():
    predict = Predictor(RECURRENT.encode())
    rows = signals(3, 5)
    expected = predict({"x": rows})
    flat = ragged(*(row.ravel() for row in rows))
    nested = ragged(*(ragged(*row) for row in rows))
    lists = ragged(*(row.tolist() for row in rows))
    for other in (flat, nested, lists):
        found = predict({"x": other})
        assert_rows(found["y"], expected["y"])
    with pytest.raises(
        treadle.InvalidArgument, match=r"row 1: column 'x': input 'x' takes float32 \[T, 2\], found float32 \[7\]"
    ):
        predict({"x": ragged(rows[0].ravel(), np.zeros(7, np.float32))})


def test_a_model_that_takes_one_row():
    fixed = treadle.SessionOptions()
    fixed.add_free_dimension_override_by_name("N", 1)
    predict = Predictor(RECURRENT.encode(), sess_options=fixed)
    assert predict.why_single == "input 'x' takes one row: the size of its first axis is 1"
    together = Predictor(RECURRENT.encode())
    rows = signals(3, 5, 3)
    for column in (rows, np.stack([rows[0], rows[2]])):
        found, expected = predict({"x": column}), together({"x": column})
        assert_rows(found["y"], expected["y"], rtol=1e-6)
        np.testing.assert_allclose(found["last"], expected["last"], rtol=1e-6)


def test_rows_with_all_axes_are_runs_of_their_own():
    session = treadle.InferenceSession(models.division())  # y[n] = 100 / x[n], in a loop: no batch
    found = Predictor(session)({"x": ragged(np.int64([1, 2, 5]), np.int64([10]))})
    assert_rows(found["y"], [np.int64([100, 50, 20]), np.int64([10])])
    found = Predictor(session)({"x": np.int64([[1, 2], [4, 5]])})
    assert_rows(found["y"], [np.int64([100, 50]), np.int64([25, 20])])


def test_several_inputs():
    predict = Predictor(models.model(
        [node("Mul", ["x", "w"], ["m"]), node("ReduceSum", ["m", "one"], ["s"], keepdims=0), node("Neg", ["m"], ["o"])],
        [value("x", shape=["n", "k"]), value("w", shape=["n", "k"])],
        [value("s", shape=["n"]), value("o", shape=["n", "k"])],
        initializers=[helper.make_tensor("one", INT64, [1], [1])],
    ), inputs={"w": "weight"}, outputs={"o": "negative", "s": "sum"})  # fmt: skip
    x = ragged(*(np.arange(n, dtype=np.float32) for n in (2, 3, 2)))
    w = ragged(*(np.full(n, 2, np.float32) for n in (2, 3, 2)))
    found = predict({"weight": w, "x": x})
    assert list(found) == ["negative", "sum"]
    np.testing.assert_array_equal(found["sum"], np.float32([2, 6, 2]))
    assert_rows(found["negative"], [-2 * row for row in x])
    with pytest.raises(treadle.InvalidArgument, match="each, found: 'x' has 3, 'weight' has 2"):
        predict({"weight": w[:2], "x": x})


def test_strings():
    predict = Predictor(models.identity(TensorProto.STRING, ["n"]), keep=["x"], outputs={"y": "out"})
    for column in (np.array(["a", "bc", ""]), np.array(["a", "bc", ""], object), ["a", "bc", ""]):
        found = predict({"x": column})
        assert found["out"].tolist() == ["a", "bc", ""]
    of_rows = Predictor(models.identity(TensorProto.STRING, ["n", "k"]))({"x": ragged(["a"], ["b", "c"])})
    assert [row.tolist() for row in of_rows["y"]] == [["a"], ["b", "c"]]
    with pytest.raises(treadle.InvalidArgument, match="row 1: column 'x': input 'x' takes strings"):
        predict({"x": np.array(["a", 5], object)})


def test_outputs_that_are_no_tensors():
    """An entry of a sequence for each row."""
    split = helper.make_tensor_sequence_value_info("parts", models.FLOAT, None)
    data = models.model([node("SplitToSequence", ["x"], ["parts"], axis=0)], [value("x", shape=["n", 2])], [split])
    found = Predictor(data)({"x": np.arange(6, dtype=np.float32).reshape(3, 2)})
    assert found["parts"].dtype == object
    assert [row.ravel().tolist() for row in found["parts"]] == [[0, 1], [2, 3], [4, 5]]


def test_rows_are_padded_only_with_their_lengths():
    session = treadle.InferenceSession(lstm())
    predict = Predictor(session, lengths="lengths")
    rows = signals(*np.random.default_rng(2).integers(1, 90, 60))
    before = session.counters()["runs"]
    found = predict({"x": rows})
    assert 1 < session.counters()["runs"] - before <= 4
    alone = [session.run(None, {"x": row[None], "lengths": np.int32([len(row)])}) for row in rows]
    assert_rows(found["y"], [y[0] for y, _ in alone], atol=1e-6)
    np.testing.assert_allclose(found["last"][:, 0], np.stack([last[0, 0] for _, last in alone]), atol=1e-6)
    assert found["last"].shape == (60, 1, 3)


def test_padded_rows_beside_values_of_one_size():
    """Rows are sorted by their lengths, and so are the values that belong to them."""
    data = model(
        [
            node("Unsqueeze", ["s", "one"], ["column"]),
            node("Mul", ["x", "column"], ["y"]),
            node("Identity", ["lengths"], ["n"]),
        ],
        [value("x", shape=["N", "T"]), value("s", shape=["N"]), value("lengths", INT64, ["N"])],
        [value("y", shape=["N", "T"]), value("n", INT64, ["N"])],
        initializers=[helper.make_tensor("one", INT64, [1], [1])],
    )
    rows = ragged(*(np.arange(n, dtype=np.float32) for n in (2, 5, 3)))
    found = Predictor(data, lengths="lengths")({"x": rows, "s": np.float32([10, 20, 30])})
    assert_rows(found["y"], [row * scale for row, scale in zip(rows, np.float32([10, 20, 30]), strict=True)])
    assert found["n"].tolist() == [2, 5, 3]


def test_what_padding_needs():
    with pytest.raises(treadle.InvalidArgument, match="lengths: the model has no input 'n'"):
        Predictor(lstm(), lengths="n")
    with pytest.raises(
        treadle.InvalidArgument, match=r"input 'x' takes float32 \[N, T, 2\], expected int32 or int64 \[rows\]"
    ):
        Predictor(lstm(), lengths="x")
    halves = model(
        [node("Slice", ["x", "begin", "end", "axis", "two"], ["y"]), node("Identity", ["lengths"], ["n"])],
        [value("x", shape=["N", "T"]), value("lengths", INT64, ["N"])],
        [value("y", shape=["N", "half"]), value("n", INT64, ["N"])],
        initializers=[
            helper.make_tensor(name, INT64, [1], [v])
            for name, v in (("begin", 0), ("end", 10**9), ("axis", 1), ("two", 2))
        ],
    )
    with pytest.raises(treadle.InvalidArgument, match=r"axis 1 of output 'y' \(half\) is not the length \(T\)"):
        Predictor(halves, lengths="lengths")
    assert Predictor(halves, lengths="lengths", outputs={"n": "n"})({"x": [[1.0], [2.0, 3.0]]})["n"].tolist() == [1, 2]


def stream_of_row(session, row, **roles):
    """The joined results of the row's own stream; a list with one entry per output."""
    stream = session.stream(**roles)
    parts = [stream.push(row), stream.flush()]
    several = len(stream.output_names) > 1
    found = []
    for i, axis in enumerate(stream.output_axes.values()):
        values = [part[i] if several else part for part in parts]
        found.append([v for v in values if v is not None][-1] if axis is None else np.concatenate(values, axis))
    return found


@pytest.mark.parametrize("block", [1, 100, 1 << 18])
@pytest.mark.parametrize("lengths", [(30, 7, 100, 1, 30), (64,), (4, 4)])
def test_signals_over_time(monkeypatch, block, lengths):
    monkeypatch.setattr("treadle.batch._signals._BLOCK", block)
    session = treadle.InferenceSession(RECURRENT.encode())
    predict = Predictor(session, time={"x": 1}, keep=["id"])
    assert predict.why_single == ""
    rows = signals(*lengths)
    found = predict({"x": rows, "id": np.arange(len(lengths))})
    alone = [stream_of_row(session, row[None], time={"x": 1}) for row in rows]
    assert_rows(found["y"], [y[0] for y, _ in alone], atol=1e-6)
    np.testing.assert_allclose(found["last"], np.stack([last[0] for _, last in alone]), atol=1e-6)
    whole = Predictor(session, time={"x": 1})({"x": ragged(*(row[None] for row in rows))})
    assert_rows(whole["y"], [y for y, _ in alone], atol=1e-6)


@pytest.mark.parametrize("streams", [1, 3, 256])
def test_signals_in_windows(monkeypatch, streams):
    """A hop, a context, a state and a last window that is filled up with zeros."""
    monkeypatch.setattr("treadle.batch._signals._STREAMS", streams)
    monkeypatch.setattr("treadle.batch._signals._BLOCK", 60)
    session = treadle.InferenceSession(WINDOWS.encode())
    roles = {"time": {"x": 1}, "hop": 4, "context": 2, "bind": {"gain": np.float32(0.5)}}
    rows = ragged(*(row[:, 0] for row in signals(40, 7, 0, 8, 3, 41)))
    found = Predictor(session, outputs={"level": "level"}, **roles)({"x": rows})
    alone = [stream_of_row(session, row[None], **roles)[0] for row in rows]
    assert [len(row) for row in found["level"]] == [10, 2, 0, 2, 1, 11]
    assert_rows(found["level"], [level[:, 0] for level in alone], atol=1e-5)


def test_a_dense_column_of_signals():
    predict = Predictor(WINDOWS.encode(), time={"x": 1}, hop=4, context=2, bind={"gain": 1.0})
    x = np.arange(24, dtype=np.float32).reshape(2, 12)
    windows = [[x[i, max(at - 2, 0) : at + 4].sum() for at in (0, 4, 8)] for i in range(2)]
    assert_rows(predict({"x": x})["level"], [np.cumsum(sums, dtype=np.float32)[:, None] for sums in windows], rtol=1e-6)


def test_memory_is_bounded_by_blocks():
    """Ten times the recording takes as much beside its results, which are one number for 4,000 samples."""
    predict = Predictor(
        model([node("ReduceMean", ["x", "one"], ["y"], keepdims=1)], [value("x", shape=["N", 4000])], [value("y", shape=["N", 1])],
              initializers=[helper.make_tensor("one", INT64, [1], [1])]),
        time={"x": 1}, hop=4000,
    )  # fmt: skip
    took = {}
    for samples in (4_000_000, 40_000_000):
        column = ragged(np.zeros(samples, np.float32), np.ones(samples // 2, np.float32))
        predict({"x": column})
        tracemalloc.start()
        found = predict({"x": column})
        took[samples] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found["y"][0].shape == (samples // 4000, 1) and (found["y"][1] == 1).all()
    assert took[40_000_000] < 8_000_000


def test_bad_rows_go_into_the_error_column():
    predict = Predictor(picked(), on_error="column", keep=["id"])
    found = predict({"i": np.int64([0, 3, 99, 1, -50]), "id": np.arange(5)})
    assert list(found) == ["id", "y", "error"]
    np.testing.assert_array_equal(found["y"][[0, 1, 3]], np.float32([10, 13, 11]))
    assert np.isnan(found["y"][[2, 4]]).all()
    assert [bool(text) for text in found["error"]] == [False, False, True, False, True]
    assert "99" in found["error"][2] and "-50" in found["error"][4]
    with pytest.raises(treadle.RuntimeException, match="row 2: .*99") as raised:
        Predictor(picked())({"i": np.int64([0, 3, 99, 1])})
    assert raised.value.code


def test_rows_of_wrong_types_and_sizes():
    rows = signals(4, 5, 4, 4, 4)
    rows[1] = rows[1].astype(np.float64)
    rows[2] = None
    rows[4] = np.zeros((4, 3), np.float32)
    found = Predictor(RECURRENT.encode(), on_error="column")({"x": rows})
    assert found["error"].tolist() == [
        "",
        "column 'x': input 'x' takes float32 [T, 2], found float64 [5, 2]",
        "column 'x': input 'x' takes float32 [T, 2], found nothing (None)",
        "",
        "column 'x': input 'x' takes float32 [T, 2], found float32 [4, 3]",
    ]
    assert [row.shape for row in found["y"]] == [(4,), (0,), (0,), (4,), (0,)]
    assert np.isnan(found["last"]).tolist() == [False, True, True, False, True]
    with pytest.raises(treadle.InvalidArgument, match="row 1: .* found float64"):
        Predictor(RECURRENT.encode())({"x": rows})


def test_a_bad_signal_spoils_no_other():
    session = treadle.InferenceSession(RECURRENT.encode())
    good = Predictor(session, time={"x": 1})
    rows = signals(10, 5, 700, 3)
    expected = good({"x": rows})
    bad = ragged(rows[0], rows[1].astype(np.float64), *rows[2:], None, np.zeros((3, 5), np.float32), "text")
    found = Predictor(session, time={"x": 1}, on_error="column")({"x": bad})
    assert [bool(text) for text in found["error"]] == [False, True, False, False, True, True, True]
    assert_rows(found["y"][[0, 2, 3]], expected["y"][[0, 2, 3]], rtol=1e-6)
    assert [found["y"][i].shape for i in (1, 4, 5, 6)] == [(0,)] * 4


# The sample at an index that the signal itself says: a bad one fails in the middle of the stream.
POISONED = """<ir_version: 10, opset_import: ["" : 22]>
g (int64[N,2] x, float[N] state) => (float[N] y, float[N] stateN) <float[3] table = {1, 2, 3}, int64[1] one = {1}> {
  sum = ReduceSum <keepdims = 0> (x, one)
  y = Gather (table, sum)
  stateN = Add (state, y)
}"""


def test_a_signal_that_fails_in_the_middle():
    predict = Predictor(POISONED.encode(), time={"x": 1}, hop=2, on_error="column")
    rows = ragged(*(np.zeros(n, np.int64) for n in (20, 30, 20)))
    rows[1][17] = 77
    found = predict({"x": rows})
    assert [bool(text) for text in found["error"]] == [False, True, False] and "77" in found["error"][1]
    assert [row.tolist() for row in found["y"]] == [[1.0] * 10, [], [1.0] * 10]
    with pytest.raises(treadle.RuntimeException, match="row 1: .*77"):
        Predictor(POISONED.encode(), time={"x": 1}, hop=2)({"x": rows})


def test_a_batch_that_is_wrong_as_a_whole_always_raises():
    predict = Predictor(models.add(), keep=["id"], bind={"y": np.zeros(3, np.float32)}, on_error="column")
    x, ids = np.zeros((2, 3), np.float32), np.arange(2)
    with pytest.raises(treadle.InvalidArgument, match=r"no column 'x', from which input 'x' is read \(columns: id\)"):
        predict({"id": ids})
    with pytest.raises(treadle.InvalidArgument, match=r"no column 'id', which is to be kept \(columns: x\)"):
        predict({"x": x})
    with pytest.raises(treadle.InvalidArgument, match="found: 'x' has 2, 'id' has 3"):
        predict({"x": x, "id": np.arange(3)})
    with pytest.raises(
        treadle.InvalidArgument, match=r"takes rows of float32 \[3\], found float64 \[3\]; give the column as float32"
    ):
        predict({"x": x.astype(np.float64), "id": ids})
    with pytest.raises(treadle.InvalidArgument, match="column 'x' is a single float32"):
        predict({"x": np.float32(1), "id": ids})


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"inputs": {"w": "a"}}, treadle.InvalidArgument, "inputs: there is no 'w' to be in a column"),
        ({"outputs": {"zz": "a"}}, treadle.InvalidArgument, r"outputs: there is no 'zz' .*\(there is: z\)"),
        ({"inputs": ["x"]}, TypeError, "inputs is a dict from the model's names to columns, not a list"),
        ({"keep": "id"}, TypeError, "keep is a list of columns, not the text 'id'"),
        ({"keep": ["z"]}, treadle.InvalidArgument, "column 'z' would be written twice"),
        (
            {"outputs": {"z": "error"}, "on_error": "column"},
            treadle.InvalidArgument,
            "column 'error' would be written twice",
        ),
        ({"on_error": "ignore"}, ValueError, "on_error is 'raise' or 'column', not 'ignore'"),
        ({"threads": 0}, ValueError, "at least 1, not 0"),
        ({"hop": 5}, TypeError, "hop is for signals: say in time="),
        ({"hopp": 5}, TypeError, "no argument 'hopp'; did you mean 'hop'"),
        ({"time": {"x": 1}, "lengths": "y"}, TypeError, "not both"),
        ({"time": {"x": 1}}, treadle.InvalidArgument, "."),
        ({"bind": {"q": 1}}, treadle.InvalidArgument, "bind: the model has no input 'q'"),
        ({"bind": {"x": [[1.0] * 3], "y": [1.0] * 3}}, treadle.InvalidArgument, "no input is left for columns"),
        ({"progress": 5}, TypeError, "progress is True or is called with"),
    ],
)
def test_wrong_arguments(arguments, kind, message):
    with pytest.raises(kind, match=message):
        Predictor(models.add(), **arguments)


def test_a_session_has_its_options_already():
    session = treadle.InferenceSession(models.add())
    with pytest.raises(TypeError, match="a session has its options already"):
        Predictor(session, threads=2)
    assert Predictor(session).session is session


def test_inputs_that_time_says_nothing_about():
    with pytest.raises(treadle.InvalidArgument, match="input 'gain' is neither bound, nor a state, nor does time= say"):
        Predictor(WINDOWS.encode(), time={"x": 1}, hop=4, context=2)


def test_a_fixed_number_of_rows_is_refused():
    data = model([node("Neg", ["x"], ["y"])], [value("x", shape=[8, 2])], [value("y", shape=[8, 2])])
    with pytest.raises(treadle.InvalidArgument, match="that of the rows, is fixed at 8"):
        Predictor(data)({"x": np.zeros((3, 2), np.float32)})


def test_an_output_without_an_entry_for_each_row():
    data = model([node("NonZero", ["x"], ["y"])], [value("x", shape=["n"])], [value("y", INT64, ["r", "k"])])
    with pytest.raises(
        treadle.InvalidArgument,
        match=r"output 'y' came as int64 \[1, 2\] from a run over 3 rows: expected 3 along axis 1",
    ):
        Predictor(data, on_error="column")({"x": np.float32([1, 0, 2])})


def test_threads(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    options = treadle.SessionOptions()

    def threads(**arguments):
        return Predictor(models.add(), **arguments).session.get_session_options().intra_op_num_threads

    assert threads() == 1 and threads(threads=3) == 3
    assert threads(sess_options=options) == 1 and options.intra_op_num_threads == 0
    options.intra_op_num_threads = 2
    assert threads(sess_options=options) == 2
    with pytest.raises(ValueError, match="threads=3, but sess_options say intra_op_num_threads=2"):
        threads(sess_options=options, threads=3)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert threads() == 0  # which sessions take the environment's number for
    assert threads(threads=1) == 1


def test_progress():
    told = []
    tell = lambda done, total: told.append((done, total))  # noqa: E731
    rows = signals(3, 5, 3)
    Predictor(RECURRENT.encode(), progress=tell)({"x": rows})
    assert told == [(2, 3), (3, 3)]
    told.clear()
    Predictor(RECURRENT.encode(), progress=tell, time={"x": 1})({"x": rows})
    assert told[-1] == (11, 11) and told == sorted(told)

    def stop(done, total):
        raise KeyError("enough")

    for more in ({}, {"time": {"x": 1}}):
        with pytest.raises(KeyError, match="enough"):
            Predictor(RECURRENT.encode(), progress=stop, on_error="column", **more)({"x": rows})


@pytest.mark.parametrize("as_path", [True, False])
def test_pickling(tmp_path, as_path, monkeypatch):
    path = tmp_path / "model.onnx"
    path.write_bytes(treadle.parse_model(RECURRENT))
    monkeypatch.chdir(tmp_path)
    predict = Predictor("model.onnx" if as_path else path.read_bytes(), time={"x": 1}, on_error="column", keep=["id"])
    batch = {"x": signals(5, 9), "id": np.arange(2)}
    pickled = pickle.dumps(predict)
    monkeypatch.chdir("/")
    other = pickle.loads(pickled)
    assert (
        repr(other) == repr(predict) == "<treadle.batch.Predictor: x -> id, y, last, error, rows as streams of a pool>"
    )
    assert_rows(other(batch)["y"], predict(batch)["y"])
    path.unlink()
    if as_path:
        with pytest.raises(treadle.NoSuchFile, match="put the model where both can read it"):
            pickle.loads(pickled)


def test_a_predictor_of_a_session_pickles():
    predict = Predictor(treadle.InferenceSession(models.add()), bind={"y": np.zeros(3, np.float32)})
    assert repr(pickle.loads(pickle.dumps(predict))) == "<treadle.batch.Predictor: x -> z, rows together>"


def test_numpy_is_all_that_it_needs():
    code = "import sys, treadle.batch; sys.exit(any(m in sys.modules for m in ('pyarrow', 'pandas', 'ray', 'onnx')))"
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(treadle.__file__).parents[1])}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
