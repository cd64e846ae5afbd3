"""The page of `limpid explain` in headless Chromium: it loads nothing, nothing fails, keys reach everything, and no text
of a model becomes markup."""

import pathlib
import struct
import sys

import limpid_program

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from web_driver import DOWN, LEFT, RIGHT, TAB, InBrowser  # noqa: E402

STORIES = limpid_program.DATA / "stories260K"
TEXT = "Once upon a time, there was a little girl named Lily. One day, Lily"
SIZES = ((1400, 900), (800, 1000), (390, 844))
FILLED = "expected lens-table parts-list parts-layers sizes-chart contrasts times-table".split()
CONTROLS = set(
    "chips lens-table heads-map choose-layer choose-head hide-sink habits parts-list".split()
)
HOSTILE = (
    b"</script><script>window.hacked = 1</script>",
    b"<img src=x onerror='window.hacked = 2'>",
    b"\"><svg onload='window.hacked = 3'>",
)


def explain(page: pathlib.Path, *options: object) -> str:
    limpid_program.run("explain", *options, "-o", page)
    return page.as_uri()


def percent(share: float) -> str:
    """As the page writes it."""
    if share >= 0.0995:
        return f"{100 * share:.0f} %"
    return f"{100 * share:.1f} %" if share >= 0.001 else "< 0.1 %"


