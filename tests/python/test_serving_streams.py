"""Sequences behind a server: any interleaving of steps gives each stream its results alone."""

import logging
import os

import models
import numpy as np
import pytest
import treadle
from models import node, value
from onnx import TensorProto, helper, numpy_helper
from test_stream_pool import gru_model, windows_model
from treadle.serving import streams as serving
from treadle.serving.streams import Answer, BadStep, Full, Retiring, Step, Streams, UnknownSequence

INT64 = TensorProto.INT64
LONG = bool(os.environ.get("TREADLE_TEST_LONG"))
IDLE = 10.0
CAPACITY = 4
IDS = [1, 2, 3, 2**63, "a", "caller 7", "1"]


def quotients() -> bytes:
    """Over windows of 3: sums of 5040 / x, carried, in whole numbers; a zero makes the operator fail."""
    return models.model(
        [
            node("Div", ["much", "x"], ["q"]),
            node("ReduceSum", ["q", "axis"], ["sum"], keepdims=0),
            node("Add", ["state", "sum"], ["stateN"]),
            node("Identity", ["stateN"], ["level"]),
            node("Neg", ["x"], ["back"]),
        ],
        [value("x", INT64, ["B", "N"]), value("state", INT64, ["B"])],
        [value("level", INT64, ["B"]), value("stateN", INT64, ["B"]), value("back", INT64, ["B", "N"])],
        initializers=[helper.make_tensor("much", INT64, [], [5040]), helper.make_tensor("axis", INT64, [1], [1])],
    )


class Kind:
    """A model, how its streams are made, and chunks for them."""

    def __init__(self, model, chunk, **roles):
        self.session, self.chunk, self.roles = treadle.InferenceSession(model), chunk, roles
        self.first = self.session.stream(**roles)
        self.stream = self.first.fork
        self.snapshot_of_another = treadle.InferenceSession(models.accumulator()).stream(find_state=True).save()

    def streams(self, clock, capacity=CAPACITY):
        return Streams(self.session, name="m", capacity=capacity, idle_s=IDLE, clock=clock, **self.roles)


def whole_numbers(rng):
    return rng.integers(1, 9, (1, int(rng.choice([0, 1, 3, 3, 7]))))


def frames(rng):
    return rng.standard_normal((1, 4, int(rng.choice([0, 1, 8, 8, 20])))).astype(np.float32)


def samples(rng):
    return rng.standard_normal((1, int(rng.choice([0, 4, 4, 5])))).astype(np.float32)


def single_steps(rng):
    return rng.integers(0, 9, (1, int(rng.integers(1, 4)))).astype(np.float32)


KINDS = {
    "windows of whole numbers": lambda: Kind(quotients(), whole_numbers, time={"x": 1, "back": 1}, hop=3),
    "windows with context": lambda: Kind(windows_model(), samples, time={"x": 1}, hop=4, context=2),
    "over time": lambda: Kind(gru_model(), frames, time={"x": 2}),
    "steps": lambda: Kind(models.accumulator(), single_steps, bind={"gain": np.float32(2)}),
}
SCRIPTS = {name: 4000 if name.startswith("windows") else 1000 for name in KINDS}  # 10,000 together


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    found = KINDS[request.param]()
    found.scripts = SCRIPTS[request.param] if LONG else 60
    return found


@pytest.fixture
def whole():
    return KINDS["windows of whole numbers"]()


class Alone:
    """The meaning of sequences in the simplest form: a stream for each id, one step after the other."""

    def __init__(self, kind):
        self.kind, self.live, self.taken = kind, {}, 0

    def turn(self, now):
        """Steps of different streams follow. Room that one of them gives up is there for later turns."""
        for sequence in [i for i, (_, seen) in self.live.items() if now - seen > IDLE]:
            del self.live[sequence]
        self.taken = len(self.live)

    def step(self, step, bad, now):
        """Outputs, and the snapshot; or the class of the error."""
        if bad in ("type", "rank"):
            return BadStep
        if step.id and step.start:
            if bad == "snapshot":
                return BadStep
            stream = self.kind.stream()
            if step.state:
                stream.load(step.state)
            if not step.end and step.id not in self.live:
                if self.taken >= CAPACITY:
                    return Full
                self.taken += 1
        elif step.id:
            if step.id not in self.live:
                return UnknownSequence
            if step.state:
                return BadStep
            stream = self.live[step.id][0].fork()
        else:
            stream = self.kind.stream()
            if step.state or step.snapshot:
                return BadStep
        try:
            outputs = self.outputs(stream, step)
        except treadle.RuntimeException:
            return BadStep
        if step.id:
            self.live[step.id] = stream, now
            if step.end:
                del self.live[step.id]
        return outputs, stream.save() if step.snapshot and not step.end else b""

    def outputs(self, stream, step):
        """A push, and a flush behind the end, as one result for each output."""
        listed = (lambda found: found) if len(stream.output_names) > 1 else (lambda found: [found])
        pushed = listed(stream.push(step.inputs))
        if not self.kind.roles.get("time") or not (step.end or not step.id):
            return pushed
        joined = []
        for name, a, b in zip(stream.output_names, pushed, listed(stream.flush()), strict=True):
            axis = {"back": 1, "h": None}.get(name, 0)
            joined.append(
                b if a is None or axis is None and b is not None else a if b is None else np.concatenate([a, b], axis)
            )
        return joined


