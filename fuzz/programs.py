"""Random control-flow programs, run by every tier of treadle, by plain numpy loops and by onnxruntime where it can.

    programs.py [--count N] [--seed S] [--opset V ...] [--size K] [--without-onnxruntime] [--keep DIR] [--shrink]

A program is what random_programs/ grows from a seed and an opset: nested If, Loop, Scan, SequenceMap and recurrent nodes
over tensors, sequences and optionals. Every program is run on two sets of inputs, the first of them again at the
end. The tiers must agree with each other, on one thread and on two, with the numpy evaluator, and with onnxruntime where
that gives an answer: exactly in type, shape, integers, booleans and strings, floats up to rounding. What can be streamed
along an axis of an input gives in blocks what one run gives. Programs that differ are written to DIR, with --shrink as
small as they get. Programs run in a process of their own, so that a crash is a finding, too. Exit
status 1 when there was any.
"""

from __future__ import annotations

import argparse
import pathlib
import pickle
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace

import numpy as np
import onnx
import onnxruntime
import treadle

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests" / "suites"))

import streamed as streams
from random_programs.blocks import OPSETS
from random_programs.evaluator import NoAnswer, evaluate
from random_programs.generator import make_program

TIERS = {
    "reference": {"tier": "reference"},
    "program": {"jit": "off"},
    "native": {"jit": "always"},
    "native from iteration 1": {"jit": "always", "jit_iteration": "1"},
    "program, 2 threads": {"jit": "off", "threads": 2},
    "native, 2 threads": {"jit": "always", "threads": 2},
}
MOST_AXES = 3  # that a program is streamed along
# Relative and absolute: states pass through many roundings, each within the bounds of an operator.
TOLERANCE = {"bfloat16": (1e-1, 1e-1), "float16": (5e-2, 5e-2), "float32": (2e-4, 2e-4), "float64": (1e-8, 1e-8)}


@dataclass
class Verdict:
    """`name`: 'same'; 'unjudged' where neither reference answers; 'DIFFERENT'. `peer`: what onnxruntime did."""

    name: str
    detail: str = ""
    peer: str = ""
    streamed: int = 0  # axes

    @property
    def wrong(self) -> bool:
        return self.name == "DIFFERENT"


def difference(ours, theirs, place: str = "output", exactly: bool = False) -> str:
    """Empty where both are the same; `exactly`: to the last bit, but for which NaN it is."""
    if isinstance(theirs, (list, tuple)):
        if not isinstance(ours, (list, tuple)) or len(ours) != len(theirs):
            return f"{place}: {type(ours).__name__} against a list of {len(theirs)}"
        found = (difference(a, b, f"{place}[{i}]", exactly) for i, (a, b) in enumerate(zip(ours, theirs, strict=True)))
        return next((f for f in found if f), "")
    if theirs is None or ours is None:
        return "" if ours is None and theirs is None else f"{place}: {ours} against {theirs}"
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{place}: {a.dtype}{a.shape} against {b.dtype}{b.shape}"
    if exactly and b.dtype.name in TOLERANCE:
        same = np.array_equal(a, b, equal_nan=True) and not np.any((np.signbit(a) != np.signbit(b)) & ~np.isnan(b))
    elif b.dtype.name in TOLERANCE:
        relative, absolute = TOLERANCE[b.dtype.name]
        same = np.allclose(a.astype(np.float64), b.astype(np.float64), relative, absolute, equal_nan=True)
    else:
        same = np.array_equal(a, b)
    return "" if same else f"{place}: {str(a.tolist())[:100]} against {str(b.tolist())[:100]}"


def attempt(run):
    try:
        return run(), ""
    except Exception as problem:  # an engine's own exceptions are of many classes
        return None, f"{type(problem).__name__}: {problem}"


def make_session(data: bytes, threads: int = 1, **entries: str) -> treadle.InferenceSession:
    options = treadle.SessionOptions()
    options.intra_op_num_threads = threads
    for key, value in entries.items():
        options.add_session_config_entry(f"treadle.{key}", value)
    return treadle.InferenceSession(data, options)


def run_tier(data: bytes, feeds: list[dict], tier: str) -> list:
    session = make_session(data, **TIERS[tier])
    return [session.run(None, feed) for feed in feeds]


