"""The site's parts: the references of the headers are whole, and the checkers of pages find faults."""

import importlib
import pathlib
import re
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools" / "site")]

import check_pages  # noqa: E402
import check_site  # noqa: E402
import headers  # noqa: E402
import navigation  # noqa: E402
import searched  # noqa: E402

HEADERS = ROOT / "include" / "treadle"


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def test_the_c_reference_has_every_name():
    page = headers.c_page(HEADERS / "treadle.h")
    text = without_comments((HEADERS / "treadle.h").read_text(encoding="utf-8"))
    declared = set(re.findall(r"\b(treadle_\w+)\(", text)) | set(re.findall(r"typedef \w+ (treadle_\w+)", text))
    shown = set(re.findall(r"\{c:\w+\}[^\n]*?\b(treadle_\w+)(?:\(|\n)", page))
    assert declared and declared - shown == set()


def test_the_cpp_reference_has_every_class_and_no_bodies():
    page = headers.cpp_page(HEADERS / "treadle.hpp")
    classes = set()
    for path in HEADERS.glob("*.hpp"):
        text = path.read_text(encoding="utf-8")
        classes |= set(
            re.findall(r"^class (\w+)", re.sub(r"namespace detail \{.*?\n\}", "", text, flags=re.DOTALL), re.M)
        )
    assert {"Session", "Stream"} <= classes <= set(re.findall(r"\{cpp:class\} (\w+)", page))
    signatures = re.findall(r"\{cpp:function\} (.*)", page)
    assert len(signatures) > 50
    assert not [line for line in signatures if "return " in line or line.count("(") != line.count(")")]


def test_comments_come_with_their_declarations():
    text = """
/* Of both. */
void first(int a); /* NULL: none */

/* ---- Second part: more */

typedef enum kind {
  A = 0 /* a */
} kind;
"""
    first, heading, kind = headers.items(text)
    assert (first.code, first.comment) == ("void first(int a)", "Of both.\n\nNULL: none")
    assert (heading.code, heading.comment) == ("", "Second part: more")
    assert kind.code.startswith("typedef enum kind {") and kind.code.endswith("kind")


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """A checkout of two pages."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("# One\n\nSee [two](docs/two.md#second-heading).\n")
    (tmp_path / "docs" / "two.md").write_text(
        "# Two\n\n## Second heading\n\nA tensor, `speling` and [C](reference/c.md).\n"
    )
    (tmp_path / "words.txt").write_text("# words\ntensor\n")
    monkeypatch.setattr(check_pages, "ROOT", tmp_path)
    monkeypatch.setattr(check_pages, "WORDS", tmp_path / "words.txt")
    return tmp_path


def what_is_found(capsys):
    status = check_pages.main()
    return status, capsys.readouterr().out.splitlines()


@pytest.mark.skipif(not shutil.which("aspell"), reason="aspell is installed by ./dev lint")
def test_good_pages_pass(pages, capsys):
    assert what_is_found(capsys) == (0, ["2 pages"])


@pytest.mark.skipif(not shutil.which("aspell"), reason="aspell is installed by ./dev lint")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("A mispelt word.", "'mispelt' is misspelt"),
        ("[x](three.md)", "three.md: there is no such file"),
        ("[x](../README.md#two)", "the page has no such heading"),
    ],
)
def test_faults_of_pages_are_named(pages, capsys, line, said):
    with (pages / "docs" / "two.md").open("a") as file:
        file.write(f"\n{line}\n")
    status, lines = what_is_found(capsys)
    assert status == 1 and len(lines) == 1
    assert lines[0].startswith("docs/two.md:7: ") and said in lines[0]


@pytest.fixture
def generate():
    """The script that writes the pages; it asks the package and the tool."""
    pytest.importorskip("treadle", reason="the Python package is not built")
    return importlib.import_module("generate")


def test_names_of_pages_become_links_but_in_code(generate):
    text = "See `docs/limits.md` and `docs/none.md`.\n\n```text\n`docs/limits.md`\n```\n"
    expected = "See [](../limits.md) and `docs/none.md`.\n\n```text\n`docs/limits.md`\n```\n"
    assert generate.linked(text, pathlib.PurePosixPath("howto/page.md")) == expected


def test_a_page_without_a_place_is_shown_all_the_same(generate):
    assert "\nnew/page\n" in generate.table_of_contents({"new/page.md", "limits.md"})


def test_references_have_every_operator_command_and_name(generate):
    treadle = generate.treadle
    operators, names = generate.operators(), generate.python_package()
    assert all(f"\n| {op['name']} | " in operators for op in treadle.operators())
    assert all(f" treadle.{name}\n" in names for name in treadle.__all__ if name[0] != "_")
    if generate.TOOL.exists():
        page = generate.command_line()
        assert all(f"\n## treadle {name}\n" in page for name in ("run", "check", "explain", "profile", "bisect", "ops"))


def test_links_of_the_site_are_followed(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#x">b</a><a href="https://example.org">away</a>')
    (tmp_path / "b.html").write_text('<h1 id="x">b</h1><a href="a.html">a</a><a href="#x">x</a>')
    assert check_site.faults(tmp_path) == []
    (tmp_path / "b.html").write_text('<a href="c.html">c</a><script src="https://example.org/x.js"></script>')
    assert [fault.split(": ", 1)[1] for fault in check_site.faults(tmp_path)] == [
        "b.html#x: the page has no such anchor",
        "c.html: there is no such file",
        "https://example.org/x.js: is not part of the site",
    ]


def test_places_of_pages_have_pages():
    placed = [f"{name}.md" for names in navigation.SECTIONS.values() for name in names]
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    known = pages | {f"reference/{name}.md" for name in navigation.MADE} | set(navigation.FROM_THE_ROOT)
    assert len(set(placed)) == len(placed) and set(placed) <= known


def test_words_that_people_search_for_lead_to_headings_that_are_there():
    for name, headings in searched.SEARCHED.items():
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        with_entries = searched.with_entries(text, headings)
        assert with_entries.count(":::{index} ! ") == len(headings)
        assert re.sub(r":::\{index\} .*\n:::\n\n(?=#)", "", with_entries) == text
    with pytest.raises(ValueError, match="there is no heading 'Two'"):
        searched.with_entries("# One\n\nText.\n", {"Two": "word"})


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("why is my loop slow", "howto/tuning.md"),
        ("slow first run", "howto/tuning.md"),
        ("batch size", "howto/tuning.md"),
        ("troubleshooting", "howto/troubleshooting.md"),
        ("nan", "howto/troubleshooting.md"),
        ("int8 differences", "howto/coming-from-onnxruntime.md"),
        ("streaming", "howto/choose-a-stream.md"),
        ("silero", "howto/recipes.md"),
        ("gpu", "faq.md"),
        ("raspberry pi", "faq.md"),
        ("memory", "memory.md"),
    ],
)
def test_common_search_terms_find_their_page(words, page):
    found = ", ".join(searched.SEARCHED[page].values()).split(", ")
    assert words in found
