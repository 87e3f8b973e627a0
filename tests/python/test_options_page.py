"""docs/options.md has the rows of `treadle options`, the table of options and variables in src/base/knobs.h."""

import json
import os
import pathlib
import re
import subprocess

import models
import pytest
import treadle

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", ROOT / "build" / "bin")) / "treadle"
HEADER = "| name | values | otherwise | what it does |"

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")


def tool(*arguments):
    return subprocess.run([TOOL, "options", *arguments], capture_output=True, text=True, timeout=60)


def rows():
    return json.loads(tool("--json").stdout)


def table(kind):
    """The rows of one kind as the page has them."""
    where = kind == "variable"  # options apply everywhere
    lines = [HEADER + " where |" * where, "| --- | --- | --- | --- |" + " --- |" * where]
    for row in rows():
        if row["kind"] == kind:
            more = f" ([{row['page']}]({row['page']}))" if row["page"] else ""
            line = f"| `{row['name']}` | {row['values']} | {row['default']} | {row['meaning']}{more} |"
            lines.append(line + f" {row['where']} |" * where)
    return "\n".join(lines) + "\n"


def test_the_page_has_the_table():
    page = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    tables = re.findall(re.escape(HEADER) + r"(?: where \|)?\n(?:\|.*\n)+", page)
    assert tables == [table(kind) for kind in ("session", "run", "variable")]


def test_rows_of_sessions_are_options_that_a_session_takes():
    """The defaults as well, where they are values."""
    for row in rows():
        if row["kind"] != "session" or not row["default"] or row["name"] == "jit_cache":  # whose default is a rule
            continue
        options = treadle.SessionOptions()
        options.add_session_config_entry(f"treadle.{row['name']}", row["default"])
        treadle.InferenceSession(models.add(), options)
    options = treadle.SessionOptions()
    options.add_session_config_entry("treadle.unknown", "1")
    with pytest.raises(treadle.InvalidArgument) as problem:
        treadle.InferenceSession(models.add(), options)
    names = ", ".join(row["name"] for row in rows() if row["kind"] == "session")
    assert f"({names})" in str(problem.value)


def test_rows_of_runs_are_options_of_a_run():
    options = treadle.RunOptions()
    for row in rows():
        if row["kind"] == "run":
            setattr(options, row["name"], 0)


def test_the_tool_prints_all_or_one():
    text = tool().stdout
    assert all(row["name"] in text and row["meaning"] in text for row in rows())
    assert tool("TREADLE_SIGBUS").stdout.splitlines()[0].split() == ["TREADLE_SIGBUS", "off"]
    unknown = tool("TREADLE_SIGBUSS")
    assert unknown.returncode == 1
    assert "there is no option or variable 'TREADLE_SIGBUSS'" in unknown.stderr
