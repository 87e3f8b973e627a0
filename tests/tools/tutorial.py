"""docs/extending.md, step by step, in a copy of the checkout: `./dev test --all` runs this file, plain `./dev test` reads it.

A block of the page belongs to the line before it:

    Create `PATH`:      the block becomes this file
    In `PATH`:          the block is a diff of one place. Its lines with ' ' and '-' stand in the file, one behind the other
                        and once; its lines with ' ' and '+' take their place

A block of the language sh is run by bash in the copy. The block of the language text behind it is what that prints, where
'...' stands for anything; without such a block the commands have to end with status 0.
"""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "devtool"))
import environment  # noqa: E402

PAGE = ROOT / "docs" / "extending.md"
BLOCK = re.compile(r"(?:(Create|In)\n?\s*`([^`\n]+)`:\n\n)?^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Block:
    line: int
    action: str  # "Create", "In", "sh" or "text"
    path: str
    text: str

    @property
    def old(self) -> str:
        """The lines that a diff expects to find."""
        return "".join(line[1:] for line in self.text.splitlines(keepends=True) if line[0] in " -")

    @property
    def new(self) -> str:
        return "".join(line[1:] for line in self.text.splitlines(keepends=True) if line[0] in " +")


def blocks() -> list[Block]:
    page = PAGE.read_text(encoding="utf-8")
    return [
        Block(page[: match.start(3)].count("\n") + 1, match[1] or match[3], match[2] or "", match[4])
        for match in BLOCK.finditer(page)
    ]


def apply(block: Block, files: dict[str, str], read) -> None:
    """Makes the change in `files`; `read(path)` gives what is not in there yet."""
    if block.action == "Create":
        files[block.path] = block.text
        return
    text = files[block.path] if block.path in files else read(block.path)
    found = len(re.findall(f"^{re.escape(block.old)}", text, re.MULTILINE))
    assert found == 1, f"{PAGE.name}:{block.line}: {block.path} has this place {found} times:\n{block.old}"
    at = re.search(f"^{re.escape(block.old)}", text, re.MULTILINE)
    files[block.path] = text[: at.start()] + block.new + text[at.end() :]


def copy_of_the_checkout(folder: pathlib.Path) -> pathlib.Path:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    for name in subprocess.check_output(command, cwd=ROOT, text=True).split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    copy_venv(folder / "build" / "venv")
    return folder


def copy_venv(venv: pathlib.Path) -> None:
    """So that ./dev need not download anything: the packages of this checkout's venv, with the copy's own treadle."""
    shutil.copytree(environment.VENV, venv, symlinks=True)
    [link] = venv.glob("lib/python3*/site-packages/treadle-checkout.pth")
    link.write_text(f"{venv.parent / environment.STAGED_PACKAGE.name}\n")
    (venv / "made-from").write_text(environment.made_from(venv))


def run(block: Block, folder: pathlib.Path) -> tuple[int, str]:
    env = {**os.environ, "TREADLE_JIT_CACHE": "off", "TREADLE_SHARED": str(folder / "nothing")}
    env.pop("TREADLE_TEST_LONG", None)
    done = subprocess.run(
        ["bash", "-c", block.text], cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return done.returncode, done.stdout


def is_as_shown(printed: str, shown: str) -> bool:
    wanted = ".*".join(re.escape(part) for part in shown.strip().split("..."))
    return re.fullmatch(wanted, printed.strip(), re.DOTALL) is not None


def test_walk(tmp_path):
    """Slow the first time; the compiler's cache has most of it the second time."""
    folder = copy_of_the_checkout(tmp_path)
    page = blocks()
    for block, behind in zip(page, [*page[1:], None], strict=True):
        if block.action in ("Create", "In"):
            files = {}
            apply(block, files, lambda path: (folder / path).read_text(encoding="utf-8"))
            for path, text in files.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text, encoding="utf-8")
        elif block.action == "sh":
            status, printed = run(block, folder)
            if behind is not None and behind.action == "text":
                assert is_as_shown(printed, behind.text), f"{PAGE.name}:{behind.line}: it printed\n{printed}"
            else:
                assert status == 0, f"{PAGE.name}:{block.line}: status {status}\n{printed}"
