"""`limpid serve` beside llama-server: the same file, the same requests, in turns.

    compare_server.py --peer PATH/llama-server                  SmolLM2, with 1, 8 and 32 clients
    compare_server.py --peer … --model FILE --clients 32        another file
    compare_server.py --peer … --shapes llama-3.2-1b            and random weights of this shape, in Q4_0
    compare_server.py --parts throughput                        one of its parts, where a machine is quiet for minutes
    compare_server.py                                           Limpid alone

The clients are bench/server_load.cpp. Each asks for one answer of a chat after another: a prompt of its own of -p
words, then -n tokens, greedy, streamed, with the end token banned. Both servers stay open, and take turns of -s
seconds or more, of which those from the end of the first answer to the end of the last one count. A row has tokens generated
per second of both, and the median of the turns' ratios (above 1 Limpid is faster); beside them what Limpid's scheduler
reaches with the same prompts without a server (bench/scheduler_load.cpp), and the server's share of it. Then, for
Limpid:

- what one request costs beyond the engine's own time, and each streamed token;
- 16 new tokens after a cached prompt, beside `limpid bench` of 16 tokens at the same depth;
- the time for a token of a running answer while a long prompt comes in, beside its usual time, and the prompt's time
  beside that of the same prompt alone.
"""

import argparse
import http.client
import json
import os
import pathlib
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from this_machine import CACHE, SMOLLM2, cpu_name

ROOT = pathlib.Path(__file__).resolve().parents[1]
# The vocabulary of the shapes, whose files have no tokenizer of their own.
LLAMA3_TOKENIZER = ROOT.parent / "shared" / "data" / "tokenizers" / "llama3.2_tokenizer.json"
TINY = ROOT / "tests" / "data" / "cli" / "tiny_chat.gguf"
PARTS = ["overhead", "throughput", "prefix", "beside"]
WORDS = (
    "sea sky tree house night day man woman child dog cat river stone fire wind rain snow song"
).split()


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


def some_words(chosen: random.Random, n: int) -> str:
    return " ".join(chosen.choice(WORDS) for _ in range(n))


