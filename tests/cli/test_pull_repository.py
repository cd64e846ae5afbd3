"""`limpid pull ORGANISATION/MODEL` from a server of our own that breaks connections, forgets ranges and sends rubbish."""

import contextlib
import fcntl
import hashlib
import http.server
import json
import os
import pathlib
import random
import struct
import subprocess
import tempfile
import threading
import unittest

import limpid_program

REVISION = "0123456789abcdef0123456789abcdef01234567"
WEIGHTS = random.Random(1).randbytes(300_000)
DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "cli"
TINY = DATA / "tiny_chat.gguf"


def in_two_parts(model: bytes) -> tuple[bytes, bytes]:
    """A GGUF file as two: all of `model`, and nothing but the keys that say so."""

    def key(name: str, value: int) -> bytes:
        return struct.pack("<Q", len(name)) + name.encode() + struct.pack("<II", 4, value)

    magic, n_tensors, n_keys = struct.unpack_from("<8sQQ", model)
    keys = [key("split.no", 0), key("split.count", 2), key("split.tensors.count", n_tensors)]
    first = struct.pack("<8sQQ", magic, n_tensors, n_keys + 3) + b"".join(keys) + model[24:]
    second = struct.pack("<8sQQ", magic, 0, 2) + key("split.no", 1) + key("split.count", 2)
    return first, second


class Hub(http.server.ThreadingHTTPServer):
    """One repository, org/model. What goes wrong is set from outside."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {"config.json": b'{"a": 1}', "model.safetensors": WEIGHTS}
        self.large = {"model.safetensors"}  # those whose SHA-256 the hub knows
        self.extra = []  # names that are listed and not there
        self.break_after = []  # bytes after which the next connections break
        self.ranges = True
        self.token = None
        self.damaged = set()
        self.requests = []  # (path, range)

    def handle_error(self, request, client_address):
        """A client that leaves is part of these tests."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def listing(self) -> bytes:
        siblings = []
        for name, content in self.files.items():
            entry = {"rfilename": name, "size": len(content)}
            if name in self.large:
                digest = hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"sha256": digest, "size": len(content)}
            siblings.append(entry)
        siblings += [{"rfilename": name, "size": 1} for name in self.extra]
        return json.dumps({"sha": REVISION, "siblings": siblings}).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, *_):
        pass

    def send(self, status: int, body: bytes, headers=()) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        limit = len(body)
        if "/resolve/" in self.path and self.server.break_after and status < 300:
            limit = self.server.break_after.pop(0)
        self.wfile.write(body[:limit])
        if limit < len(body):
            self.close_connection = True

    def do_GET(self):  # noqa: N802 (the base class has that name)
        wanted = self.headers.get("Range")
        self.server.requests.append((self.path, wanted))
        if self.server.token and self.headers.get("Authorization") != f"Bearer {self.server.token}":
            return self.send(401, b"who are you")
        if self.path.startswith("/api/models/org/model/revision/"):
            return self.send(200, self.server.listing())
        name = self.path.removeprefix(f"/org/model/resolve/{REVISION}/")
        if name not in self.server.files:
            return self.send(404, b"not here")
        content = self.server.files[name]
        if name in self.server.damaged:
            content = bytes(len(content))
        if wanted is None or not self.server.ranges:
            return self.send(200, content)
        first = int(wanted.removeprefix("bytes=").split("-")[0])
        place = f"bytes {first}-{len(content) - 1}/{len(content)}"
        return self.send(206, content[first:], [("Content-Range", place)])


