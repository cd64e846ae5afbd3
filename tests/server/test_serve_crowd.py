"""One scheduler behind `limpid serve`: an answer is the same alone, in a crowd, cached or not, preempted or not."""

import base64
import concurrent.futures
import pathlib
import random
import re
import shutil
import struct
import tempfile
import unittest

import limpid_program
from limpid_server import TINY, Server

LONG = "the sea and the world " * 12


def requests(n: int) -> list[dict]:
    chosen = random.Random(1)
    return [
        {
            "prompt": LONG[: chosen.randrange(180, 264) if i % 2 else i] + str(i),
            "n_predict": chosen.randrange(40, 60) if i % 2 else chosen.randrange(140, 200),
            "seed": i,
            "ignore_eos": True,
            "return_tokens": True,
        }
        for i in range(n)
    ]


def ids(server: Server, body: dict) -> list[int]:
    status, answer = server.post("/completion", body)
    assert status == 200, answer
    return answer["tokens"]


class Crowd(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.asked = requests(32)
        with Server("-np", 1) as server:
            cls.alone = [ids(server, body) for body in cls.asked]

    def all_together(self, *options) -> dict:
        with Server("--metrics", "-np", 32, *options) as server:
            with concurrent.futures.ThreadPoolExecutor(32) as threads:
                for _ in range(2):  # the second time, prefixes are in the cache
                    answers = threads.map(lambda body: ids(server, body), self.asked)
                    self.assertEqual(list(answers), self.alone)
            server.wait_until_idle()  # blocks are given back after the last event is sent
            return server.metrics()

    def test_thirty_two_answers_are_those_alone(self):
        counted = self.all_together()
        self.assertGreater(counted["llamacpp:prompt_tokens_cached_total"], 0)
        self.assertEqual(counted["limpid:kv_blocks_used"], 0)

    def test_also_when_the_cache_is_too_small(self):
        counted = self.all_together("--cache-tokens", 320)
        self.assertEqual(counted["limpid:kv_blocks"], 5)

    def test_an_answer_ends_with_the_cache(self):
        with Server("--cache-tokens", 128) as server:
            body = {"prompt": "the", "n_predict": -1, "ignore_eos": True}
            self.assertEqual(server.post("/completion", body)[1]["stop_type"], "limit")

    def test_choices_of_one_request_share_the_prompt(self):
        with Server() as server:
            self.check_choices(server, {"prompt": LONG, "max_tokens": 8, "seed": 3, "n": 4})

    def check_choices(self, server: Server, body: dict) -> None:
        """Each is the answer of a request of its own."""
        choices = server.post("/v1/completions", body)[1]["choices"]
        self.assertEqual(len(choices), body["n"])
        for i, choice in enumerate(choices):
            one = server.post("/v1/completions", {**body, "n": 1, "seed": body["seed"] + i})[1]
            self.assertEqual(one["choices"][0]["text"], choice["text"])

    # Choices start in one step and grow alike: two of them need a sixth block at the same time.
    def test_an_answer_that_gives_its_place_up_goes_on_later(self):
        body = {"prompt": "the", "max_tokens": 200, "seed": 3, "n": 3, "ignore_eos": True}
        with Server("--metrics", "--cache-tokens", 320) as server:
            self.check_choices(server, body)
            server.wait_until_idle()
            counted = server.metrics()
            self.assertEqual(counted["limpid:kv_blocks"], 5)
            self.assertGreater(counted["limpid:preemptions_total"], 0)


class Embeddings(unittest.TestCase):
    def test_vectors_of_several_texts(self):
        with Server() as server:
            texts = ["the world", "hello"]
            answer = server.post("/v1/embeddings", {"input": texts})[1]
            vectors = [entry["embedding"] for entry in answer["data"]]
            for vector in vectors:
                self.assertAlmostEqual(sum(x * x for x in vector), 1, places=4)
            coded = server.post("/v1/embeddings", {"input": texts[0], "encoding_format": "base64"})[
                1
            ]
            raw = base64.b64decode(coded["data"][0]["embedding"])
            floats = struct.unpack(f"<{len(vectors[0])}f", raw)
            for a, b in zip(floats, vectors[0], strict=True):
                self.assertAlmostEqual(a, b, places=6)
            last = server.post("/v1/embeddings", {"input": texts[0], "pooling": "last"})[1]
            self.assertNotEqual(last["data"][0]["embedding"], vectors[0])
            # The first token sees no other, so its vector is that of a text which ends with it.
            ids = server.post("/tokenize", {"content": texts[0]})[1]["tokens"]
            first, alone = (
                server.post("/v1/embeddings", {"input": tokens, "pooling": pooling})[1]["data"][0]
                for tokens, pooling in ((ids, "cls"), (ids[:1], "last"))
            )
            self.assertGreater(len(ids), 1)
            self.assertEqual(first["embedding"], alone["embedding"])
            self.assertNotEqual(first["embedding"], last["data"][0]["embedding"])
        with Server("--embedding", "--pooling", "last") as server:
            answer = server.post("/v1/embeddings", {"input": texts})[1]
            self.assertEqual(answer["data"][0]["embedding"], last["data"][0]["embedding"])
            mean = server.post("/v1/embeddings", {"input": texts, "pooling": "mean"})[1]
            self.assertEqual([entry["embedding"] for entry in mean["data"]], vectors)
            ollama = server.post("/api/embed", {"input": texts})[1]
            self.assertEqual(ollama["embeddings"], [entry["embedding"] for entry in answer["data"]])

    def test_an_embedding_model_says_how_to_pool(self):
        asked = {"input": [3, 1, 4, 1, 5]}

        def embedding(server: Server, **fields) -> list[float]:
            return server.post("/v1/embeddings", asked | fields)[1]["data"][0]["embedding"]

        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name, "embedder")
            shutil.copytree(f"{limpid_program.DATA}/golden/hugging_face/qwen3", folder)
            with Server(model=folder) as server:
                mean, last = embedding(server), embedding(server, pooling="last")
            self.assertNotEqual(mean, last)
            (folder / "1_Pooling").mkdir()
            (folder / "1_Pooling/config.json").write_text('{"pooling_mode_lasttoken": true}')
            with Server(model=folder) as server:
                self.assertEqual(embedding(server), last)
                self.assertEqual(embedding(server, pooling="mean"), mean)
            with Server("--pooling", "mean", model=folder) as server:
                self.assertEqual(embedding(server), mean)

    def test_a_text_has_the_room_of_a_request(self):
        with Server("--cache-tokens", 128) as server:
            self.assertEqual(server.post("/v1/embeddings", {"input": [5] * 128})[0], 200)
            n_passes = server.metrics()["llamacpp:n_decode_total"]
            status, answer = server.post("/v1/embeddings", {"input": [5] * 129})
            self.assertEqual((status, answer["error"]["param"]), (400, "input"))
            self.assertEqual(server.metrics()["llamacpp:n_decode_total"], n_passes)

    def test_refuses_what_it_cannot_give(self):
        with Server() as server:
            for body, param in (
                ({"input": "x", "dimensions": 7}, "dimensions"),
                ({"input": "x", "pooling": "max"}, "pooling"),
                ({}, "input"),
                ({"input": []}, "input"),
            ):
                status, answer = server.post("/v1/embeddings", body)
                self.assertEqual((status, answer["error"]["param"]), (400, param))


