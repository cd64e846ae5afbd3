"""`limpid serve` beside llama-server: the same file, the same requests, turn about.

    compare_server.py --peer PATH/llama-server                  SmolLM2, with 1, 8 and 32 clients
    compare_server.py --peer … --model FILE --clients 32        another file
    compare_server.py --peer … --shapes llama-3.2-1b            and random weights of this shape, in Q4_0
    compare_server.py                                           Limpid alone

Each client asks for one answer after another: a prompt of its own of -p tokens, then -n tokens, greedy, streamed, with
the end token banned. Both servers stay open, and take turns of -s seconds. A row has tokens generated per second of
both, and their ratio (above 1 Limpid is faster). Then, for Limpid:

- what one request costs beyond the engine's own time, and each streamed token;
- 16 new tokens after a cached prompt, beside `limpid bench` of 16 tokens at the same depth;
- the time for a token of a running answer while a long prompt comes in, beside its usual time, and the prompt's time
  beside that of the same prompt alone.
"""

import argparse
import concurrent.futures
import http.client
import itertools
import json
import os
import pathlib
import random
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "limpid"
SMOLLM2 = CACHE / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
# The vocabulary of the shapes, whose files have no tokenizer of their own.
LLAMA3_TOKENIZER = ROOT.parent / "shared" / "data" / "tokenizers" / "llama3.2_tokenizer.json"
TINY = ROOT / "tests" / "data" / "cli" / "tiny_chat.gguf"
WORDS = (
    "sea sky tree house night day man woman child dog cat river stone fire wind rain snow song"
).split()


def cpu_name() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown CPU"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    def __init__(self, name: str, command: list[object]) -> None:
        self.name = name
        self.port = free_port()
        self.process = subprocess.Popen(
            list(map(str, [*command, "--port", self.port])),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health") as answer:
                    if answer.status == 200:
                        return
            except OSError:
                if self.process.poll() is not None:
                    raise RuntimeError(f"{name} ended: {' '.join(map(str, command))}") from None
            time.sleep(0.1)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(60)

    def complete(self, prompt: object, n: int, cache: bool = True) -> dict:
        body = {"prompt": prompt, "n_predict": n, "temperature": 0, "ignore_eos": True}
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", "/completion", json.dumps({**body, "cache_prompt": cache}))
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def stream(self, prompt: object, n: int):
        """Yields the time of each event but the last."""
        body = {"prompt": prompt, "n_predict": n, "temperature": 0, "ignore_eos": True}
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", "/completion", json.dumps({**body, "stream": True}))
        for line in connection.getresponse():
            if line.startswith(b"data: ") and b'"stop":true' not in line:
                yield time.perf_counter()
        connection.close()


def some_words(chosen: random.Random, n: int) -> str:
    return " ".join(chosen.choice(WORDS) for _ in range(n))


def turn(server: Server, n_clients: int, arguments: argparse.Namespace, seed: int) -> float:
    """Tokens generated per second by clients that ask again and again."""
    end = time.perf_counter() + arguments.s
    counts = [0] * n_clients

    def client(i: int) -> None:
        chosen = random.Random(seed * 1000 + i)
        while time.perf_counter() < end:
            for moment in server.stream(some_words(chosen, arguments.p), arguments.n):
                counts[i] += moment < end

    with concurrent.futures.ThreadPoolExecutor(n_clients) as clients:
        list(clients.map(client, range(n_clients)))
    return sum(counts) / arguments.s


def compare_throughput(servers: list[Server], arguments: argparse.Namespace) -> None:
    print("| clients | Limpid, tokens/s | llama-server | ratio, median | rounds |")
    print("| --: | --: | --: | --: | --: |")
    for n_clients in arguments.clients:
        speeds = [[] for _ in servers]
        for i in range(arguments.r):
            order = list(enumerate(servers))
            for j, server in order if i % 2 == 0 else reversed(order):
                speeds[j].append(turn(server, n_clients, arguments, i))
        ours = statistics.median(speeds[0])
        theirs = ratio = "–"
        if len(servers) > 1:
            theirs = f"{statistics.median(speeds[1]):.1f}"
            ratio = f"{statistics.median(a / b for a, b in zip(*speeds, strict=True)):.2f}"
        print(f"| {n_clients} | {ours:.1f} | {theirs} | {ratio} | {arguments.r} |", flush=True)


def overhead(arguments: argparse.Namespace) -> None:
    """With the smallest model and one connection: a request's time beyond the engine's, and what streaming adds."""
    server = Server(
        "limpid", [arguments.program, "serve", "-m", TINY, "-t", arguments.t, "--no-log"]
    )
    connection = http.client.HTTPConnection("127.0.0.1", server.port)

    def ask(n: int, stream: bool = False) -> tuple[float, bytes]:
        body = {"prompt": "the sea", "n_predict": n, "temperature": 0, "ignore_eos": True}
        start = time.perf_counter()
        connection.request("POST", "/completion", json.dumps({**body, "stream": stream}))
        answer = connection.getresponse().read()
        return time.perf_counter() - start, answer

    beyond, plain, streamed = [], [], []
    for _ in range(300):
        seconds, answer = ask(16)
        timings = json.loads(answer)["timings"]
        beyond.append(1000 * seconds - timings["prompt_ms"] - timings["predicted_ms"])
        plain.append(ask(200)[0])
        streamed.append(ask(200, stream=True)[0])
    server.close()
    added = 1e6 * (statistics.median(streamed) - statistics.median(plain)) / 200
    print(f"one request: {statistics.median(beyond):.2f} ms beyond the engine's time (p50)")
    print(
        f"a streamed token: {added:.1f} µs more than one that is not (p50; the client's time is in it)"
    )


def cached_prefix(server: Server, arguments: argparse.Namespace) -> None:
    chosen = random.Random(5)
    n_depth = arguments.depth
    ids = tokens_of(server, some_words(chosen, n_depth))[:n_depth]
    server.complete(ids, 1)
    times = []
    for _ in range(9):
        new = tokens_of(server, " " + some_words(chosen, 20))[:16]
        timings = server.complete(ids + new, 1)["timings"]
        times.append(timings["prompt_ms"] * 16 / timings["prompt_n"])
    command = [arguments.program, "bench", "-m", arguments.model, "-p", 16, "-n", 0, "-d", n_depth]
    run = subprocess.run(
        [*map(str, command), "-t", str(arguments.t), "-o", "json"], capture_output=True, text=True
    )
    engine = 16_000 / json.loads(run.stdout)[0]["avg_ts"]
    middle = statistics.median(times)
    print(
        f"16 tokens after {n_depth} cached ones: {middle:.1f} ms, by the engine alone {engine:.1f} ms: {middle / engine:.2f}"
    )


def tokens_of(server: Server, text: str) -> list[int]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.port}/tokenize", json.dumps({"content": text}).encode()
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["tokens"]


