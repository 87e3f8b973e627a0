"""The command line, apart from tritonclient, whose messages the SDK cannot stand beside its own."""

import pytest
from treadle.serving import _command


def test_command_lines_that_are_wrong():
    for arguments, said in (
        (["a.onnx", "b.onnx", "--model_name", "c"], "is for one model"),
        (["a.onnx", "x/a.onnx"], "names of their own"),
        (["a.onnx", "--time", "x"], "expected NAME=VALUE"),
    ):
        with pytest.raises(SystemExit, match=said):
            _command.entries(_command.parser().parse_args(arguments))
