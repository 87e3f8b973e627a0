"""Streams that run together give the results of each alone."""

import os

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


class Script:
    """A caller's random use of a pool, beside separate streams that get the same samples."""

    def __init__(self, rng, model, roles, shape, time, batch, results):
        self.rng, self.shape, self.time, self.batch, self.results = rng, shape, time, batch, results
        self.session = treadle.InferenceSession(model)
        self.roles = roles
        self.pool = self.session.streams(40, **roles)
        assert self.pool.why_single == ""
        self.alone = {}
        self.done = {"batch": 0, "far": 0, "unlike": 0}

    def samples(self, streams, size):
        shape = list(self.shape)
        if self.time is not None:
            shape[self.time] = size
        shape[self.batch] = streams
        return self.rng.standard_normal(shape).astype(np.float32)

    def some(self):
        count = int(self.rng.integers(1, 31))
        return self.rng.choice(30, size=count, replace=False).tolist()

    def entry(self, array, axis, i):
        return None if array is None else np.take(array, [i], axis=axis)

    def check(self, i, got, chunk):
        self.compare(got, self.alone.setdefault(i, self.session.stream(**self.roles)).push(x=chunk))

    def compare(self, got, want):
        got, want = (got, want) if isinstance(want, list) else ([got], [want])
        for g, w in zip(got, want, strict=True):
            assert (g is None) == (w is None)  # nothing has run yet
            if g is not None:
                np.testing.assert_allclose(g, w, atol=1e-6)

    def push(self):
        chunks = {i: self.samples(1, int(self.rng.choice([0, 1, 3, 4, 8, 20]))) for i in self.some()}
        for i, got in self.pool.push(chunks).items():
            self.check(i, got, chunks[i])

    def push_batch(self, streams=None):
        streams = streams or self.some()
        chunk = self.samples(len(streams), int(self.rng.choice([1, 4, 8, 8, 8])))
        try:
            got = self.pool.push_batch(streams, chunk)
        except treadle.InvalidArgument as error:
            assert "not equally far" in str(error)
            self.done["far"] += 1
            return
        self.done["batch"] += 1
        got = got if isinstance(got, list) else [got]
        for k, i in enumerate(streams):
            own = [self.entry(array, axis, k) for array, axis in zip(got, self.results, strict=True)]
            self.check(i, own if len(own) > 1 else own[0], self.entry(chunk, self.batch, k))

    def push_lengths(self):
        """As `push_batch`, of streams that need not be equally far."""
        streams = self.some()
        axes = list(self.session.stream(**self.roles).output_axes.values())
        chunk = self.samples(len(streams), int(self.rng.choice([1, 4, 5, 8, 20])))
        lengths = np.full((len(streams), len(axes)), -1)
        got = self.pool.push_batch(streams, chunk, lengths=lengths)
        got = got if isinstance(got, list) else [got]
        for k, i in enumerate(streams):
            want = self.alone.setdefault(i, self.session.stream(**self.roles)).push(x=self.entry(chunk, self.batch, k))
            want = want if isinstance(want, list) else [want]
            for g, w, axis, batch, length in zip(got, want, axes, self.results, lengths[k], strict=True):
                frames = 0 if w is None else 1 if axis is None else w.shape[axis]
                assert length == frames
                if w is None:
                    continue
                own = self.entry(g, batch, k)
                if axis is not None:
                    assert not np.delete(own, np.s_[:length], axis).any()
                    own = np.take(own, range(length), axis)
                np.testing.assert_allclose(own, w, atol=1e-6)
        self.done["unlike"] += bool((lengths != lengths[0]).any())

    def push_same_again(self):
        streams = self.some()
        for _ in range(3):
            self.push_batch(streams)

    def fail(self):
        chunks = {i: self.samples(1, 8) for i in self.some()}
        chunks[int(self.rng.integers(30))] = self.samples(2, 8)
        with pytest.raises(treadle.InvalidArgument):
            self.pool.push(chunks)

    def leave(self):
        for i in self.some()[:5]:
            if i in self.alone:
                self.pool.leave(i)
                del self.alone[i]

    def flush(self):
        for i in self.some()[:3]:
            if i in self.alone:
                self.compare(self.pool.flush(i), self.alone.pop(i).flush())

    def move(self):
        for i in self.some()[:5]:
            if i in self.alone:
                fork = self.pool.fork(i)
                assert fork.save() == self.pool.fork(i).save()
                self.pool.leave(i)
                self.pool.join(i, fork)

    def run(self, steps):
        kinds = [self.push, self.push_batch, self.push_lengths, self.push_same_again]
        kinds += [self.fail, self.leave, self.flush, self.move]
        for _ in range(steps):
            kinds[self.rng.integers(len(kinds))]()
            assert len(self.pool) == len(self.alone)
            assert all((i in self.pool) == (i in self.alone) for i in range(30))


