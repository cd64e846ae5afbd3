"""Words of an answer on the web page, long conversations, and the page of `limpid serve`."""

import json
import pathlib
import subprocess

import limpid_program
from mock_server import Answer
from page import ANSWERS, IDLE, LAST, LAST_TEXT, OnThePage
from web_driver import DOWN, ENTER, ESCAPE, RIGHT


class Words(OnThePage):
    TEXT = "The quick brown fox jumps"

    def place_of(self, word: str) -> tuple[float, float]:
        box = self.browser.run("""
            const body = [...document.querySelectorAll('.assistant .body')].at(-1);
            const walker = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
            while (walker.nextNode()) {
              const at = walker.currentNode.data.indexOf(arguments[0]);
              if (at < 0) continue;
              const range = document.createRange();
              range.setStart(walker.currentNode, at);
              range.setEnd(walker.currentNode, at + arguments[0].length);
              const {left, top, width, height} = range.getBoundingClientRect();
              return [left + width / 2, top + height / 2];
            }""", word)  # fmt: skip
        return tuple(box)

    OPEN = "document.querySelector('#alternatives').matches(':popover-open')"
    WORD = "document.querySelector('#alternatives .word').textContent"

    def test_the_pointer_shows_alternatives_and_a_click_takes_one(self):
        self.ask("x", Answer(self.TEXT))
        self.browser.point(*self.place_of("brown"))
        self.browser.wait(f"{self.OPEN} && {self.WORD} === '␣brown'")
        self.assertIn(
            "12 %", self.value("document.querySelector('#alternatives .facts').textContent")
        )
        choices = self.value(
            "[...document.querySelectorAll('#alternatives li .text')].map(e => e.textContent)"
        )
        self.assertEqual(choices, ["␣alpha", "␣<b>beta</b>", "␣brown", "(no text)", "⏎"])
        off = self.value(
            "[...document.querySelectorAll('#alternatives li button')].map(b => b.disabled)"
        )
        self.assertEqual(off, [False, False, True, True, False])
        self.server.answers.append(Answer(" rest"))
        self.browser.click("#alternatives li:nth-child(2) button")
        self.browser.wait(f"{IDLE} && {LAST_TEXT} === 'The quick <b>beta</b> rest'")
        self.assertEqual(self.sent(), [("user", "x"), ("assistant", "The quick <b>beta</b>")])
        self.assertTrue(self.server.requests[-1]["continue_final_message"])
        self.assertEqual(self.value(f"{LAST}.querySelector('.switch span').textContent"), "2/2")
        # The word that was taken knows its place among the others, and so do the words before it.
        for word, percent in (("beta", "25 %"), ("quick", "25 %"), ("rest", "50 %")):
            self.browser.point(*self.place_of(word))
            self.browser.wait(f"{self.OPEN} && {self.WORD}.includes('{word}')")
            self.assertIn(
                percent, self.value("document.querySelector('#alternatives .facts').textContent")
            )
        self.browser.point(5, 400)
        self.browser.wait(f"!{self.OPEN}")

    def test_by_keyboard(self):
        self.ask("x", Answer("**The** quick brown"))
        self.browser.press(ESCAPE)
        self.browser.press("w")
        self.browser.wait(f"{self.OPEN} && {self.WORD} === 'The'")
        self.browser.press(RIGHT)
        self.browser.wait(f"{self.WORD} === '␣quick'")
        self.assertIn(
            "quick, 12 %. Instead: alpha 50 %",
            self.value("document.querySelector('#spoken-word').textContent"),
        )
        self.server.answers.append(Answer("!"))
        self.browser.press(DOWN, DOWN, ENTER)
        self.browser.wait(f"{IDLE} && {LAST_TEXT} === 'The <b>beta</b>!'")
        self.browser.press(ESCAPE)
        self.browser.press("w")
        self.browser.wait(self.OPEN)
        self.browser.press(DOWN, ESCAPE)
        self.browser.wait(f"!{self.OPEN}")

    def test_words_are_tinted_by_surprise(self):
        sizes = "[1, 2, 3, 4].map(i => CSS.highlights.get(`surprise-${i}`).size)"
        self.ask("x", Answer("a b c d e f"))
        self.assertEqual(self.value(sizes), [0, 0, 0, 0])
        self.browser.click("#tint")
        self.browser.wait(f"{sizes}.join() === '2,4,0,0'")  # 1 bit, then 2 and 3 bits
        self.ask("y", Answer("a b c"))
        self.browser.wait(f"{sizes}.join() === '3,6,0,0'")
        self.browser.click("#tint")
        self.browser.wait(f"{sizes}.join() === '0,0,0,0'")


