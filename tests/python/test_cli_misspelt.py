"""Misspelt commands and options are named, with the likely meaning; so are options without a value that they take."""

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
        (["run", "model.onnx", "--random", "--find", "nan"], "run: --random takes SEED, found '--find'"),
        (["run", "model.onnx", "--random", "x"], "run: --random takes SEED, found 'x'"),
        (["profile", "model.onnx", "--random"], "profile: --random takes SEED, found nothing behind it"),
        (["run", "model.onnx", "--threads"], "run: --threads takes INT, found nothing behind it"),
        (["bench", "model.onnx", "--seconds", "ten"], "bench: --seconds: expected 0 or a number above 0, found 'ten'"),
        (["run", "model.onnx", "--time-limit", "0"], "run: --time-limit: expected a number above 0, found '0'"),
        (["run", "model.onnx", "--threads", "9999"], "run: --threads: expected a number from 0 to 4096, found '9999'"),
        (["run", "model.onnx", "--tier", "fast"], "run: --tier: 'fast' is none of program, native, reference"),
    ],
)
def test_misspelt_words_are_named(arguments, said):
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stdout + done.stderr
