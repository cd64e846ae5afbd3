"""`limpid serve` as the unmodified clients of other servers use it, with a tiny model that says nothing sensible."""

import math

import anthropic
import limpid_program
import limpid_server
import ollama
import openai

HELLO = [{"role": "user", "content": "hello"}]
GREEDY = {"messages": HELLO, "model": "any", "temperature": 0, "max_tokens": 16}
# The client no longer knows temperatures, but sends what it is told to.
ANTHROPIC = {
    "messages": HELLO,
    "model": "any",
    "max_tokens": 16,
    "extra_body": {"temperature": 0},
}
KEY = "a secret key"


class WithServer(limpid_server.WithServer):
    flags = ["--alias", "tiny"]
    key = KEY


class OpenAi(WithServer):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.client = openai.OpenAI(base_url=cls.server.url + "/v1", api_key=KEY, max_retries=0)

    def chat(self, **changes: object):
        return self.client.chat.completions.create(**{**GREEDY, **changes})

    def assert_refused(self, param: str | None, **changes: object) -> openai.BadRequestError:
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(**changes)
        self.assertEqual(caught.exception.param, param)
        return caught.exception

    def test_answers_a_chat(self):
        answer = self.chat()
        choice = answer.choices[0]
        self.assertEqual((choice.message.role, choice.finish_reason), ("assistant", "length"))
        self.assertTrue(choice.message.content)
        self.assertEqual((answer.model, answer.object), ("tiny", "chat.completion"))
        usage = answer.usage
        self.assertEqual(usage.completion_tokens, 16)
        self.assertEqual(usage.total_tokens, usage.prompt_tokens + 16)
        self.assertNotEqual(self.chat().id, answer.id)
        self.assertEqual(self.chat().choices[0].message.content, choice.message.content)
        self.assertGreater(self.chat().usage.prompt_tokens_details.cached_tokens, 0)

    def test_streams_the_same_answer(self):
        whole = self.chat().choices[0].message.content
        chunks = list(self.chat(stream=True, stream_options={"include_usage": True}))
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
        self.assertEqual(text, whole)
        self.assertEqual(chunks[-2].choices[0].finish_reason, "length")
        self.assertEqual((chunks[-1].choices, chunks[-1].usage.completion_tokens), ([], 16))
        self.assertIsNone(list(self.chat(stream=True))[-1].usage)

    def test_gives_several_choices(self):
        changes = {"n": 3, "temperature": 1, "seed": 7}
        texts = [choice.message.content for choice in self.chat(**changes).choices]
        self.assertEqual(len(set(texts)), 3)
        streamed = ["", "", ""]
        for chunk in self.chat(stream=True, **changes):
            streamed[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
        self.assertEqual(streamed, texts)
        alone = self.chat(temperature=1, seed=8).choices[0].message.content
        self.assertEqual(alone, texts[1])

    def test_gives_log_probabilities(self):
        tokens = self.chat(logprobs=True, top_logprobs=3).choices[0].logprobs.content
        self.assertEqual(len(tokens), 16)
        for token in tokens:
            self.assertEqual(len(token.top_logprobs), 3)
            self.assertEqual(token.logprob, token.top_logprobs[0].logprob)  # greedy
            self.assertLess(sum(math.exp(other.logprob) for other in token.top_logprobs), 1)
        self.assertEqual(self.chat(logprobs=True).choices[0].logprobs.content[0].top_logprobs, [])
        self.assertIsNone(self.chat().choices[0].logprobs)
        streamed = []
        for chunk in self.chat(logprobs=True, top_logprobs=3, stream=True):
            if chunk.choices[0].logprobs:
                streamed += chunk.choices[0].logprobs.content
        self.assertEqual(streamed, tokens)

    def test_stops_at_a_text(self):
        whole = self.chat().choices[0].message.content
        stop = whole[5:7]
        answer = self.chat(stop=[stop]).choices[0]
        self.assertEqual(
            (answer.message.content, answer.finish_reason), (whole[: whole.index(stop)], "stop")
        )
        self.assertEqual(self.chat(stop=stop).choices[0].message.content, answer.message.content)

    def test_bans_and_forces_tokens(self):
        tokens = self.server.post("/tokenize", {"content": "a"})[1]
        letter = str(tokens["tokens"][0])
        forced = self.chat(logit_bias={letter: 100}, max_tokens=4)
        self.assertEqual(forced.choices[0].message.content, "aaaa")
        first = self.chat(logprobs=True, top_logprobs=2).choices[0].logprobs.content[0]
        best, second = (token.id for token in first.top_logprobs)
        banned = self.chat(logprobs=True, logit_bias={best: -100}).choices[0].logprobs.content
        self.assertEqual((first.id, banned[0].id), (best, second))

    def test_says_what_is_wrong_with_a_request(self):
        self.assert_refused("temperature", temperature="hot")
        self.assert_refused("top_p", top_p=2)
        self.assert_refused("max_tokens", max_tokens=-3)
        self.assert_refused("n", n=0)
        self.assert_refused("top_logprobs", top_logprobs=5)
        self.assert_refused("messages", messages=[])
        self.assert_refused("messages[0].role", messages=[{"role": "poet", "content": "x"}])
        self.assert_refused("messages[0].content", messages=[{"role": "user"}])
        image = {"type": "image_url", "image_url": {"url": "data:"}}
        self.assert_refused(
            "messages[0].content[0].type", messages=[{"role": "user", "content": [image]}]
        )
        self.assert_refused("tools", tools=[{"type": "function", "function": {"name": "f"}}])
        self.assert_refused("response_format.type", response_format={"type": "xml"})
        self.assert_refused("temprature", extra_body={"temprature": 1})
        self.assert_refused("mirostat", extra_body={"mirostat": 2})
        overflow = self.assert_refused(
            "messages", messages=[{"role": "user", "content": "hi " * 2000}]
        )
        self.assertIn("context_length_exceeded", overflow.message)
        self.assertEqual(overflow.type, "exceed_context_size_error")
        for path, field in (
            ("/v1/completions", "prompt"),
            ("/completion", "prompt"),
            ("/v1/responses", "input"),
            ("/v1/embeddings", "input"),
        ):
            status, answer = self.server.post(path, {field: "hi " * 2000})
            self.assertEqual((status, answer["error"]["param"]), (400, field), path)

    def test_accepts_what_changes_nothing(self):
        whole = self.chat().choices[0].message.content
        answer = self.chat(
            tools=[],
            user="someone",
            response_format={"type": "text"},
            metadata={"a": "b"},
            store=False,
            extra_body={"cache_prompt": True, "mirostat": 0, "grammar": ""},
        )
        self.assertEqual(answer.choices[0].message.content, whole)
        parts = [{"type": "text", "text": "hello"}]
        answer = self.chat(messages=[{"role": "user", "content": parts}])
        self.assertEqual(answer.choices[0].message.content, whole)

    def test_refuses_a_wrong_key(self):
        stranger = self.client.with_options(api_key="a guess")
        with self.assertRaises(openai.AuthenticationError):
            stranger.chat.completions.create(**GREEDY)
        self.assertEqual([model.id for model in stranger.models.list()], ["tiny"])
        self.assertEqual(stranger.models.retrieve("tiny"), stranger.models.list().data[0])

    def test_frees_the_place_of_who_leaves(self):
        stream = self.chat(stream=True, max_tokens=None, extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()
        self.server.wait_until_idle()

    def test_completes_text(self):
        greedy = {"model": "any", "temperature": 0, "max_tokens": 8}
        create = self.client.completions.create
        whole = create(prompt="the world", **greedy)
        self.assertEqual(whole.object, "text_completion")
        text = whole.choices[0].text
        streamed = "".join(
            chunk.choices[0].text for chunk in create(prompt="the world", stream=True, **greedy)
        )
        self.assertEqual(streamed, text)
        echoed = create(prompt=["the world", "hello"], echo=True, **greedy).choices
        self.assertEqual(echoed[0].text, "the world" + text)
        self.assertTrue(echoed[1].text.startswith("hello"))
        self.check_echo_with_log_probabilities(greedy)
        logprobs = create(prompt="the world", logprobs=2, **greedy).choices[0].logprobs
        self.assertEqual(len(logprobs.tokens), 8)
        self.assertEqual(len(logprobs.top_logprobs[0]), 2)
        self.assertEqual(logprobs.text_offset[0], 0)
        self.assertEqual(logprobs.token_logprobs[0], max(logprobs.top_logprobs[0].values()))

    # The prompt's tokens come with log-probabilities as if the model had chosen them.
    def check_echo_with_log_probabilities(self, greedy: dict):
        create = self.client.completions.create
        asked = {"prompt": "the world", "logprobs": 2, **greedy}
        answer = create(**asked).choices[0]
        echoed = create(echo=True, **asked).choices[0]
        n_prompt = len(self.server.post("/tokenize", {"content": "the world"})[1]["tokens"])
        self.assertEqual(echoed.text, "the world" + answer.text)
        self.assertEqual("".join(echoed.logprobs.tokens[:n_prompt]), "the world")
        self.assertEqual(echoed.logprobs.tokens[n_prompt:], answer.logprobs.tokens)
        self.assertEqual(echoed.logprobs.token_logprobs[n_prompt:], answer.logprobs.token_logprobs)
        self.assertEqual(
            [echoed.logprobs.token_logprobs[0], echoed.logprobs.top_logprobs[0]], [None] * 2
        )
        offsets = list(zip(echoed.logprobs.text_offset, echoed.logprobs.tokens, strict=True))
        for offset, token in offsets[:n_prompt]:
            self.assertEqual(echoed.text[offset : offset + len(token)], token)
        self.assertEqual(offsets[n_prompt][0], len("the world"))
        # The whole text as a prompt is judged as it was when the answer was made.
        said = {"prompt": "the world", "n_predict": 8, "temperature": 0, "return_tokens": True}
        ids = self.server.post("/tokenize", {"content": "the world"})[1]["tokens"]
        ids += self.server.post("/completion", said)[1]["tokens"]
        judged = create(**{**asked, "prompt": ids, "max_tokens": 0}, echo=True).choices[0]
        self.assertEqual(judged.logprobs, echoed.logprobs)
        self.assertEqual(judged.finish_reason, "length")
        # A control token of the prompt has no text.
        spelled = {"content": "<|im_start|>", "parse_special": True}
        control = self.server.post("/tokenize", spelled)[1]["tokens"]
        marked = create(**{**asked, "prompt": control + ids, "max_tokens": 0}, echo=True).choices[0]
        offsets = list(zip(marked.logprobs.text_offset, marked.logprobs.tokens, strict=True))
        for offset, token in offsets[len(control) :]:
            self.assertEqual(marked.text[offset : offset + len(token)], token)
        parts = [chunk.choices[0] for chunk in create(echo=True, stream=True, **asked)]
        self.assertEqual("".join(part.text for part in parts), echoed.text)
        streamed = [value for part in parts for value in part.logprobs.token_logprobs]
        self.assertEqual(streamed, echoed.logprobs.token_logprobs)
        several = create(**{**asked, "prompt": ["hello", "the world"]}, echo=True, n=2).choices
        self.assertEqual([choice.text[:5] for choice in several], ["hello"] * 2 + ["the w"] * 2)
        self.assertEqual(several[2].logprobs, echoed.logprobs)

    def test_answers_as_responses(self):
        create = self.client.responses.create
        asked = {"model": "any", "input": "hello", "temperature": 0, "max_output_tokens": 16}
        answer = create(**asked)
        self.assertEqual(answer.output_text, self.chat().choices[0].message.content)
        self.assertEqual((answer.status, answer.usage.output_tokens), ("incomplete", 16))
        self.assertEqual(answer.incomplete_details.reason, "max_output_tokens")
        events = list(create(stream=True, **asked))
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
        self.assertEqual(events[0].type, "response.created")
        deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
        self.assertEqual("".join(deltas), answer.output_text)
        self.assertEqual(events[-1].response.output_text, answer.output_text)
        items = [{"role": "user", "content": [{"type": "input_text", "text": "hello"}]}]
        self.assertEqual(create(**{**asked, "input": items}).output_text, answer.output_text)

    def test_embeds_texts(self):
        answer = self.client.embeddings.create(model="any", input=["hello", "the world"])
        self.assertEqual([entry.index for entry in answer.data], [0, 1])
        for entry in answer.data:
            self.assertAlmostEqual(sum(x * x for x in entry.embedding), 1, places=4)


class Anthropic(WithServer):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.client = anthropic.Anthropic(base_url=cls.server.url, api_key=KEY, max_retries=0)

    def create(self, **changes: object):
        return self.client.messages.create(**{**ANTHROPIC, **changes})

    def test_answers_and_streams(self):
        answer = self.create()
        self.assertEqual((answer.role, answer.model), ("assistant", "tiny"))
        self.assertEqual((answer.stop_reason, answer.usage.output_tokens), ("max_tokens", 16))
        with self.client.messages.stream(**ANTHROPIC) as stream:
            text = "".join(stream.text_stream)
            last = stream.get_final_message()
        self.assertEqual(text, answer.content[0].text)
        self.assertEqual((last.content[0].text, last.stop_reason), (text, "max_tokens"))
        self.assertEqual(last.usage.output_tokens, 16)

    def test_takes_a_system_prompt_and_a_beginning(self):
        plain = self.create().content[0].text
        self.assertNotEqual(self.create(system="be kind").content[0].text, plain)
        parts = [{"type": "text", "text": "be kind"}]
        self.assertEqual(self.create(system=parts).content, self.create(system="be kind").content)
        begun = [*HELLO, {"role": "assistant", "content": "the world"}]
        count = self.client.messages.count_tokens
        n_begun = count(model="any", messages=begun).input_tokens
        n_text = len(self.server.post("/tokenize", {"content": "the world"})[1]["tokens"])
        self.assertEqual(n_begun, count(model="any", messages=HELLO).input_tokens + n_text)

    def test_stops_at_a_text(self):
        whole = self.create().content[0].text
        answer = self.create(stop_sequences=[whole[5:7]])
        self.assertEqual((answer.stop_reason, answer.stop_sequence), ("stop_sequence", whole[5:7]))

    def test_counts_tokens(self):
        counted = self.client.messages.count_tokens(model="any", messages=HELLO)
        usage = self.create().usage
        self.assertEqual(counted.input_tokens, usage.input_tokens + usage.cache_read_input_tokens)

    def test_frees_the_place_of_who_leaves(self):
        with self.client.messages.stream(**{**ANTHROPIC, "max_tokens": 200}) as stream:
            next(iter(stream.text_stream))
        self.server.wait_until_idle()

    def test_says_what_is_wrong_with_a_request(self):
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.create(extra_body={"top_p": 7})
        self.assertIn("top_p", caught.exception.message)
        with self.assertRaises(anthropic.BadRequestError):
            self.create(tools=[{"name": "f", "input_schema": {"type": "object"}}])
        with self.assertRaises(anthropic.AuthenticationError):
            self.client.with_options(api_key="a guess").messages.create(**ANTHROPIC)


class Ollama(WithServer):
    key = ""
    OPTIONS = {"temperature": 0, "num_predict": 16}

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.client = ollama.Client(cls.server.url)

    def test_answers_and_streams_a_chat(self):
        answer = self.client.chat("tiny", HELLO, options=self.OPTIONS)
        self.assertEqual((answer.done, answer.done_reason), (True, "length"))
        self.assertEqual((answer.eval_count, answer.message.role), (16, "assistant"))
        parts = list(self.client.chat("tiny", HELLO, options=self.OPTIONS, stream=True))
        self.assertEqual("".join(part.message.content for part in parts), answer.message.content)
        self.assertEqual([part.done for part in parts], [False] * (len(parts) - 1) + [True])

    def test_generates(self):
        chat = self.client.chat("tiny", HELLO, options=self.OPTIONS)
        answer = self.client.generate("tiny", "hello", options=self.OPTIONS)
        self.assertEqual(answer.response, chat.message.content)
        raw = self.client.generate("tiny", "hello", raw=True, options=self.OPTIONS)
        self.assertNotEqual(raw.response, answer.response)
        self.assertLess(raw.prompt_eval_count, answer.prompt_eval_count)

    def test_gives_log_probabilities(self):
        asked = {"options": self.OPTIONS, "logprobs": True, "top_logprobs": 2}
        tokens = self.client.chat("tiny", HELLO, **asked).logprobs
        self.assertEqual(len(tokens), 16)
        self.assertEqual(tokens[0].logprob, tokens[0].top_logprobs[0].logprob)  # greedy

    def test_frees_the_place_of_who_leaves(self):
        stream = self.client.chat("tiny", HELLO, options={"num_predict": 200}, stream=True)
        next(stream)
        stream.close()
        self.server.wait_until_idle()

    def test_refuses_a_wrong_key(self):
        with limpid_server.Server(key=KEY) as server:
            for key, status in (("a guess", 401), (KEY, 200)):
                client = ollama.Client(server.url, headers={"Authorization": f"Bearer {key}"})
                try:
                    client.chat("tiny", HELLO, options=self.OPTIONS)
                    self.assertEqual(status, 200)
                except ollama.ResponseError as error:
                    self.assertEqual(error.status_code, status)

    def test_embeds_texts(self):
        texts = ["hello", "the world"]
        answer = self.client.embed("tiny", texts, options={"num_ctx": 64}, truncate=True)
        expected = self.server.post("/v1/embeddings", {"input": texts})[1]["data"]
        self.assertEqual(
            [list(vector) for vector in answer.embeddings], [one["embedding"] for one in expected]
        )
        self.assertEqual(len(self.client.embed("tiny", "hello").embeddings), 1)
        for changes in ({"dimensions": 7}, {"options": {"temperature": "hot"}}):
            with self.assertRaises(ollama.ResponseError) as caught:
                self.client.embed(**{"model": "tiny", "input": "hello", **changes})
            self.assertEqual(caught.exception.status_code, 400)
            self.assertIn(next(iter(changes)), caught.exception.error)

    def test_cuts_texts_that_do_not_fit(self):
        long = "the world " * 500
        ids = self.server.post("/tokenize", {"content": long, "add_special": True})[1]["tokens"]
        answer = self.client.embed("tiny", [long, "hello"])
        expected = self.server.post("/v1/embeddings", {"input": [ids[:256]]})[1]["data"][0]
        self.assertEqual(list(answer.embeddings[0]), expected["embedding"])
        with self.assertRaises(ollama.ResponseError) as caught:
            self.client.embed("tiny", long, truncate=False)
        self.assertEqual(caught.exception.status_code, 400)

    def test_tells_about_models(self):
        self.assertEqual([model.model for model in self.client.list().models], ["tiny"])
        model = self.client.show("tiny")
        self.assertEqual(model.capabilities, ["completion"])
        self.assertEqual(model.template, self.server.get("/props")[1]["chat_template"])
        self.assertIn(f"{model.details.family}.context_length", model.modelinfo)
        (loaded,) = self.client.ps().models
        self.assertEqual((loaded.model, loaded.context_length), ("tiny", 256))

    def test_says_what_is_wrong_with_a_request(self):
        with self.assertRaises(ollama.ResponseError) as caught:
            self.client.chat("tiny", HELLO, options={"temperature": "hot"})
        self.assertEqual(caught.exception.status_code, 400)
        self.assertIn("options.temperature", caught.exception.error)
        with self.assertRaises(ollama.ResponseError) as caught:
            self.client.chat("tiny", HELLO, format={"type": "hiccup"})
        self.assertIn("format.type", caught.exception.error)


if __name__ == "__main__":
    limpid_program.main()
