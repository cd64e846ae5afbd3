"""`limpid serve` as LangChain and LiteLLM use it, unmodified, as they come from PyPI."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # nothing is fetched

import langchain_openai
import limpid_program
import limpid_server
import litellm
import openai

KEY = "a secret key"
HELLO = [{"role": "user", "content": "hello"}]
TEXTS = ["hello", "the world"]


class WithServer(limpid_server.WithServer):
    flags = ["--alias", "tiny"]
    key = KEY

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.url = cls.server.url + "/v1"
        asked = {"messages": HELLO, "temperature": 0, "max_tokens": 16}
        answer = cls.server.post("/v1/chat/completions", {**asked, "logprobs": True})[1]
        cls.text = answer["choices"][0]["message"]["content"]
        cls.logprobs = [token["logprob"] for token in answer["choices"][0]["logprobs"]["content"]]
        embedded = cls.server.post("/v1/embeddings", {"input": TEXTS})[1]["data"]
        cls.embeddings = [entry["embedding"] for entry in embedded]

    def assert_near(self, embeddings: list[list[float]]) -> None:
        self.assertEqual(len(embeddings), len(self.embeddings))
        for ours, theirs in zip(self.embeddings, embeddings, strict=True):
            for a, b in zip(ours, theirs, strict=True):
                self.assertAlmostEqual(a, b, places=5)


class LangChain(WithServer):
    def chat(self, **changes: object) -> langchain_openai.ChatOpenAI:
        settings = {"temperature": 0, "max_tokens": 16, "api_key": KEY, "max_retries": 0}
        return langchain_openai.ChatOpenAI(base_url=self.url, model="x", **{**settings, **changes})

    def test_answers_and_streams(self):
        answer = self.chat().invoke("hello")
        self.assertEqual(answer.content, self.text)
        self.assertEqual(answer.usage_metadata["output_tokens"], 16)
        self.assertEqual("".join(part.content for part in self.chat().stream("hello")), self.text)

    def test_frees_the_place_of_who_leaves(self):
        stream = self.chat(max_tokens=200, extra_body={"ignore_eos": True}).stream("hello")
        next(stream)
        stream.close()
        self.server.wait_until_idle()

    def test_refuses(self):
        with self.assertRaises(openai.AuthenticationError):
            self.chat(api_key="a guess").invoke("hello")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(extra_body={"mirostat": 2}).invoke("hello")
        self.assertEqual(caught.exception.param, "mirostat")

    def test_gives_log_probabilities(self):
        answer = self.chat(logprobs=True, top_logprobs=2).invoke("hello")
        tokens = answer.response_metadata["logprobs"]["content"]
        self.assertEqual([token["logprob"] for token in tokens], self.logprobs)
        self.assertEqual({len(token["top_logprobs"]) for token in tokens}, {2})

    def test_embeds(self):
        embeddings = langchain_openai.OpenAIEmbeddings(
            base_url=self.url, api_key=KEY, model="x", check_embedding_ctx_length=False
        )
        self.assert_near(embeddings.embed_documents(TEXTS))


class LiteLlm(WithServer):
    def complete(self, **changes: object):
        settings = {"temperature": 0, "max_tokens": 16, "api_key": KEY, "max_retries": 0}
        return litellm.completion(
            model="openai/x", messages=HELLO, api_base=self.url, **{**settings, **changes}
        )

    def test_answers_and_streams(self):
        answer = self.complete()
        self.assertEqual(answer.choices[0].message.content, self.text)
        self.assertEqual(answer.usage.completion_tokens, 16)
        parts = [part.choices[0].delta.content or "" for part in self.complete(stream=True)]
        self.assertEqual("".join(parts), self.text)

    def test_frees_the_place_of_who_leaves(self):
        stream = self.complete(stream=True, max_tokens=200, extra_body={"ignore_eos": True})
        next(stream)
        stream.completion_stream.close()
        self.server.wait_until_idle()

    def test_refuses(self):
        with self.assertRaises(litellm.AuthenticationError):
            self.complete(api_key="a guess")
        with self.assertRaises(litellm.BadRequestError) as caught:
            self.complete(extra_body={"mirostat": 2})
        self.assertIn("mirostat", str(caught.exception))

    def test_gives_log_probabilities(self):
        tokens = self.complete(logprobs=True, top_logprobs=2).choices[0].logprobs.content
        self.assertEqual([token.logprob for token in tokens], self.logprobs)
        self.assertEqual({len(token.top_logprobs) for token in tokens}, {2})

    def test_embeds(self):
        answer = litellm.embedding(model="openai/x", input=TEXTS, api_base=self.url, api_key=KEY)
        self.assert_near([entry["embedding"] for entry in answer.data])


if __name__ == "__main__":
    limpid_program.main()
