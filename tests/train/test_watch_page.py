"""The pages of `limpid microgpt --watch` and `--film` and of `limpid train --watch`, in headless Chromium: the numbers
drawn are those of the training, keys reach everything, nothing is loaded, and no text of a data file becomes markup."""

import collections
import contextlib
import json
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import limpid_program
import numpy
from training_runs import Training

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from web_driver import DOWN, RIGHT, TAB, InBrowser  # noqa: E402

SIZES = ((1400, 900), (800, 1000), (390, 844))
HOSTILE = (
    "<script>window.hacked=1</script>\n<img src=x onerror=hacked=2>\n</script><b>\n&lt;b&gt;\n"
)
END = "document.querySelector('#notice').textContent.includes('has ended')"


@contextlib.contextmanager
def watched(*arguments: object):
    """(process, address of its page). The process is ended."""
    process = subprocess.Popen(
        [str(limpid_program.PROGRAM), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in process.stderr:
            if "http://" in line:
                yield process, line.split()[1]
                break
        else:
            raise AssertionError("no address")
    finally:
        process.kill()
        process.communicate()


def safetensors(path: pathlib.Path) -> numpy.ndarray:
    """All numbers of a file with F64 tensors, in the order of microgpt's matrices, as f32."""
    raw = path.read_bytes()
    (n,) = struct.unpack_from("<Q", raw)
    head = json.loads(raw[8 : 8 + n])
    layers = sorted({name.split(".")[0] for name in head if name.startswith("layer")})
    kinds = ("attn_wq", "attn_wk", "attn_wv", "attn_wo", "mlp_fc1", "mlp_fc2")
    names = ["wte", "wpe", "lm_head", *(f"{layer}.{kind}" for layer in layers for kind in kinds)]
    parts = []
    for name in names:
        begin, end = head[name]["data_offsets"]
        parts.append(numpy.frombuffer(raw[8 + n + begin : 8 + n + end], "<f8"))
    return numpy.concatenate(parts).astype(numpy.float32)


class Pages(InBrowser):
    # A test that ends the program does not wait for the page, which may ask once more.
    allowed = "ERR_CONNECTION_REFUSED"

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.browser.go("about:blank")
        super().setUp()
        self.browser.resize(*SIZES[0])

    def text(self, selector: str) -> str:
        return self.value("document.querySelector(arguments[0]).textContent", selector)

    @contextlib.contextmanager
    def watching(self, *arguments: object):
        """As watched(), with its page open. The page is left before the program is ended: it would lose an answer that
        it waits for, and the console would say so."""
        with watched(*arguments) as (process, address):
            self.browser.go(address)
            yield process, address
            self.browser.go("about:blank")

    def film(self, *options: object) -> pathlib.Path:
        page = self.folder / "film.html"
        limpid_program.run("microgpt", "--film", page, *options)
        return page

    def check_sizes(self, allowed: str):
        """No page is wider than its window, and none asks for anything but `allowed`."""
        for theme in ("light", "dark"):
            for width, height in SIZES:
                self.browser.resize(width, height, theme)
                self.browser.reload()
                with self.subTest(theme=theme, width=width):
                    self.browser.wait(
                        "document.querySelectorAll('#loss polyline, .curves svg').length"
                    )
                    self.assertLessEqual(self.value("document.documentElement.scrollWidth"), width)
        addresses = {address for address in self.browser.requested() if address != "about:blank"}
        foreign = [a for a in addresses if not a.startswith((allowed, "data:"))]
        self.assertEqual(foreign, [])

    def check_keys(self, wanted: set):
        reached = set()
        self.browser.run("document.activeElement.blur()")
        for _ in range(40):
            self.browser.press(TAB)
            reached.add(self.value("document.activeElement.closest('[id]')?.id"))
        self.assertEqual(wanted - reached, set())


class Live(Pages):
    def test_the_weights_drawn_are_those_that_are_saved(self):
        model = self.folder / "model.safetensors"
        options = ("--num_steps", 30, "--samples", 1, "--n_embd", 8, "--save", model)
        with self.watching("microgpt", "--watch", *options) as (process, address):
            self.browser.wait("frames.length > 0")
            self.browser.run("document.querySelector('#walk').checked = false")
            for _ in range(10):
                self.browser.click("#faster")
            self.browser.wait(END)
            self.assertEqual(process.wait(20), 0)
            saved = safetensors(model)
            shown = numpy.array(self.value("Array.from(frames.at(-1).weights)"), numpy.float32)
            self.assertEqual(shown.tolist(), saved.tolist())
            self.assertIn("step 30 of 30", self.text("#facts"))
            self.assertRegex(process.stdout.read(), r"step   30 /   30 \| loss")
            self.check_cells(saved)
            self.check_lines(saved)
            self.browser.run("choose({position: 2}); draw()")
            self.check_attention(saved, n_embd=8, n_head=4)

    def check_attention(self, weights: numpy.ndarray, n_embd: int, n_head: int):
        """Computes the attention weights anew and reads the cells of the squares back."""
        tokens = self.value("frames.at(-1).tokens.slice(0, frames.at(-1).n_positions)")
        rows = weights.astype(float).reshape(-1, n_embd)
        wte, wpe, _, wq, wk, _ = numpy.split(rows, numpy.cumsum([28, 8, 28, n_embd, n_embd]))
        x = wte[tokens] + wpe[: len(tokens)]
        for _ in range(2):  # the embedding's norm, and that of the block
            x = x / numpy.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-5)
        q, k = ((x @ w.T).reshape(len(tokens), n_head, -1) for w in (wq, wk))
        scores = numpy.einsum("thd,shd->hts", q, k) / numpy.sqrt(n_embd / n_head)
        powers = numpy.exp(scores) * numpy.tri(len(tokens))
        expected = powers / powers.sum(axis=2, keepdims=True)
        shown = self.value(
            "[...document.querySelectorAll('#heads svg')].map((svg) =>"
            " [...svg.querySelectorAll('.cell')].map((c) => Number(c.getAttribute('fill-opacity'))))"
        )
        self.assertEqual(len(shown), n_head)
        visible = numpy.tril_indices(len(tokens))
        for cells, head in zip(shown, expected, strict=True):
            self.assertLessEqual(numpy.abs(numpy.array(cells) - head[visible]).max(), 1e-5)
        arcs = self.value(
            "[...document.querySelectorAll('#heads .arc')].map((arc) =>"
            " Number(arc.getAttribute('stroke-width')))"
        )
        chosen = self.value("chosen.position")
        wide = [0.5 + 5 * weight for head in expected for weight in head[chosen, : chosen + 1]]
        self.assertLessEqual(numpy.abs(numpy.array(arcs) - wide).max(), 1e-4)

    def strongest(self, weights: numpy.ndarray) -> float:
        wide = weights.astype(float)
        return min(numpy.abs(wide).max(), 3 * numpy.sqrt((wide**2).mean()))

    def check_cells(self, weights: numpy.ndarray):
        """Reads the pixels of the matrix wte back."""
        most = self.strongest(weights)
        pixels = self.value(
            "Array.from(matrices[0].getContext('2d').getImageData(0, 0, 8, 28).data)"
        )
        cells = numpy.array(pixels).reshape(28 * 8, 4)[:, :3]
        for weight, cell in zip(weights[: 28 * 8], cells, strict=True):
            share = min(1, abs(float(weight)) / most)
            ink = (0xD5, 0x5E, 0x00) if weight < 0 else (0x00, 0x72, 0xB2)
            expected = [255 + (part - 255) * share for part in ink]
            self.assertLessEqual(numpy.abs(cell - expected).max(), 0.51, weight)

    def check_lines(self, weights: numpy.ndarray):
        """Reads back the calls that draw the lines: each weight is one, of its width and colour."""
        self.browser.run("""
            window.strokes = [];
            const context = picture.getContext("2d");
            const {stroke, moveTo, beginPath} = CanvasRenderingContext2D.prototype;
            let n = 0;
            context.beginPath = function() { n = 0; beginPath.call(this); };
            context.moveTo = function(x, y) { ++n; moveTo.call(this, x, y); };
            context.stroke = function() {
              if (n) strokes.push([n, this.lineWidth, this.strokeStyle]);
              stroke.call(this);
            };
            draw();""")
        strokes = self.value("strokes")
        self.assertEqual(sum(n for n, _, _ in strokes), len(weights))
        drawn = collections.Counter()
        for n, width, color in strokes:
            is_negative = color.startswith("rgba(213, 94, 0")
            drawn[(is_negative, round((width - 0.35) / 2.9 * 20))] += n
        most = self.strongest(weights)
        expected = collections.Counter()
        for weight in weights.astype(float):
            level = int(min(1, abs(weight) / most) * 20 + 0.5)
            expected[(bool(weight < 0), level)] += 1
        self.assertEqual(drawn, expected)

    @contextlib.contextmanager
    def paused_run(self):
        """The process of a run that a page has paused."""
        with self.watching("microgpt", "--watch-task", "xor", "--num_steps", 3000) as (process, _):
            self.browser.wait("frames.length > 2")
            self.browser.click("#pause")
            self.browser.wait("isPaused")
            yield process

    def test_looking_back_stays_at_its_step(self):
        with self.paused_run():
            looked, shown = self.browser.run("""
                follows = false;
                let looked = 0;
                while (keepEvery === 1) {
                  choose({frame: 100});
                  looked = frame().step;
                  addFrame({...frames.at(-1), step: frames.at(-1).step + 1});
                }
                return [looked, frame().step];""")
            self.assertIn(looked - shown, (0, 1))

    def test_pause_step_speed_and_learning_rate(self):
        with self.paused_run() as process:
            step = self.value("frames.at(-1).step")
            self.browser.click("#step")
            self.browser.wait(f"frames.at(-1).step === {step + 1}")
            self.browser.click("#step")
            self.browser.wait(f"frames.at(-1).step === {step + 2}")
            before = self.value("frames.at(-1).learning_rate_now")
            self.browser.run("find('rate').focus()")
            self.browser.press(RIGHT)
            self.browser.wait(f"frames.at(-1).learning_rate_now > {before}")
            self.browser.click("#slower")
            self.browser.wait("speed === 10")
            self.assertEqual(self.text("#speed"), "10 steps/s")
            self.browser.click("#pause")
            self.browser.wait(f"frames.at(-1).step > {step + 5}")
            # A run that nobody looks at goes on, as fast as it can.
            self.browser.go("about:blank")
            self.assertEqual(process.wait(30), 0)

    def test_keys_sizes_and_history(self):
        with self.watching("microgpt", "--watch") as (_, address):
            self.browser.wait("frames.length > 1")
            wanted = {"pause", "step", "slower", "faster", "rate", "time", "quantity", "walk"}
            self.check_keys(wanted | {"name", "picture"})
            self.browser.run("find('picture').focus()")
            self.browser.press(RIGHT, RIGHT, DOWN)
            self.browser.wait("find('neuron-text').textContent.startsWith('x ')")
            live = "find('neuron-values').getAttribute('aria-live')"
            self.assertEqual(self.value(live), "off")
            self.browser.click("#pause")
            self.browser.wait(f"{live} === 'polite'")
            self.browser.click("#pause")
            self.browser.wait(f"{live} === 'off'")
            self.assertEqual(len(self.value("[...document.querySelectorAll('#history svg')]")), 2)
            for quantity in ("change", "gradients", "flow", "weights"):
                self.browser.run(f"choose({{quantity: '{quantity}'}}); draw()")
                self.assertIn("widest", self.text("#scale"))
            self.check_sizes(address)

    def test_strangers_are_refused(self):
        with watched("microgpt", "--watch-task", "xor") as (_, address):
            for path, headers, body, status in (
                ("", {"Host": "evil.example"}, None, 403),
                ("command", {"Origin": "http://evil.example"}, b"{}", 403),
                ("command", {}, b'{"stop": 1}', 400),
                ("state?after=x", {}, None, 400),
                ("nothing", {}, None, 404),
            ):
                request = urllib.request.Request(address + path, body, headers)
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(request, timeout=20)
                self.assertEqual(refused.exception.code, status, path)
                refused.exception.close()

    def test_ctrl_c_ends_a_run_that_waits_or_is_paused(self):
        for pauses in (False, True):
            with watched("microgpt", "--watch-task", "xor") as (process, address):
                if pauses:
                    self.browser.go(address)
                    self.browser.wait("frames.length > 1")
                    self.browser.click("#pause")
                    self.browser.wait("isPaused")
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(20), 130)
                if pauses:
                    self.browser.wait(END)


