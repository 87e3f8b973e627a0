"""The C and C++ references: what treadle.h and treadle.hpp declare, with the comments that stand there, as Markdown."""

from __future__ import annotations

import dataclasses
import pathlib
import re
from collections.abc import Iterator

SECTION = re.compile(r"/\* ---- (.*?)\*/", re.DOTALL)
PAGE = re.compile(r"\bdocs/[\w/-]+\.md\b")
NAMED = re.compile(r"\b(treadle_\w+)(\(\))?")


@dataclasses.dataclass
class Item:
    """A declaration with the comments before it and behind it; one that is a section's heading has no code."""

    comment: str
    code: str
    body: str = ""


def comment_end(text: str, at: int) -> int:
    """Behind the comment that begins at `at`."""
    return text.index("*/", at) + 2 if text.startswith("/*", at) else text.index("\n", at)


def words_of(comment: str) -> str:
    """The text of a comment without its stars and slashes; paragraphs stay apart."""
    lines = re.sub(r"^\s*/\*|\*/\s*$", "", comment).splitlines()
    return "\n".join(re.sub(r"^\s*(//|\*(?!\*))\s?", "", line).rstrip() for line in lines).strip()


def declaration_end(text: str, at: int) -> tuple[int, int, int]:
    """(end of what is declared, beginning of its braces or -1, where to go on), for what begins at `at`."""
    round_depth, start = 0, at
    is_type = re.match(r"(typedef|struct|class|enum|union|namespace|inline namespace|extern)\b", text[at:])
    while True:
        if text.startswith(("/*", "//"), at):
            at = comment_end(text, at)
            continue
        letter = text[at]
        round_depth += (letter == "(") - (letter == ")")
        if round_depth == 0 and letter == ";":
            return at, -1, at + 1
        if round_depth == 0 and (letter == "{" or (letter == ":" and " :: " not in text[at - 2 : at + 2])):
            initialisers = letter == ":" and text[at - 2 : at] != "::" and re.match(r": +\w+_?\(", text[at:])
            if letter == "{" or (initialisers and not is_type):
                brace = text.index("{", at) if letter == ":" else at
                behind = braces_end(text, brace)
                if is_type:
                    semicolon = re.compile(r"[^;{}]*;").match(text, behind)
                    behind = semicolon.end() if semicolon and "namespace" not in text[start:brace] else behind
                return at, brace, behind
        at += 1


def braces_end(text: str, at: int) -> int:
    """Behind the brace that closes the one at `at`."""
    depth = 0
    while True:
        if text.startswith(("/*", "//"), at):
            at = comment_end(text, at)
            continue
        depth += (text[at] == "{") - (text[at] == "}")
        at += 1
        if depth == 0:
            return at


def items(text: str) -> Iterator[Item]:
    """What `text` declares, one behind the other, and its section headings."""
    at, comment = 0, ""
    while (begin := re.compile(r"\S").search(text, at)) is not None:
        at = begin.start()
        if heading := SECTION.match(text, at):
            yield Item(words_of(heading[1]), "")
            at, comment = heading.end(), ""
        elif text.startswith(("/*", "//"), at):
            end = comment_end(text, at)
            comment += text[at:end] + "\n"
            at = end + 1
            if text[end : end + 2] == "\n\n":
                comment = ""  # a remark that belongs to nothing
        elif text[at] == "#" or re.compile(r"(public|private):|\}").match(text, at):
            line = re.compile(r"(?:[^\n]|\\\n)*").match(text, at)
            if define := re.match(r"#define (\w+ \d+)\s*(/\*.*?\*/)?", line[0]):
                yield Item(words_of(comment) if comment else words_of(define[2] or ""), f"#define {define[1]}")
            at, comment = line.end(), ""
        else:
            end, brace, at_next = declaration_end(text, at)
            behind = re.compile(r"[ \t]*(/\*[^\n]*?\*/|//[^\n]*)").match(text, at_next)
            said = [words_of(comment), words_of(behind[1]) if behind else ""]
            code = text[at:end].strip()
            body = text[brace : braces_end(text, brace)] if brace >= 0 else ""
            if code.startswith("typedef") and body:
                code = text[at:at_next].strip().rstrip(";")
            yield Item("\n\n".join(filter(None, said)), code, body)
            at, comment = behind.end() if behind else at_next, ""


def prose(text: str) -> str:
    """A comment as Markdown: names of functions and pages become links, stars stay stars."""
    parts = re.split(r"(`[^`]*`)", text)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([*<>\[\]])", r"\\\1", parts[i])
        parts[i] = NAMED.sub(r"{c:data}`\1`", parts[i])  # of any kind
        parts[i] = PAGE.sub(lambda m: f"`{m[0]}`", parts[i])  # which tools/site/generate.py makes a link
    return "".join(parts)


