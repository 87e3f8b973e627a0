"""docs/vocabulary.md: every name of the table is there, and every word of C that is not a part of another is in the table."""

import os
import pathlib
import re
import subprocess

import pytest
import treadle

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "vocabulary.md"
INCLUDE = ROOT / "include" / "treadle"
BIN = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", ROOT / "build" / "bin"))
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and "---" not in line
][1:]


def column(number):
    return sorted({name for row in ROWS for name in re.findall(r"`([^`]+)`", row[number])})


def test_the_table_is_whole():
    assert len(ROWS) > 40
    assert all(len(row) == 5 and row[0] and row[1] for row in ROWS)


def test_c():
    symbols = set((ROOT / "tests" / "tools" / "symbols.txt").read_text().replace("TREADLE_0", "").split())
    assert [name for name in column(1) if name not in symbols] == []


def test_cpp():
    """Classes by their name, members in the text of their class, functions in namespace treadle."""
    text = "\n".join(path.read_text() for path in INCLUDE.glob("*.hpp"))
    classes = dict(re.findall(r"^class (\w+) .*?\{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL))
    functions = set(re.findall(r"^inline [\w:<>]+ (\w+)\(", text, re.MULTILINE))
    for name in column(2):
        owner, _, member = name.partition(".")
        if member:
            assert re.search(rf"^  \S.*\b{member}\(", classes[owner], re.MULTILINE), name
        else:
            assert name in classes or name in functions, name


def test_python():
    for name in column(3):
        found = treadle
        for part in name.split("."):
            if found is treadle.NodeArg:
                break  # its fields are of its objects
            assert hasattr(found, part), name
            found = getattr(found, part)
            if found is treadle.SessionOptions:
                found = found()  # which has options that its class does not name


@pytest.mark.skipif(not (BIN / "treadle").exists(), reason="the tool is not built")
def test_command_line():
    def help_of(*command):
        return subprocess.run([BIN / "treadle", *command, "--help"], capture_output=True, text=True, check=True).stdout

    for words in column(4):
        command, _, option = words.rpartition(" ") if " " in words else (words, "", "")
        text = help_of(*[command] if command and not command.startswith("-") else [])
        if option == "-":
            assert "- is standard input" in text
        elif option or command.startswith("-"):
            assert re.search(rf"^  .*{re.escape(option or command)}\b", text, re.MULTILINE), words
