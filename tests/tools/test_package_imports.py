"""No module of the Python package imports, directly or through others, a module that imports it."""

import ast
import graphlib
import pathlib

PACKAGE = pathlib.Path(__file__).parents[2] / "python" / "treadle"


def modules_of(package: pathlib.Path) -> dict[str, pathlib.Path]:
    """Files by the names of their modules; a package has the name of its folder."""
    named = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return named


def imported(module: str, modules: dict[str, pathlib.Path]) -> set[str]:
    """Modules of the package that a module imports anywhere, in functions and for type checkers as well."""
    path, found = modules[module], set()
    package = (module if path.name == "__init__.py" else module.rpartition(".")[0]).split(".")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            around = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join([*around, node.module] if node.module else around)
            names = {alias.name for alias in node.names} - {"_core"}  # the extension imports nothing
            found |= {f"{source}.{name}" if f"{source}.{name}" in modules else source for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & modules.keys()


def test_no_circle():
    modules = modules_of(PACKAGE)
    imports = {module: imported(module, modules) for module in modules}
    assert imports["treadle"] >= {"treadle._session", "treadle._errors"}
    assert imports["treadle.serving._command"] >= {"treadle", "treadle.serving._server", "treadle.serving._signature"}
    graphlib.TopologicalSorter(imports).prepare()  # an error names the circle
