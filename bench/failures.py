"""Ten models that fail, and what `treadle reduce` makes of them: build/venv/bin/python bench/failures.py [NAME ...]

By failure: nodes before and after, attempts, seconds. The real models are those of SHARED/models (a folder beside the
repository, or $TREADLE_SHARED). The judge of a failure is a command: the tool, or judges.py.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from judges import onnxruntime_refusal
from onnx import helper

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHARED = pathlib.Path(os.environ.get("TREADLE_SHARED", ROOT.parent / "shared")) / "models"
TOOL = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", ROOT / "build" / "bin")) / "treadle"
FEW = 5  # nodes that a reduced model has fewer than


@dataclass
class Failure:
    """A model that fails, and the command that says so. `words`: further ones for `treadle reduce`."""

    name: str
    make: Callable[[], onnx.ModelProto]
    command: str
    words: tuple[str, ...] = ()


# Models that fail --------------------------------------------------------------------------------------------------


def bodies(graph: onnx.GraphProto) -> Iterator[tuple[onnx.NodeProto, onnx.GraphProto]]:
    """(the node, the body) of all bodies in a graph."""
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield node, attribute.g
                yield from bodies(attribute.g)


def real(name: str) -> onnx.ModelProto:
    return onnx.load(SHARED / name / "model.onnx")


def body_of(model: onnx.ModelProto, kind: str) -> onnx.GraphProto:
    """The body with most nodes of all loops of that kind."""
    return max((body for node, body in bodies(model.graph) if node.op_type == kind), key=lambda body: len(body.node))


def plant_behind(body: onnx.GraphProto, kind: str, nodes: Callable[[str, str], list[onnx.NodeProto]]) -> None:
    """Puts nodes(from, to) behind the last node of one kind."""
    at = max(i for i, node in enumerate(body.node) if node.op_type == kind)
    result = body.node[at].output[0]
    body.node[at].output[0] = "planted_from"
    planted = nodes("planted_from", result)
    rest = list(body.node[at + 1 :])
    del body.node[at + 1 :]
    body.node.extend([*planted, *rest])


def nan_in_scan() -> onnx.ModelProto:
    """A logarithm of what is below 0 in the body of a voice detector's Scan."""
    model = real("silero_scan_op15")
    plant_behind(
        body_of(model, "Scan"),
        "Sigmoid",
        lambda a, b: [helper.make_node("Neg", [a], ["below"]), helper.make_node("Log", ["below"], [b])],
    )
    return model


def nan_in_iteration() -> onnx.ModelProto:
    """The root of what is below 0 from the fourth iteration of a decoder's Loop on."""
    model = real("ts_greedy_attention")
    body = body_of(model, "Loop")
    three = onnx.numpy_helper.from_array(np.float32(3.5), "planted_three")
    body.initializer.append(three)
    plant_behind(
        body,
        "Softmax",
        lambda a, b: [
            helper.make_node("Cast", [body.input[0].name], ["planted_i"], to=onnx.TensorProto.FLOAT),
            helper.make_node("Sub", ["planted_three", "planted_i"], ["planted_rest"]),
            helper.make_node("Sqrt", ["planted_rest"], ["planted_root"]),
            helper.make_node("Add", [a, "planted_root"], [b]),
        ],
    )
    return model


def unknown_operator() -> onnx.ModelProto:
    """A misspelt operator in the body of a loop of a model of several hundred nodes."""
    model = real("silero_loop_plain")
    body = body_of(model, "Loop")
    next(node for node in reversed(body.node) if node.op_type == "Sigmoid").op_type = "Sigmoide"
    return model


def types_that_do_not_fit() -> onnx.ModelProto:
    """A sum of floats and the integers of a count."""
    model = real("torch_bert_small")
    graph = model.graph
    at = len(graph.node) // 2
    while graph.node[at].op_type != "Add":
        at += 1
    graph.node.insert(at, helper.make_node("Shape", [graph.node[at].input[0]], ["planted_shape"]))
    graph.node[at + 1].input[1] = "planted_shape"
    return model


def index_out_of_range() -> onnx.ModelProto:
    """A row that a table does not have, in an iteration of a generator's Loop."""
    model = real("tf_while_gru_gen")
    body = body_of(model, "Loop")
    body.initializer.append(onnx.numpy_helper.from_array(np.arange(4, dtype=np.int64), "planted_table"))
    body.initializer.append(onnx.numpy_helper.from_array(np.int64(0), "planted_zero"))
    condition = body.output[0].name
    body.node.extend(
        [
            helper.make_node("Gather", ["planted_table", body.input[0].name], ["planted_row"]),
            helper.make_node("GreaterOrEqual", ["planted_row", "planted_zero"], ["planted_true"]),
            helper.make_node("And", ["planted_true", condition], ["planted_condition"]),
        ]
    )
    body.output[0].name = "planted_condition"
    return model


