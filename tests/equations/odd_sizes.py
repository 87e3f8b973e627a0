"""Nodes of every operator whose inputs have odd sizes, in all tiers; each prints what differs.

    python odd_sizes.py KIND [--long] [--near] [--most N] [--seeds N] [--samples FILE] [--only TEXT] [--part I OF]

--samples: the nodes, pickled, which take longer to find than to read.

KIND:
  nothing   each size of each input 0: alone, together with equal ones, with those of one axis
  one       likewise 1
  outputs   every output that the operator may have is named
  scalars   a scalar where there was one element in an axis, and the other way round

Each node runs alone in all tiers, with sizes that are known and that are symbols after a run of other sizes, with inputs
that are constants, one by one and all, and (nothing) in a loop whose states have no elements in the first iteration.
All of that has to give the same bits, or be refused everywhere. A line begins with "wrong", "made" (a digest of what was
computed, which another fill of fresh memory must not change) or "done". A child process runs the nodes: what ends it is
wrong, and the next child goes on behind it. TREADLE_ISA=baseline has the kernels of the reference interpreter.
"""

import argparse
import functools
import hashlib
import itertools
import mmap
import os
import pathlib
import pickle
import resource
import signal
import struct
import sys
import traceback
import warnings

import numpy as np
import onnx
from every_operator import Sample, samples
from one_node import treadle
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

REFUSALS = (
    treadle.Fail, treadle.InvalidArgument, treadle.InvalidGraph, treadle.LimitExceeded, treadle.NotImplemented,
    treadle.RuntimeException,
)  # fmt: skip
SECONDS, MEMORY = 30, 8 << 30
# These operators' results depend on sizes. If planning does not know the sizes, the node is refused.
LOWERED_BY_SIZES = (
    "DequantizeLinear", "QuantizeLinear",
    "com.microsoft.MoEGroupRouter", "com.microsoft.QMoE", "com.microsoft.RelativePositionBias", "com.microsoft.RotaryEmbedding",
    "com.microsoft.SparseAttention",
)  # fmt: skip
# The cases in which the onnx package's evaluator cannot judge, with reasons.
UNJUDGED = {
    "DynamicQuantizeLinear": "the scale of numbers that are all 0 is 1, as in onnxruntime",
    "LinearAttention": "the evaluator multiplies a sum of nothing by 1 / sqrt(0)",
    "QLinearMatMul": "the evaluator multiplies scales before it rounds",
}


# Variants ------------------------------------------------------------------------------------------------------------


