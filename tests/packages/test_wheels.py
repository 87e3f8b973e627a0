"""./dev wheels: the contents of the wheels, that two builds give the same bytes, and that they run where they are
installed.
"""

import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest
from bare_tree import bare_tree

ROOT = pathlib.Path(__file__).parents[2]
WHEELS = ROOT / "build" / "wheels"
SOURCES = ROOT / "build" / "sdist"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MODEL = ROOT / "examples" / "embedding" / "smooth.onnxtxt"
SCRIPT = f"""
import numpy as np, treadle
x = np.array([0, 4, 4, 4, 0, 0], np.float32)[:, None]
options = treadle.SessionOptions()
options.add_session_config_entry("treadle.jit", JIT)
[y] = treadle.InferenceSession({str(MODEL)!r}, options).run(None, {{"x": x}})
print(treadle.__version__, np.round(y[:, 0].astype(float), 3).tolist(), "libtreadle_jit" in open("/proc/self/maps").read())
"""


def call(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def builds():
    """Wheels and sources of two builds, by path."""
    found = []
    for _ in range(2):
        call("./dev", "wheels", cwd=ROOT)
        found.append({path: path.read_bytes() for folder in (WHEELS, SOURCES) for path in folder.iterdir()})
    return found


@pytest.fixture(scope="module")
def made(builds):
    """The names of the wheels."""
    return [path.name for path in builds[1] if path.parent == WHEELS]


def test_versions_agree():
    cmake = re.search(r"^project\(treadle VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
    assert PROJECT["version"] == cmake
    assert PROJECT["optional-dependencies"]["jit"] == [f"treadle-jit=={cmake}"]


def test_two_builds_give_the_same_bytes(builds):
    first, second = [{path.name: hashlib.sha256(data).hexdigest() for path, data in one.items()} for one in builds]
    assert first == second
    assert len(first) == 5


def test_wheel_names_state_their_requirements(made):
    version = re.escape(PROJECT["version"])
    provider, library, jit, dropin = sorted(made)
    assert re.fullmatch(
        rf"onnxruntime_ep_treadle-{version}-py3-none-manylinux_2_(1[7-9]|2\d|3[0-4])_\w+\.whl", provider
    )
    assert re.fullmatch(rf"treadle-{version}-cp311-abi3-manylinux_2_(1[7-9]|2\d|3[0-4])_\w+\.whl", library)
    assert re.fullmatch(rf"treadle_onnxruntime-{version}-py3-none-manylinux_2_(1[7-9]|2\d|3[0-4])_\w+\.whl", dropin)
    assert re.fullmatch(rf"treadle_jit-{version}-py3-none-manylinux_2_(1[7-9]|2\d|3[0-4])_\w+\.whl", jit)


def test_records_and_licences(made):
    for name in made:
        with zipfile.ZipFile(WHEELS / name) as archive:
            files = {entry: archive.read(entry) for entry in archive.namelist()}
        [record] = [entry for entry in files if entry.endswith(".dist-info/RECORD")]
        listed = dict(line.split(",", 1) for line in files[record].decode().splitlines())
        assert listed.keys() == files.keys()
        for entry, digest in listed.items():
            if entry != record:
                found = base64.urlsafe_b64encode(hashlib.sha256(files[entry]).digest()).rstrip(b"=").decode()
                assert digest == f"sha256={found},{len(files[entry])}", entry
        [bill] = [json.loads(data) for entry, data in files.items() if entry.endswith(".cdx.json")]
        info = record.removesuffix("RECORD")
        texts = {entry for entry in files if entry.startswith(f"{info}licenses/third_party/")}
        inside = {component["name"]: component for component in bill["components"]}
        assert len(texts) == len(inside) > 0
        assert all(len(files[text]) > 500 for text in texts)
        assert all(component["version"] for component in inside.values())
        assert ("LLVM" in inside) == name.startswith("treadle_jit")
        assert f"{info}licenses/LICENSE" in files


def environment(folder, *packages):
    call(sys.executable, "-m", "venv", folder)
    pip = [folder / "bin" / "pip", "--disable-pip-version-check", "install", "-q", "--find-links", WHEELS]
    call(*pip, *packages)
    return folder / "bin" / "python"


def run(python, jit):
    env = {key: value for key, value in os.environ.items() if not key.startswith(("TREADLE_", "PYTHON"))}
    env["TREADLE_JIT_CACHE"] = "off"
    code = SCRIPT.replace("JIT", repr(jit), 1)
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=False, env=env)


def test_a_compiler_of_another_version_is_told_of(made, tmp_path):
    python = environment(tmp_path / "venv", "treadle[jit]")
    [version] = (tmp_path / "venv").glob("lib/python3*/site-packages/treadle_jit/*/libtreadle_jit.so")
    version.parent.rename(version.parent.with_name("0.0.9"))
    done = run(python, "auto")
    assert done.stdout.endswith(" False\n")
    said = f"is of treadle 0.0.9, and this is treadle {PROJECT['version']}: install treadle-jit=={PROJECT['version']}"
    assert f"loops do not become native code: {version.parents[1]}/0.0.9/{version.name} {said}" in done.stderr.replace(
        "treadle/../", ""
    )


@pytest.mark.parametrize("numpy", ["numpy==1.26.4", "numpy>=2"])
def test_runs_where_it_is_installed(made, tmp_path, numpy):
    python = environment(tmp_path / "venv", "treadle[jit]", numpy)
    expected = f"{PROJECT['version']} [0.0, 1.0, 1.75, 2.312, 1.734, 1.301] True\n"
    done = run(python, "required")
    assert (done.stdout, done.stderr) == (expected, "")
    assert call(python.with_name("treadle"), "--version") == f"treadle {PROJECT['version']}\n"
    assert call(python.with_name("treadle"), "check", MODEL)


def test_runs_without_native_code(made, tmp_path):
    python = environment(tmp_path / "venv", "treadle")
    done = run(python, "auto")
    assert done.stdout.endswith(" False\n"), done.stderr
    assert "libtreadle_jit.so is not installed" in run(python, "required").stderr


def test_the_tool_finds_the_library_for_onnxruntimes_programs(made, tmp_path):
    python = environment(tmp_path / "venv", "treadle")
    tool = python.with_name("treadle")
    done = subprocess.run([tool, "onnxruntime-lib"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "pip install treadle-onnxruntime" in done.stderr
    python = environment(tmp_path / "venv", "treadle-onnxruntime")
    [path] = call(tool, "onnxruntime-lib").splitlines()
    assert (
        path == call(python, "-m", "treadle_onnxruntime").strip() == call(tool.with_name("treadle-onnxruntime")).strip()
    )
    assert (pathlib.Path(path).parent / "libonnxruntime.so.1").exists()
    # A program that was linked with onnxruntime asks for libonnxruntime.so.1; this is one to link with.
    program, other = tmp_path / "program", tmp_path / "libonnxruntime.so"
    (tmp_path / "other.c").write_text("void OrtGetApiBase(void) {}\n")
    call("cc", "-shared", "-fPIC", "-Wl,-soname,libonnxruntime.so.1", tmp_path / "other.c", "-o", other)
    call("cc", "-std=c11", f"-I{ROOT}", ROOT / "tests" / "dropin" / "native" / "client.c", other, "-o", program)
    env = {**os.environ, "LD_LIBRARY_PATH": str(pathlib.Path(path).parent)}
    done = subprocess.run([program, tmp_path], capture_output=True, text=True, check=False, env=env)
    assert f"{tmp_path}/loop.onnx" in done.stdout + done.stderr  # the file is missing


VOICES = ROOT / "examples" / "vad"
CLIENTS = {
    "sherpa-onnx==2.0.1": ("sherpa_vad.py", VOICES / "silero_vad.onnx", VOICES / "recording.wav"),
    "moonshine-voice==0.1.5": ("moonshine.py",),
    "piper-phonemize==1.1.0": ("piper.py",),
}
# Prints whose library a process has loaded at its end.
LOADED = """
import atexit, runpy, sys
def tell():
    paths = {line.split()[-1] for line in open("/proc/self/maps") if "libonnxruntime" in line}
    print(*sorted(path + " " + str(b"TREADLE_JIT_LIBRARY" in open(path, "rb").read()) for path in paths), file=sys.stderr)
atexit.register(tell)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0])
"""


@pytest.mark.parametrize("package", CLIENTS)
def test_published_packages_run_on_the_library(made, tmp_path, package):
    try:
        python = environment(tmp_path / "venv", package, "numpy", "treadle-onnxruntime", "treadle-jit")
    except AssertionError as e:
        pytest.skip(f"{package} cannot be installed: {str(e).strip().splitlines()[-1]}")
    program, *arguments = CLIENTS[package]
    name = package.split("==")[0]

    def run_client() -> tuple[str, bool]:
        command = [python, "-c", LOADED, ROOT / "tests" / "dropin" / "clients" / program, *arguments]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1], done.stderr.splitlines()[-1].endswith(" True")

    expected, is_treadles = run_client()
    assert not is_treadles
    for _ in range(2):
        assert "treadle's library, in place of onnxruntime 1." in call(
            python, "-m", "treadle_onnxruntime", "install", name
        )
        assert run_client() == (expected, True)
    call(python, "-m", "treadle_onnxruntime", "remove", name)
    assert run_client() == (expected, False)
    assert "libonnxruntime" in call(python, "-m", "treadle_onnxruntime", "status", name)


def test_the_sources_build(made, tmp_path):
    """As pip does it if no wheel fits; with the parts that compile quickly, and the machine's libraries for it."""
    [sources] = SOURCES.iterdir()
    quick = {"TREADLE_KERNELS": "baseline", "TREADLE_BUILD_JIT": "OFF", "TREADLE_PROFILE": "OFF"}
    settings = [f"--config-settings=cmake.define.{name}={value}" for name, value in quick.items()]
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
    ]
    call(*pip, *settings, "-w", tmp_path, sources, cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)})
    [wheel] = tmp_path.glob("treadle-*.whl")
    assert "-cp311-abi3-" in wheel.name
    python = environment(tmp_path / "venv", wheel)
    done = run(python, "off")
    assert done.stdout.endswith("[0.0, 1.0, 1.75, 2.312, 1.734, 1.301] False\n"), done.stderr


