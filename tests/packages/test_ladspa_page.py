"""The tutorial of the plugin, by its words alone: each block runs as it stands there, and prints what the page shows."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorials" / "audio-plugin.md"

pytestmark = pytest.mark.skipif(not shutil.which("applyplugin"), reason="ladspa-sdk is not installed")


def blocks():
    return re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def is_as_shown(printed, shown):
    return re.fullmatch(".*".join(map(re.escape, shown.strip().split("..."))), printed.strip(), re.DOTALL) is not None


def test_the_tutorial(prefix, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "treadle").symlink_to(prefix)
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "HOME": str(tmp_path / "home"), "CHECKOUT": str(ROOT), "PATH": path}
    exported, printed = "", ""
    for language, text in blocks():
        if language == "python":
            (tmp_path / re.match(r"# (\S+)\n", text)[1]).write_text(text, encoding="utf-8")
        elif language == "sh":
            command = ["bash", "-ec", exported + text]
            done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
            printed = done.stdout
            exported += "".join(re.findall(r"^export .*\n", text, re.MULTILINE))
        elif language == "output":
            assert is_as_shown(printed, text), f"the page shows\n{text}\nbut it printed\n{printed}"
    level = re.search(r"clean -(\d+) dB", printed)
    assert int(level[1]) > 40, printed
