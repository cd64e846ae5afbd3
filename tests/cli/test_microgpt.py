"""`limpid microgpt` as a person and as a script meet it."""

import contextlib
import http.server
import json
import math
import os
import pathlib
import pty
import re
import resource
import subprocess
import tempfile
import threading
import unittest

import limpid_program

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHORT = ["--num_steps", "3", "--samples", "2"]


def microgpt(*arguments: object, env: dict | None = None) -> tuple[int, str, str]:
    """(exit code, standard output, standard error)"""
    command = [str(limpid_program.PROGRAM), "microgpt", *map(str, arguments)]
    environment = {**os.environ, **(env or {})}
    done = subprocess.run(command, capture_output=True, timeout=120, env=environment)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def fine(*arguments: object, env: dict | None = None) -> str:
    code, out, err = microgpt(*arguments, env=env)
    if code != 0 or err:
        raise AssertionError(f"exit {code}: {err}")
    return out


def objects(*arguments: object) -> list[dict]:
    return [json.loads(line) for line in fine("--json", *arguments).splitlines()]


class Output(unittest.TestCase):
    def test_lines_of_the_two_originals(self):
        out = fine("--num_steps", "200", "--samples", "2")
        expected = (
            r"num docs: 32033\nvocab size: 28\nnum params: 4096\n"
            r"step  100 /  200 \| loss \d\.\d{4}\nstep  200 /  200 \| loss \d\.\d{4}\n"
            r"\n--- inference \(new, hallucinated names\) ---\n"
            r"sample  1: [a-z.]*\nsample  2: [a-z.]*\n"
        )
        self.assertRegex(out, rf"\A{expected}\Z")
        out = fine("--preset", "python", *SHORT)
        self.assertIn("vocab size: 27\nnum params: 4192\nstep    1 /    3 | loss ", out)
        self.assertEqual(len(re.findall(r"^step ", out, re.MULTILINE)), 3)

    def test_python_rng_is_the_original_loss_by_loss_and_name_by_name(self):
        golden = (ROOT / "tests" / "data" / "microgpt" / "python_default.txt").read_text()
        head, samples = golden.split("samples\n")
        losses = [float(line.split()[1]) for line in head.splitlines() if line[0] != "#"]
        self.assertEqual(len(losses), 50)
        n = len(samples.splitlines())
        lines = objects("--python-rng", "--num_steps", 50, "--samples", n)
        for line, loss in zip(lines, losses, strict=False):
            self.assertTrue(math.isclose(line["loss"], loss, rel_tol=1e-9), line)
        self.assertEqual([line["text"] for line in lines[50:]], samples.splitlines())

    def test_json_is_an_object_a_step_at_full_precision(self):
        lines = objects(*SHORT)
        self.assertEqual([line.get("step") for line in lines], [1, 2, 3, None, None])
        self.assertEqual([line["sample"] for line in lines[3:]], [1, 2])
        for line in lines[:3]:
            self.assertEqual(list(line), ["step", "loss"])
        text = fine("--json", *SHORT).splitlines()[0]
        digits = re.search(r'"loss":([0-9.]+)', text)[1]
        self.assertEqual(float(digits), lines[0]["loss"])
        self.assertGreaterEqual(len(digits), 16)
        # Two engines of one model differ in the last digits only: more than 12 must be there.
        fast = objects("--engine", "fast", "--dtype", "f64", *SHORT)
        self.assertTrue(math.isclose(fast[2]["loss"], lines[2]["loss"], rel_tol=1e-12))

    def test_presets_differ_and_flags_beat_them(self):
        python = objects("--preset", "python", *SHORT)
        fsharp = objects("--preset", "fsharp", *SHORT)
        self.assertEqual(fsharp, objects(*SHORT))
        self.assertNotEqual(python[0]["loss"], fsharp[0]["loss"])
        head = fine("--preset", "python", "--block_size", "8", *SHORT)
        self.assertIn("num params: 4064\n", head)

    def test_every_number_of_the_model_is_a_flag(self):
        flags = ["--n_embd", 8, "--n_layer", 2, "--n_head", 2, "--block_size", 5]
        out = fine(*flags, "--batch_size", 2, "--learning_rate", 0.02, "--seed", 3, *SHORT)
        self.assertIn(f"num params: {2 * 28 * 8 + 5 * 8 + 2 * 12 * 8 * 8}\n", out)
        for flag in (["--seed", 3], ["--batch_size", 2], ["--learning_rate", 0.02]):
            self.assertNotEqual(objects(*flag, *SHORT)[2], objects(*SHORT)[2], flag)
        cold = [line["text"] for line in objects("--temperature", "0.00001", *SHORT)[3:]]
        self.assertEqual(cold[0], cold[1])
        self.assertEqual(len(objects("--num_steps", 1, "--samples", 7)), 8)

    def test_help_has_the_two_runs_of_the_seed(self):
        code, out, err = microgpt("--help")
        self.assertEqual((code, err), (0, ""))
        run_2 = (
            "limpid microgpt --n_embd 32 --n_layer 2 --n_head 4 --block_size 16 --num_steps 5000"
        )
        self.assertIn("examples:\n  limpid microgpt\n", out)
        self.assertIn(f"  {run_2}\n", out)
        for flag in re.findall(r"--[a-z_-]+", "".join(re.findall(r"  limpid microgpt.*", out))):
            self.assertIn(f"{flag} ", out)

    def test_a_large_model_runs_on_fast(self):
        shape = ["--n_embd", 128, "--n_layer", 5, "--batch_size", 8, "--engine", "fast"]
        out = fine(*shape, "--num_steps", 2, "--samples", 1)
        self.assertGreater(int(re.search(r"num params: (\d+)", out)[1]), 980_000)

    def test_graph_draws_the_figure_of_the_docs(self):
        with tempfile.TemporaryDirectory() as folder:
            drawn = pathlib.Path(folder) / "graph.svg"
            self.assertEqual(fine("--graph", drawn), "")
            figure = ROOT / "docs" / "microgpt-graph.svg"
            self.assertEqual(drawn.read_text(), figure.read_text())


