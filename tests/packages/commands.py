"""Commands that tests run."""

import subprocess


def call(*command, **options):
    """What the command prints."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout
