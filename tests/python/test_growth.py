"""Models of thousands of nodes, of kinds that otherwise only small tests have: the results are numpy's."""

import pathlib
import sys

import numpy as np
import pytest

treadle = pytest.importorskip("treadle", reason="the Python package is not built")
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))
growth_models = pytest.importorskip("growth_models", reason="the bench is not beside the tests")

COUNT = 4_000
HALF, LIMIT = np.float32(0.5), np.float32(1.0)


def chosen_by_inputs(x, count):
    for i in range(count):
        x = x - HALF if i % 4 in (0, 2) else x * HALF
    return x


def chosen_by_data(x, count):
    for _ in range(count):
        x = x * HALF if x.max() > LIMIT else x + HALF
    return x


def captured(x, count):
    sums, total = [], x
    for _ in range(count):
        total = total + LIMIT
        sums.append(total)
    for i in range(count):
        x = np.minimum(x, sums[count - 1 - i])
    return x


def loops(x, count):
    first = x
    for _ in range(3 * count):
        x = np.tanh(x + first)
    return x


def one_body(x, count):
    return chain_from(chain_from(chain_from(x, x, count), x, count), x, count)


def chain(x, count):
    return chain_from(x, x, count)


def chain_from(state, x, count):
    steps = [
        np.tanh,
        lambda s: s + x,
        lambda s: s * x,
        lambda s: 1 / (1 + np.exp(-s)),
        lambda s: s - x,
    ]
    for i in range(count):
        state = steps[i % 5](state).astype(np.float32)
    return state


@pytest.mark.parametrize("kind", [chosen_by_inputs, chosen_by_data, captured, loops, one_body, chain])
def test_thousands_of_nodes_compute_the_same_as_numpy(kind):
    data, feed = getattr(growth_models, kind.__name__)(COUNT)
    (result,) = treadle.InferenceSession(data).run(None, feed)
    np.testing.assert_allclose(result, kind(growth_models.start(), COUNT), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", list(growth_models.KINDS.values()), ids=lambda make: make.__name__)
def test_passes_change_no_result(make):
    data, feed = make(300)
    options = treadle.SessionOptions()
    options.graph_optimization_level = treadle.GraphOptimizationLevel.ORT_DISABLE_ALL
    (plain,) = treadle.InferenceSession(data, options).run(None, feed)
    (result,) = treadle.InferenceSession(data).run(None, feed)
    np.testing.assert_allclose(result, plain, rtol=1e-5, atol=1e-6)
