"""./dev debs: the contents of the Debian packages; lintian must find no error."""

import pathlib
import re
import shutil
import subprocess

import pytest
from bare_tree import bare_tree

ROOT = pathlib.Path(__file__).parents[2]
# A file that must be in each package.
FILES = {
    "libtreadle0": "/libtreadle.so.0",
    "libtreadle-dev": "/include/treadle/treadle.h",
    "treadle": "/share/man/man1/treadle.1.gz",
    "treadle-triton": "/treadle/backends/treadle/libtriton_treadle.so",
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


def programs(page):
    """The name, the text and the expected output of each C++ program of a page."""
    text = page.read_text(encoding="utf-8")
    pattern = r"^```cpp\n// (\w+)\.cc\n(.*?)^```$.*?^```output\n(.*?)^```$"
    return re.findall(pattern, text, re.DOTALL | re.MULTILINE)


def check_tutorial(run):
    """The programs of the tutorial, compiled by its own line with Debian's compiler, print what the tutorial says."""
    page = ROOT / "docs" / "tutorials" / "cpp.md"
    text = page.read_text(encoding="utf-8")
    line = re.search(r"^g\+\+ .*pkg-config.*$", text, re.MULTILINE)[0]
    model = re.search(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)[1]
    folder = run.tree / "root" / "tutorial"
    folder.mkdir()
    (folder / "model.py").write_text(model, encoding="utf-8")
    run("cd /root/tutorial && python3 model.py")
    assert len(programs(page)) == 3
    for name, source, output in programs(page):
        (folder / f"{name}.cc").write_text(source, encoding="utf-8")
        compiled = line.replace("run.cc", f"{name}.cc").replace("-o run", f"-o {name}")
        assert run(f"cd /root/tutorial && {compiled} && ./{name}") == output


def test_installs_and_removes_cleanly_in_a_bare_tree(debs, tmp_path):
    """The tool, native code, C by pkg-config and Python, each by its package; nothing stays when they are removed."""
    with bare_tree(tmp_path) as run:
        for path in debs.values():
            shutil.copy(path, run.tree / "root")
        shutil.copytree(ROOT / "examples" / "embedding", run.tree / "root" / "embedding")
        run("apt-get update -q && apt-get install -y -q --no-install-recommends gcc g++ libc6-dev pkg-config")
        before = run(
            "dpkg-query -W -f '${Package}\\n'; find /usr /etc /var/lib/dpkg/info -name '*treadle*'"
        ).splitlines()
        run("apt-get install -y -q --no-install-recommends /root/*.deb")
        model = "/root/embedding/smooth.onnxtxt"
        assert run(f"treadle check {model}")
        assert run(f"TREADLE_JIT=required treadle run {model} --random 1 --dim time=64 --dim batch=4")
        run("cd /root/embedding && gcc run.c $(pkg-config --cflags --libs treadle) -o /root/run")
        assert run(f"TREADLE_JIT=required /root/run {model}") == "0.000 1.000 1.750 2.312 1.734 1.301 \n"
        check_tutorial(run)
        python = f"import treadle; print(treadle.InferenceSession('{model}').get_outputs()[0].shape)"
        assert run(f'python3 -c "{python}"') == "['time', 'batch']\n"
        run("apt-get purge -y -q " + " ".join(debs))
        after = run(
            "dpkg-query -W -f '${Package}\\n'; find /usr /etc /var/lib/dpkg/info -name '*treadle*'"
        ).splitlines()
        assert not [line for line in after if "treadle" in line and line not in before]