def resized(x: np.ndarray, shape) -> np.ndarray:
    for axis, size in enumerate(shape):
        if size <= x.shape[axis]:
            x = np.take(x, range(size), axis)
        else:
            x = np.take(x, np.arange(size) % x.shape[axis], axis) if x.shape[axis] else np.zeros(
                (*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype
            )  # fmt: skip
    return x


def places(sample: Sample) -> list:
    """(input, axis, size) of all axes."""
    return [
        (i, axis, size)
        for i, x in enumerate(sample.inputs)
        if isinstance(x, np.ndarray)
        for axis, size in enumerate(x.shape)
    ]


def groups_of_axes(sample: Sample):
    """(variant, the axes) that take a size together."""
    found = places(sample)
    by_size, by_axis, by_input = {}, {}, {}
    for i, axis, size in found:
        yield f"axis {axis} of input {i}", [(i, axis)]
        by_size.setdefault(size, []).append((i, axis))
        by_axis.setdefault(axis, []).append((i, axis))
        by_input.setdefault(i, []).append((i, axis))
    yield from ((f"all sizes of {size}", axes) for size, axes in by_size.items())
    yield from ((f"axis {axis} of all inputs", axes) for axis, axes in by_axis.items())
    yield from ((f"input {i}", axes) for i, axes in by_input.items())
    for size, axes in by_size.items():
        for one, other in itertools.islice(itertools.combinations(axes, 2), 30):
            if one[0] != other[0]:
                yield (
                    f"size {size} of axis {one[1]} of input {one[0]} and axis {other[1]} of input {other[0]}",
                    [one, other],
                )
    if len(by_input) > 1:
        yield "everything", [(i, axis) for i, axis, _ in found]


def with_size(sample: Sample, axes: list, size: int) -> Sample:
    shapes = [list(x.shape) if isinstance(x, np.ndarray) else None for x in sample.inputs]
    for i, axis in axes:
        shapes[i][axis] = size
    pairs = zip(sample.inputs, shapes, strict=True)
    return sample.with_inputs(x if s is None else resized(x, s) for x, s in pairs)


def shapes_of(sample: Sample) -> tuple:
    return tuple(x.shape if isinstance(x, np.ndarray) else None for x in sample.inputs)


def of_size(sample: Sample, size: int):
    seen = {shapes_of(sample)}
    for what, axes in groups_of_axes(sample):
        changed = with_size(sample, axes, size)
        if shapes_of(changed) not in seen:
            seen.add(shapes_of(changed))
            yield f"{what} is {size}", changed, axes


def with_all_outputs(sample: Sample, records: dict):
    """The node with one more of its possible outputs named, and with all of them."""
    versions = records[sample.op]["versions"]
    opset = dict(sample.opsets).get(sample.node.domain, 1)
    version = [v for v in versions if v["since"] <= opset][-1]
    formals = [o for o in version["outputs"] if o["option"] != "variadic"]
    now = [bool(name) for name in sample.node.output] + [False] * len(formals)
    missing = [i for i in range(len(formals)) if not now[i]]
    for named in [[i] for i in missing] + [missing]:
        outputs = [i in named or now[i] for i in range(max([*named, len(sample.node.output) - 1]) + 1)]
        node = onnx.NodeProto()
        node.CopyFrom(sample.node)
        node.output[:] = [f"y{i}" if there else "" for i, there in enumerate(outputs)]
        if named:
            yield f"outputs {', '.join(formals[i]['name'] for i in named)} named", replaced(sample, node), []


def replaced(sample: Sample, node) -> Sample:
    return Sample(sample.name, node, sample.inputs, sample.opsets, sample.types)


def with_scalars(sample: Sample):
    for i, x in enumerate(sample.inputs):
        if not isinstance(x, np.ndarray) or x.size == 0 or x.ndim > 1:
            continue
        other = x.reshape(1) if x.ndim == 0 else x[:1].reshape(())
        shape = "[1]" if x.ndim == 0 else "a scalar"
        yield (
            f"input {i} is {shape}",
            sample.with_inputs(other if k == i else y for k, y in enumerate(sample.inputs)),
            [],
        )


def variants(kind: str, sample: Sample, records: dict):
    if kind == "outputs":
        return with_all_outputs(sample, records)
    return with_scalars(sample) if kind == "scalars" else of_size(sample, 0 if kind == "nothing" else 1)


# Ways to run a node --------------------------------------------------------------------------------------------------


@functools.lru_cache
def settings(**options):
    made = treadle.SessionOptions()
    made.load_time_limit = SECONDS
    for key, value in options.items():
        made.add_session_config_entry(f"treadle.{key}", value)
    return made


@functools.lru_cache(maxsize=16)
def model_of(sample: Sample, constants: tuple = (), symbolic: bool = False) -> bytes:
    return sample.model(constants, symbolic)


def session(model: bytes, **options):
    return treadle.InferenceSession(model, settings(**options))


def outcome(run):
    """A list of values, or the text of the refusal."""
    try:
        return run()
    except REFUSALS as problem:
        if getattr(problem, "code", "") == "internal":
            return f"internal error: {problem}"
        return str(problem) or "a refusal that says nothing"


def after_another_size(base: Sample, sample: Sample, constants=()):
    made = session(model_of(sample, constants, symbolic=True))
    outcome(lambda: made.run(None, base.fed(constants)))
    return made.run(None, sample.fed(constants))


def growing(sample: Sample, axes: list, results: list) -> tuple[bytes, dict]:
    """A loop around the node. Inputs that have no elements along one axis are states, which get one element along it in each
    iteration; the node's results are states, too."""
    states = dict(axes)
    node = onnx.NodeProto()
    node.CopyFrom(sample.node)
    node.input[:] = [f"s{i}" if i in states else name for i, name in enumerate(node.input)]
    rows = {i: sample_row(sample.inputs[i], axis) for i, axis in states.items()}
    appends = [helper.make_node("Concat", [f"s{i}", f"r{i}"], [f"t{i}"], axis=axis) for i, axis in states.items()]
    keep = helper.make_node("Identity", ["go"], ["go_on"])
    named = [name for name in node.output if name]
    kind = [helper.np_dtype_to_tensor_dtype(y.dtype) for y in results]

    def info(name, element, rank):
        return helper.make_tensor_value_info(name, element, [None] * rank)

    def state_info(name, i):
        x = sample.inputs[i]
        sizes = [None if axis == states[i] else size for axis, size in enumerate(x.shape)]
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), sizes)

    body = helper.make_graph(
        [node, *appends, keep],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            *[state_info(f"s{i}", i) for i in states],
            *[info(f"z{name}", k, y.ndim) for name, k, y in zip(named, kind, results, strict=True)],
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            *[state_info(f"t{i}", i) for i in states],
            *[info(name, k, y.ndim) for name, k, y in zip(named, kind, results, strict=True)],
        ],
    )
    before = [f"x{i}" for i in states] + [f"b{name}" for name in named]
    after = [f"e{i}" for i in states] + [f"o{name}" for name in named]
    loop = helper.make_node("Loop", ["n", "", *before], after, body=body)
    values = [sample.value_info(i) for i, x in enumerate(sample.inputs) if x is not None]
    values += [
        helper.make_tensor_value_info(f"r{i}", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for i, x in rows.items()
    ]
    values += [info(f"b{name}", k, y.ndim) for name, k, y in zip(named, kind, results, strict=True)]
    values.append(helper.make_tensor_value_info("n", TensorProto.INT64, []))
    graph = helper.make_graph([loop], "outer", values, [onnx.ValueInfoProto(name=f"o{name}") for name in named])
    opsets = [helper.make_opsetid(d, v) for d, v in sample.opsets]
    feeds = sample.fed() | {f"r{i}": x for i, x in rows.items()}
    feeds |= {f"b{name}": np.zeros([0] * y.ndim, y.dtype) for name, y in zip(named, results, strict=True)}
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString(), feeds


def sample_row(x: np.ndarray, axis: int) -> np.ndarray:
    shape = [1 if a == axis else size for a, size in enumerate(x.shape)]
    return np.full(shape, "" if x.dtype == object else 1, x.dtype)


def can_be_constant(x) -> bool:
    return isinstance(x, np.ndarray)


def ways(base: Sample, sample: Sample, all_of_them: bool):
    """(way, run) for the ways to run the node, except the first, with which the others are compared."""
    fed = sample.fed()
    yield "program", lambda: session(model_of(sample)).run(None, fed)
    yield "after another size", lambda: after_another_size(base, sample)
    if all_of_them:
        yield "optimize=0", lambda: session(model_of(sample), optimize="0").run(None, fed)
    constant = tuple(i for i, x in enumerate(sample.inputs) if can_be_constant(x))
    for i in constant if all_of_them else constant[1:2]:
        yield f"input {i} constant", lambda i=i: session(model_of(sample, (i,))).run(None, sample.fed([i]))
        if all_of_them:
            yield f"input {i} constant after another size", lambda i=i: after_another_size(base, sample, (i,))
    if len(constant) == len(fed):
        yield "all constant", lambda: session(model_of(sample, constant)).run(None, {})
        yield (
            "all constant in the reference",
            lambda: session(model_of(sample, constant), tier="reference").run(None, {}),
        )


def loops(sample: Sample, axes: list, results: list, all_of_them: bool):
    """(iterations, (way, run)) of loops around the node; the first is the reference."""
    if not axes or len({i for i, _ in axes}) < len(axes) or not all(isinstance(y, np.ndarray) for y in results):
        return
    model, feeds = growing(sample, axes, results)
    for iterations in (1, 3) if all_of_them else (1,):
        fed = feeds | {"n": np.array(iterations)}
        yield (
            iterations,
            [
                (f"loop of {iterations} {what}", lambda o=options, f=fed: session(model, **o).run(None, f))
                for what, options in (
                    ("in the reference", {"tier": "reference"}),
                    ("as program", {"jit": "off"}),
                    ("in native code", {"jit": "always"}),
                )
                if all_of_them or "jit" not in options or options["jit"] == "off"
            ],
        )


# Comparison ----------------------------------------------------------------------------------------------------------


def text_of(x) -> str:
    if isinstance(x, np.ndarray):
        return f"{x.dtype}{list(x.shape)} {' '.join(map(str, x.ravel()[:6].tolist()))}"
    return repr(x)[:200]


def bits(x) -> bytes:
    if isinstance(x, np.ndarray):
        data = repr(x.tolist()).encode() if x.dtype == object else x.tobytes()
        return f"{x.dtype}{x.shape}".encode() + data
    if isinstance(x, list):
        return b"[" + b",".join(map(bits, x)) + b"]"
    return repr(x).encode()


def near(a, b) -> bool:
    """For kernels of another instruction set than the reference's, and for the evaluator."""
    if isinstance(a, np.ndarray) and a.dtype.kind in "UT":
        a = a.astype(object)
    both = isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape
    if both and a.dtype.kind not in "OUSb":
        return np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=1e-2, atol=1e-2, equal_nan=True)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(near, a, b))
    return bits(a) == bits(b)


