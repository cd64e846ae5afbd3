"""`limpid serve` with several models: their names, and what is loaded when."""

import concurrent.futures
import pathlib
import shutil
import tempfile
import unittest

import limpid_program
import ollama
import openai
from limpid_server import TINY, Server

GREEDY = {"prompt": "the world", "temperature": 0, "max_tokens": 8}


class SeveralModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        shutil.copy(TINY, folder / "first.gguf")
        shutil.copy(TINY, folder / "second.gguf")
        (folder / "third").mkdir()
        shutil.copy(TINY, folder / "third" / "third-00001-of-00001.gguf")
        (folder / "broken.gguf").write_text("GGUF and nothing else")
        (folder / "mmproj-first.gguf").write_text("not ours")
        cls.folder = folder

    def serve(self, *flags: object, model=None, **options: str) -> Server:
        return self.enterContext(Server(*flags, model=model or self.folder, **options))

    def test_a_request_chooses_its_model(self):
        server = self.serve()
        self.assertEqual(list(server.states()), ["first", "second", "third"])
        self.assertEqual(set(server.states().values()), {"unloaded"})
        answer = server.post("/v1/completions", {**GREEDY, "model": "second"})[1]
        self.assertEqual(answer["model"], "second")
        self.assertEqual(server.states()["second"], "loaded")
        self.assertEqual(server.post("/v1/completions", GREEDY)[1]["model"], "first")
        self.assertEqual(server.states()["third"], "unloaded")
        self.assertIn("broken is left out", "".join(server.log))

    def test_a_model_that_cannot_be_loaded_is_not_the_fault_of_a_request(self):
        server = self.serve()
        path = self.folder / "first.gguf"
        kept = path.rename(self.folder / "first.kept")
        status, answer = server.post("/v1/completions", GREEDY)
        kept.rename(path)
        self.assertEqual((status, answer["error"]["type"]), (500, "server_error"))
        self.assertNotIn(str(self.folder), str(answer))
        self.assertEqual(server.post("/v1/completions", GREEDY)[0], 200)

    def test_why_a_single_model_cannot_be_loaded_again_is_in_the_log(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(shutil.copy(TINY, folder))
            server = self.serve(model=path)
            server.post("/models/unload", {"model": path.stem})
            server.wait_for_states(**{path.stem: "unloaded"})
            path.unlink()
            self.assertEqual(server.post("/completion", GREEDY)[0], 500)
            server.stop()
        log = "".join(server.log)
        self.assertIn(f"cannot load {path.stem}: ", log)
        self.assertNotIn("is loaded, in", log)

    def test_predict_answers_with_one_model(self):
        server = self.serve()
        asked = {"@requestFormat": "completion", "model": "second", **GREEDY}
        told = server.post("/predict", {"instances": [asked]})[1]["predictions"][0]
        self.assertEqual(told["error"]["param"], "instances[0].model")
        told = server.post("/predict?model=second", {"instances": [asked]})[1]["predictions"][0]
        self.assertEqual(told["model"], "second")
        # The answers let the model go: it can be unloaded, and loaded again.
        self.assertTrue(server.post("/models/unload", {"model": "second"})[1]["success"])
        server.wait_for_states(second="unloaded")
        self.assertEqual(server.post("/v1/completions", {**GREEDY, "model": "second"})[0], 200)

    def test_the_body_decides_where_it_names_a_model(self):
        server = self.serve()
        path = "/v1/completions?model=third"
        answer = server.post(path, {**GREEDY, "model": "second"})[1]
        self.assertEqual(answer["model"], "second")
        self.assertEqual(server.post(path, {**GREEDY, "model": "gpt-4"})[0], 404)
        self.assertEqual(server.post(path, GREEDY)[1]["model"], "third")

    def test_a_folder_has_its_own_name(self):
        server = self.serve(model=f"{limpid_program.DATA}/golden/hugging_face/qwen3/")
        self.assertEqual(list(server.states()), ["qwen3"])

    def test_a_name_with_of_is_not_a_part(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(TINY, pathlib.Path(folder) / "story-queen-of-hearts.gguf")
            server = self.serve(model=folder)
            self.assertEqual(list(server.states()), ["story-queen-of-hearts"])

    def test_an_unknown_name_is_an_error_in_every_api(self):
        server = self.serve()
        client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
        with self.assertRaises(openai.NotFoundError) as caught:
            client.completions.create(model="gpt-4", prompt="x")
        self.assertEqual(
            (caught.exception.code, caught.exception.param), ("model_not_found", "model")
        )
        with self.assertRaises(ollama.ResponseError) as refused:
            ollama.Client(server.url).generate("gpt-4", "x")
        self.assertEqual(refused.exception.status_code, 404)
        self.assertEqual(server.get("/props?model=gpt-4")[0], 404)
        self.assertEqual(server.get("/metrics?model=gpt-4")[0], 404)
        hello = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1}
        status, answer = server.post("/v1/messages", {**hello, "model": "gpt-4"})
        self.assertEqual((status, answer["error"]["type"]), (404, "not_found_error"))
        listed = [model.model for model in ollama.Client(server.url).list().models]
        self.assertEqual(listed, ["first", "second", "third"])

    def test_facts_of_a_model_do_not_load_it(self):
        server = self.serve()
        empty = {"system": "", "template": "", "options": None, "verbose": False}
        for names in ({"name": "second"}, {"model": "second"}, {"model": "second", "name": ""}):
            status, answer = server.post("/api/show", {**names, **empty})
            self.assertEqual(status, 200, names)
        self.assertEqual(set(server.states().values()), {"unloaded"})
        self.assertEqual(answer["template"], server.get("/props?model=second")[1]["chat_template"])
        self.assertEqual(server.post("/api/show", {"name": "none"})[0], 404)
        for wrong in ({"verbose": "yes"}, {"system": "Be kind."}, {"other": ""}):
            self.assertEqual(server.post("/api/show", {"name": "second", **wrong})[0], 400, wrong)

    def test_what_is_not_used_makes_room(self):
        server = self.serve("--models-max", 2)
        for name in ("first", "second", "third"):
            self.assertEqual(server.post("/completion", {**GREEDY, "model": name})[0], 200)
        expected = {"first": "unloaded", "second": "loaded", "third": "loaded"}
        self.assertEqual(server.states(), expected)
        props = server.get("/props?model=first")[1]
        self.assertEqual(props["model_alias"], "first")
        self.assertEqual(server.states()["second"], "unloaded")
        metrics = server.metrics()  # what an unloaded model has counted stays
        self.assertEqual(metrics['llamacpp:tokens_predicted_total{model="second"}'], 8)
        self.assertIn("llamacpp:tokens_predicted_total", server.get("/metrics?model=second")[1])

    def test_many_ask_while_models_come_and_go(self):
        server = self.serve("--models-max", 1)
        names = ["first", "second", "third"] * 8

        def ask(name: str) -> tuple[str, str]:
            answer = server.post("/v1/completions", {**GREEDY, "model": name})[1]
            return answer["model"], answer["choices"][0]["text"]

        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            answers = list(pool.map(ask, names))
        self.assertEqual([name for name, _ in answers], names)
        self.assertEqual(len({text for _, text in answers}), 1)  # three names of one file
        self.assertEqual(list(server.states().values()).count("loaded"), 1)

    def test_loads_and_unloads_by_request(self):
        server = self.serve("--no-models-autoload", "--api-key", "k", key="k")
        self.assertEqual(server.post("/completion", {**GREEDY, "model": "second"})[0], 400)
        self.assertEqual(server.post("/models/load", {"model": "second"})[1], {"success": True})
        server.wait_for_states(second="loaded")
        self.assertEqual(server.post("/completion", {**GREEDY, "model": "second"})[0], 200)
        self.assertEqual(server.post("/models/unload", {"model": "second"})[1], {"success": True})
        self.assertEqual(server.post("/models/unload", {"model": "first"})[0], 400)
        self.assertEqual(server.post("/models/unload", {})[0], 400)
        for action in ("load", "unload"):
            body = {"model": "second", "extra_args": ["-c", "64"]}
            status, answer = server.post(f"/models/{action}", body)
            self.assertEqual((status, answer["error"]["param"]), (400, "extra_args"))

    def test_names_from_the_command_line(self):
        server = self.serve("--alias", "a,b", model=[TINY, self.folder / "first.gguf"])
        self.assertEqual(list(server.states()), ["a", "b"])
        self.assertEqual(server.post("/completion", {**GREEDY, "model": "b"})[1]["model"], "b")
        for flags, words in (
            (["-m", TINY, "-m", TINY], "both called tiny_chat"),
            (
                ["-m", TINY, "-m", self.folder / "first.gguf", "--alias", "a,b,c"],
                "--alias has 3 names, and there are 2 models",
            ),
            (["--models-dir", limpid_program.DATA / "sampler"], "holds no models"),
            (["-m", self.folder / "broken.gguf"], "broken.gguf"),
        ):
            code, out, error = limpid_program.outcome("serve", *flags, "--port", 0)
            self.assertEqual((code != 0, out), (True, ""), flags)
            self.assertIn(words, error)


if __name__ == "__main__":
    limpid_program.main()
