"""`limpid serve` for SOAK_SECONDS (1,200) among clients that leave, hang, send nonsense or just ask: its memory must not grow.

The size of the process, of its open files and its threads is taken each second. The first quarter is warm-up: caches
fill. Then a line is fitted through means of 20 seconds, whose residuals are nearly independent; single seconds are not.
A second line is fitted through the least of each minute: free pages go back to the system once a minute, so that is
nearly what the server uses, and a leak would raise it. It fails when memory grows by more than 3 standard errors of the slope and by more than 0.03 MB a minute, when files or
threads are left, or when an answer is not what it was at the start."""

import os
import pathlib
import random
import sys
import tempfile
import threading
import time

import numpy
import rough_clients
from limpid_server import Server

SECONDS = float(os.environ.get("SOAK_SECONDS", "1200"))
WARM_UP = 0.25
MOST_PER_MINUTE = 0.03  # MB
N_THREADS = 8
WITNESSED = {"prompt": "the sea", "n_predict": 30, "seed": 7, "ignore_eos": True}
WORDS = "the a world sea and of man tell me who are you hello what river king day night".split()


def ask(server: Server, chosen: random.Random) -> None:
    """A request whose prompt is new, and its whole answer. Its words are not: each new word would touch more of the
    tokenizer's cache, whose size is fixed, but which the system provides page by page."""
    text = " ".join(chosen.choices(WORDS, k=chosen.randrange(1, 120)))
    stream = chosen.random() < 0.5
    messages = [{"role": "user", "content": text}]
    path, body = chosen.choice(
        [
            ("/completion", {"prompt": text, "n_predict": 60, "n_probs": 3, "stream": stream}),
            ("/v1/completions", {"prompt": text, "max_tokens": 40, "n": 3, "stream": stream}),
            ("/v1/chat/completions", {"messages": messages, "max_tokens": 60, "stream": stream}),
            ("/v1/messages", {"messages": messages, "max_tokens": 60, "stream": stream}),
            ("/v1/embeddings", {"input": [text, "the sea"]}),
            ("/tokenize", {"content": text}),
            ("/completion", {"prompt": text, "n_predict": "many"}),
            ("/slots/0?action=save", {"filename": "a.kv"}),
            ("/slots/0?action=restore", {"filename": "a.kv"}),
        ]
    )
    status, answer = server.post(path, body)
    if status >= 500:
        raise AssertionError(f"{path}: {status} {answer}")


def witness(server: Server, chosen: random.Random) -> None:
    status, answer = server.post("/completion", WITNESSED)
    expected = server.expected
    if (status, answer.get("content")) != (200, expected):
        raise AssertionError(f"the answer was '{expected}', and is {status} {answer}")


CLIENTS = [
    (ask, 6),
    (witness, 1),
    (rough_clients.leave, 3),
    (rough_clients.send_half, 1),
    (rough_clients.send_slowly, 1),
]


class Traffic:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.n_asked = 0
        self.failures = []
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self.go_on, args=[i]) for i in range(N_THREADS)]

    def go_on(self, seed: int) -> None:
        chosen = random.Random(seed)
        clients, weights = zip(*CLIENTS, strict=True)
        while not self.is_over.is_set() and not self.failures:
            try:
                chosen.choices(clients, weights)[0](self.server, chosen)
            except Exception as error:  # of whatever kind: the soak has failed
                self.failures.append(error)
            self.n_asked += 1


def sizes(process: int) -> tuple[float, float, float]:
    """Resident memory in MB, open files, threads."""
    folder = pathlib.Path(f"/proc/{process}")
    pages = int((folder / "statm").read_text().split()[1])
    memory = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    return memory, len(list((folder / "fd").iterdir())), len(list((folder / "task").iterdir()))


def slope(rows: numpy.ndarray, n_samples: int, summary) -> tuple[float, float]:
    """Of the line through the summaries of the memory of each n_samples, per minute, and its standard error."""
    n = len(rows) // n_samples * n_samples
    parts = rows[len(rows) - n :].reshape(-1, n_samples, rows.shape[1])
    x, y = parts[:, :, 0].mean(axis=1) / 60, summary(parts[:, :, 1], axis=1)
    if len(x) < 5:
        raise SystemExit(
            f"error: SOAK_SECONDS={SECONDS:g} is too short for a slope; give 420 or more"
        )
    centred = x - x.mean()
    slope = float(centred @ y / (centred @ centred))
    residuals = y - y.mean() - slope * centred
    return slope, float(numpy.sqrt(residuals @ residuals / (len(x) - 2) / (centred @ centred)))


def soak(server: Server) -> numpy.ndarray:
    server.expected = server.post("/completion", WITNESSED)[1]["content"]
    before = sizes(server.process.pid)
    traffic = Traffic(server)
    for thread in traffic.threads:
        thread.start()
    rows = []
    began = time.monotonic()
    while time.monotonic() - began < SECONDS and not traffic.failures:
        time.sleep(1)
        if server.process.poll() is not None:
            traffic.failures.append(AssertionError("the server has ended"))
            break
        rows.append((time.monotonic() - began, *sizes(server.process.pid)))
    traffic.is_over.set()
    for thread in traffic.threads:
        thread.join()
    if traffic.failures:
        raise SystemExit(f"error: after {traffic.n_asked} clients: {traffic.failures[0]!r}")
    server.wait_until_idle()
    after = sizes(server.process.pid)
    print(f"{traffic.n_asked} clients in {SECONDS:g} s; memory, files and threads")
    print(f"  before the traffic: {before[0]:.1f} MB, {before[1]:g}, {before[2]:g}")
    print(f"  after it:           {after[0]:.1f} MB, {after[1]:g}, {after[2]:g}")
    if after[1] > before[1] + 2 or after[2] != before[2]:
        raise SystemExit("error: files or threads are left")
    if server.metrics()["limpid:kv_blocks_used"] != 0:
        raise SystemExit("error: blocks of the KV cache are left")
    return numpy.array(rows)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--no-log", "--context-shift", "-np", 16, "--cache-tokens", 8192]
        with Server(*flags, "--slot-save-path", folder) as server:
            rows = soak(server)
    warm = rows[rows[:, 0] >= WARM_UP * SECONDS]
    growth, error = slope(warm, 20, numpy.mean)
    print(f"memory after warm-up: {growth:+.3f} MB a minute, standard error {error:.3f}")
    floor, floor_error = slope(warm, 60, numpy.min)
    print(f"  the least of each minute: {floor:+.3f}, standard error {floor_error:.3f}")
    if growth > max(3 * error, MOST_PER_MINUTE):
        sys.exit("error: memory grows")


if __name__ == "__main__":
    main()
