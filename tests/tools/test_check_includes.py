"""The map in docs/architecture.md is true of this tree, and the checker finds violations of it."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_includes  # noqa: E402

MAP = """
| folder | purpose | may include |
| --- | --- | --- |
| `src/base/` | first | nothing |
| `src/type/` | second | everything above |
| `include/treadle/` | surface | nothing |
| `src/api/` | behind it | everything above |
| `cli/` | tool | `include/treadle/` |
"""


@pytest.fixture
def tree(tmp_path):
    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    write("docs/architecture.md", MAP)
    write("src/base/a.h", "#pragma once\n")
    write("src/type/b.h", '#include <vector>\n#include "base/a.h"\n')
    write("src/type/b.cc", '#include "type/b.h"\n')
    write("include/treadle/c.h", "#pragma once\n")
    write("src/api/c.cc", '#include "treadle/c.h"\n#include "type/b.h"\n')
    write("cli/main.cc", '#include "cli/print.h"\n#include "treadle/c.h"\n')
    write("cli/print.h", "#pragma once\n")
    return write, tmp_path


def test_this_tree_keeps_to_its_map():
    assert check_includes.problems(ROOT) == []


def test_the_map_lists_the_folders_of_src_and_no_others_twice():
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = check_includes.ROW.findall(text)
    names = [folder for folder, _ in rows]
    assert len(names) == len(set(names)) >= 18
    table = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(table) == len(rows), "a row of the map is not in the form that the checker reads"


def test_a_tree_that_keeps_to_the_map_has_no_problems(tree):
    _, root = tree
    assert check_includes.problems(root) == []


@pytest.mark.parametrize(
    "path, text, complaint",
    [
        ("src/base/up.cc", '\n#include "type/b.h"\n', 'src/base/up.cc:2: src/base/ may not include "type/b.h"'),
        ("cli/deep.cc", '#include "type/b.h"\n', 'cli/deep.cc:1: cli/ may not include "type/b.h"'),
        ("include/treadle/d.h", '#include "base/a.h"\n', 'include/treadle/ may not include "base/a.h"'),
        ("src/type/rel.cc", '#include "b.h"\n', 'src/type/rel.cc:1: "b.h" is no file'),
        ("src/extra/x.h", "#pragma once\n", "src/extra/: not in the map"),
    ],
)
def test_an_include_against_the_map_is_reported(tree, path, text, complaint):
    write, root = tree
    write(path, text)
    found = check_includes.problems(root)
    assert len(found) == 1
    assert complaint in found[0]
