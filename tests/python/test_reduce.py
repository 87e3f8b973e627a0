"""treadle.reduce: the smallest model for which a function is true."""

import pathlib
import sys

import numpy as np
import onnx
import pytest

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "fuzz"))

from random_programs.generator import make_program  # noqa: E402

CHAIN = """<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[4] y) {
  a = Neg (x)
  b = Exp (a)
  c = Tanh (b)
  d = Abs (c)
  y = Sqrt (d)
}"""


def bodies(graph):
    """(the node whose body it is or None, graph) of a graph and all bodies in it."""
    pending = [(None, graph)]
    while pending:
        owner, graph = pending.pop()
        yield owner, graph
        pending += [(node, a.g) for node in graph.node for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]


def nodes_of(model):
    return [node for _, graph in bodies(model.graph) for node in graph.node]


def loads(data):
    try:
        treadle.InferenceSession(data)
    except Exception:
        return False
    return True


def test_finds_the_node_by_which_a_model_fails():
    def fails(data):
        return loads(data) and any(node.op_type == "Tanh" for node in nodes_of(onnx.load_model_from_string(data)))

    model = onnx.load_model_from_string(treadle.parse_model(CHAIN))
    small = treadle.reduce(model, fails)
    assert isinstance(small, onnx.ModelProto)
    assert [node.op_type for node in nodes_of(small)] == ["Tanh"]
    assert treadle.reduce(treadle.parse_model(CHAIN), fails) == small.SerializeToString()


def test_reads_a_path(tmp_path):
    (tmp_path / "m.onnxtxt").write_text(CHAIN)
    small = treadle.reduce(tmp_path / "m.onnxtxt", lambda data: b"Sqrt" in data)
    assert len(nodes_of(onnx.load_model_from_string(small))) <= 1


def test_a_model_that_passes_is_an_error():
    with pytest.raises(ValueError, match="does not fail as it is"):
        treadle.reduce(treadle.parse_model(CHAIN), lambda data: False)


def test_an_exception_ends_the_search():
    calls = []

    def fails(data):
        calls.append(data)
        if len(calls) == 3:
            raise KeyError("out")
        return True

    with pytest.raises(KeyError, match="out"):
        treadle.reduce(treadle.parse_model(CHAIN), fails)
    assert len(calls) == 3


def test_no_more_attempts_than_allowed():
    calls = []
    treadle.reduce(treadle.parse_model(CHAIN), lambda data: calls.append(data) or b"Tanh" in data, attempts=4)
    assert len(calls) == 4


BODIES = ("Loop", "Scan", "If", "SequenceMap")


def node_in_a_body(model, rng):
    """(what holds it, the kind of a node in it, that of the node whose result it reads) drawn from a program."""
    found = []
    for owner, graph in bodies(model.graph):
        makers = {name: node.op_type for node in graph.node for name in node.output}
        for node in graph.node if owner is not None else ():
            found += [(owner.op_type, node.op_type, makers[name]) for name in node.input if name in makers]
    return found[rng.integers(len(found))] if found else None


def has_node_in_a_body(model, wanted):
    for owner, graph in bodies(model.graph):
        if owner is None or owner.op_type != wanted[0]:
            continue
        makers = {name: node.op_type for node in graph.node for name in node.output}
        if any(node.op_type == wanted[1] and wanted[2] in map(makers.get, node.input) for node in graph.node):
            return True
    return False


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_come_down_to_the_nodes_that_are_asked_for(seed):
    """A node of one kind that reads a node of another, in a body: three nodes, where a body needs no more."""
    model, _ = make_program(seed, 16, 2)
    wanted = node_in_a_body(model, np.random.default_rng(seed))
    if wanted is None:
        pytest.skip("a program without such a body")
    attempts = []

    def fails(data):
        attempts.append(data)
        return loads(data) and has_node_in_a_body(onnx.load_model_from_string(data), wanted)

    small = treadle.reduce(model, fails)
    assert fails(small.SerializeToString())
    kinds = sorted(node.op_type for node in nodes_of(small))
    # A Scan or Loop in an If needs the other branch, and some nodes have bodies of their own.
    assert len(kinds) <= 3 + sum(kind in BODIES for kind in wanted[1:]), (wanted, onnx.printer.to_text(small))
    assert small.ByteSize() < model.ByteSize() / 5
    print(wanted, len(nodes_of(model)), "->", len(kinds), len(attempts), "attempts")