class Slots(unittest.TestCase):
    def test_a_slot_goes_on_in_another_process(self):
        body = {"prompt": LONG[:150], "n_predict": 80, "seed": 1, "ignore_eos": True, "n_probs": 3}
        told = ("content", "completion_probabilities")
        with tempfile.TemporaryDirectory() as folder:
            with Server("--slot-save-path", folder) as server:
                first = server.post("/completion", body)[1]
                status, saved = server.post("/slots/0?action=save", {"filename": "a.kv"})
                self.assertEqual((status, saved["n_saved"]), (200, first["tokens_cached"] - 1))
                self.assertEqual((pathlib.Path(folder) / "a.kv").stat().st_size, saved["n_written"])
            with Server("--slot-save-path", folder) as server:
                restored = server.post("/slots/0?action=restore", {"filename": "a.kv"})[1]
                self.assertEqual(restored["n_restored"], saved["n_saved"])
                again = server.post("/completion", body)[1]
                self.assertEqual([again[key] for key in told], [first[key] for key in told])
                self.assertEqual(len(again["completion_probabilities"]), 80)
                self.assertEqual(again["timings"]["prompt_n"], 1)
                erased = server.post("/slots/0?action=erase", {})[1]
                self.assertGreater(erased["n_erased"], 0)

    def test_why_a_slot_cannot_be_saved_is_in_the_log(self):
        with tempfile.TemporaryDirectory() as above:
            folder = pathlib.Path(above) / "slots"
            folder.mkdir()
            with Server("--slot-save-path", folder) as server:
                server.post("/completion", {"prompt": "the", "n_predict": 1, "id_slot": 0})
                folder.rmdir()
                status, answer = server.post("/slots/0?action=save", {"filename": "a.kv"})
                self.assertEqual(status, 503)
                self.assertNotIn(above, str(answer))
                server.stop()
                self.assertRegex("".join(server.log), f"/slots/0 failed: .*{folder}")

    def test_a_request_chooses_its_slot(self):
        body = {"prompt": LONG, "n_predict": 5, "ignore_eos": True}
        file = {"filename": "a.kv"}
        with (
            tempfile.TemporaryDirectory() as folder,
            Server("--slot-save-path", folder, "-np", 3) as server,
        ):
            self.assertEqual(server.post("/completion", {**body, "id_slot": 2})[1]["id_slot"], 2)
            self.assertGreater(server.get("/slots")[1][2]["n_tokens"], 0)
            self.assertEqual(server.post("/slots/0?action=save", file)[0], 400)
            for _ in range(2):  # the second one replaces the first
                self.assertEqual(server.post("/slots/2?action=save", file)[0], 200)
            self.assertEqual(server.post("/completion", {**body, "id_slot": -1})[1]["id_slot"], 0)
            self.assertGreater(server.get("/slots")[1][0]["n_tokens"], 0)
            status, answer = server.post("/completion", {**body, "id_slot": "a"})
            self.assertEqual((status, answer["error"]["param"]), (400, "id_slot"))
            for path in ("/completion", "/v1/completions"):
                status, answer = server.post(path, {**body, "id_slot": 3})
                self.assertEqual((status, answer["error"]["param"]), (400, "id_slot"))
            stream = server.post("/completion", {**body, "id_slot": 1, "stream": True})[1]
            self.assertEqual(set(re.findall(r'"id_slot":(-?\d+)', stream)), {"1"})

    def test_refuses_other_folders_and_unknown_slots(self):
        with tempfile.TemporaryDirectory() as folder, Server("--slot-save-path", folder) as server:
            for name in ("../a", "a/b", "", ".hidden"):
                self.assertEqual(
                    server.post("/slots/0?action=save", {"filename": name})[0], 400, name
                )
            for action in ("save", "restore"):
                body = {"filename": "a", "slot": 1}
                status, answer = server.post(f"/slots/0?action={action}", body)
                self.assertEqual((status, answer["error"]["param"]), (400, "slot"))
            for slot in ("99", "-1", "x"):
                status, answer = server.post(f"/slots/{slot}?action=save", {"filename": "a"})
                self.assertEqual((status, answer["error"]["param"]), (400, "id_slot"))
            self.assertEqual(server.post("/slots/0?action=restore", {"filename": "no"})[0], 404)
            bad = pathlib.Path(folder) / "bad"
            bad.write_text("garbage")
            server.post("/completion", {"prompt": LONG, "n_predict": 1})
            for action in ("save", "restore"):
                status, answer = server.post(f"/slots/0?action={action}", {"filename": "bad"})
                self.assertEqual((status, answer["error"]["param"]), (400, "filename"))
                self.assertNotIn(folder, str(answer))
            self.assertEqual(bad.read_text(), "garbage")
            link = pathlib.Path(folder) / "link"
            link.symlink_to("nothing")
            for name in ("link", "x" * 221, "x" * 255):
                status, answer = server.post("/slots/0?action=save", {"filename": name})
                self.assertEqual((status, answer["error"]["param"]), (400, "filename"))
            self.assertTrue(link.is_symlink())
            status, _ = server.post("/slots/0?action=save", {"filename": "x" * 220})
            self.assertEqual(status, 200)
        with Server() as server:
            self.assertEqual(server.post("/slots/0?action=erase", {})[0], 501)

    def test_a_folder_that_is_missing_is_told_at_the_start(self):
        flags = ["serve", "-m", TINY, "--port", 0, "--slot-save-path", "/no/such/folder"]
        code, _, errors = limpid_program.outcome(*flags)
        self.assertNotEqual(code, 0)
        self.assertIn("/no/such/folder: the folder does not exist", errors)


if __name__ == "__main__":
    unittest.main()