class Prompts:
    """Files of prompts for the clients, in a folder of its own: each turn has words that no other turn has."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="limpid-bench-")
        self.chosen = random.Random(20_240_101)
        self.n_files = 0

    def file(self, n_prompts: int, n_words: int) -> pathlib.Path:
        self.n_files += 1
        path = pathlib.Path(self.folder.name) / f"prompts-{self.n_files}.txt"
        lines = (some_words(self.chosen, n_words) + "\n" for _ in range(n_prompts))
        path.write_text("".join(lines))
        return path


def load(server: Server, arguments: argparse.Namespace, **options: object) -> dict:
    """What the clients measure. `options` are those of server_load."""
    command = [bench_program(arguments, "server_load"), "--port", server.port]
    for name, value in options.items():
        flag = f"-{name}" if len(name) == 1 else f"--{name}"
        command += [flag] if value is True else [flag, value]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(f"{server.name}: {run.stderr.strip()}")
    return json.loads(run.stdout)


def bench_program(arguments: argparse.Namespace, name: str) -> pathlib.Path:
    return pathlib.Path(arguments.program).parent / "bench" / name


def scheduler_speed(n_clients: int, prompts: pathlib.Path, arguments: argparse.Namespace) -> float:
    program = bench_program(arguments, "scheduler_load")
    command = [program, arguments.model, arguments.t, prompts, n_clients, arguments.n, arguments.s]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    return not_nothing("the scheduler", float(run.stdout), arguments)


def not_nothing(name: str, speed: float, arguments: argparse.Namespace) -> float:
    """Where no two answers end in a turn, it has no speed to compare."""
    if speed == 0:
        raise SystemExit(f"{name} ended no two answers in {arguments.s:g} s: give a longer -s")
    return speed


def turn(server: Server, n_clients: int, prompts: Prompts, arguments: argparse.Namespace) -> float:
    """Tokens per second. Each answer comes over a new connection: llama-server closes it after a stream."""
    file = prompts.file(2000, arguments.p)
    options = {"clients": n_clients, "n": arguments.n, "seconds": arguments.s, "fresh": True}
    speed = load(server, arguments, prompts=file, **options)["tokens_per_second"]
    return not_nothing(server.name, speed, arguments)


def compare_throughput(
    servers: list[Server], prompts: Prompts, arguments: argparse.Namespace
) -> None:
    print("| clients | Limpid, tokens/s | llama-server | ratio | scheduler alone | share of it |")
    print("| --: | --: | --: | --: | --: | --: |")
    for server in servers:  # not counted: memory is touched for the first time
        turn(server, max(arguments.clients), prompts, arguments)
    for n_clients in arguments.clients:
        speeds = [[] for _ in range(3)]  # of Limpid, of llama-server, of the scheduler
        for i in range(arguments.r):
            order = list(enumerate(servers))
            for j, server in order if i % 2 == 0 else reversed(order):
                speeds[j].append(turn(server, n_clients, prompts, arguments))
            file = prompts.file(2000, arguments.p)
            speeds[2].append(scheduler_speed(n_clients, file, arguments))
        ours, theirs, alone = (statistics.median(of) if of else None for of in speeds)
        ratio = "–"
        if theirs:
            ratio = f"{statistics.median(a / b for a, b in zip(*speeds[:2], strict=True)):.2f}"
        share = statistics.median(a / b for a, b in zip(speeds[0], speeds[2], strict=True))
        print(
            f"| {n_clients} | {ours:.1f} | {f'{theirs:.1f}' if theirs else '–'} | {ratio} "
            f"| {alone:.1f} | {100 * share:.0f} % |",
            flush=True,
        )


def overhead(prompts: Prompts, arguments: argparse.Namespace) -> None:
    """With the smallest model and one connection: a request's time beyond the engine's, and what streaming adds."""
    server = Server(
        "limpid", [arguments.program, "serve", "-m", TINY, "-t", arguments.t, "--no-log"]
    )
    file = prompts.file(1000, 2)
    short = load(server, arguments, prompts=file, n=16, requests=300, plain=True)
    added = []
    for _ in range(10):
        plain, streamed = (
            load(server, arguments, prompts=file, n=200, requests=60, **option)["answer_ms"]["p50"]
            for option in ({"plain": True}, {})
        )
        added.append(1000 * (streamed - plain) / 200)
    server.close()
    print(f"one request: {short['beyond_engine_ms']['p50']:.2f} ms beyond the engine's time (p50)")
    print(f"a streamed token: {statistics.median(added):.1f} µs more than one that is not (p50)")


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


def beside_a_long_prompt(server: Server, prompts: Prompts, arguments: argparse.Namespace) -> None:
    long = [prompts.file(1, arguments.depth - 50) for _ in range(2)]
    alone = load(server, arguments, prompts=long[0], n=1, requests=1)["answer_ms"]["max"]
    running = prompts.file(1, 2)
    beside = load(server, arguments, prompts=running, n=arguments.depth, beside=long[1])["beside"]
    usual = beside["usual_ms"]["p50"]
    median, nearly_all, most = (beside["during_ms"][name] / usual for name in ("p50", "p95", "max"))
    print(
        f"a token while a prompt of {arguments.depth} tokens comes in: {median:.1f} times the usual {usual:.1f} ms "
        f"(median; 95 % below {nearly_all:.1f}, most {most:.1f}); the prompt takes "
        f"{beside['long_prompt_ms'] / alone:.2f} times the {alone / 1000:.2f} s that it takes alone"
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


def compare(prompts: Prompts, arguments: argparse.Namespace) -> None:
    # Both have room for as many positions.
    room = max(512 * 32, 2 * (arguments.depth + 1024))
    ours = [arguments.program, "serve", "-m", arguments.model, "-t", arguments.t]
    ours += ["-c", arguments.depth + 1024, "--cache-tokens", room]
    servers = [Server("limpid", [*ours, "--no-log"])]
    if arguments.peer and "throughput" in arguments.parts:
        theirs = [arguments.peer, "-m", arguments.model, "-t", arguments.t, "-np", 32]
        servers.append(Server("llama-server", [*theirs, "-c", room, "--kv-unified"]))
    print(f"\n{arguments.model.name}\n")
    try:
        if "throughput" in arguments.parts:
            compare_throughput(servers, prompts, arguments)
            print()
        if "prefix" in arguments.parts:
            cached_prefix(servers[0], arguments)
        if "beside" in arguments.parts:
            for _ in range(arguments.r):
                beside_a_long_prompt(servers[0], prompts, arguments)
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
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
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
    prompts = Prompts()
    if "overhead" in arguments.parts:
        overhead(prompts, arguments)
    if arguments.parts == ["overhead"]:
        return
    models = [arguments.model] if arguments.model.exists() else []
    for model in models + [shape_file(shape, arguments.program) for shape in arguments.shapes]:
        arguments.model = model
        compare(prompts, arguments)


if __name__ == "__main__":
    main()
