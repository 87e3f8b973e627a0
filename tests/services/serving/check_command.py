"""The command line, apart from tritonclient, whose messages the SDK cannot stand beside its own."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from servers import SUMS, free_port
from treadle.serving import _command, _websocket

ROOT = pathlib.Path(__file__).parents[3]
TOOL = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", ROOT / "build" / "bin")) / "treadle"
PAGE = ROOT / "docs" / "howto" / "serving.md"


def test_the_page_and_the_help_have_the_same_options():
    known = {option for action in _command.parser()._actions for option in action.option_strings} - {"-h"}
    assert set(re.findall(r"--[a-z_]+", PAGE.read_text(encoding="utf-8"))) == known


@pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")
def test_the_tool_has_the_same_options():
    known = {option for action in _command.parser()._actions for option in action.option_strings} - {"-h"}
    shown = subprocess.run([TOOL, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^ +(?:-h,)?(--[a-z_]+)", shown, re.MULTILINE)) == known


def test_models_that_are_none(tmp_path):
    (tmp_path / "sums.onnxtxt").write_text(SUMS)
    for text, said in (
        ("[", "models.json: no JSON"),
        ("{}", "expected a list of models"),
        ('[{"name": "a"}]', 'entry 0 is to be an object with the texts "name" and "model"'),
        ('[{"name": "a", "model": "sums.onnxtxt", "bind": 5}]', "bind of model 'a' is 5, expected an object"),
        ('[{"name": "a", "model": "sums.onnxtxt", "hop": "4"}]', 'is "4", expected a whole number'),
        ('[{"name": "a", "model": "sums.onnxtxt", "idle_s": true}]', "is true, expected a number"),
        ('[{"name": "a", "model": "sums.onnxtxt", "page": 1}]', "is 1, expected true or false"),
        ('[{"name": "a", "model": "none.onnx"}]', "none.onnx: cannot open"),
        ('[{"name": "a", "model": "sums.onnxtxt", "timed": 3}]', "unexpected keyword argument 'timed'"),
        ('[{"name": "a", "model": "sums.onnxtxt", "time": {"z": 1}}]', "no input or output 'z'"),
        ('[{"name": "a", "model": "sums.onnxtxt", "bind": {"z": 1}}]', "--bind z: model 'a' has the inputs x, state"),
    ):
        (tmp_path / "models.json").write_text(text)
        with pytest.raises(SystemExit, match=said):
            _command.run([str(tmp_path / "models.json")])
    with pytest.raises(SystemExit, match=r"none\.json: No such file"):
        _command.run(["none.json"])
    with pytest.raises(SystemExit, match="--bind x: no JSON"):
        _command.run(["sums.onnxtxt", "--bind", "x=loud"])


def test_ports_that_are_taken(served):
    """The second process ends, and takes no connection of the first one's."""
    command = [sys.executable, "-m", "treadle.serving.kserve", str(served.folder / "models.json")]
    for http, grpc, said in (
        (served.http, free_port(), "address already in use"),
        (free_port(), served.grpc, f"gRPC cannot listen at 127.0.0.1:{served.grpc}"),
    ):
        arguments = [*command, f"--http_port={http}", f"--grpc_port={grpc}"]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode != 0 and said in done.stderr, done.stderr
        assert "Traceback" not in done.stderr, done.stderr


def test_a_server_says_where_it_listens(served):
    said = (
        f"serving sums, quotients, smooth, texts: REST and WebSockets at http://{served.url}, gRPC at {served.grpc_url}"
    )
    assert said in served.log.read_text()


def test_command_lines_that_are_wrong():
    for arguments, said in (
        (["a.onnx", "b.onnx", "--model_name", "c"], "is for one model"),
        (["a.onnx", "x/a.onnx"], "names of their own"),
        (["a.onnx", "--time", "x"], "expected NAME=VALUE"),
    ):
        with pytest.raises(SystemExit, match=said):
            _command.entries(_command.parser().parse_args(arguments))


def test_origins_that_are_none():
    options = _command.parser().parse_args(["a.onnx", "--allow_origin", "https://a.org", "--allow_origin", "*"])
    assert _command.entries(options)[0]["allow_origins"] == ["https://a.org", "*"]
    for text in ("example.org", "https://example.org/", "", "https://"):
        with pytest.raises(ValueError, match="is no origin"):
            _websocket.Sockets(None, [text])
