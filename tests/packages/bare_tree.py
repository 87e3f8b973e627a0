"""A machine with nothing installed: a bare Debian tree, to run commands in as root.

The tree is made once, by debootstrap from the mirror that this machine takes its packages from, and copied for each use.
"""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BASE = ROOT / "build" / "bare-tree"
# Settings with which the tree fetches packages as this machine does.
SETTINGS = (
    "apt/sources.list",
    "apt/sources.list.d",
    "apt/apt.conf.d",
    "apt/keyrings",
    "ssl",
    "resolv.conf",
    "hosts",
    "pip.conf",
)


def mirror() -> str:
    """The first address that packages of Debian come from."""
    for path in [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]:
        if path.is_file() and (
            found := re.search(r"(?:^URIs: |^deb (?:\[.*?\] )?)(\S+/debian/?)\s", path.read_text(), re.M)
        ):
            return found[1]
    pytest.skip("no mirror of Debian's is set up here")


def base() -> pathlib.Path:
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        pytest.skip("a bare tree takes root and debootstrap")
    if not (BASE / ".made").exists():
        shutil.rmtree(BASE, ignore_errors=True)
        subprocess.run(
            ["debootstrap", "--variant=minbase", "bookworm", BASE, mirror()], check=True, capture_output=True
        )
        (BASE / ".made").touch()
    return BASE


@contextlib.contextmanager
def bare_tree(folder: pathlib.Path):
    """Gives run(COMMAND), which runs a line of shell in a new tree in `folder` and returns what it printed."""
    tree = folder / "tree"
    subprocess.run(["cp", "-a", base(), tree], check=True)
    for name in SETTINGS:
        source = pathlib.Path("/etc", name)
        if source.exists():
            subprocess.run(["cp", "-rL", source, (tree / "etc" / name).parent], check=True)
    certificates = pathlib.Path("/usr/local/share/ca-certificates")
    if certificates.exists():
        subprocess.run(["cp", "-rL", certificates, tree / "usr/local/share"], check=True)
    kept = {key: value for key, value in os.environ.items() if re.match("PIP_|SSL_CERT|REQUESTS_CA", key)}
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    env = {"HOME": "/root", "PATH": path, "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", **kept}

    def run(command: str) -> str:
        # A mount of its own, which goes with the command.
        inside = (
            f'mount -t proc proc {tree}/proc && mount --bind /dev {tree}/dev && exec chroot {tree} /bin/sh -ec "$0"'
        )
        done = subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "sh", "-c", inside, command],
            capture_output=True, text=True, check=False, env=env,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    run.tree = tree
    try:
        yield run
    finally:
        subprocess.run(["rm", "-rf", "--one-file-system", tree], check=True)