def endless() -> onnx.ModelProto:
    """A search for a fixed point that never ends."""
    model = real("torch_while_deq")
    body = body_of(model, "Loop")
    body.initializer.append(onnx.numpy_helper.from_array(np.bool_(True), "planted_true"))
    body.output[0].name = "planted_condition"
    body.node.append(helper.make_node("Identity", ["planted_true"], ["planted_condition"]))
    node = next(node for node, found in bodies(model.graph) if found is body)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.int64(1 << 60), "planted_count"))
    node.input[0] = "planted_count"
    return model


def condition_without_effect() -> onnx.ModelProto:
    """A body's condition that is false after three iterations, in a Loop without `cond`: the specification ignores it,
    onnxruntime obeys it."""
    model = real("os_rk4_vdp")
    body = body_of(model, "Loop")
    node = next(node for node, found in bodies(model.graph) if found is body)
    node.input[1] = ""
    body.initializer.append(onnx.numpy_helper.from_array(np.int64(3), "planted_three"))
    body.node.append(helper.make_node("Less", [body.input[0].name, "planted_three"], ["planted_condition"]))
    body.output[0].name = "planted_condition"
    return model


def refused_program() -> onnx.ModelProto:
    """The first random program that runs and whose types onnxruntime does not infer."""
    sys.path.append(str(ROOT / "fuzz"))
    from random_programs.generator import make_program

    for seed in range(200):
        model, _ = make_program(seed, 16, 2)
        try:
            if "TypeInferenceError" in onnxruntime_refusal(model.SerializeToString()):
                return model
        except Exception:  # it does not run
            continue
    raise LookupError("onnxruntime refuses no program")


# The list ------------------------------------------------------------------------------------------------------------


def by(word: str) -> str:
    return f"{sys.executable} -W ignore {pathlib.Path(__file__).with_name('judges.py')} {word} {{}}"


SHOWN = f"{TOOL} show {{}} --text"
CRASH = f"{SHOWN} | grep -q '= LSTM' && {SHOWN} | grep -q '= Slice' && kill -SEGV $$; true"
FAILURES = [
    Failure("nan in the body of a Scan", nan_in_scan, by("nan")),
    Failure("nan from an iteration of a Loop on", nan_in_iteration, by("nan")),
    Failure("an unknown operator", unknown_operator, f"{TOOL} run {{}} --random 1", ("--matches", "Sigmoide")),
    Failure(
        "types that do not fit",
        types_that_do_not_fit,
        f"{TOOL} check {{}} --full",
        ("--matches", "its type is another"),
    ),
    Failure(
        "an index out of range in an iteration",
        index_out_of_range,
        f"{TOOL} run {{}} --random 1",
        ("--matches", "out of range"),
    ),
    Failure("a loop that does not end", endless, f"{TOOL} run {{}} --random 1", ("--timeout", "1")),
    Failure("weights rounded to f16", lambda: real("torch_gru_charlm"), by("f16")),
    Failure("another result than onnxruntime's", condition_without_effect, by("onnxruntime")),
    Failure("a refusal of onnxruntime", refused_program, by("refusal"), ("--matches", "TypeInferenceError")),
    Failure("a crash by a signal", lambda: real("torch_crnn_ocr"), CRASH),
]


def reduce(failure: Failure, folder: pathlib.Path, jobs: int) -> dict:
    """What `treadle reduce --json` says, and under "kinds" what is left."""
    onnx.save(failure.make(), folder / "model.onnx")
    words = [folder / "model.onnx", "--keep", failure.command, "-o", folder / "small.onnx", "--json", "--jobs", jobs]
    done = subprocess.run([TOOL, "reduce", *map(str, words), *failure.words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{failure.name}: {done.stdout} {done.stderr}; {shlex.quote(failure.command)}")
    small = onnx.load(folder / "small.onnx")
    kinds = [node.op_type for node in small.graph.node]
    kinds += [node.op_type for _, body in bodies(small.graph) for node in body.node]
    return {**json.loads(done.stdout), "kinds": kinds}


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the names of failures; none: all")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args(words)
    chosen = [f for f in FAILURES if not arguments.names or any(name in f.name for name in arguments.names)]
    small = 0
    print(
        "| failure | nodes | bodies | bytes | attempts | seconds | left |\n| --- | --- | --- | --- | --- | --- | --- |"
    )
    for failure in chosen:
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = reduce(failure, pathlib.Path(folder), arguments.jobs)
            except (OSError, RuntimeError, LookupError, ValueError, StopIteration) as problem:
                print(f"| {failure.name} | {problem} |", flush=True)
                continue
        before, after = found["before"], found["after"]
        small += after["nodes"] < FEW
        sizes = " | ".join(f"{before[what]:,} -> {after[what]:,}" for what in ("nodes", "bodies", "bytes"))
        print(f"| {failure.name} | {sizes} | {found['attempts']} | {found['seconds']:.1f} | {' '.join(found['kinds'])} |", flush=True)  # fmt: skip
    print(f"\nfewer than {FEW} nodes: {small} of {len(chosen)}")
    return 0 if small == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
