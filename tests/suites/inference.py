"""Inference, checker and parser against calls that were recorded from the onnx package: inference.py SHARED [--all].

SHARED/conformance holds the calls and a script that replays them against the module tests/onnx/bridge.py. There
treadle follows onnx's rules. By its own rules it may know more, but must not contradict: every type that onnx infers has
to be refined by the type that treadle infers.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

import onnx
import treadle

ROOT = pathlib.Path(__file__).parents[2]
# What our rules know better, with the reason.
DIFFERENT = {
    "test_loop": "the condition of a trip is a scalar, whatever shape the Loop's own has",
    "test_resize_scale_precision_large_dim": "sizes are multiplied in single precision, as they are at run time",
    "test_slice_with_input_shape_axes": "steps of unknown rank are not steps left out",
    "test_slice_with_input_shape_steps": "axes of unknown rank are not axes left out",
    "test_stft_reals": "the attribute onesided has the default 1, which onnx's inference overlooks",
    "test_tree_ensemble": "a node that is its own child makes no tree",
}


def tensor_types(value_type, path=""):
    """(path, element type, dims or None) of every tensor type within."""
    kind = value_type.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(value_type, kind)
        dims = [d.dim_value if d.HasField("dim_value") else d.dim_param for d in tensor.shape.dim]
        yield path, tensor.elem_type, dims if tensor.HasField("shape") else None
    elif kind in ("sequence_type", "optional_type"):
        yield from tensor_types(getattr(value_type, kind).elem_type, f"{path}/{kind}")
    elif kind == "map_type":
        yield from tensor_types(value_type.map_type.value_type, f"{path}/{kind}")


def graph_types(graph, prefix=""):
    for value in [*graph.value_info, *graph.output]:
        for path, element, dims in tensor_types(value.type):
            yield prefix + value.name + path, (element, dims)
    for i, node in enumerate(graph.node):
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from graph_types(attribute.g, f"{prefix}{i}.{attribute.name}/")


def contradiction(theirs, ours):
    """What `ours` has otherwise than `theirs`; None if it says the same or more."""
    (element, dims), (our_element, our_dims) = theirs, ours
    if element not in (0, our_element):
        return f"element type {our_element}, onnx: {element}"
    if dims is None:
        return None
    if our_dims is None or len(our_dims) != len(dims):
        return f"shape {our_dims}, onnx: {dims}"
    for size, our_size in zip(dims, our_dims, strict=True):
        if isinstance(size, int) and our_size != size:
            return f"shape {our_dims}, onnx: {dims}"
    return None


def refines(model, recorded, flags) -> tuple[list[str], int]:
    """Contradictions, and how many values treadle knows more of."""
    found = dict(graph_types(onnx.ModelProto.FromString(treadle.infer_shapes(model, flags[0], False, flags[1])).graph))
    wrong, more = [], 0
    for name, theirs in graph_types(onnx.ModelProto.FromString(recorded).graph):
        if name not in found:
            wrong.append(f"{name}: unknown, onnx: {theirs}")
            continue
        problem = contradiction(theirs, found[name])
        if problem:
            wrong.append(f"{name}: {problem}")
        known = [isinstance(d, int) for d in theirs[1] or []]
        ours = [isinstance(d, int) for d in found[name][1] or []]
        more += not problem and (len(ours) > len(known) or sum(ours) > sum(known))
    return wrong, more


def check_refinement(folder: pathlib.Path) -> collections.Counter:
    counts = collections.Counter()
    for description in sorted((folder / "corpus_shape").glob("*.json")):
        call = json.loads(description.read_text())
        if call["api"] != "infer_shapes" or not call["ok"]:
            continue
        model = description.with_suffix(".in.onnx").read_bytes()
        recorded = description.with_suffix(".out.onnx").read_bytes()
        name = call["test"].split("::")[-1]
        wrong, more = refines(model, recorded, (call["check_type"], call["data_prop"]))
        reason = DIFFERENT.get(name.split("[")[0])
        counts["passed" if not wrong else "skipped" if reason else "failed"] += 1
        counts["values known better"] += more
        if wrong:
            print(f"{description.stem} {name}: {reason or '; '.join(wrong)}")
    return counts


def main() -> int:
    conformance = pathlib.Path(sys.argv[1]) / "conformance"
    if not (conformance / "corpora.tgz").exists():
        print(f"no recorded calls in {conformance}\n0 passed, 0 failed, 1 skipped")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        with tarfile.open(conformance / "corpora.tgz") as archive:
            archive.extractall(temporary)
        folder = next(pathlib.Path(temporary).rglob("corpus_shape")).parent
        replay = subprocess.run(
            [sys.executable, conformance / "replay.py", folder, "bridge", "shape,check,parser"],
            cwd=ROOT / "tests" / "onnx",
            env={**os.environ, "PYTHONPATH": ":".join([*sys.path[1:], str(ROOT / "tests" / "onnx")])},
            capture_output=True,
            text=True,
            check=False,
        )
        print(replay.stdout + replay.stderr)
        counts = check_refinement(folder)
    print(f"by treadle's rules: {counts['values known better']} values known better than by onnx")
    last = re.search(r"(\d+) passed, (\d+) failed\s*$", replay.stdout)
    passed, failed = (int(last[1]), int(last[2])) if last else (0, 1)
    passed, failed = passed + counts["passed"], failed + counts["failed"]
    print(f"{passed} passed, {failed} failed, {counts['skipped']} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
