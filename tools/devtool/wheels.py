"""./dev wheels: the Python package as wheels, for systems that have no compiler, and as sources.

Made of what `./dev build` has built, stripped. `treadle` has the library inside, `treadle-jit` the compiler of loops, which the
library finds beside itself, `onnxruntime-ep-treadle` the execution provider for onnxruntime, and `treadle-onnxruntime` the library
that takes onnxruntime's place. The same sources give the same bytes: entries are sorted, and all have one time.
"""

import base64
import dataclasses
import hashlib
import pathlib
import re
import shutil
import subprocess
import tomllib
import zipfile

from building import build
from console import BUILD, ROOT, Failure, run, say
from environment import PYTHON, make_venv
from third_party import bill_of_materials, components

VENV = BUILD / "venv-packaging"
WHEELS = BUILD / "wheels"
SOURCES = (
    BUILD / "sdist"
)  # not beside the wheels: where no wheel fits, pip is to say so, not to compile for half an hour
STAGED = BUILD / "wheels-staged"
REQUIREMENTS = ROOT / "tools" / "requirements-packaging.txt"
OLDEST_GLIBC = 34  # 2.34 at most: a wheel that needs a newer one is an error
OLDEST_PYTHON = (3, 11)  # of CPython; the extension keeps to its limited API, which all later ones have
LARGEST = {  # bytes
    "treadle": 9_000_000,
    "treadle-jit": 16_000_000,
    "onnxruntime-ep-treadle": 8_000_000,
    "treadle-onnxruntime": 8_000_000,
}
# What wheels beside the project's own say of themselves.
DESCRIPTIONS = {
    "treadle-jit": "What treadle, an ONNX engine, compiles loops by",
    "onnxruntime-ep-treadle": "An execution provider for onnxruntime that runs the loops of models on treadle",
    "treadle-onnxruntime": "treadle's libonnxruntime.so, by which programs that call onnxruntime run on treadle",
}
SCRIPTS = {
    "treadle-onnxruntime": {"treadle-onnxruntime": "treadle_onnxruntime.__main__:main"}
}  # beside the project's own
WRITTEN = (1980, 1, 1, 0, 0, 0)  # when all files in a wheel say they were


@dataclasses.dataclass
class Wheel:
    name: str
    tag: str  # python-abi, the platform comes from what is inside
    parts: tuple[str, ...]  # in THIRD_PARTY.md
    files: dict[str, pathlib.Path]  # name in the wheel -> what is there


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def package_files(name: str) -> dict[str, pathlib.Path]:
    """A package as it is imported from the build, whose Python files are links to the sources."""
    package = BUILD / "python" / name
    found = sorted(path for path in package.rglob("*") if path.is_file() and path.name != "libtreadle_jit.so")
    return {f"{name}/{path.relative_to(package)}": path.resolve() for path in found if path.suffix != ".pyc"}


def wheels() -> list[Wheel]:
    version = project()["version"]
    oldest = "cp" + "".join(map(str, OLDEST_PYTHON))
    marker = STAGED / "treadle_jit.py"
    marker.write_text('"""What treadle compiles loops by; treadle finds it here by itself."""\n')
    library = {f"treadle_jit/{version}/libtreadle_jit.so": BUILD / "lib" / "libtreadle_jit.so"}
    return [
        Wheel(
            "treadle", f"{oldest}-abi3", ("engine", "python"), package_files("treadle") | package_files("treadle_tool")
        ),
        Wheel("treadle-jit", "py3-none", ("jit",), {"treadle_jit/__init__.py": marker, **library}),
        Wheel("onnxruntime-ep-treadle", "py3-none", ("engine",), package_files("onnxruntime_ep_treadle")),
        Wheel("treadle-onnxruntime", "py3-none", ("engine",), package_files("treadle_onnxruntime")),
    ]


def metadata_of(name: str) -> tuple[str, str]:
    """METADATA and entry_points.txt."""
    script = f"""
import sys, tomllib, pathlib, pyproject_metadata
data = tomllib.loads(pathlib.Path("pyproject.toml").read_text())
project = data["project"]
if {name!r} != project["name"]:
    for key in ("readme", "dependencies", "optional-dependencies", "scripts"):
        project.pop(key, None)
    project |= {{"name": {name!r}, "description": {DESCRIPTIONS.get(name)!r}}}
sys.stdout.write(str(pyproject_metadata.StandardMetadata.from_pyproject(data, ".").as_rfc822()))
"""
    command = [VENV / "bin" / "python", "-c", script]
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    scripts = project().get("scripts", {}) if name == "treadle" else SCRIPTS.get(name, {})
    entries = "[console_scripts]\n" + "".join(f"{key} = {value}\n" for key, value in sorted(scripts.items()))
    return text, entries if scripts else ""


def file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.+-]+", "-", text)


