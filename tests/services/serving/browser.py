"""A headless Chromium, driven by the DevTools protocol."""

import base64
import contextlib
import io
import itertools
import json
import shutil
import subprocess
import time
import urllib.request

import PIL.Image
from websockets.sync.client import connect

CHROMIUM = shutil.which("chromium") or ""
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--window-size=920,800"]
FLAGS += ["--remote-debugging-port=0", "--host-resolver-rules=MAP insecure.test 127.0.0.1"]


def microphone(wav):
    """Flags of a microphone that plays a file again and again, and needs no permission."""
    fake = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
    return [*fake, f"--use-file-for-fake-audio-capture={wav}"]


class Browser:
    """A process of Chromium with a profile of its own."""

    def __init__(self, folder, *flags):
        self.folder = folder
        command = [CHROMIUM, *FLAGS, *flags, f"--user-data-dir={folder / 'profile'}", "about:blank"]
        self.log = folder / "chromium.txt"
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=out)

    def _port(self):
        found, latest = self.folder / "profile" / "DevToolsActivePort", time.monotonic() + 120
        while not (found.exists() and (lines := found.read_text().splitlines())):
            assert self.process.poll() is None and time.monotonic() < latest, self.log.read_text()
            time.sleep(0.05)
        return int(lines[0])

    def page(self, url):
        """A new page with this address, loaded."""
        place = f"http://127.0.0.1:{self._port()}/json/new?about:blank"
        with urllib.request.urlopen(urllib.request.Request(place, method="PUT"), timeout=60) as reply:
            page = Page(json.load(reply)["webSocketDebuggerUrl"])
        page.open(url)
        return page

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Page:
    """A page; `complaints`: the errors that it has written to the console, and uncaught exceptions."""

    def __init__(self, address):
        self._stack = contextlib.ExitStack()
        self._socket = self._stack.enter_context(connect(address, max_size=None, compression=None))
        self._ids, self.complaints = itertools.count(1), []
        for domain in ("Page", "Runtime", "Log", "DOM"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(60))
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._event(message)

    def _event(self, message):
        if message["method"] == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(message["params"]["exceptionDetails"]))
        if message["method"] == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.complaints.append(message["params"]["entry"]["text"])

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, expression):
        """The value of an expression, awaited."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, expression, seconds=90):
        """Until an expression is true."""
        latest = time.monotonic() + seconds
        while not (found := self.run(expression)):
            assert time.monotonic() < latest, (expression, self.run("document.body.innerText"), self.complaints)
            time.sleep(0.02)
        return found

    def choose(self, element, path):
        """A file in an input for files."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=f"#{element}")["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(path)], nodeId=node)

    def press(self, key, code, text=""):
        """A key."""
        same = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **same)
        self.call("Input.dispatchKeyEvent", type="keyUp", **same)

    def activate(self, element):
        """Goes to a control by the keyboard alone, and presses Enter there."""
        self.wait(f"!document.getElementById('{element}').disabled")
        for _ in range(20):
            if self.run("document.activeElement.id") == element:
                return self.press("Enter", 13, "\r")
            self.press("Tab", 9)
        raise AssertionError(f"the keyboard does not lead to '{element}'")

    def screenshot(self, path):
        """A small picture of the visible page: WebP, or PNG of few colours."""
        whole = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        picture = PIL.Image.open(io.BytesIO(whole)).convert("RGB")
        if path.suffix == ".webp":
            picture.save(path, quality=80)
        else:
            picture.quantize(32).save(path, optimize=True)

    def close(self):
        with contextlib.suppress(OSError):
            self.call("Page.close")
        self._stack.close()
