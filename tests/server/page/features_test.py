"""Tests of the page with a stand-in server: how it shows texts, and what a reader can do with a chat."""

import json
import time
from typing import Any

from browser import Tab
from page_case import EMPTY_STORAGE, OUTSIDE, StandInCase
from stand_in import CONTEXT, MODEL

LOAD_KATEX = "import('/page/formula.js').then(({ loadKatex }) => loadKatex())"


class RenderingTest(StandInCase):
    def setUp(self) -> None:
        super().setUp()
        self.tab.evaluate(LOAD_KATEX)

    def formulas(self, text: str) -> Any:
        """Returns [TeX, is displayed] of each formula, and the text without them."""
        return self.render(
            """(render, _, text) => {
              const root = render(text);
              const nodes = [...root.querySelectorAll('.formula')];
              const found = nodes.map((node) => [node.querySelector('annotation').textContent,
                Boolean(node.querySelector('.katex-display'))]);
              for (const node of nodes) node.remove();
              return [found, root.textContent];
            }""",
            text,
        )

    def test_shows_formulas(self) -> None:
        cases = {
            "a \\(x^2\\) b": ([["x^2", False]], "a  b"),
            "\\[ x \\]": ([[" x ", True]], ""),
            "\\[\nx\n- y\n\\]\nand": ([["\nx\n- y\n", True]], "and"),
            "$$\na\n$$.": ([["\na\n", True]], ""),
            "so $$a$$ ends": ([["a", True]], "so  ends"),
            "- item\n  $$\n  b\n  $$": ([["\nb\n", True]], "item"),
            "\\begin{align}\na &= b \\\\\nc &= d\n\\end{align}": (
                [["\\begin{align}\na &= b \\\\\nc &= d\n\\end{align}", True]], ""),
            "**$a*b$** and $c_1$, $d_2$.": ([["a*b", False], ["c_1", False], ["d_2", False]], " and , ."),
            "The answer is $42$.": ([["42", False]], "The answer is ."),
            "| $a$ | b |\n|-|-|\n| c | \\(d\\) |": ([["a", False], ["d", False]], "bc"),
            "$5 \\times 3$ and $\\frac{1}{2}$": ([["5 \\times 3", False], ["\\frac{1}{2}", False]], " and "),
            # No formulas.
            "It costs $5 and $10.": ([], "It costs $5 and $10."),
            "$5 million or 6$": ([], "$5 million or 6$"),
            "US$5/NZ$6, 5$ or 6$": ([], "US$5/NZ$6, 5$ or 6$"),
            "$HOME/$USER and ${PATH}": ([], "$HOME/$USER and ${PATH}"),
            "echo $x `$y`": ([], "echo $x $y"),
            "`\\(x\\)` and \\$5$": ([], "\\(x\\) and $5$"),
            "```\n\\(x\\)\n$y$\n```": ([], "codeCopy\\(x\\)\n$y$"),
            # Unbalanced or wrong ones stay whole.
            "an open \\(x": ([], "an open \\(x"),
            "a close x\\) y\\]": ([], "a close x\\) y\\]"),
            "\\[\nx\n\nmore": ([], "\\[\nxmore"),
            "$$\nx": ([], "$$\nx"),
            "\\(\\frac{\\)": ([], "\\(\\frac{\\)"),
            "\\begin{document}\nx\n\\end{document}": ([], "\\begin{document}\nx\n\\end{document}"),
        }  # fmt: skip
        for text, expected in cases.items():
            self.assertEqual(self.formulas(text), list(expected), text)

    def test_shows_a_growing_formula_as_it_shows_a_whole_one(self) -> None:
        text = "a \\(x\\) $y$ $5\n\n\\[\n- a\n- b\n+ c\n\\]\n\n- [ ] one\n- [x] two\n\n$$\n1\n\n2\n$$\n\n|a|b|\n|:-:|-:|\n|1|2|\n"
        self.check_grows(text)

    def test_loads_katex_with_the_first_formula(self) -> None:
        self.tab = self.open_tab(EMPTY_STORAGE)
        self.ask("say $x^2$")
        self.tab.wait_for("document.querySelector('.answer .formula .katex')")
        self.assertTrue(self.tab.evaluate("document.fonts.ready.then(() => document.fonts.check('1em KaTeX_Math'))"))
        self.tab.call("Network.enable")
        self.tab.call("Network.setBlockedURLs", urls=["*katex*"])
        self.reload_chat()
        self.assertEqual(self.answer(), "You said say $x^2$.")  # whole without it

    def test_survives_hostile_formulas(self) -> None:
        formulas = [
            "\\href{javascript:window.pwned=1}{x}", "\\url{javascript:window.pwned=1}",
            "\\includegraphics{https://example.org/x.png}", "\\htmlStyle{position:fixed}{x}",
            "\\htmlData{onclick=window.pwned=1}{x}", "\\htmlId{log}{x}", "\\class{primary}{x}",
            "\\def\\a{\\a\\a}\\a", "\\edef\\a{\\a\\a\\a}\\edef\\b{\\a\\a}\\b", "\\def\\x{y\\x}\\x",
            "\\newcommand{\\a}[1]{#1#1}" + "\\a{" * 60 + "x" + "}" * 60,
            "\\def\\a{xx}" + "".join(f"\\edef\\a{{\\a\\a}}" for _ in range(40)) + "\\a",
            "{" * 2400, "{" * 2400 + "}" * 2400, "\\frac{1}{" * 500 + "x" + "}" * 500, "\\sqrt{" * 800 + "}" * 800,
            "x^" + "{x^" * 1200 + "x" + "}" * 1200, "\\left(" * 700, "\\rule{9999999em}{9999999em}",
            "\\kern-9999em\\raisebox{9999em}{x}", "\u2070" * 4000, "x'" * 2400, "\\begin{matrix}" * 300,
            "\\color{red}" * 400, "<img src=x onerror=window.pwned=1>", "\\text{<script>window.pwned=1</script>}",
            "\\begin{array}{" + "c" * 4000 + "}x\\end{array}", "\\unicode{x}", "\\\\" * 2000, "\x00\ud800", "%" * 4000,
            "x" * 6000,
        ]  # fmt: skip
        for tex in formulas:
            seconds = self.render(
                """(render, _, text) => {
                  const begin = performance.now();
                  const root = render(text);
                  document.querySelector('#log').append(root);
                  const bad = root.querySelector('script, img, iframe, object, a[href], [id], [onclick]');
                  root.className = 'prose';
                  const time = root.getBoundingClientRect() && performance.now() - begin;
                  root.remove();
                  return bad ? bad.outerHTML : time / 1000;
                }""",
                f"\\[{tex}\\] and \\({tex}\\)",
            )
            self.assertIsInstance(seconds, (int, float), tex[:60])
            self.assertLess(seconds, 20, tex[:60])
        self.assertFalse(self.tab.evaluate("'pwned' in window"))

    def test_colours_code(self) -> None:
        cases = {
            ("python", "def f(x):  # why\n    return 'a' + str(1.5)"):
                "k:def f:f c:# why k:return s:'a' f:str n:1.5",
            ("js", "const a = `x${1}`; // it's\nf('a\\'b')"): "k:const s:`x${1}` c:// it's f:f s:'a\\'b'",
            ("C++", "int main() { /* a\nb */ return 0x1F; }"): "k:int f:main c:/* a\nb */ k:return n:0x1F",
            ("rust", "fn f<'a>(x: &'a str) -> char { 'x' }"): "k:fn s:'x'",
            ("bash", "echo \"$A\" # it's\nif [ $# -gt 1 ]; then"): "s:\"$A\" c:# it's k:if n:1 k:then",
            ("sql", "SELECT a FROM t -- all\nWHERE b = 'x'"): "k:SELECT k:FROM c:-- all k:WHERE s:'x'",
            ("html", "<a href=\"x\">it's</a><!-- c -->"): 'k:a s:"x" k:a c:<!-- c -->',
            ("json", '{"a": [1, true]}'): 's:"a" n:1 k:true',
            ("yaml", "a: it's # why\nb: true"): "c:# why k:true",
            ("css", "a { color: red; /* c */ }"): "k:color c:/* c */",
            ("python", "x = \"open"): 's:"open',
            ("text", "if x: return 1"): "",
            ("__proto__", "if x"): "",
        }  # fmt: skip
        got = self.render(
            """(render, _, cases) => cases.map(([language, code]) => {
              const node = render('```' + language + '\\n' + code + '\\n```').querySelector('code');
              return [node.textContent, [...node.querySelectorAll('span')]
                .map(({ className, textContent }) => `${className}:${textContent}`).join(' ')];
            })""",
            list(cases),
        )
        for ((language, code), expected), (text, marks) in zip(cases.items(), got, strict=True):
            self.assertEqual(text, code, language)
            self.assertEqual(marks, expected, language)

    def test_takes_time_in_proportion_to_a_text(self) -> None:
        code = ["a", "aA_", "'", '"', "\\", "\\'", "'''", "/*", "-", "--", "<", "<a", "`", "#", "1", "1.", " ", "\n",
                "a-", "é", "$", "/"]  # fmt: skip
        languages = ["python", "cpp", "js", "rust", "lua", "bash", "yaml", "json", "sql", "css", "html", "go", "ruby"]
        lines = ["> " * 10_000 + "x", "- " * 10_000 + "x", ">" * 10_000, "$" * 100_000, "\\(" * 50_000,
                 "$a" * 50_000, "$a$ " * 12_000, "\\[" * 50_000 + "\\]", "$$" * 50_000, "\\begin{a}\n" * 5_000, "$$\n" * 5_000,
                 "\\[\n\n" * 5_000, "```\n" * 5_001, "x" * 1_000_000, "*a " * 300_000, "[" * 1_000_000, "|" * 1_000_000,
                 ("|a|" * 1000 + "\n") + ("|-|" * 1000 + "\n") + ("|a|" * 1000 + "\n") * 20, "\\" * 100_000,
                 "$1 " + "x " * 50_000 + "$", "- [ ] " * 5_000, "\\\\)" * 30_000, "\\$" * 50_000]  # fmt: skip
        # The limits are for a busy machine: a quadratic time would be minutes, an exponential one endless.
        for language in ["python", "cpp", "js", "rust", "lua", "bash", "yaml", "json", "sql", "css", "html", "go"]:
            slow = self.tab.evaluate(
                f"""import('/page/highlight.js').then(({{ codeNodes }}) => {json.dumps(code)}.filter((part) => {{
                  const begin = performance.now();
                  codeNodes(part.repeat(39_000 / part.length), {json.dumps(language)});
                  return performance.now() - begin > 6000;
                }}))"""
            )
            self.assertEqual(slow, [], language)
        for text in lines:
            ms = self.render(
                """(render, _, text) => {
                  const begin = performance.now();
                  render(text);
                  return performance.now() - begin;
                }""",
                text,
            )
            self.assertLess(ms, 6000, text[:30])

    def test_aligns_tables_and_shows_task_boxes(self) -> None:
        table = self.render(
            "(render, _, text) => [...render(text).querySelectorAll('th, td')].map((cell) => cell.className)",
            "|a|b|c|d|\n|:-|:-:|--:|-|\n|1|2|3|4|",
        )
        self.assertEqual(table, ["", "centre", "right", ""] * 2)
        items = self.render(
            """(render, _, text) => [...render(text).querySelectorAll('li')].map((item) =>
                 [item.querySelector('input')?.checked, item.querySelector('input')?.disabled, item.textContent])""",
            "- [ ] to do\n- [x] done\n- [X]\n- [link](x)",
        )
        self.assertEqual(items, [[False, True, "to do"], [True, True, "done"], [None, None, "[X]"],
                                 [None, None, "[link](x)"]])  # fmt: skip


