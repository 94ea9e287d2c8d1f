"""Shared by the page's tests: a tab per test, and what a reader does in it."""

import argparse
import functools
import json
import tempfile
import unittest
from pathlib import Path

from browser import Browser, Tab
from stand_in import StandIn

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
# Makes the page's first document of a tab begin without the chats of other tabs.
EMPTY_STORAGE = """
if (location.protocol.startsWith('http') && !sessionStorage.isEmptied) {
  localStorage.clear();
  sessionStorage.isEmptied = true;
}
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
# The visible controls that are not wholly within the width of the window.
OUTSIDE = """
[...document.querySelectorAll('button, textarea, input, select, progress, summary, #model, #notice')]
  .filter((node) => node.checkVisibility() && !node.closest('.visually-hidden'))
  .filter((node) => {
    const box = node.getBoundingClientRect();
    return box.left < 0 || box.right > innerWidth;
  })
  .map((node) => node.outerHTML)
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
        self.tab = self.open_tab(EMPTY_STORAGE)

    def open_tab(self, *scripts: str) -> Tab:
        """Opens the page; `scripts` run before its own."""
        tab = self.browser.new_tab()
        self.addCleanup(self.check_and_close, tab)
        tab.resize(1280, 800)
        for script in (WATCH_POLICY, *scripts):
            tab.call("Page.addScriptToEvaluateOnNewDocument", source=script)
        self.open(tab, self.url)
        return tab

    def check_and_close(self, tab: Tab) -> None:
        violations = tab.evaluate("violations")
        tab.call("Page.close")
        tab.close()
        self.assertEqual(violations, [])
        self.assertEqual(tab.complaints, [])

    def open(self, tab: Tab, url: str) -> None:
        tab.open(url)
        tab.wait_for("document.querySelector('#context').textContent !== ''")

    def reload(self) -> None:
        """Opens a new chat."""
        self.open(self.tab, self.url)

    def reload_chat(self) -> None:
        self.tab.evaluate("window.isOld = true")
        self.tab.call("Page.reload")
        self.tab.wait_for("!window.isOld && document.querySelector('#context')?.textContent")

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

    def press_button(self, text: str, within: str = "body") -> None:
        """Presses the last visible button with this text or name."""
        self.tab.evaluate(
            f"[...document.querySelectorAll({json.dumps(within + ' button')})].filter((node) =>"
            f"node.checkVisibility() && [node.innerText, node.ariaLabel].includes({json.dumps(text)}))"
            ".at(-1).click()"
        )

    def chats(self) -> list[str]:
        return self.tab.evaluate(
            "[...document.querySelectorAll('#chat-list .title')].map((node) => node.innerText)"
        )

    def open_chat(self, title: str) -> None:
        self.press_button(title, "#chat-list")
        self.tab.wait_for("document.querySelector('#chat-list [aria-current]')?.innerText === "
                          + json.dumps(title))  # fmt: skip

    def focused(self) -> str:
        return self.tab.evaluate("document.activeElement.id")

    def choose(self, selector: str, *files: Path) -> None:
        document = self.tab.call("DOM.getDocument")["root"]["nodeId"]
        node = self.tab.call("DOM.querySelector", nodeId=document, selector=selector)["nodeId"]
        self.tab.call("DOM.setFileInputFiles", nodeId=node, files=[str(file) for file in files])

    def make_file(self, name: str, content: bytes) -> Path:
        file = self.directory / name
        file.write_bytes(content)
        return file

    @functools.cached_property
    def directory(self) -> Path:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        return Path(directory.name)

    def check_contrasts(self) -> None:
        low = [text for text in self.tab.evaluate(CONTRASTS) if text["contrast"] < 4.5]
        self.assertEqual(low, [])


class StandInCase(PageTest):
    """With a stand-in server, whose responses the tests define."""

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

    def check_grows(self, text: str) -> None:
        """Checks that a text that grows is shown at each length as it is if it is given whole."""
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
