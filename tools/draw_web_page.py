"""Takes the pictures of docs/server-page.md: the page of `limpid serve` in headless Chromium, with a real model.

    draw_web_page.py build/release/limpid MODEL

Writes docs/server-page.png (light, the alternatives of a word) and docs/server-page-narrow.png (dark, narrow).
"""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "server"))
from web_driver import DOWN, ENTER, ESCAPE, RIGHT, Browser  # noqa: E402

QUESTION = "What is the capital of Italy, and why do people like to go there?"
WORD = 7  # the answer's word whose alternatives are shown
COMPLETE = "document.querySelector('.assistant') && !document.querySelector('#send').hidden"


def draw(browser: Browser, address: str) -> None:
    browser.go(address)
    browser.resize(1000, 640)
    browser.wait("document.querySelector('#model').textContent")
    browser.type("#question", QUESTION + ENTER)
    browser.wait(COMPLETE, seconds=120)
    browser.click("#tint")
    browser.press(ESCAPE)
    browser.press("w", *[RIGHT] * WORD, DOWN)
    browser.wait("document.querySelector('#alternatives').matches(':popover-open')")
    browser.screenshot(ROOT / "docs" / "server-page.png")
    browser.press(ESCAPE)
    browser.resize(390, 640, "dark")
    browser.run("document.activeElement.blur()")
    browser.screenshot(ROOT / "docs" / "server-page-narrow.png")


def main() -> None:
    program, model = sys.argv[1:]
    options = "--port 0 --seed 1 --temp 0.4 --no-log".split()
    command = [program, "serve", "-m", model, *options]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
        Browser() as browser,
    ):
        draw(browser, process.stdout.readline().strip())
        process.terminate()


if __name__ == "__main__":
    main()
