"""The places that docs/extending.md changes exist, and so do the functions that its code calls: tutorial.py follows the
page.
"""

import re

import pytest
import tutorial

BLOCKS = tutorial.blocks()
FOLDERS = ("src", "cli", "tests", "tools")
WORD = re.compile(r"[A-Za-z_]\w*")
CALLED = re.compile(r"(?<!TEST\()(?:(?<=::)\w+\b|\b\w+(?=[(<]))")
DEFINED = re.compile(r"^ *(?:const )?[\w:<>]+ (?:Planner::)?(\w+)(?:\(| = \[)", re.MULTILINE)
ASIDE = re.compile(r"\bnamespace .*|//.*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"")


def test_every_block_is_of_a_kind():
    assert {block.action for block in BLOCKS} == {"Create", "In", "sh", "text"}
    assert sum(block.action == "In" for block in BLOCKS) > 10


def test_every_place_exists():
    files = {}
    for block in BLOCKS:
        if block.action == "Create":
            assert not (tutorial.ROOT / block.path).exists(), f"line {block.line}: {block.path} is there already"
        if block.action in ("Create", "In"):
            tutorial.apply(block, files, lambda path: (tutorial.ROOT / path).read_text(encoding="utf-8"))


def words_of_the_code():
    words = set()
    for folder in FOLDERS:
        for path in (tutorial.ROOT / folder).rglob("*"):
            if path.suffix in (".h", ".cc"):
                words.update(WORD.findall(path.read_text(encoding="utf-8")))
    return words


def test_its_code_calls_what_exists():
    code = {b: ASIDE.sub("", b.new if b.action == "In" else b.text) for b in BLOCKS if b.path.endswith((".cc", ".h"))}
    known = words_of_the_code()
    for block, text in code.items():
        known.update(DEFINED.findall(text))
        if block.path.endswith(".h"):
            known.update(WORD.findall(text))
    called = {name: block for block, text in code.items() for name in CALLED.findall(text)}
    assert "plan_of" in called
    assert not [f"line {block.line}: {name}" for name, block in called.items() if name not in known]


def test_its_includes_exist():
    for block in BLOCKS:
        for name in re.findall(r'#include "([^"]+)"', block.text):
            assert any((tutorial.ROOT / folder / name).exists() for folder in ("src", "tests")), name


@pytest.mark.parametrize(
    ("printed", "shown", "expected"),
    [("a\nb\nc\n", "a\n...\nc", True), ("a\nc", "a\n...c", True), ("a\nb", "a", False), ("a.c", "abc", False)],
)
def test_dots_stand_for_anything(printed, shown, expected):
    assert tutorial.is_as_shown(printed, shown) == expected
