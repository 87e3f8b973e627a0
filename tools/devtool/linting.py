"""./dev lint and ./dev fmt."""

import concurrent.futures
import re
import subprocess
import time

from building import build
from console import BUILD, HEARTBEAT, ROOT, run, say
from environment import PYTHON, cpu_count

CPP_FOLDERS = (
    "src",
    "include",
    "cli",
    "triton",
    "dropin",
    "provider",
    "python",
    "tests",
    "bench",
    "fuzz",
    "examples",
    "cmake",
)
TIDY = BUILD / "tidy"
TIDY_FOLDERS = ("src/", "cli/", "triton/", "dropin/", "provider/", "python/")


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def cpp_files() -> list[str]:
    files = (path for folder in CPP_FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in (".cc", ".h"))
    return sorted(str(path.relative_to(ROOT)) for path in files)


def changed_files() -> list[str]:
    """What changed since the merge base with main, and on main itself since the last commit; uncommitted work too."""
    head = git("rev-parse", "HEAD")
    base = []
    for main in ("origin/main", "main"):
        base = git("merge-base", "HEAD", main)
        if base:
            break
    if not base or base == head:
        base = git("rev-parse", "HEAD~1")
    if not base:
        return git("ls-files")
    changed = git("diff", "--name-only", "--diff-filter=d", base[0])
    untracked = git("ls-files", "--others", "--exclude-standard")
    return sorted(set(changed + untracked))


def fmt() -> int:
    run("clang-format", ["clang-format-19", "-i", *cpp_files()], log="fmt")
    run("ruff format", [PYTHON, "-m", "ruff", "format", "-q", "."], log="fmt-python")
    run("ruff check --fix", [PYTHON, "-m", "ruff", "check", "-q", "--fix", "."], log="fmt-python-fix", check=False)
    return 0


def lint(options) -> int:
    failures = 0
    checks = {
        "clang-format (./dev fmt mends it)": ["clang-format-19", "--dry-run", "-Werror", *cpp_files()],
        "includes": [PYTHON, "tools/check_includes.py"],
        "ruff format (./dev fmt mends it)": [PYTHON, "-m", "ruff", "format", "-q", "--diff", "."],
        "ruff check": [PYTHON, "-m", "ruff", "check", "-q", "."],
        "bash -n": ["bash", "-n", "dev"],
        "spelling and links of pages": [PYTHON, "tools/check_pages.py"],
        "subjects of commits": [PYTHON, "tools/check_commits.py"],
    }
    for what, command in checks.items():
        failures += run(what, command, log="lint-" + what.split(" (")[0].replace(" ", "-"), check=False) != 0
    failures += clang_tidy(options)
    say("lint: clean" if not failures else f"lint: {failures} of {len(checks) + 1} checks failed")
    return 1 if failures else 0


def clang_tidy(options) -> int:
    """clang-tidy over what changed, or over everything with --all. Returns 1 if it found something."""
    files = cpp_files() if options.all else changed_files()
    files = [file for file in files if file.endswith(".cc") and file.startswith(TIDY_FOLDERS)]
    if not files:
        say("-- clang-tidy: no source file changed")
        return 0
    build("dev_lint")
    write_commands_for_tidy()
    say(f"-- clang-tidy: {len(files)} files")
    start = said = time.monotonic()
    findings, left_out, done = 0, [], 0
    with concurrent.futures.ThreadPoolExecutor(cpu_count()) as pool:
        waiting = {pool.submit(tidy_one, file, start + options.tidy_seconds) for file in files}
        while waiting:
            ready, waiting = concurrent.futures.wait(waiting, 0.5, concurrent.futures.FIRST_COMPLETED)
            for future in ready:
                file, output = future.result()
                done += 1
                if output is None:
                    left_out.append(file)
                elif output:
                    findings += 1
                    said = time.monotonic()
                    say(output)
            if time.monotonic() - said >= HEARTBEAT:
                said = time.monotonic()
                say(f"   clang-tidy: {said - start:.0f} s, {done} of {len(files)} files")
    if left_out:
        say(f"   clang-tidy: {len(left_out)} files left out after {options.tidy_seconds} s: {' '.join(left_out)}")
    say(f"   clang-tidy: {findings} files with findings, {time.monotonic() - start:.1f} s")
    return 1 if findings else 0


def write_commands_for_tidy() -> None:
    """The commands of the build, without own headers that are parsed ahead: of these clang-tidy would say nothing."""
    TIDY.mkdir(exist_ok=True)
    commands = (BUILD / "release" / "compile_commands.json").read_text()
    system = r"generated/standard_headers\1.pch"
    commands = re.sub(r"generated/standard_headers-core_headers(-fPI[CE])\.pch", system, commands)
    commands = re.sub(r"-include-pch \S*generated/(?!standard_headers-fPI)\S*", "", commands)
    (TIDY / "compile_commands.json").write_text(commands)


def tidy_one(file, deadline):
    """(file, its findings); None as findings when the deadline has passed."""
    if time.monotonic() > deadline:
        return file, None
    headers = f"--header-filter=^{ROOT}/(src|cli|python|dropin|provider)/"
    command = ["clang-tidy-19", "-p", str(TIDY), "--quiet", "--warnings-as-errors=*", headers, file]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return file, done.stdout.strip() if done.returncode else ""