class Errors(unittest.TestCase):
    def refused(self, *arguments: object, words: list[str]) -> None:
        code, out, err = microgpt(*arguments)
        self.assertEqual((code, out), (1, ""), err)
        self.assertRegex(err, r"\Alimpid: [^\n]+\n\Z")
        for word in words:
            self.assertIn(word, err)

    def test_wrong_values_name_the_flag(self):
        self.refused("--n_embd", 10, words=["n_head 4", "n_embd 10"])
        self.refused("--n-embd", 10, words=["n_head 4", "n_embd 10"])
        self.refused("--n_layer", 0, words=["--n_layer 0", "1"])
        self.refused("--block_size", -1, words=["--block_size -1"])
        self.refused("--n_embd", 10**12, words=["--n_embd"])
        self.refused("--num_steps", 0, words=["--num_steps 0"])
        self.refused("--batch_size", 0, words=["--batch_size 0"])
        self.refused("--samples", -1, words=["--samples -1"])
        self.refused("--temperature", 0, words=["--temperature 0"])
        self.refused("--learning_rate", "nan", words=["--learning_rate"])
        self.refused("--num_steps", "many", words=["many"])
        self.refused("--preset", "rust", words=["rust", "python", "fsharp"])
        self.refused("--engine", "slow", words=["slow", "scalar", "fast"])
        self.refused("--engine", "fast", "--dtype", "f16", words=["f16", "f32", "f64"])
        self.refused("--dtype", "f32", words=["scalar", "f64", "fast"])
        self.refused("--n_embed", 16, words=["--n_embd"])
        self.refused("--python-rng", "--preset", "fsharp", words=["--python-rng", "python"])
        self.refused("--sample-only", words=["--load"])
        for option in ("--num_steps", "--learning_rate", "--batch_size", "--data"):
            given = ("--load", "model", "--sample-only", option, 1)
            self.refused(*given, words=[option, "--sample-only does none"])
        self.refused("--data", "a", "--input_url", "b", words=["--data", "--input_url"])
        self.refused("--data", "/no/such/names", words=["/no/such/names"])
        self.refused("--load", "/no/such/model", words=["/no/such/model"])

    def test_a_run_that_diverges_is_not_a_success(self):
        for engine in ("scalar", "fast", "tensor"):
            given = ("--engine", engine, "--learning_rate", "1e30", *SHORT, "--num_steps", 9)
            code, _, err = microgpt(*given)
            self.assertEqual(code, 1)
            self.assertRegex(err, r"training diverged at step \d: the loss is (nan|inf); lower --l")

    def test_data_without_documents_or_not_utf_8(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "data.txt"
            path.write_text("\n  \n")
            self.refused("--data", path, words=["data.txt", "no document"])
            path.write_bytes(b"abc\n\xff\xfe\n")
            self.refused("--data", path, words=["data.txt", "UTF-8"])

    def test_a_folder_that_is_not_there_is_found_before_training(self):
        code, out, err = microgpt("--save", "/no/such/folder/model.safetensors", *SHORT)
        self.assertEqual(code, 1)
        self.assertIn("/no/such/folder", err)
        self.assertEqual(out, "")


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "model.safetensors"

    def test_what_is_saved_is_what_was_learned(self):
        for engine in (["--engine", "scalar"], ["--engine", "fast"]):
            with self.subTest(engine=engine):
                fine(*engine, "--num_steps", 30, "--samples", 0, "--save", self.model)
                load = ["--load", self.model, *engine]
                again = self.folder / "again.safetensors"
                out = fine(*load, "--sample-only", "--samples", 3, "--save", again)
                self.assertRegex(out, r"\A\n--- inference .* ---\n(sample  \d: .*\n){3}\Z")
                self.assertEqual(again.read_bytes(), self.model.read_bytes())
                samples = objects(*load, "--sample-only", "--samples", 3)
                self.assertEqual(
                    [f"sample {s['sample']:2}: {s['text']}" for s in samples],
                    out.splitlines()[2:],
                )
                # Learning goes on where it ended, not where it began.
                first = [line["loss"] for line in objects(*load, "--num_steps", 20, "--samples", 0)]
                fresh = [line["loss"] for line in objects("--num_steps", 20, "--samples", 0)]
                self.assertLess(sum(first), sum(fresh))

    def test_a_link_is_followed_and_the_mode_stays(self):
        self.model.write_bytes(b"old")
        self.model.chmod(0o600)
        link = self.folder / "link"
        link.symlink_to(self.model.name)
        fine("--save", link, *SHORT)
        self.assertTrue(link.is_symlink())
        self.assertEqual(self.model.stat().st_mode & 0o777, 0o600)
        fine("--load", self.model, "--sample-only")

    def test_a_film_without_room_does_not_cost_the_model(self):
        command = [limpid_program.PROGRAM, "microgpt", "--num_steps", "9", "--save", self.model]
        limit = (100_000, 100_000)  # bytes of a file
        done = subprocess.run(
            [*map(str, command), "--film", str(self.folder / "film.html")],
            capture_output=True, timeout=120, restore_signals=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
        )  # fmt: skip
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"film.html", done.stderr)
        fine("--load", self.model, "--sample-only")

    def test_shape_is_the_file_s(self):
        shape = ["--n_embd", 8, "--n_layer", 2, "--n_head", 2, "--block_size", 6]
        fine(*shape, "--save", self.model, *SHORT)
        self.assertIn(
            f"num params: {2 * 28 * 8 + 48 + 2 * 768}\n", fine("--load", self.model, *SHORT)
        )
        code, _, err = microgpt("--load", self.model, "--n_embd", 16, *SHORT)
        self.assertEqual(code, 1)
        self.assertIn("--n_embd is fixed by --load", err)

    def test_damaged_files_are_refused(self):
        fine("--save", self.model, *SHORT)
        whole = self.model.read_bytes()
        for damaged in (whole[:-1], whole[:100], b"", b"\xff" * 64):
            self.model.write_bytes(damaged)
            code, out, err = microgpt("--load", self.model, "--sample-only")
            self.assertEqual((code, out), (1, ""))
            self.assertIn("model.safetensors", err)

    def test_other_data(self):
        data = self.folder / "data.txt"
        data.write_text("абв\nваб\nбва\n")
        out = fine("--data", data, "--num_steps", 60, "--samples", 3)
        self.assertIn("num docs: 3\nvocab size: 5\n", out)
        names = re.findall(r"^sample +\d: (.*)$", out, re.MULTILINE)
        self.assertTrue(all(set(name) <= set("абв.") for name in names), names)