class FeaturesTest(StandInCase):
    def setUp(self) -> None:
        super().setUp()
        fresh = {"model": MODEL, "more_models": [], "context": CONTEXT, "key": "", "start_time": 1, "is_up": True,
                 "status": None}  # fmt: skip
        self.addCleanup(lambda: self.server.__dict__.update(fresh))

    def contents(self) -> list[str]:
        return [message["content"] for message in self.server.calls[-1]["messages"]]

    def test_leaves_out_the_oldest_messages(self) -> None:
        self.server.context = 200
        self.reload()
        self.assertFalse(self.tab.evaluate("document.querySelector('#context-used').checkVisibility()"))
        words = "word " * 30
        for i in range(12):
            self.ask(f"{i} {words}")
            self.assertEqual(self.tab.text(".error"), "")
        first = int(self.contents()[0].split()[0])
        self.assertGreater(first, 0)
        self.assertEqual(self.server.calls[-1]["messages"][0]["role"], "user")
        note = self.tab.text(".answer:last-of-type .left-out").replace("\u00a0", " ")
        self.assertEqual(note, "The context was full: the model did not get the first "
                         f"{2 * first} messages of this chat for this answer.")  # fmt: skip
        self.assertRegex(self.tab.text("#context-used"), r"^\d+ of 200 tokens of context")
        used = self.tab.evaluate("document.querySelector('#context-used progress').value")
        self.assertTrue(20 < used < 200, used)
        # The first message stays the same for some turns, since the server has the prompt's beginning.
        starts = [call["messages"][0]["content"].split()[0] for call in self.server.calls[-8:]]
        self.assertLess(len(set(starts)), 6, starts)
        self.reload_chat()
        self.assertIn("did not get", self.tab.text(".answer:last-of-type .left-out"))
        self.assertIn("of 200 tokens", self.tab.text("#context-used"))
        # A larger context has room for all of them again.
        self.server.context = 4096
        self.reload_chat()
        self.ask("all")
        self.assertEqual(len(self.contents()), 25)
        self.assertEqual(self.tab.text(".answer:last-of-type .left-out"), "")

    def test_warns_before_the_context_is_full(self) -> None:
        self.server.context = 100
        self.reload()
        self.ask("word " * 20)
        self.assertNotIn("will be left out", self.tab.text("#context-used"))
        self.set_field("max_tokens", "2")
        self.ask("word " * 50)
        self.assertIn("will be left out", self.tab.text("#context-used"))
        self.check_contrasts()

    def test_says_when_one_message_is_too_long(self) -> None:
        num_calls = len(self.server.calls)
        self.ask("short")
        self.ask("word " * 4200)
        self.assertIn("longer than the model's context", self.tab.text(".answer:last-of-type .error"))
        self.assertIn("4,096", self.tab.text(".answer:last-of-type .error"))
        self.assertEqual(len(self.server.calls), num_calls + 1)
        self.ask("word " * 3900)  # leaves little room for an answer, and none for the earlier messages
        self.assertEqual(self.tab.text(".answer:last-of-type .error"), "")
        self.assertEqual(len(self.contents()), 1)
        self.ask("short again")
        self.assertEqual(self.answer(), "You said short again.")

    def test_counts_only_when_a_chat_may_be_too_long(self) -> None:
        num_counts = self.server.num_counts
        self.ask("short")
        self.ask("short again")
        self.assertEqual(self.server.num_counts, num_counts)

    def test_deletes_a_message(self) -> None:
        for text in ("one", "two", "three"):
            self.ask(text)
        other = self.open_tab()
        self.open(other, self.tab.evaluate("location.href"))
        self.press_button("Delete", ".answer:nth-of-type(4)")
        shown = "one\nYou said one.\ntwo\nthree\nYou said three."
        texts = "[...document.querySelectorAll('.question .text, .prose')].map((node) => node.innerText).join('\\n')"
        self.assertEqual(self.tab.evaluate(texts), shown)
        other.wait_for(f"{texts} === {json.dumps(shown)}")
        self.reload_chat()
        self.assertEqual(self.tab.evaluate(texts), shown)
        self.press_button("Delete", ".question")  # the last one
        self.assertIn("Deleted a message.", self.tab.text("#notice"))
        self.press_button("Delete", ".question")  # "two": then one answer follows another
        self.ask("four")
        self.assertEqual(self.contents(), ["one", "You said one.\n\nYou said three.", "four"])
        self.press_button("Delete", ".question:nth-of-type(1)")
        self.assertEqual(self.tab.evaluate("document.activeElement.innerText"), "Undo")
        self.tab.press("Enter")
        self.tab.wait_for("document.querySelector('.question .text').innerText === 'one'")
        # The notice belongs to the chat, and does not cover the settings.
        for goes_on in ("New chat", "Settings"):
            self.reload_chat()
            self.press_button("Delete", "article:last-of-type")
            self.assertIn("Deleted a message.", self.tab.text("#notice"))
            if goes_on == "New chat":
                address = self.tab.evaluate("location.hash")
                self.press_button(goes_on)
            else:
                self.tab.evaluate("document.querySelector('#side-toggle').click()")
            self.assertEqual(self.tab.text("#notice"), "", goes_on)
            self.tab.evaluate(f"location.hash = {json.dumps(address)}")
        self.reload_chat()
        self.assertTrue(self.tab.evaluate(texts).startswith("one\nYou said one."))
        while self.tab.evaluate("document.querySelectorAll('article').length"):
            self.press_button("Delete", "article")
        self.assertTrue(self.tab.evaluate("document.querySelector('#welcome').checkVisibility()"))
        left = self.tab.evaluate("Object.keys(localStorage).filter((key) => key.includes('message')).length")
        self.assertEqual(left, 0)

    def test_deletes_a_call_with_its_results(self) -> None:
        self.ask("calls")
        self.press_button("Send results")
        self.tab.wait_for("document.querySelectorAll('.answer').length === 2")
        self.wait_for_answer()
        self.press_button("Delete", ".answer:nth-of-type(2)")
        self.assertEqual(self.tab.text(".results"), "")
        self.ask("next")
        self.assertEqual([m["role"] for m in self.server.calls[-1]["messages"]], ["user", "assistant", "user"])
        self.assertFalse(any("tool_calls" in m for m in self.server.calls[-1]["messages"]))

    def test_edits_an_answer(self) -> None:
        self.ask("one")
        self.press_button("Edit", ".answer")
        self.assertEqual(self.tab.evaluate("document.activeElement.value"), "You said one.")
        self.tab.evaluate("document.activeElement.select()")
        self.tab.type("I say **two**")
        self.press_button("Save")
        self.assertEqual(self.answer(), "I say two")
        self.assertEqual(self.tab.text(".answer .versions span"), "2/2")
        self.assertIn("edited", self.notes())
        self.ask("three")
        self.assertEqual(self.contents(), ["one", "I say **two**", "three"])
        self.reload_chat()
        self.assertIn("I say two", self.tab.text(".prose"))

    def test_continues_an_answer(self) -> None:
        self.ask("length")
        self.assertIn("cut off", self.notes())
        self.press_button("Continue")
        self.wait_for_answer()
        call = self.server.calls[-1]
        self.assertEqual(call["messages"][-1], {"role": "assistant", "content": "cut"})
        self.assertEqual((call["continue_final_message"], call["add_generation_prompt"]), (True, False))
        self.assertEqual(self.answer(), "cut and more.")
        self.assertRegex(self.notes(), "^2 tokens")
        self.assertNotIn("cut off", self.notes())
        visible = "[...document.querySelectorAll('.answer button')].filter((b) => b.checkVisibility()).map((b) => b.innerText)"
        self.assertNotIn("Continue", self.tab.evaluate(visible))
        self.reload_chat()
        self.assertEqual(self.answer(), "cut and more.")
        self.ask("breaks off")
        self.press_button("Continue")
        self.wait_for_answer()
        self.assertEqual(self.answer(), "half an and more.")
        self.assertEqual(self.tab.text(".error"), "")
        self.ask("one")
        self.assertNotIn("continue_final_message", self.server.calls[-1])
        self.assertNotIn("Continue", self.tab.evaluate(visible))  # offers none for the earlier ones

    def test_takes_nothing_after_an_answer_was_stopped(self) -> None:
        content = self.tab.evaluate(
            """import('/page/answering.js').then(async ({ receive }) => {
              const message = { content: '', reasoning: '', calls: [], leftOut: 0, timing: { numTokens: 0 } };
              const job = { chat: { settings: {} }, message, startMs: 0, controller: new AbortController() };
              const path = [{ role: 'user', content: 'long', files: [] }];
              await receive(job, path, { model: 'm', contextTokens: 0 }, () => { job.isDone = true; });
              return message.content;
            })"""
        )
        self.assertEqual(content, "Line 0.\n\n")  # further ones had arrived with it

    def test_another_tab_sees_a_continued_answer(self) -> None:
        self.ask("length")
        other = self.open_tab()
        self.open(other, self.tab.evaluate("location.href"))
        self.press_button("Continue")
        other.wait_for("document.querySelector('.prose').innerText === 'cut and more.'")

    def test_searches_chats(self) -> None:
        for text in ("the first", "another one", "third <b>"):
            self.reload()
            self.ask(text)
        self.tab.evaluate("document.querySelector('#search').focus()")
        self.tab.type("SAID first")
        self.assertEqual(self.chats(), ["the first"])
        self.tab.press("Escape")
        self.assertEqual(self.chats(), ["third <b>", "another one", "the first"])
        self.tab.type("nowhere")
        self.assertEqual(self.chats(), [])
        self.assertIn("No chat has these words.", self.tab.text("#chats"))
        self.tab.press("Escape")
        self.tab.type("<B>")
        self.assertEqual(self.chats(), ["third <b>"])

    def test_sends_all_samplers_and_shows_the_servers_values(self) -> None:
        placeholder = "document.querySelector('#settings [name={}]').placeholder".format
        shown = {name: self.tab.evaluate(placeholder(name)) for name in ("temperature", "top_p", "top_k", "min_p")}
        self.assertEqual(shown, {"temperature": "0.6", "top_p": "0.9", "top_k": "40", "min_p": "default"})
        self.tab.click("#more-sampling summary")
        values = {"top_k": 7, "min_p": 0.1, "repetition_penalty": 1.1, "presence_penalty": -0.5,
                  "frequency_penalty": 0.25}  # fmt: skip
        for name, value in values.items():
            self.set_field(name, str(value))
        self.set_field("stop", "END \n\\n\\n\na\\\\n")
        self.ask("one")
        call = self.server.calls[-1]
        self.assertEqual({name: call[name] for name in values}, values)
        self.assertEqual(call["stop"], ["END ", "\n\n", "a\\n"])
        self.assertNotIn("seed", call)
        self.press_button("Regenerate")  # the same prompt and seed would yield the same answer
        self.wait_for_answer()
        self.assertIsInstance(self.server.calls[-1]["seed"], int)
        self.reload_chat()
        self.tab.click("#more-sampling summary")
        self.set_field("stop", "\n".join("abcdefghijklmnopq"))
        self.tab.click("#more-sampling summary")
        self.tab.evaluate("document.querySelector('#input').focus()")
        self.tab.type("two")
        self.tab.press("Enter")
        self.tab.wait_for("document.activeElement.name === 'stop'")  # in the fold, which is opened
        self.tab.click("#reset-settings")
        self.ask("")
        self.assertFalse({*values, "stop"} & set(self.server.calls[-1]))

    def wait_for_key(self, tab: Tab, text: str) -> None:
        tab.wait_for(f"document.querySelector('#key-text')?.checkVisibility() && "
                     f"document.querySelector('#key-text').innerText.includes('{text}')")  # fmt: skip

    def give_key(self, key: str) -> None:
        self.tab.evaluate("document.querySelector('#key').focus()")
        self.tab.type(key)
        self.tab.press("Enter")

    def test_asks_for_the_key(self) -> None:
        self.server.key = "open-sesame"
        self.tab.evaluate("window.isOld = true")
        self.tab.call("Page.reload")
        self.tab.wait_for("!window.isOld")
        self.wait_for_key(self.tab, "needs an API key")
        self.assertEqual(self.focused(), "key")
        self.assertEqual(self.tab.text("#model"), "")
        self.tab.wait_for("document.querySelector('#panel-state').innerText === 'needs a key'")
        self.check_contrasts()
        self.give_key("wrong")
        self.wait_for_key(self.tab, "refused this API key")
        self.give_key("ü")  # no header can have it
        self.assertTrue(self.tab.evaluate("document.querySelector('#key').matches(':invalid')"))
        self.tab.evaluate("document.querySelector('#key').value = ''")
        self.give_key("open-sesame")
        self.tab.wait_for("document.querySelector('#context').textContent.includes('4,096')")
        self.tab.wait_for("document.querySelector('#panel-state').innerText === 'live'")
        self.assertFalse(self.tab.evaluate("document.querySelector('#key-form').checkVisibility()"))
        self.ask("one")
        self.assertEqual(self.answer(), "You said one.")
        self.assertNotIn("open-sesame", self.tab.evaluate("JSON.stringify(localStorage)"))
        self.reload_chat()
        self.ask("two")
        self.press_button("Forget the API key")
        self.wait_for_key(self.tab, "needs an API key")
        self.assertNotIn("open-sesame", self.tab.evaluate("JSON.stringify({ ...localStorage, ...sessionStorage })"))
        # A key that the browser remembers holds in other tabs.
        self.tab.click("#key-form [name=remember]")
        self.give_key("open-sesame")
        self.tab.wait_for("document.querySelector('#panel-state').innerText === 'live'")
        other = self.open_tab()
        other.wait_for("document.querySelector('#panel-state').innerText === 'live'")
        self.assertFalse(other.evaluate("document.querySelector('#key-form').checkVisibility()"))
        # The server's keys change while the page is open.
        self.server.key = "another"
        self.ask("three", waits=False)
        self.wait_for_key(self.tab, "refused this API key")

    def test_follows_a_restarted_server(self) -> None:
        self.server.model, self.server.context, self.server.start_time = "another", 8192, 2
        self.tab.wait_for("document.querySelector('#model').innerText === 'another'")
        self.tab.wait_for("document.querySelector('#context').textContent.includes('8,192')")
        self.ask("one")
        self.assertEqual(self.server.calls[-1]["model"], "another")
        self.assertNotIn("This answer is of", self.tab.text(".answer"))
        # Without that metric, once the server answers again.
        self.server.is_up = False
        self.tab.wait_for("document.querySelector('#panel-state').innerText === 'no contact'")
        self.server.model, self.server.is_up = "third", True
        self.tab.wait_for("document.querySelector('#model').innerText === 'third'")
        self.ask("two")
        self.assertEqual(self.tab.text(".answer:last-of-type [role=note]:first-child"),
                         "This answer is of the model third, the one before of another.")  # fmt: skip
        # The server has both now: the chat goes on with the model that answered last.
        unloaded = {"max_model_len": 512, "status": {"value": "unloaded"}}
        self.server.model, self.server.more_models = "first", [{"id": "third", **unloaded}]
        self.reload_chat()
        self.ask("three")
        self.assertEqual(self.server.calls[-1]["model"], "third")
        # Without a choice, a model that failed is the last resort.
        self.server.model, self.server.more_models = "broken", [{"id": "good", **unloaded}]
        self.server.status = {"value": "failed"}
        self.press_button("New chat")
        self.reload()
        self.assertEqual(self.tab.evaluate("document.querySelector('#models').value"), "good")

    def test_works_while_the_server_is_away(self) -> None:
        self.tab.call("Network.enable")
        away = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.ask("one")
        self.tab.call("Network.emulateNetworkConditions", **away)
        self.ask("two")
        self.assertEqual(self.tab.text(".answer:last-of-type .error"), "The server cannot be reached.")
        self.tab.wait_for("document.querySelector('#panel-state').innerText === 'no contact'")
        self.tab.call("Network.emulateNetworkConditions", **away | {"offline": False})
        self.press_button("Try again")
        self.wait_for_answer()
        self.assertEqual(self.answer(), "You said two.")

    def test_escape_closes_menus(self) -> None:
        self.ask("one")
        self.press_button("Actions for one")
        self.assertTrue(self.tab.evaluate("document.querySelector('#chat-list .actions') !== null"))
        self.tab.evaluate("document.querySelector('#input').focus()")
        self.tab.press("Escape")
        self.assertFalse(self.tab.evaluate("document.querySelector('#chat-list .actions') !== null"))
        self.assertEqual(self.tab.evaluate("document.activeElement.ariaLabel"), "Actions for one")
        self.tab.resize(390, 800)
        self.tab.click("#chats-toggle")
        self.press_button("Actions for one")
        self.tab.press("Escape")
        self.assertTrue(self.tab.evaluate("document.querySelector('#chats').checkVisibility()"))
        self.tab.press("Escape")
        self.assertFalse(self.tab.evaluate("document.querySelector('#chats').checkVisibility()"))

    def test_a_phone_finds_the_settings(self) -> None:
        self.tab.resize(390, 800)
        self.assertEqual(self.tab.text("#side-toggle"), "Settings")
        self.tab.click("#side-toggle")
        self.assertTrue(self.tab.evaluate(
            "document.querySelector('[name=temperature]').getBoundingClientRect().bottom < innerHeight / 2"))  # fmt: skip
        self.assertEqual(self.tab.evaluate(OUTSIDE), [])

    def test_chooses_a_model(self) -> None:
        self.server.more_models = [
            {"id": "small", "max_model_len": 512, "status": {"value": "unloaded"},
             "sampling_defaults": {"temperature": 0.1}},
            {"id": "<b>", "status": {"value": "failed"}, "max_model_len": "x", "sampling_defaults": 7},
            {"id": 7}, None,
        ]  # fmt: skip
        self.reload()
        options = "[...document.querySelector('#models').options].map(({ text }) => text)"
        self.assertEqual(self.tab.evaluate(options), [MODEL, "small (unloaded)", "<b> (failed)"])
        self.assertEqual(self.tab.evaluate("document.querySelector('#models').value"), MODEL)
        self.choose_model("small")
        self.assertIn("512", self.tab.text("#context"))
        self.assertEqual(self.tab.evaluate("document.querySelector('[name=temperature]').placeholder"), "0.1")
        self.ask("hesitant", waits=False)
        self.tab.wait_for("document.querySelector('.notes').innerText.includes('loading the model')")
        self.server.more_models[0]["status"]["value"] = "loaded"
        self.tab.wait_for(f"({options})[1] === 'small'")
        self.wait_for_answer()
        self.assertEqual(self.server.calls[-1]["model"], "small")
        # The choice belongs to the chat, and a new chat begins with the last one.
        self.reload()
        self.choose_model(MODEL)
        self.ask("two")
        self.assertEqual(self.server.calls[-1]["model"], MODEL)
        self.open_chat("hesitant")
        self.assertEqual(self.tab.evaluate("document.querySelector('#models').value"), "small")
        self.ask("three")
        self.assertEqual(self.server.calls[-1]["model"], "small")
        self.choose_model("<b>")
        self.assertEqual(self.tab.text("#context"), "")
        self.tab.resize(390, 800)
        self.assertEqual(self.tab.evaluate(OUTSIDE), [])
        # A chosen model that is gone: another one answers.
        self.server.more_models = []
        self.reload_chat()
        self.ask("four")
        self.assertEqual(self.server.calls[-1]["model"], MODEL)

    def test_learns_the_limits_of_a_model_that_was_loaded_quickly(self) -> None:
        other = {"id": "other", "status": {"value": "unloaded"}}
        self.server.more_models = [other]
        self.reload()
        self.choose_model("other")
        other |= {"max_model_len": 512, "status": {"value": "loaded"}}
        self.ask("one")
        self.tab.wait_for("document.querySelector('#context').textContent.includes('512')", timeout_s=5)

    def choose_model(self, id: str) -> None:
        self.tab.evaluate(
            f"(() => {{ const node = document.querySelector('#models'); node.value = {json.dumps(id)};"
            "node.dispatchEvent(new Event('change', { bubbles: true })); })()"
        )

    def test_keeps_the_answers_of_two_models_apart(self) -> None:
        begin = time.monotonic()
        self.server.more_models = [{"id": "other", "status": {"value": "loaded"}}]
        self.reload()
        self.choose_model("other")
        self.ask("hesitant", waits=False)
        self.press_button("New chat")
        self.choose_model(MODEL)
        self.ask("meanwhile")
        self.assertEqual(self.server.calls[-1]["model"], MODEL)
        self.open_chat("hesitant")
        self.wait_for_answer()
        self.assertEqual(self.tab.evaluate("document.querySelector('.answer').ariaLabel"), "other")
        self.assertLess(time.monotonic() - begin, 30)