class Films(Pages):
    def test_a_film_of_names_replays_from_a_file(self):
        model = self.folder / "model.safetensors"
        page = self.film("--num_steps", 300, "--samples", 0, "--save", model)
        self.assertLess(page.stat().st_size, 9_000_000)
        self.browser.go(page.as_uri())
        self.browser.wait("chosen.frame > 1")
        self.assertGreater(self.value("frames.length"), 50)
        shown = numpy.array(self.value("Array.from(frames.at(-1).weights)"), numpy.float32)
        self.assertEqual(shown.tolist(), safetensors(model).tolist())
        self.check_keys(
            {"pause", "step", "slower", "faster", "time", "quantity", "name", "picture"}
        )
        self.browser.run("find('time').focus()")
        self.browser.press(RIGHT)
        self.assertTrue(self.value("isPaused"))
        # Paper is white in the dark theme too.
        dark = [{"name": "prefers-color-scheme", "value": "dark"}]
        for media, page_color in (("", 20), ("print", 255), ("", 20)):
            self.browser.devtools("Emulation.setEmulatedMedia", media=media, features=dark)
            self.browser.wait(f"colors.page[0] === {page_color}")
        self.check_sizes("file:")

    def test_the_plane_is_what_the_weights_say(self):
        for task in ("circle", "spiral"):
            page = self.film("--watch-task", task, "--num_steps", 400)
            self.browser.go(page.as_uri())
            last = self.value("frames.at(-1)")
            weights = numpy.array(last["weights"])
            matrices = [
                weights[c["offset"] : c["offset"] + c["rows"] * c["cols"]].reshape(c["rows"], -1)
                for c in self.value("network.connections")
            ]
            n = self.value("network.n_grid")
            line = (2 * numpy.arange(n) + 1) / n - 1
            x = numpy.stack([numpy.tile(line, n), numpy.repeat(line, n)])
            for i in range(0, 6, 2):
                x = matrices[i] @ x + matrices[i + 1]
                x = numpy.maximum(x, 0) if i < 4 else x
            expected = 255 / (1 + numpy.exp(-x[0]))
            shown = numpy.array(last["grid"])
            self.assertLessEqual(numpy.abs(shown - expected).max(), 0.6)
            self.browser.run("isPaused = true; choose({frame: frames.length}); draw()")
            self.assertIn("% of 240 points", self.text("#accuracy"))
            self.check_sizes("file:")

    def test_names_never_run(self):
        names = self.folder / "<img src=x onerror=hacked=3>.txt"
        names.write_text(HOSTILE)
        options = ("--data", names, "--num_steps", 40, "--block_size", 40, "--samples", 0)
        self.browser.go(self.film(*options).as_uri())
        for _ in range(8):
            self.browser.run("choose({frame: chosen.frame + 4, neuron: 3}); draw()")
        self.assertIn("<", self.text("#name"))
        self.assertEqual(self.value("document.querySelectorAll('main img, main script').length"), 0)
        self.assertIsNone(self.value("window.hacked"))

    def test_mistakes(self):
        for options, told in (
            (("--watch-task", "square"), "the tasks are circle, xor and spiral"),
            (("--watch-task", "xor", "--n_embd", 8), "--n_embd means nothing"),
            (("--watch-task", "xor", "--save", "x"), "--save means nothing"),
            (("--watch", "--n_embd", 128, "--engine", "fast"), "too large to draw"),
            (("--watch-task", "xor", "--learning_rate", -1), "learning rate -1: must be above 0"),
            (("--film", "-"), "name a file"),
            (("--batch_size", 10**18), "must be at most"),
            (("--film", "/nowhere/film.html"), "/nowhere/film.html"),
            (("--watch", "--load", "x", "--sample-only"), "trains nothing"),
        ):
            code, _, err = limpid_program.outcome("microgpt", *options)
            self.assertEqual((code, err.count("\n")), (1, 1), err)
            self.assertIn(told, err)


