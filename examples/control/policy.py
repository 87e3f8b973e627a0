"""Makes policy.onnx: a GRU that balances a pole on a cart at 1 kHz, and sees the cart's place and the pole's angle alone.

A linear regulator that sees the velocities as well is the teacher. The units of the GRU follow what is seen at speeds
from 3 ms to 300 ms, so that their differences hold the velocities; the output layer learns what the teacher would do, in
the states into which the policy itself gets (DAgger).
"""

from __future__ import annotations

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

STEP = 0.001  # seconds
CART, POLE, LENGTH, GRAVITY = 1.0, 0.1, 0.5, 9.81  # kg, kg, m to the pole's middle, m/s^2; as in loop.c
FORCE = 20.0  # N, at most
NOISE = np.array([2e-5, 5e-5])  # m and rad, of what is seen
UNITS = 32
SCALE = np.array([1.0, 2.0])  # of what is seen, before the units
EPISODES, STEPS, ROUNDS = 32, 1500, 5


def accelerations(state: np.ndarray, force: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the cart and of the pole's angle; `state` has place, velocity, angle and its velocity along the last axis."""
    _, _, angle, turning = np.moveaxis(state, -1, 0)
    sine, cosine = np.sin(angle), np.cos(angle)
    pushed = (force + POLE * LENGTH * turning**2 * sine) / (CART + POLE)
    turned = (GRAVITY * sine - cosine * pushed) / (LENGTH * (4 / 3 - POLE * cosine**2 / (CART + POLE)))
    return pushed - POLE * LENGTH * turned * cosine / (CART + POLE), turned


def advanced(state: np.ndarray, force: np.ndarray) -> np.ndarray:
    cart, pole = accelerations(state, force)
    state = state.copy()
    state[..., 1] += STEP * cart
    state[..., 3] += STEP * pole
    state[..., 0] += STEP * state[..., 1]
    state[..., 2] += STEP * state[..., 3]
    return state


def regulator() -> np.ndarray:
    """The gains of the linear-quadratic regulator around the upright pole."""
    rest, unit = np.zeros(4), np.eye(4) * 1e-5
    a = np.stack([(advanced(rest + e, 0.0) - advanced(rest - e, 0.0)) / 2e-5 for e in unit], axis=1)
    b = ((advanced(rest, 1e-5) - advanced(rest, -1e-5)) / 2e-5)[:, None]
    cost = np.diag([10.0, 1.0, 100.0, 1.0])
    value = cost
    for _ in range(8000):
        gain = np.linalg.solve(0.1 + b.T @ value @ b, b.T @ value @ a)
        value = cost + a.T @ value @ (a - b @ gain)
    return gain[0]


class Policy:
    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.seen = np.zeros((UNITS, 2))
        self.seen[: UNITS // 2, 0] = self.seen[UNITS // 2 :, 1] = 1
        self.seen += 0.1 * rng.standard_normal(self.seen.shape)
        speeds = np.tile(np.geomspace(0.003, 0.3, UNITS // 2), 2)
        self.kept = np.exp(-STEP / speeds)  # the update gate
        self.out = np.zeros(UNITS + 2)

    def units(self, before: np.ndarray, seen: np.ndarray) -> np.ndarray:
        return self.kept * before + (1 - self.kept) * np.tanh(seen * SCALE @ self.seen.T)

    def force(self, units: np.ndarray, seen: np.ndarray) -> np.ndarray:
        return np.clip(np.concatenate([units, seen * SCALE], axis=-1) @ self.out, -FORCE, FORCE)


def episodes(policy: Policy, gain: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the units hold, what the teacher would do, and the angles; the teacher drives a `share` of the episodes."""
    rng = np.random.default_rng(seed)
    state = rng.uniform(-1, 1, (EPISODES, 4)) * [0.3, 0.1, 0.1, 0.1]
    taught = np.arange(EPISODES) < share * EPISODES
    units, features, wanted, angles = None, [], [], []
    for _ in range(STEPS):
        seen = state[:, [0, 2]] + NOISE * rng.standard_normal((EPISODES, 2))
        if units is None:
            units = np.zeros((EPISODES, UNITS))
        units = policy.units(units, seen)
        teacher = np.clip(-state @ gain, -FORCE, FORCE)
        features.append(np.concatenate([units, seen * SCALE], axis=1))
        wanted.append(teacher)
        angles.append(state[:, 2])
        state = advanced(state, np.where(taught, teacher, policy.force(units, seen)))
        fallen = np.abs(state[:, 2]) > 0.6
        state[fallen] = 0
        units[fallen] = 0
    return np.concatenate(features), np.concatenate(wanted), np.stack(angles)


def train() -> Policy:
    policy, gain = Policy(), regulator()
    features, wanted = [], []
    for k in range(ROUNDS):
        rows, forces, angles = episodes(policy, gain, 1.0 if k == 0 else 0.2, k)
        features.append(rows)
        wanted.append(forces)
        x, y = np.concatenate(features), np.concatenate(wanted)
        squares = x.T @ x
        policy.out = np.linalg.solve(squares + 1e-7 * np.trace(squares) / len(squares) * np.eye(len(squares)), x.T @ y)
    return policy


def model(policy: Policy) -> onnx.ModelProto:
    """As a model with the inputs 'seen' and 'units', which gives 'force' and the units of the next step."""
    silent = np.zeros((UNITS, 2))
    update = np.log(policy.kept / (1 - policy.kept))
    open_gate = np.full(UNITS, 20.0)
    bias = np.concatenate([update, open_gate, np.zeros(UNITS), np.zeros(3 * UNITS)])
    weights = {
        "scale": SCALE,
        "w": np.concatenate([silent, silent, policy.seen])[None],
        "r": np.zeros((1, 3 * UNITS, UNITS)),
        "b": bias[None],
        "out": policy.out[:, None],
        "least": -FORCE,
        "most": FORCE,
        "first": np.array([0]),
    }
    nodes = [
        helper.make_node("Mul", ["seen", "scale"], ["scaled"]),
        helper.make_node("Unsqueeze", ["scaled", "first"], ["steps"]),
        helper.make_node("GRU", ["steps", "w", "r", "b", "", "units"], ["", "units_out"], hidden_size=UNITS),
        helper.make_node("Squeeze", ["units_out", "first"], ["now"]),
        helper.make_node("Concat", ["now", "scaled"], ["features"], axis=1),
        helper.make_node("MatMul", ["features", "out"], ["wanted"]),
        helper.make_node("Clip", ["wanted", "least", "most"], ["force"]),
    ]
    typed = lambda name, *sizes: helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)  # noqa: E731
    graph = helper.make_graph(
        nodes,
        "policy",
        [typed("seen", 1, 2), typed("units", 1, 1, UNITS)],
        [typed("force", 1, 1), typed("units_out", 1, 1, UNITS)],
        [
            numpy_helper.from_array(np.asarray(array, np.int64 if name == "first" else np.float32), name)
            for name, array in weights.items()
        ],
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)])


def main() -> None:
    policy = train()
    _, _, angles = episodes(policy, regulator(), 0.0, 100)
    print(f"after one second the pole is at most {np.degrees(np.abs(angles[1000:]).max()):.2f} degrees off")
    onnx.save(model(policy), sys.argv[1] if len(sys.argv) > 1 else "policy.onnx")


if __name__ == "__main__":
    main()