def same(found, wanted):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-5)


def compare(answer, wanted):
    if isinstance(wanted, type):
        assert type(answer) is wanted, answer
        return
    assert isinstance(answer, Answer), answer
    same(answer.outputs, wanted[0])
    assert bool(answer.state) == bool(wanted[1])


def spoiled(kind, chunk, bad):
    if bad == "type":
        return chunk.astype(np.int16)
    if bad == "rank":
        return chunk[None]
    if bad == "data" and chunk.dtype == np.int64:
        return np.zeros_like(chunk)
    return chunk


def draw(kind, rng, snapshots):
    """A step, and its fault."""
    bad = str(rng.choice(["type", "rank", "data", "snapshot"])) if rng.random() < 0.15 else ""
    start = bool(rng.random() < 0.4)
    sequence = IDS[rng.integers(len(IDS))] if rng.random() < 0.95 else 0
    state = b""
    if snapshots and rng.random() < (0.3 if start else 0.05):
        state = snapshots[rng.integers(len(snapshots))]
    if bad == "snapshot":
        start, state = True, [b"nonsense", kind.snapshot_of_another, b"treadle stream 2\n"][rng.integers(3)]
    inputs = {"x": spoiled(kind, kind.chunk(rng), bad)}
    return Step(sequence, inputs, start, bool(rng.random() < 0.15), bool(rng.random() < 0.3), state), bad


def play(kind, rng):
    """One script, against streams alone; a random drain moves all streams to another server."""
    now = 0.0
    clock = lambda: now  # noqa: E731
    server, alone, snapshots = kind.streams(clock), Alone(kind), []
    for _ in range(int(rng.integers(4, 12))):
        drawn = [draw(kind, rng, snapshots) for _ in range(int(rng.integers(0, 7)))]
        found = server.step([step for step, _ in drawn])
        for k, first in in_turns(drawn):
            (step, bad), answer = drawn[k], found[k]
            if first:
                alone.turn(now)
            wanted = alone.step(step, bad, now)
            if isinstance(wanted, type):
                assert type(answer) is wanted, (step, bad, answer)
                continue
            assert isinstance(answer, Answer), (step, bad, answer)
            same(answer.outputs, wanted[0])
            assert bool(answer.state) == bool(wanted[1])
            snapshots += [answer.state] if answer.state else []
        now += float(rng.choice([0, 0, 1, 5, IDLE, IDLE + 1]))
        if rng.random() < 0.1:
            server, states = kind.streams(clock), server.drain()
            alone.live = {i: (s, now) for i, (s, seen) in alone.live.items() if now - seen <= IDLE}
            assert states.keys() == alone.live.keys()
            for sequence, state in states.items():
                chunk = {"x": kind.chunk(np.random.default_rng(0))}
                [answer] = server.step([Step(sequence, chunk, start=True, state=state)])
                wanted = alone.step(Step(sequence, chunk), "", now)
                compare(answer, wanted)
                if isinstance(wanted, type):  # a failed sample waits: the stream did not come over
                    del alone.live[sequence]
        if rng.random() < 0.1:
            gone = IDS[rng.integers(len(IDS))]
            server.leave(gone)
            alone.live.pop(gone, None)


def in_turns(drawn):
    """In which order `Streams.step` makes steps: the first of each id, then the second of each; with where turns begin."""
    left = list(range(len(drawn)))
    while left:
        taken = set()
        turn = [k for k in left if not drawn[k][0].id or drawn[k][0].id not in taken and not taken.add(drawn[k][0].id)]
        yield from ((k, k == turn[0]) for k in turn)
        left = [k for k in left if k not in turn]


