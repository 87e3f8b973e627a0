"""Names in pages and comments exist: files, flags of programs, options and environment variables."""

import ast
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
    """{name: first place} in pages and comments."""
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


def listed(kind):
    """The names of the rows of one kind in the table of options and variables."""
    table = (ROOT / "src" / "base" / "knobs.h").read_text(encoding="utf-8")
    return set(re.findall(rf'\{{knobs::{kind}, "(\w+)"', table))


def test_the_header_describes_the_options_of_the_table():
    header = (ROOT / "include" / "treadle" / "treadle.h").read_text(encoding="utf-8")
    comment = re.search(r"/\* Keys: (.*?)\*/", header, re.DOTALL)[1]
    assert set(re.findall(r'"(\w+)"', comment)) == listed("kSession")


def variables_of_python(path):
    """The names that a module asks os.environ for, also by a constant of the module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = {}
    for node in tree.body:
        for target in node.targets if isinstance(node, ast.Assign) else []:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=True)
            constants |= {name.id: value for name, value in pairs if isinstance(name, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("os.environ.get", "os.getenv"):
            asked = node.args[0]
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
            asked = node.slice
        else:
            continue
        yield ast.literal_eval(constants[asked.id] if isinstance(asked, ast.Name) else asked)


def variables_of_cpp(path):
    """The names in calls of getenv, also by a constant of the file."""
    text = path.read_text(encoding="utf-8")
    for asked in re.findall(r"\bgetenv\(([^)]+)\)", text):
        yield asked.strip('"') if asked.startswith('"') else re.search(rf'\b{re.escape(asked)} = "(\w+)"', text)[1]


def test_variables_that_are_read_have_a_row():
    """src/ and cli/ read by `environment`, which does not compile with any other name (base/knobs.h)."""
    read, by_hand = set(), set()
    for folder in ("src", "cli", "include", "python", "dropin", "provider", "triton"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix == ".py":
                read |= set(variables_of_python(path))
            elif path.suffix not in (".h", ".cc", ".hpp"):
                continue
            elif folder in ("dropin", "provider", "triton"):  # know the C interface alone
                read |= set(variables_of_cpp(path))
            elif re.search(r"\b(secure_)?getenv\(", path.read_text(encoding="utf-8")):
                by_hand.add(str(path.relative_to(ROOT)))
    assert by_hand == {"src/base/knobs.h", "src/run/native_cache.cc"}  # the latter with secure_getenv
    assert read >= {"TREADLE_TIER", "ORT_LOAD_CONFIG_FROM_MODEL"}
    assert read <= listed("kVariable")
