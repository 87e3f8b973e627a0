"""Random control-flow programs, run by both tiers of treadle and by onnxruntime where it runs them.

    programs.py [--count N] [--seed S] [--opset V ...] [--keep DIR]

A program is a graph of small float tensors, integers and booleans with nested If, Loop and Scan: captured values,
states that swap, grow or are sequences, conditions of the body's own, scan axes and directions. The tiers must agree
with each other exactly in type and shape and to 1e-4 in value, and with onnxruntime where that gives an answer.
Programs that differ are written to DIR. Exit status 1 when any did.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnxruntime
import treadle
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
OPSETS = (16, 17, 18, 19, 21, 22, 23, 24)


@dataclass
class Scope:
    """Values that nodes may use, by kind; `shape` None: known only at run time."""

    floats: list[tuple[str, tuple[int, ...] | None]] = field(default_factory=list)
    ints: list[str] = field(default_factory=list)
    bools: list[str] = field(default_factory=list)

    def inner(self) -> Scope:
        return Scope(list(self.floats), list(self.ints), list(self.bools))


class Generator:
    """Grows one model; everything follows from the seed."""

    def __init__(self, seed: int, opset: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.opset = opset
        self.names = 0
        self.initializers: list[onnx.TensorProto] = []

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def constant(self, array: np.ndarray) -> str:
        name = self.name("k")
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def weights(self, *shape: int) -> str:
        return self.constant(self.rng.uniform(-1, 1, shape).astype(np.float32))

    # Nodes of straight-line code ------------------------------------------------------------------------------------

    def simple(self, scope: Scope, nodes: list) -> None:
        choice = self.rng.integers(9)
        out = self.name("v")
        if choice <= 3:
            x, shape = self.pick(scope.floats)
            others = [v for v in scope.floats if v[1] == shape or v[1] == ()] if shape is not None else [(x, shape)]
            y, _ = self.pick(others)
            nodes.append(helper.make_node(self.pick(["Add", "Sub", "Mul", "Max", "Min"]), [x, y], [out]))
            bounded = self.name("v")
            nodes.append(helper.make_node("Tanh", [out], [bounded]))
            scope.floats.append((bounded, shape))
        elif choice == 4:
            x, shape = self.pick(scope.floats)
            nodes.append(helper.make_node(self.pick(["Neg", "Sigmoid", "Abs", "Identity"]), [x], [out]))
            scope.floats.append((out, shape))
        elif choice == 5:
            x, _ = self.pick(scope.floats)
            nodes.append(helper.make_node("ReduceMax", [x], [out], keepdims=0))
            scope.floats.append((out, ()))
        elif choice == 6:
            x, y = self.pick(scope.ints), self.pick(scope.ints)
            total, limited = self.name("i"), self.name("i")
            nodes.append(helper.make_node(self.pick(["Add", "Sub"]), [x, y], [total]))
            nodes.append(helper.make_node("Mod", [total, self.constant(np.array(7, np.int64))], [limited]))
            scope.ints.append(limited)
        elif choice == 7:
            x, y = self.pick(scope.ints), self.pick(scope.ints)
            nodes.append(helper.make_node(self.pick(["Less", "Equal"]), [x, y], [out]))
            scope.bools.append(out)
        else:
            x, y = self.pick(scope.bools), self.pick(scope.bools)
            nodes.append(helper.make_node(self.pick(["And", "Or", "Xor"]), [x, y], [out]))
            scope.bools.append(out)

    def block(self, scope: Scope, size: int, depth: int) -> list:
        nodes: list = []
        for _ in range(size):
            kind = self.rng.random()
            if depth > 0 and kind < 0.15:
                self.branch(scope, nodes, depth - 1)
            elif depth > 0 and kind < 0.35:
                self.loop(scope, nodes, depth - 1)
            elif depth > 0 and kind < 0.5:
                self.scan(scope, nodes, depth - 1)
            else:
                self.simple(scope, nodes)
        return nodes

    # Control flow ---------------------------------------------------------------------------------------------------

    def info(self, name: str, kind: int, shape=None) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    def branch(self, scope: Scope, nodes: list, depth: int) -> None:
        unlike = self.rng.random() < 0.3
        target = self.pick(scope.floats)[1]
        graphs = []
        for attribute in ("then", "else"):
            inner = scope.inner()
            body = self.block(inner, int(self.rng.integers(0, 4)), depth)
            if unlike:
                result, _ = self.pick(inner.floats)
            else:
                same = [v for v in inner.floats if v[1] == target]
                result, _ = self.pick(same)
            out = self.name("o")
            body.append(helper.make_node("Identity", [result], [out]))
            graphs.append(helper.make_graph(body, self.name(attribute), [], [self.info(out, FLOAT)]))
        out = self.name("v")
        nodes.append(
            helper.make_node("If", [self.pick(scope.bools)], [out], then_branch=graphs[0], else_branch=graphs[1])
        )
        scope.floats.append((out, None if unlike else target))

    def loop(self, scope: Scope, nodes: list, depth: int) -> None:
        states = [v for v in scope.floats if v[1] is not None]
        chosen = [self.pick(states) for _ in range(int(self.rng.integers(1, 4)))]
        growing = self.rng.random() < 0.4
        sequence = self.rng.random() < 0.25
        limit = self.constant(np.array(self.rng.integers(-1, 6), np.int64))
        i, go, go_next = self.name("t"), self.name("c"), self.name("c")
        inner = scope.inner()
        inner.ints.append(i)
        inputs = [self.info(i, INT64, []), self.info(go, BOOL, [])]
        starts, kinds = [], []
        for start, shape in chosen:
            state = self.name("s")
            inputs.append(self.info(state, FLOAT, shape))
            inner.floats.append((state, shape))
            starts.append(start)
            kinds.append((state, shape))
        body = self.block(inner, int(self.rng.integers(1, 6)), depth)
        body.append(
            helper.make_node(
                self.pick(["Less", "Less", "Equal"]),
                [i, self.constant(np.array(self.rng.integers(0, 9), np.int64))],
                [go_next],
            )
        )
        outputs = [self.info(go_next, BOOL, [])]
        # Any value of the right shape may become a state: swaps, captured values and constants included.
        results = []
        for _, shape in kinds:
            end, _ = self.pick([v for v in inner.floats if v[1] == shape])
            out = self.name("o")
            body.append(helper.make_node("Identity", [end], [out]))
            outputs.append(self.info(out, FLOAT, shape))
            results.append((self.name("v"), shape))
        grown = None
        if growing:
            state, out = self.name("g"), self.name("g")
            row = self.name("r")
            width = 3
            body.append(
                helper.make_node("Expand", [self.weights(1, 1), self.constant(np.array([1, width], np.int64))], [row])
            )
            body.append(helper.make_node("Concat", [state, row], [out], axis=0))
            inputs.append(self.info(state, FLOAT, [None, width]))
            outputs.append(self.info(out, FLOAT, [None, width]))
            starts.append(self.weights(int(self.rng.integers(0, 3)), width))
            grown = self.name("v")
        collected = None
        if sequence:
            state, out = self.name("q"), self.name("q")
            value, _ = self.pick([v for v in inner.floats if v[1] is not None])
            lifted = self.name("r")
            body.append(helper.make_node("Reshape", [value, self.constant(np.array([-1], np.int64))], [lifted]))
            body.append(helper.make_node("SequenceInsert", [state, lifted], [out]))
            kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, None))
            inputs.append(helper.make_value_info(state, kind))
            outputs.append(helper.make_value_info(out, kind))
            first, empty = self.name("q"), self.name("q")
            nodes.append(helper.make_node("SequenceEmpty", [], [empty], dtype=FLOAT))
            nodes.append(helper.make_node("SequenceInsert", [empty, self.weights(2)], [first]))
            starts.append(first)
            collected = self.name("q")
        stacked = None
        if self.rng.random() < 0.5:
            element, shape = self.pick([v for v in inner.floats if v[1] is not None])
            out = self.name("o")
            body.append(helper.make_node("Identity", [element], [out]))
            outputs.append(self.info(out, FLOAT, shape))
            stacked = self.name("v")
        outs = [r for r, _ in results] + [n for n in (grown, collected, stacked) if n]
        condition = self.pick(["", self.pick(scope.bools)]) if self.rng.random() < 0.2 else self.pick(scope.bools)
        graph = helper.make_graph(body, self.name("body"), inputs, outputs)
        nodes.append(helper.make_node("Loop", [limit, condition, *starts], outs, body=graph))
        scope.floats.extend(results)
        scope.floats.extend((n, None) for n in (grown, stacked) if n)
        if collected:
            joined = self.name("v")
            nodes.append(helper.make_node("ConcatFromSequence", [collected], [joined], axis=0))
            scope.floats.append((joined, None))

    def scan(self, scope: Scope, nodes: list, depth: int) -> None:
        length = int(self.rng.integers(1, 5))
        count = int(self.rng.integers(1, 3))
        inner = scope.inner()
        inputs, starts, ins, axes, directions = [], [], [], [], []
        start, shape = self.pick([v for v in scope.floats if v[1] is not None])
        state = self.name("s")
        inputs.append(self.info(state, FLOAT, shape))
        inner.floats.append((state, shape))
        starts.append(start)
        for _ in range(count):
            axis = int(self.rng.integers(2))
            whole = self.weights(*((length, 3) if axis == 0 else (3, length)))
            element = self.name("x")
            inputs.append(self.info(element, FLOAT, [3]))
            inner.floats.append((element, (3,)))
            ins.append(whole)
            axes.append(axis - 2 if self.rng.random() < 0.3 else axis)
            directions.append(int(self.rng.integers(2)))
        body = self.block(inner, int(self.rng.integers(1, 5)), depth)
        end, _ = self.pick([v for v in inner.floats if v[1] == shape])
        element, kind = self.pick([v for v in inner.floats if v[1] is not None])
        out_state, out_row = self.name("o"), self.name("o")
        body.append(helper.make_node("Identity", [end], [out_state]))
        body.append(helper.make_node("Identity", [element], [out_row]))
        outputs = [self.info(out_state, FLOAT, shape), self.info(out_row, FLOAT, kind)]
        graph = helper.make_graph(body, self.name("body"), inputs, outputs)
        final, rows = self.name("v"), self.name("v")
        nodes.append(
            helper.make_node(
                "Scan",
                [*starts, *ins],
                [final, rows],
                body=graph,
                num_scan_inputs=count,
                scan_input_axes=axes,
                scan_input_directions=directions,
                scan_output_axes=[int(self.rng.integers(len(kind) + 1))],
                scan_output_directions=[int(self.rng.integers(2))],
            )
        )
        scope.floats.extend([(final, shape), (rows, None)])

    def model(self) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
        scope = Scope(floats=[("a", (2, 3)), ("b", (3,)), ("f", ())], ints=["n", "m"], bools=["p", "q"])
        nodes = self.block(scope, int(self.rng.integers(3, 9)), int(self.rng.integers(1, 4)))
        outputs = [self.info(name, FLOAT) for name, _ in scope.floats[3:]][-6:]
        outputs += [self.info(name, INT64) for name in scope.ints[2:]][-2:]
        if not outputs:
            nodes.append(helper.make_node("Identity", ["a"], ["out"]))
            outputs = [self.info("out", FLOAT)]
        inputs = [
            self.info("a", FLOAT, [2, 3]),
            self.info("b", FLOAT, [3]),
            self.info("f", FLOAT, []),
            self.info("n", INT64, []),
            self.info("m", INT64, []),
            self.info("p", BOOL, []),
            self.info("q", BOOL, []),
        ]
        graph = helper.make_graph(nodes, "program", inputs, outputs, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)
        feeds = {
            "a": self.rng.uniform(-1, 1, (2, 3)).astype(np.float32),
            "b": self.rng.uniform(-1, 1, 3).astype(np.float32),
            "f": np.array(self.rng.uniform(-1, 1), np.float32),
            "n": np.array(self.rng.integers(-3, 9), np.int64),
            "m": np.array(self.rng.integers(-3, 9), np.int64),
            "p": np.array(bool(self.rng.integers(2))),
            "q": np.array(bool(self.rng.integers(2))),
        }
        return model, feeds


def has_absent_condition(graph: onnx.GraphProto) -> bool:
    """A Loop without `cond`: there the specification ignores the body's condition, onnxruntime obeys it."""
    for node in graph.node:
        if node.op_type == "Loop" and not node.input[1]:
            return True
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH and has_absent_condition(attribute.g):
                return True
    return False