def directive(kind: str, signature: str, text: str, inside: str = "") -> str:
    fence = ":" * (5 if inside else 4)
    signature = " ".join(signature.split())
    content = "\n\n".join(part for part in (text, inside) if part)
    return f"{fence}{{{kind}}} {signature}\n{content}\n{fence}\n"


def c_item(item: Item) -> str:
    code = item.code.replace("TREADLE_API ", "")
    if match := re.match(r"#define (\w+) (\d+)", code):
        return directive("c:macro", match[1], prose(f"{item.comment}\n\nIts value is {match[2]}."))
    if match := re.match(r"typedef (struct|enum) (\w+) \{", code):
        return directive(f"c:{match[1]}", match[2], f"{prose(item.comment)}\n\n````c\n{code};\n````")
    if match := re.match(r"typedef struct (\w+) \1$", code):
        return directive("c:type", match[1], prose(item.comment))
    if "(" not in code:
        return ""
    return directive("c:function", code, prose(item.comment))


def c_page(header: pathlib.Path) -> str:
    text = header.read_text(encoding="utf-8")
    introduction, _, rest = text.partition("*/")
    begin = rest.index('extern "C" {')
    declared = rest[begin + len('extern "C" {\n#endif\n') : rest.rindex("#ifdef __cplusplus")]
    parts = [
        "# C",
        "After this page you know every function of `include/treadle/treadle.h`. The page is made from that header.",
        prose(words_of(introduction + "*/")),
        "## Handles, version, seed",
    ]
    for item in items(declared):
        if item.code:
            parts.append(c_item(item))
            continue
        title, _, said = item.comment.partition("\n") if "\n" in item.comment else (item.comment, "", "")
        short = re.match(r"[^:,.]+", title)[0]
        parts.append(f"## {short}\n\n{prose(item.comment) if len(item.comment) > len(short) + 1 else ''}")
    return "\n\n".join(parts) + "\n"


def public_part(item: Item) -> str:
    """What a class or struct shows of itself."""
    inside = item.body[1:-1]
    if item.code.startswith("class"):
        inside = inside.partition("public:")[2]
    return inside.partition("private:")[0]


def cpp_members(item: Item) -> str:
    out = []
    for member in items(public_part(item)):
        if re.search(r"= (default|delete)$|^friend|^using|^~|operator=", member.code):
            continue
        kind = "cpp:function" if "(" in member.code else "cpp:member"
        out.append(directive(kind, member.code, prose(member.comment)))
    return "\n".join(out)


def cpp_items(text: str) -> Iterator[str]:
    for item in items(text):
        code = item.code
        if match := re.search(r"namespace (\w+)$", code):
            if match[1] != "detail":
                yield from cpp_items(item.body[1:-1])
        elif match := re.match(r"(class|struct) (\w+)( final)?( : .*)?$", code):
            yield f"## {match[2]}"
            base = (match[4] or "").strip()
            yield directive(f"cpp:{match[1]}", f"{match[2]} {base}".strip(), prose(item.comment), cpp_members(item))
        elif "(" in code and not code.startswith("static"):
            yield directive("cpp:function", code.removeprefix("inline "), prose(item.comment))


def cpp_headers(header: pathlib.Path) -> list[pathlib.Path]:
    """The headers that this one includes beside it, at any depth, each behind those that it includes; itself last."""
    found: list[pathlib.Path] = []
    for name in re.findall(r'^#include "treadle/(\w+\.hpp)"', header.read_text(encoding="utf-8"), re.MULTILINE):
        found += [path for path in cpp_headers(header.parent / name) if path not in found]
    return [*found, header]


def cpp_page(header: pathlib.Path) -> str:
    text = header.read_text(encoding="utf-8")
    parts = [
        "# C++",
        "After this page you know every class of `include/treadle/treadle.hpp`, and which errors its functions throw. The page is "
        "made from that header. Everything is in the namespace `treadle`.",
        prose(words_of(text[: text.index("#pragma once")])),
        "A function that fails throws `treadle::Error`. The [C reference](c.md) says of every call in detail what it does.",
    ]
    for path in cpp_headers(header):
        declared = path.read_text(encoding="utf-8").partition("#pragma once")[2]
        parts += cpp_items(re.sub(r"^#.*\n", "", declared, flags=re.MULTILINE))
    return "\n\n".join(parts) + "\n"
