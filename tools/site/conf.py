"""Sphinx's configuration of the site. ./dev docs puts the pages beside a copy of this file (tools/site/generate.py)."""

import inspect
import re

import treadle
from pygments.lexers.special import TextLexer
from sphinx.util.inspect import stringify_signature

project = "treadle"
copyright = "the authors of treadle, Apache-2.0"  # noqa: A001 - Sphinx's name
release = version = treadle.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # a page that jumps from a title to a heading of the third level
highlight_language = "text"
default_role = "code"
maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"treadle {treadle.__version__}"
html_static_path = ["static"]
html_css_files = ["treadle.css"]
html_logo = html_favicon = "static/mark.svg"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0f766e",
        "color-brand-content": "#0f766e",
        "color-brand-visited": "#4c5f7a",
    },
    "dark_css_variables": {
        "color-brand-primary": "#2dd4bf",
        "color-brand-content": "#2dd4bf",
        "color-brand-visited": "#9fb3c8",
    },
}
html_copy_source = False
html_show_sphinx = False

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "undoc-members": True}
python_use_unqualified_type_names = True


def escaped(line: str) -> str:
    """A line of a docstring, which is plain text with `code` in it, for reStructuredText."""
    parts = re.split(r"(`+[^`]+`+)", line)
    for i, part in enumerate(parts):
        parts[i] = "``" + part.strip("`") + "``" if i % 2 else re.sub(r"([*|\\]|_\b)", r"\\\1", part)
    return "".join(parts)


def paragraph(lines: list[str]) -> list[str]:
    """Code where all is indented, a list where it is one, else text; lines stay apart where they differ in their margin."""
    indented = [line.startswith((" ", "\t")) for line in lines]
    if all(indented):
        return ["::", "", *("    " + line for line in lines)]
    if lines[0].startswith(">>> ") or lines[0].startswith("- "):
        return lines if lines[0].startswith(">>> ") else [escaped(line) for line in lines]
    return [("| " if any(indented) else "") + escaped(line) for line in lines]


def plain_text(app, what, name, obj, options, lines: list[str]) -> None:
    blocks = [block.split("\n") for block in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")) if block.strip()]
    lines[:] = [line for block in blocks for line in (*paragraph(block), "")]


def with_types(app, what, name, obj, options, signature, returns) -> tuple[str, str] | None:
    """The signature of a method that the extension takes the place of, as Python's method has it."""
    owner = getattr(obj, "__objclass__", None)
    function = getattr(owner, f"_{name.rpartition('.')[2]}_of_python", None)
    if function is None:
        return None
    _, *parameters = inspect.signature(function).parameters.values()
    given = inspect.Signature(parameters)
    return stringify_signature(given, unqualified_typehints=True), inspect.signature(function).return_annotation


def setup(app) -> None:
    app.add_lexer("onnx", TextLexer)
    app.connect("autodoc-process-docstring", plain_text)
    app.connect("autodoc-process-signature", with_types)
