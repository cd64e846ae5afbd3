"""`limpid serve --sleep-idle-seconds`: an unused model gives its memory back, and the next request wakes it."""

import json
import time
import unittest
import urllib.request

import limpid_program
from limpid_server import TINY, Server

ASKED = {"prompt": "the world " * 30, "n_predict": 8, "seed": 1, "return_tokens": True}


class Sleep(unittest.TestCase):
    def is_sleeping(self) -> bool:
        status, props = self.server.get("/props")
        self.assertEqual(status, 200)
        return props["is_sleeping"]

    # Asking does not keep it awake.
    def wait_for_sleep(self) -> None:
        self.server.wait_for_states(tiny_chat="sleeping")

    def serve(self, *flags: object, **options) -> None:
        self.server = self.enterContext(Server("--sleep-idle-seconds", 1, *flags, **options))

    def test_a_model_sleeps_and_wakes(self):
        self.serve()
        first = self.server.post("/completion", ASKED)[1]
        self.server.wait_until_idle()  # the answer is there before the request's place is free
        awake = self.server.get("/props")[1]
        counted = self.server.get("/metrics")[1]
        n_passes = self.server.metrics()["llamacpp:n_decode_total"]
        self.wait_for_sleep()
        self.assertEqual(self.server.get("/health")[0], 200)
        self.assertEqual(self.server.get("/metrics")[1], counted)
        self.assertEqual(self.server.get("/props")[1], {**awake, "is_sleeping": True})
        again = self.server.post("/completion", ASKED)[1]
        self.assertEqual(again["tokens"], first["tokens"])
        self.assertEqual(again["timings"]["cache_n"], 0)
        self.assertGreater(self.server.metrics()["llamacpp:n_decode_total"], n_passes)
        self.assertFalse(self.is_sleeping())

    def test_an_answer_under_way_keeps_its_model_awake(self):
        self.serve("--context-shift")
        endless = {"prompt": "the", "n_predict": -1, "ignore_eos": True, "stream": True}
        request = urllib.request.Request(
            self.server.url + "/completion", json.dumps(endless).encode()
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            until = time.monotonic() + 2.5
            while time.monotonic() < until:
                self.assertTrue(answer.readline())
            self.assertFalse(self.is_sleeping())
        self.wait_for_sleep()

    def test_of_several_models_each_sleeps_alone(self):
        flags = ["--alias", "a,b", "--no-models-autoload"]
        self.serve(*flags, model=[TINY, TINY])
        self.server.post("/models/load", {"model": "b"})  # is answered before the model is there
        self.server.wait_for_states(a="unloaded", b="sleeping")
        self.assertEqual(self.server.post("/completion", {**ASKED, "model": "b"})[0], 200)
        self.assertEqual(self.server.post("/completion", {**ASKED, "model": "a"})[0], 400)

    def test_zero_seconds_are_refused(self):
        flags = ["serve", "-m", TINY, "--port", 0, "--sleep-idle-seconds", 0]
        code, _, errors = limpid_program.outcome(*flags)
        self.assertNotEqual(code, 0)
        self.assertIn("--sleep-idle-seconds 0: give 1 or more", errors)


if __name__ == "__main__":
    limpid_program.main()
