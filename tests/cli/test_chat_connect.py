"""`limpid chat --connect` with `limpid serve`, and with servers that are none or that break off."""

import contextlib
import http.server
import json
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

import limpid_program
from limpid_server import TINY, Server, make_certificate

NO_KEYS = {"LIMPID_API_KEY": "", "OPENAI_API_KEY": ""}
CHOSEN = ["--temp", 0.9, "--top-k", 30, "-n", 12]


def chat(*arguments: object, stdin: str = "", **environment: str) -> tuple[int, str, str]:
    env = {**NO_KEYS, **environment}
    return limpid_program.outcome("chat", *arguments, stdin=stdin, env=env)


def event(**choice: object) -> bytes:
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


HELLO = event(delta={"content": "hel"}, finish_reason=None) + event(delta={"content": "lo"})


class Canned(http.server.BaseHTTPRequestHandler):
    """Answers every request with the server's `answer`: status, type and body."""

    def do_GET(self) -> None:
        self.server.asked.append(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        status, content_type, body = self.server.answer
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def canned(status: int, content_type: str, body: bytes):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Canned) as server:
        server.answer, server.asked = (status, content_type, body), []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        server.url = f"http://127.0.0.1:{server.server_port}"
        yield server
        server.shutdown()


class WithLimpid(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.server = cls.enterClassContext(Server("--no-log", "--context-shift"))

    def test_says_what_a_model_in_this_process_says(self):
        for seed in range(4):
            asked = [*CHOSEN, "-s", seed]
            stdin = "hello\nthe world\n/regen\n/undo\nthe sea\n"
            local = chat("-m", TINY, *asked, stdin=stdin)
            self.assertEqual(chat("--connect", self.server.url, *asked, stdin=stdin), local)
        address = self.server.url.removeprefix("http://") + "/v1/"
        asked = ["--temp", 0, "-n", 8, "-sys", "Be kind.", "-st", "-p", "hello"]
        local = chat("-m", TINY, *asked)
        self.assertEqual(chat("--connect", address, "-m", "tiny_chat", *asked), local)

    def test_tells_what_it_knows_as_json(self):
        asked = ["-st", "--json", "--temp", 0, "-n", 6, "--ignore-eos", "-p", "hello"]
        local = json.loads(chat("-m", TINY, *asked)[1])
        code, out, err = chat("--connect", self.server.url, "--timings", *asked)
        remote = json.loads(out)
        self.assertEqual((code, remote["text"]), (0, local["text"]))
        self.assertEqual(set(local) - set(remote), {"ids", "seed"})
        self.assertEqual(remote["stop_reason"], "length")
        timings = remote["timings"]
        self.assertEqual(timings["n_generated"], 6)
        self.assertEqual(timings["n_prompt"] + timings["n_reused"], local["timings"]["n_prompt"])
        self.assertIn("answer 6 tokens", err)

    def test_ctrl_c_ends_the_answer_and_the_work(self):
        before = self.server.metrics()["limpid:requests_cancelled_total"]
        endless = ["--connect", self.server.url, "--ignore-eos", "-p", "hello"]
        command = [str(limpid_program.PROGRAM), "chat", *endless]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.read(20)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (130, b"(stopped)\n"))
        self.server.wait_until_idle()
        after = self.server.metrics()["limpid:requests_cancelled_total"]
        self.assertEqual(after - before, 1)

    def test_reads_an_answer_to_its_end(self):
        """To close after the last event, and before the stream's end, would be to leave: the log would say 499."""
        with Server() as server:
            for seed in range(8):
                asked = ["--connect", server.url, *CHOSEN, "-s", seed, "-st", "-p", "hello"]
                self.assertEqual(chat(*asked)[0], 0)
            server.stop()
            answers = [line for line in server.log if "/v1/chat/completions" in line]
        self.assertEqual(len(answers), 8)
        for line in answers:
            self.assertIn("/v1/chat/completions 200 ", line)

    def test_asks_whether_the_server_speaks_http(self):
        url = self.server.url.replace("http:", "https:")
        err = chat("--connect", url, "-st", "-p", "hello")[2]
        self.assertIn("does the server speak http?", err)

    def test_shows_the_servers_refusals(self):
        code, out, err = chat("--connect", self.server.url, "--top-p", 2, "-st", "-p", "hello")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("HTTP status 400", err)
        self.assertIn("top_p", err)

    def test_a_model_of_the_environment_is_not_a_model_of_the_server(self):
        done = limpid_program.outcome(
            "chat", "--connect", "http://127.0.0.1:1", "-m", "x", "-c", 200, env={"LLAMA_ARG_CTX_SIZE": "64"}
        )  # fmt: skip
        self.assertIn("--ctx-size is for a model in this process", done[2])

    def test_refuses_options_of_a_model_here(self):
        for option in (
            ["--ctx-size", 100],
            ["--device", "cpu"],
            ["--special"],
            ["--lora", "x"],
            ["--rng", "mt19937"],
        ):
            code, _, err = chat("--connect", self.server.url, *option, "-st", "-p", "hello")
            self.assertEqual(code, 1)
            self.assertIn(f"{option[0]} is for a model in this process", err)
        # What the environment says about models here is not a mistake.
        asked = ["--connect", self.server.url, "-st", "-n", 1, "-p", "hello"]
        self.assertEqual(chat(*asked, LLAMA_ARG_CTX_SIZE="9", LLAMA_ARG_MODEL="x.gguf")[0], 0)


