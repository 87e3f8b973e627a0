"""Installed packages that carry onnxruntime's library, and the exchange of that library for treadle's."""

import dataclasses
import importlib.metadata
import os
import pathlib
import re
import shutil

from treadle_onnxruntime import get_library_path, version

BACKUP = ".of-onnxruntime"  # ends the name of a package's own library while treadle's lies in its place
NAME = re.compile(r"libonnxruntime(-[0-9a-f]+)?\.so[.\d]*")  # a tool for wheels puts a digest into the name
RELEASE = re.compile(rb"\0VERS_(\d+\.\d+\.\d+)\0")  # the version of onnxruntime's symbols


class Refused(Exception):
    """A package or file is not one that the library can be put into; the message says why."""


def is_treadles(data: bytes) -> bool:
    """Whether a library is treadle's, of any version."""
    return b"OrtGetApiBase\0" in data and b"TREADLE_JIT_LIBRARY\0" in data


def release_of(data: bytes) -> str | None:
    """The release of onnxruntime that a library is; None where it is something else."""
    found = RELEASE.search(data) if b"OrtGetApiBase\0" in data else None
    return found[1].decode() if found else None


@dataclasses.dataclass
class Library:
    """A file in an installed package that programs of the package open as onnxruntime's library."""

    path: pathlib.Path

    @property
    def backup(self) -> pathlib.Path:
        return self.path.with_name(self.path.name + BACKUP)

    def state(self) -> str:
        """Says in a few words whose library the file is."""
        data = self.path.read_bytes()
        if is_treadles(data):
            is_current = data == pathlib.Path(get_library_path()).read_bytes()
            own = release_of(self.backup.read_bytes()) if self.backup.exists() else None
            text = "treadle's library" if is_current else "the library of another version of treadle"
            return f"{text}, in place of onnxruntime {own}" if own else f"{text}, without a copy of the package's own"
        release = release_of(data)
        return f"onnxruntime {release}" if release else "neither onnxruntime's library nor treadle's"

    def install(self) -> str:
        """Puts treadle's library into the file's place. What says `state` afterwards is returned."""
        data = self.path.read_bytes()
        if not is_treadles(data):
            self._check(release_of(data))
            _replace(self.backup, self.path)
        if data != pathlib.Path(get_library_path()).read_bytes():
            _replace(self.path, pathlib.Path(get_library_path()))
        return self.state()

    def remove(self) -> str:
        """Puts the package's own library back, byte by byte with its times and rights."""
        if is_treadles(self.path.read_bytes()):
            if not self.backup.exists():
                raise Refused(f"{self.path}: the package's own library is not kept beside it; install the package anew")
            os.replace(self.backup, self.path)
        self.backup.unlink(missing_ok=True)
        return self.state()

    def _check(self, release: str | None) -> None:
        if release is None:
            raise Refused(f"{self.path} is neither onnxruntime's library nor treadle's: it stays as it is")
        if _minor(release) > _minor(version()):
            raise Refused(
                f"{self.path} is onnxruntime {release}, and treadle's library has the functions up to {version()}: it stays as it is"
            )


def _minor(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")[:2]))


def _replace(path: pathlib.Path, source: pathlib.Path) -> None:
    """Makes `path` a copy of `source`; a reader meanwhile finds the old file or the new one."""
    new = path.with_name(path.name + ".new")
    try:
        shutil.copy2(source, new)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _distribution(name: str, folders: list[str] | None) -> importlib.metadata.Distribution | None:
    search = {"path": folders} if folders else {}
    found = importlib.metadata.distributions(**search)
    return next((one for one in found if one.metadata["Name"] and _normal(one.metadata["Name"]) == _normal(name)), None)


def _required(distribution: importlib.metadata.Distribution) -> list[str]:
    """The packages that a package cannot do without."""
    wanted = [text for text in distribution.requires or [] if "extra ==" not in text]
    return [re.match(r"[\w.-]+", text)[0] for text in wanted]


def libraries_of(name: str, folders: list[str] | None = None) -> list[Library]:
    """The libraries in an installed package, or, where it has none, in the packages that it needs.

    `name`: of the package as pip knows it, or the path of a file. `folders`: where packages are installed, if not where
    this Python finds them.
    """
    if os.sep in name:
        if not pathlib.Path(name).is_file():
            raise Refused(f"there is no file {name}")
        return [Library(pathlib.Path(name))]
    if _distribution(name, folders) is None:
        raise Refused(f"no package {name} is installed")
    seen, wave = {_normal(name)}, [name]
    while wave:
        distributions = [one for one in (_distribution(each, folders) for each in wave) if one]
        found = [library for one in distributions for library in _own_libraries(one)]
        if found:
            return found
        wave = [each for one in distributions for each in _required(one) if _normal(each) not in seen]
        seen |= {_normal(each) for each in wave}
    more = "; its Python programs run on treadle by `python -m treadle.as_onnxruntime`" if "onnxruntime" in seen else ""
    raise Refused(f"{name} brings no libonnxruntime.so{more}")


def _own_libraries(distribution: importlib.metadata.Distribution) -> list[Library]:
    if _normal(distribution.metadata["Name"]) == "onnxruntime":
        return []  # its Python module has the engine inside, and never opens the library
    files = [pathlib.Path(file.locate()) for file in distribution.files or [] if NAME.fullmatch(file.name)]
    return [Library(path) for path in sorted(files) if path.is_file() and not path.is_symlink()]
