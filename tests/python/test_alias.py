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


STARTED = """
import sys
import importlib.metadata
import numpy as np
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import Fail
(z,) = ort.InferenceSession({path!r}).run(None, {{"x": np.ones((1, 3), np.float32), "y": np.ones(3, np.float32)}})
assert z.tolist() == [[2, 2, 2]] and ort._is_treadle
assert importlib.metadata.version("onnxruntime") == ort.__version__
print("fine", sys.argv)
"""


@pytest.fixture
def started(tmp_path):
    """A program that is content only with treadle under the name onnxruntime."""
    (tmp_path / "model.onnx").write_bytes(models.add())
    return STARTED.format(path=str(tmp_path / "model.onnx"))


def test_the_installed_version_answers():
    run_python(
        """
        import importlib.metadata
        import treadle
        ort = treadle.as_onnxruntime()
        assert importlib.metadata.version("onnxruntime") == ort.__version__ == ort.get_version_string()
        assert "onnxruntime" in importlib.metadata.packages_distributions().get("onnxruntime", [])
        """
    )


@pytest.mark.parametrize("folder_is_known", [True, False])
def test_started_programs_find_the_alias(started, folder_is_known):
    """Also where treadle was found by a sys.path that only this process has."""
    if not folder_is_known and "LD_PRELOAD" in os.environ:
        pytest.skip("the program finds the release build, and a sanitizer is preloaded")
    run_python(
        f"""
        import os, subprocess, sys
        import treadle
        if not {folder_is_known}:
            del os.environ["PYTHONPATH"]
        treadle.as_onnxruntime()
        code = {started!r}
        for arguments in (["-c", code, "1"], ["-", "1"]):
            done = subprocess.run([sys.executable, *arguments], input=code, capture_output=True, text=True)
            assert done.returncode == 0 and "fine" in done.stdout, done.stderr
        """
    )


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_started_workers_find_the_alias(started, tmp_path, method):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            f"""
            import multiprocessing

            def work(code):
                exec(code)
                import onnxruntime
                return onnxruntime.InferenceSession.__module__

            if __name__ == "__main__":
                with multiprocessing.get_context({method!r}).Pool(2) as pool:
                    print(pool.map(work, [{started!r}] * 2))
            """
        )
    )
    out = run_python("", "-m", "treadle.as_onnxruntime", str(program))
    assert out.splitlines()[-1] == "['treadle._session', 'treadle._session']"


def test_a_python_without_treadle_keeps_its_onnxruntime(tmp_path):
    """As another interpreter that is started with the same PYTHONPATH."""
    (tmp_path / "treadle").mkdir()
    (tmp_path / "treadle" / "__init__.py").write_text("raise ImportError('not for this interpreter')")
    code = """
        import sys
        import treadle._alias as alias
        alias._reach_started_processes()
        [sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "treadle"]
        sys.path.insert(0, {folder!r})
        try:
            import onnxruntime
            print("installed", hasattr(onnxruntime, "_is_treadle"))
        except ImportError as problem:
            print("none", "not for this interpreter" not in str(problem))
    """
    out = run_python(code.format(folder=str(tmp_path)))
    assert out.split() in (["installed", "False"], ["none", "False"])


def test_code_on_the_command_line(started):
    out = run_python("", "-W", "error", "-m", "treadle.as_onnxruntime", "-c", started + "\nprint(__name__)", "a", "-x")
    assert out.splitlines() == ["fine ['-c', 'a', '-x']", "__main__"]


def test_arguments_and_paths_are_as_without_the_alias(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys\nprint(sys.argv[1:], sys.path[0])\nsys.exit(3)\n")
    for how in ([str(program)], ["-m", "program"]):
        found = []
        for alias in ([], ["-m", "treadle.as_onnxruntime"]):
            environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(treadle.__file__).parent.parent)}
            command = [sys.executable, *alias, *how, "a", "--help"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, cwd=tmp_path)
            found.append((done.returncode, done.stdout))
        assert found[0] == found[1] and found[0][0] == 3


@pytest.mark.parametrize("arguments, status", [([], 2), (["-m"], 2), (["-c"], 2), (["-q"], 2), (["--help"], 0)])
def test_the_usage(arguments, status):
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(treadle.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-m", "treadle.as_onnxruntime", *arguments],
                          capture_output=True, text=True, timeout=120, env=environment)  # fmt: skip
    assert done.returncode == status
    assert "-c CODE" in (done.stderr if status else done.stdout)


def test_a_program_that_is_not_there(tmp_path):
    out = subprocess.run([sys.executable, "-m", "treadle.as_onnxruntime", "none.py"], capture_output=True, text=True,
                         timeout=120, cwd=tmp_path, check=False,
                         env={**os.environ, "PYTHONPATH": str(pathlib.Path(treadle.__file__).parent.parent)})  # fmt: skip
    assert out.returncode == 2 and out.stderr == "treadle.as_onnxruntime: there is no file 'none.py'\n"


def test_the_module_is_callable_too():
    run_python(
        """
        import treadle.as_onnxruntime
        treadle.as_onnxruntime()
        import onnxruntime
        assert onnxruntime._is_treadle
        """
    )
