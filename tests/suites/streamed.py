"""Everything that can be streamed, in blocks: the results of the pushes and the flush are those of one run.

    streamed.py SHARED [--all]

The models of tests/cases and of SHARED/models; with --all the onnx package's backend cases as well. Time is, in turn,
every axis along which the inputs of a case are equally long. A case passes when every axis that it can be streamed along
gives in blocks of several sizes what one run gives; where none can, the reason is counted.
"""

import collections
import concurrent.futures
import dataclasses
import multiprocessing
import os
import pathlib
import re
import sys

import backend_cases
import numpy as np
import onnx

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cases"))
os.environ.setdefault("TREADLE_JIT_CACHE", "off")

RANDOM = {
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
    "Dropout",
}
# Relative to the largest value: blocks sum in another order where kernels batch their steps.
TOLERANCES = {"float64": 1e-9, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}


@dataclasses.dataclass
class Outcome:
    name: str
    verdict: str  # passed, failed, skipped
    note: str = ""


def candidates(feeds):
    """Axes, each with the inputs that are cut along it: all of one length together, then each alone."""
    tensors = {name: x for name, x in feeds.items() if isinstance(x, np.ndarray) and x.dtype != object}
    seen = []
    for axis in range(max((x.ndim for x in tensors.values()), default=0)):
        lengths = {name: x.shape[axis] for name, x in tensors.items() if x.ndim > axis and x.shape[axis] > 1}
        for length in sorted(set(lengths.values()), reverse=True):
            together = tuple(name for name in lengths if lengths[name] == length)
            for names in [together, *((name,) for name in together)]:
                if (names, axis) not in seen:
                    seen.append((names, axis))
    return seen


