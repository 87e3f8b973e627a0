"""src/opt/pipeline.cc lists all rewrites: every file that declares one, calls one, or edits a graph is known here."""

import pathlib
import re

SRC = pathlib.Path(__file__).resolve().parents[2] / "src"
TABLE = (SRC / "opt" / "pipeline.cc").read_text(encoding="utf-8")
REWRITES = ("opt/passes.h", "opt/sequence_elements.h")

# Functions that edit graphs of the engine. `become` turns a node into another; a Builder makes nodes; regions hold
# theirs in lists.
EDIT = re.compile(
    r"\bbecome\(|\bBuilder\b|\bnew_node\(|\bsplice\(|\breplace_uses\(|\btake_out\("
    r"|\b(?:region|body|graph|top_?)(?:\(\))?(?:\.|->)nodes\.(?:erase|insert|push_back|clear)\("
)

# Outside of src/opt: code that makes a graph, and code of specialisation. None of it is a choice that could be left
# out.
EDITORS = {
    "ir": "graphs themselves",
    "op": "nodes themselves, and the views of loops that edit them",
    "model": "reads a model into a graph",
    "ops": "lowerings: the nodes that an operator stands for",
    "plan/specialize.cc": "puts lowerings and chosen branches in the place of their nodes",
    "plan/unknown_sizes.cc": "puts checks of sizes beside what is lowered",
    "session/absent_inputs.cc": "makes the model without inputs that a caller leaves out",
    "session/written_model.cc": "makes the model that optimized_model_filepath gets",
    "session/exposed_model.cc": "makes models for other engines, with inner values as outputs",
    "stream/time_walk": "makes the models of blocks",
    "stream/pool_places.cc": "makes the models of blocks of many streams",
}

# Outside of src/opt: the files that call a rewrite by its function, and the function.
CALLERS = {
    "plan/specialize.cc": {"remove_dead_nodes"},  # in a graph that is not planned (`decide`)
    "session/written_model.cc": {"remove_dead_nodes", "merge_common_nodes"},
    "stream/block_graphs.cc": {"remove_dead_nodes"},  # of the whole signal, which a block has no part of
}


def sources(folder=SRC):
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".h", ".cc"):
            code = "\n".join(line.partition("//")[0] for line in path.read_text(encoding="utf-8").splitlines())
            yield str(path.relative_to(SRC)), code


def rewrites():
    """Functions that take a graph to change, as the headers of rewrites declare them."""
    found = set()
    for header in REWRITES:
        found |= set(re.findall(r"^(?:void|bool) (\w+)\(ir::Graph& graph\b", (SRC / header).read_text(), re.MULTILINE))
    return found


def test_every_rewrite_has_a_row():
    assert len(rewrites()) > 25
    assert not {name for name in rewrites() if not re.search(rf"\b{name}\b", TABLE)}


def test_who_calls_a_rewrite_is_known():
    calls = {}
    for name, code in sources():
        if name.startswith("opt/"):
            continue
        called = {rewrite for rewrite in rewrites() if re.search(rf"\bopt::{rewrite}\(", code)}
        if called or any(f'#include "{header}"' in code for header in REWRITES):
            calls[name] = called
    assert calls == CALLERS


def test_what_edits_graphs_is_known():
    known = tuple(EDITORS)
    editors = {
        name for name, code in sources() if not name.startswith(("opt/", "jit/", "report/")) and EDIT.search(code)
    }
    unknown = {name for name in editors if not name.startswith(known)}
    assert not unknown, "a rewrite of a graph is a row of src/opt/pipeline.cc"
    unused = {name for name in known if not any(editor.startswith(name) for editor in editors)}
    assert not unused
