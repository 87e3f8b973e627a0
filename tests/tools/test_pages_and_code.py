"""What pages and comments name exists: files, flags of programs, options and environment variables."""

import pathlib
import re
import sys

import tutorial

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "site"))

import navigation  # noqa: E402

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.md")]
CODE = [
    path
    for folder in ("src", "include", "cli", "triton", "python", "tests", "fuzz", "bench", "tools", "examples")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".h", ".hpp", ".cc", ".py") and path.parent.name != "tools"  # whose tests invent files
]
PATH = re.compile(r"(?<![\w/.-])((?:[\w-]+/)+[\w-]+\.(?:h|hpp|cc|py|md|txt|proftext|cmake))\b")
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]+)")


def prose(path):
    """The lines that people read, numbered: all of a page; of code the comments and documentation."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if path.suffix == ".md":
            yield number, line
        elif path.suffix == ".py":
            yield number, line.partition("# ")[2]
        elif line.lstrip().startswith(("*", "/*")):
            yield number, line
        else:
            yield number, line.partition("// ")[2]


def named(pattern, paths):
    """{what is named: where first} in pages and comments."""
    found = {}
    for path in paths:
        for number, line in prose(path):
            for name in pattern.findall(line):
                found.setdefault(name, (path, number))
    return found


def test_files_exist():
    missing = []
    created = {block.path for block in tutorial.blocks()}
    created |= {f"{folder}reference/{name}.md" for name in navigation.MADE for folder in ("", "../")}  # by ./dev docs
    for name, (path, number) in named(PATH, PAGES + CODE).items():
        if name in created:
            continue
        # From the root, or as includes write them; what begins otherwise lies beside its file, or is not ours.
        folders = (ROOT, ROOT / "src", ROOT / "include", ROOT / "python", ROOT / "tests")
        ours = [folder for folder in folders if (folder / name).parent.is_dir()]
        if ours and not any((folder / name).exists() for folder in ours) and not re.search("NAME|TARGET", name):
            missing.append(f"{path.relative_to(ROOT)}:{number}: {name}")
    assert not missing, "\n".join(missing)


def test_flags_exist():
    """Those that pages, headers, the tool and scripts name; the engine itself has none."""
    defined = set()
    readers = PAGES + [path for path in CODE if path.relative_to(ROOT).parts[0] != "src"]
    for path in [*CODE, ROOT / "dev"]:
        defined |= set(re.findall(r"""["',|]--([a-z][a-z-]+)""", path.read_text(encoding="utf-8")))
    # An option of every program; a directory of the linker's notes; vcpkg's; CMake's.
    known = {"help", "obj", "overlay-ports", "component"}
    missing = [
        f"{path.relative_to(ROOT)}:{number}: --{name}"
        for name, (path, number) in named(FLAG, readers).items()
        if name not in defined | known
    ]
    assert not missing, "\n".join(missing)


def option_keys():
    """As the C header lists them, which is where programs read of them."""
    header = (ROOT / "include" / "treadle" / "treadle.h").read_text(encoding="utf-8")
    comment = re.search(r"/\* Keys: (.*?)\*/", header, re.DOTALL)[1]
    return set(re.findall(r'"(\w+)"', comment))


def test_options_are_in_header_and_page():
    code = (ROOT / "src" / "session" / "option_table.cc").read_text(encoding="utf-8")
    keys = set(re.findall(r'^    \{"(\w+)", set_', code, re.MULTILINE))
    page = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert keys == option_keys()
    assert {key for key in keys if f"`{key}`" not in page} == set()


def test_environment_variables_are_in_the_page():
    read = set()
    for path in CODE:
        if path.relative_to(ROOT).parts[0] in ("src", "cli", "python"):
            text = path.read_text(encoding="utf-8")
            read |= set(re.findall(r'(?:getenv|environment|environ\.get)\("(TREADLE_\w+)"', text))
    assert "TREADLE_JIT" in read
    page = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert {name for name in read if name not in page} == set()