def lstm_model():
    return models.model(
        [node("LSTM", ["x", "W", "R"], ["l"], hidden_size=5), node("Squeeze", ["l", "one"], ["y"])],
        [value("x", shape=["T", "B", 4])],
        [value("y", shape=None)],
        initializers=weights(W=normal(1, 20, 4), R=normal(1, 20, 5), one=np.array([1], np.int64)),
    )


def step_model():
    """One step of a recurrence: the state is an input and an output."""
    return models.model(
        [
            node("Concat", ["x", "h"], ["xh"], axis=1),
            node("MatMul", ["xh", "w"], ["sum"]),
            node("Tanh", ["sum"], ["hn"]),
            node("ReduceSum", ["hn", "axis"], ["y"], keepdims=0),
        ],
        [value("x", shape=["B", 4]), value("h", shape=["B", 5])],
        [value("y", shape=["B"]), value("hn", shape=["B", 5])],
        initializers=weights(w=normal(9, 5), axis=np.array([1], np.int64)),
    )


def cache_model():
    """A step that looks back at all earlier steps: the state grows with each."""
    return models.model(
        [
            node("Unsqueeze", ["x", "one"], ["row"]),
            node("Concat", ["past", "row"], ["present"], axis=1),
            node("ReduceMax", ["present", "one"], ["y"], keepdims=0),
        ],
        [value("x", shape=["B", 3]), value("past", shape=["B", "past_length", 3])],
        [value("y", shape=["B", 3]), value("present", shape=["B", "length", 3])],
        initializers=weights(one=np.array([1], np.int64)),
    )


WINDOWS = {"state": {"state": "stateN"}, "time": {"x": 1}, "hop": 4, "context": 2}


@pytest.mark.parametrize("seed", range(25 if os.environ.get("TREADLE_TEST_LONG") else 2))
@pytest.mark.parametrize("kind", ["gru", "lstm", "windows", "begun", "steps", "cache"])
def test_whatever_a_caller_does(kind, seed):
    rng = np.random.default_rng([seed, len(kind)])
    begun = {"initial": {"state": rng.standard_normal((2, 1, 3)).astype(np.float32)}}
    arguments = {
        "gru": lambda: (gru_model(), {"time": {"x": 2}}, (1, 4, 0), 2, 0, (1, 1)),
        "lstm": lambda: (lstm_model(), {"time": {"x": 0}}, (0, 1, 4), 0, 1, (1,)),
        "windows": lambda: (windows_model(), WINDOWS, (1, 0), 1, 0, (1,)),
        "begun": lambda: (windows_model(), WINDOWS | begun, (1, 0), 1, 0, (1,)),
        "steps": lambda: (step_model(), {}, (1, 4), None, 0, (0,)),
        "cache": lambda: (cache_model(), {"state": {"past": "present"}}, (1, 3), None, 0, (0,)),
    }
    script = Script(rng, *arguments[kind]())
    script.run(150)
    assert script.done["batch"] > 0 and (script.done["unlike"] > 0 or kind in ("lstm", "steps", "cache"))


