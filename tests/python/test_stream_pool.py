"""Streams that run together give what each gives on its own."""

import models
import numpy as np
import pytest
import treadle
from models import node, value
from onnx import numpy_helper
from test_stream_over_time import CASES, convolution_and_gru, loop_case, stack_of_lstms

RNG = np.random.default_rng(3)


def frames(parts, axis):
    return np.concatenate(parts, axis=axis)


def weights(**arrays):
    return [numpy_helper.from_array(w, name) for name, w in arrays.items()]


def normal(*shape):
    return (RNG.standard_normal(shape) * 0.3).astype(np.float32)


def gru_model(batch="B"):
    """Samples [batch, 4, T] through a strided convolution with pads on both sides, an operand that waits, and a GRU."""
    return models.model(
        [
            node("Conv", ["x", "w"], ["c"], pads=[1, 1], strides=[2]),
            node("Conv", ["c", "v"], ["d"], pads=[2, 2]),
            node("Add", ["c", "d"], ["e"]),
            node("Transpose", ["e"], ["t"], perm=[2, 0, 1]),
            node("GRU", ["t", "W", "R"], ["g", "h"], hidden_size=6),
            node("Squeeze", ["g", "one"], ["y"]),
        ],
        [value("x", shape=[batch, 4, "T"])],
        [value("y", shape=None), value("h", shape=None)],
        initializers=weights(
            w=normal(5, 4, 3), v=normal(5, 5, 5), W=normal(1, 18, 5), R=normal(1, 18, 6), one=np.array([1], np.int64)
        ),
    )


def join_and_leave(session, pool, alone, length, cut, joined, streams=64, rounds=60):
    """Random chunks of random streams, which begin, pause, end and begin again; returns how many signals have ended."""
    signals, at, single, got, want, ended = {}, {}, {}, {}, {}, 0
    for _ in range(rounds):
        chosen = RNG.choice(streams, size=RNG.integers(1, streams + 1), replace=False).tolist()
        chunks = {}
        for i in chosen:
            if i not in single:
                signals[i], at[i], single[i] = normal(*length), 0, alone()
                got[i], want[i] = [], []
            size = int(RNG.choice([0, 1, 3, 8, 20]))
            chunks[i] = cut(signals[i], at[i], at[i] + size)
            at[i] += size
            want[i].append(single[i].push(x=chunks[i]))
        for i, out in pool.push(chunks).items():
            got[i].append(out)
        for i in chosen:
            if at[i] <= 60 and RNG.random() > 0.05:
                continue
            got[i].append(pool.flush(i))
            want[i].append(single[i].flush())
            for k, axis in enumerate(joined):
                np.testing.assert_allclose(
                    frames([o[k] for o in got[i]], axis), frames([o[k] for o in want[i]], axis), atol=1e-6
                )
            del single[i]
            ended += 1
    assert len(pool) == len(single)
    return ended


def test_64_streams_join_and_leave_at_random():
    session = treadle.InferenceSession(gru_model())
    pool = session.streams(64, time={"x": 2})
    assert pool.why_single == "" and pool.output_names == ["y", "h"]
    ended = join_and_leave(
        session, pool, lambda: session.stream(time={"x": 2}), (1, 4, 400), lambda x, a, b: x[:, :, a:b], [0]
    )
    assert ended > 20


def windows_model():
    """Over windows: a declared state [2, B, 3] and an output per run."""
    return models.model(
        [
            node("ReduceSum", ["x", "axis"], ["sum"], keepdims=1),
            node("Mul", ["sum", "gains"], ["fresh"]),
            node("Mul", ["state", "decay"], ["old"]),
            node("Add", ["old", "fresh"], ["stateN"]),
            node("ReduceSum", ["stateN", "outer"], ["level"], keepdims=0),
        ],
        [value("x", shape=["B", "N"]), value("state", shape=[2, "B", 3])],
        [value("level", shape=["B", 3]), value("stateN", shape=[2, "B", 3])],
        initializers=weights(
            axis=np.array([1], np.int64),
            outer=np.array([0], np.int64),
            gains=normal(1, 3),
            decay=np.array(0.5, np.float32),
        ),
    )


