"""Sphinx's configuration of the site. ./dev docs puts the pages beside a copy of this file (tools/site/generate.py)."""

import re

import treadle
from pygments.lexers.special import TextLexer

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


def setup(app) -> None:
    app.add_lexer("onnx", TextLexer)
    app.connect("autodoc-process-docstring", plain_text)
