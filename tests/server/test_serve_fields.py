"""Each field of a request to `limpid serve` has an effect, or is refused by its name, or cannot change the answer."""

import limpid_program
import limpid_server

HELLO = [{"role": "user", "content": "hello"}]
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
# Shows what a template is told of a message.
SHOWS_ALL = (
    "{% for m in messages %}{{ m.name }}|{{ m.reasoning_content }}|{{ m.content }};{% endfor %}"
)


class WithServer(limpid_server.WithServer):
    def accept(self, path: str, body: dict) -> dict:
        status, answer = self.server.post(path, body)
        self.assertEqual(status, 200, (body, answer))
        return answer

    def refuse(self, path: str, body: dict, param: str) -> str:
        status, answer = self.server.post(path, body)
        self.assertEqual(status, 400, (body, answer))
        if isinstance(answer["error"], str):  # Ollama's shape
            self.assertTrue(answer["error"].startswith(param + " "), answer)
            return answer["error"]
        self.assertEqual(answer["error"]["param"], param, body)
        return answer["error"]["message"]


class Messages(WithServer):
    flags = ["--chat-template", SHOWS_ALL]

    def chat(self, *messages: dict) -> dict:
        return {"messages": list(messages), "max_tokens": 1, "verbose": True}

    def test_members_that_say_something_are_not_ignored(self):
        for member in ({"foo": 1}, {"refusal": "no"}, {"audio": {"id": "1"}}, {"prefix": True}):
            for path in (CHAT, "/v1/messages", "/api/chat"):
                body = {"messages": [{**HELLO[0], **member}], "max_tokens": 1}
                if path == "/api/chat":
                    del body["max_tokens"]
                status, answer = self.server.post(path, body)
                self.assertEqual(status, 400, body)
                self.assertIn(f"messages[0].{next(iter(member))}", str(answer))
        part = {"type": "text", "text": "Hi", "foo": 2}
        body = self.chat({"role": "user", "content": [part]})
        self.refuse(CHAT, body, "messages[0].content[0].foo")
        item = {"role": "user", "content": [{"type": "input_text", "text": "Hi", "foo": 2}]}
        self.refuse(RESPONSES, {"input": [item]}, "input[0].content[0].foo")

    def test_what_an_answer_had_may_be_sent_back(self):
        earlier = self.accept(CHAT, self.chat(*HELLO))["choices"][0]["message"]
        echo = {
            **earlier,
            "refusal": None,
            "annotations": [],
            "audio": None,
            "tool_calls": [],
            "function_call": None,
            "reasoning_content": None,
            "provider_specific_fields": {"refusal": None},
            "thinking": "",
        }
        plain = self.accept(CHAT, self.chat(*HELLO, earlier, *HELLO))
        echoed = self.accept(CHAT, self.chat(*HELLO, echo, *HELLO))
        self.assertEqual(echoed["__verbose"], plain["__verbose"])
        asked = {"input": "hello", "max_output_tokens": 4}
        items = self.accept(RESPONSES, asked)["output"]
        body = {**asked, "input": [*HELLO, *items, *HELLO]}
        self.accept(RESPONSES, body)
        cached = {"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}
        body = {"messages": [{"role": "user", "content": [cached]}], "max_tokens": 1}
        self.accept("/v1/messages", {**body, "system": [cached]})

    def test_the_template_is_told_names_and_thoughts(self):
        thought = {"role": "assistant", "content": "x", "reasoning_content": "hm"}
        answer = self.accept(CHAT, self.chat({**HELLO[0], "name": "Ada"}, thought, *HELLO))
        self.assertEqual(answer["__verbose"]["prompt"], "Ada||hello;|hm|x;||hello;")

    def test_a_message_that_goes_on_has_only_a_text(self):
        begun = {"role": "assistant", "content": "x", "reasoning_content": "hm"}
        self.refuse(CHAT, self.chat(*HELLO, begun), "messages[1].reasoning_content")


class Fields(WithServer):
    def test_two_values_of_one_limit_are_refused(self):
        chat = {"messages": HELLO, "max_tokens": 3}
        for name in ("max_completion_tokens", "n_predict"):
            blamed = "max_tokens" if name < "max_tokens" else name
            self.refuse(CHAT, {**chat, name: 4}, blamed)
            usage = self.accept(CHAT, {**chat, name: 3})["usage"]
            self.assertEqual(usage["completion_tokens"], 3)
        body = {"prompt": "the", "max_tokens": 3, "n_predict": 4}
        self.refuse("/completion", body, "n_predict")
        self.refuse(CHAT, {**chat, "logprobs": True, "top_logprobs": 2, "n_probs": 3}, "n_probs")
        answer = self.accept(CHAT, {**chat, "logprobs": True, "n_probs": 0})
        self.assertTrue(answer["choices"][0]["logprobs"])

    def test_formats_of_a_chat(self):
        chat = {"messages": HELLO, "max_tokens": 3}
        schema = {"type": "object"}
        for format, blamed in (
            ({"type": "text", "schema": schema}, ".schema"),
            ({"type": "text", "json_schema": {"schema": schema}}, ".json_schema.schema"),
            ({"type": "json_schema", "json_schema": {"schema": schema, "x": 1}}, ".json_schema.x"),
            ({"type": "json_object", "x": 1}, ".x"),
            ({"type": "json_object", "schema": {}, "json_schema": {"schema": {}}}, ".json_schema"),
        ):
            body = {**chat, "response_format": format}
            self.refuse(CHAT, body, "response_format" + blamed)
        for name, wrong in (("reasoning_format", "deepseek"), ("verbosity", "low")):
            self.refuse(CHAT, {**chat, name: wrong}, name)
        self.accept(CHAT, {**chat, "reasoning_format": "none", "verbosity": "medium"})

    def test_only_what_the_assistant_began_goes_on(self):
        begun = {"role": "assistant", "content": "the"}
        goes_on = {"max_tokens": 1, "continue_final_message": True}
        self.accept(CHAT, {"messages": [*HELLO, begun], **goes_on})
        for messages in (HELLO, [begun], [*HELLO, begun, *HELLO]):
            body = {"messages": messages, **goes_on}
            self.refuse(CHAT, body, "continue_final_message")
            self.accept(CHAT, {**body, "continue_final_message": False})

    def test_variables_of_a_template_do_not_replace_the_request(self):
        for name in ("messages", "tools", "add_generation_prompt"):
            body = {"messages": HELLO, "chat_template_kwargs": {name: []}}
            self.refuse(CHAT, body, f"chat_template_kwargs.{name}")

    def test_a_prompt_of_several_answers_is_found_once(self):
        body = {"prompt": "world hello the", "max_tokens": 1, "n": 4}
        usage = self.accept("/v1/completions", body)["usage"]
        self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], 0)
        usage = self.accept("/v1/completions", body)["usage"]
        self.assertGreater(usage["prompt_tokens_details"]["cached_tokens"], 0)
        self.assertLess(usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"])

    def test_answers_do_not_repeat_without_a_limit(self):
        body = {"prompt": ["the"] * 100, "n_predict": 1, "logit_bias": [[65, 0.5]] * 1400}
        self.refuse("/completion", body, "logit_bias")
        self.accept("/completion", {**body, "prompt": ["the"] * 2})
        body = {"prompt": [[65] * 400] * 8, "max_tokens": 1, "echo": True, "logprobs": 20}
        self.refuse("/v1/completions", {**body, "n": 64}, "logprobs")
        self.refuse("/v1/completions", body, "prompt")  # longer than the context

    def test_tells_where_tokens_are_in_the_text(self):
        def ids(text: str) -> list[int]:
            return self.server.post("/tokenize", {"content": text})[1]["tokens"]

        first, second = ids("é")  # the two bytes of one character
        a, b = ids("a") + ids("b")
        asked = {"max_tokens": 0, "echo": True, "logprobs": 0}
        for prompt, text, offsets in (
            ([a, second, b], "a\ufffdb", [0, 1, 2]),
            ([a, first, b], "a\ufffdb", [0, 1, 2]),
            ([first, second, b], "éb", [0, 0, 1]),
            ([second, first, first, second, b], "\ufffd\ufffdéb", [0, 1, 2, 2, 3]),
        ):
            body = {**asked, "prompt": prompt}
            choice = self.server.post("/v1/completions", body)[1]["choices"][0]
            told = choice["text"], choice["logprobs"]["text_offset"]
            self.assertEqual(told, (text, offsets))
        # The answer completes the last character of the prompt.
        body = {"prompt": [a, first], "max_tokens": 2, "logprobs": 0, "temperature": 0}
        body["logit_bias"] = {str(second): 1000}
        for echo, text, offsets in (
            (False, "é\ufffd", [0, 1]),
            (True, "a\ufffdé\ufffd", [0, 1, 2, 3]),
        ):
            choice = self.server.post("/v1/completions", {**body, "echo": echo})[1]["choices"][0]
            told = choice["text"], choice["logprobs"]["text_offset"]
            self.assertEqual(told, (text, offsets))

    def test_tells_the_chosen_token_among_the_best(self):
        asked = {"prompt": "the world", "temperature": 0, "max_tokens": 1}
        best = self.server.post("/completion", {**asked, "n_probs": 20})[1]
        expected = {}  # of tokens with the same text the most probable one
        for token in best["completion_probabilities"][0]["top_logprobs"]:
            expected.setdefault(token["token"], token["logprob"])
        self.assertLess(len(expected), 20)  # bytes that are parts of characters
        answer = self.server.post("/v1/completions", {**asked, "logprobs": 20})[1]
        self.assertEqual(answer["choices"][0]["logprobs"]["top_logprobs"], [expected])
        other = next(letter for letter in "qzxjvk" if letter not in expected)
        (token,) = self.server.post("/tokenize", {"content": other})[1]["tokens"]
        for n in (0, 1):
            body = {**asked, "logprobs": n, "logit_bias": {str(token): 1000}}
            told = self.server.post("/v1/completions", body)[1]["choices"][0]["logprobs"]
            self.assertEqual(told["tokens"], [other])
            self.assertEqual(len(told["top_logprobs"][0]), n + 1)
            self.assertEqual(told["top_logprobs"][0][other], told["token_logprobs"][0])

    def test_the_grammars_that_answers_repeat_have_a_bound(self):
        long = 'root ::= "a" #' + "x" * 250_000
        body = {"prompt": ["a"] * 70, "n_predict": 0, "grammar": long}
        self.refuse("/completion", body, "grammar")

    def test_errors_name_no_parts_of_the_program(self):
        for body in (
            {"prompt": "a", "grammar": "root ::= root"},
            {"prompt": "a", "n_predict": 1, "grammar": "root ::= ("},
        ):
            status, answer = self.server.post("/completion", body)
            self.assertEqual(status, 400)
            self.assertNotIn("[", answer["error"]["message"])
        self.assertIn("empty", self.server.post("/completion", b"")[1]["error"]["message"])

    def test_responses_tell_log_probabilities(self):
        asked = {"input": "hello", "max_output_tokens": 5, "temperature": 0}
        self.refuse(RESPONSES, {**asked, "top_logprobs": 2}, "top_logprobs")
        self.refuse(RESPONSES, {**asked, "include": ["reasoning"]}, "include[0]")
        asked |= {"top_logprobs": 2, "include": ["message.output_text.logprobs"]}
        told = self.accept(RESPONSES, asked)["output"][0]["content"][0]["logprobs"]
        chat = {"messages": HELLO, "max_tokens": 5, "temperature": 0}
        same = self.accept(CHAT, {**chat, "logprobs": True, "top_logprobs": 2})
        self.assertEqual(told, same["choices"][0]["logprobs"]["content"])
        stream = self.server.post(RESPONSES, {**asked, "stream": True})[1]
        done = [line for line in stream.splitlines() if '"response.output_text.done"' in line]
        self.assertEqual(done[0].count('"top_logprobs"'), 5)

    def test_responses_count_tokens_under_both_paths(self):
        counted = [self.accept(v + "/responses/input_tokens", {"input": "x"}) for v in ("", "/v1")]
        self.assertGreater(counted[0]["input_tokens"], 1)
        self.assertEqual(*counted)

    def test_responses_tell_their_format(self):
        schema = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}
        format = {"type": "json_schema", "name": "x", "schema": schema}
        asked = {"input": "hello", "max_output_tokens": 40}
        answer = self.accept(RESPONSES, {**asked, "text": {"format": format}})
        self.assertEqual(answer["text"], {"format": format})
        self.assertEqual(self.accept(RESPONSES, asked)["text"], {"format": {"type": "text"}})
        self.refuse(RESPONSES, {**asked, "text": {"verbosity": "low"}}, "text.verbosity")
        self.accept(RESPONSES, {**asked, "text": {"verbosity": "medium"}})


