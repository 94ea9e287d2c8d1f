"""The common part of the tests of frameworks: a server with tools, and tasks for a small model.

The embedded model is too small to decide that it needs a tool, so the tests force the first calls
as each package provides for it. The model generates every call, the packages run the tools, and the
last answer is free: it must be the one to the same facts and question without tools.
"""

import asyncio
import contextlib
import io
import json
import re
import urllib.request
from pathlib import Path
from typing import Any, Coroutine, Literal

import pydantic

from client_case import ServedCase

KEY = "right-key"
SUM = "What is 3 + 5?"
QUESTION = "How many apples are there in all?"
CONTEXT_LENGTH = 4096
TOO_LONG = "3 + 5 " * CONTEXT_LENGTH
# Generates two calls of count_apples in the format of the parser hermes, as a larger model would.
TWO_CALLS = r"""
root ::= call call
call ::= "<tool_call>{\"name\": \"count_apples\", \"arguments\": {\"person\": \"" person "\"}}</tool_call>"
person ::= "Tom" | "Ann"
"""
_SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Fruits(pydantic.BaseModel):
    """A number of fruits."""

    fruit: Literal["apple", "pear"]
    number: Literal[3, 5, 8]  # a range would become prose in the client of Anthropic


def count_apples(person: Literal["Tom", "Ann"]) -> str:
    """Counts the apples of a person."""
    return f"has {3 if person == 'Tom' else 5} apples."


def fact(person: Literal["Tom", "Ann"]) -> str:
    """Returns what agent_template.jinja writes of a call and its result."""
    return f"count_apples {person} {count_apples(person)}"


class FrameworkCase(ServedCase):
    """A server that asks for a key and whose template has tools."""

    key = KEY
    flags = ("--chat-template", str(Path(__file__).with_name("agent_template.jinja")),
             "--tool-call-parser", "hermes", "--api-key", KEY)  # fmt: skip

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.url = cls.served.url + "/v1"
        cls.runner = asyncio.Runner()  # one event loop, because the packages share connections

    @classmethod
    def tearDownClass(cls) -> None:
        cls.runner.close()
        super().tearDownClass()

    def await_(self, running: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(running)

    def answer(self, *texts: str) -> str:
        """Returns the greedy answer to a message of these texts, without tools and frameworks."""
        body = {"messages": [{"role": "user", "content": " ".join(texts)}],
                "temperature": 0, "max_tokens": 400}  # fmt: skip
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
        request = urllib.request.Request(
            self.url + "/chat/completions", json.dumps(body).encode(), headers
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["choices"][0]["message"]["content"]


class SnippetCase(ServedCase):
    """Runs the examples of docs/serving.md against a server without flags."""

    def check(self, *packages: str) -> None:
        page = Path(__file__).parents[2].joinpath("docs/serving.md").read_text()
        for package in packages:
            snippets = [s for s in _SNIPPET.findall(page) if re.match(rf"from {package}\b", s)]
            self.assertEqual(len(snippets), 1, package)
            output = io.StringIO()
            with self.subTest(package), contextlib.redirect_stdout(output):
                exec(snippets[0].replace("http://127.0.0.1:8000", self.served.url), {})
                self.assertNotEqual(output.getvalue().strip(), "")
