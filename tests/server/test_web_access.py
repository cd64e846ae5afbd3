"""The web page by keyboard, for screen readers, at all sizes, in light and dark, on paper."""

import limpid_program
from mock_server import Answer
from page import IDLE, LAST, LAST_TEXT, MARKDOWN, OnThePage
from web_driver import ENTER, ESCAPE, SHIFT, TAB


class Access(OnThePage):
    def test_the_keyboard_reaches_every_control(self):
        self.ask("x", Answer(MARKDOWN))
        for width in (1200, 400):
            self.browser.resize(width, 800)
            wanted = self.browser.run("""
                const shown = (e) => e.checkVisibility({visibilityProperty: true}) && !e.closest('[inert]');
                window.controls = [...document.querySelectorAll('button, a[href], textarea, pre, .table, .assistant .body')]
                  .filter((e) => shown(e) && !e.disabled && !e.closest('dialog, [popover]'));
                document.activeElement.blur();
                return window.controls.length;""")  # fmt: skip
            self.assertGreater(wanted, 15)
            reached = set()
            for _ in range(wanted + 10):
                self.browser.press(TAB)
                index = self.value("window.controls.indexOf(document.activeElement)")
                ring = self.value("getComputedStyle(document.activeElement).outlineStyle")
                if index >= 0:
                    reached.add(index)
                    self.assertEqual(ring, "solid")
            missing = self.browser.run(
                "return window.controls.filter((_, i) => !arguments[0].includes(i)).map((e) => e.outerHTML.slice(0, 90))",
                sorted(reached),
            )
            self.assertEqual(missing, [])

    def test_every_control_has_a_name(self):
        self.ask("x", Answer(MARKDOWN))
        self.browser.click("#open-settings")
        tree = self.browser.devtools("Accessibility.getFullAXTree")["nodes"]
        roles = {
            "button",
            "textbox",
            "spinbutton",
            "checkbox",
            "combobox",
            "link",
            "dialog",
            "article",
            "navigation",
        }
        nameless = [
            node["role"]["value"]
            for node in tree
            if not node.get("ignored")
            and node.get("role", {}).get("value") in roles
            and not node.get("name", {}).get("value")
        ]
        self.assertEqual(nameless, [])

    def test_a_switch_of_versions_keeps_the_focus(self):
        self.ask("q", Answer("one"))
        for text in ("two", "three"):
            self.server.answers.append(Answer(text))
            self.press_button("Again")
            self.browser.wait(f"{IDLE} && {LAST_TEXT} === '{text}'")
        self.browser.run("document.querySelector('.assistant .switch button').focus()")
        for text in ("two", "one", "two", "three"):
            self.browser.press(ENTER)
            self.assertEqual(self.value(LAST_TEXT), text)

    FOCUSED = "document.activeElement.id"

    def test_the_focus_stays_where_a_control_goes_away(self):
        self.begin("go", Answer("word " * 1000, pause=0.02))
        self.browser.wait(f"{LAST_TEXT}?.length > 20")
        self.browser.run("document.querySelector('#stop').focus()")
        self.browser.press(ENTER)
        self.browser.wait(f"{IDLE} && {self.FOCUSED} === 'question'")
        self.browser.run(
            f"[...{LAST}.querySelectorAll('button')].find(b => b.textContent === 'Edit').focus()"
        )
        self.browser.press(ENTER)
        self.browser.press("!", TAB, TAB, ENTER)
        self.assertEqual(self.value("document.activeElement.textContent"), "Edit")
        self.assertEqual(self.value(f"{LAST}.contains(document.activeElement)"), True)
        self.browser.type("#import-file", __file__)  # which is not a file of conversations
        self.browser.wait("!document.querySelector('#notice').hidden")
        self.browser.run("document.querySelector('#notice button').focus()")
        self.browser.press(ENTER)
        self.assertEqual(self.value(self.FOCUSED), "question")

    def test_shortcuts(self):
        self.ask("first", Answer("one"))
        self.browser.press(ESCAPE)
        self.assertEqual(self.value("document.activeElement.tagName"), "BODY")
        self.server.answers.append(Answer("two"))
        self.browser.press("r")
        self.browser.wait(f"{IDLE} && {LAST_TEXT} === 'two'")
        self.browser.press(ESCAPE)
        self.browser.press("[")
        self.assertEqual(self.said()[-1], "one")
        self.browser.press("]")
        self.assertEqual(self.said()[-1], "two")
        for is_written, text in ((True, "one"), (False, "one")):
            self.browser.run(
                """document.body.dispatchEvent(new KeyboardEvent("keydown", {
                  key: arguments[0] ? "[" : "]", ctrlKey: true, altKey: true,
                  modifierAltGraph: arguments[0], bubbles: true, cancelable: true}));""",
                is_written,
            )
            self.assertEqual(self.said()[-1], text)
        self.browser.press("?")
        self.browser.wait("document.querySelector('#help').open")
        self.browser.press(ESCAPE)
        self.browser.press("e")
        self.assertEqual(self.value("document.activeElement.closest('.editor') !== null"), True)
        self.browser.press(ESCAPE)
        self.browser.press("/")
        self.assertEqual(self.value("document.activeElement.id"), "question")
        self.browser.press("n", "r")
        self.assertEqual(self.value("document.querySelector('#question').value"), "nr")
        self.browser.press(SHIFT, ENTER)
        self.assertEqual(self.value("document.querySelector('#question').value"), "nr\n")

    def test_blocks_are_spoken_as_they_are_complete(self):
        self.ask("x", Answer("First part.\n\nSecond **part**.\n\n```\ncode\n```"))
        spoken = self.value("[...document.querySelectorAll('#spoken p')].map(p => p.textContent)")
        self.assertEqual(spoken, ["First part.", "Second part.", "Code."])
        self.assertEqual(
            self.value("document.querySelector('#spoken').getAttribute('aria-live')"), "polite"
        )
        self.ask("x", Answer("- one\n- *two*, 2\n  - inner\n\n| a | b |\n|--|--|\n| 1 | 2 |"))
        spoken = self.value("[...document.querySelectorAll('#spoken p')].map(p => p.textContent)")
        self.assertEqual(spoken[3:], ["one\ntwo, 2\ninner", "a\nb\n1\n2"])

    def test_an_error_is_spoken_once(self):
        self.allowed = "500"
        self.ask("x", Answer("broken", status=500))
        self.ask("y", Answer("fine"))
        spoken = "document.querySelector('#spoken').textContent"
        self.assertEqual(self.value(f"{spoken}.split('broken').length"), 2)
        self.reload()
        self.browser.wait("document.querySelector('.problem')")
        self.assertNotIn("broken", self.value(spoken))
        alerts = "[...document.querySelectorAll('[role=alert]')].map(e => e.textContent)"
        self.assertEqual(self.value(alerts), [""])  # that of the whole page

    def test_what_was_spoken_is_not_spoken_again(self):
        self.begin("x", Answer("one\n\ntwo\n\nthree " + "word " * 200, pause=0.02))
        self.browser.wait(f"{LAST_TEXT}?.includes('word word')")
        self.browser.click("#stop")
        self.browser.wait(IDLE)
        self.server.answers.append(Answer("end\n\nfour"))
        self.press_button("Continue")
        self.browser.wait(f"{IDLE} && {LAST_TEXT}.includes('four')")
        spoken = self.value("[...document.querySelectorAll('#spoken p')].map(p => p.textContent)")
        self.assertEqual(spoken.count("one"), 1)

    def test_nothing_sticks_out_at_any_size_in_light_and_dark(self):
        self.ask(
            "A longer question that takes more than one line on a narrow screen", Answer(MARKDOWN)
        )
        colours = set()
        for width, height in ((1400, 900), (800, 700), (360, 640)):
            for theme in ("light", "dark"):
                self.browser.resize(width, height, theme)
                self.assertLessEqual(self.value("document.documentElement.scrollWidth"), width)
                self.assertTrue(self.value("document.querySelector('#send').checkVisibility()"))
                bottom = self.value(
                    "document.querySelector('#send').getBoundingClientRect().bottom"
                )
                self.assertLessEqual(bottom, height)
                colours.add(self.value("getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(len(colours), 2)
        # The switch goes against the system, and holds.
        self.browser.resize(1200, 800, "dark")
        self.browser.click("#theme")
        self.assertEqual(
            self.value("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)"
        )
        self.reload()
        self.assertEqual(
            self.value("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)"
        )

    def test_the_list_is_over_the_page_on_a_narrow_screen(self):
        self.ask("one")
        self.browser.resize(400, 700)
        self.assertFalse(
            self.value(
                "document.querySelector('#sidebar').checkVisibility({visibilityProperty: true})"
            )
        )
        self.browser.click("#open-sidebar")
        self.browser.wait("document.activeElement.closest('#sidebar') !== null")
        self.browser.press(ESCAPE)
        self.assertEqual(self.value("document.activeElement.id"), "open-sidebar")

    def test_the_empty_list_has_the_focus_on_a_narrow_screen(self):
        self.browser.resize(400, 700)
        self.browser.click("#open-sidebar")
        self.browser.wait(f"{self.FOCUSED} === 'new-conversation'")
        self.assertTrue(self.value("document.querySelector('#room').inert"))
        self.browser.press(ESCAPE)
        self.assertFalse(self.value("document.querySelector('#room').inert"))
        self.assertEqual(self.value(self.FOCUSED), "open-sidebar")

    def test_print_shows_the_messages_alone(self):
        self.ask("x", Answer(MARKDOWN))
        self.browser.devtools("Emulation.setEmulatedMedia", media="print")
        hidden = "[...document.querySelectorAll('#sidebar, #composer, .actions, .tools')]"
        self.assertTrue(self.value(f"{hidden}.every(e => !e.checkVisibility())"))
        self.assertTrue(self.value(f"{LAST}.checkVisibility()"))
        self.browser.devtools("Emulation.setEmulatedMedia", media="")


if __name__ == "__main__":
    limpid_program.main()
