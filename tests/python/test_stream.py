"""Streams: chunks of any length give what one long run gives."""

import models
import numpy as np
import onnx.parser
import pytest
import treadle
from onnx import helper, numpy_helper


@pytest.fixture
def session():
    return treadle.InferenceSession(models.accumulator())


GAIN = np.float32(1)
X = np.arange(1, 41, dtype=np.float32).reshape(1, 40)


def expected(x, hop, context):
    """(levels, doubled) by a plain loop."""
    hops = x.shape[1] // hop
    padded = np.concatenate([np.zeros((x.shape[0], context), np.float32), x], axis=1)
    state, levels, doubled = np.zeros(x.shape[0], np.float32), [], []
    for k in range(hops):
        window = padded[:, k * hop : k * hop + context + hop]
        state = state + window.sum(axis=1)
        levels.append(state)
        doubled.append(2 * window[:, context:])
    return np.array(levels), np.concatenate(doubled, axis=1) if doubled else np.zeros((x.shape[0], 0))


@pytest.mark.parametrize("chunks", [[40], [7] * 5 + [5], [1] * 40, [0, 3, 0, 37], [8, 32]])
@pytest.mark.parametrize(("hop", "context"), [(8, 0), (8, 4), (5, 5)])
def test_any_chunks_give_the_same(session, chunks, hop, context):
    stream = session.stream(bind={"gain": GAIN}, time={"x": 1}, hop=hop, context=context)
    assert stream.output_names == ["level", "doubled"]
    levels, doubled, at = [], [], 0
    for size in chunks:
        level, twice = stream.push(x=X[:, at : at + size])
        at += size
        assert level.shape[0] * hop == twice.shape[1]
        levels.append(level)
        doubled.append(twice)
    want_levels, want_doubled = expected(X, hop, context)
    np.testing.assert_array_equal(np.concatenate(levels), want_levels)
    np.testing.assert_array_equal(np.concatenate(doubled, axis=1), want_doubled)
    np.testing.assert_array_equal(stream.state["state"], want_levels[-1])


def test_flush_pads_with_zeros(session):
    stream = session.stream(bind={"gain": GAIN}, time={"x": 1}, hop=16)
    level, _ = stream.push(x=X)
    assert level.shape == (2, 1) and stream.pending == 8
    level, doubled = stream.flush()
    assert level[0, 0] == X.sum() and doubled[0, 8:].tolist() == [0] * 8
    level, doubled = stream.flush()
    assert level.shape == (0, 1) and doubled.shape == (1, 0)


def test_without_a_hop_a_push_is_one_run(session):
    stream = session.stream(bind={"gain": GAIN})
    assert stream.push(x=X[:, :5])[0] == 15
    level, doubled = stream.push(x=X[:, 5:6])
    assert level == 21 and doubled.shape == (1, 1)


def test_pairs_are_found_and_shown(session):
    stream = session.stream(bind={"gain": GAIN}, hop=4)
    text = str(stream)
    assert "state <- stateN" in text and "x along axis 1" in text and "gain" in text
    with pytest.raises(treadle.InvalidArgument):
        session.stream(find_state=False, bind={"gain": GAIN}, hop=4)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("state", "stateN"),
        ("h", "hn"),
        ("h0", "hT"),
        ("cache_in", "cache_out"),
        ("past.0.key", "present.0.key"),
        ("past_key_values.3.value", "present.3.value"),
        ("initial_h", "Y_h"),
        ("state", "new_state"),
        ("hidden.1", "hidden_out"),
    ],
)
def test_names_of_one_state(before, after):
    data = models.model(
        [models.node("Add", [before, "x"], [after]), models.node("Neg", ["x"], ["other"])],
        [models.value("x", shape=[1]), models.value(before, shape=[1])],
        [models.value("other", shape=[1]), models.value(after, shape=[1])],
    )
    stream = treadle.InferenceSession(data).stream()
    assert list(stream.state) == [before] and stream.output_names == ["other"]


def test_input_and_output_are_no_pair():
    data = models.model(
        [models.node("Neg", ["input"], ["output"])],
        [models.value("input", shape=[1])],
        [models.value("output", shape=[1])],
    )
    assert treadle.InferenceSession(data).stream().state == {}