def signed(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{abs(value):.2f}"


def hostile_vocabulary(path: pathlib.Path, texts: tuple[bytes, ...] = HOSTILE) -> pathlib.Path:
    """stories260K's vocabulary with the texts in the place of its last pieces (llama2.c: score, length, bytes)."""
    source = (STORIES / "tok512.bin").read_bytes()
    at, pieces = 4, []
    while at < len(source):
        score, length = struct.unpack_from("<fi", source, at)
        pieces.append((score, source[at + 8 : at + 8 + length]))
        at += 8 + length
    for i, text in enumerate(texts):
        pieces[-1 - i] = (pieces[-1 - i][0], text)
    path.write_bytes(
        struct.pack("<i", 64)
        + b"".join(struct.pack("<fi", s, len(text)) + text for s, text in pieces)
    )
    return path


class ExplainPage(InBrowser):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = ("-m", STORIES / "stories260K.bin", "--tokenizer", STORIES / "tok512.bin")
        cls.options = (*cls.model, "-p", TEXT, "-n", 12, "--ablate", "L1.mlp,L2.H3")
        cls.address = explain(cls.folder / "page.html", *cls.options)

    def setUp(self):
        super().setUp()
        self.browser.resize(*SIZES[0])
        self.browser.go(self.address)

    def test_every_size_and_theme(self):
        for theme in ("light", "dark"):
            for width, height in SIZES:
                self.browser.resize(width, height, theme)
                self.browser.reload()
                with self.subTest(theme=theme, width=width):
                    self.assertEqual(self.value("document.querySelectorAll('section').length"), 7)
                    self.assertLessEqual(self.value("document.documentElement.scrollWidth"), width)
                    self.assertGreater(
                        self.value("document.querySelectorAll('#chips button').length"), 30
                    )
                    for name in FILLED:
                        self.assertTrue(self.value(f"find('{name}').childElementCount"), name)
        addresses = self.browser.requested()
        self.assertEqual(
            {address for address in addresses if not address.startswith("file:")}, set()
        )

    def test_paper_is_white_in_the_dark_theme_too(self):
        """Also the pictures on canvases, which keep the colours that they were drawn with."""
        corner = """(() => {
            const map = document.querySelector('#heads-map');
            const copy = new OffscreenCanvas(1, 1).getContext('2d');
            copy.drawImage(map, 5 - map.width, -4);
            return [...copy.getImageData(0, 0, 1, 1).data].slice(0, 3);
        })()"""
        light = self.value(f"[colors, {corner}]")
        self.assertEqual(light[0]["page"], [255, 255, 255])
        dark_theme = [{"name": "prefers-color-scheme", "value": "dark"}]

        def seen_as(media: str, page_color: int):
            """A page hears of another medium or theme in one of its next frames."""
            self.browser.devtools("Emulation.setEmulatedMedia", media=media, features=dark_theme)
            self.browser.wait(f"colors.page[0] === {page_color}")
            return self.value(f"[colors, {corner}]")

        dark = seen_as("", 20)
        paper = seen_as("print", 255)
        self.assertEqual(paper[0]["blue"], light[0]["blue"])
        self.assertEqual(paper[1], light[1])
        self.assertNotEqual(paper[1], dark[1])
        self.assertEqual(seen_as("", 20), dark)

    def test_the_page_is_there_within_a_second(self):
        """Of the page's own thread, since other programs may have the cores."""
        self.browser.devtools("Performance.enable", timeDomain="threadTicks")
        before = self.browser.cpu_time()
        self.browser.reload()
        self.assertTrue(self.value("document.querySelector('#sizes-chart svg') !== null"))
        self.assertLess(self.browser.cpu_time() - before, 1)

    def test_keys_reach_every_control(self):
        reached = set()
        for _ in range(120):
            self.browser.press(TAB)
            reached.add(
                self.value(
                    "document.activeElement.id || document.activeElement.closest('[id]')?.id"
                )
            )
        self.assertEqual(CONTROLS - reached, set())

    def test_arrows_choose_a_token(self):
        self.browser.run("document.querySelector('#chips [aria-selected=true]').focus()")
        before = self.value("document.querySelector('#expected-title').textContent")
        self.browser.press(LEFT)
        after = self.value("document.querySelector('#expected-title').textContent")
        self.assertNotEqual(before, after)
        self.assertEqual(self.value("document.activeElement.getAttribute('aria-selected')"), "true")
        self.browser.press(RIGHT)
        self.assertEqual(
            self.value("document.querySelector('#expected-title').textContent"), before
        )

    def test_arrows_choose_a_layer_and_a_head(self):
        self.browser.run("document.querySelector('#lens-table td[tabindex=\"0\"]').focus()")
        self.browser.press(DOWN)
        self.assertTrue(
            self.value(
                "document.querySelector('#lens-detail').textContent.startsWith('After layer 3')"
            )
        )
        self.browser.run(
            "choose({layer: 1, head: 1}); document.querySelector('#heads-map').focus()"
        )
        self.browser.press(RIGHT)
        self.assertIn("L1.H2", self.value("document.querySelector('#head-title').textContent"))

    def test_the_numbers_shown_are_those_of_the_json(self):
        json = limpid_program.run_json("explain", *self.options, "--json")
        place = 9
        self.browser.run("choose({place: arguments[0]})", place)
        text = self.value("document.querySelector('#expected-text').textContent")
        self.assertIn(f"{json['surprise_bits'][place]:.2f} bits", text)
        parts = json["parts"][place - 1]
        shown = self.value("document.querySelector('#parts-sum').textContent")
        self.assertIn(f"together {parts['sum']:.4f}", shown)
        self.assertIn(f"logit is {parts['logit']:.4f}", shown)
        best = json["lens"][2]["predictions"][place - 1]["likeliest"][0]["id"]
        self.assertEqual(
            self.value("data.lens[2].ids[data.lens[2].n * (arguments[0] - 1)]", place), best
        )
        shown = self.value("document.querySelector('#contrasts p').textContent")
        what_if = json["what_if"]
        self.assertIn("part in layer 1", shown)
        self.assertIn(f"{what_if['mean_surprise_bits'][1]:.3f} bits", shown)
        self.assertIn(
            f"divergence of the predictions is {what_if['mean_divergence_bits']:.3f}", shown
        )
        chosen = self.value("document.querySelector('#contrasts .chosen-place p').textContent")
        self.assertIn(f"differ by {what_if['divergence_bits'][place - 1]:.3f} bits", chosen)
        self.assertIn(
            f"streams that made them differ by {percent(what_if['token_distance'][place - 1])}.",
            chosen,
        )
        self.assertIn(f"a surprise of {json['surprise_bits'][place]:.2f} bits", chosen)
        self.assertIn(f"and of {what_if['surprise_bits'][place]:.2f} bits in the second", chosen)
        rows = self.value(
            "[...document.querySelectorAll('#contrasts tr')].slice(1).map("
            "(row) => [...row.cells].slice(1).map((cell) => cell.textContent))"
        )
        changes = what_if["token_changes"][place - 1]
        self.assertEqual(len(rows), sum(abs(c["after"] - c["before"]) >= 0.0005 for c in changes))
        for row, change in zip(rows, changes, strict=False):  # the page shows the largest
            self.assertEqual(row[:2], [percent(change["before"]), percent(change["after"])])

    def test_two_runs_are_read_by_keyboard(self):
        """Each list of tokens is one stop of the Tab key, and a token says its number."""
        lists = "document.querySelectorAll('[role=listbox]')"
        self.assertEqual(self.value(f"{lists}.length"), 2)
        self.assertEqual(
            self.value(
                f"[...{lists}].map((list) => list.querySelectorAll('[tabindex=\"0\"]').length)"
            ),
            [1, 1],
        )
        self.browser.run("choose({place: 9})")
        self.browser.run("document.querySelector('#contrasts [aria-selected=true]').focus()")
        self.browser.press(RIGHT)
        self.assertEqual(self.value("chosen.place"), 10)
        self.assertEqual(
            self.value("document.activeElement.getAttribute('aria-label')"),
            self.value(
                "`${visible(data.ids[10])}, ${data.contrasts[0].divergence[9].toFixed(3)} bits of divergence`"
            ),
        )

    def test_an_equal_model_changes_nothing(self):
        options = ("-p", TEXT, "--beside", STORIES / "stories260K.bin")
        self.browser.go(explain(self.folder / "same.html", *self.model, *options))
        self.assertIn("Their layers do not differ", self.value("find('contrasts').textContent"))
        self.assertIn("No probability changes", self.value("find('contrasts').textContent"))
        self.assertEqual(self.value("document.querySelectorAll('#contrasts tr').length"), 0)

    def test_pictures_say_their_numbers(self):
        """To a screen reader, which reads the labels of pictures."""
        json = limpid_program.run_json("explain", *self.options, "--json")
        self.browser.run("choose({place: 9, layer: 2, head: 1})")

        def label(what):
            return self.value(
                "document.querySelector(arguments[0]).getAttribute('aria-label')", what
            )

        parts = json["parts"][8]
        most = max(
            ((abs(mlp), f"MLP of layer {i} {signed(mlp)}") for i, mlp in enumerate(parts["mlps"]))
        )[1]
        self.assertIn(most, label("#parts-layers svg"))
        _, i, j = max(
            (abs(part), i, j)
            for i, heads in enumerate(parts["heads"])
            for j, part in enumerate(heads)
        )
        self.assertIn(f"L{i}.H{j} {signed(parts['heads'][i][j])}", label("#parts-heads canvas"))
        stream = json["norms"][-1]["stream"]
        self.assertIn(f"{sum(stream) / len(stream):.3g} at layer 4", label("#sizes-chart svg"))
        self.assertIn(
            f"{percent(json['what_if']['distance'][-1])} after layer 4", label("#contrasts svg")
        )
        self.assertRegex(label("#lines svg"), r" at \d+ \d+(\.\d)? %")
        self.assertIn("head L2.H1: ", label("#head-matrix"))
        # What is said when arrow keys choose a head.
        self.browser.run("find('heads-map').focus()")
        self.browser.press(RIGHT)
        self.assertTrue(
            self.value("find('head-detail').textContent").startswith("L2.H2: on average")
        )
        self.assertEqual(self.value("find('head-detail').getAttribute('aria-live')"), "polite")

    def test_a_model_with_nan_has_a_page(self):
        weights = bytearray((STORIES / "stories260K.bin").read_bytes())
        at = len(weights) // 8 * 4  # in the middle of the float32 weights
        weights[at : at + 4] = struct.pack("<f", float("nan"))
        damaged = self.folder / "nan.bin"
        damaged.write_bytes(weights)
        options = ("-m", damaged, *self.model[2:], "-p", TEXT, "--ablate", "L0.mlp")
        self.browser.go(explain(self.folder / "nan.html", *options))
        shown = self.value("find('contrasts').textContent")
        self.assertIn("to NaN bits", shown)
        self.assertNotIn("No probability changes", shown)
        self.assertTrue(self.value("find('times-table').childElementCount"))

    def test_a_model_with_infinity_has_a_page(self):
        weights = bytearray((STORIES / "stories260K.bin").read_bytes())
        weights[28 + 256 : 32 + 256] = struct.pack("<f", float("inf"))  # of BOS's embedding
        damaged = self.folder / "inf.bin"
        damaged.write_bytes(weights)
        page = explain(self.folder / "inf.html", "-m", damaged, *self.model[2:], "-p", TEXT)
        self.browser.go(page)
        self.assertEqual(self.value("find('sizes-chart').childElementCount"), 1)

    def test_nothing_is_cut_on_paper(self):
        self.browser.resize(720, 1000)
        self.browser.devtools("Emulation.setEmulatedMedia", media="print")
        self.addCleanup(self.browser.devtools, "Emulation.setEmulatedMedia", media="")
        ids = ",".join(["403", "407", "261"] * 150)
        options = ("--ids", ids, "-c", 512, "--ablate", "L1.mlp")
        self.browser.go(explain(self.folder / "paper.html", *self.model, *options))
        cut = """const edge = document.querySelector('main').getBoundingClientRect().right + 1;
            return [...document.querySelectorAll('.chips, .scroll, main *')]
            .filter((e) => e.getBoundingClientRect().right > edge ||
                (e.matches('.chips, .scroll') && e.scrollHeight > e.clientHeight + 1))
            .map((e) => e.id || e.className || e.tagName)"""
        self.assertGreater(self.value("find('chips').clientHeight"), 500)
        self.assertEqual(self.browser.run(cut), [])

    def test_text_of_a_model_never_runs(self):
        vocabulary = hostile_vocabulary(self.folder / "<img src=x onerror=window.hacked=4>.bin")
        model = self.folder / "<script>window.hacked=5<script>.bin"
        model.write_bytes((STORIES / "stories260K.bin").read_bytes())
        address = explain(
            self.folder / "hostile.html", "-m", model, "--tokenizer", vocabulary, "--ids", "511,510,509,511,510,509",
        )  # fmt: skip
        self.browser.go(address)
        self.assertIsNone(self.value("window.hacked"))
        for place in range(7):
            self.browser.run("choose({place: arguments[0]})", place)
        self.assertIsNone(self.value("window.hacked"))
        self.assertEqual(self.value("document.querySelectorAll('img, svg[onload]').length"), 0)
        shown = self.value("document.querySelector('#chips').textContent")
        self.assertIn("onerror", shown)
        self.assertIn("</script><script>", shown)

    def test_numbers_stay_behind_their_tokens_from_right_to_left(self):
        texts = ("שלום".encode(), "עולם".encode())
        vocabulary = hostile_vocabulary(self.folder / "hebrew.bin", texts)
        model = ("-m", STORIES / "stories260K.bin", "--tokenizer", vocabulary)
        self.browser.go(explain(self.folder / "hebrew.html", *model, "--ids", "511,510,511"))
        from_left = self.browser.run("""
            const list = make('p', {}, tokenSpan(511), ' 45 %, ', tokenSpan(510), ' 20 %');
            find('lens-detail').after(list);
            return Array.from(list.childNodes, (node) => {
              const range = document.createRange();
              range.selectNode(node);
              return range.getBoundingClientRect().left;
            });""")
        self.assertEqual(from_left, sorted(from_left))

    def test_a_long_text_stays_small(self):
        tokens = limpid_program.run_json("explain", *self.model, "-p", TEXT, "--json")["tokens"]
        ids = ([token["id"] for token in tokens] * 30)[:512]
        page = self.folder / "long.html"
        self.browser.go(explain(page, *self.model, "--ids", ",".join(map(str, ids)), "-c", 512))
        self.assertLess(page.stat().st_size, 5_000_000)
        self.assertEqual(self.value("document.querySelectorAll('#chips button').length"), 513)

    def test_eight_thousand_tokens_can_be_used(self):
        """Times are of the page's own thread; the bounds are generous, for a machine with other work."""
        tokens = limpid_program.run_json("explain", *self.model, "-p", TEXT, "--json")["tokens"]
        ids = ([token["id"] for token in tokens] * 400)[:8000]
        page = self.folder / "very_long.html"
        address = explain(
            page, *self.model, "--ids", ",".join(map(str, ids)), "-c", 8000, "--no-measure"
        )
        self.assertLess(page.stat().st_size, 10_000_000)
        self.browser.devtools("Performance.enable", timeDomain="threadTicks")
        before = self.browser.cpu_time()
        self.browser.go(address)
        self.browser.wait("document.querySelector('#sizes-chart svg')")
        self.assertLess(self.browser.cpu_time() - before, 5)
        self.assertEqual(self.value("document.querySelectorAll('#chips button').length"), 8001)
        self.assertLessEqual(self.value("find('lens-map').width"), 1000)
        self.assertIn("mean of 16 tokens", self.value("find('lens-legend').textContent"))
        # What is selected has its details, and every next choice is drawn at once.
        for place in (7990, 4000):
            before = self.browser.cpu_time()
            self.browser.run("choose({place: arguments[0], layer: 2, head: 3})", place)
            self.assertIn("It came with", self.value("find('expected-text').textContent"))
            self.assertIn("L2.H3 reads", self.value("find('lines-title').textContent"))
            self.assertIn("%", self.value("find('lines').textContent"))
            self.assertTrue(
                self.value(
                    """((list, chip) => chip.top >= list.top && chip.bottom <= list.bottom)(
                        find('chips').getBoundingClientRect(),
                        find('chips').children[chosen.place].getBoundingClientRect())"""
                )
            )
            self.assertLess(self.browser.cpu_time() - before, 1.5)
        # The parts of the last places are kept, and a token in front of them says that they are not.
        self.assertIn(
            "together", self.value("(choose({place: 7999}), find('parts-sum').textContent)")
        )
        self.assertIn("--parts", self.value("(choose({place: 9}), find('parts-sum').textContent)"))
        self.browser.run("find('chips').children[chosen.place].focus()")
        before = self.browser.cpu_time()
        self.browser.press(RIGHT, RIGHT)
        self.assertEqual(self.value("chosen.place"), 11)
        self.assertLess(self.browser.cpu_time() - before, 3)


if __name__ == "__main__":
    limpid_program.main()