def info_of(wheel: Wheel, tag: str) -> dict[str, bytes]:
    """The files of NAME-VERSION.dist-info but RECORD."""
    version = project()["version"]
    metadata, entries = metadata_of(wheel.name)
    inside = components(*wheel.parts)
    files = {
        "METADATA": metadata,
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: treadle ({version})\nRoot-Is-Purelib: false\nTag: {tag}\n",
        f"sboms/{wheel.name}.cdx.json": bill_of_materials(wheel.name, version, inside),
    }
    if entries:
        files["entry_points.txt"] = entries
    for name in project()["license-files"]:
        files[f"licenses/{name}"] = (ROOT / name).read_text()
    for one in inside:
        files[f"licenses/third_party/{file_name(one.name)}.txt"] = one.licence_text()
    return {name: text.encode() for name, text in files.items()}


def stripped(path: pathlib.Path) -> bytes:
    if ".so" not in path.suffixes:
        return path.read_bytes()
    copy = STAGED / path.name
    subprocess.run(["strip", "-o", copy, path], check=True)
    return copy.read_bytes()


def write(wheel: Wheel, platform: str, compression: int = zipfile.ZIP_DEFLATED) -> pathlib.Path:
    version = project()["version"]
    base = f"{wheel.name.replace('-', '_')}-{version}"
    tag = f"{wheel.tag}-{platform}"
    entries = {name: stripped(path) for name, path in sorted(wheel.files.items())}
    entries |= {f"{base}.dist-info/{name}": data for name, data in sorted(info_of(wheel, tag).items())}
    record = f"{base}.dist-info/RECORD"
    lines = []
    for name, data in entries.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    entries[record] = "".join([*lines, f"{record},,\n"]).encode()
    path = WHEELS / f"{base}-{tag}.whl"
    with zipfile.ZipFile(path, "w", compression, compresslevel=9) as archive:
        for name, data in entries.items():
            entry = zipfile.ZipInfo(name, WRITTEN)
            entry.compress_type = compression
            entry.external_attr = (0o100755 if ".so" in name else 0o100644) << 16
            archive.writestr(entry, data)
    return path


def oldest_platform(path: pathlib.Path) -> str:
    """The oldest manylinux that the libraries in a wheel run on, as auditwheel finds it."""
    command = [VENV / "bin" / "auditwheel", "show", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r'"(manylinux_2_(\d+)_\w+)"', done.stdout)
    if done.returncode or not found or int(found[2]) > OLDEST_GLIBC:
        raise Failure(f"{path.name}: manylinux_2_{OLDEST_GLIBC} was expected\n{done.stdout}{done.stderr}")
    return found[1]


def require_stable_abi(extension: pathlib.Path) -> None:
    """An error for a symbol that the limited API of OLDEST_PYTHON lacks."""
    script = f"""
import subprocess, sys
from abi3info import DATAS, FUNCTIONS
from abi3info.models import PyVersion, Symbol
oldest = PyVersion(*{OLDEST_PYTHON})
listed = subprocess.check_output(["nm", "-D", "--undefined-only", sys.argv[1]], text=True)
asked = [name for name in listed.split() if name.startswith(("Py", "_Py"))]
found = {{name: FUNCTIONS.get(Symbol(name)) or DATAS.get(Symbol(name)) for name in asked}}
print(*sorted(name for name, known in found.items() if not known or known.added > oldest))
sys.exit(not asked)
"""
    command = [VENV / "bin" / "python", "-c", script, extension]
    outside = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    if outside:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise Failure(f"{extension.name}: the limited API of Python {oldest} lacks {', '.join(outside)}")


def make_wheels() -> list[pathlib.Path]:
    build("dev_wheels")
    make_venv(VENV, REQUIREMENTS)
    for folder in (WHEELS, STAGED):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    require_stable_abi(BUILD / "python" / "treadle" / "_core.abi3.so")
    made = []
    for wheel in wheels():
        draft = write(wheel, "draft", zipfile.ZIP_STORED)
        path = write(wheel, oldest_platform(draft))
        draft.unlink()
        size = path.stat().st_size
        say(f"   {path.relative_to(ROOT)}: {size / 1e6:.1f} MB")
        if size > LARGEST[wheel.name]:
            raise Failure(f"{path.name} is larger than {LARGEST[wheel.name] / 1e6:.0f} MB")
        made.append(path)
    shutil.rmtree(STAGED)
    return made


def make_sources() -> pathlib.Path:
    """What `pip install` builds from, where there are compilers (docs/howto/install.md)."""
    shutil.rmtree(SOURCES, ignore_errors=True)
    script = "import sys, scikit_build_core.build; scikit_build_core.build.build_sdist(sys.argv[1])"
    run("packing the sources", [PYTHON, "-c", script, SOURCES], log="sdist")
    [path] = SOURCES.iterdir()
    say(f"   {path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.1f} MB")
    return path


def command_wheels(options) -> int:
    make_wheels()
    make_sources()
    say("   to install: pip install --find-links build/wheels 'treadle[jit]'")
    return 0