def test_batch_of_the_state_follows_the_samples(session):
    stream = session.stream(bind={"gain": GAIN}, time={"x": 1}, hop=2)
    level, _ = stream.push(x=np.ones((3, 4), np.float32))
    assert level.shape == (2, 3)
    with pytest.raises(treadle.InvalidArgument):
        stream.push(x=np.ones((2, 4), np.float32))
    assert stream.push(x=np.ones((3, 2), np.float32))[0].tolist() == [[6, 6, 6]]


def test_initial_state(session):
    stream = session.stream(bind={"gain": GAIN}, hop=2, initial={"state": np.float32([100])})
    assert stream.push(x=np.ones((1, 2), np.float32))[0] == 102
    stream.reset()
    assert stream.state["state"] == 100
    stream.state = {"state": np.float32([5])}
    assert stream.push(x=np.ones((1, 2), np.float32))[0] == 7
    with pytest.raises(treadle.InvalidArgument):
        stream.state = {"state": np.float64([5])}
    with pytest.raises(treadle.InvalidArgument):
        stream.state = {"nothing": 1}


def test_bound_values_are_copied(session):
    gain = np.array(1, np.float32)
    stream = session.stream(bind={"gain": gain}, hop=2)
    gain[...] = 50
    assert stream.push(x=np.ones((1, 2), np.float32))[0] == 2


