"""python -m treadle_onnxruntime: treadle's library in the place of a package's own, and the package's own back again.

With made-up packages; the published ones are in tests/packages/test_wheels.py, which has the wheel.
"""

import pathlib

import pytest

treadle_onnxruntime = pytest.importorskip("treadle_onnxruntime", reason="the Python package is not built")
from treadle_onnxruntime import __main__ as command  # noqa: E402
from treadle_onnxruntime import _packages  # noqa: E402

TREADLES = b"\0OrtGetApiBase\0 TREADLE_JIT_LIBRARY\0 new"
OLDER = b"\0OrtGetApiBase\0 TREADLE_JIT_LIBRARY\0 old"


def onnxruntimes(release: str) -> bytes:
    return b"\0OrtGetApiBase\0libonnxruntime.so.1\0VERS_" + release.encode() + b"\0"


@pytest.fixture(autouse=True)
def library(tmp_path, monkeypatch):
    path = tmp_path / "treadles.so"
    path.write_bytes(TREADLES)
    monkeypatch.setattr(_packages, "get_library_path", lambda: str(path))
    monkeypatch.setattr(_packages, "version", lambda: "1.32.0")
    return path


@pytest.fixture
def site(tmp_path):
    """A folder of installed packages, and a function that installs one of these files and requirements there."""
    folder = tmp_path / "site"

    def install(name: str, files: dict[str, bytes], requires: tuple[str, ...] = ()) -> None:
        info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        wanted = "".join(f"Requires-Dist: {one}\n" for one in requires)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{wanted}")
        for path, data in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        (info / "RECORD").write_text("".join(f"{path},,\n" for path in files))

    install.folder = folder
    return install


def call(site, *arguments) -> int:
    return command.main([*arguments, "--path", str(site.folder)])


def contents(folder: pathlib.Path) -> dict[str, tuple[bytes, int, int]]:
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            state = path.stat()
            found[str(path.relative_to(folder))] = (path.read_bytes(), state.st_mode, state.st_mtime_ns)
    return found


NAMES = [
    "speech/lib/libonnxruntime.so",
    "speech.libs/libonnxruntime-13ab8084.so.1",
    "speech.libs/libonnxruntime-9a682863.so.1.14.1",
    "speech/libonnxruntime.so.1.32.0",
]


@pytest.mark.parametrize("name", NAMES)
def test_in_and_out_again(site, name, capsys):
    site("speech", {name: onnxruntimes("1.23.2"), "speech/__init__.py": b""})
    path = site.folder / name
    path.chmod(0o755)
    before = contents(site.folder)
    assert call(site, "install", "speech") == 0
    assert path.read_bytes() == TREADLES
    installed = contents(site.folder)
    assert call(site, "install", "Speech") == 0
    assert contents(site.folder) == installed
    assert "treadle's library, in place of onnxruntime 1.23.2" in capsys.readouterr().out
    assert call(site, "remove", "speech") == 0
    assert contents(site.folder) == before
    assert call(site, "remove", "speech") == 0
    assert contents(site.folder) == before
    assert call(site, "status", "speech") == 0
    assert capsys.readouterr().out.endswith(f"{path}: onnxruntime 1.23.2\n")


def test_a_requirement_brings_the_library(site):
    site("speech", {"speech/__init__.py": b""}, ("numpy>=1", "speech-core==1.0", 'other; extra == "x"'))
    site("speech-core", {"speech/lib/libonnxruntime.so": onnxruntimes("1.28.2")})
    site("other", {"other/libonnxruntime.so": onnxruntimes("1.28.2")})
    assert call(site, "install", "speech") == 0
    assert (site.folder / "speech/lib/libonnxruntime.so").read_bytes() == TREADLES
    assert (site.folder / "other/libonnxruntime.so").read_bytes() != TREADLES


def test_an_older_library_of_treadles_is_brought_up_to_date(site, library):
    site("speech", {NAMES[0]: onnxruntimes("1.23.2")})
    library.write_bytes(OLDER)
    assert call(site, "install", "speech") == 0
    library.write_bytes(TREADLES)
    assert call(site, "install", "speech") == 0
    assert (site.folder / NAMES[0]).read_bytes() == TREADLES
    assert call(site, "remove", "speech") == 0
    assert (site.folder / NAMES[0]).read_bytes() == onnxruntimes("1.23.2")


def test_a_package_that_was_installed_anew(site):
    site("speech", {NAMES[0]: onnxruntimes("1.23.2")})
    assert call(site, "install", "speech") == 0
    (site.folder / NAMES[0]).write_bytes(onnxruntimes("1.24.1"))
    assert call(site, "install", "speech") == 0
    assert call(site, "remove", "speech") == 0
    assert (site.folder / NAMES[0]).read_bytes() == onnxruntimes("1.24.1")


REFUSED = {
    "newer": (onnxruntimes("1.33.0"), "is onnxruntime 1.33.0, and treadle's library has the functions up to 1.32.0"),
    "foreign": (b"\x7fELF something else", "is neither onnxruntime's library nor treadle's: it stays as it is"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_packages_stay_unchanged(site, kind, capsys):
    data, said = REFUSED[kind]
    site("speech", {NAMES[0]: data})
    before = contents(site.folder)
    assert call(site, "install", "speech") == 1
    assert said in capsys.readouterr().err
    assert contents(site.folder) == before


def test_packages_without_the_library(site, capsys):
    site("voice", {"voice/__init__.py": b""}, ("onnxruntime<2",))
    site("onnxruntime", {"onnxruntime/capi/libonnxruntime.so.1.32.0": onnxruntimes("1.32.0")})
    site("plain", {"plain/__init__.py": b""})
    for name in ("voice", "onnxruntime"):
        assert call(site, "install", name) == 1
        assert f"{name} brings no libonnxruntime.so" in (said := capsys.readouterr().err)
        assert "python -m treadle.as_onnxruntime" in said
    assert call(site, "install", "plain", "absent") == 1
    said = capsys.readouterr().err
    assert "plain brings no libonnxruntime.so\n" in said and "no package absent is installed" in said


def test_a_copy_that_is_lost_is_told_of(site, capsys):
    site("speech", {NAMES[0]: onnxruntimes("1.23.2")})
    assert call(site, "install", "speech") == 0
    (site.folder / (NAMES[0] + _packages.BACKUP)).unlink()
    assert call(site, "remove", "speech") == 1
    assert "install the package anew" in capsys.readouterr().err
    assert (site.folder / NAMES[0]).read_bytes() == TREADLES


def test_a_file_by_its_path(site, capsys):
    site("speech", {NAMES[0]: onnxruntimes("1.23.2")})
    path = str(site.folder / NAMES[0])
    assert command.main(["install", path]) == command.main(["status", path]) == command.main(["remove", path]) == 0
    assert command.main(["install", path + ".not"]) == 1
    assert "there is no file" in capsys.readouterr().err


def test_without_a_command_the_path_is_printed(capsys):
    assert command.main([]) == 0
    assert capsys.readouterr().out == treadle_onnxruntime.get_library_path() + "\n"
