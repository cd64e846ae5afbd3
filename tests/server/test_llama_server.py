"""What scripts for llama-server expect of `limpid serve`: options, fields and errors that have its names."""

import datetime
import json
import os
import pathlib
import socket
import tempfile
import unittest
import unittest.mock
import urllib.request

import limpid_program
from limpid_server import TINY, Server, WithServer

STORIES = limpid_program.DATA / "stories260K" / "stories260K.bin"
HELLO = [{"role": "user", "content": "hello"}]
CONTEXT = ["-c", 256, "-np", 4]


def events(text: str) -> list[dict]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


class Contexts(unittest.TestCase):
    def check(self, n_ctx: int, *flags: object) -> None:
        with Server(*flags) as server:
            props = server.get("/props")[1]
            self.assertEqual(props["default_generation_settings"]["n_ctx"], n_ctx)
            slots = server.get("/slots")[1]
            self.assertEqual({slot["n_ctx"] for slot in slots}, {n_ctx})
            status, answer = server.post("/completion", {"prompt": "a" * 300, "n_predict": 1})
            self.assertEqual((status, answer["error"]["n_ctx"]), (400, n_ctx))
            asked = {"prompt": "the", "n_predict": -1, "ignore_eos": True}
            whole = server.post("/completion", asked)[1]
            self.assertEqual(whole["tokens_evaluated"] + whole["tokens_predicted"], n_ctx)
            self.assertTrue(whole["truncated"])

    def test_answers_divide_a_context_that_is_given(self):
        self.check(64, *CONTEXT)

    def test_unless_it_is_unified(self):
        self.check(256, *CONTEXT, "--kv-unified")

    def test_answers_do_not_divide_the_context_of_the_model(self):
        self.check(256, "-np", 4)

    def test_answers_do_not_divide_it_when_their_number_is_left_open(self):
        self.check(256, "-c", 256, "-np", -1)

    def test_a_context_that_is_too_small_to_be_divided(self):
        flags = ["serve", "-m", limpid_program.DATA / "cli" / "tiny_chat.gguf", "-c", 3, "-np", 4]
        code, _, errors = limpid_program.outcome(*flags, "--port", 0)
        self.assertNotEqual(code, 0)
        self.assertIn("leaves no token", errors)

    def test_a_context_that_moves(self):
        with Server(*CONTEXT, "--context-shift") as server:
            asked = {"prompt": "a" * 40, "n_predict": 90, "ignore_eos": True}
            answer = server.post("/completion", asked)[1]
            self.assertEqual((answer["tokens_predicted"], answer["truncated"]), (90, True))


class Environment(unittest.TestCase):
    """Containers are often told what to do by variables alone."""

    NUMBERS = {
        "temperature": 0.25,
        "top_k": 7,
        "top_p": 0.5,
        "min_p": 0.125,
        "repeat_penalty": 1.5,
        "presence_penalty": 0.75,
        "frequency_penalty": -0.5,
    }
    # llama-server's, which change nothing here, but must not be refused.
    IGNORED = ["JINJA", "CONT_BATCHING", "BACKEND_SAMPLING", "CACHE_IDLE_SLOTS"]

    def test_variables_are_read_as_options_are(self):
        with tempfile.TemporaryDirectory() as folder:
            keys = pathlib.Path(folder) / "keys"
            keys.write_text("secret\n")
            variables = {name.upper(): str(value) for name, value in self.NUMBERS.items()}
            variables.update(ALIAS="named", N_PARALLEL="3", N_PREDICT="5", UI="0")
            variables.update(NO_ENDPOINT_SLOTS="1", DEVICE="reference")
            variables.update(API_KEY_FILE=str(keys), **dict.fromkeys(self.IGNORED, "1"))
            named = {f"LLAMA_ARG_{name}": text for name, text in variables.items()}
            with unittest.mock.patch.dict(os.environ, named), Server() as server:
                self.check(server)

    def check(self, server: Server) -> None:
        self.assertEqual(server.get("/props")[0], 401)
        key = {"Authorization": "Bearer secret"}
        props = server.get("/props", **key)[1]
        params = props["default_generation_settings"]["params"]
        self.assertEqual({name: params[name] for name in self.NUMBERS}, self.NUMBERS)
        self.assertEqual((props["model_alias"], props["total_slots"]), ("named", 3))
        asked = {"prompt": "the", "ignore_eos": True}
        self.assertEqual(server.post("/completion", asked, **key)[1]["tokens_predicted"], 5)
        self.assertEqual(server.get("/", **key)[0], 404)  # no page
        self.assertEqual(server.get("/slots", **key)[0], 501)

    def test_a_wrong_device_is_told_with_its_variable(self):
        asked = ["run", "-m", TINY, "-p", "the", "-n", 1]
        with unittest.mock.patch.dict(os.environ, LLAMA_ARG_DEVICE="abacus"):
            code, _, errors = limpid_program.outcome(*asked)
        self.assertNotEqual(code, 0)
        self.assertIn("$LLAMA_ARG_DEVICE abacus: choose cpu", errors)