class Url(unittest.TestCase):
    def setUp(self):
        asked = self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                found = self.path == "/words.txt"
                body = b"abba\ncab\nbac\n" if found else b"not here"
                self.send_response(200 if found else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        cache = tempfile.TemporaryDirectory()
        self.addCleanup(cache.cleanup)
        self.cache = pathlib.Path(cache.name)
        self.env = {"XDG_CACHE_HOME": cache.name, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        self.url = f"http://127.0.0.1:{server.server_port}/words.txt"

    def test_is_fetched_once_and_kept(self):
        out = fine("--input_url", self.url, *SHORT, env=self.env)
        self.assertIn("num docs: 3\nvocab size: 5\n", out)
        self.assertEqual(self.asked, ["/words.txt"])
        self.assertEqual(fine("--input_url", self.url, *SHORT, env=self.env), out)
        self.assertEqual(self.asked, ["/words.txt"])
        kept = [path for path in self.cache.rglob("*words.txt") if path.is_file()]
        self.assertEqual([path.read_bytes() for path in kept], [b"abba\ncab\nbac\n"])

    def test_what_is_not_there_is_an_error_and_nothing_is_kept(self):
        code, out, err = microgpt("--input_url", self.url + ".gz", *SHORT, env=self.env)
        self.assertEqual((code, out), (1, ""))
        self.assertRegex(err, r"\Alimpid: cannot fetch http://127[^\n]+404[^\n]*\n\Z")
        self.assertEqual([path for path in self.cache.rglob("*") if path.is_file()], [])


class Terminal(unittest.TestCase):
    LONG = ["--n_embd", "64", "--n_layer", "2", "--num_steps", "150", "--samples", "1"]

    def run_on_terminal(self, *, stdout: bool) -> tuple[str, str]:
        """(what the terminal shows, what a pipe at standard output gets)"""
        command = [str(limpid_program.PROGRAM), "microgpt", *self.LONG]
        ours, theirs = pty.openpty()
        out = theirs if stdout else subprocess.PIPE
        process = subprocess.Popen(command, stdin=theirs, stdout=out, stderr=theirs)
        os.close(theirs)
        shown = bytearray()

        def read():
            with contextlib.suppress(OSError):  # the terminal is gone with the program
                while chunk := os.read(ours, 4096):
                    shown.extend(chunk)

        reader = threading.Thread(target=read)
        reader.start()
        piped = b"" if stdout else process.stdout.read()
        self.assertEqual(process.wait(timeout=120), 0)
        reader.join(timeout=10)
        os.close(ours)
        if process.stdout:
            process.stdout.close()
        return shown.decode(), piped.decode()

    def test_progress_is_on_the_terminal_and_the_pipe_is_clean(self):
        shown, piped = self.run_on_terminal(stdout=False)
        self.assertRegex(shown, r"training.*loss \d\.\d{4}")
        self.assertEqual(piped, fine(*self.LONG))
        self.assertNotIn("\r", piped)
        self.assertNotIn("\x1b", piped)

    def test_both_on_one_terminal_do_not_mix(self):
        shown, _ = self.run_on_terminal(stdout=True)
        self.assertRegex(shown, r"training.*loss \d\.\d{4}")
        # What stands on each line in the end: what came behind the last return and erasure.
        lines = [
            re.split(r"\r|\x1b\[[0-9;]*[A-Za-z]", line)[-1]
            for line in shown.replace("\r\n", "\n").split("\n")
        ]
        self.assertEqual("\n".join(lines), fine(*self.LONG))

    def test_no_terminal_no_progress(self):
        code, _, err = microgpt(*self.LONG)
        self.assertEqual((code, err), (0, ""))


if __name__ == "__main__":
    limpid_program.main()
