"""Tests the page in a headless Chromium: with a stand-in server, whose responses the tests define, and
with the real binary and its embedded model.

    page_test.py --quire BINARY [--screenshot FILE.png] [--part I/N] [TEST …]
"""

import argparse
import json
import random
import re
import sys
import threading
import time
import unittest
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from browser import Browser, Tab, find_chromium, number_in
from features_test import FeaturesTest, RenderingTest
from page_case import OUTSIDE, QUESTION, PageTest, StandInCase, options
from served import Served
from stand_in import HOSTILE, KATEX_DIR, MARKDOWN, MODEL, PAGE_DIR, file_of, policy

SKIPPED = 77  # CTest's SKIP_RETURN_CODE


class StandInTest(StandInCase):
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
        self.check_grows(text)

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
        # The answer came in one piece, which shows no speed.
        self.assertRegex(self.notes(), r"^56 tokens · first after [\d.]+ m?s$")
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
        num_calls = len(self.server.calls)
        self.press_button("Regenerate")
        self.wait_for_answer()
        self.assertEqual(len(self.server.calls), num_calls + 1)
        self.assertEqual(self.server.calls[-1]["messages"], self.server.calls[-2]["messages"])
        self.assertEqual(self.tab.text(".question .text"), "one\ntwo")
        self.ask("slow", waits=False)
        self.tab.click("#new-chat")
        self.tab.wait_for("!document.querySelector('article') && !document.querySelector('#send').hidden")
        self.ask("three")
        self.assertEqual(len(self.server.calls[-1]["messages"]), 1)
        self.assertEqual(self.answer(), "You said three.")

    def test_shows_the_servers_errors(self) -> None:
        cases = {
            "refused": "576 of at most 576 sequences are running or queued; try again in 2 s.",
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

    def test_keeps_chats(self) -> None:
        self.ask("one")
        self.press_button("New chat")
        self.ask("two")
        self.ask("two again")
        self.assertEqual(self.chats(), ["two", "one"])
        self.assertEqual(self.tab.evaluate("document.title"), "two · Quire")
        self.reload_chat()
        self.assertEqual(self.tab.text(".question .text"), "two\ntwo again")
        self.assertRegex(self.notes(), "1 token · first after")
        self.open_chat("one")
        self.assertEqual(self.tab.text(".question .text"), "one")
        self.assertEqual(self.answer(), "You said one.")
        self.tab.evaluate("window.history.back()")
        self.tab.wait_for("document.querySelector('.question .text').innerText === 'two'")
        self.ask("three")
        self.assertEqual(len(self.server.calls[-1]["messages"]), 5)
        self.reload()
        self.assertEqual(self.chats(), ["two", "one"])
        self.assertEqual(self.tab.text("article"), "")
        self.tab.evaluate("location.hash = 'nosuchchat'")
        self.tab.wait_for("document.querySelector('#notice').innerText.includes('no such chat')")
        self.assertEqual(self.tab.evaluate("location.hash"), "")

    def test_renames_and_deletes_chats(self) -> None:
        self.ask("one")
        self.reload()
        self.ask("two")
        self.press_button("Actions for one")
        self.press_button("Rename one")
        self.tab.type("first <b>")
        self.tab.press("Enter")
        self.assertEqual(self.chats(), ["two", "first <b>"])
        self.assertEqual(self.tab.evaluate("document.activeElement.ariaLabel"), "Actions for first <b>")
        self.press_button("Rename first <b>")
        self.tab.type("not this")
        self.tab.press("Escape")
        self.assertEqual(self.chats(), ["two", "first <b>"])
        self.press_button("Actions for two")
        self.press_button("Delete two")
        self.assertEqual(self.chats(), ["first <b>"])
        self.assertEqual(self.tab.text("article"), "")
        self.assertEqual(self.tab.evaluate("document.activeElement.innerText"), "Undo")
        self.assertIn("Deleted “two”.", self.tab.text("#notice"))
        self.tab.press("Enter")
        self.tab.wait_for("document.querySelector('.question .text')?.innerText === 'two'")
        self.assertEqual(self.tab.text("#notice"), "")
        self.press_button("Delete two")
        self.reload()
        self.assertEqual(self.chats(), ["first <b>"])
        left = self.tab.evaluate("Object.keys(localStorage).filter((key) => key.includes('message')).length")
        self.assertEqual(left, 2)  # no message of the deleted chat

    def test_edits_a_question_and_keeps_the_earlier_branch(self) -> None:
        self.ask("one")
        self.ask("two")
        self.tab.evaluate("[...document.querySelectorAll('button')].find((b) => b.innerText === 'Edit').click()")
        self.assertEqual(self.tab.evaluate("document.activeElement.value"), "one")
        self.tab.evaluate("document.activeElement.select()")
        self.tab.type("uno")
        self.tab.press("Enter")
        self.tab.wait_for("document.querySelectorAll('.answer').length === 1")
        self.wait_for_answer()
        self.assertEqual(self.server.calls[-1]["messages"], [{"role": "user", "content": "uno"}])
        self.assertEqual(self.answer(), "You said uno.")
        self.assertEqual(self.focused(), "input")
        self.assertEqual(self.tab.text(".question .versions span"), "2/2")
        self.press_button("Regenerate")
        self.wait_for_answer()
        self.assertEqual(self.tab.text(".answer .versions span"), "2/2")
        self.reload_chat()
        self.assertEqual(self.tab.text(".question .text"), "uno")
        self.tab.evaluate("document.querySelector('.question [aria-label=\"Earlier version\"]').focus()")
        self.tab.press("Enter")
        self.assertEqual(self.tab.text(".question .text"), "one\ntwo")
        self.assertEqual(self.tab.text(".question .versions span").split()[0], "1/2")
        self.assertEqual(self.tab.evaluate("document.activeElement.ariaLabel"), "Later version")
        self.ask("three")
        self.assertEqual([m["content"] for m in self.server.calls[-1]["messages"]][::2], ["one", "two", "three"])
        self.reload_chat()
        self.assertEqual(self.tab.text(".question .text"), "one\ntwo\nthree")
        self.press_button("Edit")
        self.tab.press("Escape")
        self.assertEqual(self.tab.evaluate("document.activeElement.innerText"), "Edit")
        self.assertEqual(self.tab.text(".edit"), "")

    def test_keeps_settings_per_chat(self) -> None:
        self.set_field("temperature", "0.25")
        self.ask("one")
        self.reload()
        self.assertEqual(self.tab.evaluate("settings.elements.temperature.value"), "0.25")
        self.set_field("temperature", "1.5")
        self.ask("two")
        self.open_chat("one")
        self.ask("more")
        self.assertEqual(self.server.calls[-1]["temperature"], 0.25)
        self.open_chat("two")
        self.ask("more")
        self.assertEqual(self.server.calls[-1]["temperature"], 1.5)

    def test_shows_the_speed_while_an_answer_comes(self) -> None:
        self.tab.evaluate("""
          window.shown = new Set();
          new MutationObserver(() => {
            const notes = document.querySelector('.answer[aria-busy] .notes')?.innerText ?? '';
            shown.add(notes.replaceAll('\u00a0', ' '));
          }).observe(document.querySelector('#log'), { childList: true, subtree: true });
        """)  # fmt: skip
        self.ask("hesitant")
        shown = self.tab.evaluate("[...shown]")
        waiting = [text for text in shown if re.fullmatch(r"waiting \d+ ms", text)]
        speeds = [text for text in shown
                  if re.fullmatch(r"\d+ tokens · \d+ tokens/s · first after [\d.]+ m?s", text)]  # fmt: skip
        self.assertGreater(len(waiting), 1, shown)
        self.assertGreater(len(speeds), 1, shown)
        self.assertRegex(self.notes(), r"^20 tokens · \d+ tokens/s · first after [\d.]+ m?s$")
        # 50 tokens come at once, and then 4 in 400 ms: only these 4 count for the speed.
        self.ask("lumpy")
        speed = re.fullmatch(r"54 tokens · (\d+) tokens/s · first after .*", self.notes())
        self.assertTrue(speed, self.notes())
        self.assertLess(int(speed[1]), 20)
        self.tab.resize(1280, 800)
        buttons = "[...document.querySelectorAll('.answer:last-of-type footer > button')]"
        tops = f"new Set({buttons}.filter((one) => one.checkVisibility()).map((one) => one.offsetTop)).size"
        self.assertEqual(self.tab.evaluate(tops), 1, "the buttons are in one row")

    def test_answers_go_on_in_other_chats(self) -> None:
        self.ask("hesitant", waits=False)
        self.press_button("New chat")
        self.assertEqual(self.tab.text("#chat-list small"), "answering")
        self.ask("meanwhile")
        self.assertEqual(self.answer(), "You said meanwhile.")
        self.open_chat("hesitant")
        self.tab.wait_for("document.querySelector('.prose').innerText.includes('word19')")
        self.wait_for_answer()
        self.assertRegex(self.notes(), "^20 tokens")

    def test_keeps_an_answer_that_a_reload_cuts_off(self) -> None:
        self.ask("slow", waits=False)
        self.tab.wait_for("document.querySelector('.prose').innerText.includes('word3')")
        self.reload_chat()
        self.assertIn("word3", self.answer())
        self.assertIn("stopped when the page was closed", self.notes())
        # After a crash, the question is there without an answer.
        self.tab.evaluate("for (const key of Object.keys(localStorage)) {"
                          "if (localStorage[key].includes('word3')) delete localStorage[key]; }")  # fmt: skip
        self.reload_chat()
        self.assertEqual(self.tab.text(".answer"), "")
        self.press_button("Answer")
        self.tab.wait_for("document.querySelector('.prose')?.innerText.includes('word3')")
        self.press_button("Stop")

    def test_shows_tool_calls_and_sends_their_results(self) -> None:
        tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {}}}]
        self.set_field("tools", '{"name": "no list"}')
        num_calls = len(self.server.calls)
        self.tab.evaluate("document.querySelector('#input').focus()")
        self.tab.type("calls")
        self.tab.press("Enter")
        self.tab.wait_for("document.activeElement.name === 'tools'")
        self.assertIn("must be a JSON array", self.tab.evaluate("document.activeElement.validationMessage"))
        self.assertEqual(len(self.server.calls), num_calls)
        self.set_field("tools", json.dumps(tools))
        self.ask("")
        self.assertEqual(self.server.calls[-1]["tools"], tools)
        self.assertEqual(self.tab.text(".call figcaption"), "Calls get_weather\nCalls get_time")
        self.assertEqual(self.tab.text(".call pre"),
                         '{\n  "city": "<b>Paris</b>",\n  "days": 2\n}\nnot json')  # fmt: skip
        self.tab.evaluate("document.querySelector('.answer textarea').focus()")
        self.tab.type('{"sky":"blue"}')
        self.press_button("Send results")
        self.tab.wait_for("document.querySelectorAll('.answer').length === 2")
        self.wait_for_answer()
        self.assertEqual(self.server.calls[-1]["messages"], [
            {"role": "user", "content": "calls"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "call-a", "type": "function", "function": {
                    "name": "get_weather", "arguments": '{"city": "<b>Paris</b>", "days": 2}'}},
                {"id": "call-b", "type": "function", "function": {
                    "name": "get_time", "arguments": '{"invalid_arguments":"not json"}'}}]},
            {"role": "tool", "tool_call_id": "call-a", "content": '{"sky":"blue"}'},
            {"role": "tool", "tool_call_id": "call-b", "content": ""},
        ])  # fmt: skip
        self.assertFalse(self.tab.evaluate("document.querySelector('.answer .edit').checkVisibility()"))
        self.reload_chat()
        self.assertEqual(self.tab.text(".results summary"), "Result of get_weather\nResult of get_time")

    def test_attaches_text_files(self) -> None:
        code = "a = 1\n```\nb = 2"
        self.choose("#file-input", self.make_file("code <i>.py", code.encode()),
                    self.make_file("empty.txt", b""))  # fmt: skip
        self.tab.wait_for("document.querySelectorAll('#files li').length === 2")
        self.tab.wait_for("!document.querySelector('#files').innerText.includes('reading')")
        self.assertIn("code <i>.py · 7 tokens", self.tab.text("#files").replace("\u00a0", " "))
        self.press_button("Remove empty.txt")
        self.ask("Explain.")
        content = f"code <i>.py:\n````\n{code}\n````\n\nExplain."
        self.assertEqual(self.server.calls[-1]["messages"], [{"role": "user", "content": content}])
        self.assertEqual(self.tab.text("#files"), "")
        self.reload_chat()
        self.assertEqual(self.tab.text(".question summary").replace("\u00a0", " "), "code <i>.py · 7 tokens")
        self.tab.click(".file summary")
        self.assertEqual(self.tab.text(".file pre"), code)

    def test_attaches_a_dropped_file(self) -> None:
        drop = """(() => {
          const data = new DataTransfer();
          data.items.add(new File(['dropped text'], 'dropped.txt'));
          for (const kind of ['dragover', 'drop']) {
            document.querySelector('#log').dispatchEvent(
              new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
          }
        })()"""
        self.tab.evaluate(drop)
        self.tab.wait_for("document.querySelector('#files').innerText.includes('2\u00a0tokens')")
        self.ask("")
        self.assertEqual(self.server.calls[-1]["messages"][0]["content"],
                         "dropped.txt:\n```\ndropped text\n```")  # fmt: skip
        self.assertEqual(self.chats(), ["dropped.txt"])

    def test_refuses_files_that_it_cannot_attach(self) -> None:
        cases = {
            "photo.png": (b"\x89PNG\r\n\x00\xff", "photo.png is not text in UTF-8"),
            "zeros.txt": (b"a\0b", "zeros.txt is not text"),
            "long.txt": (b"word " * 4097, "long.txt has 4,097 tokens"),
            "huge.txt": (b"x" * (32 * 4096 + 1), "huge.txt has 131,073 bytes"),
        }
        for name, (content, message) in cases.items():
            self.choose("#file-input", self.make_file(name, content))
            self.tab.wait_for("document.querySelector('#notice').innerText.replaceAll('\u00a0', ' ')"
                              f".includes({json.dumps(message)})")  # fmt: skip
            self.assertEqual(self.tab.text("#files"), "")
        half = self.make_file("half.txt", b"word " * 2100)
        self.choose("#file-input", half)
        self.tab.wait_for("document.querySelector('#files').innerText.includes('2,100')")
        self.choose("#file-input", half)
        self.tab.wait_for("document.querySelector('#notice').innerText.includes('with it the files')")

    def download(self, start: Callable[[], None], ending: str) -> str:
        """Returns the text of the file that `start` downloads."""
        self.tab.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.directory))
        start()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            for file in self.directory.glob(f"*.{ending}"):
                text = file.read_text()
                if text:
                    file.unlink()
                    return text
            self.tab.evaluate("0")
            time.sleep(0.05)
        raise AssertionError(f"no download of *.{ending}")

    def test_exports_and_imports(self) -> None:
        self.set_field("system", "Be brief.")
        self.ask("calls")
        self.ask("thinking")
        self.press_button("Regenerate")
        self.wait_for_answer()
        self.press_button("Actions for calls")
        markdown = self.download(lambda: self.press_button("Markdown calls"), "md")
        for part in ("# calls\n\n## System\n\nBe brief.\n\n## You\n\ncalls\n\n## stand-in\n\nCalls get_weather:",
                     '```json\n{\n  "city"', "<summary>Reasoning</summary>\n\nFirst, <b>think</b>.",
                     "\n\nThen speak.\n"):  # fmt: skip
            self.assertIn(part, markdown)
        self.assertEqual(markdown.count("Then speak."), 1)  # the shown branch alone
        exported = self.download(lambda: self.press_button("JSON calls"), "json")
        shown = self.tab.text("#log")
        self.tab.evaluate("localStorage.clear()")
        self.reload()
        file = self.make_file("chats.json", exported.encode())
        for num_chats in (1, 2):  # an imported chat is a copy
            self.choose("#import-input", file)
            self.tab.wait_for(f"document.querySelectorAll('#chat-list li').length === {num_chats}")
        self.assertIn("Imported 1 chat.", self.tab.text("#notice"))
        self.open_chat("calls")
        self.assertEqual(self.tab.text("#log"), shown)
        both = json.loads(self.download(lambda: self.press_button("Export all"), "json"))
        one = json.loads(exported)["chats"][0]
        for chat in both["chats"]:
            self.assertEqual(chat | {"id": ""}, one | {"id": ""})
        self.choose("#import-input", self.make_file("bad.json", b"{]"))
        self.tab.wait_for("document.querySelector('#notice').innerText.includes("
                          "'bad.json was not imported: it is not valid JSON.')")  # fmt: skip
        self.assertEqual(len(self.chats()), 2)
        # A chat can begin with an answer.
        message = {"id": "a", "parent": "", "role": "assistant", "content": "Hello."}
        text = json.dumps({"format": "quire-chats", "version": 1, "chats": [{"title": "hello", "messages": [message]}]})
        self.choose("#import-input", self.make_file("hello.json", text.encode()))
        self.tab.wait_for("document.querySelectorAll('#chat-list li').length === 3")
        self.open_chat("hello")
        self.ask("hi")
        self.assertEqual([m["role"] for m in self.server.calls[-1]["messages"]], ["assistant", "user"])

    def test_refuses_imports_that_are_no_chats(self) -> None:
        head = {"format": "quire-chats", "version": 1}
        message = {"id": "a", "parent": "", "role": "user", "content": "x"}
        cases = {
            "not valid JSON": "[" * 100_000,
            'no "format"': [],
            "its version is 2": head | {"version": 2},
            "no list of chats": head | {"chats": {}},
            "chat 1 has no list of messages": head | {"chats": [{"messages": 7}]},
            "message 1 of chat 1 has no valid id": head | {"chats": [{"messages": [message | {"id": "../x"}]}]},
            "message 2 of chat 1 has no valid": head | {"chats": [
                {"messages": [message, message | {"role": "__proto__", "id": "b"}]}]},
            "two messages a": head | {"chats": [{"messages": [message, message]}]},
            "parent is missing": head | {"chats": [{"messages": [message | {"parent": "b"}]}]},
            "chat 1 has a message whose parent": head | {"chats": [{"messages": [
                message | {"parent": "b"}, message | {"id": "b", "parent": "a"}]}]},
            "chat 1 has 5001 messages, more than 5000": head | {"chats": [{"messages": [{}] * 5001}]},
        }  # fmt: skip
        texts = [case if isinstance(case, str) else json.dumps(case) for case in cases.values()]
        reasons = self.tab.evaluate(
            """import('/page/conversation.js').then(({ fromJson }) => %s.map((text) => {
              try {
                return `took ${fromJson(text)}`;
              } catch (error) {
                return error.message;
              }
            }))""" % json.dumps(texts)
        )  # fmt: skip
        for expected, reason in zip(cases, reasons, strict=True):
            self.assertIn(expected, reason)

    def conversation(self, function: str, value: object) -> Any:
        """Calls a function of (the module conversation.js, value)."""
        return self.tab.evaluate(
            f"import('/page/conversation.js').then((module) => ({function})(module, {json.dumps(value)}))"
        )

    def test_walks_trees_of_messages(self) -> None:
        rng = random.Random(7)
        for num_messages in (0, 1, 2, 40, 2000):
            parents = {f"m{i:05}": f"m{rng.randrange(i):05}" if i and rng.random() < 0.95 else ""
                       for i in range(num_messages)}  # fmt: skip
            # A message whose parent is missing, a circle, and its own parent.
            damaged = {"x1": "nosuch", "x2": "x3", "x3": "x2", "x4": "x4", "x5": "x4"}
            leaf = rng.choice([*parents, "nosuch"])
            got = self.conversation(
                """({ childrenOf, connected, newestLeaf, pathTo }, { parents, leaf }) => {
                  const messages = connected(new Map(Object.entries(parents)
                    .map(([id, parent]) => [id, { id, parent }])));
                  return {
                    ids: [...messages.keys()].sort(),
                    children: Object.fromEntries(childrenOf(messages)),
                    path: pathTo(messages, leaf).map(({ id }) => id),
                    newest: newestLeaf(messages, ''),
                  };
                }""",
                {"parents": parents | damaged, "leaf": leaf},
            )
            children: dict[str, list[str]] = {}
            for id, parent in sorted(parents.items()):
                children.setdefault(parent, []).append(id)
            newest = ""
            while newest in children:
                newest = children[newest][-1]
            path = [leaf if leaf in parents else newest]
            while path[0] in parents:
                path.insert(0, parents[path[0]])
            self.assertEqual(got, {"ids": sorted(parents), "children": children, "path": path[1:],
                                   "newest": newest})  # fmt: skip

    def test_requests_alternate_between_roles(self) -> None:
        answer = {"calls": [], "content": "", "reasoning": ""}
        paths = {
            "q": "Q",
            "qa": "QA",
            "qaq": "QAQ",
            "qeq": "Q",  # an answer that failed at once
            "qqaq": "QAQ",
            "qctaq": "QCTAQ",
            "qcteq": "QCTQ",
        }
        kinds = {
            "q": {"role": "user", "content": "q"},
            "a": answer | {"role": "assistant", "content": "a"},
            "e": answer | {"role": "assistant"},
            "c": answer | {"role": "assistant", "calls": [{"id": "i", "name": "n", "arguments": ""}]},
            "t": {"role": "tool", "results": [{"id": "i", "name": "n", "content": "r"}]},
        }
        got = self.conversation(
            """({ requestMessages }, paths) => paths.map((path) => requestMessages(path, '')
              .map(({ role, tool_calls }) => tool_calls ? 'C' : { user: 'Q', tool: 'T' }[role] ?? 'A')
              .join(''))""",
            [[kinds[kind] for kind in path] for path in paths],
        )
        self.assertEqual(got, list(paths.values()))

    def test_reads_large_texts_and_trees(self) -> None:
        got = self.conversation(
            """({ connected, questionText }, size) => {
              const ids = Array.from({ length: size }, (_, i) => `m${i}`);
              const messages = new Map(ids.map((id) => [id, { id, parent: '' }]));
              const files = [{ name: 'f', text: '``` ````\\n'.repeat(size) }];
              return [connected(messages).size, questionText({ content: '', files }).slice(0, 9)];
            }""",
            300_000,
        )
        self.assertEqual(got, [300_000, "f:\n`````\n"])

    def test_indents_json(self) -> None:
        deep = "[" * 20_000 + "]" * 20_000
        cases = {
            '{"a":[1,{"b":[]}],"c":{}, "d":"{,}\\"\\u00fc"}':
                '{\n  "a": [\n    1,\n    {\n      "b": []\n    }\n  ],\n  "c": {},\n  "d": "{,}\\"ü"\n}',
            "12345678901234567890": "12345678901234567890",
            '{"a": 1': '{"a": 1',
            "": "",
        }  # fmt: skip
        got = self.conversation("({ indented }, values) => values.map(indented)", [*cases, deep])
        self.assertEqual(got[:-1], list(cases.values()))
        self.assertEqual(re.sub(r"\s", "", got[-1]), deep)
        self.assertLess(len(got[-1]), 2_000_000)

    def test_makes_titles_and_file_names(self) -> None:
        titles = self.conversation(
            "({ titleOf }, values) => values.map((content) => titleOf({ content, files: [{ name: 'f' }] }))",
            ["  one\ntwo", "🎈" * 61, ""],
        )
        self.assertEqual(titles, ["one", "🎈" * 60 + "…", "f"])
        names = self.conversation(
            "({ fileNameOf }, values) => values.map((title) => fileNameOf(title, 'md'))",
            ["../../etc/Passwd", "Grüße & 世界?", "\u202e..", "x" * 300],
        )
        self.assertEqual(names, ["etc-passwd.md", "grüße-世界.md", "chat.md", "x" * 60 + ".md"])

    def test_keeps_the_chats_of_two_tabs(self) -> None:
        first = self.tab
        second = self.open_tab()
        self.ask("one")
        self.tab = second
        self.ask("two")
        for tab in (first, second):
            tab.wait_for("document.querySelectorAll('#chat-list li').length === 2")
        # Both write in one chat: each message is kept, in a branch of its own.
        self.open_chat("one")
        self.assertEqual(self.answer(), "You said one.")
        self.ask("hesitant", waits=False)
        self.tab = first
        self.ask("here")
        self.press_button("Actions for one")
        self.press_button("Rename one")
        self.tab.type("uno")
        self.tab.press("Enter")
        second.wait_for("document.title === 'uno · Quire'")
        self.tab = second
        self.wait_for_answer()
        for tab in (first, second):
            tab.wait_for("[...document.querySelectorAll('.question .versions')].at(-1).innerText.includes('/2')")
        self.reload_chat()
        self.assertEqual(self.chats(), ["uno", "two"])
        self.assertIn("/2", self.tab.text(".question:nth-last-of-type(2) .versions"))
        # An idle tab follows the other one.
        self.tab = first
        self.open_chat("two")
        self.tab = second
        self.open_chat("two")
        self.ask("further")
        first.wait_for("document.querySelector('#log').innerText.includes('You said further.')")

    def test_keeps_a_chat_that_another_tab_deleted_only_if_it_goes_on(self) -> None:
        self.ask("one")
        other = self.open_tab()
        self.press_button("Actions for one")
        address = self.tab.evaluate("location.href")
        self.open(other, address)
        self.press_button("Delete one")
        other.wait_for("document.querySelector('#notice').innerText.includes('deleted in another tab')")
        self.assertEqual(self.chats(), [])
        self.tab = other
        self.set_field("seed", "3")
        self.assertEqual(self.chats(), [])  # a setting alone does not store it again
        self.ask("two")
        self.assertEqual(self.chats(), ["one"])
        self.reload_chat()
        self.assertEqual(self.tab.text(".question .text"), "one\ntwo")
        second = self.open_tab()
        self.open(second, address)
        self.tab.evaluate("localStorage.clear()")
        self.tab = second
        second.wait_for("document.querySelector('#notice').innerText.includes('deleted in another tab')")
        self.ask("three")
        self.reload_chat()
        self.assertEqual(self.tab.text(".question .text"), "one\ntwo\nthree")

    def test_says_when_the_storage_is_full(self) -> None:
        self.ask("one")
        self.tab.evaluate("localStorage.setItem('quire.message.old.x', 'x'.repeat(4499000));"
                          "localStorage.setItem('quire.chat.old', '{\"title\":\"old\"}')")  # fmt: skip
        self.reload()
        self.ask("long")
        self.assertIn("storage is full", self.tab.text("#notice"))
        self.assertIn("storage is full", self.tab.text("#storage"))
        self.assertEqual(self.chats(), ["long", "one", "old"])
        self.assertEqual(self.tab.text("#chat-list small").split("\n"), ["not saved", "", ""])
        self.assertIn("Line 199", self.answer())
        self.open_chat("one")
        self.open_chat("long")
        self.assertIn("Line 199", self.answer())
        self.press_button("Actions for old")
        self.press_button("Delete old")
        self.assertEqual(self.chats(), ["long", "one"])
        self.assertNotIn("full", self.tab.text("#storage"))
        self.reload_chat()
        self.assertIn("Line 199", self.answer())
        # The browser's own limit.
        self.tab.evaluate("Storage.prototype.setItem = () => { throw new DOMException('', 'QuotaExceededError'); }")
        self.ask("more")
        self.assertIn("storage is full", self.tab.text("#notice"))
        self.assertEqual(self.answer(), "You said more.")

    def test_works_without_storage(self) -> None:
        self.tab = self.open_tab(
            "Object.defineProperty(window, 'localStorage',"
            "{ get() { throw new DOMException('no', 'SecurityError'); } });"
        )
        self.assertIn("refuses storage", self.tab.text("#notice"))
        self.ask("one")
        self.press_button("New chat")
        self.ask("two")
        self.open_chat("one")
        self.assertEqual(self.answer(), "You said one.")
        self.assertIn("refuses storage", self.tab.text("#storage"))

    def test_survives_what_is_in_the_storage(self) -> None:
        rng = random.Random(11)
        self.ask("fine")
        values = ["", "null", "7", "[]", "{}", "{", '"x"', '{"title":7,"settings":[]}', "[" * 5000,
                  '{"title":"<img src=x onerror=window.pwned=1>","leaf":"a","updatedMs":1e999}',
                  '{"id":"a","parent":"a","role":"user"}', '{"id":"b","parent":"","role":"assistant",'
                  '"calls":[null,{"name":{}}],"timing":"x","files":7,"content":{"a":1}}',
                  '{"id":"b","parent":"","role":"__proto__"}', '{"__proto__":{"title":"x"},"title":"y"}',
                  '{"temperature":"<b>","tools":"{","seed":5,"system":null}',
                  '{"id":"b","parent":"","role":"tool","results":[{}]}']  # fmt: skip
        circle = {"quire.chat.loop": '{"title":"loop","leaf":"a"}',
                  "quire.message.loop.a": '{"id":"a","parent":"b","role":"user","content":"round"}',
                  "quire.message.loop.b": '{"id":"b","parent":"a","role":"assistant"}'}  # fmt: skip
        self.tab.evaluate(f"Object.assign(localStorage, {json.dumps(circle)})")
        keys = ["quire.settings", "quire.theme", "quire.chat.", "quire.chat.c", "quire.chat.__proto__",
                "quire.message.", "quire.message.c", "quire.message.c.a", "quire.message.c.b",
                "quire.message.c.a.b", "quire.chat.<b>", "quire.", "other"]  # fmt: skip
        for _ in range(12):
            entries = {key: rng.choice(values) for key in keys}
            self.tab.evaluate(f"Object.assign(localStorage, {json.dumps(entries)})")
            self.reload()
            for i in range(len(self.chats())):
                self.tab.evaluate(f"document.querySelectorAll('#chat-list .title')[{i}].click()")
                self.tab.wait_for(f"document.querySelectorAll('#chat-list .title')[{i}].ariaCurrent")
            self.tab.evaluate("document.querySelector('#new-chat').click()")
            self.tab.evaluate("document.querySelector('#reset-settings').click()")
            self.ask("still here")
            self.assertEqual(self.answer(), "You said still here.")
            self.assertIn("fine", self.chats())
        self.assertFalse(self.tab.evaluate("'pwned' in window"))

    def test_copies(self) -> None:
        permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"]
        self.tab.call("Browser.grantPermissions", permissions=permissions)
        self.tab.call("Page.bringToFront")
        self.ask("markdown")
        read = "navigator.clipboard.readText()"
        copy = ".answer [aria-label='Copy answer']"
        self.tab.click(copy)
        self.tab.wait_for(f"document.querySelector(\"{copy}\").innerText === 'Copied'")
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

    def panel_value(self, gauge: str) -> str:
        return self.tab.text(f"[data-gauge={gauge}] .value")

    def wait_for_drafts(self, text: str) -> None:
        self.tab.wait_for(f"document.querySelector('[data-gauge=drafts] .value').innerText === '{text}'")

    def test_panel_shows_accepted_drafts_while_the_server_speculates(self) -> None:
        def count(num_groups: int, num_drafts: int, num_accepted: int, is_synthetic: bool = False) -> None:
            self.server.drafts = {
                "quire_spec_decode_synthetic_acceptance": int(is_synthetic),
                "vllm:spec_decode_num_drafts_total": num_groups,
                "vllm:spec_decode_num_draft_tokens_total": num_drafts,
                "vllm:spec_decode_num_accepted_tokens_total": num_accepted,
            }

        self.tab.wait_for("document.querySelector('[data-gauge=hits] .value').innerText !== '–'")
        self.assertNotRegex(self.tab.text("#side"), "(?i)drafts|accepted|synthetic")
        self.addCleanup(setattr, self.server, "drafts", {})
        count(0, 0, 0)
        self.reload()
        self.tab.wait_for("document.querySelector('[data-gauge=length]').checkVisibility()")
        self.assertEqual(self.panel_value("length") + self.panel_value("drafts"), "––")
        count(100, 400, 150)
        self.wait_for_drafts("150 of 400")
        self.assertEqual(self.panel_value("length"), "2.50")
        count(110, 440, 180)  # since the last reading, 10 groups with 30 accepted drafts
        self.wait_for_drafts("180 of 440")
        self.assertEqual(self.panel_value("length"), "4.00")
        calls = self.server.num_metrics_calls
        while self.server.num_metrics_calls < calls + 2:
            time.sleep(0.1)
        self.assertEqual(self.panel_value("length"), "4.00")  # the last one while nothing runs
        self.assertNotIn("Synthetic", self.tab.text("#side"))
        count(1_000_000, 4_000_000, 1_234_567, is_synthetic=True)
        self.wait_for_drafts("1.2M of 4M")
        self.assertIn("Synthetic acceptance", self.tab.text("#side"))
        self.check_contrasts()
        self.server.drafts = {}
        self.tab.wait_for("document.querySelector('[data-gauge=drafts]').hidden")
        self.assertNotRegex(self.tab.text("#side"), "(?i)drafts|accepted|synthetic")

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
        self.tab.wait_for("document.querySelector('.answer:not([aria-busy])')")
        self.assertEqual(self.server.calls[-1]["messages"][-1]["content"], "a\nb")
        self.assertEqual(self.focused(), "input")
        name = "(({ id, name, innerText, nodeName }) => id || name || innerText || nodeName)(document.activeElement)"
        visited = []
        for _ in range(40):
            self.tab.press("Tab")
            visited.append(self.tab.evaluate(name))
        for expected in ("new-chat", "theme", "a", "⋯", "import", "export-all", "log", "Edit", "Copy",
                         "Regenerate", "attach", "input", "send", "temperature", "top_p", "max_tokens",
                         "seed", "system", "tools", "reset-settings"):  # fmt: skip
            self.assertIn(expected, visited)
        self.assertNotIn("chats-toggle", visited)
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
        live = "[...document.querySelectorAll('#log, .answer')].map((node) => node.ariaLive)"
        self.assertEqual(self.tab.evaluate(live), ["off", "polite"])  # only a new answer is read
        self.assertEqual(self.tab.text("#announcer"), "Answer complete")
        self.reload_chat()
        self.assertEqual(self.tab.evaluate(live), ["off", None])

    def test_is_light_and_dark(self) -> None:
        paper = "getComputedStyle(document.body).backgroundColor"
        self.ask("markdown")
        self.ask("refused")
        self.ask("thinking")
        self.press_button("Regenerate")
        self.wait_for_answer()
        self.ask("calls")
        self.press_button("Actions for markdown")
        self.choose("#file-input", self.make_file("a.txt", b"text"), self.make_file("b", b"\xff"))
        self.tab.wait_for("document.querySelector('#files li') && document.querySelector('#notice p')")
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
        self.ask("table")
        lines = """[...document.querySelectorAll('th')].map((node) => {
          const range = document.createRange();
          range.selectNodeContents(node);
          return range.getClientRects().length;
        })"""
        self.assertEqual(self.tab.evaluate(lines), [1, 1, 1], "a heading broke within a word")
        self.ask("calls")
        self.press_button("Regenerate")
        self.wait_for_answer()
        self.assertEqual(self.tab.evaluate("document.documentElement.scrollWidth"), 320)
        self.tab.click("#chats-toggle")
        self.assertEqual(self.focused(), "chats")
        self.press_button("Actions for markdown")
        self.assertEqual(self.tab.evaluate(OUTSIDE), [])
        self.tab.click("#chat-list .title")
        self.assertFalse(self.tab.evaluate("document.querySelector('#chats').checkVisibility()"))
        self.assertEqual(self.tab.evaluate(OUTSIDE), [])
        self.assertFalse(self.tab.evaluate("document.querySelector('#side').checkVisibility()"))
        self.tab.click("#side-toggle")
        self.assertTrue(self.tab.evaluate("document.querySelector('#side').checkVisibility()"))
        self.assertEqual(self.focused(), "side")
        self.tab.press("Escape")
        self.assertFalse(self.tab.evaluate("document.querySelector('#side').checkVisibility()"))
        self.assertEqual(self.focused(), "side-toggle")
        self.tab.click("#side-toggle")
        self.set_field("top_p", "7")
        self.tab.press("Escape")
        self.tab.evaluate("document.querySelector('#input').focus()")
        self.tab.type("x")
        self.tab.press("Enter")
        self.tab.wait_for("document.activeElement.name === 'top_p'")  # shows the sheet again

    def test_shows_a_long_model_name_whole(self) -> None:
        self.server.model = "organisation/A-Model-With-A-Long-Name-405B-Instruct-quantized.w8a8"
        try:
            for width in (360, 800, 1280):
                self.tab.resize(width, 640)
                self.reload()
                self.assertEqual(self.tab.text("#model").replace("\n", ""), self.server.model)
                self.assertEqual(self.tab.evaluate(OUTSIDE), [])
                style = "getComputedStyle(document.querySelector('#model').parentElement)"
                self.assertEqual(self.tab.evaluate(f"[{style}.overflow, {style}.textOverflow]"),
                                 ["visible", "clip"])  # fmt: skip
                box = "document.querySelector('#model').parentElement"
                self.assertTrue(self.tab.evaluate(f"{box}.scrollWidth <= {box}.clientWidth"))
        finally:
            self.server.model = MODEL