def test_windows_with_a_declared_pair():
    session = treadle.InferenceSession(windows_model())
    roles = {"state": {"state": "stateN"}, "time": {"x": 1}, "hop": 4, "context": 2}
    pool = session.streams(64, **roles)
    assert pool.why_single == ""

    class One:
        """The one output as a list, as of several."""

        def __init__(self):
            self.stream = session.stream(**roles)

        def push(self, **chunk):
            return [self.stream.push(**chunk)]

        def flush(self):
            return [self.stream.flush()]

    class Lists:
        def push(self, chunks):
            return {i: [out] for i, out in pool.push(chunks).items()}

        def flush(self, i):
            return [pool.flush(i)]

        def __len__(self):
            return len(pool)

    assert join_and_leave(session, Lists(), One, (1, 400), lambda x, a, b: x[:, a:b], [0]) > 20


def test_streams_run_together():
    session = treadle.InferenceSession(gru_model())
    pool = session.streams(64, time={"x": 2})
    chunks = {i: normal(1, 4, 16) for i in range(64)}
    pool.push(chunks)  # the first block of each
    before = pool.runs
    for _ in range(5):
        pool.push(chunks)
    assert pool.runs - before == 5
    pool.push({i: chunk[:, :, : 16 if i < 10 else 8] for i, chunk in chunks.items()})
    assert pool.runs - before == 7  # all for as long as all have samples, then ten of them


def expect_as_alone(case, pool, session, streams, exact):
    """A few pushes to each stream of the pool beside streams of their own."""
    singles = {i: session.stream(time={"x": case.axis}) for i in range(streams)}
    compare = np.testing.assert_array_equal if exact else lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6)
    for _ in range(4):
        chunks = {i: case.signal(6) for i in singles}
        for i, out in pool.push(chunks).items():
            want = singles[i].push(x=chunks[i])
            for g, w in zip(*([out], [want]) if len(pool.output_names) == 1 else (out, want), strict=True):
                compare(g, w)


# A batch that the model fixes at one is a batch all the same, where nothing in the model mixes its entries.
def test_a_batch_that_the_model_fixes_at_one():
    case = convolution_and_gru()
    session = treadle.InferenceSession(case.model)
    pool = session.streams(8, time={"x": case.axis})
    assert pool.why_single == ""
    expect_as_alone(case, pool, session, 8, exact=False)


@pytest.mark.parametrize(
    ("case", "why"),
    [
        (CASES["positions"], "has no batch"),
        (CASES["scan"], "has no batch"),
        (CASES["time and batch in one axis"], "Reshape"),
        (stack_of_lstms(), "has no batch"),
    ],
)
def test_models_that_have_no_batch_run_one_by_one(case, why):
    session = treadle.InferenceSession(case.model)
    pool = session.streams(4, time={"x": case.axis})
    assert why in pool.why_single
    expect_as_alone(case, pool, session, 3, exact=True)


def test_a_state_that_is_one_for_the_whole_batch():
    """Positions are counted from where each stream began."""
    model = models.model(
        [
            node("Shape", ["x"], ["n"], start=1, end=2),
            node("Squeeze", ["n"], ["t"]),
            node("Range", ["zero", "t", "one"], ["r"]),
            node("Cast", ["r"], ["rf"], to=models.FLOAT),
            node("Add", ["x", "rf"], ["y"]),
        ],
        [value("x", shape=["B", "T"])],
        [value("y", shape=None)],
        initializers=weights(zero=np.array(0, np.int64), one=np.array(1, np.int64)),
    )
    pool = treadle.InferenceSession(model).streams(2, time={"x": 1})
    assert "one for the whole batch" in pool.why_single
    pool.push({0: np.zeros((1, 3), np.float32)})
    got = pool.push({0: np.zeros((1, 2), np.float32), 1: np.zeros((1, 2), np.float32)})
    assert got[0].tolist() == [[3, 4]] and got[1].tolist() == [[0, 1]]