def stream_fault(data: bytes, feed: dict) -> tuple[str, int]:
    """What is wrong with the model in blocks, and along how many axes it can be streamed."""
    session = make_session(data)
    streamed = 0
    for names, axis in streams.candidates(feed)[:MOST_AXES]:
        good, trouble = streams.try_axis(treadle, session, feed, names, axis)
        if good is False:
            return f"streamed, {trouble}", streamed
        streamed += bool(good)
    return "", streamed


def run_onnxruntime(data: bytes, feeds: list[dict]) -> list:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return [session.run(None, feed) for feed in feeds]


def subgraphs(graph: onnx.GraphProto):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from subgraphs(attribute.g)


def peer_departs(model: onnx.ModelProto) -> bool:
    """A Loop without `cond`: there the specification ignores the body's condition, onnxruntime obeys it."""
    nodes = [node for graph in subgraphs(model.graph) for node in graph.node]
    nodes += [node for function in model.functions for node in function.node]
    return any(node.op_type == "Loop" and not node.input[1] for node in nodes) or bool(model.functions)


def judge(model: onnx.ModelProto, feeds: list[dict]) -> Verdict:
    """treadle against itself and against the numpy evaluator."""
    data = model.SerializeToString()
    ours, problem = attempt(lambda: run_tier(data, feeds, "reference"))
    planned = None
    for tier in [tier for tier in TIERS if tier != "reference"]:
        result, trouble = attempt(lambda t=tier: run_tier(data, [*feeds, feeds[0]], t))
        if (ours is None) != (result is None):
            return Verdict("DIFFERENT", f"reference: {problem or 'ran'}; {tier}: {trouble or 'ran'}")
        if ours is not None and (found := difference(result, [*ours, ours[0]])):
            return Verdict("DIFFERENT", f"{tier} and reference: {found}")
        planned = result if tier == "program" else planned
        if tier != "program" and (found := difference(result, planned, exactly=True)):
            return Verdict("DIFFERENT", f"{tier} and program: {found}")
    try:
        expected = [evaluate(model, feed) for feed in feeds]
    except NoAnswer:
        return Verdict("unjudged", problem)
    except Exception as trouble:
        if ours is None:
            return Verdict("unjudged", problem)  # both refuse
        return Verdict("DIFFERENT", f"treadle ran; numpy: {type(trouble).__name__}: {trouble}")
    if ours is None:
        return Verdict("DIFFERENT", f"numpy ran; treadle: {problem}")
    found = difference(ours, expected)
    if found:
        return Verdict("DIFFERENT", f"treadle and numpy: {found}")
    found, trouble = attempt(lambda: stream_fault(data, feeds[0]))
    fault, streamed = found or (f"streamed: {trouble}", 0)
    return Verdict("DIFFERENT", fault) if fault else Verdict("same", streamed=streamed)


def compare_with_peer(model: onnx.ModelProto, feeds: list[dict], verdict: Verdict) -> Verdict:
    data = model.SerializeToString()
    theirs, problem = attempt(lambda: run_onnxruntime(data, feeds))
    if theirs is None or peer_departs(model):
        return replace(verdict, peer=problem or "departs from the specification")
    ours, problem = attempt(lambda: run_tier(data, feeds, "program"))
    if ours is None:
        return Verdict("DIFFERENT", f"onnxruntime ran; treadle: {problem}", "ran")
    found = difference(ours, theirs)
    if found and verdict.name != "same":
        return Verdict("DIFFERENT", f"treadle and onnxruntime: {found}", "ran")
    # Where treadle agrees with the evaluator, onnxruntime is one of its known exceptions.
    return replace(verdict, name="same", detail="", peer=f"differs: {found}" if found else "agrees")


# A process that programs run in -------------------------------------------------------------------------------------


def write_message(stream, message) -> None:
    data = pickle.dumps(message)
    stream.write(struct.pack("<q", len(data)) + data)
    stream.flush()


def read_message(stream):
    head = stream.read(8)
    return pickle.loads(stream.read(struct.unpack("<q", head)[0])) if len(head) == 8 else None


def serve(with_peer: bool) -> None:
    """Answers each (model, feeds) by two verdicts: before and after onnxruntime, which may take the process down."""
    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    while (request := read_message(sys.stdin.buffer)) is not None:
        model = onnx.load_model_from_string(request[0])
        verdict = judge(model, request[1])
        write_message(answers, astuple(verdict))
        last = compare_with_peer(model, request[1], verdict) if with_peer and not verdict.wrong else verdict
        write_message(answers, astuple(last))


