"""Losses and optimisers against numpy, in every version and element type."""

import itertools

import numpy as np
import pytest
from one_node import close, run, schemas, treadle, types_of
from test_elementwise import draw, wide

TRAINING = "ai.onnx.preview.training"


def cases(op):
    return [
        (op, s.since_version, t, label) for s in schemas(op) for t in types_of(s, "T") for label in types_of(s, "Tind")
    ]


def likelihood_loss(log_p, labels, weights, ignored, reduction):
    kept = np.ones(labels.shape, bool) if ignored is None else labels != ignored
    safe = np.where(kept, labels, 0)
    picked = -np.take_along_axis(log_p, np.expand_dims(safe, 1), 1).squeeze(1)
    weight = np.where(kept, 1.0 if weights is None else weights[safe], 0.0)
    loss = picked * weight
    if reduction == "none":
        return loss
    return np.array(loss.sum() / weight.sum() if reduction == "mean" else loss.sum())


@pytest.mark.parametrize(
    "op, version, dtype, label", cases("NegativeLogLikelihoodLoss") + cases("SoftmaxCrossEntropyLoss"), ids=str
)
@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 4), (2, 3, 2, 2, 1)], ids=str)
def test_losses(op, version, dtype, label, shape):
    rng = np.random.default_rng(0)
    scores = draw(rng, shape, dtype)
    labels = rng.integers(0, 3, shape[:1] + shape[2:]).astype(label)
    all_weights = draw(rng, (3,), dtype, 0.5, 2)
    log_p = wide(scores)
    if op == "SoftmaxCrossEntropyLoss":
        log_p = log_p - np.log(np.exp(log_p).sum(1, keepdims=True))
    for weights, ignored, reduction in itertools.product(
        [None, all_weights], [None, 1, -100], ["none", "sum", "mean", None]
    ):
        marked = labels.copy()
        if ignored == -100:
            marked.ravel()[0] = -100
        options = {} if ignored is None else {"ignore_index": ignored}
        options |= {} if reduction is None else {"reduction": reduction}
        outputs = [dtype] * (2 if op == "SoftmaxCrossEntropyLoss" and reduction == "sum" else 1)
        actual = run(op, version, [scores, marked, weights], outputs, options)
        weights = None if weights is None else wide(weights)
        expected = likelihood_loss(log_p, marked, weights, ignored, reduction or "mean")
        np.testing.assert_allclose(wide(actual[0]), expected, **tolerance(dtype))
        if len(outputs) == 2:
            np.testing.assert_allclose(wide(actual[1]), log_p, **tolerance(dtype))


def tolerance(dtype):
    """Five roundings to float16 and bfloat16; a mean over differences cancels, so zero may be off by three times as much."""
    error = {"float64": 1e-12, "float32": 1e-5, "float16": 5e-3, "bfloat16": 4e-2}[np.dtype(dtype).name]
    return {"rtol": error, "atol": 3 * error}


def test_losses_refuse_labels_out_of_range():
    with pytest.raises(treadle.RuntimeException):
        run("NegativeLogLikelihoodLoss", 22, [np.zeros((2, 3), np.float32), np.array([0, 3])], [np.float32])


def optimizer_inputs(rng, dtypes, parts):
    shapes = [(3, 2), (4,), ()]
    return [draw(rng, shape, t, 0.1, 2) for _ in range(parts) for shape, t in zip(shapes, dtypes, strict=False)]


FLOATS = [np.dtype(np.float32), np.dtype(np.float64)]
GROUPS = [(t,) for t in FLOATS] + [(FLOATS[0], FLOATS[1], FLOATS[0])]


@pytest.mark.parametrize("rate_type, dtypes, updates", list(itertools.product(FLOATS, GROUPS, [0, 3])), ids=str)
@pytest.mark.parametrize("op", ["Adagrad", "Adam", "standard", "nesterov"])
def test_optimizers(op, rate_type, dtypes, updates):
    rng = np.random.default_rng(0)
    rate, count = np.array(0.125, rate_type), np.array(updates)
    parts = 4 if op == "Adam" else 3
    data = optimizer_inputs(rng, dtypes, parts)
    n = len(dtypes)
    groups = [[wide(data[p * n + i]) for p in range(parts)] for i in range(n)]
    norm, alpha, beta, epsilon = 0.25, 0.5, 0.75, 0.0078125
    options, name, results = {"norm_coefficient": norm}, op, []
    for x, g, *state in groups:
        g = norm * x + g
        if op == "Adagrad":
            options |= {"decay_factor": 0.5, "epsilon": epsilon}
            h = state[0] + g * g
            results.append([x - 0.125 / (1 + updates * 0.5) * g / (np.sqrt(h) + epsilon), h])
        elif op == "Adam":
            options |= {"alpha": alpha, "beta": beta, "epsilon": epsilon, "norm_coefficient_post": 0.125}
            v, h = alpha * state[0] + (1 - alpha) * g, beta * state[1] + (1 - beta) * g * g
            r = 0.125 * np.sqrt(1 - beta**updates) / (1 - alpha**updates) if updates else 0.125
            results.append([(1 - 0.125) * (x - r * v / (np.sqrt(h) + epsilon)), v, h])
        else:
            name = "Momentum"
            options |= {"alpha": alpha, "beta": beta, "mode": op}
            v = alpha * state[0] + (beta if updates else 1) * g
            results.append([x - 0.125 * (g + alpha * v if op == "nesterov" else v), v])
    wanted = [results[i][p] for p in range(parts - 1) for i in range(n)]
    actual = run(name, 1, [rate, count, *data], list(dtypes) * (parts - 1), options, TRAINING)
    for a, e in zip(actual, wanted, strict=True):
        close(a, np.asarray(e), units=16)
