"""Inference, checker and parser against calls that were recorded from the onnx package: inference.py SHARED.

SHARED/conformance holds the calls and a script that replays them against the module tests/onnx/bridge.py. There
treadle follows onnx's rules. By its own rules it may know more, but must not contradict: every type that onnx infers has
to be refined by the type that treadle infers, numbers and names that the model declares included. The same is asked of
the models in SHARED/models, beside the onnx package that is installed, and that nothing but types changes in their files.
What is known more is counted by its kind and by the operators that make the values.
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
# Facts that treadle's rules know better, with the reason.
DIFFERENT = {
    "test_loop": "the condition of an iteration is a scalar, whatever shape the Loop's own has",
    "test_slice_with_input_shape_axes": "steps of unknown rank are not steps left out",
    "test_slice_with_input_shape_steps": "axes of unknown rank are not axes left out",
    "test_stft_reals": "the attribute onesided has the default 1, which onnx's inference overlooks",
    "test_tree_ensemble": "a node that is its own child makes no tree",
}
_FIRST_ITERATION = (
    "a body declares its state with the size of the first iteration, which onnx believes though the body changes it"
)
DIFFERENT_MODELS = {
    "ts_beam_lstm": _FIRST_ITERATION,
    "ts_ctc_collapse": _FIRST_ITERATION,
    "ts_nms_loop": _FIRST_ITERATION,
}


def tensor_types(value_type, path=""):
    """(path, element type, dims or None) of every tensor type within."""
    kind = value_type.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(value_type, kind)
        # Negative numbers are how some exporters write sizes that are not known.
        dims = [d.dim_value if d.dim_value >= 0 and d.HasField("dim_value") else d.dim_param for d in tensor.shape.dim]
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


def dim_params(graph):
    """Names of sizes that a model declares."""
    for value in [*graph.input, *graph.output, *graph.value_info]:
        for _, _, dims in tensor_types(value.type):
            yield from (d for d in dims or [] if isinstance(d, str) and d)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from dim_params(attribute.g)


def producers(graph, prefix=""):
    """Names as in graph_types, each with the operator that makes the value."""
    for i, node in enumerate(graph.node):
        yield from ((prefix + output, node.op_type) for output in node.output)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from producers(attribute.g, f"{prefix}{i}.{attribute.name}/")


class Comparison:
    """Types that onnx infers for one model against those that treadle infers."""

    def __init__(self, model: onnx.ModelProto):
        self.declared = set(dim_params(model.graph))
        self.made_by = dict(producers(model.graph))
        self.wrong: list[str] = []
        self.more: list[tuple[str, str]] = []  # kind, operator
        self.meanings: dict[str, list[str | int]] = {}  # sizes that stand where onnx has a name that it made up

    def compare(self, theirs: dict, ours: dict):
        for name, (element, dims) in theirs.items():
            if name not in ours:
                self.wrong.append(f"{name}: unknown, onnx: {element} {dims}")
                continue
            our_element, our_dims = ours[name]
            if element not in (0, our_element):
                self.wrong.append(f"{name}: element type {our_element}, onnx: {element}")
            elif dims is not None and (our_dims is None or len(our_dims) != len(dims)):
                self.wrong.append(f"{name}: shape {our_dims}, onnx: {dims}")
            elif dims is None and our_dims is not None:
                self.note(name, "a rank")
                self.note_sizes(name, [""] * len(our_dims), our_dims)
            elif dims is not None:
                self.compare_sizes(name, dims, our_dims)
                self.note_sizes(name, dims, our_dims)
            if element == 0 and our_element != 0:
                self.note(name, "an element type")
        for name in ours.keys() - theirs.keys():
            self.note(name, "a type")
        for name, sizes in self.meanings.items():
            if len(sizes) > 1 and (len(set(sizes)) > 1 or sizes[0] == ""):
                self.wrong.append(f"{name} stands for {sorted(set(map(str, sizes)))}")

    def compare_sizes(self, name: str, dims: list, our_dims: list):
        """A number stays, and so does a name that the model gives."""
        for size, our_size in zip(dims, our_dims, strict=True):
            if isinstance(size, int):
                agrees = our_size == size
            elif size in self.declared:
                agrees = our_size == size or isinstance(our_size, int)
            else:
                agrees = True
                if size:
                    self.meanings.setdefault(size, []).append(our_size)
            if not agrees:
                self.wrong.append(f"{name}: shape {our_dims}, onnx: {dims}")
                return

    def note_sizes(self, name: str, dims: list, our_dims: list):
        for size, our_size in zip(dims, our_dims, strict=True):
            if isinstance(size, int) or our_size == size:
                continue
            if isinstance(our_size, int):
                self.note(name, "a number for a size that the model names" if size in self.declared else "a number")
            elif our_size in self.declared:
                self.note(name, "a name that the model gives")
            elif our_size and not our_size.startswith("unk__"):
                self.note(name, "an expression")

    def note(self, name: str, kind: str):
        self.more.append(
            (kind, self.made_by.get(name.removesuffix("/sequence_type").removesuffix("/optional_type"), "?"))
        )


def compare(model: bytes, recorded: bytes, flags: tuple[bool, bool]) -> Comparison:
    comparison = Comparison(onnx.ModelProto.FromString(model))
    ours = onnx.ModelProto.FromString(treadle.infer_shapes(model, flags[0], False, flags[1]))
    theirs = onnx.ModelProto.FromString(recorded)
    comparison.compare(dict(graph_types(theirs.graph)), dict(graph_types(ours.graph)))
    return comparison


def fields(message: bytes) -> list[tuple[int, bytes, bytes]]:
    """Number, contents and all bytes of a message's fields, in order."""

    def varint(at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            byte = message[at]
            value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
            if byte < 0x80:
                return value, at

    result, at = [], 0
    while at < len(message):
        tag, after = varint(at)
        if tag & 7 == 2:
            length, begin = varint(after)
            end = begin + length
        else:
            begin = after
            end = varint(after)[1] if tag & 7 == 0 else after + (8 if tag & 7 == 1 else 4)
        result.append((tag >> 3, message[begin:end], message[at:end]))
        at = end
    return result


# Where types are written: fields of a model, a graph, a node, an attribute, a value info; None: anything may change.
_GRAPH: dict = {12: {2: None}, 13: {2: None}}
_GRAPH[1] = {5: {6: _GRAPH}}
_MODEL = {7: _GRAPH}


def keeps_bytes(before: bytes, after: bytes, may_change: dict | None = _MODEL) -> bool:
    """Whether `after` is `before` but for types, and value infos at the end of graphs."""
    if before == after or may_change is None:
        return True
    old, new = fields(before), fields(after)
    added = new[len(old) :]
    if added and not all(number == (13 if may_change is _GRAPH else 2) for number, _, _ in added):
        return False
    for (number, contents, whole), (new_number, new_contents, new_whole) in zip(old, new, strict=False):
        inner = may_change.get(number, {})
        if number != new_number or (whole != new_whole and not inner and number not in may_change):
            return False
        if whole != new_whole and not keeps_bytes(contents, new_contents, inner):
            return False
    return len(new) >= len(old)


class Refinement:
    """All comparisons of a run."""

    def __init__(self):
        self.counts = collections.Counter()
        self.more = collections.Counter()  # by kind and operator

    def add(self, label: str, comparison: Comparison, reason: str | None):
        if comparison.wrong and reason:
            self.counts["skipped"] += 1
            print(f"{label}: {reason}")
        elif comparison.wrong:
            self.counts["failed"] += 1
            print(f"{label}: {'; '.join(comparison.wrong)}")
        elif reason:
            self.counts["failed"] += 1
            print(f"{label}: agrees, though it is said to differ")
        else:
            self.counts["passed"] += 1
        self.more.update(comparison.more)

    def print_more(self):
        print(f"by treadle's rules, {self.more.total()} things are known that onnx does not know:")
        for kind in sorted({kind for kind, _ in self.more}):
            operators = collections.Counter({operator: n for (k, operator), n in self.more.items() if k == kind})
            listed = ", ".join(f"{operator} {n}" for operator, n in sorted(operators.items()))
            print(f"  {kind}: {operators.total()} ({listed})")


def compare_recorded(folder: pathlib.Path, refinement: Refinement):
    for description in sorted((folder / "corpus_shape").glob("*.json")):
        call = json.loads(description.read_text())
        if call["api"] != "infer_shapes" or not call["ok"]:
            continue
        model = description.with_suffix(".in.onnx").read_bytes()
        recorded = description.with_suffix(".out.onnx").read_bytes()
        name = call["test"].split("::")[-1]
        comparison = compare(model, recorded, (call["check_type"], call["data_prop"]))
        refinement.add(f"{description.stem} {name}", comparison, DIFFERENT.get(name.split("[")[0]))


def compare_models(folder: pathlib.Path, refinement: Refinement):
    for path in sorted(folder.glob("*/model.onnx")):
        model = path.read_bytes()
        theirs = onnx.shape_inference.infer_shapes(model, check_type=False, strict_mode=False, data_prop=True)
        recorded = theirs if isinstance(theirs, bytes) else theirs.SerializeToString()
        if not keeps_bytes(model, treadle.infer_shapes(model, False, False, True)):
            refinement.counts["failed"] += 1
            print(f"{path.parent.name}: more than types is written otherwise")
        refinement.add(
            path.parent.name, compare(model, recorded, (False, True)), DIFFERENT_MODELS.get(path.parent.name)
        )


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
        refinement = Refinement()
        compare_recorded(folder, refinement)
    compare_models(pathlib.Path(sys.argv[1]) / "models", refinement)
    refinement.print_more()
    counts = refinement.counts
    last = re.search(r"(\d+) passed, (\d+) failed\s*$", replay.stdout)
    passed, failed = (int(last[1]), int(last[2])) if last else (0, 1)
    passed, failed = passed + counts["passed"], failed + counts["failed"]
    print(f"{passed} passed, {failed} failed, {counts['skipped']} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
