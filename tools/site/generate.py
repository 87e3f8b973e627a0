"""python tools/site/generate.py FOLDER: the sources of the site, pages that stand in the repository and pages that are made.

Pages of docs/ keep their names; `docs/NAME.md` in the text becomes a link. What is made: the reference of the command
line, of Python, C and C++ and of the operators.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "site"))

import headers  # noqa: E402
import navigation  # noqa: E402
import treadle  # noqa: E402
import treadle.batch  # noqa: E402
import treadle.recipes  # noqa: E402
import treadle.report  # noqa: E402

FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
TOOL = ROOT / "build" / "bin" / "treadle"


def linked(text: str, page: pathlib.PurePosixPath) -> str:
    """`docs/NAME.md`, as pages call each other in the repository, becomes a link with the page's title."""

    def link(match: re.Match[str]) -> str:
        target = os.path.relpath(match[1], page.parent)
        return f"[]({target})" if (ROOT / "docs" / match[1]).exists() else match[0]

    parts = FENCED.split(text)
    parts[::2] = [re.sub(r"`docs/([\w/-]+\.md)`", link, part) for part in parts[::2]]
    return "".join(parts)


def with_pictures(text: str, page: pathlib.Path) -> str:
    """Charts become part of the page, whose style then gives them the colours that the reader has chosen there."""

    def drawn(match: re.Match[str]) -> str:
        picture = (page.parent / match[1]).read_text(encoding="utf-8")
        return f'<figure class="picture">\n{picture.strip()}\n</figure>'

    return re.sub(r"^!\[[^\]]*\]\(((?:docs/|\.\./)*pictures/[\w-]+\.svg)\)$", drawn, text, flags=re.MULTILINE)


def table_of_contents(pages: set[str]) -> str:
    sections = {caption: list(names) for caption, names in navigation.SECTIONS.items()}
    placed = {name for names in sections.values() for name in names}
    sections["How to"] += sorted(page.removesuffix(".md") for page in pages if page.removesuffix(".md") not in placed)
    shown = [
        f":::{{toctree}}\n:hidden:\n:caption: {key}\n\n" + "\n".join(found) + "\n:::\n"
        for key, found in sections.items()
    ]
    return "\n" + "\n".join(shown)


def copy_pages(out: pathlib.Path) -> None:
    pages = {path.relative_to(ROOT / "docs").as_posix(): path for path in (ROOT / "docs").rglob("*.md")}
    pages |= {name: ROOT / source for name, source in navigation.FROM_THE_ROOT.items()}
    for name, source in pages.items():
        text = with_pictures(linked(source.read_text(encoding="utf-8"), pathlib.PurePosixPath(name)), source)
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        text += table_of_contents(pages.keys() - {"index.md"}) if name == "index.md" else ""
        (out / name).write_text(text, encoding="utf-8")
    for picture in (*(ROOT / "docs").rglob("*.png"), *(ROOT / "docs").rglob("*.webp")):
        place = out / picture.relative_to(ROOT / "docs")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, place)


def help_of(*words: str) -> str:
    return subprocess.run([TOOL, *words, "--help"], capture_output=True, text=True, check=True).stdout.strip()


def command_line() -> str:
    """`--help` of the tool and of each of its commands."""
    whole = help_of()
    commands = re.findall(r"^  (\w+)  +\S", whole.split("ubcommands:", 1)[-1].split("UBCOMMANDS:", 1)[-1], re.MULTILINE)
    parts = [
        "# Command line",
        "After this page you know every command of the tool `treadle` and every option of each. The page is what `treadle --help` and "
        "`treadle COMMAND --help` print.",
        "The exit status is 0, or 1 where something failed, or 2 where the tool was used wrongly. [Options](../options.md) says "
        "what options do that do not explain themselves, and which environment variables there are.",
        f"```text\n{whole}\n```",
    ]
    parts += [f"## treadle {name}\n\n```text\n{help_of(name)}\n```" for name in commands]
    return "\n\n".join(parts) + "\n"


MAIN_CLASSES = (
    "InferenceSession",
    "Stream",
    "StreamPool",
    "SessionOptions",
    "RunOptions",
    "OrtValue",
    "IOBinding",
    "Problem",
)
# How the docstring of a name begins that is here for programs written for onnxruntime alone.
NO_EFFECT = (
    "Has no effect",
    "Never raised",
    "There are none",
    "Raises NotImplemented",
    "Raises Fail",
    "Checks its arguments",
)


def is_error(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, BaseException)


def directive_of(name: str) -> str:
    thing = getattr(treadle, name)
    return "autoexception" if is_error(thing) else "autoclass" if isinstance(thing, type) else "autofunction"


