"""A few programs of fuzz/programs.py; `fuzz/programs.py --count N` runs more."""

import os
import pathlib
import sys

import numpy as np
import onnx
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "fuzz"))

programs = pytest.importorskip("programs", reason="needs onnxruntime")

COUNT = 3000 if os.environ.get("TREADLE_TEST_LONG") else 60


@pytest.mark.parametrize("first", range(0, COUNT, 20))
def test_tiers_and_references_agree(first):
    with programs.Runner() as runner:
        for seed in range(first, first + 20):
            opset = programs.OPSETS[seed % len(programs.OPSETS)]
            verdict = programs.check(runner, seed, opset)
            assert not verdict.wrong, f"seed {seed}, opset {opset}: {verdict.detail}"


def test_a_program_follows_from_its_seed():
    model, feeds = programs.make_program(7, 21)
    again, same = programs.make_program(7, 21)
    assert model == again
    assert programs.difference([list(f.values()) for f in feeds], [list(f.values()) for f in same]) == ""


def test_the_evaluator_tells_wrong_from_right():
    """Loop without `cond` runs M iterations whatever its body says; the evaluator knows, so a difference would be seen."""
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        agraph (int64 n) => (int64 y) <int64 zero = {0}> {
          y = Loop <body = b (int64 i, bool c, int64 s) => (bool d, int64 t)
            <int64 one = {1}> { t = Add (s, one) d = Less (t, one) }> (n, , zero)
        }""")
    feeds = [{"n": np.array(5)}]
    assert programs.evaluate(model, feeds[0])[0] == 5
    assert programs.judge(model, feeds).name == "same"
    assert "5 against 4" in programs.difference([np.array(5)], [np.array(4)])


def test_programs_have_special_numbers_and_empty_tensors():
    """Inputs hold NaNs, infinities, denormals and -0, some are empty; nodes include operators that rewrites replace."""
    kinds, operators, empty = set(), set(), 0
    for seed in range(200):
        model, feeds = programs.make_program(seed, 22)
        operators |= {node.op_type for graph in programs.subgraphs(model.graph) for node in graph.node}
        for x in feeds[0].values():
            empty += x.size == 0
            if x.dtype.kind == "f":
                small = (np.abs(x) < np.finfo(x.dtype).tiny) & (x != 0)
                found = {"nan": np.isnan(x), "inf": np.isposinf(x), "-inf": np.isneginf(x), "denormal": small}
                found["-0"] = np.signbit(x) & (x == 0)
                kinds |= {kind for kind, where in found.items() if where.any()}
    assert kinds == {"nan", "inf", "-inf", "denormal", "-0"} and empty > 20
    assert operators >= {"Clip", "ReduceLogSumExp", "ReduceLogSum", "Einsum", "Max", "Min", "Sum", "Mean", "MatMul"}


def test_programs_have_every_kind_of_value():
    """Sizes that the data decide, texts, lists, random numbers; states of all sorts of elements that grow and shrink."""
    operators, states = set(), set()
    for seed in range(1200):
        model, _ = programs.make_program(seed, 22)
        for graph in programs.subgraphs(model.graph):
            operators |= {node.op_type for node in graph.node}
            for node in graph.node:
                if node.op_type == "Loop":
                    inputs = node.attribute[0].g.input[2:]
                    states |= {info.type.WhichOneof("value") for info in inputs}
                    states |= {info.type.tensor_type.elem_type for info in inputs if info.type.HasField("tensor_type")}
    assert operators >= {"Range", "NonZero", "Compress", "Tile", "ConstantOfShape", "Reshape", "Slice"}
    assert operators >= {"StringConcat", "StringSplit", "StringNormalizer", "RegexFullMatch"}
    assert operators >= {"SequenceAt", "SequenceLength", "SequenceInsert", "ConcatFromSequence"}
    assert operators >= {f"Random{kind}{like}" for kind in ("Uniform", "Normal") for like in ("", "Like")}
    assert states >= {"tensor_type", "sequence_type", "optional_type"}
    t = onnx.TensorProto
    assert states >= {t.STRING, t.BOOL, t.INT8, t.UINT8, t.INT16, t.UINT16, t.UINT32, t.UINT64, t.FLOAT16, t.BFLOAT16}


def test_shrinking_keeps_the_failure():
    model, feeds = programs.make_program(3, 16)
    last = model.graph.output[-1].name
    holds = next(node.op_type for node in model.graph.node if last in node.output)

    def wrong(candidate, some):
        assert [info.name for info in candidate.graph.input] == list(some[0])
        return any(node.op_type == holds for graph in programs.subgraphs(candidate.graph) for node in graph.node)

    smaller = programs.shrink(model, feeds, wrong)
    assert wrong(smaller, programs.feeds_of(smaller, feeds))
    assert sum(len(graph.node) for graph in programs.subgraphs(smaller.graph)) == 1
    programs.evaluate(smaller, programs.feeds_of(smaller, feeds)[0])
