"""Draws what a terminal shows as an SVG: text on standard input, with the colours that `tmux capture-pane -p -e` keeps.

    tmux capture-pane -p -e | draw_terminal.py docs/chat.svg

Understands bold, dim and the eight colours of the foreground; trailing blank lines are left out.
"""

import html
import pathlib
import re
import sys

COLUMN, ROW, MARGIN = 8.4, 19, 16  # of a character at 14 pixels, of a line, around the text
BACKGROUND, FOREGROUND = "#1d2026", "#d8dbe0"
COLOURS = ["#5c6370", "#e06c75", "#98c379", "#d5b06b", "#61afef", "#c678dd", "#56b6c2", "#d8dbe0"]
SEQUENCE = re.compile("\x1b\\[([0-9;]*)m")


class Style:
    """What an escape sequence (ECMA-48, SGR) sets, and SVG's words for it."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.bold, self.dim, self.colour = False, False, FOREGROUND

    def apply(self, parameters: str) -> None:
        for code in map(int, (parameters or "0").split(";")):
            if code == 0:
                self.reset()
            elif code in (1, 2):
                self.bold, self.dim = self.bold or code == 1, self.dim or code == 2
            elif code == 22:
                self.bold = self.dim = False
            elif 30 <= code <= 37:
                self.colour = COLOURS[code - 30]
            elif code == 39:
                self.colour = FOREGROUND

    def attributes(self) -> str:
        weight = ' font-weight="bold"' if self.bold else ""
        opacity = ' opacity="0.6"' if self.dim else ""
        return f'fill="{self.colour}"{weight}{opacity}'


def runs_of(line: str, style: Style) -> list[tuple[int, str, str]]:
    """(column, text, attributes) of each stretch of one style; `style` goes on to the next line."""
    runs, column, end = [], 0, 0
    for match in [*SEQUENCE.finditer(line), None]:
        text = line[end : match.start() if match else None]
        if text.strip():
            runs.append((column, text, style.attributes()))
        column += len(text)
        if match:
            style.apply(match[1])
            end = match.end()
    return runs


def draw(screen: str) -> str:
    lines = screen.rstrip().split("\n")
    width = max(len(SEQUENCE.sub("", line)) for line in lines) * COLUMN + 2 * MARGIN
    height = len(lines) * ROW + 2 * MARGIN
    style = Style()
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}">',
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
        '<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" xml:space="preserve">',
    ]
    for number, line in enumerate(lines):
        for column, text, attributes in runs_of(line, style):
            x, y = MARGIN + column * COLUMN, MARGIN + (number + 0.75) * ROW
            parts.append(
                f'<text x="{x:.1f}" y="{y:.1f}" textLength="{len(text) * COLUMN:.1f}" {attributes}>'
                f"{html.escape(text)}</text>"
            )
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(draw(sys.stdin.read()), encoding="utf-8")
