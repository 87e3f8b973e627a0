"""treadle's execution provider inside other versions of onnxruntime: its tests, and the nodes that it takes of real
models.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("TREADLE_SHARED", ROOT.parent / "shared"))
CLIENT = pathlib.Path(__file__).parent / "clients" / "provider_models.py"

# In how many models the provider takes nodes. Before 1.27 captured values of bodies prevent it; in 1.23 also claims in
# several graphs of one model.
TAKEN = {"1.23.2": 26, "1.24.4": 60, "1.25.1": 60, "1.26.0": 60, "1.27.0": 64, "1.32.0": 65}


def environment(installed, version) -> dict[str, str]:
    paths = [str(installed(f"onnxruntime=={version}")), str(ROOT / "build" / "python")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


@pytest.mark.parametrize("version", TAKEN)
def test_in_another_version(installed, version):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", ROOT / "tests" / "provider"]
    command += ["-k", "not shared_models"]  # which the test below runs
    env = environment(installed, version) | {"PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("version", TAKEN)
def test_models_in_another_version(installed, tmp_path, version):
    folders = [path.parent for path in sorted(SHARED.glob("models/*/model.onnx"))]
    if not folders:
        pytest.skip(f"no models in {SHARED}")
    done = subprocess.run(
        [sys.executable, CLIENT, *folders],
        env=environment(installed, version),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    wrong = {name: result["provider"] for name, result in found.items() if result["provider"]}
    # Where onnxruntime's own kernels fail and nothing is taken, so does the session with the provider.
    assert {name for name in wrong if found[name]["nodes"] or not found[name]["reference"]} == set(), wrong
    assert sum(result["nodes"] > 0 for result in found.values()) >= TAKEN[version]
