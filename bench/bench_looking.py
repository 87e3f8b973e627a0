"""Looking into runs: planted faults that must be found, and what a trace costs.

    build/venv/bin/python bench/bench_looking.py [--seed S] [--only find|compare|reduce|cost|report]

`find`: 20 faults in real models and 20 in random programs, each at a random value and iteration, and what `find` says of
each; the node that it saves has to give the same alone. `compare`: 40 planted differences (bench/planted.py). `reduce`: ten
models that fail (bench/failures.py). `cost`: the time of a run with statistics of all values, and with a search, beside the
interpreted run of the same plan without them, and beside the usual run. `report`: sizes and opening times of reports
(bench/reports.py).
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

import failures
import numpy as np
import planted
import reports
import treadle
from onnx import TensorProto, helper

ORIGIN = "planted_origin"
Change = Callable[[planted.Body, str], str]


@dataclass(frozen=True)
class Fault:
    """How a number becomes one that is looked for: nodes from the flat value to the flat result. One is named ORIGIN."""

    name: str
    what: str  # for `find`
    make: Callable[[Nodes, str], str]
    only_wide: bool = False  # not of float16


class Nodes:
    """Nodes on values of a type."""

    def __init__(self, body: planted.Body, dtype: np.dtype) -> None:
        self.body, self.dtype = body, dtype

    def op(self, operator: str, *inputs: str, **attributes) -> str:
        return self.body.add(operator, list(inputs), **attributes)

    def constant(self, number: float) -> str:
        return self.body.constant(np.array([number], self.dtype))

    def origin(self, operator: str, *inputs: str, **attributes) -> str:
        result = self.op(operator, *inputs, **attributes)
        self.body.graph.node[self.body.at - 1].name = planted.fresh(ORIGIN)
        return result

    def below_zero(self, v: str) -> str:
        return self.op("Sub", self.op("Neg", self.op("Abs", v)), self.constant(1))

    def zeros(self, v: str) -> str:
        return self.op("Sub", v, v)

    def infinite(self, v: str) -> str:
        return self.op("Exp", self.op("Add", self.zeros(v), self.constant(10_000)))


def zero_by_zero(n: Nodes, v: str) -> str:
    zeros = n.zeros(v)
    return n.origin("Div", zeros, zeros)


def infinity_less_itself(n: Nodes, v: str) -> str:
    infinite = n.infinite(v)
    return n.origin("Sub", infinite, infinite)


def through_half(n: Nodes, v: str) -> str:
    half = n.origin("Cast", n.op("Add", n.zeros(v), n.constant(1e6)), to=TensorProto.FLOAT16)
    return n.op("Cast", half, to=helper.np_dtype_to_tensor_dtype(n.dtype))


FAULTS = [
    Fault("logarithm below 0", "nan", lambda n, v: n.origin("Log", n.below_zero(v))),
    Fault("root below 0", "nan", lambda n, v: n.origin("Sqrt", n.below_zero(v))),
    Fault("0 / 0", "nan", zero_by_zero),
    Fault("inf - inf", "nan", infinity_less_itself, only_wide=True),
    Fault("0 * inf", "nan", lambda n, v: n.origin("Mul", n.zeros(v), n.infinite(v)), only_wide=True),
    Fault("power below 0", "nan", lambda n, v: n.origin("Pow", n.below_zero(v), n.constant(0.5))),
    Fault("softmax of -inf", "nan", lambda n, v: n.origin("Softmax", n.op("Log", n.zeros(v)), axis=0)),
    Fault("overflow of exp", "inf", lambda n, v: n.origin("Exp", n.op("Add", n.op("Abs", v), n.constant(2000))), True),
    Fault("overflow of float16", "inf", through_half, only_wide=True),
    Fault("1 / 0", "inf", lambda n, v: n.origin("Div", n.constant(1), n.zeros(v))),
]


def as_written(data: bytes) -> treadle.InferenceSession:
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("treadle.jit", "off")
    options.add_session_config_entry("treadle.optimize", "0")
    return treadle.InferenceSession(data, options)


def floats_of(results: list) -> list[np.ndarray]:
    return [v for v in results if isinstance(v, np.ndarray) and v.dtype.kind == "f"]


@dataclass
class Planting:
    place: planted.Place
    fault: Fault
    data: bytes
    reaches: bool  # an output


def planting(of: planted.Subject, rng: np.random.Generator) -> Planting | None:
    """A fault at random in a value that the run computes; None if none of some tries is one. Values in loops come first."""
    try:
        session = as_written(of.data)
        seen = session.trace(of.feeds, values=True, statistics=False, memory=1 << 28)
    except Exception:  # noqa: BLE001 - a program that is refused or fails has no place for a fault
        return None
    results = floats_of(list(seen.outputs.values()))
    if not results or not all(np.isfinite(v).all() for v in results):
        return None
    known = dict(planted.sites(of.model.graph))
    in_loops = [name for name in seen if name in known and seen[name].iterations.shape[1]]
    elsewhere = [name for name in seen if name in known]
    for attempt in range(12):
        names = in_loops if in_loops and attempt < 8 else elsewhere
        if not names:
            return None
        name = str(rng.choice(names))
        fault = FAULTS[int(rng.integers(len(FAULTS)))]
        series = seen[name]
        row = int(rng.integers(len(series)))
        value = series.values[row]
        iterations = tuple(series.iterations[row].tolist())
        if (
            not isinstance(value, np.ndarray)
            or value.dtype.kind != "f"
            or not value.size
            or min(iterations, default=0) < 0
        ):
            continue
        if not np.isfinite(value).all() or (fault.only_wide and value.dtype == np.float16):
            continue
        place = planted.Place(name, iterations, int(rng.integers(value.size)))
        dtype = value.dtype
        model = planted.plant(of.model, place, lambda body, v, f=fault, d=dtype: f.make(Nodes(body, d), v))
        data = model.SerializeToString()
        try:
            results = floats_of(treadle.InferenceSession(data).run(None, of.feeds))
        except Exception:  # noqa: BLE001 - the fault makes the run fail: an index, a size
            continue
        reaches = has_kind(fault.what, results)
        if reaches or attempt >= 9:
            return Planting(place, fault, data, reaches)
    return None


def run_case(folder: str) -> list:
    """The outputs of a model, for the inputs that lie beside it as in the backend tests."""
    session = as_written(pathlib.Path(folder, "model.onnx").read_bytes())
    feeds = {}
    for i, info in enumerate(session.get_inputs()):
        message = pathlib.Path(folder, "test_data_set_0", f"input_{i}.pb").read_bytes()
        feeds[info.name] = treadle._core.Value.from_pb(message).numpy()
    return session.run(None, feeds)


def has_kind(what: str, results: list) -> bool:
    kind = np.isnan if what == "nan" else np.isinf
    return any(kind(v).any() for v in floats_of(results))


def problem_of(what: Planting, feeds: dict) -> str:
    """Empty if the search names the planted node and its iterations, and the node alone gives the same; otherwise why."""
    with tempfile.TemporaryDirectory() as folder:
        found = as_written(what.data).trace(feeds, find=what.fault.what, statistics=False, save=folder).found
        assert found is not None
        if problem := found.get("saved", {"problem": "nothing was found"})["problem"]:
            return problem
        if not has_kind(what.fault.what, run_case(folder)):
            return "the node alone gives something else"
    wanted = found["places"][: found["reached"]] if what.reaches else found["places"]
    said = [(p["node"], tuple(at["iteration"] for at in p["iterations"])) for p in wanted]
    right = [ORIGIN in node and at == what.place.iterations for node, at in said]
    if what.reaches:
        return "" if said and all(right) else f"{said[:3]} instead"
    return "" if any(ORIGIN in node for node, _ in said) else f"{said[:3]} instead"


def find(seed: int, count: int = 20) -> int:
    rng = np.random.default_rng(seed)
    right = total = 0
    for subjects in (planted.shared_subjects(rng), planted.random_subjects(seed)):
        kept = list(zip(range(3 * count), subjects, strict=False))
        made = 0
        for _, of in kept * 3:
            if made == count:
                break
            what = planting(of, rng)
            if what is None:
                continue
            made += 1
            begin = time.perf_counter()
            problem = problem_of(what, of.feeds)
            seconds = time.perf_counter() - begin
            right += not problem
            total += 1
            reach = "" if what.reaches else ", reaches no output"
            verdict = "found" if not problem else f"NOT FOUND: {problem}"
            print(f"{of.name:<32.32}  {what.fault.name:<20}  {what.place}{reach}: {verdict}, {seconds * 1e3:.0f} ms")
    print(f"{right} of {total} faults found at their node and iteration")
    return 0 if right == total else 1


def best_of(run: Callable, *arguments, seconds: float = 0.3, **options) -> float:
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        begin = time.perf_counter()
        run(*arguments, **options)
        times.append(time.perf_counter() - begin)
    return min(times)


def cost() -> int:
    """The time of traces of the real models."""
    print(
        f"{'':<28}  {'usual':>10}  {'as written':>10}  {'statistics':>10}  {'find nan':>10}   statistics / as written"
    )
    quotients = []
    from bench_real import real_models

    for name, data, feeds in real_models():
        if len(data) > 4 << 20:
            continue
        usual = treadle.InferenceSession(data)
        session = as_written(data)
        try:
            session.trace(feeds, find="nan", memory=1 << 30)
        except Exception as problem:  # noqa: BLE001 - said in the table
            print(f"{name:<28.28}  {problem}")
            continue
        times = [
            best_of(usual.run, None, feeds),
            best_of(session.trace, feeds, watch=[], statistics=False),
            best_of(session.trace, feeds, memory=1 << 30),
            best_of(session.trace, feeds, find="nan", statistics=False),
        ]
        quotients.append(times[2] / times[1])
        shown = "  ".join(f"{t * 1e6:>8.0f}us" for t in times)
        print(f"{name:<28.28}  {shown}   {times[2] / times[1]:.2f}")
    print(
        f"statistics / as written: {np.exp(np.mean(np.log(quotients))):.2f} in the geometric mean, at most {max(quotients):.2f}"
    )
    return 0


def parts(seed: int) -> dict[str, Callable[[], int]]:
    return {
        "find": lambda: find(seed),
        "compare": planted.main,
        "reduce": lambda: failures.main([]),
        "cost": cost,
        "report": reports.main,
    }


def run_parts(names: list[str], seed: int) -> int:
    failed = 0
    for name, run in parts(seed).items():
        if not names or name in names:
            print(f"# {name}\n")
            failed |= run()
            print()
    return failed


def bench_looking(options) -> None:
    """For bench.py."""
    run_parts([name for name in parts(1) if options.match in name], 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=list(parts(0)))
    options = parser.parse_args()
    return run_parts([options.only] if options.only else [], options.seed)


if __name__ == "__main__":
    sys.exit(main())