class Keys(unittest.TestCase):
    def test_come_from_the_option_or_the_environment(self):
        with Server("--no-log", key="secret") as server:
            asked = ["--connect", server.url, "-st", "-n", 2, "-p", "hello"]
            self.assertEqual(chat(*asked, "--api-key", "secret")[0], 0)
            self.assertEqual(chat(*asked, LIMPID_API_KEY="secret")[0], 0)
            self.assertEqual(chat(*asked, OPENAI_API_KEY="secret")[0], 0)
            self.assertEqual(chat(*asked, LIMPID_API_KEY="secret", OPENAI_API_KEY="x")[0], 0)
            code, out, err = chat(*asked)
            self.assertEqual((code, out), (1, ""))
            self.assertIn("HTTP status 401: it needs a key: --api-key KEY", err)
            code, out, err = chat(*asked, "--api-key", "wrong")
            self.assertEqual((code, out), (1, ""))
            self.assertIn("HTTP status 401: it refuses the key", err)
            self.assertNotIn("wrong", err)
            self.assertEqual(chat(*asked, "--api-key", "a\nX-Other: b")[0], 1)


class Mistakes(unittest.TestCase):
    def expect(self, problem: str, url: str, *arguments: object) -> None:
        code, out, err = chat("--connect", url, "-st", "-p", "hello", *arguments)
        self.assertEqual((code, out.strip()), (1, ""))
        self.assertIn(problem, err)
        self.assertEqual(err.count("\n"), 1, err)

    def test_no_server(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.expect("does the server run, and at this port?", f"http://127.0.0.1:{port}")
        self.expect("give an address that begins with http://", "ftp://127.0.0.1")
        self.expect("the name of the server is missing", "http://")

    def test_another_server(self):
        with canned(200, "text/html", b"<html>hello</html>") as server:
            self.expect("is this a server with its API?", server.url)
            self.expect("is this a server with OpenAI's API?", server.url, "-m", "x")
        with canned(301, "text/html", b"") as server:
            self.expect("it points to another address", server.url)

    def test_no_such_model(self):
        body = {"error": {"message": "no model x"}, "data": [{"id": "a"}, {"id": "b"}]}
        with canned(404, "application/json", json.dumps(body).encode()) as server:
            self.expect("no model x", server.url, "-m", "x")
        with canned(200, "application/json", json.dumps(body).encode()) as server:
            self.expect("has 2 models; name one with -m: a, b", server.url)

    def test_streams_that_go_wrong(self):
        failed = b'data: {"error": {"message": "out of memory"}}\n\n'
        for body, problem in (
            (failed, "out of memory"),
            (b'data: {"error": {"code": 5}}\n\n', "an error without a message"),
            (b"data: {not json}\n\n", "is not JSON"),
            (b"data: []\n\n", "is not JSON"),
            (b"", "the answer breaks off"),
        ):
            with canned(200, "text/event-stream", body) as server:
                self.expect(problem, server.url, "-m", "x")

    def test_an_error_within_an_answer_has_its_own_line(self):
        with canned(200, "text/event-stream", event(delta={"content": "half"})) as server:
            code, out, err = chat("--connect", server.url, "-m", "x", stdin="hi\n")
            self.assertEqual((code, out), (1, "half\n"))
            self.assertIn("the answer breaks off", err)

    def test_reads_streams_of_other_servers(self):
        end = event(delta={}, finish_reason="stop")
        windows = b": a comment\r\nevent: x\r\n" + (HELLO + end).replace(b"\n", b"\r\n")
        odd = b'data: {"choices": [], "usage": null}\n\ndata:{"choices":[{"delta":null}]}\n\n'
        null = b'data: {"error": null, "choices": []}\n\n'
        for body in (
            HELLO + end,
            windows,
            null + HELLO + end,
            odd + HELLO + end + b"data: [DONE]\n\n",
        ):
            with canned(200, "text/event-stream; charset=utf-8", body) as server:
                done = chat("--connect", server.url, "-m", "x", "-st", "-p", "hi", "-s", 3)
                self.assertEqual(done, (0, "hello\n", ""))
                asked = json.loads(server.asked[0])
                self.assertEqual(
                    {name: asked[name] for name in ("model", "stream", "seed")},
                    {"model": "x", "stream": True, "seed": 3},
                )
                self.assertNotIn("temperature", asked)  # the server's own
                self.assertEqual([m["role"] for m in asked["messages"]], ["system", "user"])

    def test_does_not_wait_for_a_stream_that_stays_open(self):
        header = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def answer() -> None:
                client = listener.accept()[0]
                with client:
                    client.recv(65536)
                    client.sendall(header + HELLO + b"data: [DONE]\n\n")
                    while client.recv(65536):  # until the client closes
                        pass

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            done = chat("--connect", url, "-m", "x", "-st", "-p", "hi")
            self.assertEqual(done, (0, "hello\n", ""))
            thread.join(60)


@unittest.skipUnless(shutil.which("openssl"), "needs openssl")
class Tls(unittest.TestCase):
    def test_speaks_https(self):
        with tempfile.TemporaryDirectory() as folder:
            key, certificate = make_certificate(folder)
            with Server("--ssl-key-file", key, "--ssl-cert-file", certificate) as server:
                asked = ["--connect", server.url, "-st", "-n", 2, "-p", "hello"]
                self.assertEqual(chat(*asked, SSL_CERT_FILE=str(certificate))[0], 0)
                code, _, err = chat(*asked)
                self.assertEqual(code, 1)
                self.assertIn("certificate", err)


if __name__ == "__main__":
    limpid_program.main()