class Runner:
    """Runs programs in a process that is started anew when one of them ends it."""

    def __init__(self, with_peer: bool = True) -> None:
        self.arguments = ["--serve"] + ([] if with_peer else ["--without-onnxruntime"])
        self.process: subprocess.Popen | None = None

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_) -> None:
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()

    def run(self, model: onnx.ModelProto, feeds: list[dict]) -> Verdict:
        if self.process is None:
            command = [sys.executable, __file__, *self.arguments]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        write_message(self.process.stdin, (model.SerializeToString(), feeds))
        verdict = read_message(self.process.stdout)
        last = read_message(self.process.stdout) if verdict is not None else None
        if last is not None:
            return Verdict(*last)
        status = self.process.wait()
        self.process.stdout.close()
        self.process = None
        if verdict is not None:
            return replace(Verdict(*verdict), peer=f"onnxruntime ended the process (status {status})")
        return Verdict("DIFFERENT", f"treadle ended the process (status {status})")


def check(runner: Runner, seed: int, opset: int, size: int = 1) -> Verdict:
    return runner.run(*make_program(seed, opset, size))


def feeds_of(model: onnx.ModelProto, feeds: list[dict]) -> list[dict]:
    """Those for the inputs that the model has."""
    return [{info.name: feed[info.name] for info in model.graph.input} for feed in feeds]


def shrink(model: onnx.ModelProto, feeds: list[dict], wrong: Callable[[onnx.ModelProto, list[dict]], bool]):
    """The smallest model found that is still wrong on what it has of the inputs, and valid if the model is."""

    def is_valid(candidate: onnx.ModelProto, some: list[dict]) -> bool:
        return attempt(lambda: evaluate(candidate, some[0]))[1] == ""

    def fails(data: bytes) -> bool:
        candidate = onnx.load_model_from_string(data)
        if any(info.name not in feeds[0] for info in candidate.graph.input):
            return False
        some = feeds_of(candidate, feeds)
        return is_valid(candidate, some) == valid and wrong(candidate, some)

    valid = is_valid(model, feeds)
    return onnx.load_model_from_string(treadle.reduce(model.SerializeToString(), fails))


def keep(runner: Runner, folder: pathlib.Path, model: onnx.ModelProto, feeds: list[dict], smaller: bool) -> None:
    """Writes a program as a folder of the backend tests' layout without expected outputs."""
    if smaller:
        model = shrink(model, feeds, lambda candidate, some: runner.run(candidate, some).wrong)
        feeds = feeds_of(model, feeds)
    place = folder / "test_data_set_0"
    place.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    (folder / "model.txt").write_text(onnx.printer.to_text(model))
    for i, info in enumerate(model.graph.input):
        tensor = onnx.numpy_helper.from_array(feeds[0][info.name], info.name)
        (place / f"input_{i}.pb").write_bytes(tensor.SerializeToString())


def parser_of_programs(description: str) -> argparse.ArgumentParser:
    """Which programs are made, and the option of the process that runs them."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--opset", type=int, nargs="*", default=list(OPSETS))
    parser.add_argument("--size", type=int, default=1, help="times as many nodes as usual")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser


def main() -> int:
    parser = parser_of_programs(__doc__)
    parser.add_argument("--without-onnxruntime", action="store_true", help="which takes half of the time")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--shrink", action="store_true")
    arguments = parser.parse_args()
    if arguments.serve:
        serve(not arguments.without_onnxruntime)
        return 0
    counts: dict[str, int] = {}
    begin = time.monotonic()
    with Runner(not arguments.without_onnxruntime) as runner:
        for k in range(arguments.count):
            seed, opset = arguments.seed + k, arguments.opset[k % len(arguments.opset)]
            verdict = check(runner, seed, opset, arguments.size)
            peer = "onnxruntime " + verdict.peer.split(":")[0].split(" (")[0]
            for name in (verdict.name, peer, *(["streamed"] if verdict.streamed else [])):
                counts[name] = counts.get(name, 0) + 1
            if verdict.wrong:
                print(f"seed {seed}, opset {opset}: {verdict.detail}", flush=True)
                if arguments.keep:
                    folder = arguments.keep / f"{seed}-{opset}"
                    keep(runner, folder, *make_program(seed, opset, arguments.size), arguments.shrink)
    wrong = counts.get("DIFFERENT", 0)
    print(", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items())))
    print(f"{arguments.count / (time.monotonic() - begin):.0f} programs per second")
    print(f"{arguments.count - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
