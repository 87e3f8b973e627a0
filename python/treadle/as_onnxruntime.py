"""Runs a program with treadle in place of onnxruntime.

python -m treadle.as_onnxruntime script.py [arguments]
python -m treadle.as_onnxruntime -m module [arguments]
"""

from __future__ import annotations

import os
import runpy
import sys
from types import ModuleType
from typing import Any

import treadle

_as_onnxruntime = treadle.as_onnxruntime  # before this module takes the name


class _Callable(ModuleType):
    """`import treadle.as_onnxruntime` binds this module over the function of the same name; it works like it."""

    def __call__(self) -> Any:
        return _as_onnxruntime()


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        print(__doc__.strip())
        return 0 if arguments and arguments[0] in ("-h", "--help") else 2
    _as_onnxruntime()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

sys.modules[__name__].__class__ = _Callable
