"""A test's view of the web page: what it types, presses and reads."""

import time

from mock_server import Answer, MockServer
from web_driver import ENTER, InBrowser

ANSWERS = "document.querySelectorAll('.assistant')"
LAST = "[...document.querySelectorAll('.assistant')].at(-1)"
LAST_TEXT = f"{LAST}?.querySelector('.body').textContent"
IDLE = "!document.querySelector('#send').hidden"
MARKDOWN = """# Title

Words *em* **strong** `code` [link](https://example.org/a_b) and ~~gone~~.

1. one
   - nested
2. two

| a | b |
|---|--:|
| 1 | 2 |

> quoted

```python
print("<b>")
```
"""


class WithAnswers(InBrowser):
    def press_button(self, label: str, message: str = LAST) -> None:
        self.browser.run(
            f"[...{message}.querySelectorAll('button')].find(b => b.textContent === arguments[0]).click()",
            label,
        )


class OnThePage(WithAnswers):
    def setUp(self):
        super().setUp()
        # Another port is another origin: nothing is left of the last test.
        self.server = self.enterContext(MockServer())
        self.open()

    def open(self):
        self.browser.go(self.server.address)
        self.browser.wait("document.querySelector('#model').textContent")

    def reload(self):
        time.sleep(0.5)  # what the page writes to its database may still be under way
        self.browser.reload()

    def tearDown(self):
        """No request goes to another server."""
        super().tearDown()
        requested = self.browser.requested()
        self.assertIn(self.server.address + "v1/models", requested)
        own = (self.server.address, "blob:")
        self.assertEqual([url for url in requested if not url.startswith(own)], [])
        self.browser.go("about:blank")

    def begin(self, question: str, *answers: Answer) -> None:
        self.server.answers.extend(answers)
        self.browser.type("#question", question + ENTER)

    def ask(self, question: str, *answers: Answer) -> str:
        """The text of the answer on the page."""
        n = self.value(f"{ANSWERS}.length")
        self.begin(question, *answers)
        self.browser.wait(f"{ANSWERS}.length > arguments[0] && {IDLE}", n)
        return self.value(LAST_TEXT)

    def said(self) -> list[str]:
        """The messages on the page, from the first to the last."""
        return self.value(
            "[...document.querySelectorAll('.message .body')].map(body => body.textContent)"
        )

    def sent(self, index: int = -1) -> list[tuple[str, str]]:
        return [(m["role"], m["content"]) for m in self.server.requests[index]["messages"]]
