"""The command-line tool: `treadle` where the package is installed, or `python -m treadle`."""

from __future__ import annotations

import os
import signal
import sys

from . import _core


def main() -> int:
    """Runs the tool with the arguments of this process; gives its exit status."""
    # The tool is told of signals as a program of its own is: Python only takes a note until it has control again.
    for told in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(told, signal.SIG_DFL)
    return _core.run_tool([os.fsencode(word) for word in ("treadle", *sys.argv[1:])])


if __name__ == "__main__":
    sys.exit(main())
