"""python tools/check_pages.py: spelling and links of README.md and of all other pages, in a second.

Words are checked by aspell with British spelling; tools/words.txt has the words that this project knows besides. Code, in
blocks and between backquotes, is left out. A link has to name a page that is there, or that ./dev docs makes, and a
heading of that page.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "site"))

import navigation  # noqa: E402

WORDS = ROOT / "tools" / "words.txt"
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`]+`", re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
# What no dictionary can know: parts of code and addresses, words with digits, names with capitals inside.
NO_WORD = re.compile(r"https?://\S+|\]\([^)]*\)|[\w.]*[_\d][\w.]*|\b\w+[A-Z]\w*\b")


def pages() -> list[pathlib.Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def blanked(pattern: re.Pattern[str], text: str) -> str:
    """`text` with spaces in the place of what matches, so that lines keep their numbers."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def anchor(heading: str) -> str:
    """As GitHub and the site's generator make anchors of headings."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def misspelt(texts: dict[pathlib.Path, str]) -> Iterator[str]:
    known = {
        word.lower() for word in WORDS.read_text(encoding="utf-8").split("\n") if word and not word.startswith("#")
    }
    lines = [(page, number, line) for page in texts for number, line in enumerate(texts[page].splitlines(), 1)]
    command = ["aspell", "pipe", "--lang=en_GB", "--encoding=utf-8", "--dont-suggest"]
    sent = "!\n" + "".join(f"^{line}\n" for _, _, line in lines)
    answered = subprocess.run(command, input=sent, capture_output=True, text=True, check=True).stdout
    answers = iter(answered.splitlines()[1:])
    for page, number, _ in lines:
        for answer in iter(lambda: next(answers), ""):
            word = answer.split()[1]
            if word.lower().removesuffix("'s") not in known:
                yield f"{page.relative_to(ROOT)}:{number}: '{word}' is misspelt, or missing in {WORDS.relative_to(ROOT)}"


def broken(texts: dict[pathlib.Path, str]) -> Iterator[str]:
    anchors = {page: {anchor(title) for title in HEADING.findall(text)} for page, text in texts.items()}
    made = {ROOT / "docs" / "reference" / f"{name}.md" for name in navigation.MADE}
    copied = {ROOT / "docs" / name: ROOT / source for name, source in navigation.FROM_THE_ROOT.items()}
    for page, text in texts.items():
        for match in LINK.finditer(blanked(CODE, text)):
            path, _, fragment = match[1].partition("#")
            if path.startswith(("http://", "https://", "mailto:")):
                continue
            target = (page.parent / path).resolve() if path else page
            target = copied.get(target, target)
            where = f"{page.relative_to(ROOT)}:{text[: match.start()].count(chr(10)) + 1}: {match[1]}"
            if target not in made and not target.exists():
                yield f"{where}: there is no such file"
            elif fragment and target in anchors and fragment not in anchors[target]:
                yield f"{where}: the page has no such heading"


def main() -> int:
    sources = {page: page.read_text(encoding="utf-8") for page in pages()}
    texts = {page: blanked(FENCE, text) for page, text in sources.items()}
    words = {page: blanked(NO_WORD, blanked(CODE, text)) for page, text in texts.items()}
    found = [*misspelt(words), *broken(texts)]
    print("\n".join(found) or f"{len(sources)} pages")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
