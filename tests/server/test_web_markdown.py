"""Answers as Markdown on the web page: what is made of them, and what hostile ones cannot do."""

import limpid_program
from mock_server import Answer
from page import ANSWERS, LAST, MARKDOWN, OnThePage

HOSTILE = """<script>window.hit = 1</script><img src=x onerror="window.hit=1"><svg onload=window.hit=1>
[a](javascript:window.hit=1) [b](JaVaScRiPt:window.hit=1) [c](data:text/html,x) <javascript:window.hit=1>
![p](https://evil.example/p.png) <iframe src="https://evil.example"></iframe> &#60;script&#62;window.hit=1&#60;/script&#62;
```<img src=x onerror=window.hit=1>
<script>window.hit = 1</script>
```
| <b>x</b> | y |
|---|---|
| <img src=x onerror=window.hit=1> | "onmouseover="window.hit=1 |
"""


class Markdown(OnThePage):
    def test_what_is_made_of_it(self):
        self.ask("x", Answer(MARKDOWN, cut=31))
        body = f"{LAST}.querySelector('.body')"
        for selector, text in {
            "h3": "Title", "em": "em", "strong": "strong", "p code": "code", "del": "gone",
            "ol > li > ul > li": "nested", "th:nth-child(2)": "b", "td.right": "2", "blockquote p": "quoted",
            "pre code": 'print("<b>")', "a": "link",
        }.items():  # fmt: skip
            self.assertEqual(
                self.value(f"{body}.querySelector(arguments[0])?.textContent", selector), text
            )
        self.assertEqual(self.value(f"{body}.querySelector('a').href"), "https://example.org/a_b")
        self.assertEqual(
            self.value(f"{body}.querySelector('a').rel"), "noopener noreferrer nofollow"
        )

    def test_growing_text_ends_as_it_would_at_once(self):
        texts = [
            MARKDOWN,
            HOSTILE,
            "a\nb|c\n-|-d\n\na\n*b*\n- c\n* * *\n1. d\n\n   e\n\nf\n| g | h |\n|--|--|\n| i |\n```\nj",
        ]
        self.assertEqual(self.browser.run("""
            return import('./markdown_view.js').then(({MarkdownView}) => arguments[0].filter((text) => {
              const [grown, whole] = [document.createElement('div'), document.createElement('div')];
              const view = new MarkdownView(grown);
              for (let i = 1; i < text.length; ++i) view.update(text.slice(0, i), false);
              view.update(text, true);
              new MarkdownView(whole).update(text, true);
              return grown.innerHTML !== whole.innerHTML;
            }));""", texts), [])  # fmt: skip

    def test_html_is_text_and_addresses_are_safe(self):
        for _ in range(2):
            text = self.ask("x", Answer(HOSTILE, cut=101))
            for shown in (
                "<script>window.hit = 1</script>",
                "<img src=x onerror=",
                "[a](javascript:window.hit=1)",
            ):
                self.assertIn(shown, text)
            self.assertIsNone(self.value("window.hit ?? null"))
            self.assertEqual(
                self.value(f"{LAST}.querySelectorAll('script, img, svg, iframe').length"), 0
            )
            links = self.value(f"[...{LAST}.querySelectorAll('a')].map(a => a.protocol)")
            self.assertEqual(set(links), {"https:"})
            self.reload()
            self.browser.wait(f"{ANSWERS}.length")

    def test_cut_characters_and_long_tokens(self):
        word = "x" * 20000
        text = f"naïve 日本語 👩‍👩‍👧 e\u0301 \u202eabc\u202c {word} end"
        self.assertEqual(self.ask("x", Answer(text, cut=1000)), text)
        self.assertEqual(self.ask("x", Answer("é日👩", cut=1)), "é日👩")
        self.assertLessEqual(self.value("document.documentElement.scrollWidth"), 1200)

    def test_addresses(self):
        for text, shown, links in (
            ("[https://x.org/a](https://x.org/a)", "https://x.org/a", ["https://x.org/a"]),
            ("[see https://a.org/x](https://b.org/)", "see https://a.org/x", ["https://b.org/"]),
            ("(https://x.org/a_(b))", "(https://x.org/a_(b))", ["https://x.org/a_(b)"]),
            ("&toString; &amp;", "&toString; &", []),
        ):
            self.assertEqual(self.ask("x", Answer(text)), shown)
            self.assertEqual(
                self.value(f"[...{LAST}.querySelectorAll('a')].map(a => a.href)"), links
            )

    def test_code_in_a_table_has_bars(self):
        for row, cells in (
            (r"| `a \| b` | c |", ["<code>a | b</code>", "c"]),
            (r"| `\|\|x\|` | \| |", ["<code>||x|</code>", "|"]),
            (r"| `a\b` | `c` `\|` |", [r"<code>a\b</code>", "<code>c</code> <code>|</code>"]),
        ):
            self.ask("x", Answer(f"| 1 | 2 |\n|---|---|\n{row}\n\n`p \\| q`"))
            found = self.value(f"[...{LAST}.querySelectorAll('td')].map(td => td.innerHTML)")
            self.assertEqual(found, cells)
            self.assertEqual(self.value(f"{LAST}.querySelector('p code').textContent"), r"p \| q")

    def test_lists_that_are_indented_by_tabs(self):
        for text, shown in (
            ("- a\n\t- b\n\t\t- c\n- d", "<ul><li>a<ul><li>b<ul><li>c</li></ul></li></ul></li><li>d</li></ul>"),
            ("a:\n\t- b\n\t- c", "<p>a:</p><ul><li>b</li><li>c</li></ul>"),
            ("1. a\n\t```\n\tb\n\t\tc\n\t```", "<ol><li>a<pre><code>b\n\tc</code></pre></li></ol>"),
        ):  # fmt: skip
            self.ask("x", Answer(text))
            self.browser.run(f"{LAST}.querySelectorAll('.bar').forEach(bar => bar.remove())")
            body = f"{LAST}.querySelector('.body').innerHTML"
            self.assertEqual(
                self.value(f'{body}.replace(/ (dir|tabindex)="[^"]*"|<.?div[^>]*>/g, \'\')'), shown
            )

    def test_bombs_take_linear_time(self):
        n = 20000
        bombs = ["*a " * n, "**a* " * n, "[" * n, "![" * n, "[a](" * n, "`" * n, "`a ``b " * n, "> " * n + "a",
                 "http://[" * n, "http://:x(" * n, "[a](" + " " * 5 * n, "http://a" + ")" * 2 * n + "b",
                 "- " * n + "a", "1. a\n" * n, "|a" * n + "\n" + "|-" * n, "_a*b" * n, "<http://" * n, "&#" * n,
                 "~~a" * n, "# " * n, "\\" * n, "a\n" * n, "a_" * n, "(" * n + ")" * n, "[a](" + "(" * n,
                 "[x](<" * n, "***" * n + "a" + "***" * n, "http://a" * n, "`" + " `" * n, "* a\n  " * n,
                 "a|b\n" + " " * 5 * n + "|", "a|b\n-" + " " * 5 * n + "a|", "# a" + " " * n + "a",
                 "```" + " " * 5 * n + "`", "~" * 5 * n + "`"]  # fmt: skip
        seconds = {}
        for bomb in bombs:
            begin = self.browser.cpu_time()
            self.browser.run("""
                return import('./markdown_view.js').then(({MarkdownView}) => {
                  new MarkdownView(document.createElement('div')).update(arguments[0], true);
                });""", bomb)  # fmt: skip
            seconds[bomb[:8]] = self.browser.cpu_time() - begin
        self.assertEqual({bomb: t for bomb, t in seconds.items() if t > 1}, {})


if __name__ == "__main__":
    limpid_program.main()