# Pages that need more than the wheels: a compiler, a checkout that was built, or onnxruntime.
NOT_FOR_PYTHON = ("cpp.md", "extending.md", "fuzzing.md", "benchmarks.md", "CONTRIBUTING.md", "onnxruntime-provider.md")


def test_pages_hold_on_a_machine_without_a_compiler(made, tmp_path):
    """README's own command installs the wheels in an empty tree; there, the pages' programs print what the pages say."""
    readme = (ROOT / "README.md").read_text()
    install = re.search(r"^pip install .*wheels.*$", readme, re.MULTILINE)[0]
    with bare_tree(tmp_path) as run:
        checkout = run.tree / "root" / "checkout"
        for path in ("README.md", "dev", "docs", "examples", "build/wheels", "tests/python/test_pages.py"):
            copy = shutil.copytree if (ROOT / path).is_dir() else shutil.copy
            (checkout / path).parent.mkdir(parents=True, exist_ok=True)
            copy(ROOT / path, checkout / path)
        run("apt-get update -q && apt-get install -y -q --no-install-recommends python3-venv")
        run("python3 -m venv /root/venv")
        inside = "cd /root/checkout && . /root/venv/bin/activate && export TREADLE_BIN_DIR=/root/venv/bin && "
        run(f"{inside} {install}")
        assert run(f"{inside} command -v cc gcc clang c++ || true") == ""
        assert run(f"{inside} treadle --version") == f"treadle {PROJECT['version']}\n"
        run(
            f"{inside} TREADLE_JIT=required treadle run examples/embedding/smooth.onnxtxt --random 1 --dim time=64 --dim batch=4"
        )
        run(f"{inside} pip install -q pytest onnx scikit-learn skl2onnx")
        left_out = " or ".join(NOT_FOR_PYTHON)
        printed = run(
            f"{inside} python -m pytest -q -p no:cacheprovider tests/python/test_pages.py -k 'test_blocks_run and not ({left_out})'"
        )
        assert " passed" in printed
        print(printed)