def test_any_interleaving_is_each_stream_alone(kind):
    for seed in range(kind.scripts):
        try:
            play(kind, np.random.default_rng(seed))
        except Exception as e:
            e.add_note(f"script {seed}")
            raise


def one(server, *step, **more):
    """The answer to one step, or its error."""
    [answer] = server.step([Step(*step, **more)])
    return answer


def ones(*shape):
    return {"x": np.ones(shape, np.int64)}


def test_error_texts(whole):
    server = whole.streams(lambda: 0.0, capacity=1)
    assert str(one(server, 7, ones(1, 3))) == (
        "inference request for sequence 7 to model 'm' must specify the START flag on the first request of the sequence"
    )
    one(server, 7, ones(1, 3), start=True)
    assert str(one(server, 8, ones(1, 3), start=True)) == "model 'm' has room for 1 sequences: sequence 8 cannot start"
    wrong = one(server, 7, {"x": np.ones((1, 3), np.float32)})
    assert str(wrong) == "input 'x' is float32 [1, 3], expected tensor(int64) ['B', 'N']"
    assert str(one(server, 7, {"y": np.ones(3)})) == "a step brings 'x', not y"
    assert str(one(server, 7, {})) == "a step brings 'x', not nothing"
    assert "sequence 7 of model 'm': " in str(one(server, 7, ones(2, 3)))
    assert "sequence 7 goes on already" in str(one(server, 7, ones(1, 3), state=b"x"))
    assert "the snapshot of sequence 7 is none of a stream of model 'm'" in str(
        one(server, 7, ones(1, 3), start=True, state=b"x")
    )
    failed = one(server, 7, {"x": np.zeros((1, 3), np.int64)})
    assert isinstance(failed, BadStep) and isinstance(failed.__cause__, treadle.RuntimeException)
    assert one(server, 7, ones(1, 3)).outputs[0].tolist() == [[2 * 3 * 5040]]  # as if nothing had happened


@pytest.mark.parametrize("sequence", [-1, 2**64, True, 1.5, b"a", "x" * 129, "é" * 65, ("a",), {}, None])
def test_ids_that_are_none(whole, sequence):
    assert isinstance(one(whole.streams(lambda: 0.0), sequence, ones(1, 3), start=True), BadStep)


def test_a_start_replaces_a_stream_that_lives_and_says_so(whole, caplog):
    server = whole.streams(lambda: 0.0)
    one(server, "a", ones(1, 3), start=True)
    with caplog.at_level(logging.WARNING):
        assert isinstance(one(server, "a", {"x": np.zeros((1, 3), np.int64)}, start=True), BadStep)
        assert caplog.text == ""  # the old one lives on
        assert one(server, "a", ones(1, 3), start=True).outputs[0].tolist() == [[3 * 5040]]
    assert "sequence a of model 'm' starts while it is live" in caplog.text
    assert len(server) == 1 and server.statistics.replaced == 1


def test_an_idle_stream_makes_room(whole):
    now = 0.0
    server = whole.streams(lambda: now, capacity=2)
    one(server, 1, ones(1, 3), start=True)
    now = IDLE / 2
    one(server, 2, ones(1, 3), start=True)
    now = IDLE + 0.1
    assert 1 not in server and 2 in server
    assert isinstance(one(server, 3, ones(1, 3), start=True), Answer)
    assert isinstance(one(server, 4, ones(1, 3), start=True), Full)
    assert server.statistics.idled == 1 and server.statistics.refused == {"Full": 1}


def test_retiring_hands_streams_out_one_by_one(whole):
    server, other = whole.streams(lambda: 0.0), whole.streams(lambda: 0.0)
    one(server, 1, ones(1, 3), start=True)
    one(server, 2, ones(1, 3), start=True)
    server.retire()
    assert isinstance(one(server, 3, ones(1, 3), start=True), Retiring)
    answer = one(server, 1, ones(1, 3))
    assert answer.moved and answer.state and len(server) == 1
    assert isinstance(one(server, 1, ones(1, 3)), UnknownSequence)
    assert one(other, 1, ones(1, 3), start=True, state=answer.state).outputs[0].tolist() == [[9 * 5040]]
    assert list(server.drain()) == [2] and len(server) == 0
    assert server.statistics.handed_out == 2


