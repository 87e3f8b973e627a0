"""Many streams at once: microseconds a stream and push of 10 ms, beside a batch that a caller makes by hand for
onnxruntime."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import engines
import measure
import numpy as np
import record
from models.registry import uniform
from onnx import TensorProto, helper, numpy_helper

ROUNDS = 5
SECONDS = 0.1  # of one measurement
STREAMS = (64, 512, 4096)
CHURN = 10  # one stream in so many leaves before a push, and another one comes
GATES = {"LSTM": 4, "GRU": 3}
RNG = np.random.default_rng(0)


@dataclasses.dataclass(frozen=True)
class Network:
    """A recurrence over frames [T, streams, inputs], or behind a convolution over samples [streams, 1, T]."""

    op: str
    inputs: int
    hidden: int
    samples: int = 0  # of a frame; 0: frames come as they are

    @property
    def name(self) -> str:
        before = "convolution + " if self.samples else ""
        return f"{before}{self.op} {self.inputs}-{self.hidden}"

    @property
    def time(self) -> int:
        return 2 if self.samples else 0

    @property
    def states(self) -> list[str]:
        return ["h", "c"] if self.op == "LSTM" else ["h"]

    def chunk(self, streams: int) -> np.ndarray:
        return uniform(RNG, streams, 1, self.samples) if self.samples else uniform(RNG, 1, streams, self.inputs)

    def build(self, step: bool) -> bytes:
        """Over time; or one step, with what is carried as inputs and outputs."""
        gates = GATES[self.op] * self.hidden
        arrays = {"W": weights(1, gates, self.inputs), "R": weights(1, gates, self.hidden), "B": weights(1, 2 * gates)}
        nodes, x, shape = [], "x", ["T", "N", self.inputs]
        if self.samples:
            arrays["filter"] = weights(self.inputs, 1, self.samples)
            nodes.append(helper.make_node("Conv", ["x", "filter"], ["rows"], strides=[self.samples]))
            nodes.append(helper.make_node("Transpose", ["rows"], ["frames"], perm=[2, 0, 1]))
            x, shape = "frames", ["N", 1, "T"]
        carried = self.states if step else []
        nodes.append(
            helper.make_node(
                self.op,
                [x, "W", "R", "B", *([""] if step else []), *carried],
                ["all", *(f"{name}n" for name in carried)],
                hidden_size=self.hidden,
            )
        )
        arrays["one"] = np.array([1], np.int64)
        nodes.append(helper.make_node("Squeeze", ["all", "one"], ["y"]))
        state = [1, "N", self.hidden]
        graph = helper.make_graph(
            nodes,
            "network",
            [value("x", shape), *(value(name, state) for name in carried)],
            [value("y", ["F", "N", self.hidden]), *(value(f"{name}n", state) for name in carried)],
            [numpy_helper.from_array(array, name) for name, array in arrays.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        return bytes(model.SerializeToString())


NETWORKS = (
    Network("LSTM", 40, 64),
    Network("GRU", 40, 128),
    Network("LSTM", 80, 256),
    Network("GRU", 40, 64, samples=160),
)


def weights(*shape: int) -> np.ndarray:
    return uniform(RNG, *shape, scale=0.2)


def value(name: str, shape: list[int | str]):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def batch_by_hand(network: Network, streams: int, chunks: dict[int, np.ndarray]) -> Callable[[], object]:
    """What a caller of onnxruntime writes: chunks and states of all streams joined, run, and taken apart again."""
    session = engines.open_theirs(network.build(step=True))
    axis = 0 if network.samples else 1
    zeros = [np.zeros((1, 1, network.hidden), np.float32)] * len(network.states)
    states = dict.fromkeys(range(streams), zeros)

    def push() -> None:
        feed = {name: np.concatenate([s[k] for s in states.values()], 1) for k, name in enumerate(network.states)}
        found = session.run(None, {"x": np.concatenate(list(chunks.values()), axis), **feed})
        for i in states:
            states[i] = [array[:, i : i + 1] for array in found[1:]]

    return push


def pushes_of(network: Network, streams: int) -> dict[str, tuple[Callable[[], object], int]]:
    """For each column what is measured, and how many streams it pushes."""
    session = engines.open_ours(network.build(step=False))
    x, axis, half = network.chunk(streams), 0 if network.samples else 1, streams // 2
    chunks = {i: np.ascontiguousarray(np.take(x, [i], axis)) for i in range(streams)}

    def pool():
        return session.streams(2 * streams, time={"x": network.time})

    steady, some, changing, named = pool(), pool(), pool(), pool()
    numbers = np.arange(streams)
    drawn = RNG.permutation(streams)[:half]
    of_half = network.chunk(half)
    some.push_batch(numbers, x)
    live = [numbers]

    def churn() -> None:
        if len(changing):
            for number in live[0][: streams // CHURN].tolist():
                changing.leave(number)
            fresh = live[0][-1] + 1 + np.arange(streams // CHURN)
            live[0] = np.concatenate([live[0][streams // CHURN :], fresh])
        changing.push_batch(live[0], x)

    return {
        "by hand, onnxruntime": (batch_by_hand(network, streams, chunks), streams),
        "array": (lambda: steady.push_batch(numbers, x), streams),
        "a tenth new": (churn, streams),
        "any half": (lambda: some.push_batch(drawn, of_half), half),
        "dictionary": (lambda: named.push(chunks), streams),
        "snapshot": (lambda: steady.fork(1).save(), 1),
    }


def bench_pools(options) -> None:
    header = ["network", "streams", "alone", "by hand, onnxruntime", "array", "a tenth new", "any half", "dictionary"]
    header += ["snapshot", "by hand / array", "target", ""]
    print(f"\n| {' | '.join(header)} |\n|{' --- |' * len(header)}")
    for network in NETWORKS:
        if options.match not in network.name:
            continue
        stream = engines.open_ours(network.build(step=False)).stream(time={"x": network.time}, warm=True)
        one = network.chunk(1)
        [alone] = measure.in_turns([lambda: stream.push(one)], ROUNDS, options.seconds or SECONDS)  # noqa: B023
        for streams in STREAMS:
            found = pushes_of(network, streams)
            times = measure.in_turns([run for run, _ in found.values()], ROUNDS, options.seconds or SECONDS)
            each = dict(zip(found, times, strict=True))
            cells = [f"{min(t) / count * 1e6:.2f}" for t, (_, count) in zip(times, found.values(), strict=True)]
            better = measure.ratio(each["by hand, onnxruntime"], each["array"])
            each_us = {name: min(t) / count for (name, (_, count)), t in zip(found.items(), times, strict=True)}
            record.keep("pools", f"{network.name}, {streams} streams", alone=min(alone), **each_us)
            row = [network.name, str(streams), f"{min(alone) * 1e6:.2f}", *cells, str(better), "1.0"]
            print(f"| {' | '.join([*row, measure.at_least(better, 1.0)])} |", flush=True)
