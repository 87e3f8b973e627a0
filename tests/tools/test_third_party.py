"""THIRD_PARTY.md against the files that the release build read and linked."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
RELEASE = ROOT / "build" / "release"
SHIPPED_OBJECT = re.compile(r"CMakeFiles/(treadle_(core|api|cli|tool|fmt|python|jit|kernels_\w+)|treadle)\.dir/")
SHIPPED_LINK = re.compile(r"CXX_\w+_LINKER__treadle(_cli|_python|_jit)?_Release")
COMPILER_AND_LIBC = {"c++", "x86_64-linux-gnu", "aarch64-linux-gnu", "linux", "asm-generic", "python3.11"}
RUNTIME = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}

pytestmark = pytest.mark.skipif(not (RELEASE / ".ninja_deps").exists(), reason="needs ./dev build")


def listed_headers() -> set[str]:
    text = (ROOT / "THIRD_PARTY.md").read_text()
    linked = text.split("## Linked into")[1].split("\n## ")[0]
    return set(re.findall(r"^\| [^|]+ \| [^|]+ \| `([\w.]+)/?` \|", linked, re.MULTILINE))


def headers_read() -> set[str]:
    """Top folders of the headers outside the project with which shipped objects were compiled."""
    text = subprocess.run(["ninja", "-C", RELEASE, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    found = set()
    for record in text.split("\n\n"):
        target, _, files = record.partition("\n")
        if SHIPPED_OBJECT.search(target):
            outside = "\n".join(f for f in files.split() if is_outside(f))
            found |= set(re.findall(r"/include/([\w+.-]+)/", outside))
            found |= set(re.findall(r"/include/(utf8proc\.h)", outside))  # no folder of its own, as libc's have none
    found = {"llvm" if name == "llvm-c" else name for name in found}
    return {name for name in found if name not in COMPILER_AND_LIBC}


def is_outside(path: str) -> bool:
    """Whether a header is of another package: of the system, or of the Python environment."""
    in_system = path.startswith("/") and not path.startswith(f"{ROOT}/")
    fetched = "/third_party/" in path
    return (in_system or fetched or "/site-packages/" in path) and "/lib/clang/" not in path


def linked_files() -> set[str]:
    """Libraries outside the build on the link lines of shipped files."""
    found = set()
    for block in (RELEASE / "build.ninja").read_text().split("\n\n"):
        if SHIPPED_LINK.search(block):
            for line in re.findall(r"^  LINK_LIBRARIES = (.*)$", block, re.MULTILINE):
                found |= {word for word in line.split() if re.search(r"^-l|^/.*\.(a|so)$", word)}
    return {word for word in found if not word.startswith(str(ROOT))}


def test_the_table_is_there():
    assert {"protozero", "fmt"} <= listed_headers()


def test_every_library_whose_headers_were_read_is_listed():
    read = headers_read()
    assert "protozero" in read, "no object that is shipped was compiled"
    assert read <= listed_headers()


def test_every_listed_library_is_used():
    if not {"numpy", "CLI", "llvm"} <= headers_read():
        pytest.skip("this build has no Python extension, no tool or no native tier")
    assert listed_headers() == headers_read()


def test_nothing_else_is_linked():
    names = {pathlib.Path(f).name for f in linked_files()}
    names = {name for name in names if not re.fullmatch(r"libLLVM\w+\.a", name)}
    assert names <= {"-ldl", "-lpthread", "-lm", "libutf8proc.a", "libz.a", "libzstd.a"}


def test_at_run_time_only_the_language_runtimes_are_needed():
    built = [
        ROOT / "build" / "bin" / "treadle",
        *(ROOT / "build" / "lib").glob("libtreadle*.so"),
        *ROOT.glob("build/python/treadle/_core*.so"),
    ]
    built = [path for path in built if path.is_file()]
    if not built:
        pytest.skip("nothing that is shipped has been linked")
    for path in built:
        text = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", text))
        assert needed, path
        assert needed <= RUNTIME, path
