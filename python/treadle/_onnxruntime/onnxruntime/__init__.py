"""What `import onnxruntime` finds in a process that was started by a program under treadle's alias.

The folder above this package is in PYTHONPATH then. A Python that cannot import treadle gets the onnxruntime that is
installed for it.
"""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType

_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _import_treadle() -> ModuleType:
    try:
        return importlib.import_module("treadle")
    except ModuleNotFoundError as problem:
        if problem.name != "treadle":
            raise
    # The program that started this process found treadle by a path of its own.
    path = list(sys.path)
    sys.path.append(os.path.dirname(os.path.dirname(_FOLDER)))
    try:
        return importlib.import_module("treadle")
    except ImportError:
        sys.path[:] = path
        raise


def _replace() -> None:
    try:
        treadle = _import_treadle()
    except ImportError as problem:
        sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _FOLDER]
        del sys.modules[__name__]
        try:
            importlib.import_module(__name__)
        except ModuleNotFoundError:
            raise ImportError(f"onnxruntime is to be treadle here, which cannot be imported: {problem}") from problem
        return
    treadle.as_onnxruntime()


_replace()
