"""Every real model of SHARED/models through the command-line tool: models.py SHARED [--all]."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def main() -> int:
    tool = ROOT / "build" / "bin" / "treadle"
    return subprocess.run([tool, "test", pathlib.Path(sys.argv[1]) / "models"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