def test_no_sequence_is_one_run_over_the_whole(whole):
    server = whole.streams(lambda: 0.0)
    for sequence in (0, ""):
        answer = one(server, sequence, ones(1, 9))
        assert answer.outputs[0].shape == (3, 1) and len(server) == 0
    assert isinstance(one(server, 0, ones(1, 7), snapshot=True), BadStep)


def test_reload_keeps_streams(whole):
    server = whole.streams(lambda: 0.0)
    one(server, "a", ones(1, 4), start=True)
    server.reload(treadle.InferenceSession(quotients()))
    assert one(server, "a", ones(1, 2)).outputs[0].tolist() == [[6 * 5040]]
    another = treadle.InferenceSession(models.identity(INT64, ["B", "N"]))
    with pytest.raises(treadle.InvalidArgument):
        server.reload(another)
    assert one(server, "a", ones(1, 3)).outputs[0].tolist() == [[9 * 5040]]


def rows(server, ids, x, **more):
    return server.step_rows(ids, {"x": x}, **more)


@pytest.fixture(params=KINDS)
def pooled(request):
    found = KINDS[request.param]()
    if found.streams(lambda: 0.0).why_single:
        pytest.skip("runs one by one")
    return found


def test_rows_of_one_request_are_steps(pooled):
    """Starts, steps and ends of many streams as arrays, against each one alone."""
    rng, server = np.random.default_rng(2), pooled.streams(lambda: 0.0, capacity=16)
    ids = [1, 2, "c", 4, 5]
    alone = {i: pooled.stream() for i in ids}
    for turn in range(6):
        size = {2: (1, 4, 8), 1: (1, 12), None: (1, 2)}[pooled.roles.get("time", {}).get("x")]
        chunks = [rng.integers(1, 9, size).astype(pooled.chunk(rng).dtype) for _ in ids]
        starts, ends = [turn == 0] * 5, [turn == 5] * 5
        found = rows(server, ids, np.concatenate(chunks), start=starts, end=ends, snapshot=turn == 3)
        wanted = [alone[i].push(x=chunk) for i, chunk in zip(ids, chunks, strict=True)]
        wanted = wanted if len(server.output_names) > 1 else [[w] for w in wanted]
        assert len(found.states) == (5 if turn == 3 else 0)
        for k in range(len(server.output_names)):
            axis = next((a for a in range(found.outputs[k].ndim) if found.outputs[k].shape[a] == 5), 0)
            for row in range(5):
                mine = np.take(found.outputs[k], [row], axis)
                theirs = wanted[row][k]
                if turn == 5:
                    mine = mine[: len(theirs)] if server.output_names[k] != "back" else mine[:, : theirs.shape[1]]
                if not (turn == 5 and server.output_names[k] == "h"):
                    np.testing.assert_allclose(mine, theirs, atol=1e-5)
    assert len(server) == 0


def test_rows_are_all_or_none(whole):
    server = whole.streams(lambda: 0.0, capacity=4)
    x = np.ones((3, 3), np.int64)
    with pytest.raises(UnknownSequence, match="sequence 3 to model"):
        rows(server, [1, 2, 3], x, start=[True, True, False])
    assert len(server) == 0
    rows(server, [1, 2, 3], x, start=[True] * 3)
    with pytest.raises(UnknownSequence, match="sequence 9"):
        rows(server, [1, 9, 3], x)
    zero = x.copy()
    zero[1] = 0
    with pytest.raises(BadStep, match="divided by zero|zero"):
        rows(server, [1, 2, 4], zero, start=[False, False, True])
    with pytest.raises(BadStep, match="zero"):
        rows(server, [1, 2, 3], zero)
    with pytest.raises(Full):
        rows(server, [4, 5], x[:2], start=[True] * 2)
    with pytest.raises(BadStep, match="another one"):
        rows(server, [1, 1], x[:2])
    with pytest.raises(BadStep, match="no row for each of 2"):
        rows(server, [1, 2], x)
    with pytest.raises(BadStep, match="2 sequences have 1 values of start"):
        rows(server, [1, 2], x[:2], start=[True])
    with pytest.raises(BadStep, match="there is no input 'x'"):
        server.step_rows([1], {"y": x})
    assert rows(server, [1, 2, 3], x).outputs[0].tolist() == [[6 * 5040] * 3]


