"""No module of the Python package imports, directly or through others, what imports it."""

import ast
import graphlib
import pathlib

PACKAGE = pathlib.Path(__file__).parents[2] / "python" / "treadle"


def imported(path: pathlib.Path, modules: set[str]) -> set[str]:
    """Modules of the package that a module imports anywhere, in functions and for type checkers as well."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found |= {name if name in modules else "__init__" for name in names if name != "_core"}
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] == PACKAGE.name]
            found |= {name.partition(".")[2] or "__init__" for name in names}
    return found


def test_no_circle():
    paths = {path.stem: path for path in PACKAGE.glob("*.py")}
    imports = {name: imported(path, set(paths)) for name, path in paths.items()}
    assert imports["__init__"] >= {"_session", "_errors"}
    graphlib.TopologicalSorter(imports).prepare()  # an error names the circle