def difference(first, other, exactly: bool) -> str:
    if isinstance(other, str) and other.startswith("internal error"):
        return other
    if isinstance(first, str) and isinstance(other, str):
        return ""
    if isinstance(first, str):
        return f"ran and gave {[text_of(y) for y in other]}, where the reference refuses: {first}"
    if isinstance(other, str):
        return f"refused ({other}), where the reference gives {[text_of(y) for y in first]}"
    same = [bits(a) == bits(b) or (not exactly and near(a, b)) for a, b in zip(first, other, strict=True)]
    return "" if all(same) else "; ".join(
        f"y{k}: {text_of(b)}, reference {text_of(a)}" for k, (a, b) in enumerate(zip(first, other, strict=True)) if not same[k]
    )  # fmt: skip


def is_random(sample: Sample) -> bool:
    return any(word in sample.op for word in ("Random", "Bernoulli", "Multinomial", "Dropout", "Sampl"))


@functools.lru_cache(maxsize=2)  # an operator's node as it is, and the variant
def by_evaluator(sample: Sample) -> list | None:
    """The results of the onnx package's evaluator; None if it fails."""
    if sample.node.domain == "com.microsoft" or sample.op in UNJUDGED or is_random(sample):
        return None
    model = onnx.load_from_string(model_of(sample))
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ReferenceEvaluator(model).run(None, sample.fed())
    except Exception:
        return None


