"""Tests the page in a headless Chromium: with a stand-in server, whose responses the tests define, and
with the real binary and its embedded model.

    page_test.py --quire BINARY [--screenshot FILE.png] [TEST …]
"""

import argparse
import json
import random
import re
import subprocess
import sys
import threading
import time
import unittest
import urllib.request
from pathlib import Path

from browser import Browser, Tab, find_chromium, number_in
from stand_in import HOSTILE, MARKDOWN, MODEL, StandIn, policy

SKIPPED = 77  # CTest's SKIP_RETURN_CODE
QUESTION = (
    "Sam collected 28 stickers. Rosa has three times as many stickers as Sam. "
    "Ivan has 6 less than Rosa. How many stickers do the three of them have?"
)
WATCH_POLICY = """
window.violations = [];
document.addEventListener('securitypolicyviolation', (event) => {
  violations.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""
# Computes the contrast of each element that has text: its colour against the nearest background.
CONTRASTS = """
(() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (rgb) => rgb.slice(0, 3).map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const background = (node) => {
    for (; node; node = node.parentElement) {
      const rgb = numbers(getComputedStyle(node).backgroundColor);
      if (rgb.length === 3 || rgb[3] === 1) return rgb;
    }
    return [255, 255, 255];
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  return [...document.querySelectorAll('body *')]
    .filter((node) => node.checkVisibility() && node.namespaceURI.endsWith('xhtml'))
    .filter((node) => node.placeholder || [...node.childNodes].some(
      (child) => child.nodeType === Node.TEXT_NODE && child.data.trim() !== ''))
    .map((node) => ({
      text: (node.placeholder || node.textContent).trim().slice(0, 40),
      contrast: contrast(numbers(getComputedStyle(node).color), background(node)),
    }));
})()
"""
RENDER = """
import('/page/markdown.js').then(({ MarkdownView }) => {
  const render = (text) => {
    const root = document.createElement('div');
    new MarkdownView(root).update(text);
    return root;
  };
  return (%s)(render, MarkdownView, %s);
})
"""

options = argparse.Namespace()


class PageTest(unittest.TestCase):
    """Shared by all tests: opens the page at cls.url in a new tab per test, and checks that the console is clean."""

    browser: Browser
    url: str
    tab: Tab

    @classmethod
    def setUpClass(cls) -> None:
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.browser.close()

    def setUp(self) -> None:
        self.tab = self.browser.new_tab()
        self.tab.resize(1280, 800)
        self.tab.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH_POLICY)
        self.tab.open(self.url)
        self.tab.evaluate("localStorage.clear()")
        self.reload()

    def tearDown(self) -> None:
        violations = self.tab.evaluate("violations")
        self.tab.close()
        self.assertEqual(violations, [])
        self.assertEqual(self.tab.complaints, [])

    def reload(self) -> None:
        self.tab.open(self.url)
        self.tab.wait_for("document.querySelector('#context').textContent !== ''")

    def ask(self, text: str, waits: bool = True) -> None:
        before = self.tab.evaluate("document.querySelectorAll('.answer').length")
        self.tab.evaluate("document.querySelector('#input').focus()")
        self.tab.type(text)
        self.tab.press("Enter")
        self.tab.wait_for(f"document.querySelectorAll('.answer').length === {before + 1}")
        if waits:
            self.wait_for_answer()

    def wait_for_answer(self) -> None:
        self.tab.wait_for("!document.querySelector('.answer[aria-busy]')", timeout_s=60)

    def answer(self) -> str:
        return self.tab.text(".answer:last-of-type .prose")

    def notes(self) -> str:
        # A no-break space joins a number and its unit.
        return self.tab.text(".answer:last-of-type .notes").replace("\u00a0", " ")

    def set_field(self, name: str, value: str) -> None:
        selector = f"#settings [name={name}]"
        self.tab.evaluate(f"document.querySelector('{selector}').select()")
        self.tab.type(value)

    def focused(self) -> str:
        return self.tab.evaluate("document.activeElement.id")

    def check_contrasts(self) -> None:
        low = [text for text in self.tab.evaluate(CONTRASTS) if text["contrast"] < 4.5]
        self.assertEqual(low, [])


class StandInTest(PageTest):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.server = StandIn()
        cls.url = cls.server.url

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.close()
        super().tearDownClass()

    def render(self, function: str, value: object) -> object:
        return self.tab.evaluate(RENDER % (function, json.dumps(value)))

    def test_shows_the_model(self) -> None:
        self.assertEqual(self.tab.text("#model"), MODEL)
        self.assertIn("4,096", self.tab.text("#context"))
        self.assertEqual(self.tab.evaluate("document.title"), f"{MODEL} · Quire")
        self.assertTrue(self.tab.evaluate("document.querySelector('#examples').hidden"))

    def test_renders_markdown(self) -> None:
        cases = {
            "one\ntwo\n\nthree": "<p>one<br>two</p><p>three</p>",
            "# A\n## B\n#### 63": "<h3>A</h3><h4>B</h4><h6>63</h6>",
            "#no heading": "<p>#no heading</p>",
            "**b** *i* ***both*** __b__ _i_": "<p><strong>b</strong> <em>i</em> "
            "<strong><em>both</em></strong> <strong>b</strong> <em>i</em></p>",
            "8*6=48 and (48)*2=96": "<p>8*6=48 and (48)*2=96</p>",
            "8 * 6 = <<8*6=48>>48": "<p>8 * 6 = &lt;&lt;8*6=48&gt;&gt;48</p>",
            "snake_case_name": "<p>snake_case_name</p>",
            "`a*b*` ``x`y``": "<p><code>a*b*</code> <code>x`y</code></p>",
            "\\*no\\*": "<p>*no*</p>",
            "**open": "<p>**open</p>",
            "~~gone~~": "<p><del>gone</del></p>",
            "- a\n- b\n  - c\n- d": "<ul><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ul>",
            "3. a\n4. b": '<ol start="3"><li>a</li><li>b</li></ol>',
            "- a\n\n- b": "<ul><li>a</li><li>b</li></ul>",
            "1. a\n   ```\n   x\n   ```": None,
            "> quoted\n> more": "<blockquote><p>quoted<br>more</p></blockquote>",
            "a\n\n---\n\nb": "<p>a</p><hr><p>b</p>",
            "|a|b|\n|-|-|\n|1|2|": '<div class="table" tabindex="0"><table><thead><tr><th>a</th>'
            "<th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table></div>",
            "[t](https://a.org/x_(y))": '<p><a href="https://a.org/x_(y)" target="_blank" '
            'rel="noopener noreferrer">t</a></p>',
            "see https://a.org/x, then": '<p>see <a href="https://a.org/x" target="_blank" '
            'rel="noopener noreferrer">https://a.org/x</a>, then</p>',
            "[x](javascript:alert(1))": "<p>[x](javascript:alert(1))</p>",
            "[x](//a.org) [x](/page/chat.js)": "<p>[x](//a.org) [x](/page/chat.js)</p>",
        }
        rendered = self.render("(render, _, texts) => texts.map((t) => render(t).innerHTML)",
                               list(cases))  # fmt: skip
        for (text, expected), got in zip(cases.items(), rendered, strict=True):
            if expected is not None:
                self.assertEqual(got, expected, text)
        code = rendered[list(cases).index("1. a\n   ```\n   x\n   ```")]
        self.assertRegex(code, r"^<ol[^>]*><li>a<figure.*<code>x</code></pre></figure></li></ol>$")

    def test_shows_a_growing_text_as_it_shows_a_whole_one(self) -> None:
        text = MARKDOWN + "\n- a\n\n- b\n\n  more\n\n| a | b |\n|---|---|\n| 1 | 2 |\nend\n> q\n"
        differing = self.render(
            """(render, MarkdownView, text) => {
              const root = document.createElement('div');
              const view = new MarkdownView(root);
              const differing = [];
              for (let end = 0; end <= text.length; ++end) {
                view.update(text.slice(0, end));
                if (root.innerHTML !== render(text.slice(0, end)).innerHTML) differing.push(end);
              }
              return differing;
            }""",
            text,
        )
        self.assertEqual(differing, [])

    def test_makes_no_markup_of_a_models_text(self) -> None:
        rng = random.Random(20)
        parts = ["<img src=x onerror=", "window.pwned=1", ">", "<script>", "</script>", "<svg onload=",
                 "javascript:", "data:text/html,", "vbscript:", "https://a.org", "[", "]", "(", ")",
                 "](", "`", "```", "\n", "\n\n", "- ", "1. ", "> ", "# ", "**", "*", "_", "~~", "|",
                 "|-|-|\n", '"', "'", "\\", "&lt;", "&#x6a;", "\t", " ", "\u202e", "x", "<a href=",
                 "<iframe srcdoc=", "<style>*{}</style>", "\x00", "www.", "!["]  # fmt: skip
        texts = ["".join(rng.choices(parts, k=rng.randint(1, 40))) for _ in range(3000)]
        texts += [HOSTILE, "> " * 3000 + "x", "- " * 3000 + "x", "[" * 20000, "*a " * 20000]
        texts += ["**" * 20000, "`a" * 20000, "|" * 20000, "~~~" + "`" * 20000, " " * 50000 + "x"]
        begin = time.monotonic()
        found = self.render(
            """(render, _, texts) => {
              const tags = new Set('P BR H3 H4 H5 H6 UL OL LI CODE PRE FIGURE FIGCAPTION SPAN BUTTON'
                .concat(' BLOCKQUOTE HR STRONG EM DEL A DIV TABLE THEAD TBODY TR TH TD').split(' '));
              const attributes = new Set(
                'class tabindex role aria-label type start href target rel'.split(' '));
              const bad = [];
              const visible = (s) => s.replace(/[^a-z]/g, '');
              for (const text of texts) {
                const root = render(text);
                document.body.append(root);
                for (const node of root.querySelectorAll('*')) {
                  if (!tags.has(node.nodeName)) bad.push([node.nodeName, text]);
                  for (const { name, value } of node.attributes) {
                    const isGood = attributes.has(name) &&
                      (name !== 'href' || /^https?:/.test(value));
                    if (!isGood) bad.push([name, value, text]);
                  }
                  if (node.nodeName === 'A' && !node.rel.includes('noopener')) bad.push(['rel', text]);
                }
                root.remove();
              }
              return bad;
            }""",
            texts,
        )
        self.assertEqual(found, [])
        self.assertLess(time.monotonic() - begin, 40)
        self.ask("hostile")
        self.assertIn("<img src=x onerror=", self.answer())
        self.assertIn("[run](javascript:window.pwned=1)", self.answer())
        self.assertFalse(self.tab.evaluate("'pwned' in window"))

    def test_decodes_events_cut_anywhere(self) -> None:
        stream = "\ufeffdata: a\n\n: comment\ndata:b\r\ndata: c\r\n\r\nevent: x\rdata: ü世🎈\r\rdata\n\ndata: cut"
        events = self.tab.evaluate(
            """import('/page/sse.js').then(async ({ readEvents }) => {
              const bytes = new TextEncoder().encode(%s);
              const read = async (pieces) => {
                const events = [];
                const body = new ReadableStream({ start(out) {
                  for (const piece of pieces) out.enqueue(piece);
                  out.close();
                } });
                for await (const data of readEvents(body)) events.push(data);
                return JSON.stringify(events);
              };
              const seen = new Set([await read([...bytes].map((byte) => new Uint8Array([byte])))]);
              for (let at = 0; at <= bytes.length; ++at) {
                seen.add(await read([bytes.slice(0, at), bytes.slice(at)]));
              }
              return [...seen];
            })""" % json.dumps(stream)
        )  # fmt: skip
        self.assertEqual([json.loads(one) for one in events], [["a", "b\nc", "ü世🎈", ""]])
        self.ask("odd")
        self.assertEqual(self.answer(), "Grüße, 世界 🎈!")

    def test_shows_an_answer_with_its_measures(self) -> None:
        self.ask("markdown")
        self.assertIn("Title", self.tab.text(".answer h3"))
        self.assertIn('print("<b>")', self.tab.text(".answer pre"))
        self.assertEqual(self.tab.evaluate("document.querySelectorAll('.answer li').length"), 3)
        self.assertRegex(self.notes(), r"^56 tokens · .*first after [\d.]+ m?s$")
        self.ask("length")
        self.assertIn("cut off at the limit", self.notes())

    def test_sends_the_conversation_and_the_settings(self) -> None:
        for name, value in {"temperature": "0.7", "top_p": "0.9", "max_tokens": "33", "seed": "5",
                            "system": "Be brief."}.items():  # fmt: skip
            self.set_field(name, value)
        self.ask("first")
        self.ask("second")
        call = self.server.calls[-1]
        self.assertEqual(
            call["messages"],
            [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "first"},
                {"role": "assistant", "content": "You said first."},
                {"role": "user", "content": "second"},
            ],
        )
        sent = {name: call[name] for name in ("temperature", "top_p", "max_tokens", "seed")}
        self.assertEqual(sent, {"temperature": 0.7, "top_p": 0.9, "max_tokens": 33, "seed": 5})
        self.assertTrue(call["stream"] and call["stream_options"]["include_usage"])
        self.reload()
        self.ask("after a reload")
        self.assertEqual(self.server.calls[-1]["seed"], 5)
        self.tab.click("#reset-settings")
        self.ask("with defaults")
        self.assertFalse({"temperature", "top_p", "max_tokens", "seed"} & set(self.server.calls[-1]))
        self.assertEqual(self.server.calls[-1]["messages"][0]["role"], "user")

    def test_sends_no_setting_that_is_out_of_range(self) -> None:
        num_calls = len(self.server.calls)
        self.set_field("top_p", "1.5")
        self.tab.evaluate("document.querySelector('#input').focus()")
        self.tab.type("hello")
        self.tab.press("Enter")
        self.tab.wait_for("document.activeElement.name === 'top_p'")
        self.assertEqual(len(self.server.calls), num_calls)

    def test_stops_an_answer(self) -> None:
        for stop in (lambda: self.tab.press("Escape"), lambda: self.tab.click("#stop")):
            num_dropped = self.server.num_dropped
            self.ask("slow", waits=False)
            self.tab.wait_for("document.querySelector('.answer:last-of-type .prose').innerText"
                              ".includes('word3')")  # fmt: skip
            stop()
            self.wait_for_answer()
            self.assertIn("stopped", self.notes())
            self.assertRegex(self.notes(), r"^\d+ tokens")
            self.assertIn("word3", self.answer())
            self.assertEqual(self.focused(), "input")
            deadline = time.monotonic() + 10
            while self.server.num_dropped == num_dropped and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertEqual(self.server.num_dropped, num_dropped + 1)
        self.ask("go on")
        self.assertIn("word3", self.server.calls[-1]["messages"][1]["content"])

    def test_begins_anew_and_regenerates(self) -> None:
        self.ask("one")
        self.ask("two")
        buttons = "[...document.querySelectorAll('.answer button')].map((b) => b.innerText)"
        self.assertEqual(self.tab.evaluate(buttons), ["Copy", "Copy", "Regenerate"])
        num_calls = len(self.server.calls)
        self.tab.evaluate("[...document.querySelectorAll('.answer button')].at(-1).click()")
        self.tab.wait_for("!document.querySelector('.answer[aria-busy]')")
        self.assertEqual(len(self.server.calls), num_calls + 1)
        self.assertEqual(self.server.calls[-1]["messages"], self.server.calls[-2]["messages"])
        self.assertEqual(self.tab.text(".question"), "one\ntwo")
        self.ask("slow", waits=False)
        self.tab.click("#new-chat")
        self.tab.wait_for("!document.querySelector('article') && !document.querySelector('#send').hidden")
        self.ask("three")
        self.assertEqual(len(self.server.calls[-1]["messages"]), 1)
        self.assertEqual(self.answer(), "You said three.")

    def test_shows_the_servers_errors(self) -> None:
        cases = {
            "refused": "576 of at most 576 sequences are running or queued (in 2 s)",
            "fails amid": "the engine stopped",
            "breaks off": "The connection ended before the answer did.",
            "no json": "The server sent invalid JSON.",
        }
        for question, message in cases.items():
            self.ask(question)
            self.assertEqual(self.tab.text(".answer:last-of-type .error"), message)
            self.assertEqual(
                self.tab.evaluate("document.querySelector('.answer .error').getAttribute('role')"),
                "alert",
            )
        self.assertEqual(len(self.server.calls[-1]["messages"]), 5)  # only the two partial answers
        self.ask("fine")
        self.assertEqual(self.answer(), "You said fine.")

    def test_folds_the_reasoning(self) -> None:
        self.ask("thinking")
        self.assertEqual(self.answer(), "Then speak.")
        self.assertFalse(self.tab.evaluate("document.querySelector('.reasoning').open"))
        self.tab.click(".reasoning summary")
        self.assertEqual(self.tab.text(".thought"), "First, <b>think</b>.")
        self.ask("next")
        self.assertEqual(self.server.calls[-1]["messages"][1]["content"], "Then speak.")

    def test_copies(self) -> None:
        permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"]
        self.tab.call("Browser.grantPermissions", permissions=permissions)
        self.tab.call("Page.bringToFront")
        self.ask("markdown")
        read = "navigator.clipboard.readText()"
        self.tab.click(".answer footer button")
        self.tab.wait_for("document.querySelector('.answer footer button').innerText === 'Copied'")
        self.assertEqual(self.tab.evaluate(read), MARKDOWN)
        self.tab.click(".code button")
        self.tab.wait_for("document.querySelector('.code button').innerText === 'Copied'")
        self.assertEqual(self.tab.evaluate(read), 'if a < b:\n    print("<b>")')

    def test_follows_the_text_until_the_reader_scrolls(self) -> None:
        gap = "((log) => log.scrollHeight - log.scrollTop - log.clientHeight)(document.querySelector('#log'))"
        self.ask("long")
        self.tab.wait_for(f"{gap} < 8")
        self.tab.evaluate("document.querySelector('#log').scrollTop = 0")
        time.sleep(0.2)
        self.assertGreater(self.tab.evaluate(gap), 500)

    def test_panel_shows_the_engine(self) -> None:
        self.tab.wait_for("document.querySelector('[data-gauge=rate] polyline').getAttribute('points')"
                          "?.split(' ').length > 2")  # fmt: skip
        value = lambda gauge: self.tab.text(f"[data-gauge={gauge}] .value")  # noqa: E731
        self.assertEqual([value(g) for g in ("running", "waiting", "kv", "hits")], ["3", "2", "25 %", "75 %"])
        rate = number_in(value("rate"))
        self.assertTrue(rate and 30 < rate < 300, rate)  # 100, and a busy machine's jitter
        self.assertEqual(self.tab.text("#panel-state"), "live")

    def test_panel_says_when_the_engine_is_silent(self) -> None:
        self.server.is_up = False
        try:
            self.tab.wait_for("document.querySelector('#panel-state').innerText === 'no contact'")
        finally:
            self.server.is_up = True
        self.tab.wait_for("document.querySelector('#panel-state').innerText === 'live'")

    def test_panel_rests_while_nobody_looks(self) -> None:
        become = """(state) => {
          Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });
          document.dispatchEvent(new Event('visibilitychange'));
        }"""
        self.tab.wait_for("document.querySelector('#panel-state').innerText === 'live'")
        self.tab.evaluate(f"({become})('hidden')")
        time.sleep(0.3)
        num_calls = self.server.num_metrics_calls
        time.sleep(2.5)
        self.assertEqual(self.server.num_metrics_calls, num_calls)
        self.tab.evaluate(f"({become})('visible')")
        time.sleep(2.5)
        self.assertGreater(self.server.num_metrics_calls, num_calls + 1)

    def test_is_usable_by_keyboard_alone(self) -> None:
        self.assertEqual(self.focused(), "input")
        self.tab.type("a")
        self.tab.press("Enter", shift=True)
        self.tab.type("b")
        self.assertEqual(self.tab.evaluate("document.querySelector('#input').value"), "a\nb")
        self.tab.press("Enter")
        self.tab.wait_for("document.querySelector('.answer footer:not([hidden])')")
        self.assertEqual(self.server.calls[-1]["messages"][-1]["content"], "a\nb")
        self.assertEqual(self.focused(), "input")
        name = "(({ id, name, innerText, nodeName }) => id || name || innerText || nodeName)(document.activeElement)"
        visited = []
        for _ in range(30):
            self.tab.press("Tab")
            visited.append(self.tab.evaluate(name))
        for expected in ("new-chat", "theme", "log", "Copy", "Regenerate", "input", "send",
                         "temperature", "top_p", "max_tokens", "seed", "system", "reset-settings"):  # fmt: skip
            self.assertIn(expected, visited)
        self.assertNotIn("side-toggle", visited)

    def test_has_names_for_screen_readers(self) -> None:
        self.ask("markdown")
        nodes = self.tab.call("Accessibility.getFullAXTree")["nodes"]
        shown = [node for node in nodes if not node.get("ignored")]
        roles = {node["role"]["value"] for node in shown}
        for role in ("banner", "main", "log", "complementary", "form", "status", "article"):
            self.assertIn(role, roles)
        named = ("button", "textbox", "spinbutton", "link", "log", "complementary", "form", "article")
        for node in shown:
            if node["role"]["value"] in named:
                self.assertNotEqual(node["name"].get("value", ""), "", node)
        live = self.tab.evaluate("document.querySelector('#log').ariaLive")
        self.assertEqual(live, "polite")
        self.assertEqual(self.tab.text("#announcer"), "Answer complete")

    def test_is_light_and_dark(self) -> None:
        paper = "getComputedStyle(document.body).backgroundColor"
        self.ask("markdown")
        self.ask("refused")
        self.ask("thinking")
        seen = {}
        for scheme in ("light", "dark"):
            self.tab.prefer(scheme)
            self.tab.wait_for(f"document.documentElement.dataset.theme === '{scheme}'")
            seen[scheme] = self.tab.evaluate(paper)
            self.check_contrasts()
        self.assertNotEqual(seen["light"], seen["dark"])
        self.tab.click("#theme")
        self.assertEqual(self.tab.evaluate(paper), seen["light"])
        self.reload()
        self.assertEqual(self.tab.evaluate(paper), seen["light"])  # overrides the system's

    def test_fits_a_narrow_phone(self) -> None:
        self.tab.resize(320, 560)
        self.ask("markdown")
        self.assertEqual(self.tab.evaluate("document.documentElement.scrollWidth"), 320)
        self.assertFalse(self.tab.evaluate("document.querySelector('#side').checkVisibility()"))
        self.tab.click("#side-toggle")
        self.assertTrue(self.tab.evaluate("document.querySelector('#side').checkVisibility()"))
        self.assertEqual(self.focused(), "side")
        self.tab.press("Escape")
        self.assertFalse(self.tab.evaluate("document.querySelector('#side').checkVisibility()"))
        self.assertEqual(self.focused(), "side-toggle")


class Serve:
    """`quire serve` at a free port."""

    def __init__(self, *flags: str) -> None:
        command = [options.quire, "serve", "--port", "0", *flags]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self._process.stdout.readline()
        found = re.fullmatch(r"serving (\S+) at (\S+)\n", line)
        if not found:
            self.close()
            raise AssertionError(f"no address from quire serve; got {line!r}")
        self.model, self.url = found.groups()

    def close(self) -> int:
        self._process.terminate()
        status = self._process.wait(timeout=60)
        self._process.stdout.close()
        return status


class ServeTest(PageTest):
    @classmethod
    def setUpClass(cls) -> None:
        if not options.quire:
            raise unittest.SkipTest("no --quire")
        super().setUpClass()
        cls.server = Serve("--log-level", "warning")
        cls.url = cls.server.url

    @classmethod
    def tearDownClass(cls) -> None:
        status = cls.server.close()
        super().tearDownClass()
        if status != 0:
            raise AssertionError(f"quire serve ended with {status}")

    def test_serves_what_was_tested(self) -> None:
        header = f"fetch('{self.url}').then((answer) => answer.headers.get('content-security-policy'))"
        self.assertEqual(self.tab.evaluate(header), policy())
        self.assertEqual(self.tab.text("#model"), self.server.model)

    def test_solves_a_word_problem(self) -> None:
        lengths = """
        window.lengths = [];
        new MutationObserver(() => {
          lengths.push(document.querySelector('.answer .prose')?.innerText.length ?? 0);
        }).observe(document.querySelector('#log'), { childList: true, subtree: true });
        """
        self.tab.evaluate(lengths)
        self.tab.click("#examples button")
        self.tab.wait_for("document.querySelector('.answer footer:not([hidden])')")
        self.assertEqual(self.tab.text(".question"), QUESTION)
        self.assertEqual(self.tab.text(".answer .prose :is(h3, h4, h5, h6)"), "190")
        # The text grew; the number of pieces depends on the machine.
        self.assertGreater(len(set(self.tab.evaluate("lengths"))), 1)
        self.assertRegex(self.notes(), r"^\d+ tokens · [\d,]+ tokens/s · first after [\d.]+ m?s$")
        self.tab.wait_for("document.querySelector('[data-gauge=hits] .value').innerText !== '–'")
        self.assertEqual(self.tab.text("#panel-state"), "live")
        self.tab.click("#new-chat")
        self.tab.click("#examples button:last-of-type")
        self.tab.wait_for("document.querySelector('.answer footer:not([hidden])')")
        self.assertEqual(self.tab.text(".answer .prose :is(h3, h4, h5, h6)"), "20")

    def test_stops(self) -> None:
        # On a fast machine the whole answer may be there before the key is pressed.
        last_line = "document.querySelector('.answer:last-of-type .prose :is(h3, h4, h5, h6)')"
        for _ in range(10):
            self.ask(QUESTION, waits=False)
            self.tab.wait_for("document.querySelector('.answer:last-of-type .prose').innerText")
            self.tab.press("Escape")
            self.wait_for_answer()
            if self.tab.evaluate(f"{last_line} === null"):
                break
        self.assertRegex(self.notes(), r"^\d+\stokens?\s.*stopped$")
        self.assertTrue(self.tab.evaluate(f"{last_line} === null"))
        self.tab.wait_for("document.querySelector('[data-gauge=running] .value').innerText === '0'")

    def test_shows_its_refusals(self) -> None:
        self.ask("many words " * 4000)
        message = self.tab.text(".answer .error")
        self.assertIn("4096", message.replace(",", ""))

    def test_is_light_and_dark(self) -> None:
        self.ask(QUESTION)
        for scheme in ("light", "dark"):
            self.tab.prefer(scheme)
            self.tab.wait_for(f"document.documentElement.dataset.theme === '{scheme}'")
            self.check_contrasts()


class KeyTest(PageTest):
    """With keys, the browser asks its user once, and the page's own requests succeed."""

    @classmethod
    def setUpClass(cls) -> None:
        if not options.quire:
            raise unittest.SkipTest("no --quire")
        super().setUpClass()
        cls.server = Serve("--api-key", "open-sesame", "--log-level", "warning")
        cls.url = cls.server.url.replace("http://", "http://me:open-sesame@")

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.close()
        super().tearDownClass()

    def test_answers_whoever_has_the_key(self) -> None:
        self.assertEqual(self.tab.text("#model"), self.server.model)
        self.ask("What is 3 + 4?")
        self.assertNotEqual(self.answer(), "")
        self.tab.wait_for("document.querySelector('#panel-state').innerText === 'live'")


