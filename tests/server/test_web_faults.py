"""The web page where its surroundings are not as usual: other keys, other models, a browser that clears what it kept."""

import time

import limpid_program
from mock_server import Answer
from page import ANSWERS, IDLE, LAST, LAST_TEXT, OnThePage
from web_driver import ENTER

NOTICE = "document.querySelector('#notice')"


class Faults(OnThePage):
    def test_a_key_beyond_ascii_goes_as_its_utf_8(self):
        self.allowed = "401"
        self.server.key = "ключ é".encode().decode("latin-1")
        self.ask("x")
        self.browser.wait("document.querySelector('#settings').open")
        self.browser.type("#setting-apiKey", "ключ é" + ENTER)
        self.browser.wait("!document.querySelector('#settings').open")
        self.assertEqual(self.ask("x", Answer("in")), "in")

    def test_a_server_that_began_again_with_another_model(self):
        self.ask("x")
        self.server.model = "mock-2B"
        self.ask("y")
        self.browser.wait("document.querySelector('#model').textContent === 'mock-2B'")

    def test_a_notice_is_in_sight_below_long_answers(self):
        self.ask("x", Answer("word " * 3000))
        self.browser.run("navigator.clipboard.writeText = () => Promise.reject()")
        self.press_button("Copy")
        self.browser.wait(f"!{NOTICE}.hidden")
        self.assertTrue(
            self.value(f"""(() => {{
                const box = {NOTICE}.getBoundingClientRect();
                const shown = document.elementFromPoint(box.left + 20, box.top + 10);
                return {NOTICE}.contains(shown);
            }})()""")
        )

    def test_a_browser_that_clears_what_it_kept_keeps_what_follows(self):
        self.ask("one", Answer("first"))
        time.sleep(0.5)  # what the page writes to its database may still be under way
        self.browser.devtools(
            "Storage.clearDataForOrigin",
            origin=self.server.address.rstrip("/"),
            storageTypes="indexeddb",
        )
        time.sleep(0.5)
        self.ask("two", Answer("second"))
        self.reload()
        self.browser.wait(f"{ANSWERS}.length === 2")
        self.assertEqual(self.said(), ["one", "first", "two", "second"])

    def test_what_two_tabs_change_in_a_conversation_is_kept(self):
        self.ask("one", Answer("first"))
        time.sleep(0.5)  # what the page writes to its database may still be under way
        # Another tab renames it, and has another version of the question.
        self.browser.run("""
            return import('./store.js').then(async ({Store}) => {
              const store = new Store();
              await store.open();
              const [{id}] = await store.list();
              const conversation = await store.load(id);
              conversation.title = 'renamed';
              const version = conversation.append(null, 'user', 'other');
              await store.save(conversation, [version]);
            });""")  # fmt: skip
        self.ask("two", Answer("second"))
        self.reload()
        self.browser.wait("document.querySelector('#title').textContent === 'renamed'")
        self.assertEqual(self.said(), ["other"])
        self.browser.run("document.querySelector('.switch button').click()")
        self.assertEqual(self.said(), ["one", "first", "two", "second"])

    def test_an_answer_that_another_tab_receives_is_left_to_it(self):
        text = "word " * 60
        answer = Answer(text, pause=0.2)
        self.begin("go", answer)
        self.browser.wait(f"{LAST_TEXT}?.length > 100")  # the page has kept some of it
        first, second = self.browser.new_tab()
        self.open()
        self.browser.run("document.querySelector('#conversations button').click()")
        self.browser.wait(f"{LAST}?.querySelector('.facts').textContent.includes('stopped')")
        self.assertLess(len(self.value(LAST_TEXT)), len(text))
        self.press_button("Continue")
        self.browser.wait(f"{NOTICE}.textContent.includes('Another tab is receiving')")
        answer.pause = 0  # the rest comes at once
        self.browser.go_to_tab(first)
        self.browser.wait(IDLE)
        # What the first tab has received since is there, and nothing is left to go on with.
        self.browser.go_to_tab(second)
        self.press_button("Continue")
        self.browser.wait(f"{LAST_TEXT} === arguments[0]", text)
        self.assertEqual(len(self.server.requests), 1)
        self.browser.close_tab(first)

    def test_a_name_that_another_tab_gives_is_shown(self):
        self.ask("one", Answer("first"))
        first, second = self.browser.new_tab()
        self.open()
        self.browser.run("document.querySelector('#conversations button').click()")
        self.browser.wait(f"{ANSWERS}.length === 1")
        self.browser.click("#rename")
        self.browser.run("document.querySelector('#ask-input').value = 'renamed'")
        self.browser.click("#ask-yes")
        self.browser.close_tab(first)
        self.browser.wait("document.querySelector('#title').textContent === 'renamed'")
        self.assertEqual(self.value("document.title"), "renamed – Limpid")
        self.browser.wait("document.querySelector('#conversations').textContent === 'renamed'")
        self.ask("two", Answer("second"))
        self.reload()
        self.browser.wait(f"{ANSWERS}.length === 2")
        self.assertEqual(self.value("document.querySelector('#title').textContent"), "renamed")

    def test_a_browser_without_room_says_so(self):
        origin = self.server.address.rstrip("/")
        self.browser.devtools("Storage.overrideQuotaForOrigin", origin=origin, quotaSize=1000)
        self.addCleanup(self.browser.devtools, "Storage.overrideQuotaForOrigin", origin=origin)
        self.ask("one", Answer("word " * 1000))
        self.browser.wait(f"{NOTICE}.textContent.includes('could not be kept: QuotaExceeded')")
        self.assertTrue(self.value(f"{IDLE} && !{LAST}.querySelector('.problem')"))

    def test_text_from_right_to_left_is_written_so(self):
        for text, direction in (("שלום", "rtl"), ("hello", "ltr")):
            self.browser.run("document.querySelector('#question').value = arguments[0]", text)
            style = "getComputedStyle(document.querySelector('#question'))"
            self.assertEqual(self.value(f"{style}.direction"), direction)


if __name__ == "__main__":
    limpid_program.main()
