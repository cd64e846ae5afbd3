"""Conversations on the web page, in headless Chromium and against a server that says what a test wants."""

import json
import pathlib
import time

import limpid_program
from mock_server import Answer
from page import ANSWERS, IDLE, LAST, LAST_TEXT, OnThePage
from web_driver import CONTROL, ENTER


class Conversation(OnThePage):
    def test_an_answer_comes_in_piece_by_piece(self):
        self.begin("hello", Answer("one two three four five six seven eight nine ten", pause=0.1))
        partial = self.browser.wait(LAST_TEXT)
        self.assertLess(len(partial), 40)
        self.browser.wait(IDLE)
        self.assertEqual(self.value(LAST_TEXT), "one two three four five six seven eight nine ten")
        self.assertIn(
            "42.0 tokens/s · 10 tokens", self.value(f"{LAST}.querySelector('.facts').textContent")
        )
        request = self.server.requests[0]
        self.assertEqual(request["messages"], [{"role": "user", "content": "hello"}])
        self.assertEqual((request["stream"], request["top_logprobs"]), (True, 5))
        self.assertNotIn("temperature", request)
        self.ask("and then?")
        self.assertEqual([role for role, _ in self.sent()], ["user", "assistant", "user"])

    def test_stop_keeps_what_came_and_frees_the_server(self):
        self.begin("go", Answer("word " * 1000, pause=0.02))
        self.browser.wait(f"{LAST_TEXT}?.length > 20")
        self.browser.click("#stop")
        self.browser.wait(IDLE)
        self.assertIn("stopped", self.value(f"{LAST}.querySelector('.facts').textContent"))
        deadline = time.monotonic() + 5
        while self.server.n_gone == 0:
            self.assertLess(time.monotonic(), deadline, "the server was not told")
            time.sleep(0.02)
        text = self.value(LAST_TEXT)
        self.server.answers.append(Answer(" and the rest"))
        self.press_button("Continue")
        self.browser.wait(f"{IDLE} && {LAST_TEXT}.endsWith('and the rest')")
        self.assertEqual(self.sent()[-1][0], "assistant")
        self.assertEqual(self.sent()[-1][1].strip(), text.strip())
        request = self.server.requests[-1]
        self.assertTrue(request["continue_final_message"])
        self.assertFalse(request["add_generation_prompt"])

    def test_regenerate_edit_and_turn(self):
        self.ask("first", Answer("one"))
        self.server.answers.append(Answer("two"))
        self.press_button("Again")
        self.browser.wait(f"{IDLE} && {LAST_TEXT} === 'two'")
        self.ask("next", Answer("three"))
        self.assertEqual(self.said(), ["first", "two", "next", "three"])
        self.assertEqual([text for _, text in self.sent()], ["first", "two", "next"])
        # The version before has no messages below it.
        self.browser.run("document.querySelector('.switch button').click()")
        self.assertEqual(self.said(), ["first", "one"])
        self.assertEqual(self.value("document.querySelector('.switch span').textContent"), "1/2")
        # Another question in place of the first.
        self.server.answers.append(Answer("four"))
        self.press_button("Edit", "document.querySelector('.user')")
        self.browser.run("document.querySelector('.editor textarea').value = 'changed'")
        self.browser.type(".editor textarea", "!" + CONTROL + ENTER)
        self.browser.wait(f"{IDLE} && {LAST_TEXT} === 'four'")
        self.assertEqual(self.said(), ["changed!", "four"])
        self.assertEqual(self.sent(), [("user", "changed!")])
        self.browser.run("document.querySelector('.user .switch button').click()")
        self.assertEqual(self.said(), ["first", "one"])
        # All of it is there after a reload, and after a way through a file.
        self.reload()
        self.browser.wait(f"{ANSWERS}.length === 1")
        self.assertEqual(self.said(), ["first", "one"])
        self.browser.run("document.querySelectorAll('.switch button')[3].click()")
        self.assertEqual(self.said(), ["first", "two", "next", "three"])

    def test_an_edited_answer_is_kept_as_it_was_written(self):
        self.ask("q", Answer("a1"))
        self.press_button("Edit")
        self.browser.type(".editor textarea", " and more")
        self.browser.click(".editor .main")
        self.assertEqual(self.said(), ["q", "a1 and more"])
        self.assertEqual(len(self.server.requests), 1)
        self.ask("r")
        self.assertEqual(self.sent()[1], ("assistant", "a1 and more"))

    def test_a_reload_in_the_middle_keeps_the_begin(self):
        self.begin("go", Answer("word " * 1000, pause=0.01))
        time.sleep(3)
        self.reload()
        text = self.browser.wait(LAST_TEXT)
        self.assertTrue(text.startswith("word word"))
        self.server.answers.append(Answer("end"))
        self.press_button("Continue")
        self.browser.wait(f"{IDLE} && {LAST_TEXT} === arguments[0] + 'end'", text)
        self.assertTrue(self.value(IDLE))

    def test_a_reload_before_the_first_token_keeps_the_answer_to_come(self):
        self.begin("go", Answer("late", pause=3))
        self.browser.wait(f"{ANSWERS}.length === 1")
        self.reload()
        self.browser.wait(f"{ANSWERS}.length === 1")
        self.assertEqual(self.said(), ["go", ""])
        self.server.answers.append(Answer("now"))
        self.press_button("Again")
        self.browser.wait(f"{IDLE} && {LAST_TEXT} === 'now'")

    def test_a_conversation_deleted_while_it_answers_stays_deleted(self):
        self.begin("go", Answer("word " * 1000, pause=0.02))
        self.browser.wait(f"{LAST_TEXT}?.length > 20")
        self.browser.click("#delete")
        self.browser.click("#ask-yes")
        self.browser.wait(IDLE)
        time.sleep(1)
        self.assertEqual(self.value("document.querySelectorAll('#conversations li').length"), 0)

    def test_a_click_on_the_current_conversation_changes_nothing(self):
        self.begin("go", Answer("word " * 100, pause=0.02))
        self.browser.wait(f"{LAST_TEXT}?.length > 20")
        self.browser.run("document.querySelector('#conversations button').click()")
        self.browser.wait(IDLE)
        self.assertEqual(self.value(LAST_TEXT), "word " * 100)

    def test_the_conversation_that_was_chosen_last_is_shown(self):
        for text in ("one", "two", "three"):
            self.ask(text)
            self.browser.click("#new-conversation")
        titles = "[...document.querySelectorAll('#conversations button')].map(b => b.textContent)"
        self.browser.wait(f"{titles}.join() === 'three,two,one'")
        self.browser.run("""
            return import('./store.js').then(({Store}) => {
              const load = Store.prototype.load;
              let n = 0;
              Store.prototype.load = async function(id) {
                const conversation = await load.call(this, id);
                await new Promise((resolve) => setTimeout(resolve, n++ === 0 ? 500 : 0));
                return conversation;
              };
              const buttons = document.querySelectorAll('#conversations button');
              buttons[2].click();
              buttons[0].click();
            });""")  # fmt: skip
        time.sleep(1)
        self.assertEqual(self.said()[0], "three")

    def test_a_title_has_whole_characters(self):
        script = "document.querySelector('#question').value = arguments[0]"
        self.browser.run(script, "x" * 59 + "😀")
        self.browser.type("#question", ENTER)
        self.browser.wait(f"{ANSWERS}.length === 1 && {IDLE}")
        self.assertEqual(self.value("document.querySelector('#title').textContent"), "x" * 59)

    def export_all(self) -> pathlib.Path:
        self.browser.click("#export-all")
        exported = self.folder / "conversations.json"
        deadline = time.monotonic() + 10
        while not exported.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return exported

    def test_conversations_are_listed_renamed_deleted_and_moved(self):
        titles = "[...document.querySelectorAll('#conversations button')].map(b => b.textContent)"
        self.ask("one")
        self.browser.click("#new-conversation")
        self.ask("two")
        self.browser.wait(f"{titles}.join() === 'two,one'")
        self.browser.click("#rename")
        self.browser.type("#ask-input", "<b>second</b>" + ENTER)
        self.browser.wait(f"{titles}.join() === '<b>second</b>,one'")
        exported = self.export_all()
        kept = json.loads(exported.read_text())
        self.assertEqual([c["title"] for c in kept["conversations"]], ["<b>second</b>", "one"])
        self.browser.click("#delete")
        self.browser.click("#ask-yes")
        self.browser.wait(f"{titles}.join() === 'one'")
        self.assertEqual(self.said(), [])
        self.browser.type("#import-file", str(exported))
        self.browser.wait(f"{titles}.length === 3")
        self.assertEqual(self.said(), ["two", "Fine. Fine. Fine. "])
        exported.unlink()

    def test_a_browser_that_keeps_nothing_exports_and_imports(self):
        blocked = (
            "Object.defineProperty(window, 'indexedDB', {get() { throw new Error('blocked'); }})"
        )
        script = self.browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=blocked)
        self.addCleanup(
            self.browser.devtools,
            "Page.removeScriptToEvaluateOnNewDocument",
            identifier=script["identifier"],
        )
        self.reload()
        self.browser.wait("document.querySelector('#notice').textContent.includes('keeps no')")
        self.ask("one", Answer("first"))
        exported = self.export_all()
        self.browser.click("#new-conversation")
        self.assertEqual(self.said(), [])
        self.browser.type("#import-file", str(exported))
        self.browser.wait(f"{ANSWERS}.length === 1")
        self.assertEqual(self.said(), ["one", "first"])
        exported.unlink()

    def delete_all_in_another_tab(self):
        time.sleep(0.5)  # what the page writes to its database may still be under way
        self.browser.run("""
            return import('./store.js').then(async ({Store}) => {
              const store = new Store();
              await store.open();
              for (const {id} of await store.list()) await store.remove(id);
            });""")  # fmt: skip

    def test_a_conversation_deleted_in_another_tab_is_whole_if_it_goes_on(self):
        self.ask("one", Answer("first"))
        self.delete_all_in_another_tab()
        self.ask("two", Answer("second"))
        self.reload()
        self.browser.wait(f"{ANSWERS}.length === 2")
        self.assertEqual(self.said(), ["one", "first", "two", "second"])

    def test_a_conversation_deleted_in_another_tab_leaves_the_list(self):
        self.ask("one")
        self.browser.click("#new-conversation")
        self.delete_all_in_another_tab()
        self.browser.click("#conversations button")
        self.browser.wait("document.querySelectorAll('#conversations li').length === 0")
        self.assertIn("another tab", self.value("document.querySelector('#notice').textContent"))

    def test_what_cannot_be_kept_is_told_with_the_reason(self):
        self.ask("one")
        self.browser.run("IDBObjectStore.prototype.put = IDBObjectStore.prototype.add")
        self.ask("two")
        notice = self.browser.wait("document.querySelector('#notice').textContent")
        self.assertIn("could not be kept", notice)
        self.assertNotIn("null", notice)

    def test_a_file_that_is_none_of_ours_is_refused(self):
        bad = self.folder / "bad.json"
        good = {"format": "limpid-conversations", "version": 1}
        for text, told in [
            ("{", "not JSON"),
            ("[]", "does not hold"),
            (json.dumps({**good, "version": 2}), "newer version"),
            (json.dumps({**good, "conversations": [{"messages": [{}]}]}), "has no id"),
            (
                json.dumps({**good, "conversations": [{"messages": [{"id": "a", "role": "x"}]}]}),
                "role",
            ),
        ]:
            bad.write_text(text)
            self.browser.run("document.querySelector('#notice').hidden = true")
            self.browser.type("#import-file", str(bad))
            self.browser.wait(
                "document.querySelector('#notice').textContent.includes(arguments[0])", told
            )
        self.assertEqual(self.value("document.querySelectorAll('#conversations li').length"), 0)

    def test_settings_go_with_the_request(self):
        self.browser.click("#open-settings")
        self.assertEqual(self.value("document.querySelector('#setting-top_k').placeholder"), "40")
        for name, text in [
            ("temperature", "0.33"),
            ("top_k", "7"),
            ("max_tokens", "50"),
            ("system", "Be brief."),
        ]:
            self.browser.type(f"#setting-{name}", text)
        self.browser.run("document.querySelector('#setting-alternatives').value = 0")
        self.browser.click("#settings .main")
        self.ask("x")
        request = self.server.requests[0]
        self.assertEqual(
            (request["temperature"], request["top_k"], request["max_tokens"]), (0.33, 7, 50)
        )
        self.assertEqual(self.sent()[0], ("system", "Be brief."))
        self.assertNotIn("logprobs", request)
        self.assertNotIn("min_p", request)

    def test_settings_of_another_tab_stay(self):
        self.browser.run(
            "localStorage.setItem('limpid.settings', JSON.stringify({apiKey: 'k', 'sampler.top_k': 7}))"
        )
        self.browser.click("#tint")
        self.browser.click("#open-settings")
        self.browser.type("#setting-seed", "5")
        self.browser.click("#settings .main")
        kept = "JSON.parse(localStorage.getItem('limpid.settings'))"
        self.browser.wait(f"{kept}['sampler.seed'] === 5")
        self.assertEqual(
            self.value(kept),
            {"apiKey": "k", "sampler.top_k": 7, "sampler.seed": 5, "tint": True},
        )