class Company:
    """Other clients of the server, so that the panel shows their load."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(i,)) for i in range(4)]
        for thread in self._threads:
            thread.start()

    def _ask(self, seed: int) -> None:
        rng = random.Random(seed)
        while not self._stopped.wait(rng.uniform(0, 1)):
            question = QUESTION.replace("28", str(rng.randint(10, 90)))
            body = {"n": 2, "messages": [{"role": "user", "content": question}]}
            call = urllib.request.Request(
                f"{self._url}/v1/chat/completions",
                data=json.dumps(body).encode(),
                headers={"content-type": "application/json"},
            )
            urllib.request.urlopen(call).read()

    def leave(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()


def take_screenshot(file: Path) -> None:
    """Makes the picture in README.md: a conversation with the embedded model, beside other clients."""
    # The cache is so small that its use is visible.
    server = Serve("--kv-cache-memory", "64M", "--log-level", "warning")
    browser = Browser()
    company = Company(server.url)
    test = ServeTest()
    try:
        test.url, test.tab = server.url, browser.new_tab()
        test.tab.resize(1240, 800)
        test.reload()
        time.sleep(60)  # fills the panel's lines
        for question in test.tab.text("#examples button").split("\n"):
            test.ask(question)
        running = "Number(document.querySelector('[data-gauge=running] .value').innerText)"
        test.tab.wait_for(f"{running} > 1")
        test.tab.screenshot(file)
    finally:
        company.leave()
        browser.close()
        server.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quire", help="the binary; without it only the stand-in is used")
    parser.add_argument("--screenshot", type=Path, metavar="FILE", help="take README.md's, no tests")
    parser.add_argument("tests", nargs="*", metavar="TEST", help="like StandInTest.test_copies")
    parser.parse_args(namespace=options)
    if not find_chromium():
        print("chromium is not installed: scripts/install_deps.sh test")
        return SKIPPED
    if options.screenshot:
        take_screenshot(options.screenshot)
        return 0
    program = unittest.main(argv=[sys.argv[0], *options.tests], exit=False, verbosity=2)
    return 0 if program.result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