class Thinking(WithServer):
    flags = ["--chat-template", "{{ 'yes' if enable_thinking else 'not now and not ever' }}"]

    def test_a_request_can_ask_for_no_thoughts(self):
        def n_tokens(path: str, name: str, body: dict) -> int:
            answer = self.accept(path, body)
            return (answer.get("usage") or answer)[name]

        path, off = "/v1/messages/count_tokens", {"thinking": {"type": "disabled"}}
        body = {"messages": HELLO}
        thinks = n_tokens(path, "input_tokens", body)
        self.assertGreater(n_tokens(path, "input_tokens", body | off), thinks)
        few = {"stream": False, "options": {"num_predict": 1}}
        for path, asked in (("/api/chat", body), ("/api/generate", {"prompt": "hello"})):
            name, asked_for = "prompt_eval_count", asked | few
            thinks = n_tokens(path, name, asked_for)
            self.assertGreater(n_tokens(path, name, asked_for | {"think": False}), thinks)


class FullContext(WithServer):
    flags = ["-c", 64, "--context-shift", "--ignore-eos"]

    def test_an_answer_may_end_there(self):
        prompt = "a" * 40
        answer = self.accept("/completion", {"prompt": prompt, "n_predict": -2})
        self.assertEqual((answer["tokens_predicted"], answer["stop_type"]), (24, "limit"))
        asked = {"prompt": prompt, "raw": True, "stream": False, "options": {"num_predict": -2}}
        answer = self.accept("/api/generate", asked)
        self.assertEqual((answer["eval_count"], answer["done_reason"]), (24, "length"))

    def test_it_always_moves(self):
        for n_keep in (-1, 60, 1000):
            body = {"prompt": "a" * 62, "n_predict": 90, "n_keep": n_keep}
            self.assertEqual(self.accept("/completion", body)["tokens_predicted"], 90)


