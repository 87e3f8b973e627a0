"""What the engine itself, kernels and operators take, beside the estimates that plans and reports are made with and that
kernels share their work by. A figure of the engine is a slope or an intercept: loops of two lengths, bodies with few and
with many nodes (src/op/costs.h). One of kernels and operators is a slope over two sizes (src/kernels/costs.h,
src/ops/costs.h; the models are those of kernel_costs.py). With --write, the constants of those two headers that are far
from what was measured are replaced. Behind them, prices of convolutions (conv_prices.py)."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import statistics
import time
from collections.abc import Callable

import conv_prices
import engines
import kernel_costs
import measure
import numpy as np
from bench_page import machine
from models.registry import YES, Built

SOURCE = pathlib.Path(__file__).parents[1] / "src"
ESTIMATES = SOURCE / "op" / "costs.h"
HEADERS = [SOURCE / "kernels" / "costs.h", SOURCE / "ops" / "costs.h"]
CONSTANT = re.compile(r"^inline constexpr double (k\w+Ns) = ([\d.e-]+); +// \"(.*)\"$", re.MULTILINE)
MACHINE = re.compile(r"^// Measured on .*$", re.MULTILINE)
FAR = 1.5  # a constant and a measured value are as far apart when they differ by more than this factor
FEW, MANY = 2, 18  # nodes
INNER = "Loop <body = in{k} (int64 j{k}, bool d{k}, float[4] u{k}) => (bool d{k}, float[4] v{k}) {{ v{k} = Mul(u{k}, keep) }}>"
LENGTHS = 20_000, 40_000


def body(nodes: int, shape: str, op: str) -> Built:
    """A loop with one state per node, so that no node waits for another one."""
    states = range(nodes)
    args = ", ".join(f"{shape} x{k}" for k in states)
    results = ", ".join(f"{shape} y{k}" for k in states)
    text = f"""
    g (int64 m, {args}) => ({results}) {{
      {", ".join(f"y{k}" for k in states)} = Loop <body = b (int64 i, bool c, {", ".join(f"{shape} s{k}" for k in states)})
          => (bool c2, {", ".join(f"{shape} t{k}" for k in states)}) {{
        c2 = Identity(c)
        {" ".join(f"t{k} = {op.format(k=k)}" for k in states)} }}> (m, yes, {", ".join(f"x{k}" for k in states)}) }}"""
    sizes = [int(size) if size.isdigit() else 8 for size in re.search(r"\[(.*)\]", shape).group(1).split(",")]
    inputs = {f"x{k}": np.full(sizes, 1 + k, np.float32) for k in states}
    weights = YES | {
        "keep": np.array(0.999, np.float32),
        "axis": np.array(0, np.int64),
        "two": np.array(2, np.int64),
        "order": np.arange(16)[::-1].copy(),
        "square": np.eye(64, dtype=np.float32),
    }
    return Built(text, weights, inputs, 0)


def iteration_ns(built: Built, jit: str, options) -> float:
    session = engines.open_ours(built.model(), jit=jit)
    if any(size is None or isinstance(size, str) for arg in session.get_inputs() for size in arg.shape):
        # The plan for any size, after one for each of two.
        for size in (4, 5):
            session.run(None, {n: v[:size] for n, v in built.inputs.items()} | {"m": np.array(2)})
    runs = [engines.bind(session, built.inputs | {"m": np.array(m)}) for m in LENGTHS]
    short, long = (min(times) for times in measure.in_turns(runs, options.rounds, options.seconds or 0.02))
    return 1e9 * (long - short) / (LENGTHS[1] - LENGTHS[0])


def slope_and_rest(make: Callable[[int], float]) -> tuple[float, float]:
    few, many = make(FEW), make(MANY)
    slope = (many - few) / (MANY - FEW)
    return slope, few - FEW * slope


def compile_ms(nodes: int) -> float:
    built = body(nodes, "float[8]", "Mul(s{k}, keep)")
    session = engines.open_ours(built.model(), jit="auto")
    session.run(None, built.inputs | {"m": np.array(2)})
    begin = time.perf_counter()
    session.compile()
    return 1e9 * (time.perf_counter() - begin)


@dataclasses.dataclass(frozen=True)
class Constant:
    """One of HEADERS, with the name of its row in kernel_costs.ROWS."""

    name: str
    ns: float
    row: str


def read_constants() -> list[Constant]:
    texts = [header.read_text(encoding="utf-8") for header in HEADERS]
    return [Constant(name, float(ns), row) for text in texts for name, ns, row in CONSTANT.findall(text)]


class Measured:
    """What the units of constants take, each measured once, those that a row counts beside its own before that."""

    def __init__(self, constants: list[Constant], options):
        self.constants = {constant.name: constant for constant in constants}
        self.rounds, self.seconds = options.rounds, options.seconds or 0.02
        self.ns: dict[str, float] = {}

    def measure(self, name: str) -> float:
        if name not in self.ns:
            row = kernel_costs.ROWS[self.constants[name].row]
            for other in row.beside:
                self.measure(other)
            self.ns[name] = row.ns(self.ns, self.rounds, self.seconds)
        return self.ns[name]


def is_far(constant: Constant, ns: float) -> bool:
    return ns > 0 and not 1 / FAR <= ns / constant.ns <= FAR


def write_constants(measured: dict[str, float]) -> None:
    """Replaces constants that are far from what was measured by that, rounded to two digits, and says where."""
    here = machine(quiet=True)
    where = f"// Measured on {here['processor']}, {', '.join(here['instruction_sets'])}."
    for header in HEADERS:

        def replaced(match: re.Match) -> str:
            constant = Constant(match[1], float(match[2]), match[3])
            ns = measured.get(constant.name, constant.ns)
            if not is_far(constant, ns):
                return match[0]
            return match[0].replace(f"= {match[2]};", f"= {float(f'{ns:.2g}'):g};")

        text = MACHINE.sub(where, header.read_text(encoding="utf-8"))
        header.write_text(CONSTANT.sub(replaced, text), encoding="utf-8")


def bench_kernel_costs(options) -> None:
    constants = [constant for constant in read_constants() if options.match in constant.row]
    measured = Measured(read_constants(), options)
    print("\n| cost | ns measured | ns in costs.h | ratio | constant |\n| --- | --- | --- | --- | --- |")
    ratios = []
    for constant in constants:
        ns = measured.measure(constant.name)
        ratios.append(ns / constant.ns)
        print(f"| {constant.row} | {ns:.3g} | {constant.ns:g} | {ratios[-1]:.2f} | {constant.name} |", flush=True)
    far = sum(is_far(constant, measured.ns[constant.name]) for constant in constants)
    print(f"\n{far} of {len(constants)} differ by more than a factor of {FAR}")
    if options.write:
        write_constants(measured.ns)


def bench_costs(options) -> None:
    bench_engine_costs(options)
    bench_kernel_costs(options)


def bench_engine_costs(options) -> None:
    estimates = dict(re.findall(r"\b(k\w+) = ([\d.e]+)", ESTIMATES.read_text(encoding="utf-8")))

    def measured(shape: str, op: str, jit: str) -> tuple[float, float]:
        return slope_and_rest(lambda nodes: iteration_ns(body(nodes, shape, op), jit, options))

    multiply, sums = "Mul(s{k}, keep)", "CumSum(s{k}, axis)"
    chain, chain_rest = measured("float[4]", multiply, "off")
    group, group_rest = measured("float[96]", multiply, "off")
    kernel, kernel_rest = measured("float[1]", sums, "off")
    guarded, _ = measured("float[n]", sums, "off")
    _, native_rest = measured("float[4]", multiply, "always")
    call, _ = measured("float[1]", sums, "always")

    def saved(shape: str, op: str) -> tuple[float, float, float]:
        """A node as the program runs it, what native code saves of it, and of an iteration without nodes."""
        off, off_rest = measured(shape, op, "off")
        native, rest = measured(shape, op, "always")
        return off, off - native, off_rest - rest

    inner, saved_inner, _ = saved("float[4]", f"{INNER}(two, yes, s{{k}})")
    _, saved_move, saved_rest = saved("float[16]", "Gather(s{k}, order)")
    _, saved_product, _ = saved("float[1,64]", "MatMul(s{k}, square)")
    _, saved_group, _ = saved("float[96]", multiply)
    compile_ms(FEW)  # loads the compiler
    operation, loop = slope_and_rest(compile_ms)
    table = [
        ("iteration", kernel_rest, "kIterationNs", ""),
        ("group of operations", group_rest, "kInstructionNs", "with the iteration, and a pass over 96 floats"),
        ("operation of a group", group, "kOperationNs", "with 96 floats"),
        ("kernel", kernel, "kKernelNs", "with the sum of one number"),
        ("iteration of a chain", chain_rest, "kChainIterationNs", ""),
        ("operation of a chain", chain, "kChainOperationNs", "with its state on the back edge"),
        ("guarded kernel", guarded, "kDynamicNs", "with the copy of its state"),
        ("native iteration", native_rest, "kNativeIterationNs", ""),
        ("native call", call, "kNativeCallNs", "with the sum of one number"),
        ("a loop inside", inner, "kInnerLoopNs", "with its two iterations"),
        ("saved by native code: a loop inside", saved_inner, "kSavedInnerLoopNs", "with its two iterations"),
        ("saved by native code: an iteration", saved_rest, "kSavedIterationNs", ""),
        ("saved by native code: a group", saved_group, "kSavedGroupNs", "with 96 floats"),
        ("saved by native code: a kernel", saved_move, "kSavedKernelNs", "16 floats in another order"),
        ("saved by native code: a product", saved_product, "kSavedProductNs", "a row times 64 x 64"),
        ("compiling, a loop", loop, "kCompileNs", ""),
        ("compiling, an operation", operation, "kCompileOperationNs", "over eight floats"),
    ]
    print("| cost | ns measured | ns in costs.h | ratio | remark |\n| --- | --- | --- | --- | --- |")
    ratios = []
    for name, ns, constant, remark in table:
        ratios.append(ns / float(estimates[constant]))
        print(f"| {name} | {ns:.1f} | {float(estimates[constant]):g} | {ratios[-1]:.2f} | {remark} |")
    # Plans compare costs with each other, so a machine that is slower in all of them plans alike.
    print(
        f"\nmedian ratio {statistics.median(ratios):.2f}: what this machine takes beside the one of costs.h", flush=True
    )
    conv_prices.bench_conv_prices(options)
