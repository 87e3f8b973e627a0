"""Streams and pools as context managers, pushes of an array alone, and their texts."""

import gc
import inspect
import weakref

import models
import numpy as np
import pytest
import treadle

ONES = np.ones(3, np.float32)


def counting(inputs="x"):
    """y = h + the inputs; h becomes y."""
    names = inputs.split()
    nodes = [
        models.node("Sum", ["h", *names], ["y"]),
        models.node("Identity", ["y"], ["hN"]),
    ]
    types = [models.value(name, shape=[3]) for name in [*names, "h"]]
    return treadle.InferenceSession(models.model(nodes, types, [models.value(n, shape=[3]) for n in ("y", "hN")]))


def over_time():
    data = models.model(
        [models.node("CumSum", ["x", "axis"], ["y"])],
        [models.value("x", shape=["T", 3])],
        [models.value("y", shape=["T", 3])],
        initializers=[models.helper.make_tensor("axis", models.INT64, [], [0])],
    )
    return treadle.InferenceSession(data)


def test_an_array_alone_is_the_one_input():
    stream = counting().stream(state={"h": "hN"})
    assert stream.push(ONES).tolist() == [1, 1, 1]
    assert stream.push([1, 1, 1.0]).tolist() == [2, 2, 2]
    assert stream.push({"x": ONES}).tolist() == [3, 3, 3]
    assert stream.fork().push(ONES).tolist() == stream.push(ONES).tolist() == [4, 4, 4]


def test_an_array_alone_is_the_input_that_is_neither_bound_nor_given_by_keyword():
    session = counting("x gain")
    bound = session.stream(state={"h": "hN"}, bind={"gain": ONES})
    assert bound.push(ONES).tolist() == [2, 2, 2]
    stream = session.stream(state={"h": "hN"})
    assert stream.push(ONES, gain=ONES).tolist() == [2, 2, 2]
    assert stream.push(ONES, x=ONES).tolist() == [4, 4, 4]


def test_arguments_of_push_are_those_of_a_function_of_python():
    stream, x = counting().stream(state={"h": "hN"}), ONES
    first = stream.push(x)
    for push in (
        lambda: stream.push(x=x),
        lambda: stream.push({"x": x}),
        lambda: stream.push(x, run_options=None),
        lambda: stream.push(x=x, progress=None),
        lambda: treadle.Stream.push(stream, x=x),
    ):
        stream.reset()
        np.testing.assert_array_equal(push(), first)
    with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments but 3 were given"):
        stream.push(x, x)
    with pytest.raises(TypeError, match="'x' is given twice"):
        stream.push({"x": x}, x=x)
    with pytest.raises(treadle.InvalidArgument, match="no input 'z'"):
        stream.push(x=x, z=x)
    assert [*inspect.signature(treadle.Stream.push).parameters][1:] == ["feed", "run_options", "progress", "inputs"]


def test_an_array_alone_for_several_inputs_is_an_error_that_names_them():
    stream = counting("x gain").stream(state={"h": "hN"})
    with pytest.raises(treadle.InvalidArgument, match="takes x, gain: give each by its name"):
        stream.push(ONES)
    with pytest.raises(treadle.InvalidArgument, match="has no input left"):
        stream.push(ONES, x=ONES, gain=ONES)
    assert stream.push(x=ONES, gain=ONES).tolist() == [2, 2, 2]
    pool = counting("x gain").streams(2, state={"h": "hN"})
    with pytest.raises(treadle.InvalidArgument, match="x, gain"):
        pool.push({"a": ONES})


@pytest.mark.parametrize("fails", [False, True])
def test_leaving_closes_a_stream(fails):
    session = over_time()
    try:
        with session.stream(time={"x": 0}) as stream:
            assert not stream.closed
            assert stream.push(ONES[None]).tolist() == [[1, 1, 1]]
            core = weakref.ref(stream._core) if hasattr(type(stream._core), "__weakref__") else None
            if fails:
                raise KeyError
    except KeyError:
        assert fails
    assert stream.closed
    gc.collect()
    assert core is None or core() is None
    for use in (lambda: stream.push(ONES[None]), stream.flush, stream.reset, stream.save, stream.fork,
                lambda: stream.state, lambda: stream.pending, lambda: stream.load(b""), stream.__enter__,
                lambda: stream.output_names):  # fmt: skip
        with pytest.raises(ValueError, match="the stream is closed"):
            use()
    stream.close()
    assert repr(stream) == str(stream) == "<treadle.Stream, closed>"
    assert session.stream(time={"x": 0}).push(ONES[None]).tolist() == [[1, 1, 1]]  # the session goes on


def test_leaving_closes_a_pool():
    with over_time().streams(4, time={"x": 0}) as pool:
        pool.push({"a": ONES[None], "b": ONES[None]})
        apart = pool.fork("a")
        assert repr(pool) == "<treadle.StreamPool: 2 of 4 streams -> y, run one by one>"
    assert pool.closed and len(pool) == 0 and "a" not in pool
    for use in (lambda: pool.push({"a": ONES[None]}), lambda: pool.flush("a"), lambda: pool.leave("a"), pool.__enter__,
                lambda: pool.runs, lambda: pool.fork("a")):  # fmt: skip
        with pytest.raises(ValueError, match="the pool is closed"):
            use()
    pool.close()
    assert repr(pool) == "<treadle.StreamPool, closed>"
    assert apart.push(ONES[None]).tolist() == [[2, 2, 2]]  # a stream of its own


def test_streams_describe_themselves_in_a_line():
    stream = counting().stream(state={"h": "hN"})
    assert repr(stream) == "<treadle.Stream: x -> y, 1 state>"
    windows = over_time().stream(time={"x": 0}, hop=4)
    windows.push(np.ones((6, 3), np.float32))
    assert repr(windows) == "<treadle.Stream: x -> y, 0 states, 2 pending>"
    assert len(str(windows).splitlines()) > 1
