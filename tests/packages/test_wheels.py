"""./dev wheels: what is in the wheels, that two builds give the same bytes, and that they run where they are installed."""

import base64
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest
import tomllib

ROOT = pathlib.Path(__file__).parents[2]
WHEELS = ROOT / "build" / "wheels"
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
def made():
    """The wheels by name, each as the bytes of two builds."""
    builds = []
    for _ in range(2):
        call("./dev", "wheels", cwd=ROOT)
        builds.append({path.name: path.read_bytes() for path in WHEELS.iterdir()})
    assert builds[0].keys() == builds[1].keys()
    return {name: (data, builds[1][name]) for name, data in builds[0].items()}


def test_versions_agree():
    cmake = re.search(r"^project\(treadle VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
    assert PROJECT["version"] == cmake
    assert PROJECT["optional-dependencies"]["jit"] == [f"treadle-jit=={cmake}"]


def test_two_builds_give_the_same_bytes(made):
    for name, (first, second) in made.items():
        assert hashlib.sha256(first).digest() == hashlib.sha256(second).digest(), name


def test_names_say_what_is_needed(made):
    version = re.escape(PROJECT["version"])
    library, jit = sorted(made)
    assert re.fullmatch(rf"treadle-{version}-cp311-\w+-manylinux_2_(1[7-9]|2\d|3[0-4])_\w+\.whl", library)
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
