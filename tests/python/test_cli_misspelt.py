"""Misspelt commands and options are named, with the likely meaning."""

import subprocess

import pytest
from test_cli import TOOL

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rnu", "model.onnx"], "there is no command 'rnu'; did you mean 'run'?"),
        (["exlpain", "model.onnx"], "there is no command 'exlpain'; did you mean 'explain'?"),
        (["bnech", "--json"], "there is no command 'bnech'; did you mean 'bench'?"),
        (["model.onnx"], "there is no command 'model.onnx'; the commands are run, check, infer,"),
        (["run", "model.onnx", "--radnom", "1"], "run has no option '--radnom'; did you mean '--random'?"),
        (["bench", "model.onnx", "--second=3"], "bench has no option '--second'; did you mean '--seconds'?"),
        (["--versoin"], "treadle has no option '--versoin'; did you mean '--version'?"),
        (["profile", "model.onnx", "--wholly-other"], "profile has no option '--wholly-other'"),
    ],
)
def test_misspelt_words_are_named(arguments, said):
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stdout + done.stderr