@functools.lru_cache(maxsize=1)
def agrees_with_evaluator(sample: Sample) -> bool:
    """The evaluator judges odd sizes if it gives the same results for the unchanged node."""
    judged = by_evaluator(sample)
    return judged is not None and near(judged, outcome(lambda: session(model_of(sample)).run(None, sample.fed())))


class Trial:
    """One variant; reports into lines."""

    def __init__(self, number: int, base: Sample, what: str, sample: Sample, axes: list, exactly: bool, long: bool):
        self.number, self.base, self.what, self.sample, self.axes = number, base, what, sample, axes
        self.exactly, self.long = exactly, long

    def name(self) -> str:
        return f"{self.sample.op} ({self.sample.name}): {self.what}"

    def say(self, kind: str, text: str) -> None:
        print(f"{kind} {self.name()}: {text}", flush=True)

    def check(self, what: str, first, found) -> None:
        if isinstance(first, str) and "after another size" in what and not isinstance(found, str):
            return  # another test is about inputs that are refused in any session
        if self.sample.op in LOWERED_BY_SIZES and isinstance(found, str) and ("after" in what or "loop" in what):
            return
        if self.sample.op == "Scan" and self.what == "everything is 0":
            return  # sizes that its body declares otherwise, which no iteration checks
        problem = difference(first, found, self.exactly and not is_random(self.sample))
        if problem and not is_random(self.sample):
            self.say("wrong", f"{what}: {problem}"[:900])

    def run(self) -> bool:
        """Whether it ran, and was not refused."""
        made = []
        first = outcome(lambda: session(model_of(self.sample), tier="reference").run(None, self.sample.fed()))
        self.check("reference", first, first)
        if not isinstance(first, str) and any(y is None for y in first):
            self.say("wrong", f"an output is None: {[text_of(y) for y in first]}")
        for what, run in ways(self.base, self.sample, self.long):
            made.append(outcome(run))
            self.check(what, first, made[-1])
        if isinstance(first, str):
            return False
        judged = by_evaluator(self.sample) if agrees_with_evaluator(self.base) else None
        if judged is not None and not near(judged, first):
            self.say("wrong", f"{[text_of(y) for y in first]}, the evaluator gives {[text_of(y) for y in judged]}")
        for iterations, runs in loops(self.sample, self.axes, first, self.long):
            around = None
            for what, run in runs:
                made.append(outcome(run))
                around = made[-1] if around is None else around
                self.check(what, around, made[-1])
            if iterations == 1 and not isinstance(around, str):
                self.check("loop", first, around)
        if not is_random(self.sample):
            digest = hashlib.sha256(b"".join(map(bits, [first, *(m for m in made if not isinstance(m, str))])))
            self.say("made", digest.hexdigest()[:16])
        return True


