#!/usr/bin/env python3
"""Subjects of commits, by the rule of CONTRIBUTING: `area: what it does`, short, and a fix of src/ has a test.

check_commits.py [FIRST..LAST]      those after FIRST; by default all after the commit that brought the rule
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LONGEST = 72
SUBJECT = re.compile(r"[a-z][a-z0-9+_./-]*(, [a-z][a-z0-9+_./-]*)*: \S")
FIX = re.compile(r"\b(fix|fixes|mend|mends)\b")


def problems(subject: str, files: list[str]) -> list[str]:
    """What is wrong with a commit of this subject that changes these files."""
    found = []
    if len(subject) > LONGEST:
        found.append(f"at most {LONGEST} characters were expected, found {len(subject)}")
    if not SUBJECT.match(subject):
        found.append("expected `area: what it does`")
    changes_source = any(file.startswith("src/") for file in files)
    if FIX.search(subject) and changes_source and not any(file.startswith("tests/") for file in files):
        found.append("a fix of src/ was expected to bring a test")
    return found


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def new_commits() -> str:
    """All after the commit that added this file; none where history does not go back so far."""
    added = git("log", "--diff-filter=A", "--format=%H", "--", "tools/check_commits.py").split()
    return f"{added[-1]}..HEAD" if added else "HEAD..HEAD"


def main() -> int:
    status = 0
    if not (ROOT / ".git").exists():  # sources without history
        return status
    for commit in git("rev-list", "--no-merges", sys.argv[1] if len(sys.argv) > 1 else new_commits()).split():
        subject, _, files = git("show", "--format=%s", "--name-only", commit).partition("\n")
        for problem in problems(subject, files.split()):
            print(f"{commit[:8]} {subject}: {problem}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
