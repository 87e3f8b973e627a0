"""./dev release: one folder with everything that is published, which people install from.

Wheels and sources for pip, Debian packages, the site, bills of materials, and checksums of all of them.
"""

import hashlib
import pathlib
import shutil
import tarfile
import zipfile

import debs
import documenting
import wheels
from console import BUILD, ROOT, say

RELEASE = BUILD / "release-folder"
SITE = "treadle-{version}-site.tar.gz"

READ_ME = """# treadle {version}

Python, on every Linux with glibc 2.34 on x86-64, without a compiler:

    pip install --find-links {folder} "treadle[jit]"

Debian 12:

    apt install {folder}/debs/treadle_*.deb {folder}/debs/libtreadle*.deb

| file | what it is |
| --- | --- |
{files}

`sha256sum -c SHA256SUMS` in this folder holds the files against their checksums. The site needs no server: unpack it and
open `index.html`.
"""
KINDS = {
    ".whl": "a wheel for pip",
    ".deb": "a Debian package",
    "-site.tar.gz": "the documentation",
    ".cdx.json": "a bill of materials: what is inside, with versions and licences",
    ".tar.gz": "the sources, from which pip builds where there is a compiler",
}


def kind_of(path: pathlib.Path) -> str:
    return next(what for ending, what in KINDS.items() if path.name.endswith(ending))


def bills_of_materials(made: list[pathlib.Path]) -> None:
    """Those inside the wheels, as files that can be read without unpacking anything."""
    for wheel in made:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(".cdx.json"):
                    (RELEASE / pathlib.PurePosixPath(name).name).write_bytes(archive.read(name))


def pack_site(path: pathlib.Path) -> None:
    """The same pages give the same bytes."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime = entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(path, "w:gz") as archive:
        for page in sorted((documenting.DOCS / "html").rglob("*")):
            if page.is_file():
                archive.add(page, page.relative_to(documenting.DOCS / "html"), filter=plain)


def release(options) -> int:
    shutil.rmtree(RELEASE, ignore_errors=True)
    version = wheels.project()["version"]
    made = wheels.make_wheels()
    sources = wheels.make_sources()
    debs.command_debs(options)
    documenting.docs(options)
    (RELEASE / "debs").mkdir(parents=True)
    for path in (*made, sources):
        shutil.copy(path, RELEASE)
    for path in sorted(debs.DEBS.glob("*.deb")):
        shutil.copy(path, RELEASE / "debs")
    bills_of_materials(made)
    pack_site(RELEASE / SITE.format(version=version))
    files = sorted(path for path in RELEASE.rglob("*") if path.is_file())
    rows = "\n".join(f"| `{path.relative_to(RELEASE)}` | {kind_of(path)} |" for path in files)
    text = READ_ME.format(version=version, folder=".", files=rows)
    (RELEASE / "README.md").write_text(text, encoding="utf-8")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(RELEASE)}\n" for path in files]
    (RELEASE / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    size = sum(path.stat().st_size for path in files) / 1e6
    say(f"   {RELEASE.relative_to(ROOT)}: {len(files)} files, {size:.0f} MB")
    say(f"   to install: pip install --find-links {RELEASE.relative_to(ROOT)} 'treadle[jit]'")
    return 0
