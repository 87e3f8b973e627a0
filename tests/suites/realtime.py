"""Runs and pushes that are said to keep real time, under a sanitizer that traps memory, locks and calls that may wait.

    realtime.py SHARED [--all]

The models of SHARED/models; with --all the onnx package's backend cases as well (tests/realtime/main.cc).
"""

import os
import pathlib
import subprocess
import sys

import backend_cases

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", ROOT / "build" / "bin")) / "treadle_realtime_tests"


def main() -> int:
    if not PROGRAM.exists():
        print("the compiler has no sanitizer for real time\n0 passed, 0 failed, 1 skipped")
        return 0
    shared = pathlib.Path(sys.argv[1])
    folders = [shared / "models"]
    if "--all" in sys.argv[2:]:
        folders.append(backend_cases.exported_cases(shared / "conformance"))
    return subprocess.run([PROGRAM, *folders], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
