"""The command `treadle` of an installed package: the tool alone, which starts without numpy and the package's own modules."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import signal
import sys


def extension() -> pathlib.Path:
    """The file of the package's extension, found without importing the package."""
    package = importlib.util.find_spec("treadle")
    for folder in package.submodule_search_locations or () if package else ():
        found = pathlib.Path(folder) / "_core.abi3.so"
        if found.exists():
            return found
    raise ImportError("the package 'treadle' is not installed for this Python: expected its file treadle/_core.abi3.so")


def main() -> int:
    """Runs the tool with the arguments of this process; gives its exit status."""
    # The tool is told of signals as a program of its own is: Python only takes a note until it has control again.
    for told in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(told, signal.SIG_DFL)
    os.environ.setdefault("TREADLE_PYTHON", sys.executable)  # for commands that the package does
    spec = importlib.util.spec_from_file_location("treadle_tool._tool", extension())  # the file has this module as well
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.run_tool([os.fsencode(word) for word in ("treadle", *sys.argv[1:])])


if __name__ == "__main__":
    sys.exit(main())