class Addresses(unittest.TestCase):
    def test_listens_on_several(self):
        try:
            with socket.socket(socket.AF_INET6) as probe:
                probe.bind(("::1", 0))
        except OSError:
            self.skipTest("needs IPv6")
        with Server("--host", "127.0.0.1,::1") as server:
            other = server.process.stdout.readline().strip()
            self.assertRegex(other, r"^http://\[::1\]:\d+$")
            self.assertEqual(other.rpartition(":")[2], server.url.rpartition(":")[2])
            for url in (server.url, other):
                with urllib.request.urlopen(url + "/health") as answer:
                    self.assertEqual(answer.status, 200)
                strange = urllib.request.Request(url + "/health", headers={"Host": "example.org"})
                self.assertEqual(server.open(strange)[0], 403)


class Templates(unittest.TestCase):
    def rendered(self, body: dict, *flags: object) -> str:
        with Server(*flags) as server:
            status, answer = server.post("/apply-template", body)
            self.assertEqual(status, 200, answer)
            return answer["prompt"]

    def test_formats_have_names(self):
        messages = [{"role": "system", "content": "Be."}, *HELLO]
        self.assertEqual(
            self.rendered({"messages": messages}, "--chat-template", "llama3"),
            "<|start_header_id|>system<|end_header_id|>\n\nBe.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n"
            "hello<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        )
        self.assertEqual(
            self.rendered({"messages": messages}, "--chat-template", "gemma"),
            "<start_of_turn>user\nBe.\n\nhello<end_of_turn>\n<start_of_turn>model\n",
        )
        for name in ("chatml", "command-r", "phi3", "zephyr"):
            prompt = self.rendered({"messages": messages}, "--chat-template", name)
            self.assertRegex(prompt, r"(?s)Be\..*hello")

    # A format begins with BOS where the model wants it, although its text does not write it.
    def test_a_format_does_not_write_what_the_tokenizer_adds(self):
        with Server("--chat-template", "chatml", "--verbose", model=STORIES) as server:
            answer = server.post("/v1/chat/completions", {"messages": HELLO, "max_tokens": 1})[1]
            self.assertTrue(answer["__verbose"]["prompt"].startswith("<s> <|im_start|>user"))

    def test_templates_hear_of_thinking_dates_and_tools(self):
        text = "{{ enable_thinking }} {{ date_string }} {{ datetime }} {{ tools | tojson if tools else 'none' }}"
        today = datetime.date.today
        before = today()
        shown = self.rendered({"messages": HELLO}, "--chat-template", text)
        days = {f"True {day:%d %b %Y} {day:%b %d %Y} none" for day in (before, today())}
        self.assertIn(shown, days)
        off = self.rendered({"messages": HELLO}, "--chat-template", text, "--reasoning", "off")
        self.assertTrue(off.startswith("False "))
        body = {"messages": HELLO, "tools": [{"a": 1}], "chat_template_kwargs": {"datetime": "x"}}
        self.assertTrue(self.rendered(body, "--chat-template", text).endswith(' x [{"a": 1}]'))


class OneServer(WithServer):
    flags = ["-b", 16, "-a", "two,one,three", "--tags", "small,chat", "--backend-sampling"]

    def test_lists_names_and_tags(self):
        model = self.server.get("/v1/models")[1]["data"][0]
        self.assertEqual(model["id"], "one")
        self.assertEqual(model["aliases"], ["one", "three", "two"])
        self.assertEqual(model["tags"], ["chat", "small"])

    def test_one_cannot_answer_and_continue(self):
        messages = [*HELLO, {"role": "assistant", "content": "Well"}]
        body = {"messages": messages, "add_generation_prompt": True, "max_tokens": 1}
        self.assertEqual(self.server.post("/v1/chat/completions", body)[0], 200)
        body["continue_final_message"] = True
        status, answer = self.server.post("/v1/chat/completions", body)
        self.assertEqual((status, answer["error"]["param"]), (400, "continue_final_message"))

    def test_a_beginning_of_parts_is_paragraphs(self):
        parts = [{"type": "text", "text": text} for text in ("aaa", "bbb")]
        asked = {"max_tokens": 1, "verbose": True}
        messages = [*HELLO, {"role": "assistant", "content": parts}]
        answer = self.server.post("/v1/chat/completions", {**asked, "messages": messages})[1]
        self.assertTrue(answer["__verbose"]["prompt"].endswith("assistant\naaa\n\nbbb"))

    # Told at the start and after each step of 16 tokens.
    def test_tells_how_far_a_prompt_is(self):
        asked = {"n_predict": 2, "stream": True, "return_progress": True}
        for prompt, n_found, n_steps in (("b" * 60, 0, 4), ("b" * 60 + "c" * 20, 60, 2)):
            answer = events(self.server.post("/completion", {**asked, "prompt": prompt})[1])
            told = [event["prompt_progress"] for event in answer if "prompt_progress" in event]
            timings = [event["timings"] for event in answer if "prompt_progress" in event]
            self.assertEqual(
                [each["prompt_n"] for each in timings],
                [step["processed"] - n_found for step in told],
            )
            taken = [each["prompt_ms"] for each in timings]
            self.assertEqual(taken[0], 0)
            self.assertEqual(taken, sorted(set(taken)))
            self.assertEqual({step["total"] for step in told}, {len(prompt)})
            self.assertEqual({step["cache"] for step in told}, {n_found})
            done = [step["processed"] for step in told]
            self.assertEqual((done[0], done[-1], len(done)), (n_found, len(prompt), 1 + n_steps))
            self.assertEqual(done, sorted(set(done)))
        chat = {"messages": HELLO, "max_tokens": 1, "stream": True, "return_progress": True}
        answer = events(self.server.post("/v1/chat/completions", chat)[1])
        self.assertTrue(any("prompt_progress" in event for event in answer))
        text = {"prompt": "the", "max_tokens": 1, "stream": True, "return_progress": True}
        answer = events(self.server.post("/v1/completions", text)[1])
        self.assertTrue(any("prompt_progress" in event for event in answer))
        answers = {"input": "hello", "max_output_tokens": 1, "stream": True}
        answer = events(self.server.post("/v1/responses", {**answers, "return_progress": True})[1])
        told = [event for event in answer if "prompt_progress" in event]
        self.assertEqual({event["type"] for event in told}, {"response.in_progress"})

    def test_a_stream_ends_with_its_timings(self):
        for path, prompt in (
            ("chat/completions", {"messages": HELLO}),
            ("completions", {"prompt": "a"}),
        ):
            for usage in ({}, {"stream_options": {"include_usage": True}}):
                body = {**prompt, **usage, "max_tokens": 2, "stream": True}
                answer = events(self.server.post("/v1/" + path, body)[1])
                timed = [event for event in answer if "timings" in event]
                self.assertEqual(timed, answer[-1:])
                self.assertEqual(timed[0]["timings"]["predicted_n"], 2)

    def test_no_limit_is_that_of_the_server(self):
        with Server("-n", 3) as server:
            for asked, n in (
                ({}, 3),
                ({"n_predict": -1}, 3),
                ({"max_tokens": -1}, 3),
                ({"n_predict": 5}, 5),
            ):
                body = {"prompt": "the", "ignore_eos": True, **asked}
                self.assertEqual(server.post("/completion", body)[1]["tokens_predicted"], n)
        with Server("-n", 3, "--ignore-eos") as server:
            body = {"prompt": "the", "stream": False, "options": {"num_predict": -1}}
            self.assertEqual(server.post("/api/generate", body)[1]["eval_count"], 3)

    def test_slots_can_say_that_none_is_free(self):
        with Server("-np", 1, "--context-shift") as server:
            query = "/slots?fail_on_no_slot=1"
            self.assertEqual(server.get(query)[0], 200)
            body = json.dumps({"prompt": "the", "ignore_eos": True, "stream": True}).encode()
            request = urllib.request.Request(server.url + "/completion", body)
            with urllib.request.urlopen(request, timeout=60) as stream:
                stream.readline()
                self.assertEqual((server.get(query)[0], server.get("/slots")[0]), (503, 200))

    def test_names_samplers_one_by_one(self):
        with Server("--samplers", "top_k;temperature") as server:
            settings = server.get("/props")[1]["default_generation_settings"]["params"]
            self.assertEqual(settings["samplers"], ["top_k", "temperature"])

    def test_takes_the_options_of_llama_server(self):
        flags = ("--threads-http", -1, "--no-webui", "-nocb", "-no-kvu")
        with tempfile.TemporaryDirectory() as folder:
            environment = {"LLAMA_ARG_SLOT_SAVE_PATH": folder}
            with unittest.mock.patch.dict(os.environ, environment), Server(*flags) as server:
                self.assertEqual(server.get("/")[0], 404)
                server.post("/completion", {"prompt": "the", "n_predict": 1, "id_slot": 0})
                status, _ = server.post("/slots/0?action=save", {"filename": "a"})
                self.assertEqual(status, 200)

    def test_tells_probabilities_after_sampling(self):
        asked = {"prompt": "the world", "n_predict": 5, "n_probs": 10, "post_sampling_probs": True}
        for fields, n_left in (({"top_k": 3, "top_p": 1, "min_p": 0}, 3), ({"temperature": 0}, 1)):
            answer = self.server.post("/completion", {**asked, **fields, "ignore_eos": True})[1]
            for token in answer["completion_probabilities"]:
                self.assertEqual(len(token["top_probs"]), n_left)
                self.assertAlmostEqual(sum(best["prob"] for best in token["top_probs"]), 1, 5)
                self.assertIn(token["id"], [best["id"] for best in token["top_probs"]])
                self.assertNotIn("logprob", token)

    def test_fetches_nothing_for_others(self):
        self.assertEqual(self.server.get("/cors-proxy?url=http://127.0.0.1")[0], 403)


class Predict(WithServer):
    def test_answers_several_requests_of_vertex_ai(self):
        chat = {"@requestFormat": "chatCompletions", "messages": HELLO, "max_tokens": 3, "seed": 1}
        text = {"@requestFormat": "completion", "prompt": "the", "n_predict": 3, "ignore_eos": True}
        wrong = {"@requestFormat": "chatCompletions", "messages": 5}
        status, answer = self.server.post("/predict", {"instances": [chat, text, wrong]})
        self.assertEqual(status, 200)
        first, second, third = answer["predictions"]
        alone = {key: chat[key] for key in ("messages", "max_tokens", "seed")}
        self.assertEqual(
            first["usage"],
            self.server.post("/v1/chat/completions", alone)[1]["usage"]
            | {"prompt_tokens_details": first["usage"]["prompt_tokens_details"]},
        )
        self.assertEqual(second["tokens_predicted"], 3)
        self.assertEqual(third["error"]["param"], "messages")

    def test_its_answers_have_a_limit_together(self):
        n = 1_200_000  # 27 MB of JSON
        text = {"@requestFormat": "tokenize", "content": "a" * n, "with_pieces": True}
        told = self.server.post("/predict", {"instances": [text] * 3})[1]["predictions"]
        self.assertEqual([len(one["tokens"]) for one in told[:2]], [n, n])
        self.assertEqual(told[2]["error"]["param"], "instances")

    def test_refuses_what_it_cannot_do(self):
        chat = {"@requestFormat": "chatCompletions", "messages": HELLO, "max_tokens": 3}
        for instance, param in (
            ({**chat, "stream": True}, "instances[0].stream"),
            ({**chat, "@requestFormat": "props"}, "instances[0].@requestFormat"),
            ({"messages": HELLO}, "instances[0].@requestFormat"),
        ):
            answer = self.server.post("/predict", {"instances": [instance]})[1]
            self.assertEqual(answer["predictions"][0]["error"]["param"], param)
        for body in ({}, {"instances": []}, {"instances": [chat] * 65}, {"instances": [], "x": 1}):
            self.assertEqual(self.server.post("/predict", body)[0], 400, body)


class Grammars(WithServer):
    # With other seeds the white space that a schema allows may fill all of an answer.
    flags = ["--seed", 1]

    def test_an_answer_follows_its_grammar(self):
        for grammar, pattern in (
            ('root ::= "a"{5,5}', "a{5}"),
            ('root ::= ("yes" | "no") "." # one of both', r"(yes|no)\."),
            (
                'root ::= item ("," item)*\nitem ::= [0-9]{1,2} | "é"',
                "([0-9]{1,2}|é)(,([0-9]{1,2}|é))*",
            ),
        ):
            for seed in range(4):
                asked = {"max_tokens": 40, "seed": seed, "grammar": grammar}
                body = {"messages": HELLO, "n": 2, **asked}
                status, answer = self.server.post("/v1/chat/completions", body)
                self.assertEqual(status, 200, answer)
                for choice in answer["choices"]:
                    if choice["finish_reason"] == "stop":
                        self.assertRegex(choice["message"]["content"], f"^{pattern}$")

    def test_an_answer_fits_its_schema(self):
        schema = {
            "type": "object",
            "properties": {"ok": {"type": "boolean"}, "n": {"enum": [1, 2]}},
            "required": ["ok", "n"],
        }
        chat = {"messages": HELLO, "max_tokens": 100}
        shape = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        text = {"format": {"type": "json_schema", "name": "x", "schema": schema}}
        asked = [
            ("/v1/chat/completions", {**chat, "response_format": shape}),
            ("/v1/chat/completions", {**chat, "json_schema": schema}),
            ("/completion", {"prompt": "a", "n_predict": 100, "json_schema": schema}),
            ("/v1/responses", {"input": "a", "max_output_tokens": 100, "text": text}),
        ]
        for path, body in asked:
            status, answer = self.server.post(path, {**body, "temperature": 1})
            self.assertEqual(status, 200, answer)
            if "choices" in answer:
                said = answer["choices"][0]["message"]["content"]
            else:
                said = answer.get("content") or answer["output"][0]["content"][0]["text"]
            said = json.loads(said)
            self.assertEqual(set(said), {"ok", "n"})
            self.assertIn(said["n"], (1, 2))
        wrong = {"type": "json_schema", "json_schema": {"schema": {"type": "hiccup"}}}
        status, answer = self.server.post(asked[0][0], {**chat, "response_format": wrong})
        blamed = "response_format.json_schema.schema.type"
        self.assertEqual((status, answer["error"]["param"]), (400, blamed))

    def test_an_answer_tells_its_grammar(self):
        for grammar in ('root ::= "a"', ""):
            answer = self.server.post("/completion", {"prompt": "a", "grammar": grammar})[1]
            self.assertEqual(answer["generation_settings"]["grammar"], grammar)

    def test_a_grammar_that_is_none_is_refused(self):
        for grammar in ("root ::= this is (not valid", "x ::= 'a'", 'root ::= root | "a"'):
            status, answer = self.server.post("/completion", {"prompt": "a", "grammar": grammar})
            self.assertEqual((status, answer["error"]["param"]), (400, "grammar"), grammar)


class RandomNumbers(unittest.TestCase):
    # The text that llama.cpp draws with this seed; its own tests look for "going" or "bed".
    def test_the_same_seed_gives_the_text_of_llama_cpp(self):
        asked = {"prompt": "I believe the meaning of life is", "n_predict": 8}
        with Server("--rng", "mt19937", "--seed", 42, "--temp", 0.8, model=STORIES) as server:
            for _ in range(2):
                answer = server.post("/completion", asked)[1]
                self.assertEqual(answer["content"].strip(), "going to bed. I")


if __name__ == "__main__":
    limpid_program.main()
