"""Runs a program with treadle in place of onnxruntime, in this process and in those of Python that it starts.

usage: python -m treadle.as_onnxruntime SCRIPT [ARGUMENT...]
       python -m treadle.as_onnxruntime -m MODULE [ARGUMENT...]
       python -m treadle.as_onnxruntime -c CODE [ARGUMENT...]
"""

from __future__ import annotations

import os
import runpy
import sys
from types import ModuleType

import treadle

_as_onnxruntime = treadle.as_onnxruntime  # before this module takes the name


class _Callable(ModuleType):
    """`import treadle.as_onnxruntime` binds this module over the function of the same name; it works like it."""

    def __call__(self) -> ModuleType:
        return _as_onnxruntime()


def _look_first_in(folder: str) -> None:
    """Replaces the first entry of sys.path, the folder of the script, by `folder`; not with -P or -I."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[:1] = [folder]


def _run_code(code: str) -> None:
    main = ModuleType("__main__")
    sys.modules["__main__"] = main
    exec(compile(code, "<string>", "exec"), main.__dict__)  # what Python does with -c


def main(arguments: list[str]) -> int:
    """Runs the script, module or code that the arguments name. Returns the exit status: 2, with the usage, for none."""
    usage = (__doc__ or "").strip()
    if arguments[:1] in (["-h"], ["--help"]):
        print(usage)
        return 0
    if (
        not arguments
        or arguments in (["-m"], ["-c"])
        or (arguments[0].startswith("-") and arguments[0] not in ("-m", "-c"))
    ):
        print(usage, file=sys.stderr)
        return 2
    how, *rest = arguments
    if how not in ("-m", "-c") and not os.path.exists(how):
        print(f"treadle.as_onnxruntime: there is no file {how!r}", file=sys.stderr)
        return 2
    sys.argv = arguments if how not in ("-m", "-c") else [how, *rest[1:]] if how == "-c" else rest
    _look_first_in({"-m": os.getcwd(), "-c": ""}.get(how, os.path.dirname(os.path.realpath(how))))
    _as_onnxruntime()
    if how == "-c":
        _run_code(rest[0])
    elif how == "-m":
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(how, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

sys.modules[__name__].__class__ = _Callable