def kind_of(name: str) -> str:
    """The part of the reference that a name belongs to."""
    thing = getattr(treadle, name)
    if name in MAIN_CLASSES:
        return "Sessions and streams"
    if (thing.__doc__ or "").strip().startswith(NO_EFFECT):
        return "Names without effect"
    if is_error(thing):
        return "Errors"
    return "Values and other classes" if isinstance(thing, type) else "Functions"


def python_package() -> str:
    """The public names of the package, what programs use most first; Sphinx writes what their docstrings say."""
    titles = ("Sessions and streams", "Functions", "Values and other classes", "Errors", "Names without effect")
    kinds: dict[str, list[str]] = {title: [] for title in titles}
    for name in treadle.__all__:
        if not name.startswith("_"):
            kinds[kind_of(name)].append(name)
    kinds["Sessions and streams"].sort(key=MAIN_CLASSES.index)
    parts = [
        "# Python",
        "After this page you know every name of the package `treadle`. The page is made from the signatures and docstrings of the package. "
        "[Options](../options.md) says what each option of onnxruntime's does here.",
    ]
    for kind, found in kinds.items():
        names = found if kind == "Sessions and streams" else sorted(found, key=str.lower)
        shown = "\n\n".join(f".. {directive_of(name)}:: treadle.{name}" for name in names)
        parts.append(f"## {kind}\n\n```{{eval-rst}}\n{shown}\n```")
    shown = "\n\n".join(f".. autoclass:: treadle.batch.{name}" for name in treadle.batch.__all__ if name[0].isupper())
    parts.append(f"## Tables\n\n```{{eval-rst}}\n{shown}\n\n.. autofunction:: treadle.batch.arrow\n```")
    for title, part in {"Recipes": treadle.recipes, "Reports": treadle.report}.items():
        shown = "\n\n".join(
            f".. auto{'class' if name[0].isupper() else 'function'}:: {part.__name__}.{name}"
            for name in sorted(part.__all__)
        )
        parts.append(f"## {title}\n\n```{{eval-rst}}\n{shown}\n```")
    return "\n\n".join(parts) + "\n"


def types_of(version: dict) -> str:
    """The element types that each type variable of an operator takes, lists and optionals of them not told apart."""
    shown = []
    for variable in version["types"]:
        elements = dict.fromkeys(re.sub(r"^(?:\w+\()*|\)*$", "", name) for name in variable["types"])
        nested = sorted({name.split("(")[0] for name in variable["types"]} - {"tensor"})
        kinds = f" ({', '.join(nested)} too)" if nested else ""
        shown.append(f"{variable['name']}: {', '.join(elements)}{kinds}")
    return "; ".join(shown)


def operators() -> str:
    found = treadle.operators()
    parts = [
        "# Operators",
        "After this page you know whether treadle runs an operator, from which version of its operator set on, with which types, and in which "
        "tiers. The page is made from the registry that the engine itself asks; `treadle ops NAME` prints all about one operator, and "
        "`treadle ops --json` prints all of it for programs.",
        f"This build has {len(found)} operators with {sum(len(op['versions']) for op in found)} versions. A version is the operator set "
        "that the version came with. Types are those of the newest version.",
        "A loop with any of these operators may become native code: the compiler writes out elementwise operators, and calls the kernels of "
        "the others ([Loops](../native.md)).",
    ]
    for domain in dict.fromkeys(op["domain"] for op in found):
        rows = [
            f"| {op['name']} | {' '.join(str(v['since']) for v in op['versions'])} | {', '.join(op['tiers'])} | "
            f"{types_of(op['versions'][-1])} |"
            for op in found
            if op["domain"] == domain
        ]
        head = "| operator | versions | tiers | types |\n| --- | --- | --- | --- |\n"
        parts.append(f"## {domain or 'ai.onnx'}\n\n{head}" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def main(out: pathlib.Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    (out / "reference").mkdir(parents=True)
    copy_pages(out)
    shutil.copy(ROOT / "tools" / "site" / "conf.py", out)
    shutil.copytree(ROOT / "tools" / "site" / "static", out / "static", dirs_exist_ok=True)
    made = {
        "cli": command_line(),
        "python": python_package(),
        "c": headers.c_page(ROOT / "include" / "treadle" / "treadle.h"),
        "cpp": headers.cpp_page(ROOT / "include" / "treadle" / "treadle.hpp"),
        "operators": operators(),
    }
    assert set(made) == set(navigation.MADE)
    for name, text in made.items():
        page = pathlib.PurePosixPath("reference", f"{name}.md")
        (out / page).write_text(linked(text, page), encoding="utf-8")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