def beside_a_long_prompt(server: Server, arguments: argparse.Namespace) -> None:
    chosen = random.Random(6)
    long = [some_words(chosen, arguments.depth) for _ in range(2)]
    start = time.perf_counter()
    server.complete(long[0], 1)
    alone = time.perf_counter() - start
    moments, window = [], []

    def running() -> None:
        for moment in server.stream("the sea", arguments.depth):
            moments.append(moment)
            if window[1:]:
                return

    thread = threading.Thread(target=running)
    thread.start()
    while len(moments) < 50:
        time.sleep(0.01)
    usual = statistics.median(b - a for a, b in itertools.pairwise(moments[10:]))
    window.append(time.perf_counter())
    server.complete(long[1], 1)
    window.append(time.perf_counter())
    thread.join()
    during = [b - a for a, b in itertools.pairwise(moments) if window[0] < a and b < window[1]]
    beside = window[1] - window[0]
    print(
        f"a token while a prompt of {arguments.depth} words comes in: median {statistics.median(during) / usual:.1f}, "
        f"most {max(during) / usual:.1f} times the usual {1000 * usual:.1f} ms; the prompt {beside / alone:.2f} times as long as alone"
    )


def shape_file(shape: str, program: pathlib.Path) -> pathlib.Path:
    """Random weights in Q4_0 with the tokenizer of Llama 3; the file stays in the cache."""
    sys.path.insert(0, str(ROOT / "tools" / "golden"))
    import random_llama_gguf

    path = CACHE / "bench" / f"{shape}-Q4_0-llama3.gguf"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    plain, partial = (path.with_suffix(f".{part}.gguf") for part in ("plain", "partial"))
    random_llama_gguf.write_plain(plain, random_llama_gguf.SHAPES[shape], "F16", True, 1)
    convert = [program, "convert", plain, partial, "--dtype", "q4_0", "--no-calibrate"]
    subprocess.run([*map(str, convert), "--tokenizer", str(LLAMA3_TOKENIZER)], check=True)
    partial.replace(path)
    plain.unlink()
    return path


def compare(arguments: argparse.Namespace) -> None:
    context = arguments.depth + 1024
    ours = [arguments.program, "serve", "-m", arguments.model, "-t", arguments.t, "-c", context]
    servers = [Server("limpid", [*ours, "--no-log"])]
    if arguments.peer:
        theirs = [arguments.peer, "-m", arguments.model, "-t", arguments.t, "-np", 32]
        servers.append(Server("llama-server", [*theirs, "-c", 512 * 32, "--kv-unified"]))
    print(f"\n{arguments.model.name}\n")
    try:
        compare_throughput(servers, arguments)
        print()
        cached_prefix(servers[0], arguments)
        beside_a_long_prompt(servers[0], arguments)
    finally:
        for server in servers:
            server.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", default=ROOT / "build" / "release" / "limpid")
    parser.add_argument("--peer", help="the program llama-server")
    parser.add_argument("--model", type=pathlib.Path, default=SMOLLM2)
    parser.add_argument("--shapes", type=lambda text: text.split(","), default=[])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("-t", type=int, default=os.cpu_count(), help="threads of each engine")
    parser.add_argument("-p", type=int, default=48, help="words of a prompt")
    parser.add_argument("-n", type=int, default=64, help="tokens of an answer")
    parser.add_argument("-s", type=float, default=10, help="seconds of a turn")
    parser.add_argument("-r", type=int, default=3, help="rounds")
    parser.add_argument("--depth", type=int, default=4000, help="tokens of the long prompts")
    arguments = parser.parse_args()

    print(f"{cpu_name()}, {arguments.t} threads")
    if not arguments.peer:
        print("no llama-server was given (LLAMA_SERVER=FILE, or --peer): Limpid alone")
    overhead(arguments)
    models = [arguments.model] if arguments.model.exists() else []
    for model in models + [shape_file(shape, arguments.program) for shape in arguments.shapes]:
        arguments.model = model
        compare(arguments)


if __name__ == "__main__":
    main()
