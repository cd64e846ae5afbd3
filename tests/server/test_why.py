"""Why the model said an answer: POST /explain, and the button "Why?" of the web page, in headless Chromium and against
`limpid serve`."""

import concurrent.futures
import pathlib
import sys

import limpid_program
from limpid_server import Server, WithServer
from page import IDLE, LAST_TEXT, WithAnswers
from web_driver import ENTER, ESCAPE

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "insight"))
from test_explain_page import HOSTILE, hostile_vocabulary  # noqa: E402

STORIES = limpid_program.DATA / "stories260K" / "stories260K.bin"
MESSAGES = [{"role": "user", "content": "hello"}]
FRAME = "document.querySelector('#why iframe')?.contentDocument"


class Explains(WithServer):
    key = "secret"

    def explain(self, answer: str, messages=MESSAGES, **more: object):
        return self.server.post("/explain", {"messages": messages, "answer": answer, **more})

    def test_the_numbers_are_those_of_the_program(self):
        status, found = self.explain("the world")
        self.assertEqual(status, 200)
        ids = found["ids"]
        prompt = self.server.post("/apply-template", {"messages": MESSAGES})[1]["prompt"]
        asked = {"content": prompt, "parse_special": True}
        encoded = self.server.post("/tokenize", asked)[1]["tokens"]
        self.assertEqual(ids[: found["n_prompt"]], encoded)
        said = self.server.post("/tokenize", {"content": "the world"})[1]["tokens"]
        self.assertEqual(ids[found["n_prompt"] :][-len(said) :], said)
        expected = limpid_program.run_json(
            "explain", "-m", self.server_model(), "--ids", ",".join(map(str, ids)), "--json",
            "--no-measure",
        )  # fmt: skip
        for one, other in zip(found["surprise"][1:], expected["surprise_bits"][1:], strict=True):
            self.assertAlmostEqual(one, other, 3)
        for one, other in zip(found["parts"], expected["parts"], strict=True):
            self.assertEqual((one["at"], one["sum"]), (other["position"], other["sum"]))
            self.assertLess(abs(one["sum"] - one["logit"]), 1e-3)
        self.assertEqual(found["times"], [])

    @staticmethod
    def server_model() -> pathlib.Path:
        return limpid_program.DATA / "cli" / "tiny_chat.gguf"

    def test_a_request_is_refused_with_words(self):
        for body, status, words in (
            ({"messages": MESSAGES}, 400, "answer"),
            ({"messages": MESSAGES, "answer": ""}, 400, "nothing to explain"),
            ({"messages": MESSAGES, "answer": "a", "temperature": 0}, 400, "temperature"),
            (
                {"messages": MESSAGES, "answer": "the world " * 500},
                400,
                "at most 256 are explained",
            ),
        ):
            with self.subTest(words=words):
                found = self.server.post("/explain", body)
                self.assertEqual(found[0], status)
                self.assertIn(words, found[1]["error"]["message"])
        headers, self.server.headers = self.server.headers, {}
        try:
            self.assertEqual(self.explain("the world")[0], 401)
            status, page = self.server.get("/explain.html")
        finally:
            self.server.headers = headers
        self.assertEqual(status, 200)
        self.assertIn("script-src 'sha256-", page)

    def test_others_get_the_same_bits_meanwhile(self):
        asked = {"prompt": "the world", "n_predict": 32, "temperature": 0, "n_probs": 3}

        def completion(_=None):
            return self.server.post("/completion", asked)[1]["completion_probabilities"]

        alone = completion()
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            explained = [pool.submit(self.explain, "the world " * 20) for _ in range(2)]
            for found in pool.map(completion, range(4)):
                self.assertEqual(found, alone)
            results = [each.result() for each in explained]
        self.assertEqual([status for status, _ in results], [200, 200])
        self.assertEqual(results[0][1], results[1][1])


class OnThePage(WithAnswers):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        vocabulary = hostile_vocabulary(cls.folder / "<img src=x onerror=window.hacked=4>.bin")
        cls.flags = ("--tokenizer", vocabulary, "-n", 16, "--temp", 0)

    def setUp(self):
        super().setUp()
        # Another port is another origin: no conversation of another test is there.
        self.server = self.enterContext(Server(*self.flags, model=STORIES))

    def test_why(self):
        self.browser.go(self.server.url + "/")
        self.browser.wait("document.querySelector('#model').textContent")
        self.browser.log("browser")
        self.browser.requested()
        self.browser.type("#question", "Once upon a time" + ENTER)
        self.browser.wait(f"{IDLE} && {LAST_TEXT}?.length > 0")
        self.press_button("Why?")
        self.browser.wait(f"!!{FRAME}?.querySelector('#sizes-chart svg')")
        self.assertEqual(self.value(f"{FRAME}.querySelectorAll('section').length"), 5)
        self.assertIn(
            "written by the model", self.value(f"{FRAME}.querySelector('#description').textContent")
        )
        n_chips = self.value(f"{FRAME}.querySelectorAll('#chips button.answer').length")
        self.assertGreater(n_chips, 3)
        self.browser.press(ESCAPE)  # in the frame
        # A dialog's `close` event comes some time after the key.
        self.browser.wait("!document.querySelector('#why iframe')")
        # An answer of markup, whose tokens are markup too.
        self.press_button("Edit")
        self.browser.run(
            "document.querySelector('.editor textarea').value = arguments[0]",
            " ".join(text.decode() for text in HOSTILE),
        )
        self.browser.click(".editor .main")
        self.press_button("Why?")
        self.browser.wait(f"!!{FRAME}?.querySelector('#sizes-chart svg')")
        shown = self.value(f"{FRAME}.querySelector('#chips').textContent")
        self.assertIn("<", shown)
        for scope in ("window", "document.querySelector('#why iframe').contentWindow"):
            self.assertIsNone(self.value(f"{scope}.hacked"))
        self.assertEqual(self.value(f"{FRAME}.querySelectorAll('img, svg[onload]').length"), 0)
        self.browser.click("#why-close")
        self.browser.wait("!document.querySelector('#why iframe')")
        own = (self.server.url, "blob:")
        self.assertEqual([url for url in self.browser.requested() if not url.startswith(own)], [])

    def test_an_answer_that_is_too_long_is_refused_on_the_page(self):
        self.browser.go(self.server.url + "/")
        self.browser.wait("document.querySelector('#model').textContent")
        self.browser.type("#question", "Once upon a time" + ENTER)
        self.browser.wait(f"{IDLE} && {LAST_TEXT}?.length > 0")
        self.press_button("Edit")
        self.browser.run(
            "document.querySelector('.editor textarea').value = 'once upon '.repeat(2000)"
        )
        self.browser.click(".editor .main")
        self.press_button("Why?")
        self.browser.wait(
            "document.querySelector('#why-status').textContent.includes('are explained')"
        )
        self.browser.log("browser")  # the status 400


if __name__ == "__main__":
    limpid_program.main()