def blocks_for(length):
    """Sizes that are repeated until the signal ends."""
    if length <= 64:
        return [[1], [2, 0, 3], [length]]
    return [[160], [480, 1, 512], [length // 2 + 1], [length]]


def frame_axes(stream):
    """For each output the axis of its frames; None when each push returns the newest value alone."""
    return list(stream.output_axes.values())


def joined(parts, axis):
    """Blocks without frames come before a stream knows how long the rows are that the data decide."""
    return np.concatenate([x for x in parts if x.shape[axis] > 0] or parts[-1:], axis)


def push_all(stream, signal, axis, sizes):
    length = next(iter(signal.values())).shape[axis]
    pushed, at, turn = [], 0, 0
    while at < length:
        size = sizes[turn % len(sizes)]
        chunk = {name: np.take(x, np.arange(at, min(at + size, length)), axis) for name, x in signal.items()}
        pushed.append(stream.push(chunk))
        at += size
        turn += 1
    pushed.append(stream.flush())
    if len(stream.output_names) == 1:
        pushed = [[outputs] for outputs in pushed]
    results = []
    for i, frames in enumerate(frame_axes(stream)):
        parts = [outputs[i] for outputs in pushed]
        results.append(parts[-1] if frames is None else joined(parts, frames))
    return results


def difference(found, expected):
    """The difference; empty if there is none."""
    if isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        return next((wrong for a, b in zip(found, expected, strict=True) if (wrong := difference(a, b))), "")
    if not isinstance(expected, np.ndarray):
        return "" if repr(found) == repr(expected) else f"{found} instead of {expected}"
    # A stream does not know how long rows would be that no iteration of a loop makes.
    if found.size == expected.size == 0 and (found.dtype, found.ndim) == (expected.dtype, expected.ndim):
        return ""
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return f"{found.dtype}{list(found.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if expected.dtype == object:
        return "" if found.tolist() == expected.tolist() else "elements differ"
    bound = TOLERANCES.get(expected.dtype.name)
    if bound is None or expected.size == 0:
        return "" if found.tobytes() == expected.tobytes() else "elements differ"
    a, b = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(np.where(finite, 0, a), np.where(finite, 0, b), equal_nan=True):
        return "infinities or NaNs differ"
    scale = max(1e-3, np.abs(b[finite]).max(initial=0))
    worst = np.abs(a[finite] - b[finite]).max(initial=0)
    return "" if worst <= bound * scale else f"differs by {worst:.2g} of {scale:.2g}"


def reason_of(error):
    """A refusal without the names of the model's values."""
    text = str(error).split("cannot be streamed because ", 1)[-1].split("\n")[0]
    return re.sub(r"'[^']*'", "'...'", re.sub(r"\d+", "N", text))[:110]


def batch_of_one(stream, feeds, names, axis):
    """Models that put batch and time into one axis are streamed with a batch of one; these inputs may have more."""
    try:
        for _ in range(64):
            stream.push({name: feeds[name] for name in names})
    except Exception as error:  # noqa: BLE001 - others come again
        return re.search(r"expected tensor\(\w+\)\[.*\b1\b.*\], found", str(error)) is not None
    return False


def try_axis(treadle, session, feeds, names, axis):
    """None and the reason why it cannot be streamed so; otherwise the difference."""
    bound = {name: x for name, x in feeds.items() if name not in names and x is not None}
    try:
        stream = session.stream(time=dict.fromkeys(names, axis), bind=bound, find_state=False)
    except (treadle.InvalidArgument, treadle.NotImplemented) as error:
        return None, reason_of(error)
    if batch_of_one(stream, feeds, names, axis):
        return None, "it takes a batch of one only"
    asked = stream.output_names
    expected = session.run(asked, feeds)
    signal = {name: feeds[name] for name in names}
    length = signal[names[0]].shape[axis]
    for sizes in blocks_for(length):
        stream.reset()
        for name, found, whole in zip(asked, push_all(stream, signal, axis, sizes), expected, strict=True):
            if wrong := difference(found, whole):
                return False, f"{'+'.join(names)} along axis {axis} in blocks of {sizes}: {name}: {wrong}"
    return True, ""


def stream_case(name, model, feeds):
    import treadle  # noqa: PLC0415 - in the worker

    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = treadle.InferenceSession(model, options)
        session.run(None, feeds)
    except Exception as error:  # noqa: BLE001 - models that do not run are the business of other suites
        return Outcome(name, "skipped", f"one run fails: {type(error).__name__}")
    reasons, passed = [], 0
    for names, axis in candidates(feeds):
        try:
            good, note = try_axis(treadle, session, feeds, names, axis)
        except Exception as error:  # noqa: BLE001
            return Outcome(name, "failed", f"{'+'.join(names)} along axis {axis}: {type(error).__name__}: {error}")
        if good is None:
            reasons.append(note)
        elif good:
            passed += 1
        else:
            return Outcome(name, "failed", note)
    if passed:
        return Outcome(name, "passed", f"{passed} axes")
    return Outcome(name, "skipped", reasons[0] if reasons else "no input has an axis of several elements")


def text_cases():
    from case_files import CASES, FOLDER, Case  # noqa: PLC0415 - after the folder is on the path

    for path in CASES:
        case = Case(path)
        for i, run in enumerate(run for run in case.runs if run.error is None):
            yield f"cases/{path.relative_to(FOLDER)}:{i}", case.model.encode(), run.feeds


def file_cases(folder):
    for model in sorted(folder.glob("**/model.onnx")):
        graph = onnx.load(model, load_external_data=False).graph
        if backend_cases.operators(graph) & RANDOM:
            continue
        initialisers = {value.name for value in graph.initializer}
        inputs = [value for value in graph.input if value.name not in initialisers]
        for data in sorted(model.parent.glob("test_data_set_0")):
            feeds = {}
            for i, value in enumerate(inputs):
                file = data / f"input_{i}.pb"
                if file.exists():
                    feeds[value.name] = read_tensor(value, file)
            if len(feeds) == len(inputs) and all(x is not None for x in feeds.values()):
                yield f"{folder.name}/{model.parent.relative_to(folder)}", str(model), feeds


def read_tensor(value, file):
    if value.type.WhichOneof("value") != "tensor_type":
        return None
    tensor = onnx.TensorProto()
    tensor.ParseFromString(file.read_bytes())
    return onnx.numpy_helper.to_array(tensor)


def cases(shared, everything):
    yield from text_cases()
    yield from file_cases(shared / "models")
    if everything:
        yield from file_cases(backend_cases.exported_cases(shared / "conformance"))


def main() -> int:
    shared, everything = pathlib.Path(sys.argv[1]), "--all" in sys.argv[2:]
    backend_cases.WORK.mkdir(parents=True, exist_ok=True)
    counts, reasons = collections.Counter(), collections.Counter()
    workers = concurrent.futures.ProcessPoolExecutor(
        len(os.sched_getaffinity(0)), mp_context=multiprocessing.get_context("spawn")
    )
    with workers:
        running = [workers.submit(stream_case, *case) for case in cases(shared, everything)]
        for future in concurrent.futures.as_completed(running):
            outcome = future.result()
            counts[outcome.verdict] += 1
            if outcome.verdict == "failed":
                print(f"{outcome.name}: {outcome.note}", flush=True)
            elif outcome.verdict == "skipped":
                reasons[outcome.note] += 1
    for reason, count in reasons.most_common():
        print(f"{count:6} {reason}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
