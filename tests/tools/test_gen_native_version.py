import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).parents[2] / "tools" / "gen_native_version.py"


def make_tree(root):
    for path in ("jit/writer.cc", "jit/writer.h", "plan/native.h", "plan/native.cc", "kernels/isa/gemm.h"):
        file = root / "src" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)


def text(root, llvm="19.1.7"):
    out = root / "build" / "version.cc"
    command = [sys.executable, str(SCRIPT), "--source", str(root), "--llvm", llvm, "--out", str(out)]
    subprocess.run(command, check=True)
    return out.read_text()


def test_a_change_that_code_depends_on_makes_another_version(tmp_path):
    make_tree(tmp_path)
    first = text(tmp_path)
    assert "uint64_t native_version()" in first
    assert text(tmp_path) == first
    versions = {first, text(tmp_path, "19.1.8")}
    for path in ("jit/writer.cc", "jit/writer.h", "plan/native.h"):
        (tmp_path / "src" / path).write_text("changed")
        versions.add(text(tmp_path))
    (tmp_path / "src" / "jit" / "more.cc").write_text("")
    versions.add(text(tmp_path))
    assert len(versions) == 6


def test_other_sources_do_not(tmp_path):
    make_tree(tmp_path)
    first = text(tmp_path)
    out = tmp_path / "build" / "version.cc"
    before = out.stat().st_mtime_ns
    for path in ("plan/native.cc", "kernels/isa/gemm.h"):
        (tmp_path / "src" / path).write_text("changed")
    assert text(tmp_path) == first
    assert out.stat().st_mtime_ns == before