class ServeTest(PageTest):
    @classmethod
    def setUpClass(cls) -> None:
        if not options.quire:
            raise unittest.SkipTest("no --quire")
        super().setUpClass()
        cls.server = Served(options.quire, "--log-level", "warning")
        cls.url = cls.server.url

    @classmethod
    def tearDownClass(cls) -> None:
        status = cls.server.stop()
        super().tearDownClass()
        if status != 0:
            raise AssertionError(f"quire serve ended with {status}")

    def test_serves_what_was_tested(self) -> None:
        header = f"fetch('{self.url}').then((answer) => answer.headers.get('content-security-policy'))"
        self.assertEqual(self.tab.evaluate(header), policy())
        self.assertEqual(self.tab.text("#model"), self.server.model)
        paths = ["/" if file.name == "index.html" else f"/page/{file.name}" for file in (PAGE_DIR / "web").iterdir()]
        paths += ["/page/katex/katex.min.js", "/page/katex/katex.min.css"]
        paths += [f"/page/katex/fonts/{file.name}" for file in (KATEX_DIR / "fonts").glob("*.woff2")]
        for path in paths:
            with urllib.request.urlopen(self.server.url + path) as answer:
                self.assertEqual(answer.read(), file_of(path).read_bytes(), path)

    def test_solves_a_word_problem(self) -> None:
        lengths = """
        window.lengths = [];
        new MutationObserver(() => {
          lengths.push(document.querySelector('.answer .prose')?.innerText.length ?? 0);
        }).observe(document.querySelector('#log'), { childList: true, subtree: true });
        """
        self.tab.evaluate(lengths)
        self.tab.click("#examples button")
        self.tab.wait_for("document.querySelector('.answer:not([aria-busy])')")
        self.assertEqual(self.tab.text(".question .text"), QUESTION)
        self.assertRegex(self.tab.text(".answer .prose"), r"= 190\s*$")
        # The text grew; the number of pieces depends on the machine.
        self.assertGreater(len(set(self.tab.evaluate("lengths"))), 1)
        self.assertRegex(self.notes(), r"^\d+ tokens · ([\d,]+ tokens/s · )?first after [\d.]+ m?s$")
        self.tab.wait_for("document.querySelector('[data-gauge=hits] .value').innerText !== '–'")
        self.assertEqual(self.tab.text("#panel-state"), "live")
        self.tab.click("#new-chat")
        self.tab.click("#examples button:last-of-type")
        self.tab.wait_for("document.querySelector('.answer:not([aria-busy])')")
        self.assertRegex(self.tab.text(".answer .prose"), r"= 39\s*$")

    def test_stops(self) -> None:
        # On a fast machine the whole answer may be there before the key is pressed. Then the next
        # question follows it, and its answer may be another.
        for _ in range(10):
            self.ask(QUESTION, waits=False)
            self.tab.wait_for("document.querySelector('.answer:last-of-type .prose').innerText")
            self.tab.press("Escape")
            self.wait_for_answer()
            if "stopped" in self.notes():
                break
        self.assertRegex(self.notes(), r"^\d+\stokens?\s.*stopped$")
        self.assertNotIn("190", self.answer())
        self.tab.wait_for("document.querySelector('[data-gauge=running] .value').innerText === '0'")

    def test_attaches_a_file(self) -> None:
        self.choose("#file-input", self.make_file("count.txt", b"seven apples"))
        self.tab.wait_for("/^count.txt · [1-9][0-9]?.tokens/.test(document.querySelector('#files').innerText)")
        self.ask("How many?")
        self.assertNotEqual(self.answer(), "")
        self.assertEqual(self.tab.text(".error"), "")

    def test_says_that_a_question_is_too_long(self) -> None:
        self.ask("many words " * 4000)
        self.assertIn("4,096 tokens", self.tab.text(".answer .error"))

    def test_goes_on_past_its_context(self) -> None:
        """Four questions that do not fit in the context together."""
        self.set_field("max_tokens", "16")
        for i in range(4):
            self.ask(f"What is {i} + 1? " + "0 " * 700)
            self.assertEqual(self.tab.text(".error"), "")
        self.assertIn("did not get the first", self.tab.text(".left-out"))
        self.assertRegex(self.tab.text("#context-used"), "^[1-4],[0-9]{3} of 4,096 tokens")

    def test_continues_an_answer(self) -> None:
        self.set_field("max_tokens", "12")
        self.ask(QUESTION)
        cut = self.answer()
        self.assertIn("cut off", self.notes())
        self.set_field("max_tokens", "200")
        self.press_button("Continue")
        self.wait_for_answer()
        self.assertEqual(self.tab.text(".error"), "")
        self.assertTrue(self.answer().startswith(cut.strip()[:-3]), [cut, self.answer()])
        self.assertRegex(self.answer(), r"= 190\s*$")

    def test_is_light_and_dark(self) -> None:
        self.ask(QUESTION)
        for scheme in ("light", "dark"):
            self.tab.prefer(scheme)
            self.tab.wait_for(f"document.documentElement.dataset.theme === '{scheme}'")
            self.check_contrasts()