def larger(sample: Sample):
    """The node with sizes at which kernels take other forms, equal ones equal."""
    sizes = sorted({size for _, _, size in places(sample) if size > 1})
    for new in ((33, 7, 40, 5, 19, 3), (3, 70, 17, 34, 2, 9)):
        changed = sample
        for i, axis, size in places(sample):
            if size > 1:
                changed = with_size(changed, [(i, axis)], new[sizes.index(size) % len(new)])
        elements = sum(x.size for x in changed.inputs if isinstance(x, np.ndarray))
        if elements < 1 << 20 and shapes_of(changed) != shapes_of(sample):
            yield Sample(f"{sample.name} larger {new[0]}", changed.node, changed.inputs, changed.opsets, changed.types)


def bases(kind: str, sample: Sample, long: bool):
    yield sample
    if kind == "nothing" and long:
        yield from larger(sample)


def limit_memory(size: int) -> None:
    """Limits this process's memory to `size` bytes; not under a sanitizer, which takes terabytes of addresses."""
    if "LD_PRELOAD" not in os.environ:
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["nothing", "one", "outputs", "scalars"])
    for name, value in (("most", 1000), ("seeds", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--samples", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1))
    parser.add_argument("--near", action="store_true")
    parser.add_argument("--long", action="store_true")
    options = vars(parser.parse_args())
    limit_memory(MEMORY)
    part, parts = options["part"]
    kept = options["samples"]
    found = pickle.loads(kept.read_bytes()) if kept else samples(options["most"], options["seeds"])
    found = [s for s in found if options["only"] in f"{s.op} {s.name}"]
    records = {f"{r['domain']}.{r['name']}" if r["domain"] else r["name"]: r for r in treadle.operators()}
    counts, first = Counts(), 0
    while (ended := in_a_child(found[part::parts], options, records, counts, first)) != 0:
        print(f"wrong {counts.what()}: the process ended with {ended}", flush=True)
        first = counts.at + 1
    print(f"done {counts.ran} ran, {counts.refused} refused, {len(found[part::parts])} nodes", flush=True)


class Counts:
    """Which trial runs now, and how many did; a child and its parent share them."""

    def __init__(self):
        self.memory = mmap.mmap(-1, 4096)

    def __getattr__(self, name):
        place = {"at": 0, "ran": 8, "refused": 16}[name]
        return struct.unpack_from("q", self.memory, place)[0]

    def begin(self, trial) -> None:
        name = trial.name().encode()[:2000]
        struct.pack_into("q", self.memory, 0, trial.number)
        struct.pack_into(f"q{len(name)}s", self.memory, 24, len(name), name)

    def end(self, ran: bool) -> None:
        place = 8 if ran else 16
        struct.pack_into("q", self.memory, place, struct.unpack_from("q", self.memory, place)[0] + 1)

    def what(self) -> str:
        length = struct.unpack_from("q", self.memory, 24)[0]
        return self.memory[32 : 32 + length].decode(errors="replace")


def in_a_child(found: list, options: dict, records: dict, counts: Counts, first: int) -> int:
    """Runs the trials from `first` on; 0, or what the process ended with."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        for trial in trials(found, options, records):
            if trial.number >= first:
                signal.alarm(SECONDS)
                counts.begin(trial)
                counts.end(trial.run())
        sys.stdout.flush()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def trials(found: list, options: dict, records: dict):
    """Numbered, so that a process can go on behind the one that ended another process."""
    number = itertools.count()
    for sample in found:
        for base in bases(options["kind"], sample, options["long"]):
            changes = list(variants(options["kind"], base, records))
            for what, changed, axes in [("itself", base, []), *changes] if changes else []:
                yield Trial(next(number), base, what, changed, axes, not options["near"], options["long"])


if __name__ == "__main__":
    sys.exit(main())
