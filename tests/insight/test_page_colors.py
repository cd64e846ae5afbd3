"""The colours of all pages are told apart by people who do not see all of them, and text can be read.

Colour vision without one kind of cone is simulated in linear RGB (Machado, Oliveira & Fernandes 2009), and two colours
are compared by their distance in CIELAB, in which 2 is about the least difference that is seen.
"""

import itertools
import pathlib
import re
import unittest

import limpid_program

COLORS = pathlib.Path(__file__).parents[2] / "src/jinja/page_colors.css"
WEB = pathlib.Path(__file__).parents[2] / "src/server/web"
EYES = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
TO_XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
WHITE = (0.9505, 1.0, 1.089)


def times(matrix, vector) -> list[float]:
    return [sum(m * v for m, v in zip(row, vector, strict=True)) for row in matrix]


def linear(color: str) -> list[float]:
    shares = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]


def lab(rgb: list[float]) -> tuple[float, float, float]:
    shares = [v / w for v, w in zip(times(TO_XYZ, rgb), WHITE, strict=True)]
    x, y, z = (s ** (1 / 3) if s > 0.008856 else 7.787 * s + 16 / 116 for s in shares)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(a: str, b: str, eyes: str) -> float:
    seen = [
        lab([min(max(v, 0.0), 1.0) for v in times(EYES[eyes], linear(color))]) for color in (a, b)
    ]
    return sum((p - q) ** 2 for p, q in zip(*seen, strict=True)) ** 0.5


def contrast(a: str, b: str) -> float:
    """Of WCAG 2: 1 for equal colours, 21 for black on white."""
    low, high = sorted(times(TO_XYZ, linear(color))[1] for color in (a, b))
    return (high + 0.05) / (low + 0.05)


def mixed(a: str, b: str, share: float) -> str:
    """What color-mix(in srgb, a share, b) gives."""
    shades = [
        round(share * int(a[i : i + 2], 16) + (1 - share) * int(b[i : i + 2], 16))
        for i in (1, 3, 5)
    ]
    return "#" + "".join(f"{shade:02x}" for shade in shades)


def themes() -> dict[str, dict[str, str]]:
    blocks = COLORS.read_text().split("@media")
    return {
        name: dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block))
        for name, block in zip(("light", "dark", "print"), blocks, strict=True)
    }


class Colors(unittest.TestCase):
    def test_blue_and_orange_are_told_apart_by_everybody(self):
        for (name, theme), eyes in itertools.product(themes().items(), EYES):
            self.assertGreater(distance(theme["blue"], theme["orange"], eyes), 40, (name, eyes))
            for ink in ("blue", "orange"):
                self.assertGreater(distance(theme[ink], theme["page"], eyes), 25, (name, eyes, ink))

    def test_red_and_green_would_not_do(self):
        red, green = "#d62728", "#2ca02c"
        self.assertGreater(distance(red, green, "normal"), 100)
        self.assertLess(distance(red, green, "deuteranopia"), 10)

    def test_text_can_be_read(self):
        for name, theme in themes().items():
            for ink, ground in itertools.product(("text", "faint"), ("page", "panel")):
                self.assertGreater(contrast(theme[ink], theme[ground]), 4.5, (name, ink, ground))

    def test_text_of_the_chat_can_be_read_also_where_words_are_coloured(self):
        style = (WEB / "style.css").read_text()
        colors = re.findall(r"--([a-z0-9-]+): light-dark\((#\w{6}), (#\w{6})\)", style)
        marks = [f"mark-{level}" for level in (1, 2, 3, 4)]
        for column in (1, 2):
            theme = {row[0]: row[column] for row in colors}
            for ground in ("page", "panel", "panel-hover", "question", *marks):
                self.assertGreater(contrast(theme["text"], theme[ground]), 4.5, (column, ground))
            for ground in ("page", "panel"):
                self.assertGreater(contrast(theme["faint"], theme[ground]), 4.5, (column, ground))
        words = (WEB / "messages.css").read_text()
        with_text = re.findall(r"::highlight\(surprise-\d\) \{[^}]* color: var\(--text\);", words)
        self.assertEqual(len(with_text), len(marks))

    def test_text_on_every_heat_can_be_read(self):
        """The script colours up to a share of 0.9; the style changes the letters' colour at the limit."""
        limits = [
            float(limit) for limit in re.findall(r"--heat-limit: ([0-9.]+)", COLORS.read_text())
        ]
        for (name, theme), limit in zip(themes().items(), limits, strict=True):
            for share in (i / 500 for i in range(501)):
                ink = theme["on-heat" if share > limit else "on-cool"]
                ground = mixed(theme["blue"], theme["page"], share)
                self.assertGreater(contrast(ink, ground), 4.5, (name, share))


if __name__ == "__main__":
    limpid_program.main()