class TrainingPage(Pages, Training):
    def setUp(self):
        Training.setUp(self)
        Pages.setUp(self)

    def test_the_report_grows_while_the_run_goes_on(self):
        run = self.folder / "<b>run"
        options = ("--sample-every", 10, "--sample-prompt", "The cat", "--watch", "--steps", 100000)
        with self.watching(*self.command(run.name, *options), "--out", run) as (process, address):
            self.browser.wait("document.querySelectorAll('.curves svg').length === 4")
            self.browser.wait("document.querySelector('[data-live=samples] pre')")
            self.assertIn("The cat", self.text("[data-live=samples] pre"))
            self.check_sizes(address)
            newest = (
                "Number(document.querySelector('[data-live=rows] tr:last-child td').textContent)"
            )
            self.browser.wait(f"{newest} > {self.value(newest)}")
            process.send_signal(signal.SIGINT)
            self.browser.wait(END)
            self.assertEqual(process.wait(60), 130)
            last = json.loads((run / "log.jsonl").read_text().splitlines()[-1])
            self.assertEqual(
                self.text("#now"),
                f"step {last['step']:,}, loss {last['loss']:.4f}, learning rate "
                f"{self.value('arguments[0].toExponential(2)', last['lr'])}, norm of the gradient "
                f"{self.value('arguments[0].toPrecision(3)', last['grad_norm'])}, "
                f"{self.value('Math.round(arguments[0])', last['tokens_per_second']):,} tokens/s",
            )
            self.assertEqual(self.text("h1"), "<b>run")
            page = (run / "report.html").read_text()
            self.assertNotIn("<script", page)

    def test_samples_never_run(self):
        self.data.write_text(HOSTILE * 40)
        prompt = "<img src=x onerror=hacked=2>"
        options = ("--sample-every", 5, "--sample-prompt", prompt, "--watch", "--steps", 100000)
        with self.watching(*self.command("a", *options)) as (_, address):
            self.browser.wait("document.querySelector('[data-live=samples] pre')")
            self.assertIn(prompt, self.text("[data-live=samples] pre"))
            self.assertEqual(self.value("document.querySelectorAll('img').length"), 0)
            self.assertIsNone(self.value("window.hacked"))


if __name__ == "__main__":
    limpid_program.main()