class DraftsTest(PageTest):
    """A server that speculates, with real or with synthetic acceptance."""

    def setUp(self) -> None:  # each test has a server of its own
        if not options.quire:
            self.skipTest("no --quire")

    def serve(self, more: str) -> None:
        speculation = ('{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 1, '
                       '"enable_adaptive_verification": false' + more + "}")  # fmt: skip
        server = Served(options.quire, "--log-level", "error", "--speculative-config", speculation)
        self.addCleanup(server.stop)
        self.url = server.url
        super().setUp()

    def check_figures(self) -> None:
        """Asks, and compares the panel with /metrics."""
        self.tab.wait_for("!document.querySelector('[data-gauge=length]').hidden")
        self.set_field("max_tokens", "60")  # with synthetic acceptance, an answer need not end
        self.ask(QUESTION)
        drafts = "document.querySelector('[data-gauge=drafts] .value').innerText"
        self.tab.wait_for(f"/^[1-9][0-9]* of [1-9][0-9]*$/.test({drafts})")
        with urllib.request.urlopen(self.url + "/metrics") as answer:
            metrics = answer.read().decode()
        total = lambda name: re.search(rf"^vllm:spec_decode_num_{name}_total\S* (\d+)$", metrics, re.M)[1]  # noqa: E731
        self.tab.wait_for(f"{drafts} === '{total('accepted_tokens')} of {total('draft_tokens')}'")
        self.assertRegex(self.tab.text("[data-gauge=length] .value"), r"^[1-4]\.\d\d$")

    def test_shows_accepted_drafts(self) -> None:
        self.serve("")
        self.assertNotIn("Synthetic", self.tab.text("#side"))
        self.check_figures()

    def test_labels_synthetic_acceptance(self) -> None:
        self.serve(', "rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2')
        self.tab.wait_for("document.querySelector('#panel-synthetic').checkVisibility()")
        self.check_figures()


