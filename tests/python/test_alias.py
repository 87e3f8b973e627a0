"""treadle under the name onnxruntime. Each test in a process of its own: the alias changes what `import` finds."""

import os
import pathlib
import subprocess
import sys
import textwrap

import models
import pytest
import treadle


def run_python(code: str, *arguments: str) -> str:
    command = [sys.executable, *arguments] if arguments else [sys.executable, "-c", textwrap.dedent(code)]
    folders = [str(pathlib.Path(treadle.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_modules_and_names():
    run_python(
        """
        import importlib.util
        import treadle
        ort = treadle.as_onnxruntime()
        import onnxruntime
        assert onnxruntime is ort and ort is not treadle
        assert treadle.as_onnxruntime() is ort
        assert [int(p) for p in ort.__version__.split(".")[:2]] >= [1, 19]
        assert importlib.util.find_spec("onnxruntime").name == "onnxruntime"
        from onnxruntime import InferenceSession, SessionOptions, GraphOptimizationLevel, get_available_providers
        from onnxruntime.capi import _pybind_state as C
        from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, NoSuchFile, RuntimeException
        import onnxruntime.capi.onnxruntime_inference_collection as collection
        assert collection.InferenceSession is InferenceSession is treadle.InferenceSession
        assert C.get_available_providers() == ["CPUExecutionProvider"]
        assert InvalidArgument.__bases__ == (Exception,)
        try:
            InferenceSession("no such file")
        except NoSuchFile:
            pass
        else:
            raise AssertionError
        """
    )


def test_parts_that_are_programs_over_onnxruntime():
    out = run_python(
        """
        import importlib.machinery
        import treadle
        installed = importlib.machinery.PathFinder.find_spec("onnxruntime") is not None
        treadle.as_onnxruntime()
        try:
            import onnxruntime.tools
            print("found", installed)
        except ImportError as e:
            assert installed or "not part of treadle" in str(e), e
            print("refused", installed)
        """
    )
    assert out.split() in (["found", "True"], ["refused", "False"])


def test_refusal_without_an_installed_onnxruntime():
    run_python(
        """
        import importlib.machinery
        import treadle._alias
        treadle._alias._installed_folders = lambda: []
        treadle.as_onnxruntime()
        try:
            import onnxruntime.quantization
        except ImportError as e:
            assert "not part of treadle" in str(e)
        else:
            raise AssertionError
        """
    )


@pytest.mark.parametrize("as_module", [False, True])
def test_running_a_program(tmp_path, as_module, monkeypatch):
    (tmp_path / "model.onnx").write_bytes(models.add())
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import sys
            import numpy as np
            import onnxruntime as ort
            session = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
            z, = session.run(None, {"x": np.ones((1, 3), np.float32), "y": np.ones(3, np.float32)})
            print(type(session).__module__, z.tolist(), __name__)
            """
        )
    )
    monkeypatch.chdir(tmp_path)
    target = ["-m", "program"] if as_module else [str(program)]
    out = run_python("", "-W", "error", "-m", "treadle.as_onnxruntime", *target, str(tmp_path / "model.onnx"))
    assert out.split(maxsplit=1)[0].startswith("treadle") and "[[2.0, 2.0, 2.0]] __main__" in out


def test_the_module_is_callable_too():
    run_python(
        """
        import treadle.as_onnxruntime
        treadle.as_onnxruntime()
        import onnxruntime
        assert onnxruntime._is_treadle
        """
    )