class LongConversation(OnThePage):
    def conversation(self, n: int) -> pathlib.Path:
        """A file of a conversation of n long answers, with their words' alternatives."""
        words = "The engine reads the weights and computes what comes next with care . " * 40
        answer = f"## Part\n\n{words}\n\n- one\n- two\n\n```\ncode()\n```\n\n{words}"
        messages = []
        for i in range(n):
            at, tokens = 0, []
            for word in answer.split(" "):
                end = at + len(word)
                if word:
                    others = [[word, -1.0], [" else", -2.0], [" other", -3.0]]
                    tokens.append({"start": at, "end": end, "logprob": -1.0, "others": others})
                at = end + 1
            parent = f"a{i - 1}" if i else ""
            messages.append(
                {"id": f"q{i}", "parent": parent, "role": "user", "content": f"question {i}"}
            )
            messages.append(
                {
                    "id": f"a{i}",
                    "parent": f"q{i}",
                    "role": "assistant",
                    "content": answer,
                    "tokens": tokens,
                }
            )
        value = {
            "format": "limpid-conversations",
            "version": 1,
            "conversations": [{"title": str(n), "messages": messages}],
        }
        path = self.folder / f"long{n}.json"
        path.write_text(json.dumps(value))
        return path

    def work(self, n_tokens: int) -> float:
        """CPU milliseconds of the page's thread for a token of an answer that comes in now."""
        text = "".join(f"word{'s' * (i % 5)} " if i % 50 else "end.\n\n" for i in range(n_tokens))
        before = self.browser.cpu_time()
        self.ask("more", Answer(text, pause=0.004))
        return 1000 * (self.browser.cpu_time() - before) / n_tokens

    def test_two_hundred_long_answers_cost_a_token_no_more_than_one(self):
        self.browser.click("#tint")
        self.work(50)
        self.browser.click("#new-conversation")
        first = min(self.work(300) for _ in range(2))
        self.browser.type("#import-file", str(self.conversation(200)))
        self.browser.wait(f"{ANSWERS}.length === 200")
        last = min(self.work(300) for _ in range(2))
        print(
            f"a token of answer 1: {first:.2f} ms of the page's thread, of answer 200: {last:.2f} ms"
        )
        self.assertLess(last, 3 * first + 2)
        begin = self.browser.cpu_time()
        self.reload()
        self.browser.wait(f"{ANSWERS}.length >= 200")
        self.assertLess(self.browser.cpu_time() - begin, 10)


class Running:
    def __init__(self, address: str):
        self.address = address


class RealServer(OnThePage):
    """`limpid serve` with a tiny model, which says nothing sensible."""

    def setUp(self):
        command = [
            limpid_program.PROGRAM,
            "serve",
            "-m",
            limpid_program.DATA / "cli" / "tiny_chat.gguf",
            "--port",
            "0",
        ]
        self.process = subprocess.Popen(
            [*command, "-n", "40", "--seed", "3"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.addCleanup(self.process.stdout.close)
        self.addCleanup(self.process.wait, 20)
        self.addCleanup(self.process.terminate)
        self.server = Running(self.process.stdout.readline().strip() + "/")
        self.browser.log("browser")
        self.browser.requested()
        self.browser.resize(1200, 800)
        self.open()

    def test_an_answer_and_the_alternatives_of_its_words(self):
        self.browser.type("#question", "Once upon a time" + ENTER)
        self.browser.wait(f"{IDLE} && {LAST_TEXT}")
        self.assertIn("tokens/s", self.value(f"{LAST}.querySelector('.facts').textContent"))
        self.browser.press(ESCAPE)
        self.browser.press("w", RIGHT, RIGHT)
        shares = self.browser.wait(
            "[...document.querySelectorAll('#alternatives li button')].map(b => parseFloat(b.style.getPropertyValue('--share')))"
        )
        self.assertEqual(len(shares), 5)
        self.assertEqual(shares, sorted(shares, reverse=True))
        self.assertLessEqual(sum(shares), 100.1)
        self.assertIsNone(self.value("document.querySelector('.problem')"))

    def test_another_word_and_then_on(self):
        self.browser.type("#question", "Once upon a time" + ENTER)
        self.browser.wait(f"{IDLE} && {LAST_TEXT}")
        self.browser.press(ESCAPE)
        self.browser.press("w", RIGHT, RIGHT, RIGHT, DOWN)
        before = self.value("CSS.highlights.get('word').values().next().value.startOffset")
        taken = self.value("document.activeElement.querySelector('.text').textContent")
        self.browser.press(ENTER)
        self.browser.wait(
            f"document.querySelector('.switch') && {IDLE} && {LAST_TEXT}.length > {before + 1}"
        )
        self.assertIsNone(self.value("document.querySelector('.problem')"))
        text = self.value(LAST_TEXT)
        self.assertTrue(text[before:].startswith(taken.replace("␣", " ")), (text, taken))
        # The other version differs from here on, and not before.
        self.browser.press(ESCAPE)
        self.browser.press("[")
        other = self.value(LAST_TEXT)
        self.assertEqual(other[:before], text[:before])
        self.assertFalse(other[before:].startswith(taken.replace("␣", " ")))
        self.reload()
        self.assertEqual(self.browser.wait(LAST_TEXT), other)


if __name__ == "__main__":
    limpid_program.main()