class KeyTest(PageTest):
    """With keys, the page's files need none, and the page asks for the key itself."""

    @classmethod
    def setUpClass(cls) -> None:
        if not options.quire:
            raise unittest.SkipTest("no --quire")
        super().setUpClass()
        cls.server = Served(options.quire, "--api-key", "open-sesame", "--log-level", "warning")
        cls.url = cls.server.url

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.stop()
        super().tearDownClass()

    def open(self, tab: Tab, url: str) -> None:
        tab.open(url)

    def test_asks_for_the_key(self) -> None:
        self.tab.wait_for("document.activeElement.id === 'key'")
        self.tab.type("open-sesame")
        self.tab.press("Enter")
        self.tab.wait_for(f"document.querySelector('#model').innerText === '{self.server.model}'")
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
            body = {"n": 2, "max_tokens": 64, "messages": [{"role": "user", "content": question}]}
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
    """Makes the picture in docs/serving.md: a conversation with the small real model, beside other clients."""
    # The cache is so small that its use is visible.
    server = Served(options.quire, "smollm2", "--kv-cache-memory", "96M", "--log-level", "warning")
    browser = Browser()
    company = Company(server.url)
    test = ServeTest()
    try:
        test.url, test.tab = server.url, browser.new_tab()
        test.tab.resize(1240, 800)
        test.reload()
        for question in ("Name three fruits.", "What is a volcano?"):
            test.ask(question)
            test.reload()
        time.sleep(60)  # fills the panel's lines
        for question in ("What is the capital of France?", "Which language do people speak there?"):
            test.ask(question)
        running = "Number(document.querySelector('[data-gauge=running] .value').innerText)"
        test.tab.wait_for(f"{running} > 1")
        test.tab.screenshot(file)
    finally:
        company.leave()
        browser.close()
        server.stop()


