#!/usr/bin/env python3
"""Checks every #include "..." against the map in docs/architecture.md.

    check_includes.py [ROOT]

A folder includes itself and what the map's last column allows. Includes are written relative to src/ or include/
("base/status.h"), never relative to the including file. Folders in src/ that the map does not list are reported too.
Exit status 1 if anything is wrong.
"""

import pathlib
import re
import sys

ROW = re.compile(r"^\| `([\w/]+)/` \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SUFFIXES = {".h", ".cc", ".inc"}


def read_map(text: str) -> dict[str, set[str]]:
    """Folder -> the folders that it may include, itself among them."""
    allowed: dict[str, set[str]] = {}
    for folder, rule in ROW.findall(text):
        if rule == "everything above":
            others = set(allowed)
        elif rule == "nothing":
            others = set()
        else:
            others = set(re.findall(r"`([\w/]+)/`", rule))
        allowed[folder] = others | {folder}
    return allowed


def folder_of(path: str, folders) -> str | None:
    """The folder of the map that a path, relative to the root, lies in."""
    return next((folder for folder in folders if path.startswith(folder + "/")), None)


def resolve(root: pathlib.Path, source: pathlib.Path, name: str) -> str | None:
    """An include as a path relative to the root, or None when there is no such file of ours."""
    own_folders = [root / "src", root / "include"]
    if source.relative_to(root).parts[0] in ("cli", "python", "triton", "dropin", "provider"):
        own_folders += [root, root / source.relative_to(root).parts[0]]
    for base in own_folders:
        if (base / name).is_file():
            return (base / name).resolve().relative_to(root).as_posix()
    return None


def problems(root: pathlib.Path) -> list[str]:
    root = root.resolve()
    allowed = read_map((root / "docs" / "architecture.md").read_text(encoding="utf-8"))
    found = []
    for folder in sorted(path for path in (root / "src").iterdir() if path.is_dir()):
        if f"src/{folder.name}" not in allowed:
            found.append(f"src/{folder.name}/: not in the map of docs/architecture.md")
    for folder in allowed:
        for source in sorted((root / folder).rglob("*")):
            if source.suffix in SUFFIXES:
                found += file_problems(root, source, folder, allowed)
    return found


def file_problems(root, source, folder, allowed) -> list[str]:
    found = []
    text = source.read_text(encoding="utf-8")
    for match in INCLUDE.finditer(text):
        name = match[1]
        place = f"{source.relative_to(root)}:{text.count(chr(10), 0, match.start(1)) + 1}"
        target = resolve(root, source, name)
        if target is None:
            found.append(f'{place}: "{name}" is no file under src/ or include/ (write includes relative to these)')
            continue
        target_folder = folder_of(target, allowed)
        if target_folder not in allowed[folder]:
            found.append(f'{place}: {folder}/ may not include "{name}" ({target_folder or "not in the map"})')
    return found


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    found = problems(root)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
