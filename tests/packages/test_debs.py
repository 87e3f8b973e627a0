"""./dev debs: what is in the Debian packages, and that lintian finds no error."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
# A file that must be in each package.
FILES = {
    "libtreadle0": "/libtreadle.so.0",
    "libtreadle-dev": "/include/treadle/treadle.h",
    "treadle": "/bin/treadle",
    "python3-treadle": "/dist-packages/treadle/__init__.py",
}


@pytest.fixture(scope="module")
def debs():
    subprocess.run(["./dev", "debs"], cwd=ROOT, check=True, capture_output=True)
    return {path.name.split("_")[0]: path for path in (ROOT / "build" / "debs").glob("*.deb")}


def test_packages(debs):
    assert debs.keys() == FILES.keys()
    for name, path in debs.items():
        files = subprocess.check_output(["dpkg-deb", "-c", path], text=True).splitlines()
        names = [line.split(" -> ")[0].split()[-1] for line in files]
        assert any(file.endswith(FILES[name]) for file in names), name
        assert f"./usr/share/doc/{name}/copyright" in names
        assert f"./usr/share/doc/{name}/changelog.Debian.gz" in names


def test_lintian_finds_no_error(debs):
    command = ["lintian", "--allow-root", "--fail-on", "error", *debs.values()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
