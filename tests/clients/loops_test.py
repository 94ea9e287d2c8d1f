"""Runs loops of agents with clients from PyPI against a model that answers in a given dialect.

    loops_test.py --quire BINARY --write-checkpoint BINARY [TEST …]

The model copies what its prompt has a fixed number of tokens before. The question and the results of
the tools are the answers that follow, taken from the corpus of a dialect: a call, two calls, a text.
"""

import asyncio
import contextlib
import itertools
import json
import os
import subprocess
import tempfile
import unittest
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ollama
import pydantic
from agents import Agent as OpenAIAgent
from agents import ModelSettings, Runner, function_tool, set_tracing_disabled
from agents import OpenAIChatCompletionsModel, OpenAIResponsesModel
from anthropic import Anthropic
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI, OpenAI
from pydantic_ai import Agent, AgentRunResultEvent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.openai import OpenAIResponsesModel as PydanticAIResponsesModel
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from client_case import ServedCase, main, options

os.environ["LANGSMITH_TRACING"] = "false"
set_tracing_disabled(True)

DIALECTS = ("hermes", "qwen3_coder", "llama3_json", "mistral", "deepseek_v31", "glm45", "kimi_k2",
            "openai", "gemma4")  # fmt: skip
KEY = "none"
MAX_TOKENS = 200
BLOCK_SIZE = 16
END = "<|endoftext|>"
PADDING = " x"  # one token
TEMPLATE = """
{%- for tool in tools or [] %}{{ tool.function.name }} {% endfor %}
{%- for message in messages -%}
  {{- '<|endoftext|>' + message.role + '<|endoftext|>' + (message.content or '') }}
  {%- for call in message.tool_calls or [] %}{{ call.function | tojson }}{% endfor %}
{%- endfor -%}
"""
_CORPORA = Path(__file__).parents[1] / "server" / "tools" / "dialects"
_numbers = itertools.count()


def write_checkpoint(directory: str) -> None:
    root = Path(__file__).parents[2]
    environment = {"QUIRE_SOURCE_DIR": str(root)} | os.environ
    done = subprocess.run([options.write_checkpoint.resolve(), directory], env=environment,
                          capture_output=True, text=True, check=False)  # fmt: skip
    if done.returncode == 77:
        raise unittest.SkipTest(done.stderr)
    if done.returncode != 0:
        raise AssertionError(done.stderr)


class Loop:
    """One conversation: its question, its tools, and what was done."""

    def __init__(self, case: "LoopCase") -> None:
        self.served = case.served
        self.model = case.model
        self.instructions = f"This is conversation {next(_numbers)}."  # which shares no prefix
        self.question = case.question
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.counts: list[tuple[float, float]] = []  # prompt tokens and found ones, before each turn
        self._scripts = case.scripts
        self.count()

        def now() -> str:
            """Tells the time."""
            return self.call("now")

        def get_weather(city: str, days: int) -> str:
            """Tells the weather of a city."""
            return self.call("get_weather", city=city, days=days)

        def add(a: float, b: float) -> str:
            """Adds numbers."""
            return self.call("add", a=a, b=b)

        self.functions: list[Callable[..., str]] = [now, get_weather, add]
        self.schemas = {f.__name__: pydantic.TypeAdapter(f).json_schema() for f in self.functions}

    @property
    def url(self) -> str:
        return self.served.url + "/v1"

    def run(self, name: str, arguments: Any) -> str:
        [function] = [f for f in self.functions if f.__name__ == name]
        return function(**arguments)

    def call(self, name: str, **arguments: Any) -> str:
        self.calls.append((name, arguments))
        if name not in self._scripts:
            return "It is mild."
        self.count()
        return self._scripts[name]

    def count(self) -> None:
        metrics = self.served.metrics()
        self.counts.append(
            (
                metrics["vllm:prefix_cache_queries_total"],
                metrics["vllm:prefix_cache_hits_total"],
            )
        )