def run_tier(data: bytes, feeds: dict, tier: str, times: int = 1):
    options = treadle.SessionOptions()
    options.add_session_config_entry("treadle.tier", tier)
    session = treadle.InferenceSession(data, options)
    for _ in range(times):
        result = session.run(None, feeds)
    return result


def difference(ours, theirs) -> str:
    for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"output {k}: {a.dtype}{a.shape} against {b.dtype}{b.shape}"
        if not np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True):
            return f"output {k}: largest difference {np.abs(a - b).max()}"
    return ""


def attempt(run):
    try:
        return run(), ""
    except Exception as problem:  # an engine's own exceptions are of many classes
        return None, f"{type(problem).__name__}: {problem}"


def check(seed: int, opset: int) -> tuple[str, str, onnx.ModelProto]:
    """(verdict, detail, model); the verdict is 'same', 'judge only' (onnxruntime gave no answer) or 'DIFFERENT'."""
    model, feeds = Generator(seed, opset).model()
    data = model.SerializeToString()
    judge, judge_problem = attempt(lambda: run_tier(data, feeds, "judge"))
    program, program_problem = attempt(lambda: run_tier(data, feeds, "program", times=2))
    if (judge is None) != (program is None):
        return "DIFFERENT", f"judge: {judge_problem or 'ran'}; program: {program_problem or 'ran'}", model
    if judge is not None and (found := difference(program, judge)):
        return "DIFFERENT", f"program and judge: {found}", model
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    theirs, problem = attempt(
        lambda: onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, feeds)
    )
    if theirs is None or has_absent_condition(model.graph):
        return "judge only", problem[:120], model
    if judge is None:
        return "DIFFERENT", f"onnxruntime ran; treadle: {judge_problem}", model
    if found := difference(judge, theirs):
        return "DIFFERENT", f"judge and onnxruntime: {found}", model
    return "same", "", model


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--opset", type=int, nargs="*", default=list(OPSETS))
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    counts: dict[str, int] = {}
    for k in range(arguments.count):
        seed, opset = arguments.seed + k, arguments.opset[k % len(arguments.opset)]
        verdict, detail, model = check(seed, opset)
        counts[verdict] = counts.get(verdict, 0) + 1
        if verdict == "DIFFERENT":
            print(f"seed {seed}, opset {opset}: {detail}", flush=True)
            if arguments.keep:
                arguments.keep.mkdir(parents=True, exist_ok=True)
                onnx.save(model, arguments.keep / f"{seed}.onnx")
    wrong = counts.get("DIFFERENT", 0)
    print(", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items())))
    print(f"{arguments.count - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
