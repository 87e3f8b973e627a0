"""Reports (`treadle.report`) of the models of report_models.py: the time to make one, its size, and the time until a headless
Chromium has opened it.

The browser is driven by tests/services/serving/browser.py, whose environment is that of tests/services
(tools/requirements-kserve.txt).

    build/venv-kserve/bin/python bench/reports.py --pictures    draws the pictures of docs/howto/report.md again
"""

from __future__ import annotations

import base64
import io
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import report_models

ROOT = pathlib.Path(__file__).resolve().parents[1]
VENV = ROOT / "build" / "venv-kserve"
ROUNDS = 3
LIMIT_MS = 3000  # within which the largest has to be open
# From the beginning of the navigation until the page has drawn itself and its load event is over.
OPENED = "performance.getEntriesByType('navigation')[0].loadEventEnd"


def main() -> int:
    """The table, by a process in the browser's environment; the status is 1 if a report opens too late."""
    sys.path.append(str(ROOT / "tools" / "devtool"))
    from environment import make_venv

    make_venv(VENV, ROOT / "tools" / "requirements-kserve.txt")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "build" / "python")}
    return subprocess.run([VENV / "bin" / "python", "-W", "ignore", __file__], env=environment, check=False).returncode


def measure() -> int:
    """Prints the table."""
    sys.path.append(str(ROOT / "tests" / "services" / "serving"))
    import browser
    from treadle.report import report

    if not browser.CHROMIUM:
        print("reports: chromium is not installed")
        return 0
    print("| model | made in ms | KB | opened in ms |\n| --- | --- | --- | --- |")
    latest = 0.0
    with tempfile.TemporaryDirectory() as folder, browser.Browser(pathlib.Path(folder)) as chromium:
        path = pathlib.Path(folder) / "report.html"
        for name, make in report_models.MODELS.items():
            given, made = make(), []
            for _ in range(ROUNDS):
                begin = time.perf_counter()
                report(**given).save(path)
                made.append(time.perf_counter() - begin)
            opened = [open_ms(chromium, path) for _ in range(ROUNDS)]
            latest = max(latest, statistics.median(opened))
            took = f"{statistics.median(made) * 1e3:.0f} | {path.stat().st_size / 1e3:,.0f} | {statistics.median(opened):.0f}"
            print(f"| {name} | {took} |", flush=True)
    print(f"the slowest is open after {latest:.0f} ms, of {LIMIT_MS} allowed")
    return 0 if latest <= LIMIT_MS else 1


# The pictures of the page: a model, and the first and the last section that are seen.
PICTURES = {
    "report-loops": ("transducer", "title", "flame"),
    "report-values": ("nested", "heat", "heat"),
    "report-pushes": ("voice detector", "memory", "pushes"),
}
WIDTH, MARGIN = 900, 12
COLOURS = 160


def pictures() -> int:
    """Writes docs/pictures/report-*.png: light, WIDTH pixels wide."""
    sys.path.append(str(ROOT / "tests" / "services" / "serving"))
    import browser
    import PIL.Image
    from treadle.report import report

    with tempfile.TemporaryDirectory() as folder, browser.Browser(pathlib.Path(folder)) as chromium:
        path = pathlib.Path(folder) / "report.html"
        for name, (model, first, last) in PICTURES.items():
            given = {"title": f"{model}.onnx", **report_models.MODELS[model]()}
            report(**given).save(path)
            page = chromium.page(path.as_uri())
            page.call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=4000, deviceScaleFactor=1, mobile=False)
            page.call("Page.reload")
            page.wait("document.documentElement?.dataset.ready === 'yes'", seconds=30)
            top, bottom = (
                page.run(f"document.getElementById('{section}').getBoundingClientRect().{edge}")
                for section, edge in ((first, "top"), (last, "bottom"))
            )
            clip = {"x": 0, "y": top - MARGIN, "width": WIDTH, "height": bottom - top + 2 * MARGIN, "scale": 1}
            whole = page.call("Page.captureScreenshot", format="png", clip=clip)["data"]
            picture = PIL.Image.open(io.BytesIO(base64.b64decode(whole))).convert("RGB").quantize(COLOURS)
            picture.save(ROOT / "docs" / "pictures" / f"{name}.png", optimize=True)
            page.close()
    return 0


def open_ms(chromium, path: pathlib.Path) -> float:
    page = chromium.page(path.as_uri())
    page.wait("document.documentElement?.dataset.ready === 'yes'", seconds=30)
    taken = page.wait(OPENED)
    page.close()
    return taken


if __name__ == "__main__":
    sys.exit(pictures() if "--pictures" in sys.argv[1:] else measure())