def test_entries_that_mix_are_found():
    model = models.model(
        [node("ReduceMax", ["x", "zero"], ["m"], keepdims=1), node("Sub", ["x", "m"], ["y"])],
        [value("x", shape=["B", "T"])],
        [value("y", shape=None)],
        initializers=weights(zero=np.array([0], np.int64)),
    )
    pool = treadle.InferenceSession(model).streams(2, time={"x": 1})
    assert "ReduceMax" in pool.why_single and "mixes the entries" in pool.why_single
    assert pool.push({"a": np.ones((1, 3), np.float32)})["a"].tolist() == [[0, 0, 0]]


def test_room_names_and_errors():
    session = treadle.InferenceSession(gru_model())
    pool = session.streams(2, time={"x": 2})
    x = normal(1, 4, 16)
    first = pool.push({"left": x, ("right", 1): {"x": x}})
    np.testing.assert_array_equal(first["left"][0], first["right", 1][0])
    assert "left" in pool and len(pool) == 2 and pool.capacity == 2
    with pytest.raises(treadle.LimitExceeded, match="room for 2"):
        pool.push({"left": x, "third": x})
    with pytest.raises(treadle.InvalidArgument):
        pool.push({"left": x, ("right", 1): normal(1, 3, 16)})
    with pytest.raises(treadle.InvalidArgument, match="3 entries"):
        pool.push({"left": normal(3, 4, 16)})
    with pytest.raises(treadle.InvalidArgument):
        pool.leave("third")
    assert "third" not in pool
    # What failed has changed nothing.
    alone = session.stream(time={"x": 2})
    alone.push(x=x)
    np.testing.assert_allclose(pool.push({"left": x})["left"][0], alone.push(x=x)[0], atol=1e-6)
    pool.leave(("right", 1))
    assert len(pool) == 1
    np.testing.assert_array_equal(pool.push({"new": x})["new"][0], first["left"][0])
    assert pool.push({}) == {}
    with pytest.raises(treadle.InvalidArgument):
        session.streams(0, time={"x": 2})


def test_streams_whose_loops_stop():
    case = loop_case(node("Less", ["i", "limit"], ["c2"]))
    session = treadle.InferenceSession(case.model)
    pool = session.streams(3, time={"x": 1})
    assert pool.why_single
    x = case.signal(200)
    alone = session.stream(time={"x": 1})
    for a in range(0, 200, 50):
        np.testing.assert_array_equal(pool.push({0: x[:, a : a + 50]})[0][1], alone.push(x=x[:, a : a + 50])[1])
        assert pool.done(0) == alone.done == (a >= 100)


def test_streams_move_in_and_out():
    session = treadle.InferenceSession(gru_model())
    pool, other = session.streams(2, time={"x": 2}), session.streams(2, time={"x": 2})
    x = normal(1, 4, 64)
    pool.push({"a": x[:, :, :16], "b": x[:, :, 16:32]})
    pool.push({"a": x[:, :, 16:32], "b": x[:, :, 32:48]})  # states are together now
    fork = pool.fork("a")
    snapshot = fork.save()
    want = fork.push(x=x[:, :, 32:])
    other.push({"first": x})
    loaded = session.stream(time={"x": 2})
    loaded.load(snapshot)
    other.join("moved", loaded)
    got = other.push({"first": x[:, :, :32], "moved": x[:, :, 32:]})["moved"]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, atol=1e-6)
    np.testing.assert_allclose(pool.push({"a": x[:, :, 32:]})["a"][0], want[0], atol=1e-6)
    with pytest.raises(treadle.LimitExceeded, match="room for 2"):
        other.join("third", loaded)
    with pytest.raises(treadle.InvalidArgument, match="already"):
        pool.join("a", loaded)
    other.leave("first")
    with pytest.raises(treadle.InvalidArgument, match="another kind"):
        other.join("third", session.stream(time={"x": 2}, hop=16))
    wide = session.stream(time={"x": 2})
    wide.push(x=normal(3, 4, 16))
    with pytest.raises(treadle.InvalidArgument, match="one entry"):
        other.join("third", wide)
    for call in (pool.fork, pool.done, pool.leave, pool.flush):
        with pytest.raises(treadle.InvalidArgument, match="no stream 'nobody'"):
            call("nobody")
