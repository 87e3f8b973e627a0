"""Running commands so that the terminal never stays silent for more than five seconds."""

import codecs
import os
import pathlib
import selectors
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
LOGS = BUILD / "log"
HEARTBEAT = 4.0  # seconds


class Failure(Exception):
    """A command failed; what there is to say has been printed."""


def say(text: str) -> None:
    print(text, flush=True)


def run(what, command, log=None, show=False, env=None, check=True, tail=60, cwd=ROOT, accept=(0,)):
    """Runs one command and returns its exit status.

    Quiet by default: the output goes to build/log/<log>.log, and its last lines are shown if the command fails. With
    show=True the output goes to the terminal as well. Either way a line says what is going on when nothing else does.
    `accept` lists the exit statuses that count as success.
    """
    [status] = run_together(what, [command], log, show, env, check, tail, cwd, accept)
    return status


def run_together(what, commands, log=None, show=False, env=None, check=True, tail=60, cwd=ROOT, accept=(0,)):
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
        _follow(what, processes, paths, show, start)
    except KeyboardInterrupt:
        for process in processes:
            process.terminate()
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


def _follow(what, processes, paths, show, start):
    """Copies output to the logs (and to the terminal) until every process has closed its end."""
    selector = selectors.DefaultSelector()
    decoders = [codecs.getincrementaldecoder("utf-8")("replace") for _ in processes]
    files = [path.open("wb") for path in paths]
    for i, process in enumerate(processes):
        selector.register(process.stdout, selectors.EVENT_READ, i)
    said = start
    last_line = ""
    while selector.get_map():
        for key, _ in selector.select(timeout=0.5):
            data = os.read(key.fd, 65536)
            if not data:
                selector.unregister(key.fileobj)
                continue
            files[key.data].write(data)
            text = decoders[key.data].decode(data)
            last_line = _last_line(text) or last_line
            if show:
                sys.stdout.write(text)
                sys.stdout.flush()
                said = time.monotonic()
        if time.monotonic() - said >= HEARTBEAT:
            said = time.monotonic()
            say(f"   {what}: {said - start:.0f} s  {last_line[:100]}")
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
