"""treadle's libonnxruntime.so, by which programs that call onnxruntime's C functions run on treadle.

python -m treadle_onnxruntime                      # prints where the library is
python -m treadle_onnxruntime install sherpa-onnx  # puts it into an installed package
python -m treadle_onnxruntime remove sherpa-onnx   # gives the package its own library back
"""

import ctypes
import pathlib

__all__ = ["get_library_path", "version"]


def get_library_path() -> str:
    """The library, which needs no other file of this package."""
    return str(pathlib.Path(__file__).with_name("libonnxruntime.so"))


class _ApiBase(ctypes.Structure):
    _fields_ = [("get_api", ctypes.c_void_p), ("get_version_string", ctypes.CFUNCTYPE(ctypes.c_char_p))]


def version() -> str:
    """The release of onnxruntime whose functions the library has."""
    library = ctypes.CDLL(get_library_path())
    library.OrtGetApiBase.restype = ctypes.POINTER(_ApiBase)
    said = library.OrtGetApiBase().contents.get_version_string().decode()  # such as 1.32.0+treadle.0.1.0
    return said.split("+")[0]
