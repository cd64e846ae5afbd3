"""A server that serves the page's files, and answers as `limpid serve` does, with what a test tells it to say."""

import collections
import dataclasses
import http.server
import json
import math
import pathlib
import re
import threading
import time

WEB = pathlib.Path(__file__).resolve().parents[2] / "src" / "server" / "web"
TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
POLICY = "default-src 'self'; base-uri 'none'; frame-ancestors 'none'"


@dataclasses.dataclass
class Answer:
    text: str
    pause: float = 0  # seconds before each token
    cut: int = 0  # bytes of a network write, so that characters are cut; 0: an event a write
    finish: str = "stop"
    status: int = 200  # of an error, with `text` as its message
    code: int | str | None = None  # of an error in its body, else the status
    fails_after: int = -1  # tokens before an error event; -1: none
    breaks_after: int = -1  # tokens before the connection ends; -1: none


def pieces(text: str) -> list[bytes]:
    """Tokens as a byte-level vocabulary has them: words with the blank before them, characters beyond ASCII halved."""
    tokens = []
    for piece in re.findall(r" ?[A-Za-z]+| ?\d|\s+|[^\sA-Za-z\d]", text):
        data = piece.encode()
        halves = [data] if len(data) == len(piece) else [data[:1], data[1:]]
        tokens += halves
    return tokens


def entry(token: bytes, probability: float) -> dict:
    return {
        "token": token.decode(errors="replace"),
        "logprob": math.log(probability),
        "bytes": list(token),
    }


def logprobs(token: bytes, index: int, n: int) -> dict:
    """The chosen token is the first, second or third of its place, in turn."""
    chances = [0.5, 0.25, 0.12, 0.06, 0.03]
    others = [b" alpha", b" <b>beta</b>", b"\xe2\x82", b"\n"]
    rank = index % 3
    ranked = others[:rank] + [token] + others[rank:]
    best = [entry(other, chance) for other, chance in zip(ranked, chances, strict=True)]
    return {**entry(token, chances[rank]), "top_logprobs": best[:n]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header(
            "Content-Type", f"{kind}; charset=utf-8" if kind != "image/svg+xml" else kind
        )
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        self.wfile.write(content)

    def json(self, value: object, status: int = 200) -> None:
        self.reply(status, json.dumps(value).encode(), "application/json")

    def error(self, status: int, message: str, code: int | str | None = None) -> None:
        error = {"message": message, "code": code or status, "param": None, "type": ""}
        self.json({"error": error}, status)

    def is_known(self) -> bool:
        key = self.server.key
        return not key or self.headers.get("Authorization") == f"Bearer {key}"

    def do_GET(self):
        path = self.path.split("?")[0]
        if path in ("/v1/models", "/props") and not self.is_known():
            self.error(401, "the API key is wrong")
        elif path == "/v1/models" and self.server.n_loading > 0:
            self.server.n_loading -= 1
            self.error(503, "the model is being loaded")
        elif path == "/v1/models":
            self.json({"object": "list", "data": [{"id": self.server.model}]})
        elif path == "/props":
            params = {"temperature": 0.8, "top_k": 40, "min_p": 0.05, "n_predict": -1}
            self.json({"default_generation_settings": {"params": params}})
        else:
            file = WEB / (path.strip("/") or "index.html")
            if file.parent == WEB and file.suffix in TYPES and file.is_file():
                self.reply(200, file.read_bytes(), TYPES[file.suffix])
            else:
                self.error(404, "there is no such page")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        if not self.is_known():
            return self.error(401, "the API key is wrong")
        answer = self.server.answers.popleft() if self.server.answers else Answer("Fine. " * 3)
        if answer.status != 200:
            return self.error(answer.status, answer.text, answer.code)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            self.stream(answer, body)
        except (BrokenPipeError, ConnectionResetError):
            self.server.n_gone += 1
        return None

    def event(self, value: object, cut: int) -> None:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        data = f"data: {text}\n\n".encode()
        for begin in range(0, len(data), cut or len(data)):
            self.wfile.write(data[begin : begin + (cut or len(data))])
            self.wfile.flush()
            rest = data[begin + cut : begin + cut + 1]
            if cut and rest and 0x80 <= rest[0] < 0xC0:  # inside a character
                time.sleep(0.002)

    def chunk(self, text: str, tokens: list[dict], finish: str | None = None) -> dict:
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
        choice["logprobs"] = {"content": tokens} if tokens else None
        return {
            "object": "chat.completion.chunk",
            "model": self.server.model,
            "choices": [choice],
        }

    def stream(self, answer: Answer, body: dict) -> None:
        tokens = pieces(answer.text)
        rest = b""
        for i, token in enumerate(tokens):
            time.sleep(answer.pause)
            if i == answer.breaks_after:
                return
            if i == answer.fails_after:
                self.event({"error": {"message": "the server failed", "code": 500}}, 0)
                return
            rest += token
            try:
                text, rest = rest.decode(), b""
            except UnicodeDecodeError:
                text = ""
            n = body.get("top_logprobs", 0)
            self.event(self.chunk(text, [logprobs(token, i, n)] if n else []), answer.cut)
        self.event(self.chunk("", [], answer.finish), answer.cut)
        timings = {"predicted_n": len(tokens), "predicted_per_second": 42.0}
        usage = {
            "completion_tokens": len(tokens),
            "prompt_tokens": 7,
            "total_tokens": 7 + len(tokens),
        }
        self.event({"choices": [], "usage": usage, "timings": timings}, answer.cut)
        self.event("[DONE]", answer.cut)


class MockServer(http.server.ThreadingHTTPServer):
    """`answers`: what is said next; `requests`: the bodies that came; `n_gone`: clients that went away; `n_loading`: how often it says that it loads its model."""

    daemon_threads = True
    request_queue_size = 128  # a page asks for its files at once

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = collections.deque()
        self.requests = []
        self.n_gone = 0
        self.n_loading = 0
        self.key = ""
        self.model = "mock-1B"
        self.address = f"http://127.0.0.1:{self.server_port}/"

    def __enter__(self):
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.thread.join()
        self.server_close()
