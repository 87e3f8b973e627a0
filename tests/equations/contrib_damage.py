"""Random nodes of com.microsoft with something wrong in them: an operand of another shape, of other numbers, missing, or
an attribute that is out of range. Each runs, or is refused by an error of the engine's.

    python contrib_damage.py MODULE COUNT

MODULE: one with MAKERS (contrib.py), or with DAMAGED where that is more. Says what it runs before it does, so that a crash has its node in the last line.
"""

import importlib
import sys

import numpy as np
from contrib import Node
from one_node import treadle

REFUSALS = (
    treadle.Fail, treadle.InvalidArgument, treadle.InvalidGraph, treadle.LimitExceeded, treadle.NotImplemented,
    treadle.RuntimeException,
)  # fmt: skip
WRONG_INTEGERS = (-(2**63), -(2**31), -1000, -2, -1, 0, 1, 3, 7, 1000, 2**31 - 1, 2**31, 2**62, 2**63 - 1)
WRONG_FLOATS = (float("nan"), float("inf"), float("-inf"), -1.0, 0.0, 1e38)
TIME_LIMIT, MEMORY_LIMIT = 5.0, 1 << 30


def damaged_shape(x: np.ndarray, random: np.random.Generator) -> np.ndarray:
    shape = list(x.shape)
    axis = int(random.integers(len(shape))) if shape else 0
    kind = int(random.integers(6)) if shape else 4
    if kind == 0:
        shape[axis] += int(random.integers(1, 4))
    elif kind == 1:
        shape[axis] = max(0, shape[axis] - 1)
    elif kind == 2:
        shape[axis] = int(random.choice([0, 1]))
    elif kind == 3:
        del shape[axis]
    elif kind == 4:
        shape.insert(axis, int(random.choice([0, 1, 2])))
    else:
        shape = [x.size]
    return np.resize(x, shape) if x.size else np.zeros(shape, x.dtype)


def damaged_values(x: np.ndarray, random: np.random.Generator) -> np.ndarray:
    if x.size == 0 or x.dtype == object:
        return x
    values = x.copy().reshape(-1)
    wrong = WRONG_INTEGERS if x.dtype.kind in "iu" else (0, 1) if x.dtype.kind == "b" else WRONG_FLOATS
    if x.dtype.kind in "iu":
        limits = np.iinfo(x.dtype)
        wrong = [min(max(v, limits.min), limits.max) for v in wrong]
    places = slice(None) if random.integers(3) == 0 else random.integers(values.size, size=1 + values.size // 8)
    values[places] = random.choice(np.array(wrong).astype(x.dtype) if x.dtype.kind in "iub" else np.float32(wrong))
    return values.reshape(x.shape)


def damage(node: Node, random: np.random.Generator) -> str:
    """Changes the node; says how."""
    present = [i for i, x in enumerate(node.inputs) if x is not None]
    kind = int(random.integers(4))
    if kind == 3 and node.attributes:
        name = str(random.choice(list(node.attributes)))
        old = node.attributes[name]
        if isinstance(old, str | bytes):
            node.attributes[name] = "nothing"
        elif isinstance(old, list | tuple):
            shorter = len(old) > 1 and random.integers(2)
            node.attributes[name] = list(old)[:-1] if shorter else [int(random.choice(WRONG_INTEGERS))] * 2
        else:
            node.attributes[name] = type(old)(random.choice(WRONG_FLOATS if isinstance(old, float) else WRONG_INTEGERS))
        return f"attribute {name} is {node.attributes[name]}"
    at = int(random.choice(present))
    if kind == 0 and len(present) > 1:
        node.inputs[at] = None
    elif kind == 1:
        node.inputs[at] = damaged_values(node.inputs[at], random)
    else:
        node.inputs[at] = damaged_shape(node.inputs[at], random)
    left = node.inputs[at]
    return f"input {at} is " + ("left out" if left is None else f"{left.dtype}{list(left.shape)} {left.ravel()[:4]}")


def outcome(node: Node) -> str:
    options = treadle.SessionOptions()
    options.load_time_limit = TIME_LIMIT
    run_options = treadle.RunOptions()
    run_options.time_limit, run_options.memory_limit = TIME_LIMIT, MEMORY_LIMIT
    try:
        session = treadle.InferenceSession(node.model(node.inputs, node.outputs), options)
        session.run(None, node.feeds(node.inputs), run_options)
    except REFUSALS as problem:
        assert getattr(problem, "code", "") != "internal", problem
        return "refused"
    return "ran"


def main(module: str, count: int) -> None:
    tests = importlib.import_module(module)
    counts = {"ran": 0, "refused": 0}
    for number, maker in enumerate(getattr(tests, "DAMAGED", tests.MAKERS)):
        for seed in range(count):
            random = np.random.default_rng([number, seed])
            node = maker(random)
            node.symbolic = bool(random.integers(2))
            what = " and ".join(damage(node, random) for _ in range(int(random.choice([1, 1, 2]))))
            print(f"{node.op}, seed {seed}, attributes {node.attributes}: {what}", flush=True)
            counts[outcome(node)] += 1
    print(counts)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