def part_of(suite: unittest.TestSuite, index: int, num_parts: int) -> unittest.TestSuite:
    """Every num_parts-th test, with those of a class together."""
    tests = [suite]
    while any(isinstance(test, unittest.TestSuite) for test in tests):
        tests = [one for test in tests for one in (test if isinstance(test, unittest.TestSuite) else [test])]
    return unittest.TestSuite(tests[index - 1 :: num_parts])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quire", type=Path, help="the binary; without it only the stand-in is used")
    parser.add_argument("--screenshot", type=Path, metavar="FILE", help="take docs/serving.md's with smollm2, no tests")
    parser.add_argument("--part", metavar="I/N", help="run the I-th of N parts, from 1: every N-th test", default="1/1")
    parser.add_argument("tests", nargs="*", metavar="TEST", help="like StandInTest.test_copies")
    parser.parse_args(namespace=options)
    if not find_chromium():
        print("chromium is not installed: scripts/install_deps.sh test")
        return SKIPPED
    if options.screenshot:
        take_screenshot(options.screenshot)
        return 0
    module, loader = sys.modules["__main__"], unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(options.tests, module) if options.tests else loader.loadTestsFromModule(module)
    index, num_parts = map(int, options.part.split("/"))
    result = unittest.TextTestRunner(verbosity=2).run(part_of(suite, index, num_parts))
    return 0 if result.wasSuccessful() and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