def test_rows_with_results_of_unlike_sizes_are_refused(whole):
    server = whole.streams(lambda: 0.0)
    x = np.ones((2, 2), np.int64)
    rows(server, [1], x[:1], start=[True])
    with pytest.raises(BadStep, match="sizes"):
        rows(server, [1, 2], x, start=[False, True])  # a window is whole for the one alone
    assert one(server, 1, ones(1, 1)).outputs[0].tolist() == [[3 * 5040]]
    assert 2 not in server


def test_rows_with_lengths_need_not_be_equally_far(pooled):
    """Blocks that are no whole number of windows, from streams that start, go on and end, against each one alone."""
    rng, server, alone = np.random.default_rng(3), pooled.streams(lambda: 0.0, capacity=16), {}
    timed = pooled.roles.get("time", {}).get("x")
    unlike = 0
    for turn in range(60):
        ids = rng.choice(np.arange(1, 9), rng.integers(1, 6), replace=False).tolist()
        size = {2: (1, 4, turn % 7), 1: (1, turn % 7), None: (1, 2)}[timed]
        chunks = [rng.integers(1, 9, size).astype(pooled.chunk(rng).dtype) for _ in ids]
        starts = [i not in alone for i in ids] if turn % 3 else [i not in alone or rng.random() < 0.2 for i in ids]
        may_end = (
            turn % 4 == 0 and chunks[0].dtype.kind == "f"
        )  # an end is zeros, which whole numbers cannot be divided by
        ends = [bool(may_end and rng.random() < 0.3) for _ in ids]
        found = rows(server, ids, np.concatenate(chunks), start=starts, end=ends, lengths=True)
        for row, (i, chunk) in enumerate(zip(ids, chunks, strict=True)):
            if starts[row]:
                alone[i] = pooled.stream()
            wanted = server.signature.ended(alone.pop(i), {"x": chunk}) if ends[row] else alone[i].push(x=chunk)
            wanted = wanted if isinstance(wanted, list) else [wanted]
            for k, (theirs, axis) in enumerate(zip(wanted, server.signature.joined_axes, strict=True)):
                length = 0 if theirs is None else 1 if axis is None else theirs.shape[axis]
                assert found.lengths[row, k] == length
                if theirs is None:
                    continue
                mine = np.take(found.outputs[k], [row], server.signature.batch_axis_out(k, theirs))
                if axis is not None:
                    assert not np.delete(mine, np.s_[:length], axis).any()
                    mine = np.take(mine, range(length), axis)
                np.testing.assert_allclose(mine, theirs, atol=1e-5)
        unlike += bool((found.lengths != found.lengths[0]).any())
    assert unlike or timed is None


def test_rows_of_a_model_without_a_batch_are_refused():
    mixing = models.model(
        [models.node("ReduceMax", ["x", "zero"], ["m"], keepdims=1), models.node("Sub", ["x", "m"], ["y"])],
        [models.value("x", shape=["B", "T"])],
        [models.value("y", shape=None)],
        initializers=[numpy_helper.from_array(np.array([0], np.int64), "zero")],
    )
    server = Kind(mixing, samples, time={"x": 1}).streams(lambda: 0.0)
    with pytest.raises(BadStep, match="one sequence in a request"):
        rows(server, [1], np.ones((1, 2), np.float32))


def test_statistics(whole):
    server = whole.streams(lambda: 0.0)
    server.step([Step(i, ones(1, 3), start=True, snapshot=i == 1) for i in (1, 2, 3)])
    one(server, 1, ones(1, 3), end=True)
    one(server, 1, ones(1, 3))
    server.leave(2)
    found = server.statistics
    assert (found.steps, found.started, found.ended, found.left, found.snapshots) == (4, 3, 1, 1, 1)
    assert found.refused == {"UnknownSequence": 1}
    assert found.batch_sizes.cumulative()[2] == ("4", 1) and found.seconds.count == 1
    assert repr(found) == "<treadle.serving Statistics: 4 steps, 3 streams started, 1 steps refused>"
    assert repr(server) == "<treadle.serving.Streams of 'm': 1 of 4>"


@pytest.mark.parametrize("wrong", [{"capacity": 0}, {"idle_s": -1.0}, {"idle_s": float("nan")}])
def test_bounds_that_are_none(whole, wrong):
    with pytest.raises(ValueError, match="capacity is at least 1"):
        Streams(whole.session, **{"capacity": 1, **wrong}, **whole.roles)


def test_every_public_name_has_a_docstring():
    assert all(getattr(serving, name).__doc__ for name in serving.__all__ if name != "Id")
