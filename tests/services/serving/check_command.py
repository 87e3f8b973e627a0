"""The command line, apart from tritonclient, whose messages the SDK cannot stand beside its own."""

import pytest
from treadle.serving import _command, _websocket


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
