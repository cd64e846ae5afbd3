"""`limpid serve --lora`: each request says how much each adapter counts, and has its own answer."""

import concurrent.futures
import json
import pathlib
import tempfile
import unittest

import limpid_program
import numpy
import openai
from limpid_server import TINY, Server
from safetensors.numpy import save_file

D_MODEL, N_LAYERS, RANK = 64, 2, 4
ASKED = {"prompt": "the world", "temperature": 1, "seed": 3, "max_tokens": 24}


def make_adapter(folder: pathlib.Path, seed: int) -> pathlib.Path:
    """PEFT's layout, with numbers that change every answer."""
    folder.mkdir()
    random = numpy.random.default_rng(seed)
    tensors = {}
    for layer in range(N_LAYERS):
        for name, shape in (("lora_A", (RANK, D_MODEL)), ("lora_B", (D_MODEL, RANK))):
            key = f"base_model.model.model.layers.{layer}.self_attn.q_proj.{name}.weight"
            tensors[key] = random.uniform(-1, 1, shape).astype(numpy.float32)
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": 8, "target_modules": ["q_proj"]}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder


def said_by_command_line(*lora: object) -> str:
    run = ["run", "-m", TINY, "-p", ASKED["prompt"], "--temp", 1, "-s", 3, "-n", 24]
    return limpid_program.run_json(*run, "--json", *lora)["text"]


class Adapters(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.poet, cls.clerk = (make_adapter(folder / name, i) for i, name in enumerate(("p", "c")))
        cls.plain = said_by_command_line()
        cls.expected = [  # what a request names, and what the command line says with it
            ([{"id": 0, "scale": 0}], cls.plain),
            ([{"id": 0, "scale": 0.5}], said_by_command_line("--lora", f"{cls.poet}=0.5")),
            ([{"id": 1}], said_by_command_line("--lora", cls.clerk)),
            (
                [{"id": 0, "scale": -1}, {"id": 1, "scale": 2}],
                said_by_command_line("--lora-scaled", f"{cls.poet}:-1,{cls.clerk}:2"),
            ),
        ]

    def setUp(self) -> None:
        flags = ["--lora", self.poet, "--lora", f"{self.clerk}=0.25"]
        self.server = self.enterContext(Server(*flags))

    def complete(self, **changes: object) -> str:
        status, answer = self.server.post("/completion", {**ASKED, **changes})
        self.assertEqual(status, 200, answer)
        return answer["content"]

    def test_each_request_has_its_own_adapters(self):
        self.assertEqual(len({text for _, text in self.expected}), len(self.expected))
        for scales, text in self.expected:
            self.assertEqual(self.complete(lora=scales), text, scales)

    def test_requests_do_not_mix(self):
        wanted = self.expected * 8
        with concurrent.futures.ThreadPoolExecutor(len(wanted)) as pool:
            texts = list(pool.map(lambda asked: self.complete(lora=asked[0]), wanted))
        self.assertEqual(texts, [text for _, text in wanted])

    def test_scales_of_requests_that_name_none(self):
        default = said_by_command_line("--lora", self.poet, "--lora", f"{self.clerk}=0.25")
        self.assertEqual(self.complete(), default)
        self.assertEqual(self.complete(lora=[]), default)
        adapters = self.server.get("/lora-adapters")[1]
        self.assertEqual([(one["id"], one["scale"]) for one in adapters], [(0, 1), (1, 0.25)])
        scales, text = self.expected[1]
        self.assertEqual(self.server.post("/lora-adapters", scales)[1], {"success": True})
        self.assertEqual(self.complete(), text)
        self.assertEqual(self.server.get("/lora-adapters")[1][1]["scale"], 0)
        self.server.post("/lora-adapters", [])
        self.assertEqual(self.complete(), self.plain)

    def test_other_apis_take_them_too(self):
        client = openai.OpenAI(base_url=self.server.url + "/v1", api_key="none")
        scales, text = self.expected[2]
        answer = client.completions.create(model="x", **ASKED, extra_body={"lora": scales})
        self.assertEqual(answer.choices[0].text, text)

    def test_says_what_is_wrong(self):
        for scales, param in (
            ([{"id": 2}], "lora[0].id"),
            ([{"scale": 1}], "lora[0].id"),
            ([{"id": 0, "scale": "much"}], "lora[0].scale"),
            ([{"id": 0, "size": 1}], "lora[0].size"),
        ):
            status, answer = self.server.post("/completion", {**ASKED, "lora": scales})
            self.assertEqual((status, answer["error"]["param"]), (400, param))
        self.assertEqual(self.server.metrics()["limpid:requests_total"], 0)  # refused before
        for body in ([{"id": 9}], {"id": 0}, b'[],"a":1'):
            self.assertEqual(self.server.post("/lora-adapters", body)[0], 400)
        message = self.server.post("/lora-adapters", {})[1]["error"]["message"]
        self.assertEqual(message, "the body must be an array of objects")

    def test_explains_the_model_that_answers(self):
        asked = {"messages": [{"role": "user", "content": "hello"}], "answer": "the world"}
        status, answer = self.server.post("/explain", asked)
        self.assertEqual(status, 400)
        self.assertIn("scale", answer["error"]["message"])
        self.server.post("/lora-adapters", [{"id": 0}, {"id": 1}])
        self.assertEqual(self.server.post("/explain", asked)[0], 200)

    def test_adapters_may_be_off_at_first(self):
        with Server("--lora", self.poet, "--lora-init-without-apply") as server:
            self.assertEqual(server.post("/completion", ASKED)[1]["content"], self.plain)
        code, _, error = limpid_program.outcome(
            "serve", "-m", TINY, "-m", self.poet, "--lora", self.poet, "--port", 0
        )
        self.assertNotEqual((code, error), (0, ""))


if __name__ == "__main__":
    limpid_program.main()
