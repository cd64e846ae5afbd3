"""Every page and picture of the program in headless Chromium: at three sizes, light and dark, nothing is wider than the
window, the console is empty, nothing is requested but from the page's own server, and the Tab key reaches every control.

What single pages show and do is tested elsewhere: tests/insight/test_explain_page.py, tests/train/test_watch_page.py,
tests/server/test_why.py and tests/server/test_web_*.py."""

import contextlib
import pathlib
import sys
import tempfile
import unittest
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import limpid_program
from limpid_server import Server
from training_runs import Training

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("server", "train", "insight")]
from page import IDLE, LAST_TEXT  # noqa: E402
from test_explain_page import STORIES, TEXT  # noqa: E402
from test_watch_page import watched  # noqa: E402
from web_driver import ENTER, TAB, Browser  # noqa: E402

SIZES = ((1400, 900), (800, 1000), (390, 844))
MODEL = ("-m", STORIES / "stories260K.bin", "--tokenizer", STORIES / "tok512.bin")
EXPLAIN = ("explain", *MODEL, "-p", TEXT, "--no-measure")
FRAME = "document.querySelector('#why iframe')?.contentDocument"

# What Tab has to reach: all that is shown and takes the focus. Of radio buttons and of lists of options it is one.
CONTROLS = """
    const shown = (e) => e.checkVisibility({visibilityProperty: true}) && !e.closest('[inert]');
    const all = (root) => [...root.querySelectorAll(
        'a[href], button, select, input, textarea, summary, [tabindex]')]
      .filter((e) => shown(e) && !e.disabled && e.tabIndex >= 0);
    window.focused = () => {
      let at = document.activeElement;
      while (at?.contentDocument) at = at.contentDocument.activeElement;
      return at;
    };
    const frame = document.querySelector('iframe')?.contentDocument;
    window.controls = frame ? all(frame) : all(document);
    document.activeElement?.blur();
    return window.controls.map((e) => e.outerHTML.slice(0, 90));"""

# The texts of a picture that do not fit in it: it has a size of its own, whatever the window's.
OUTSIDE = """
    const {width, height} = document.documentElement.viewBox.baseVal;
    return [...document.querySelectorAll('text')].filter((text) => {
      const box = text.getBBox(), turn = text.getCTM(), own = document.documentElement.getCTM();
      const corners = [[box.x, box.y], [box.x + box.width, box.y + box.height]].map(
          ([x, y]) => new DOMPoint(x, y).matrixTransform(own.inverse().multiply(turn)));
      return corners.some(({x, y}) => x < -1 || y < -1 || x > width + 1 || y > height + 1);
    }).map((text) => text.textContent);"""


@dataclass
class Page:
    """One row of the table: how the page is made, and what says that it is there."""

    # A context: within it the page can be asked for at the address.
    opened: Callable[["EveryPage"], contextlib.AbstractContextManager[str]]
    ready: str
    least_controls: int = 0
    # What a user does before the page is looked at.
    first: Callable[["EveryPage"], None] = field(default=lambda test: None)


def file(name: str, option: str, *command: object):
    """A page that a command writes to a file."""

    @contextlib.contextmanager
    def opened(test: "EveryPage") -> Iterator[str]:
        path = test.folder / name
        limpid_program.run(*command, option, path)
        yield path.as_uri()

    return opened


def live(*command: object):
    """A page that a command serves while it runs."""

    @contextlib.contextmanager
    def opened(_: "EveryPage") -> Iterator[str]:
        with watched(*command) as (_, address):
            yield address

    return opened


@contextlib.contextmanager
def report(test: "EveryPage") -> Iterator[str]:
    test.training.fine(*test.training.command("run", "--steps", 12))
    yield (test.training.folder / "run" / "report.html").as_uri()


@contextlib.contextmanager
def growing_report(test: "EveryPage") -> Iterator[str]:
    command = test.training.command("live", "--sample-every", 10, "--steps", 100000)
    with watched(*command, "--watch") as (_, address):
        yield address


@contextlib.contextmanager
def server(_: "EveryPage") -> Iterator[str]:
    with Server("-n", 12, "--temp", 0) as running:
        yield running.url + "/"


def ask_why(test: "EveryPage") -> None:
    test.browser.wait("document.querySelector('#model').textContent")
    test.browser.type("#question", "hello" + ENTER)
    test.browser.wait(f"{IDLE} && {LAST_TEXT}?.length > 0")
    test.browser.run(
        "[...document.querySelectorAll('.assistant button')].find(b => b.textContent === 'Why?').click()"
    )