class Ollama(WithServer):
    def chat(self, **changes: object) -> tuple[str, dict]:
        return "/api/chat", {"messages": HELLO, "stream": False, **changes}

    def generate(self, **changes: object) -> tuple[str, dict]:
        return "/api/generate", {"prompt": "hello", "stream": False, **changes}

    def test_fields_of_the_other_endpoint_are_refused(self):
        self.refuse(*self.chat(system="Be kind."), "system")
        self.refuse(*self.chat(prompt="Hi"), "prompt")
        self.refuse(*self.chat(raw=True), "raw")
        self.refuse(*self.generate(messages=HELLO), "messages")
        self.refuse(*self.generate(system="Be kind.", raw=True), "system")
        self.refuse(*self.chat(top_logprobs=2), "top_logprobs")

    def test_options(self):
        limit = {"num_predict": 2}
        self.accept(*self.chat(options={**limit, "num_ctx": 256}))
        error = self.refuse(*self.chat(options={"num_ctx": 257}), "options.num_ctx")
        self.assertIn("256", error)
        self.refuse(*self.generate(options={"num_ctx": 8192}), "options.num_ctx")
        loading = {"num_gpu": 1, "use_mlock": True, "low_vram": False, "f16_kv": True}
        self.accept(*self.chat(options={**limit, **loading, "num_keep": 4}))
        self.refuse(*self.chat(options={"unknown": 1}), "options.unknown")

    def test_an_embedding_reads_what_the_request_allows(self):
        def embed(**changes: object) -> tuple[str, dict]:
            return "/api/embed", {"input": "the world " * 500, **changes}

        for n_ctx, n_tokens in ((8, 8), (0, 256), (256, 256)):
            answer = self.accept(*embed(options={"num_ctx": n_ctx}))
            self.assertEqual(answer["prompt_eval_count"], n_tokens)
        self.refuse(*embed(options={"num_ctx": 257}), "options.num_ctx")
        self.refuse(*embed(keep_alive={}), "keep_alive")
        self.assertIn("text without tokens", self.refuse(*embed(input=[[]]), "input"))
        for nothing in ("", [], None):
            self.assertEqual(self.accept(*embed(input=nothing))["embeddings"], [])
        for path in ("/api/embed", "/v1/embeddings", "/tokenize", "/detokenize", "/explain"):
            self.refuse(path, {"input": "a", "answer": "a", "model": 5}, "model")

    def test_a_format_is_that_of_a_chat(self):
        schema = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}
        greedy = {"options": {"temperature": 0, "num_predict": 20}}
        plain = self.accept(*self.chat(**greedy))["message"]["content"]
        for format, same in (
            (schema, {"type": "json_object", "schema": schema}),
            ("json", {"type": "json_object"}),
        ):
            asked = {"messages": HELLO, "temperature": 0, "max_tokens": 20}
            answer = self.accept(CHAT, {**asked, "response_format": same})
            expected = answer["choices"][0]["message"]["content"]
            self.assertNotEqual(expected, plain)
            said = self.accept(*self.chat(format=format, **greedy))["message"]["content"]
            self.assertEqual(said, expected)
            said = self.accept(*self.generate(format=format, **greedy))["response"]
            self.assertEqual(said, expected)
        for empty in ("", None, {}):
            said = self.accept(*self.chat(format=empty, **greedy))["message"]["content"]
            self.assertEqual(said, plain)
        self.refuse(*self.chat(format="xml"), "format")
        self.refuse(*self.chat(format={"type": "object", "minimum": 1}), "format.minimum")

    def test_no_prompt_only_loads_the_model(self):
        for path, body in (
            ("/api/generate", {"model": "tiny"}),
            ("/api/generate", {"prompt": ""}),
            ("/api/chat", {"messages": []}),
            ("/api/chat", {"model": "tiny"}),
            ("/api/chat", {"messages": None, "keep_alive": "10m"}),
        ):
            answer = self.accept(path, body)
            self.assertEqual((answer["done"], answer["done_reason"]), (True, "load"), body)

    def test_no_prompt_and_no_time_unload_the_model(self):
        (name,) = self.server.states()
        for path, time in (("/api/generate", 0), ("/api/chat", "0s"), ("/api/chat", "0")):
            self.assertEqual(self.accept(path, {"keep_alive": time})["done_reason"], "unload")
            self.server.wait_for_states(**{name: "unloaded"})
        self.accept(*self.chat(options={"num_predict": 1}))  # loads it again


if __name__ == "__main__":
    limpid_program.main()
