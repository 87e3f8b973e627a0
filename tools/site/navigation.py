"""Which pages the site has, and in which order."""

# Pages that tools/site/generate.py writes; links to them are good although no such file is in the repository.
MADE = ("cli", "python", "c", "cpp", "operators")

# Pages of the site that lie at the repository's root.
FROM_THE_ROOT = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md", "security.md": "SECURITY.md"}

# A page of docs/ that no section names stands at the end of "How to".
SECTIONS = {
    "Tutorials": [
        f"tutorials/{name}"
        for name in (
            "audio-streams",
            "audio-plugin",
            "browser",
            "cortex-m",
            "scikit-learn",
            "decoders",
            "wrong-number",
            "cpp",
        )
    ],
    "How to": [
        *(
            f"howto/{name}"
            for name in (
                "which-models-profit",
                "install",
                "onnxruntime",
                "coming-from-onnxruntime",
                "onnxruntime-provider",
                "tuning",
                "look-inside",
                "report",
                "compare-engines",
                "troubleshooting",
                "small-model",
                "deployment",
                "c",
                "cluster",
                "serving",
                "ray-serve",
                "triton",
                "kubernetes",
                "capacity",
                "choose-a-stream",
                "recipes",
                "custom-operators",
            )
        ),
        "progress",
        "limits",
        "files",
        "memory",
        "faq",
    ],
    "Reference": [
        *(f"reference/{name}" for name in MADE),
        "contrib-operators",
        "options",
        "drop-in",
        "diagnostics",
        "strictness",
        "text",
        "vocabulary",
        "glossary",
    ],
    "Explanation": ["streams", "realtime", "native", "numerics", "security-model", "architecture"],
    "Comparison": ["gallery", "comparison", "benchmarks"],
    "Project": ["changelog", "contributing", "security", "releases", "extending", "fuzzing"],
}