def test_bound_values_beyond_int64_stay_unchanged():
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 19]>
        g (float[T] x, uint64 big) => (float[T] y, uint64 z) {
          y = Identity (x) low = Sub (big, big) more = Greater (big, low) z = Where (more, big, low) }""")
    session = treadle.InferenceSession(model.SerializeToString())
    stream = session.stream(time={"x": 0}, bind={"big": np.array(2**63 + 5, np.uint64)})
    assert int(stream.push(x=np.ones(2, np.float32))[1]) == 2**63 + 5


def test_inputs_without_a_role_are_given_with_each_push(session):
    stream = session.stream(time={"x": 1}, hop=2)
    assert stream.push(x=np.ones((1, 4), np.float32), gain=np.float32(10))[0].tolist() == [[20], [40]]
    assert stream.push({"x": np.ones((1, 2), np.float32), "gain": 1})[0].tolist() == [[6]]


def test_save_load_fork_reset(session):
    stream = session.stream(bind={"gain": GAIN}, hop=8, context=2)
    stream.push(x=X[:, :13])
    snapshot = stream.save()
    fork = stream.fork()
    rest = stream.push(x=X[:, 13:])
    for other in (fork, session.stream(bind={"gain": GAIN}, hop=8, context=2)):
        if other is not fork:
            other.load(snapshot)
        assert other.pending == 5
        for a, b in zip(rest, other.push(x=X[:, 13:]), strict=True):
            np.testing.assert_array_equal(a, b)
    stream.reset()
    assert stream.pending == 0 and stream.state["state"] == 0
    with pytest.raises(treadle.InvalidArgument, match="another stream"):
        session.stream(bind={"gain": GAIN}, hop=4).load(snapshot)
    for broken in (b"", snapshot[:-3], snapshot + b"x", b"treadle stream 1\n" + b"\xff" * 40):
        with pytest.raises((treadle.InvalidProtobuf, treadle.InvalidArgument)):
            stream.load(broken)
    assert stream.pending == 0


def test_a_snapshot_of_other_weights():
    """Two models that were trained apart differ in nothing else; how a session keeps its weights does not count."""
    gain = np.linspace(0, 1, 2000, dtype=np.float32)

    def trained(gain, **options):
        data = models.model(
            [models.node("Mul", ["x", "gain"], ["y"]), models.node("Add", ["state", "y"], ["stateN"])],
            [models.value("x", shape=[2000]), models.value("state", shape=[2000])],
            [models.value("y", shape=[2000]), models.value("stateN", shape=[2000])],
            initializers=[numpy_helper.from_array(gain, "gain")],
        )
        return treadle.InferenceSession(data, **options)

    stream = trained(gain).stream()
    stream.push(x=gain)
    for same in (trained(gain), trained(gain, weights="f16")):
        loaded = same.stream()
        loaded.load(stream.save())
        np.testing.assert_array_equal(loaded.state["state"], stream.state["state"])
    newer = trained(gain[::-1].copy()).stream()
    with pytest.raises(treadle.InvalidArgument, match="other weights"):
        newer.load(stream.save())
    newer.load(stream.save(), other_weights=True)
    np.testing.assert_array_equal(newer.push(x=gain), gain * gain[::-1])
    np.testing.assert_array_equal(newer.state["state"], stream.state["state"] + gain * gain[::-1])


def test_forks_do_not_share_their_states():
    session = treadle.InferenceSession(models.accumulator())
    streams = [session.stream(bind={"gain": GAIN}, hop=2)]
    streams[0].push(x=X[:, :2])
    streams.append(streams[0].fork())
    sums = [3, 3]
    for step, turn in enumerate([0, 0, 0, 1, 1, 0, 1]):
        chunk = np.full((1, 2), step, np.float32)
        sums[turn] += 2 * step
        assert streams[turn].push(x=chunk)[0] == sums[turn]
        assert [stream.state["state"] for stream in streams] == sums


def test_states_may_be_all_that_a_model_gives():
    data = models.model(
        [models.node("Add", ["h", "x"], ["hN"])],
        [models.value("x", shape=[3]), models.value("h", shape=[3])],
        [models.value("hN", shape=[3])],
    )
    stream = treadle.InferenceSession(data).stream(state={"h": "hN"})
    for _ in range(3):
        assert stream.push(x=np.ones(3, np.float32)) == []
    assert stream.state["h"].tolist() == [3, 3, 3]


def test_a_push_that_fails_leaves_the_stream_as_it_was():
    data = models.model(
        [
            models.node("Cast", ["x"], ["numbers"], to=models.INT64),
            models.node("Div", ["hundred", "numbers"], ["parts"]),
            models.node("ReduceSum", ["parts"], ["sum"], keepdims=0),
            models.node("Add", ["state", "sum"], ["stateN"]),
            models.node("Identity", ["stateN"], ["level"]),
        ],
        [models.value("x", shape=["T"]), models.value("state", models.INT64, [])],
        [models.value("level", models.INT64, []), models.value("stateN", models.INT64, [])],
        initializers=[helper.make_tensor("hundred", models.INT64, [], [100])],
    )
    stream = treadle.InferenceSession(data).stream(hop=2, time={"x": 0})
    stream.push(x=np.float32([1, 2, 4]))
    before = stream.save()
    with pytest.raises(treadle.RuntimeException):
        stream.push(x=np.float32([5, 10, 0, 1]))
    with pytest.raises(treadle.InvalidArgument):
        stream.push(x=np.float64([5, 10]))
    with pytest.raises(treadle.InvalidArgument, match="missing"):
        stream.push()
    assert stream.save() == before
    assert stream.push(x=np.float32([5])).tolist() == [150 + 45]


def test_wrong_roles(session):
    for roles in (
        {"state": {"nothing": "stateN"}},
        {"state": {"state": "nothing"}},
        {"state": {"state": "doubled"}},
        {"bind": {"nothing": 1}},
        {"bind": {"gain": GAIN}, "time": {"gain": 0}},
        {"time": {"x": 2}, "hop": 2},
        {"hop": -1},
        {"initial": {"gain": GAIN}},
    ):
        with pytest.raises(treadle.InvalidArgument):
            session.stream(**roles)
    stream = session.stream(bind={"gain": GAIN}, hop=2)
    with pytest.raises(treadle.InvalidArgument, match="bound"):
        stream.push(x=X, gain=GAIN)
    with pytest.raises(treadle.InvalidArgument, match="state"):
        stream.push(x=X, state=np.zeros(1, np.float32))


def test_axes_along_which_results_go_together(session):
    """Those of hops are stacked, or joined along time where the output has it; those of single runs stand alone."""
    roles = {"bind": {"gain": np.float32(1)}, "time": {"x": 1}}
    assert session.stream(**roles, hop=2).output_axes == {"level": 0, "doubled": 1}
    assert session.stream(bind=roles["bind"]).output_axes == {"level": None, "doubled": None}


def test_one_output_comes_alone():
    data = models.model(
        [models.node("Add", ["state", "x"], ["stateN"]), models.node("Neg", ["stateN"], ["y"])],
        [models.value("x", shape=[1]), models.value("state", shape=[1])],
        [models.value("y", shape=[1]), models.value("stateN", shape=[1])],
    )
    stream = treadle.InferenceSession(data).stream()
    assert [stream.push(x=np.float32([1])).tolist() for _ in range(3)] == [[-1], [-2], [-3]]
