"""Every public name has a documentation of its purpose, and so has every public object."""

import inspect
import pathlib

import models
import numpy as np
import pytest
import treadle
import treadle.batch
import treadle.recipes
import treadle.report

X, Y = np.ones((2, 3), np.float32), np.ones(3, np.float32)
CLASSES_WITHOUT_NAMES = {"Profile": treadle._profile.Profile}
PARTS = {
    f"{part.__name__.split('.')[-1]}.{name}": getattr(part, name)
    for part in (treadle.batch, treadle.recipes, treadle.report)
    for name in part.__all__
}


def public():
    """(name, object) of every public function and class, and of every public member of these classes."""
    names = {name: getattr(treadle, name) for name in treadle.__all__ if not name.startswith("_")}
    for name, found in {**names, **CLASSES_WITHOUT_NAMES, **PARTS}.items():
        yield name, found
        if inspect.isclass(found):
            for key, member in inspect.getmembers(found):
                own = not any(key in vars(base) for base in found.__mro__ if base.__module__ in ("builtins", "enum"))
                if own and not key.startswith("_") and (callable(member) or isinstance(member, property)):
                    yield f"{name}.{key}", member


@pytest.mark.parametrize("name, member", list(public()), ids=lambda value: value if isinstance(value, str) else "")
def test_every_public_name_has_a_docstring(name, member):
    text = vars(member).get("__doc__") if inspect.isclass(member) else member.__doc__
    assert text and len(text.strip()) > 5
    assert text.strip()[0].isupper() or not text.strip()[0].isalpha()  # a sentence


def test_every_module_has_a_docstring():
    package = pathlib.Path(treadle.__file__).parent
    paths = [path for path in package.rglob("*.py") if path.name != "__pycache__"]
    assert len(paths) > 10
    for path in paths:
        assert path.read_text(encoding="utf-8").startswith('"""'), path


def session(path="model.onnx"):
    return treadle.InferenceSession(path)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("model.onnx").write_bytes(models.add())


def test_sessions(folder):
    signature = "x tensor(float)[n, 3], y tensor(float)[3] -> z tensor(float)[n, 3]"
    assert repr(session()) == f"<treadle.InferenceSession 'model.onnx': {signature}>"
    assert repr(session(models.add())) == f"<treadle.InferenceSession of graph 'test': {signature}>"
    assert repr(session().get_inputs()[0]) == "NodeArg(name='x', type='tensor(float)', shape=['n', 3])"
    text = repr(session().get_modelmeta())
    assert text.startswith("ModelMetadata(producer_name=") and "opset_imports={'': 21}" in text and "''," not in text


def test_a_session_with_many_inputs_names_the_first():
    names = [f"x{i}" for i in range(40)]
    data = models.model(
        [models.node("Sum", names, ["y"])], [models.value(n, shape=None) for n in names], [models.value("y", shape=[])]
    )
    text = repr(session(data))
    assert "36 more -> y tensor(float)[]" in text and len(text) < 200


def test_options():
    options = treadle.SessionOptions()
    assert repr(options) == "SessionOptions()"
    options.intra_op_num_threads = 2
    options.load_time_limit = 1.5
    options.add_session_config_entry("treadle.jit", "off")
    options.add_free_dimension_override_by_name("n", 2)
    assert repr(options) == (
        "SessionOptions(intra_op_num_threads=2, load_time_limit=1.5, entries={'treadle.jit': 'off'}, dimensions={'n': 2})"
    )
    run_options = treadle.RunOptions()
    assert repr(run_options) == "RunOptions()"
    run_options.memory_limit = 1 << 20
    run_options.terminate = True
    assert repr(run_options) == "RunOptions(memory_limit=1048576, terminate=True)"


def test_values(folder):
    assert repr(treadle.OrtValue.ortvalue_from_numpy(X)) == "<treadle.OrtValue tensor(float)[2,3]>"
    assert repr(treadle.OrtDevice()) == "OrtDevice('cpu', 0)"
    binding = session().io_binding()
    assert repr(binding) == "<treadle.IOBinding: nothing is bound>"
    binding.bind_cpu_input("x", X)
    binding.bind_cpu_input("y", Y)
    binding.bind_output("z")
    assert repr(binding) == "<treadle.IOBinding: inputs x, y; outputs z>"


def test_reports(folder):
    text = repr(session().profile({"x": X, "y": Y}, runs=1))
    assert text.startswith("<treadle.Profile: 1 nodes, ") and text.endswith(" ns a run>")
    problem = treadle.Problem(code="c", severity="error", message="it is wrong", line=3)
    assert repr(problem) == "Problem(code='c', severity='error', message='it is wrong', line=3)"
