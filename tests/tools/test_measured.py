"""Pages, pictures and docs/measurements.json say the same (tools/site/measured.py)."""

import copy
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "site"))

import measured  # noqa: E402

WHOLE = measured.load()


@pytest.mark.parametrize("path", [path for path, _ in measured.files_from(WHOLE)], ids=lambda path: path.name)
def test_page_is_what_was_measured(path):
    expected = dict(measured.files_from(WHOLE))[path]
    assert path.read_text(encoding="utf-8") == expected, "./dev bench --page --no-measuring writes it anew"


def test_every_place_is_on_a_page_and_every_picture_is_shown():
    text = "\n".join(page.read_text(encoding="utf-8") for page in measured.PAGES)
    assert {place for place, _ in measured.PLACE.findall(text)} == set(measured.PLACES)
    assert {name for name in measured.DRAWN if f"pictures/{name}.svg" in text} == set(measured.DRAWN)


def test_a_changed_figure_changes_its_page_and_its_picture():
    changed = copy.deepcopy(WHOLE)
    changed["figures"]["loops"]["selective_scan"]["iteration"]["native"] *= 2
    differing = {
        path.name
        for (path, before), (_, after) in zip(measured.files_from(WHOLE), measured.files_from(changed), strict=True)
        if before != after
    }
    assert differing == {"comparison.md", "benchmarks.md", "which-models-profit.md", "front.svg", "summary.svg"}


def test_a_changed_figure_in_a_page_is_found(tmp_path):
    page = ROOT / "docs" / "benchmarks.md"
    text = page.read_text(encoding="utf-8")
    row = re.search(r"^\| `selective_scan` \| ([\d,.]+) ", text, re.MULTILINE)
    copied = tmp_path / "benchmarks.md"
    copied.write_text(text.replace(row[0], row[0].replace(row[1], "7")), encoding="utf-8")
    assert measured.page_from(copied, WHOLE) == text != copied.read_text(encoding="utf-8")


def test_versions_of_engines_are_said_by_the_figures_alone():
    """Other pages name an engine without a version: the version that counts is the one that was measured."""
    theirs = re.compile(r"onnxruntime 1\.\d+\.\d+")
    for page in measured.PAGES:
        outside = measured.PLACE.sub("", page.read_text(encoding="utf-8"))
        assert not theirs.search(outside), page.name


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (1234.5, "1,200"),
        (0.01234, "0.012"),
        (9.96, "10"),
        (0.996, "1.0"),
        (99.6, "100"),
        (7.46, "7.5"),
        (None, ""),
    ],
)
def test_two_digits(value, shown):
    assert measured.two_digits(value) == shown


def test_every_cause_of_a_loss_explains_one():
    """A cause that explains nothing any more goes."""
    named = {(kind.figures, pair.name) for kind in measured.KINDS for pair in measured.pairs_of(WHOLE, kind)}
    named |= {("C++", name) for name in WHOLE["figures"]["loops"]}
    for cause in measured.causes():
        assert any(kind == cause.kind and re.search(cause.rows, name) for kind, name in named), cause
