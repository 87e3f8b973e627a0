"""All models that the project has at hand, by groups: tests/cases, the real models of ../shared, those of the benchmarks."""

from __future__ import annotations

import importlib
import pathlib
import sys
from collections.abc import Iterator

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "cases"))

Model = tuple[str, bytes, list[dict]]  # a name, the model, the feeds of its runs


def cases() -> Iterator[Model]:
    case_files = importlib.import_module("case_files")
    for path in case_files.CASES:
        case = case_files.Case(path)
        yield (
            str(path.relative_to(case_files.FOLDER).with_suffix("")),
            case.model.encode(),
            [r.feeds for r in case.runs],
        )


def shared() -> Iterator[Model]:
    for name, data, feeds in importlib.import_module("bench_real").real_models():
        yield name, data, [feeds]


def loops() -> Iterator[Model]:
    for name, loop in importlib.import_module("models").LOOPS.items():
        built = loop.make(1)
        yield name, built.model(), [built.inputs]


def recurrences() -> Iterator[Model]:
    for operator in importlib.import_module("models").operators():
        data, feeds = operator.build()
        yield operator.name, data, [feeds]


def networks() -> Iterator[Model]:
    makers = importlib.import_module("convolutional").NETWORKS | importlib.import_module("transformers").NETWORKS
    for name, make in makers.items():
        data, feeds = make()
        yield name, data, [feeds]


def convolutions() -> Iterator[Model]:
    for case in importlib.import_module("bench_convolutions").CASES:
        yield f"{case.kind} {case.name}", case.model(), [{"x": case.feed()}]


def products() -> Iterator[Model]:
    bench = importlib.import_module("bench_products")
    for n, k in bench.SIZES:
        for m in bench.ROWS:
            if m * n * k <= 1 << 27:
                case = bench.product(m, n, k)
                yield case.name, case.model, [case.feeds]


def quantised() -> Iterator[Model]:
    for model in importlib.import_module("quantized").models():
        yield model.name, model.data, [model.feeds]


def searches() -> Iterator[Model]:
    for row in importlib.import_module("bench_searches").ROWS:
        data, feeds = row.build()
        yield row.name(), data, [feeds]


def operators() -> Iterator[Model]:
    for case in importlib.import_module("single_operators").cases():
        yield case.title(), case.model(), [case.inputs]


GROUPS = {
    maker.__name__: maker
    for maker in (
        cases, shared, loops, recurrences, networks, convolutions, products, quantised, searches, operators,
    )
}  # fmt: skip
