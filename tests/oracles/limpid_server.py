"""Runs `limpid serve` for a test, on a port that is free."""

import json
import os
import pathlib
import signal
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import limpid_program

TINY = limpid_program.DATA / "cli" / "tiny_chat.gguf"


def make_certificate(folder: str) -> tuple[pathlib.Path, pathlib.Path]:
    """A key and its certificate for 127.0.0.1, as files in `folder`."""
    key, certificate = (pathlib.Path(folder) / name for name in ("key.pem", "cert.pem"))
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1"
    names = ["-subj", "/CN=limpid", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = [*make.split(), *names, "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    return key, certificate


class Server:
    """A server that is ready for requests, until `with` ends."""

    def __init__(self, *flags: object, model=TINY, key: str = "") -> None:
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}
        if key:
            flags = (*flags, "--api-key", key)
        models = model if isinstance(model, list) else [model]
        named = [word for path in models for word in ("-m", path)]
        command = [limpid_program.PROGRAM, "serve", *named, "--port", 0, "--metrics", *flags]
        self.process = subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.url = self.process.stdout.readline().strip()
        self.log = []
        for line in self.process.stderr:
            self.log.append(line)
            if "is ready" in line:
                return
        raise AssertionError("".join(self.log))

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(signal.SIGKILL)

    def stop(self, by: signal.Signals = signal.SIGTERM) -> int:
        """The exit code."""
        if self.process.poll() is None:
            self.process.send_signal(by)
        self.log += self.process.communicate(timeout=60)[1].splitlines(keepends=True)
        return self.process.returncode

    def post(self, path: str, body: object, **headers: str) -> tuple[int, object]:
        """Status and JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.open(urllib.request.Request(self.url + path, data, {**self.headers, **headers}))

    def get(self, path: str, **headers: str) -> tuple[int, object]:
        request = urllib.request.Request(self.url + path, headers={**self.headers, **headers})
        return self.open(request)

    @staticmethod
    def open(request: urllib.request.Request) -> tuple[int, object]:
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                text = answer.read().decode()
                is_json = answer.headers["Content-Type"] == "application/json"
                return answer.status, json.loads(text) if is_json else text
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def metrics(self) -> dict[str, float]:
        lines = self.get("/metrics")[1].splitlines()
        return {
            line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
            for line in lines
            if not line.startswith("#")
        }

    def cpu_seconds(self) -> float:
        """Of all its threads, since its start. A busy machine does not change it, unlike the time on the clock."""
        fields = (
            pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        )
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self, of: str = "VmRSS") -> float:
        """Resident memory in MB: now, or with "VmHWM" the most that it ever was."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith(of))
        return int(line.split()[1]) * 1024 / 1e6

    def states(self) -> dict[str, str]:
        """By the name of each model: loaded, unloaded and so on."""
        models = self.get("/v1/models")[1]["data"]
        return {model["id"]: model["status"]["value"] for model in models}

    def wait_for_states(self, **wanted: str) -> None:
        """Models are loaded and unloaded after the answer to the request for it."""
        for _ in range(600):
            states = self.states()
            if wanted.items() <= states.items():
                return
            time.sleep(0.05)
        raise AssertionError(f"expected {wanted}, found {states}")

    def wait_until_idle(self) -> None:
        for _ in range(600):
            if self.metrics()["llamacpp:requests_processing"] == 0:
                return
            time.sleep(0.05)
        raise AssertionError("a request is still being worked on")


class WithServer(unittest.TestCase):
    """Tests that share a server."""

    flags: list = []
    key = ""

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = cls.enterClassContext(Server(*cls.flags, key=cls.key))
