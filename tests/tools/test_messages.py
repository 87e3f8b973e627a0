"""Every error of an operator says what was expected."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
ERROR = re.compile(r'error\(\s*Code::k(?:InvalidModel|InvalidArgument|Runtime)\s*,\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
PART = re.compile(r'"((?:[^"\\]|\\.)*)"')
# Or in words that say it as well, or by what an error within it says.
TELLS = re.compile(r"expected|(?:is|are) missing|left out|together or not at all|needs|takes|: \{\}$")


def messages():
    for path in sorted((ROOT / "src" / "ops").rglob("*.[ch]*")):
        for found in ERROR.finditer(path.read_text()):
            yield f"{path.name}: {''.join(PART.findall(found[1]))}"


def test_messages_of_operators_say_what_was_expected():
    all_of_them = list(messages())
    assert len(all_of_them) > 300
    assert [text for text in all_of_them if not TELLS.search(text)] == []