class Problems(OnThePage):
    def test_each_error_says_what_to_do(self):
        self.allowed = "status of"
        problem = "document.querySelector('.problem')?.textContent"
        for status, message, advice in [
            (
                400,
                "the request needs 9000 tokens of context, and there are 4096",
                "Begin a new conversation",
            ),
            (429, "too many requests wait already", "Try again in a moment"),
            (500, "the server failed", "its log"),
            (503, "the model is being loaded", "loading its model"),
        ]:
            self.ask("x", Answer(message, status=status))
            self.assertIn(message, self.value(problem))
            self.assertIn(advice, self.value(problem))
            self.browser.click("#new-conversation")

    def begin_while_it_loads(self, n_loading: int) -> str:
        """The page of a server that answers so often that it still loads. Returns the notice."""
        self.allowed = "503"
        self.server.n_loading = n_loading
        self.reload()
        return "document.querySelector('#notice')"

    def test_a_server_that_loads_its_model_is_asked_again(self):
        notice = self.begin_while_it_loads(2)
        self.browser.wait(f"{notice}.textContent.includes('the model is being loaded')")
        self.browser.wait(
            f"{notice}.hidden && document.querySelector('#model').textContent === 'mock-1B'"
        )

    def test_a_notice_that_was_closed_stays_closed(self):
        notice = self.begin_while_it_loads(1000)
        self.browser.wait(f"!{notice}.hidden")
        self.browser.run(f"{notice}.querySelector('button').click()")
        time.sleep(2.5)
        self.assertTrue(self.value(f"{notice}.hidden"))
        self.server.n_loading = 0

    def test_a_wrong_key_asks_for_another(self):
        self.allowed = "401"
        self.server.key = "secret"
        self.reload()
        self.browser.wait("document.querySelector('#settings').open")
        self.browser.type("#setting-apiKey", "secret" + ENTER)
        self.browser.wait("!document.querySelector('#settings').open")
        self.browser.wait("document.querySelector('#notice').hidden")
        self.assertEqual(self.ask("x", Answer("in")), "in")

    def test_a_server_with_other_models_is_asked_which(self):
        self.allowed = "404"
        self.server.model = "mock-2B"
        self.ask("x", Answer("'mock-1B' does not exist", status=404, code="model_not_found"))
        self.assertIn("other models", self.value("document.querySelector('.problem').textContent"))
        self.browser.wait("document.querySelector('#model').textContent === 'mock-2B'")
        self.press_button("Try again")
        self.browser.wait(f"{IDLE} && !document.querySelector('.problem')")
        self.assertEqual([r["model"] for r in self.server.requests], ["mock-1B", "mock-2B"])

    def test_an_answer_that_breaks_off_can_be_continued(self):
        self.allowed = "net::ERR"
        for answer, told in [
            (Answer("a b c d", fails_after=2), "the server failed"),
            (Answer("x", status=500), "x"),
        ]:
            self.allowed = "500"
            self.ask("x", answer)
            self.assertIn(told, self.value(f"{LAST}.querySelector('.problem').textContent"))
            self.server.answers.append(Answer(" z"))
            self.press_button("Try again")
            self.browser.wait(f"{IDLE} && !document.querySelector('.problem')")
        self.assertEqual(self.said(), ["x", "a b z", "x", "z"])

    def test_an_earlier_answer_that_failed_is_tried_again_once(self):
        self.allowed = "500"
        self.ask("x", Answer("broken", status=500))
        self.ask("y", Answer("fine"))
        self.server.answers.append(Answer("a b c d e f", pause=0.1))
        problem = "document.querySelectorAll('.problem button')"
        self.browser.run(f"{problem}[0].click()")
        self.assertEqual(self.value(f"{problem}.length"), 0)
        self.browser.wait(IDLE)
        self.assertEqual(self.said(), ["x", "a b c d e f", "y", "fine"])

    def test_a_connection_that_ends_early(self):
        self.ask("x", Answer("a b c d", breaks_after=2))
        problem = self.value(f"{LAST}.querySelector('.problem').textContent")
        self.assertIn("connection broke", problem)
        self.server.answers.append(Answer(" z"))
        self.press_button("Continue")
        self.browser.wait(f"{IDLE} && {LAST_TEXT} === 'a b z'")

    def test_a_server_that_is_gone(self):
        self.allowed = "net::ERR_CONNECTION_REFUSED"
        self.server.__exit__()
        self.ask("x")
        self.assertIn(
            "does not answer", self.value("document.querySelector('.problem').textContent")
        )


if __name__ == "__main__":
    limpid_program.main()
