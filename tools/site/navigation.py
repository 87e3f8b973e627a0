"""Which pages the site has, and in which order."""

# Pages that tools/site/generate.py writes; links to them are good although no such file is in the repository.
MADE = ("cli", "python", "c", "cpp", "operators")

# The picture that tools/site/generate.py draws.
PICTURE = "speech.svg"

# Pages of the site that lie at the repository's root.
FROM_THE_ROOT: dict[str, str] = {}

# A page of docs/ that no section names stands at the end of "How to".
SECTIONS = {
    "How to": ["limits", "files", "memory"],
    "Reference": [*(f"reference/{name}" for name in MADE), "options", "diagnostics", "strictness", "text", "glossary"],
    "Explanation": ["streams", "native", "architecture"],
    "Comparison": ["benchmarks"],
    "Project": ["extending", "fuzzing"],
}
