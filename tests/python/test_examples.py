"""Each example gives the results that it announces."""

import pathlib
import re
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def test_streams():
    script = EXAMPLES / "streams" / "streams.py"
    text = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    differences = [float(number) for number in re.findall(r"differ from one run(?: each)? by (\S+?),?(?:\s|$)", text)]
    assert len(differences) == 4 and max(differences) < 1e-6, text
    assert "in 7 runs" in text  # each of all together
