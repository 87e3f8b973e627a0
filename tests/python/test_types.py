"""Type checkers find mistakes of programs that use the package, and none in programs that are right.

The package itself holds under mypy --strict and pyright. The checkers are in an environment of their own, which ./dev test
makes from tools/requirements-types.txt.
"""

import collections
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import treadle

PACKAGE = pathlib.Path(treadle.__file__).parent
CHECKED = pathlib.Path(__file__).parent / "checked"
TOOLS = pathlib.Path(sys.prefix).with_name("venv-types") / "bin"
CHECKERS = ["mypy", "pyright"]

needs_checkers = pytest.mark.skipif(
    not all((TOOLS / tool).exists() for tool in CHECKERS), reason="mypy and pyright are not installed"
)
needs_plain_build = pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="the checker imports the extension as it is")

# Public annotations that say Any, and why nothing narrower holds.
ANY = {
    "op": "functions of any parameters become operators",
    "InferenceSession.__getstate__": "what pickle keeps, for __setstate__ alone",
    "InferenceSession.__setstate__": "what __getstate__ gave",
    "RunOptions.__getstate__": "what pickle keeps, for __setstate__ alone",
    "RunOptions.__setstate__": "what __getstate__ gave",
    "InferenceSession.__init__": "options of providers may have any values: they are turned into texts",
    "InferenceSession.set_providers": "options of providers may have any values: they are turned into texts",
    "InferenceSession.get_tuning_results": "an empty list",
    "InferenceSession.set_tuning_results": "what another engine gave, which is refused or warned about",
    "InferenceSession.explain": "a JSON document, described in docs/native.md",
    "ModelMetadata.__init__": "made by sessions only",
    "open_sizes": "its overloads have the types",
    "reduce": "its overloads have the types",
    "Profile.loops": "a JSON document, described in its docstring",
    "Profile.memory": "a JSON document, described in its docstring",
    "OrtValue.__array__": "an array of the type that its model says",
    "OrtValue.__dlpack__": "a capsule has no type before Python 3.13; devices are numbers of any enumeration",
    "OrtValue.from_dlpack": "a capsule has no type before Python 3.13",
    "OrtValue.to_dlpack": "a capsule has no type before Python 3.13",
    "OrtValueVector.dlpack_at": "a capsule has no type before Python 3.13",
    "OrtValueVector.push_back": "a capsule has no type before Python 3.13",
    "OrtValueVector.push_back_batch": "objects of any kind, which are kept and not looked at",
    "OrtValueVector.to_dlpacks": "a capsule has no type before Python 3.13",
    "Profile.trace": "a JSON document in the format of browsers",
    "RunOptions.__setattr__": "hidden from type checkers",
    "SessionOptions.__setattr__": "hidden from type checkers",
    "infer_shapes": "what its overloads say narrowly",
    "operators": "JSON documents, one for each operator",
}


def checked(tool: str, *arguments: str, folder: pathlib.Path) -> dict[int, set[str]] | str:
    """Rules broken, by line; a text where the checker itself failed."""
    # A plain process, whatever is preloaded into this one.
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    environment |= {"MYPYPATH": str(PACKAGE.parent), "PYTHONPATH": str(PACKAGE.parent)}
    options = {
        "mypy": ["--strict", f"--python-executable={sys.executable}", f"--cache-dir={folder}", "--no-error-summary"],
        "pyright": ["--outputjson", f"--pythonpath={sys.executable}"],
    }
    command = [str(TOOLS / tool), *options[tool], *arguments]
    done = subprocess.run(
        command, cwd=PACKAGE.parent, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    found = collections.defaultdict(set)
    if done.returncode not in (0, 1):
        return done.stdout + done.stderr
    if tool == "mypy":
        for line, rule in re.findall(r"^.*?:(\d+): error: .*  \[([\w-]+)\]$", done.stdout, re.MULTILINE):
            found[int(line)].add(rule)
    else:
        for one in json.loads(done.stdout)["generalDiagnostics"]:
            if one["severity"] == "error":
                found[one["range"]["start"]["line"] + 1].add(one.get("rule", ""))
    assert bool(found) == bool(done.returncode), done.stdout + done.stderr
    return dict(found)


@needs_checkers
@pytest.mark.parametrize("tool", CHECKERS)
def test_the_package_holds(tool, tmp_path):
    assert checked(tool, *(["-p", "treadle"] if tool == "mypy" else ["treadle"]), folder=tmp_path) == {}


@needs_checkers
@needs_plain_build
def test_the_stub_of_the_extension_says_what_it_defines():
    # The checker has an environment of its own, without what the extension imports.
    paths = [PACKAGE.parent, *(path for path in sys.path if path.endswith("site-packages"))]
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent), "PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [TOOLS / "python", "-m", "mypy.stubtest", "treadle._core"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_checkers
@pytest.mark.parametrize("tool", CHECKERS)
def test_a_correct_program_holds(tool, tmp_path):
    assert checked(tool, str(CHECKED / "correct.py"), folder=tmp_path) == {}


@needs_checkers
@pytest.mark.parametrize("tool", CHECKERS)
def test_planted_mistakes_are_found(tool, tmp_path):
    path = CHECKED / "mistakes.py"
    marks = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if mark := re.search(r"  # ([a-z-]+), (report\w+)$", line):
            marks[number] = mark[1 + CHECKERS.index(tool)]
    assert len(marks) > 60
    found = checked(tool, str(path), folder=tmp_path)
    assert isinstance(found, dict), found
    assert {number: rule for number, rule in marks.items() if rule not in found.get(number, ())} == {}, "not found"
    assert {number: rules for number, rules in found.items() if number not in marks} == {}, "found, and not planted"


def test_the_correct_program_runs():
    # In a process of its own, as it takes the name onnxruntime.
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, CHECKED / "correct.py"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def annotations(owner, name=""):
    """(name, texts of annotations) of every public function, method and property below `owner`."""
    for key, member in vars(owner).items():
        if key.startswith("_") and not (key.startswith("__") and inspect.isclass(owner)):
            continue
        if inspect.ismodule(owner) and key not in owner.__all__:
            continue
        full = f"{name}.{key}".lstrip(".")
        for function in (member, getattr(member, "__func__", None), getattr(member, "fget", None)):
            if inspect.isfunction(function):
                yield full, [str(text) for text in function.__annotations__.values()]
        if inspect.isclass(member) and member.__module__.startswith("treadle"):
            yield from annotations(member, full)


def test_nothing_public_is_any_without_a_reason():
    public = [*annotations(treadle), *annotations(treadle._profile.Profile, "Profile")]
    assert len(public) > 100
    said = {name for name, texts in public if any(re.search(r"\bAny\b", text) for text in texts)}
    assert said - set(ANY) == set() and set(ANY) - said == set()


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()