def test_an_array_of_streams():
    session = treadle.InferenceSession(lstm_model())
    pool = session.streams(6, time={"x": 0})
    x = normal(3, 4, 4)
    together = pool.push_batch([3, 1, 2, 0], x)
    assert together.shape == (3, 4, 5) and len(pool) == 4 and 3 in pool and 4 not in pool
    # The numbers are the names that dictionaries have.
    np.testing.assert_allclose(together[:, 1:2], pool.push({5: x[:, 1:2]})[5], atol=1e-6)
    assert pool.push_batch(np.array([1], np.uint8), {"x": x[:, :1]}).shape == (3, 1, 5)
    pool.leave(np.int64(5))
    for streams, feed, message in (
        ([0, 0], x[:, :2], "comes twice"),
        ([0, 1, 2], x, "4 entries along axis 1, for 3 streams"),
        ([[0, 1]], x[:, :2], "one axis"),
        ([-1], x[:, :1], "one is -1"),
        ([0.5], x[:, :1], "float64"),
        ([], x[:, :0], "no stream"),
        ([0], x[:, :1].astype(np.float64), "double"),
    ):
        with pytest.raises(treadle.InvalidArgument, match=message):
            pool.push_batch(streams, feed)
    with pytest.raises(treadle.LimitExceeded, match="room for 6 streams, not for 7"):
        pool.push_batch([0, 7, 8, 9], x)
    assert len(pool) == 4
    single = treadle.InferenceSession(CASES["scan"].model).streams(2, time={"x": CASES["scan"].axis})
    with pytest.raises(treadle.InvalidArgument, match="one by one, since"):
        single.push_batch([0], x[:, :1])
    pool.close()
    assert len(pool) == 0 and 0 not in pool
    with pytest.raises(ValueError, match="closed"):
        pool.push_batch([0], x[:, :1])


def test_arrays_of_streams_that_are_not_equally_far():
    session = treadle.InferenceSession(gru_model())
    pool = session.streams(4, time={"x": 2})
    pool.push_batch([0, 1], normal(2, 4, 16))
    alone = pool.fork(0)
    with pytest.raises(treadle.InvalidArgument, match="streams 0 and 2 are not equally far: their results of 'y'"):
        pool.push_batch([0, 2], normal(2, 4, 16))
    assert len(pool) == 2
    x = normal(2, 4, 16)
    np.testing.assert_allclose(pool.push_batch([1, 0], x)[0][:, 1:], alone.push(x=x[1:])[0], atol=1e-6)


def test_lengths_of_results_that_are_not_equally_long():
    session = treadle.InferenceSession(windows_model())
    roles = {"time": {"x": 1}, "hop": 4, "state": {"state": "stateN"}}
    pool, alone = session.streams(3, **roles), [session.stream(**roles) for _ in range(3)]
    pool.push({2: {"x": normal(1, 3)}})
    for size in (2, 4, 5, 0, 11):
        x, lengths = normal(2, size), np.full((2, 1), -1)
        pool.push_batch([0, 1], x, lengths=lengths)
        want = [alone[i].push(x[i : i + 1]) for i in (0, 1)]
        assert lengths.tolist() == [[0 if w is None else len(w)] for w in want]
    x = normal(3, 9)
    with pytest.raises(treadle.InvalidArgument, match="not equally far.*Ask for their lengths"):
        pool.push_batch([0, 1, 2], x)
    for wrong in (
        np.zeros(3, np.int64),
        np.zeros((3, 2), np.int64),
        np.zeros((2, 1), np.int64),
        np.zeros((3, 1), np.int32),
    ):
        with pytest.raises(
            treadle.InvalidArgument, match=r"lengths are no contiguous, writable array of int64 \[3, 1\]"
        ):
            pool.push_batch([0, 1, 2], x, lengths=wrong)
    with pytest.raises(TypeError, match="lengths are an array, not list"):
        pool.push_batch([0, 1, 2], x, lengths=[[0], [0], [0]])


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
        """The one output as a list, as for several."""

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
def recurrence(op, **first):
    """A recurrence over frames whose first state an exporter gives in one of several ways."""
    gates, width = {"LSTM": 4, "GRU": 3, "RNN": 1}[op], 6
    states = ["h0", "c0"] if op == "LSTM" else ["h0"]
    nodes = []
    if "expanded" in first:
        nodes += [node("Shape", ["x"], ["n"], start=1, end=2), node("Concat", ["one", "n", "width"], ["sizes"], axis=0)]
        nodes += [node("Expand", ["zero", "sizes"], [name]) for name in states]
    if "filled" in first:
        nodes += [node("Shape", ["x"], ["n"], start=1, end=2), node("Concat", ["one", "n", "width"], ["sizes"], axis=0)]
        nodes += [node("ConstantOfShape", ["sizes"], [name], value=first["filled"]) for name in states]
    given = ["", "", *states] if nodes else []
    nodes += [node(op, ["x", "W", "R", *given], ["l"], hidden_size=width), node("Squeeze", ["l", "one"], ["y"])]
    arrays = {"W": normal(1, gates * width, 4), "R": normal(1, gates * width, width), "one": np.array([1], np.int64)}
    arrays |= {"width": np.array([width], np.int64), "zero": np.zeros((1, 1, 1), np.float32)}
    return models.model(
        nodes, [value("x", shape=["T", "B", 4])], [value("y", shape=None)], initializers=weights(**arrays)
    )


