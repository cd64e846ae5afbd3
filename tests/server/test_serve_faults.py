"""`limpid serve` under clients that leave, hang and send nonsense: it lives on, forgets them, and nobody else notices.

LIMPID_FAULTS is how many clients leave, and how many send slowly (200)."""

import concurrent.futures
import itertools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import limpid_program
import rough_clients
from limpid_server import Server

N_FAULTS = int(os.environ.get("LIMPID_FAULTS", "200"))
MOST_LEFT = 8  # MB that as many clients again may add; without a leak it is noise of the allocator
MOST_KEPT = 64  # MB of a body that is too long: 16 of it are read before it is refused
# Memory that AddressSanitizer holds back after it was freed would look like a leak.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
WITNESSED = [
    {"prompt": prompt, "n_predict": 40, "seed": i, "ignore_eos": True, "return_tokens": True}
    for i, prompt in enumerate(["the sea", "the world " * 20, "a", "hello, who are you?"])
]
# Streams its answer from the port that is its argument, and says when it has begun.
STREAMING_CLIENT = """
import socket, sys
client = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
client.sendall(sys.stdin.buffer.read())
client.recv(100)
print("reads", flush=True)
while client.recv(4096):
    pass
"""


class Witness:
    """A client among the others that asks what it has asked before, and gets the same tokens."""

    def __init__(self, server: Server, expected: list[list[int]]) -> None:
        self.server, self.expected = server, expected
        self.n_asked, self.wrong = 0, []
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.ask)
        self.thread.start()

    def ask(self) -> None:
        for i in itertools.cycle(range(len(WITNESSED))):
            status, answer = self.server.post("/completion", WITNESSED[i])
            if status != 200 or answer["tokens"] != self.expected[i]:
                self.wrong.append((i, status, answer))
            self.n_asked += 1
            if self.is_over.is_set() and self.n_asked >= 4:
                return

    def end(self) -> None:
        self.is_over.set()
        self.thread.join()


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        flags = ["--no-log", "--context-shift", "-np", 16, "--slot-save-path", cls.folder]
        cls.server = cls.enterClassContext(Server(*flags))
        cls.alone = [cls.server.post("/completion", body)[1]["tokens"] for body in WITNESSED]

    def setUp(self) -> None:
        self.witness = Witness(self.server, self.alone)
        self.addCleanup(self.expect_no_trace)

    def expect_no_trace(self) -> None:
        self.witness.end()
        self.assertEqual(self.witness.wrong, [])
        self.assertIsNone(self.server.process.poll())
        self.server.wait_until_idle()
        left = self.server.metrics()
        for name in ("llamacpp:requests_deferred", "limpid:kv_blocks_used"):
            self.assertEqual(left[name], 0, name)

    def many(self, client, n: int, at_a_time: int = 12) -> None:
        with concurrent.futures.ThreadPoolExecutor(at_a_time) as threads:
            for done in [
                threads.submit(client, self.server, random.Random(seed)) for seed in range(n)
            ]:
                done.result()

    def test_clients_that_leave(self):
        self.many(rough_clients.leave, N_FAULTS)
        settled = self.server.memory()
        self.many(rough_clients.leave, N_FAULTS)
        self.assertLess(self.server.memory() - settled, MOST_LEFT)

    def test_requests_that_stop_half_way(self):
        self.many(rough_clients.send_half, N_FAULTS)

    def test_slow_senders(self):
        self.many(rough_clients.send_slowly, N_FAULTS, at_a_time=48)  # which mostly sleep

    # Connections that say a few bytes and then nothing: none waits for them.
    def test_silent_connections(self):
        silent = [rough_clients.connect(self.server) for _ in range(N_FAULTS)]
        for i, client in enumerate(silent):
            client.sendall(rough_clients.encode("/completion", WITNESSED[0])[: i % 90])
        began = time.monotonic()
        self.assertEqual(self.server.get("/health")[0], 200)
        self.assertLess(time.monotonic() - began, 5)
        for client in silent:
            client.close()

    def test_bodies_that_are_no_requests(self):
        for opening in (b'{"a":', b"["):
            deep = b'{"messages": ' + opening * 100_000
            self.assertEqual(self.server.post("/v1/chat/completions", deep)[0], 400)
        strange = [b"\xff\xfe{}", b'{"prompt": "\xc3\x28"}', b'{"prompt": "\xed\xa0\x80"}']
        strange += [b'{"prompt": "\\ud800"}', b'{"prompt": 1e999}', b'{"prompt": "a"}{}', b"\0" * 9]
        for body in strange:
            for path, _ in rough_clients.ENDPOINTS:
                self.assertEqual(self.server.post(path, body)[0], 400, (path, body))

    # Many members, texts or choices: refused, or answered in a time of the processor that their bytes justify, the
    # witness's requests included. What grows with the square of their number takes minutes.
    def test_bodies_with_many_parts(self):
        keys = json.dumps({f"k{i}": 0 for i in range(300_000)}).encode()
        same = b"{" + b'"seed": 1, ' * 300_000 + b'"prompt": "a"}'
        stops = json.dumps({"prompt": "a", "stop": ["x"] * 300_000}).encode()
        variables = {"messages": rough_clients.MESSAGES, "chat_template_kwargs": json.loads(keys)}
        variables = json.dumps(variables).encode()
        prompts = json.dumps({"prompt": ["a"] * 300_000, "max_tokens": 1}).encode()
        texts = json.dumps({"input": ["a"] * 300_000}).encode()
        for path, body in (
            ("/completion", keys),
            ("/completion", same),
            ("/completion", stops),
            ("/v1/chat/completions", variables),
            ("/v1/completions", prompts),
            ("/v1/embeddings", texts),
        ):
            began = self.server.cpu_seconds()
            status, _ = self.server.post(path, body)
            self.assertIn(status, (200, 400, 413, 429), (path, body[:40]))
            self.assertLess(self.server.cpu_seconds() - began, 30, (path, body[:40]))

    def test_long_names_of_many_parts(self):
        before = self.server.memory("VmHWM")
        schema = {"properties": {"k" * 100_000: {"enum": [1] * 100_000}}}
        body = json.dumps({"prompt": "a", "n_predict": 1, "json_schema": schema}).encode()
        self.assertEqual(self.server.post("/completion", body)[0], 400)
        self.assertLess(self.server.memory("VmHWM") - before, 100)

    # Refused by what the header says, or as soon as too much has come; never kept.
    def test_bodies_of_a_gigabyte(self):
        head = b"POST /completion HTTP/1.1\r\nHost: localhost\r\n"
        before = self.server.memory("VmHWM")
        answer = rough_clients.send_raw(self.server, head + b"Content-Length: 1073741824\r\n\r\n")
        self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer)
        with rough_clients.connect(self.server) as client:
            client.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
            chunk = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
            with self.assertRaises(ConnectionError):
                for _ in range(1024):
                    client.sendall(chunk)
        # A sanitizer keeps up to four bytes for each of the program's.
        build = limpid_program.run_json("doctor", "--no-measure", "--json")["build"]
        most = MOST_KEPT * (4 if build["sanitised"] else 1)
        self.assertLess(self.server.memory("VmHWM") - before, most)

    # Where two programs disagree about where a request ends, the one inside would be a second one.
    def test_requests_inside_requests(self):
        inner = rough_clients.encode("/completion", {"prompt": "smuggled", "n_predict": 1})
        n = str(len(inner)).encode()
        hidden = [
            b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"Content-Length: " + n + b"\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"Content-Length: 0\r\nContent-Length: " + n + b"\r\n\r\n",
            b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
            b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
            b"X: a\n\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"X: a\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n0\n\n",
            b"Content-Length: 0x0\r\n\r\n",
        ]
        self.witness.end()  # which is counted too
        n_before = self.server.metrics()["limpid:requests_total"]
        for fields in hidden:
            head = b"POST /completion HTTP/1.1\r\nHost: localhost\r\n"
            answer = rough_clients.send_raw(self.server, head + fields + inner)
            self.assertRegex(answer, rb"^HTTP/1.1 (400|501) ", fields)
            self.assertEqual(answer.count(b"HTTP/1.1 "), 1, fields)
        self.assertEqual(self.server.metrics()["limpid:requests_total"], n_before)

    # The kernel goes on taking bytes for a process that has stopped, up to what its sockets hold.
    def test_a_client_that_is_stopped(self):
        port = self.server.url.rpartition(":")[2]
        endless = {"prompt": "the", "ignore_eos": True, "stream": True, "n_predict": -1}
        client = subprocess.Popen(
            [sys.executable, "-c", STREAMING_CLIENT, port],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            client.stdin.write(rough_clients.encode("/completion", endless))
            client.stdin.close()
            client.stdin = None  # for communicate()
            self.assertEqual(client.stdout.readline(), b"reads\n")
            client.send_signal(signal.SIGSTOP)
            n_asked = self.witness.n_asked
            while self.witness.n_asked < n_asked + 8:
                time.sleep(0.01)
        finally:
            client.kill()
            client.communicate()


def full_disk(folder: pathlib.Path) -> str:
    """Makes `folder` a file system of 16 KiB; gives why that cannot be, or ""."""
    if os.geteuid() != 0 or os.environ.get("LIMPID_NO_MOUNT"):
        return "needs root, for a file system that is full"
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True)
    return f"needs a file system that is full: {done.stderr.strip()}" if done.returncode else ""


class FullDisk(unittest.TestCase):
    def test_a_slot_that_does_not_fit_leaves_no_file(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            if problem := full_disk(folder):
                self.skipTest(problem)
            try:
                self.save_on(folder)
            finally:
                subprocess.run(["umount", str(folder)], check=True)

    def save_on(self, folder: pathlib.Path) -> None:
        with Server("--no-log", "--slot-save-path", folder) as server:
            first = server.post("/completion", WITNESSED[1])[1]
            status, answer = server.post("/slots/0?action=save", {"filename": "a.kv"})
            self.assertEqual((status, answer["error"]["type"]), (503, "unavailable_error"))
            self.assertEqual(list(folder.iterdir()), [])
            self.assertEqual(server.post("/slots/0?action=restore", {"filename": "a.kv"})[0], 404)
            self.assertEqual(server.post("/completion", WITNESSED[1])[1]["tokens"], first["tokens"])
            server.wait_until_idle()
            self.assertEqual(server.metrics()["limpid:kv_blocks_used"], 0)


if __name__ == "__main__":
    limpid_program.main()
