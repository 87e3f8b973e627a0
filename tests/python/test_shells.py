"""Completion in the shells themselves, and manual pages as their readers check them."""

import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", ROOT / "build" / "bin")) / "treadle"

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")


def tool(*arguments, **environment):
    env = {**os.environ, **environment}
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=True, env=env).stdout


def needs(program):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed (tools/apt-packages.txt, group test)")


def commands():
    listed = tool("--help").partition("Subcommands:")[2]
    return re.findall(r"^  ([\w-]+) ", listed, re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Holds a model, values and a folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model one.onnx").touch()
    (tmp_path / "x.npy").touch()
    (tmp_path / "cases").mkdir()
    for shell in ("bash", "zsh", "fish"):
        (tmp_path / f"script.{shell}").write_text(tool("completion", shell))
    return tmp_path


def bash(line):
    """The words that bash offers for the last word."""
    words = line.split(" ")
    script = f"""
        source script.bash
        COMP_WORDS=({" ".join(map(shlex.quote, words))})
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _treadle
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.splitlines()) - {""}


def fish(line):
    script = f"source script.fish; complete -C {shlex.quote(line)}"
    environment = {**os.environ, "HOME": os.getcwd(), "XDG_CONFIG_HOME": os.getcwd()}
    done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and done.stderr == ""
    return {offer.partition("\t")[0] for offer in done.stdout.splitlines()}


def zsh(line):
    """The words that an interactive zsh lists for the last word."""
    process, terminal = pty.fork()
    if process == 0:
        os.environ.update(PS1="READY ", TERM="dumb", COLUMNS="200", ZDOTDIR=os.getcwd())
        os.execvp("zsh", ["zsh", "-f", "-i"])
    text = ""

    def expect(pattern, seconds=30):
        """The output so far."""
        nonlocal text
        deadline = time.monotonic() + seconds
        while not re.search(pattern, text) and time.monotonic() < deadline:
            if select.select([terminal], [], [], 0.1)[0]:
                text += os.read(terminal, 65536).decode(errors="replace")
        return text

    def send(data):
        nonlocal text
        text = ""
        os.write(terminal, data.encode())

    try:
        expect("READY ")
        setup = "stty cols 200; autoload -Uz compinit && compinit -u -D && source ./script.zsh"
        send(f"{setup}; bindkey '^I' list-choices; echo SET\"\"UP\n")
        expect(r"SETUP[\s\S]*READY ")
        send(line + "\t")
        shown = re.escape(line)  # once as it was typed, and again behind the list, where there is one
        listed = expect(rf"{shown}[^\n]*\n[\s\S]*READY {shown}", seconds=8)
        rows = re.sub(r"\x1b\[[?\d;]*\w", "", listed).replace("\r", "").split("\n")[1:-1]
        return {re.split(r"\s+--\s", entry)[0].strip() for row in rows for entry in re.split(r"\s{2,}(?!--)", row)}
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)
        os.close(terminal)


SHELLS = pytest.mark.parametrize("offers", [bash, zsh, fish], ids=lambda shell: shell.__name__)


@SHELLS
def test_commands_options_and_choices(offers, folder):
    needs(offers.__name__)
    assert len(commands()) > 9 and set(commands()) <= offers("treadle ")
    assert {"--tier", "--threads", "--time-limit"} <= offers("treadle run --t")
    assert {"program", "native", "reference"} <= offers("treadle run --tier ")
    assert offers("treadle test --tier ") - offers("treadle run --tier ") == {"all"}
    assert {"text", "binary"} <= offers("treadle convert --to ")
    assert "--custom-domains" in offers("treadle check --c")
    assert "--custom-domains" not in offers("treadle run --c")
    assert not offers("treadle run --threads ") & {"x.npy", "cases", "cases/"}


@SHELLS
def test_files_and_folders(offers, folder):
    needs(offers.__name__)
    bare = lambda line: {o.replace("\\", "").rstrip("/") for o in offers(line)}  # noqa: E731 - as each writes them
    assert {"model one.onnx", "x.npy", "cases"} <= bare("treadle run ")
    assert "x.npy" in bare("treadle profile --out ")
    cases = bare("treadle test ")
    assert "cases" in cases and "x.npy" not in cases


def test_bash_completes_values_after_an_equals_sign(folder):
    assert bash("treadle run --tier = na") == {"native"}
    assert bash("treadle run --tier =") == {"program", "native", "reference"}
    assert bash("treadle run model.onnx x = x.n") == {"x.npy"}


def test_other_shells_complete_values_after_an_equals_sign(folder):
    needs("fish")
    assert fish("treadle run --tier=na") == {"--tier=native"}
    needs("zsh")
    assert "x.npy" in zsh("treadle run m x=x.n")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """The folder of the tool's manual pages and completions."""
    folder = tmp_path_factory.mktemp("prefix")
    tool("describe", folder, SOURCE_DATE_EPOCH="1700000000")
    return folder / "share"


def test_one_command_writes_all(prefix):
    pages = {f"treadle{name and '-'}{name}.1" for name in ["", *commands()]}
    assert {page.name for page in (prefix / "man" / "man1").iterdir()} == pages
    for path, shell in (
        ("bash-completion/completions/treadle", "bash"),
        ("zsh/site-functions/_treadle", "zsh"),
        ("fish/vendor_completions.d/treadle.fish", "fish"),
    ):
        assert (prefix / path).read_text() == tool("completion", shell)
    page = (prefix / "man" / "man1" / "treadle-run.1").read_text()
    assert page == tool("manual", "run", SOURCE_DATE_EPOCH="1700000000") and "2023-11-14" in page


@pytest.mark.parametrize("reader", ["man", "mandoc"])
def test_pages_are_without_warnings(reader, prefix):
    needs(reader)
    for page in sorted((prefix / "man" / "man1").iterdir()):
        command = ["mandoc", "-Tlint", "-Wwarning", page] if reader == "mandoc" else ["man", "--warnings", "-l", page]
        # man confines itself, and takes nothing that is preloaded.
        environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
        environment |= {"MANWIDTH": "80", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        problems = done.stderr if reader == "man" else done.stdout + done.stderr
        assert done.returncode == 0 and problems == "", page.name


@pytest.mark.parametrize("command", ["", "run", "convert"])
def test_pages_say_what_help_says(command):
    needs("mandoc")
    page = subprocess.run(
        ["mandoc", "-Tascii"], input=tool("manual", *filter(None, [command])), capture_output=True, text=True
    )
    words = " ".join(re.sub(r".\x08", "", page.stdout).split())
    helped = tool(*filter(None, [command]), "--help")
    for option in re.findall(r"^  (?:-\w,)?(--[\w-]+)", helped, re.MULTILINE):
        assert option in words
    assert tool("--help").split("\n")[0].partition(": ")[2] in words if not command else "Arguments" not in words
    assert "130" in words, "the exit status"


def test_an_unknown_shell_is_refused():
    for arguments in (["manual", "walk"], ["completion", "csh"]):
        assert subprocess.run([TOOL, *arguments], capture_output=True).returncode == 2