SIZES_DRAWN = "document.querySelector('#sizes-chart svg')"
FRAMES = "frames.length > 1"
PICTURE = "document.documentElement.tagName === 'svg'"
PAGES = {
    "explain": Page(file("explain.html", "-o", *EXPLAIN, "-n", 8), SIZES_DRAWN, 25),
    "explain with times": Page(
        file("times.html", "-o", *EXPLAIN[:-1], "-n", 4),
        "document.querySelector('#times-table tr')", 25,
    ),
    "explain --beside": Page(
        file("beside.html", "-o", *EXPLAIN, "--beside", STORIES / "stories260K.bin"),
        "document.querySelector('#contrasts .chips')", 25,
    ),
    "explain --ablate": Page(
        file("ablate.html", "-o", *EXPLAIN, "--ablate", "L1.mlp"),
        "document.querySelector('#contrasts .chips')", 25,
    ),
    "explain --patch": Page(
        file("patch.html", "-o", *EXPLAIN, "--patch", TEXT.replace("Lily", "Tom"), "--positions", -1,
             "--at", "L2"),
        "document.querySelector('#contrasts .chips')", 25,
    ),
    "explain --steer": Page(
        file("steer.html", "-o", *EXPLAIN, "--steer", " happy", "--minus", " sad", "--at", "L2"),
        "document.querySelector('#contrasts .chips')", 25,
    ),
    **{
        f"explain --svg {what}": Page(file("what.svg", "-o", *EXPLAIN, "--svg", what), PICTURE)
        for what in ("surprise", "lens", "parts", "part-heads", "sizes", "heads", "L1.H2")
    },
    **{
        f"explain --svg {what}": Page(
            file("what.svg", "-o", *EXPLAIN, "--ablate", "L1.mlp", "--svg", what), PICTURE
        )
        for what in ("distance", "divergence")
    },
    "inspect --rope-svg": Page(file("rope.svg", "--rope-svg", "inspect", *MODEL), PICTURE),
    "inspect --weights --svg": Page(
        file("weights.svg", "--svg", "inspect", "--weights", *MODEL), PICTURE
    ),
    "microgpt --watch": Page(live("microgpt", "--watch", "--num_steps", 100000), FRAMES, 10),
    "microgpt --film": Page(
        file("film.html", "--film", "microgpt", "--num_steps", 60, "--samples", 0), FRAMES, 8
    ),
    "microgpt --watch-task circle": Page(live("microgpt", "--watch-task", "circle"), FRAMES, 8),
    "microgpt --watch-task xor": Page(live("microgpt", "--watch-task", "xor"), FRAMES, 8),
    "microgpt --watch-task spiral": Page(live("microgpt", "--watch-task", "spiral"), FRAMES, 8),
    "microgpt --graph": Page(file("graph.svg", "--graph", "microgpt"), PICTURE),
    "train, the report": Page(report, "document.querySelector('.curves svg')", 4),
    "train --watch": Page(growing_report, "document.querySelectorAll('.curves svg').length === 4", 4),
    "serve": Page(server, "document.querySelector('#model').textContent", 5),
    "serve, Why?": Page(server, f"{FRAME}?.querySelector('#sizes-chart svg')", 25, ask_why),
}  # fmt: skip


class EveryPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = cls.enterClassContext(Browser())

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.training = Training()
        self.training.setUp()
        self.addCleanup(self.training.doCleanups)

    def test_every_page(self):
        for name, page in PAGES.items():
            with self.subTest(name), page.opened(self) as address:
                self.browser.resize(*SIZES[0])
                self.browser.go("about:blank")
                self.browser.log("browser")
                self.browser.requested()
                self.browser.go(address)
                page.first(self)
                self.browser.wait(f"!!({page.ready})")
                self.check_sizes(page)
                self.check_keys(page.least_controls)
                self.assertEqual(
                    [entry["message"] for entry in self.browser.log("browser")], [], "console"
                )
                own = (address, "data:", "blob:", "about:")
                requested = self.browser.requested()
                self.assertEqual([url for url in requested if not url.startswith(own)], [])
                self.browser.go("about:blank")

    def check_sizes(self, page: Page):
        for theme in ("light", "dark"):
            for width, height in SIZES:
                self.browser.resize(width, height, theme)
                self.browser.wait(f"!!({page.ready})")
                if page.ready == PICTURE:
                    self.assertEqual(self.browser.run(OUTSIDE), [])
                    continue
                wide = self.browser.run("return document.documentElement.scrollWidth")
                self.assertLessEqual(wide, width, theme)

    def check_keys(self, least: int):
        for width, height in (SIZES[0], SIZES[-1]):
            self.browser.resize(width, height, "light")
            controls = self.browser.run(CONTROLS)
            self.assertGreaterEqual(len(controls), least)
            reached = set()
            for _ in range(len(controls) + 10):
                self.browser.press(TAB)
                reached.add(self.browser.run("return window.controls.indexOf(window.focused())"))
            # A page that grows puts new elements in the place of old ones, which are gone then.
            gone = self.browser.run(
                "return window.controls.flatMap((e, i) => e.isConnected ? [] : [i])"
            )
            missed = set(range(len(controls))) - reached - set(gone)
            self.assertEqual([controls[i] for i in sorted(missed)], [])


if __name__ == "__main__":
    limpid_program.main()