class Pull(unittest.TestCase):
    def setUp(self):
        self.hub = Hub()
        threading.Thread(target=self.hub.serve_forever, daemon=True).start()
        self.addCleanup(self.hub.server_close)
        self.addCleanup(self.hub.shutdown)
        self.cache = self.enterContext(tempfile.TemporaryDirectory())
        self.folder = pathlib.Path(self.cache) / "limpid" / "models" / "org" / "model"

    def program(self, *arguments: object, env: dict | None = None):
        names = {"PATH", "HOME", "LD_LIBRARY_PATH"}
        kept = {name: value for name, value in os.environ.items() if name in names}
        done = subprocess.run(
            [str(limpid_program.PROGRAM), *map(str, arguments)],
            capture_output=True,
            timeout=120,
            env={**kept, "XDG_CACHE_HOME": self.cache, "HF_ENDPOINT": self.hub.url, **(env or {})},
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def pull(self, *arguments: object, **options):
        return self.program("pull", "org/model", *arguments, **options)

    def refused(self, *words: str, arguments=(), **options):
        code, out, err = self.pull(*arguments, **options)
        self.assertEqual((code, out), (1, ""), err)
        self.assertRegex(err, r"\Alimpid: [^\n]+\n\Z")
        for word in words:
            self.assertIn(word, err)

    def fetched(self, name: str) -> list:
        return [wanted for path, wanted in self.hub.requests if path.endswith("/" + name)]

    def test_files_arrive_and_their_folder_is_named(self):
        self.hub.files |= {"tokenizer.json": b"{}", "README.md": b"text", "onnx/model.onnx": b"no"}
        code, out, err = self.pull()
        self.assertEqual((code, out.strip()), (0, str(self.folder)), err)
        names = {path.name for path in self.folder.iterdir() if path.suffix != ".verified"}
        self.assertEqual(names, {"config.json", "tokenizer.json", "model.safetensors"})
        self.assertEqual((self.folder / "model.safetensors").read_bytes(), WEIGHTS)

    def test_the_pooling_of_an_embedding_model_comes_too(self):
        pooling = "1_Pooling/config.json"
        self.hub.files |= {pooling: b'{"pooling_mode": "mean"}', "2_Normalize/config.json": b"{}"}
        code, _, err = self.pull()
        self.assertEqual(code, 0, err)
        self.assertEqual((self.folder / pooling).read_bytes(), self.hub.files[pooling])
        self.assertFalse((self.folder / "2_Normalize").exists())
        self.program("pull", "--remove", "org/model")
        self.assertFalse(self.folder.exists())

    def test_what_is_here_is_not_fetched_again(self):
        self.pull()
        self.pull()
        self.assertEqual(len(self.fetched("model.safetensors")), 1)
        self.hub.files["model.safetensors"] = WEIGHTS[::-1]
        self.pull()
        self.assertEqual((self.folder / "model.safetensors").read_bytes(), WEIGHTS[::-1])

    def test_broken_connections_are_taken_up_where_they_broke(self):
        self.hub.files.pop("config.json")
        self.hub.break_after = [100_000, 50_000, 0, 70_000]
        code, _, err = self.pull()
        self.assertEqual(code, 0, err)
        self.assertEqual((self.folder / "model.safetensors").read_bytes(), WEIGHTS)
        ranges = self.fetched("model.safetensors")
        self.assertEqual(ranges[0], None)
        self.assertTrue(all(wanted.startswith("bytes=") for wanted in ranges[1:]), ranges)
        self.assertEqual(len(ranges), 5)

    def test_a_later_call_goes_on(self):
        self.hub.files.pop("config.json")
        self.hub.break_after = [100_000] + [0] * 20
        self.refused("100000 of 300000 bytes", "go on")
        self.hub.break_after = []
        self.hub.requests.clear()
        code, _, err = self.pull()
        self.assertEqual(code, 0, err)
        self.assertEqual(self.fetched("model.safetensors"), ["bytes=100000-"])
        self.assertEqual((self.folder / "model.safetensors").read_bytes(), WEIGHTS)

    def test_a_server_without_ranges_is_asked_for_all(self):
        self.hub.files.pop("config.json")
        self.hub.ranges = False
        self.hub.break_after = [100_000]
        code, _, err = self.pull()
        self.assertEqual(code, 0, err)
        self.assertEqual((self.folder / "model.safetensors").read_bytes(), WEIGHTS)

    def test_a_wrong_checksum_is_an_error_and_nothing_stays(self):
        self.hub.damaged = {"model.safetensors"}
        self.refused("model.safetensors", "sha256", "deleted")
        self.assertFalse(list(self.folder.glob("model.safetensors*")))
        self.hub.damaged = set()
        self.assertEqual(self.pull()[0], 0)

    def test_a_partial_file_of_something_else_is_found_out(self):
        self.folder.mkdir(parents=True)
        (self.folder / "model.safetensors.part").write_bytes(b"x" * 1000)
        self.refused("sha256", "deleted")
        self.assertEqual(self.pull()[0], 0)

    def test_two_do_not_write_to_one_folder(self):
        self.folder.mkdir(parents=True)
        descriptor = os.open(self.folder, os.O_RDONLY)
        self.addCleanup(os.close, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        self.refused(f"another process is writing to {self.folder}")
        self.assertEqual(list(self.folder.iterdir()), [])
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        self.assertEqual(self.pull()[0], 0)

    def test_tokens(self):
        self.hub.token = "hf_secret"
        self.refused("401", "HF_TOKEN")
        self.refused("401", "not allowed", env={"HF_TOKEN": "hf_other"})
        self.assertEqual(self.pull(env={"HF_TOKEN": "hf_secret"})[0], 0)

    def test_endpoint_as_an_option(self):
        dead = {"HF_ENDPOINT": "http://127.0.0.1:9"}
        self.assertEqual(self.pull("--endpoint", self.hub.url + "/", env=dead)[0], 0)

    def test_names_that_lead_elsewhere_are_left_out(self):
        self.hub.extra = ["../../escape.safetensors", "/etc/x", ".hidden", "a b.gguf", "a\x1b.gguf"]
        code, _, err = self.pull()
        self.assertEqual(code, 0, err)
        outside = {path.name for path in pathlib.Path(self.cache).rglob("*") if path.is_file()}
        self.assertFalse({"escape.safetensors", "x", ".hidden"} & outside)

    def test_a_repository_of_gguf_files(self):
        self.hub.files = {"tiny-Q8_0.gguf": TINY.read_bytes(), "tiny-F16.gguf": b"GGUF"}
        self.hub.large = set(self.hub.files)
        self.refused("--file", "tiny-Q8_0.gguf, tiny-F16.gguf")
        self.refused("no file other.gguf", arguments=["--file", "other.gguf"])
        code, out, err = self.pull("--file", "tiny-Q8_0.gguf")
        self.assertEqual((code, out.strip()), (0, str(self.folder / "tiny-Q8_0.gguf")), err)
        options = ["-p", "the", "-n", "3", "--temp", "0", "--json"]
        code, out, err = self.program("run", "-m", "org/model", *options)
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["timings"]["n_generated"], 3)

    def test_the_vision_part_of_a_model_is_no_choice(self):
        self.hub.files = {"mmproj-tiny.gguf": b"GGUF", "tiny-F16.gguf": TINY.read_bytes()}
        code, out, err = self.pull()
        self.assertEqual((code, out.strip()), (0, str(self.folder / "tiny-F16.gguf")), err)

    def test_a_mark_does_not_go_where_a_link_leads(self):
        self.folder.mkdir(parents=True)
        victim = pathlib.Path(self.cache) / "victim"
        victim.write_text("kept")
        mark = self.folder / "model.safetensors.verified"
        mark.symlink_to(victim)
        self.assertEqual(self.pull()[0], 0)
        self.assertEqual(victim.read_text(), "kept")
        self.assertFalse(mark.is_symlink())
        self.assertIn(hashlib.sha256(WEIGHTS).hexdigest(), mark.read_text())

    def test_what_is_installed_is_listed_and_removed(self):
        _, before, _ = self.program("pull", "--list")
        self.assertRegex(before, r"(?m)^smollm2 +98\.4 MB  -  ")
        self.assertNotIn("org/model", before)
        self.pull()
        n_bytes = sum(path.stat().st_size for path in self.folder.iterdir())
        (self.folder / "notes.txt").write_text("mine")
        _, out, _ = self.program("pull", "--list")
        line = next(line for line in out.splitlines() if line.startswith("org/model "))
        self.assertEqual(
            line.split()[1:], [f"{n_bytes / 1e3:.1f}", "kB", "installed", str(self.folder)]
        )
        code, out, err = self.program("pull", "--remove", "org/model")
        self.assertEqual((code, out), (0, ""))
        self.assertIn(str(self.folder), err)
        # What pull has not brought stays.
        self.assertEqual([path.name for path in self.folder.iterdir()], ["notes.txt"])
        self.assertEqual(self.program("pull", "--list")[1], before)
        (self.folder / "notes.txt").unlink()
        self.pull()
        self.program("pull", "--remove", "org/model")
        self.assertFalse(self.folder.parent.exists())

    def test_other_safetensors_do_not_hide_a_gguf(self):
        self.hub.files = {"tiny.gguf": TINY.read_bytes(), "vision.safetensors": b"x"}
        self.hub.large = set(self.hub.files)
        self.assertTrue(self.pull()[1].strip().endswith("tiny.gguf"))

    def test_a_part_is_not_installed(self):
        self.folder.mkdir(parents=True)
        (self.folder / "model.safetensors.part").write_bytes(b"x")
        self.assertRegex(self.program("pull", "--list")[1], r"org/model .* partial ")

    def test_the_same_command_goes_on(self):
        self.hub.break_after = [8, 1000] + [0] * 20
        self.assertIn("run the same again", self.program("run", "-hf", "org/model", "-p", "x")[2])
        self.hub.break_after = []
        self.hub.requests.clear()
        self.program("run", "-hf", "org/model", "-p", "x")
        self.assertEqual(self.fetched("model.safetensors"), ["bytes=1000-"])

    def test_a_repository_in_place_of_a_model(self):
        self.hub.files = {"tiny-Q8_0.gguf": TINY.read_bytes(), "tiny-F16.gguf": b"GGUF"}
        self.hub.large = set(self.hub.files)
        options = ["-p", "the", "-n", "3", "--temp", "0", "--json"]
        code, _, err = self.program("run", "-hf", "org/model:q8_0", "--offline", *options)
        self.assertEqual(code, 1)
        self.assertIn("--offline forbids", err)
        for offline in ([], ["--offline"]):
            code, out, err = self.program("run", "-hf", "org/model:q8_0", *offline, *options)
            self.assertEqual(code, 0, err)
            self.assertEqual(json.loads(out)["timings"]["n_generated"], 3)
        self.assertEqual(len(self.fetched("tiny-Q8_0.gguf")), 1)
        self.assertEqual(len(self.fetched("tiny-F16.gguf")), 0)
        code, _, err = self.program("run", "-hf", "org/model:q2_k", *options)
        self.assertEqual(code, 1)
        self.assertIn("org/model has no .gguf of type q2_k: tiny-Q8_0.gguf, tiny-F16.gguf", err)
        # The file by its name, and the model by the variable that llama.cpp reads.
        code, out, err = self.program(
            "tokenize",
            "-hff",
            "tiny-Q8_0.gguf",
            "-p",
            "the",
            env={"LLAMA_ARG_HF_REPO": "org/model"},
        )
        self.assertEqual(code, 0, err)
        self.assertEqual(out, self.program("tokenize", "-m", TINY, "-p", "the")[1])
        # It has a name where a model is named.
        name = "org/model:q8_0"
        code, out, err = self.program("tokenize", "-hf", name, "-p", "the", "--compare", TINY)
        self.assertEqual(code, 0, err)
        self.assertTrue(out.startswith(f"{name} "), out)

    def test_a_gguf_in_parts_is_fetched_whole(self):
        whole = DATA / "vocabulary.gguf"
        names = [f"words-Q8_0-0000{i}-of-00002.gguf" for i in (1, 2)]
        parts = in_two_parts(whole.read_bytes())
        self.hub.files = dict(reversed(list(zip(names, parts, strict=True))))
        self.hub.large = set(names)

        def ids(*model: object):
            return self.program("tokenize", *model, "-p", "the")

        expected = ids("-m", whole)
        self.assertEqual(expected[0], 0, expected[2])
        self.assertEqual(ids("-hf", "org/model:q8_0")[:2], expected[:2])
        # The part that is missing is fetched, and only that.
        (self.folder / names[1]).unlink()
        code, _, err = ids("-hf", "org/model", "--offline")
        self.assertEqual(code, 1)
        self.assertIn("--offline forbids", err)
        self.assertEqual(ids("-hf", "org/model")[:2], expected[:2])
        self.assertEqual([len(self.fetched(name)) for name in names], [1, 2])
        # Any part stands for all, and -m finds the first.
        for arguments in ([], ["--file", names[1]]):
            code, out, err = self.pull(*arguments)
            self.assertEqual((code, out.strip()), (0, str(self.folder / names[0])), err)
        self.assertEqual(ids("-m", "org/model")[:2], expected[:2])
        del self.hub.files[names[1]]
        self.refused(f"org/model has {names[0]} but not {names[1]}")

    def test_a_revision_may_have_slashes(self):
        code, out, err = self.pull("--revision", "refs/pr/1")
        self.assertEqual((code, out.strip()), (0, str(self.folder)), err)
        listing = "/api/models/org/model/revision/refs%2Fpr%2F1?blobs=true"
        self.assertEqual(self.hub.requests[0][0], listing)
        for revision in ("/refs", "refs/", "refs//1", "../main", "refs/../1", "a%2Fb"):
            self.refused("branch", arguments=["--revision", revision])

    def test_what_cannot_be_had_is_said(self):
        self.hub.files = {"config.json": b"{}"}
        self.refused("neither model.safetensors nor a .gguf")
        code, _, err = self.program("pull", "org/nothing")
        self.assertEqual(code, 1)
        self.assertIn("404", err)
        self.refused("begin with https://", arguments=["--endpoint", "ftp://x"])
        self.refused("branch", arguments=["--revision", "a/../b"])
        code, _, err = self.program("run", "-m", "org/never", "-p", "x")
        self.assertIn("limpid pull org/never", err)
        with contextlib.suppress(FileNotFoundError):
            self.assertFalse(list(self.folder.glob("*.safetensors")))


if __name__ == "__main__":
    limpid_program.main()