def run_openai_chat(loop: Loop, is_streamed: bool) -> str:
    tools = [{"type": "function", "function": {"name": name, "parameters": schema, "strict": True}}
             for name, schema in loop.schemas.items()]  # fmt: skip
    messages: list[Any] = [{"role": "system", "content": loop.instructions},
                           {"role": "user", "content": loop.question}]  # fmt: skip
    with OpenAI(base_url=loop.url, api_key=KEY, max_retries=0) as client:
        while True:
            given: Any = {"model": loop.model, "messages": messages, "tools": tools,
                          "temperature": 0, "max_tokens": MAX_TOKENS}  # fmt: skip
            if is_streamed:
                with client.chat.completions.stream(**given) as stream:
                    message = stream.get_final_completion().choices[0].message
            else:
                message = client.chat.completions.create(**given).choices[0].message
            if not message.tool_calls:
                return message.content or ""
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                text = loop.run(call.function.name, json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


def run_openai_responses(loop: Loop, is_streamed: bool) -> str:
    tools = [{"type": "function", "name": name, "parameters": schema, "strict": True}
             for name, schema in loop.schemas.items()]  # fmt: skip
    items: list[Any] = [{"role": "user", "content": loop.question}]
    with OpenAI(base_url=loop.url, api_key=KEY, max_retries=0) as client:
        while True:
            given: Any = {"model": loop.model, "instructions": loop.instructions, "input": items,
                          "tools": tools, "temperature": 0,
                          "max_output_tokens": MAX_TOKENS, "store": False}  # fmt: skip
            if is_streamed:
                with client.responses.stream(**given) as stream:
                    response = stream.get_final_response()
            else:
                response = client.responses.create(**given)
            items += response.output
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                return response.output_text
            for call in calls:
                text = loop.run(call.name, json.loads(call.arguments))
                items.append(
                    {"type": "function_call_output", "call_id": call.call_id, "output": text}
                )


def run_anthropic(loop: Loop, is_streamed: bool) -> str:
    tools = [{"name": name, "input_schema": schema} for name, schema in loop.schemas.items()]
    messages: list[Any] = [{"role": "user", "content": loop.question}]
    with Anthropic(base_url=loop.served.url, api_key=KEY, max_retries=0) as client:
        while True:
            given: Any = {"model": loop.model, "system": loop.instructions, "messages": messages,
                          "tools": tools, "max_tokens": MAX_TOKENS,
                          "extra_body": {"temperature": 0}}  # fmt: skip
            if is_streamed:
                with client.messages.stream(**given) as stream:
                    message = stream.get_final_message()
            else:
                message = client.messages.create(**given)
            messages.append({"role": "assistant", "content": message.content})
            results = [{"type": "tool_result", "tool_use_id": block.id,
                        "content": loop.run(block.name, block.input)}
                       for block in message.content if block.type == "tool_use"]  # fmt: skip
            if not results:
                return "".join(block.text for block in message.content if block.type == "text")
            messages.append({"role": "user", "content": results})


def run_ollama(loop: Loop, is_streamed: bool) -> str:
    messages: list[Any] = [{"role": "system", "content": loop.instructions},
                           {"role": "user", "content": loop.question}]  # fmt: skip
    with ollama.Client(host=loop.served.url) as client:
        while True:
            given: Any = {"model": loop.model, "messages": messages, "tools": loop.functions,
                          "options": {"temperature": 0, "num_predict": MAX_TOKENS}}  # fmt: skip
            parts = list(client.chat(**given, stream=True)) if is_streamed else [client.chat(**given)]
            text = "".join(part.message.content or "" for part in parts)
            calls = [call for part in parts for call in part.message.tool_calls or []]
            if not calls:
                return text
            messages.append({"role": "assistant", "content": text, "tool_calls": calls})
            for call in calls:
                result = loop.run(call.function.name, call.function.arguments)
                messages.append(
                    {"role": "tool", "tool_name": call.function.name, "content": result}
                )


def run_openai_agents(model_class: Any) -> Callable[[Loop, bool], str]:
    async def run(loop: Loop, is_streamed: bool) -> str:
        async with AsyncOpenAI(base_url=loop.url, api_key=KEY, max_retries=0) as client:
            agent = OpenAIAgent(
                name="agent", instructions=loop.instructions,
                tools=[function_tool(f) for f in loop.functions],
                model=model_class(loop.model, openai_client=client),
                model_settings=ModelSettings(temperature=0, max_tokens=MAX_TOKENS, store=False),
            )  # fmt: skip
            if not is_streamed:
                return str((await Runner.run(agent, loop.question)).final_output)
            streamed = Runner.run_streamed(agent, loop.question)
            async for _ in streamed.stream_events():
                pass
            return str(streamed.final_output)

    return lambda loop, is_streamed: asyncio.run(run(loop, is_streamed))


def run_pydantic_ai(model_class: Any) -> Callable[[Loop, bool], str]:
    async def run(loop: Loop, is_streamed: bool) -> str:
        provider = OpenAICompatibleProvider("quire", base_url=loop.url, api_key=KEY)
        # pydantic-ai would break the control tokens of the question and the results.
        model = model_class(loop.model, provider=provider,
                            profile={"may_tokenize_special_tokens_in_content": False},
                            settings={"temperature": 0, "max_tokens": MAX_TOKENS})  # fmt: skip
        agent = Agent(model, tools=loop.functions, instructions=loop.instructions)
        if not is_streamed:
            return (await agent.run(loop.question)).output
        async with agent.run_stream_events(loop.question) as events:
            [last] = [event async for event in events if isinstance(event, AgentRunResultEvent)]
            return last.result.output

    return lambda loop, is_streamed: asyncio.run(run(loop, is_streamed))


def run_langchain(**more: Any) -> Callable[[Loop, bool], str]:
    def run(loop: Loop, is_streamed: bool) -> str:
        model = ChatOpenAI(base_url=loop.url, api_key=KEY, model=loop.model, temperature=0,
                           max_tokens=MAX_TOKENS, max_retries=0, streaming=is_streamed,
                           **more)  # fmt: skip
        agent = create_agent(model, loop.functions, system_prompt=loop.instructions)
        messages = agent.invoke({"messages": [("human", loop.question)]})["messages"]
        return messages[-1].text

    return run


CLIENTS: dict[str, Callable[[Loop, bool], str]] = {
    "openai, chat": run_openai_chat,
    "openai, responses": run_openai_responses,
    "anthropic": run_anthropic,
    "ollama": run_ollama,
    "openai-agents, chat": run_openai_agents(OpenAIChatCompletionsModel),
    "openai-agents, responses": run_openai_agents(OpenAIResponsesModel),
    "pydantic-ai, chat": run_pydantic_ai(OpenAIChatModel),
    "pydantic-ai, responses": run_pydantic_ai(PydanticAIResponsesModel),
    "langchain-openai, chat": run_langchain(),
    "langchain-openai, responses": run_langchain(use_responses_api=True),
}


class LoopCase(ServedCase):
    """A server of a dialect."""

    dialect: str
    question: str
    scripts: dict[str, str]  # the results of the tools that are called last in a turn

    @classmethod
    def setUpClass(cls) -> None:
        corpus = json.loads((_CORPORA / f"{cls.dialect}.json").read_text())
        cases = {case["about"]: case for case in corpus["cases"]}
        cls.cases = [cases[about] for about in ("empty", "two", "no call")]
        with contextlib.ExitStack() as stack:
            directory = stack.enter_context(tempfile.TemporaryDirectory())
            write_checkpoint(directory)
            config = json.loads(Path(directory, "config.json").read_text())
            cls.period = config["max_position_embeddings"] // 4
            template = Path(directory, "template.jinja")
            template.write_text(TEMPLATE.strip())
            cls.flags = ("--model", directory, "--chat-template", str(template),
                         "--allow-special-tokens-in-messages", "--block-size", str(BLOCK_SIZE),
                         "--tool-call-parser", corpus["tool_call_parser"],
                         "--reasoning-parser", corpus.get("reasoning_parser", "none"))  # fmt: skip
            super().setUpClass()
            cls.addClassCleanup(stack.pop_all().close)
        first, second, third = (cls.script(case["text"]) for case in cls.cases)
        cls.question = first
        cls.scripts = {"now": second, "add": third}

    @classmethod
    def script(cls, text: str) -> str:
        """Returns a text after which the model gives `text` and ends its answer."""
        body = json.dumps({"prompt": text, "add_special_tokens": False}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(cls.served.url + "/tokenize", body, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            num_tokens = json.load(answer)["count"]
        return text + END + PADDING * (cls.period - 1 - num_tokens)

    def check(self, run: Callable[[Loop, bool], str], is_streamed: bool) -> None:
        loop = Loop(self)
        answer = run(loop, is_streamed)
        loop.count()
        expected = [(name, json.loads(arguments)) for case in self.cases
                    for name, arguments in case["calls"]]  # fmt: skip
        self.assertEqual(sorted(loop.calls), sorted(expected))
        self.assertEqual(answer, self.cases[-1]["content"])
        turns = [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(loop.counts)]
        self.assertEqual(len(turns), len(self.cases))
        for (num_before, _), (num_tokens, num_found) in itertools.pairwise(turns):
            self.assertGreater(num_tokens, num_before)
            self.assertGreater(num_found, num_before - 2 * BLOCK_SIZE)

    def run_loops(self) -> None:
        for (name, run), is_streamed in itertools.product(CLIENTS.items(), (False, True)):
            with self.subTest(name, is_streamed=is_streamed):
                self.check(run, is_streamed)


for _dialect in DIALECTS:
    _members = {"dialect": _dialect, "test_loops": LoopCase.run_loops}
    globals()[f"{_dialect}_test"] = type(f"{_dialect}_test", (LoopCase,), _members)


if __name__ == "__main__":
    main(__doc__)
