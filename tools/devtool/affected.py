"""./dev affected: makes what only some changes can break, wheels and the site, where this change may have."""

import re

from console import say
from documenting import docs
from linting import changed_files
from wheels import command_wheels

# What is made, and the files that decide whether that works.
MADE = {
    "wheels": (command_wheels, r"pyproject\.toml|THIRD_PARTY\.md|.*CMakeLists\.txt|.*\.cmake|tools/devtool/(wheels|third_party)\.py"),
    "the site": (docs, r"docs/.*|include/.*|tools/site/.*|tools/requirements-docs\.txt|[A-Z]+\.md"),
}  # fmt: skip


def affected(options) -> int:
    changed = changed_files()
    status = 0
    for what, (make, pattern) in MADE.items():
        files = [file for file in changed if re.fullmatch(pattern, file)]
        if files:
            say(f"-- {what}, as {files[0]} {'and others have' if len(files) > 1 else 'has'} changed")
            status |= make(options)
    return status
