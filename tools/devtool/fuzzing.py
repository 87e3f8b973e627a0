"""./dev fuzz: the libFuzzer targets fuzz/NAME_fuzzer.cc, one after the other, and the generators fuzz/NAME.py."""

import dataclasses
import re
import resource
import shutil
import subprocess

from building import build
from console import BUILD, LOGS, ROOT, run, say
from environment import PYTHON

BINARIES = BUILD / "fuzz" / "bin"
CORPUS = BUILD / "fuzz-corpus"  # what the runs found worth keeping; a folder per target
FINDINGS = BUILD / "fuzz-findings"
KEPT = ROOT / "fuzz" / "corpus"  # models in ONNX text
WITHOUT_MODELS = ("value",)  # targets that start from nothing
SECONDS = 60
LIMITS = {"timeout": 20, "rss_limit_mb": 3072, "malloc_limit_mb": 64, "max_len": 8192}
ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


@dataclasses.dataclass
class Totals:
    """What one target did."""

    name: str
    cpu: float
    executions: int = 0
    covered: int = 0
    features: int = 0
    corpus: int = 0
    memory: int = 0  # MB
    finding: bool = False

    HEAD = f"{'target':10}{'CPU s':>8}{'executions':>13}{'edges':>9}{'features':>10}{'corpus':>8}{'MB':>7}"

    def __str__(self):
        numbers = (
            f"{self.cpu:8.0f}{self.executions:13,}{self.covered:9,}{self.features:10,}{self.corpus:8,}{self.memory:7,}"
        )
        return f"{self.name:10}{numbers}{'  FOUND SOMETHING' if self.finding else ''}"


def targets() -> list[str]:
    return sorted(path.stem.removesuffix("_fuzzer") for path in (ROOT / "fuzz").glob("*_fuzzer.cc"))


def generators() -> list[str]:
    return sorted(path.stem for path in (ROOT / "fuzz").glob("*.py"))


def fuzz(options) -> int:
    words = options.words
    if words and words[0] in generators():
        build("dev_build")
        command = [PYTHON, ROOT / "fuzz" / f"{words[0]}.py", *words[1:], *options.arguments]
        return run(f"fuzz/{words[0]}.py", command, log="fuzz", show=True, check=False)
    chosen = [words.pop(0)] if words and not words[0].isdecimal() else targets()
    if not set(chosen) <= set(targets()) or len(words) > 1 or not all(word.isdecimal() for word in words):
        say("usage: ./dev fuzz [TARGET] [SECONDS] [libFuzzer's flags], or ./dev fuzz GENERATOR [its arguments]")
        say(f"targets: {' '.join(targets())}; generators: {' '.join(generators())}")
        return 2
    seconds = max(1, int(words[0] if words else SECONDS) // len(chosen))
    build("dev_fuzz", "fuzz")
    dictionary = BUILD / "fuzz" / "words.dict"
    dictionary.write_bytes(subprocess.check_output([BINARIES / "fuzz_words"]))
    totals = [run_target(name, seconds, dictionary, options.arguments) for name in chosen]
    say("\n" + Totals.HEAD)
    for total in totals:
        say(str(total))
    return 1 if any(total.finding for total in totals) else 0


def run_target(name, seconds, dictionary, arguments) -> Totals:
    """A target's run of that many seconds over its own corpus and the kept one."""
    FINDINGS.mkdir(parents=True, exist_ok=True)
    corpus = CORPUS / name
    corpus.mkdir(parents=True, exist_ok=True)
    flags = {**LIMITS, "max_total_time": seconds, "dict": dictionary, "artifact_prefix": f"{FINDINGS}/{name}-"}
    command = [BINARIES / f"{name}_fuzzer", "-print_final_stats=1", "-len_control=0", "-reload=0"]
    command += [f"-{key}={value}" for key, value in flags.items()]
    command += [*arguments, corpus, *seeds(name)]
    before = cpu_seconds()
    what = f"{name}_fuzzer ({seconds} s)"
    status = run(what, command, log=f"fuzz-{name}", env=ENVIRONMENT, check=False, tail=40, seconds=seconds)
    log = (LOGS / f"fuzz-{name}.log").read_text(errors="replace")
    return read_totals(Totals(name, cpu_seconds() - before, finding=status != 0), log)


def seeds(name) -> list:
    """Folders of models to start from; those of tests/cases stand in texts that hold more than a model."""
    if name in WITHOUT_MODELS:
        return []
    folder = BUILD / "fuzz-seeds"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for case in (ROOT / "tests" / "cases").glob("*/*.txt"):
        model = re.search(r"^== model\n(.*?)(?=^== |\Z)", case.read_text(), re.DOTALL | re.MULTILINE)
        if model:
            (folder / f"{case.parent.name}-{case.stem}").write_text(model.group(1))
    return [KEPT, folder]


def read_totals(totals: Totals, log: str) -> Totals:
    """Fills in what libFuzzer says at the end of a run, or said last before it stopped."""
    progress = re.findall(r"^#(\d+)\s.*?cov: (\d+) ft: (\d+) corp: (\d+)", log, re.MULTILINE)
    if progress:
        totals.executions, totals.covered, totals.features, totals.corpus = map(int, progress[-1])
    for key, field in (("number_of_executed_units", "executions"), ("peak_rss_mb", "memory")):
        if found := re.search(rf"^stat::{key}:\s+(\d+)", log, re.MULTILINE):
            setattr(totals, field, int(found[1]))
    return totals


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
