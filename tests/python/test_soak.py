"""A few seconds of fuzz/soak.py; `./dev fuzz soak --seconds N` goes on for longer."""

import pathlib
import subprocess
import sys

SOAK = pathlib.Path(__file__).parents[2] / "fuzz" / "soak.py"


def test_threads_sessions_streams_pools_limits_and_forks_go_together():
    ran = subprocess.run([sys.executable, SOAK, "--seconds", "3"], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " 0 failed" in ran.stdout
