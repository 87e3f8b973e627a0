"""Running commands with signs of life: a bar on a terminal, elsewhere a line every few seconds."""

import codecs
import os
import pathlib
import re
import selectors
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
LOGS = BUILD / "log"
HEARTBEAT = 4.0  # seconds
REDRAWN = 0.2  # seconds
BAR = 24  # characters
# How far a command says that it has come: ninja's and the suites' "12/345", pytest's "[ 43%]".
DONE = re.compile(r"(\d+)/(\d+)|\[ *(\d+)%\]")


class Failure(Exception):
    """A command failed; what there is to say has been printed."""


def say(text: str) -> None:
    print(text, flush=True)


def run(what, command, log=None, show=False, env=None, check=True, tail=60, cwd=ROOT, accept=(0,), seconds=None):
    """Runs one command and returns its exit status.

    Quiet by default: the output goes to build/log/<log>.log, and its last lines are shown if the command fails. With
    show=True the output goes to the terminal as well. Either way a line says what is going on when nothing else does.
    `accept` lists the exit statuses that count as success; `seconds`: how long the command will run, where that is known.
    """
    [status] = run_together(what, [command], log, show, env, check, tail, cwd, accept, seconds)
    return status


def run_together(
    what, commands, log=None, show=False, env=None, check=True, tail=60, cwd=ROOT, accept=(0,), seconds=None
):
    """Like run(), for several commands at once, each with a log and an exit status of its own.

    `env` is what to add to the environment, for all commands or as a list with one entry each.
    """
    envs = env if isinstance(env, list) else [env] * len(commands)
    names = [f"{log or what.split()[0]}{'' if len(commands) == 1 else f'.{i}'}" for i in range(len(commands))]
    LOGS.mkdir(parents=True, exist_ok=True)
    paths = [LOGS / f"{name.replace('/', '-')}.log" for name in names]
    say(f"-- {what}")
    processes = [
        subprocess.Popen(
            [str(word) for word in command],
            cwd=cwd,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(extra or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for command, extra in zip(commands, envs, strict=True)
    ]
    start = time.monotonic()
    try:
        _follow(processes, paths, show, Heartbeat(what, start, seconds, sys.stdout.isatty() and not show))
    except KeyboardInterrupt:
        for process in processes:
            process.terminate()
        say(f"   {what}: interrupted after {time.monotonic() - start:.0f} s")
        raise
    statuses = [process.wait() for process in processes]
    failed = [i for i, status in enumerate(statuses) if status not in accept]
    if not failed:
        say(f"   {what}: {time.monotonic() - start:.1f} s")
        return statuses
    for i in failed:
        if not show:
            _print_tail(paths[i], tail)
        say(f"   {what}: failed (exit status {statuses[i]}; {paths[i].relative_to(ROOT)})")
    if check:
        raise Failure(what)
    return statuses


class Heartbeat:
    """Says how a command is getting on: on a terminal in one line that is drawn over, elsewhere now and then in a new one."""

    def __init__(self, what: str, start: float, seconds: float | None, on_terminal: bool) -> None:
        self.what, self.start, self.seconds = what, start, seconds
        self.on_terminal = on_terminal
        self.said = start
        self.line = ""  # the last one of the command's output

    def hear(self, text: str) -> None:
        self.line = _last_line(text) or self.line

    def fraction(self) -> float | None:
        if self.seconds:
            return min(1.0, (time.monotonic() - self.start) / self.seconds)
        found = DONE.findall(self.line)
        if not found:
            return None
        done, total, percent = found[-1]
        return int(percent) / 100 if percent else min(1.0, int(done) / max(1, int(total)))

    def beat(self) -> None:
        now = time.monotonic()
        if now - self.said < (REDRAWN if self.on_terminal else HEARTBEAT):
            return
        self.said = now
        if not self.on_terminal:
            say(f"   {self.what}: {now - self.start:.0f} s  {self.line[:100]}")
            return
        text = f"   {self.what}: {clock(now - self.start)}"
        if fraction := self.fraction():
            left = (now - self.start) * (1 - fraction) / fraction
            text += f" |{'#' * round(fraction * BAR):{BAR}}| {fraction:4.0%}, {clock(left)} left"
        self.draw(f"{text}  {self.line}")

    def draw(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        sys.stdout.write(f"\r{text[:width]}\x1b[K")
        sys.stdout.flush()

    def end(self) -> None:
        if self.on_terminal:
            self.draw("")


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _follow(processes, paths, show, heartbeat):
    """Copies output to the logs (and to the terminal) until every process has closed its end."""
    selector = selectors.DefaultSelector()
    decoders = [codecs.getincrementaldecoder("utf-8")("replace") for _ in processes]
    files = [path.open("wb") for path in paths]
    for i, process in enumerate(processes):
        selector.register(process.stdout, selectors.EVENT_READ, i)
    while selector.get_map():
        for key, _ in selector.select(timeout=REDRAWN):
            data = os.read(key.fd, 65536)
            if not data:
                selector.unregister(key.fileobj)
                continue
            files[key.data].write(data)
            text = decoders[key.data].decode(data)
            heartbeat.hear(text)
            if show:
                sys.stdout.write(text)
                sys.stdout.flush()
                heartbeat.said = time.monotonic()
        heartbeat.beat()
    heartbeat.end()
    for file in files:
        file.close()


def _last_line(text):
    lines = text.replace("\r", "\n").strip().splitlines()
    return lines[-1].strip() if lines else ""


def _print_tail(path, count):
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if len(lines) > count:
        say(f"   ... {len(lines) - count} lines before these in {path.relative_to(ROOT)}")
    for line in lines[-count:]:
        say(f"   {line}")