def filled(number):
    return numpy_helper.from_array(np.array([number], np.float32))


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize(
    ("first", "runs"), [({}, 1), ({"expanded": True}, 1), ({"filled": filled(0)}, 1), ({"filled": filled(0.5)}, 2)]
)
def test_streams_begin_among_others(op, first, runs):
    session = treadle.InferenceSession(recurrence(op, **first))
    pool, alone = session.streams(8, time={"x": 0}), [session.stream(time={"x": 0}) for _ in range(6)]

    def push(streams, x):
        before = pool.runs
        got = pool.push_batch(streams, x)
        for k, i in enumerate(streams):
            np.testing.assert_allclose(got[:, k : k + 1], alone[i].push(x=x[:, k : k + 1]), atol=1e-6)
        return pool.runs - before

    assert push([0, 1, 2], normal(3, 3, 4)) == 1
    assert push([0, 1, 2, 3], normal(2, 4, 4)) == runs  # with all of those that were there
    assert push([3, 1, 4], normal(1, 3, 4)) == runs  # with some
    assert push([5, 0], normal(2, 2, 4)) == runs
    assert push([5, 4, 3, 2, 1, 0], normal(4, 6, 4)) == 1


def test_windows_begin_among_others():
    session = treadle.InferenceSession(windows_model())
    first = normal(2, 1, 3)
    for roles in (WINDOWS, WINDOWS | {"initial": {"state": first}}):
        pool, alone = session.streams(4, **roles), [session.stream(**roles) for _ in range(3)]
        for streams in ([0, 1], [2, 0]):
            x, before = normal(2, 8), pool.runs
            got = pool.push_batch(streams, x)
            for k, i in enumerate(streams):
                np.testing.assert_allclose(got[:, k : k + 1], alone[i].push(x=x[k : k + 1]), atol=1e-6)
            assert pool.runs - before == 2  # windows, not streams


def test_beginning_streams_run_together_while_the_others_wait():
    session = treadle.InferenceSession(windows_model())
    pool, alone = session.streams(4, **WINDOWS), [session.stream(**WINDOWS) for _ in range(4)]
    for lengths in ({0: 8}, {0: 1, 1: 8, 2: 8, 3: 8}):  # one sample is no window
        chunks, before = {i: normal(1, n) for i, n in lengths.items()}, pool.runs
        for i, got in pool.push(chunks).items():
            np.testing.assert_allclose(got, alone[i].push(x=chunks[i]), atol=1e-6)
        assert pool.runs - before == 2  # windows, not streams


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
    # The failed push has changed nothing.
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
