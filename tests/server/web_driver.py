"""A headless Chromium, driven by WebDriver (W3C) over chromedriver's HTTP, with the standard library alone."""

import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
SHIFT, CONTROL, ALT = "\ue008", "\ue009", "\ue00a"
TAB, ENTER, ESCAPE = "\ue004", "\ue007", "\ue00c"
HOME, LEFT, UP, RIGHT, DOWN = "\ue011", "\ue012", "\ue013", "\ue014", "\ue015"


class WebDriverError(Exception):
    pass


class Browser:
    """One browser, with one tab at first. `with Browser() as browser`; the test is skipped where there is no Chromium."""

    def __init__(self, downloads: pathlib.Path | None = None):
        if not (shutil.which("chromium") and shutil.which("chromedriver")):
            raise unittest.SkipTest("needs chromium and chromedriver (chromium-driver)")
        self.downloads = downloads

    def __enter__(self):
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for line in self.driver.stdout:
            if match := re.search(r"successfully on port (\d+)", line):
                self.root = f"http://127.0.0.1:{match[1]}"
                break
        arguments = [
            "--headless=new",
            "--disable-gpu",
            "--window-size=1200,800",
            "--hide-scrollbars",
        ]
        if os.getuid() == 0:  # Chromium's sandbox does not work for root
            arguments.append("--no-sandbox")
        options = {"args": arguments, "prefs": {}}
        if self.downloads:
            options["prefs"]["download.default_directory"] = str(self.downloads)
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        try:
            made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        except BaseException:
            self.driver.kill()
            raise
        self.session = f"/session/{made['sessionId']}"
        return self

    def __exit__(self, *_):
        try:
            self._call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait(10)
            self.driver.stdout.close()

    def _call(self, method: str, path: str, body: object = None):
        data = json.dumps(body if body is not None else {}).encode() if method == "POST" else None
        request = urllib.request.Request(self.root + path, data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=200) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            raise WebDriverError(json.load(error)["value"]["message"]) from None

    def post(self, path: str, body: object = None):
        return self._call("POST", self.session + path, body)

    def go(self, address: str) -> None:
        self.post("/url", {"url": address})

    def reload(self) -> None:
        self.post("/refresh")

    def new_tab(self) -> tuple[str, str]:
        """Goes to another tab; gives the one before, and the new one."""
        before = self._call("GET", self.session + "/window")
        new = self.post("/window/new", {"type": "tab"})["handle"]
        self.go_to_tab(new)
        return before, new

    def go_to_tab(self, tab: str) -> None:
        self.post("/window", {"handle": tab})

    def close_tab(self, other: str) -> None:
        """Goes to the other tab then."""
        self._call("DELETE", self.session + "/window")
        self.go_to_tab(other)

    def run(self, script: str, *arguments):
        """The value that a script returns; `arguments[0]` and so on are what is passed."""
        return self.post("/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script: str, *arguments, seconds: float = 60):
        """The value of an expression, once it is true."""
        end = time.monotonic() + seconds
        while not (value := self.run(f"return ({script})", *arguments)):
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {script} {arguments or ''}")
            time.sleep(0.03)
        return value

    def find(self, selector: str) -> dict:
        return self.post("/element", {"using": "css selector", "value": selector})

    def settle(self) -> None:
        """Lets the page run what waits, as the `close` event of a dialog does after the click that closes it."""
        self.post("/execute/async", {"script": "setTimeout(arguments[0])", "args": []})

    def click(self, selector: str) -> None:
        self.post(f"/element/{self.find(selector)[ELEMENT]}/click")
        self.settle()

    def type(self, selector: str, text: str) -> None:
        self.post(f"/element/{self.find(selector)[ELEMENT]}/value", {"text": text})
        self.settle()

    def press(self, *keys: str) -> None:
        """Keys to whatever has the focus; the modifiers among them stay down until the end."""
        actions = []
        for key in keys:
            actions.append({"type": "keyDown", "value": key})
            if key not in (SHIFT, CONTROL, ALT):
                actions.append({"type": "keyUp", "value": key})
        self.post("/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})
        self._call("DELETE", self.session + "/actions")
        self.settle()

    def point(self, x: float, y: float, clicks: bool = False) -> None:
        """Moves the mouse, and presses it."""
        actions = [{"type": "pointerMove", "duration": 20, "x": round(x), "y": round(y)}]
        if clicks:
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        mouse = {"type": "pointer", "id": "mouse", "actions": actions}
        self.post("/actions", {"actions": [mouse]})

    def devtools(self, command: str, **parameters):
        return self.post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def cpu_time(self) -> float:
        """Seconds that the page's thread has run; only differences mean something."""
        self.devtools("Performance.enable", timeDomain="threadTicks")
        metrics = self.devtools("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    def log(self, kind: str) -> list[dict]:
        """What was logged since the last call: "browser" (the console) or "performance" (DevTools events)."""
        return self.post("/se/log", {"type": kind})

    def requested(self) -> list[str]:
        """The addresses of all requests since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def resize(self, width: int, height: int, theme: str = "light", scale: float = 1) -> None:
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=scale, mobile=False,
        )  # fmt: skip
        self.devtools(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": theme}],
        )

    def screenshot(self, path: pathlib.Path) -> None:
        path.write_bytes(base64.b64decode(self._call("GET", self.session + "/screenshot")))


class InBrowser(unittest.TestCase):
    """Tests that share a browser. None leaves a message in the console, unless the message has `allowed` in it."""

    allowed = "never"

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.browser = cls.enterClassContext(Browser(cls.folder))

    def setUp(self):
        self.browser.resize(1200, 800)
        self.browser.log("browser")
        self.browser.requested()

    def tearDown(self):
        messages = [entry["message"] for entry in self.browser.log("browser")]
        self.assertEqual([text for text in messages if self.allowed not in text], [])

    def value(self, expression: str, *arguments):
        return self.browser.run(f"return {expression}", *arguments)
