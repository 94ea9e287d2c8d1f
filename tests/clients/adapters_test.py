"""Runs instructor, litellm and llama-index against the real binary with its embedded model.

    adapters_test.py --quire BINARY [TEST …]
"""

import json
import os
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # litellm downloads nothing when imported

import instructor
import litellm
import openai
import pydantic
from instructor.core import InstructorRetryException
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from llama_index.llms.openai_like import OpenAILike

from client_case import main
from frameworks import (
    CONTEXT_LENGTH,
    KEY,
    QUESTION,
    SUM,
    TOO_LONG,
    TWO_CALLS,
    FrameworkCase,
    Fruits,
    SnippetCase,
    count_apples,
    fact,
)

litellm.suppress_debug_info = True

MESSAGES: list[Any] = [{"role": "user", "content": SUM}]
TOOL = {
    "type": "function",
    "function": {
        "name": "count_apples",
        "description": count_apples.__doc__,
        "parameters": pydantic.TypeAdapter(count_apples).json_schema(),
    },
}


class LitellmTest(FrameworkCase):
    def names(self) -> list[tuple[str, str]]:
        """Returns the model's names by the providers that fit, each with its base URL."""
        return [("hosted_vllm/" + self.model, self.url), ("openai/" + self.model, self.url),
                ("anthropic/" + self.model, self.served.url)]  # fmt: skip

    def given(self, name: str, url: str, **more: Any) -> dict[str, Any]:
        return {"model": name, "api_base": url, "api_key": KEY, "messages": MESSAGES,
                "temperature": 0, "max_tokens": 400} | more  # fmt: skip

    def test_answers_and_streams_the_same(self) -> None:
        for name, url in self.names():
            with self.subTest(name):
                whole = litellm.completion(**self.given(name, url))
                text = whole.choices[0].message.content
                self.assertEqual(text, self.answer(SUM))
                self.assertEqual(whole.choices[0].finish_reason, "stop")
                self.assertEqual(
                    self.await_(litellm.acompletion(**self.given(name, url))).choices[0].message,
                    whole.choices[0].message,
                )
                chunks = list(litellm.completion(**self.given(
                    name, url, stream=True, stream_options={"include_usage": True})))  # fmt: skip
                built = litellm.stream_chunk_builder(chunks)
                self.assertEqual(built.choices[0].message.content, text)
                self.assertEqual(built.usage.completion_tokens, whole.usage.completion_tokens)
                self.assertEqual(built.usage.prompt_tokens, whole.usage.prompt_tokens)

    def test_ollamas_api(self) -> None:
        """Its requests have no Content-Type."""
        for provider in ("ollama", "ollama_chat"):
            with self.subTest(provider):
                given = self.given(f"{provider}/{self.model}", self.served.url)
                whole = litellm.completion(**given).choices[0].message.content
                if provider == "ollama_chat":  # the other writes the prompt itself
                    self.assertEqual(whole, self.answer(SUM))
                chunks = list(litellm.completion(**given, stream=True))
                built = litellm.stream_chunk_builder(chunks)
                self.assertEqual(built.choices[0].message.content, whole)

    def test_completes_a_text_and_responds(self) -> None:
        given = {"api_base": self.url, "api_key": KEY}
        text = litellm.text_completion(model="text-completion-openai/" + self.model, prompt=SUM,
                                       max_tokens=4, temperature=0, **given)  # fmt: skip
        self.assertIn(text.usage.completion_tokens, range(1, 5))
        response = litellm.responses(model="openai/" + self.model, input=SUM, temperature=0,
                                     max_output_tokens=400, **given)  # fmt: skip
        self.assertEqual(response.output[0].content[0].text, self.answer(SUM))
        self.assertGreater(response.usage.output_tokens, 0)

    def test_structured_output(self) -> None:
        for name, url in self.names()[:2]:
            given = self.given(name, url, response_format=Fruits)
            text = litellm.completion(**given).choices[0].message.content
            self.assertIsInstance(Fruits.model_validate_json(text), Fruits)

    def test_a_loop_of_tool_calls(self) -> None:
        """Two turns with a call each, then the answer."""
        for name, url in self.names():
            with self.subTest(name):
                messages: list[Any] = [{"role": "user", "content": QUESTION}]
                facts = []
                for _ in range(2):
                    choice = litellm.completion(**self.given(
                        name, url, messages=messages, tools=[TOOL], tool_choice="required",
                        parallel_tool_calls=False)).choices[0]  # fmt: skip
                    self.assertEqual(choice.finish_reason, "tool_calls")
                    messages.append(choice.message)
                    facts += self.run_tools(messages)
                self.assertEqual(len(facts), 2)
                told = litellm.completion(**self.given(name, url, messages=messages, tools=[TOOL]))
                self.assertEqual(told.choices[0].message.content, self.answer(*facts, QUESTION))

    def test_parallel_tool_calls(self) -> None:
        for name, url in self.names()[:2]:
            with self.subTest(name):
                messages: list[Any] = [{"role": "user", "content": QUESTION}]
                given = self.given(name, url, messages=messages, tools=[TOOL])
                stream = litellm.completion(
                    **given, stream=True,
                    extra_body={"structured_outputs": {"grammar": TWO_CALLS}})  # fmt: skip
                messages.append(litellm.stream_chunk_builder(list(stream)).choices[0].message)
                facts = self.run_tools(messages)
                self.assertEqual(len(facts), 2)
                told = litellm.completion(**given).choices[0].message.content
                self.assertEqual(told, self.answer(*facts, QUESTION))

    def run_tools(self, messages: list[Any]) -> list[str]:
        """Appends the results of the last message's calls, and returns the facts."""
        calls = [(call.id, json.loads(call.function.arguments)) for call in messages[-1].tool_calls]
        messages.extend({"role": "tool", "tool_call_id": id, "content": count_apples(**arguments)}
                        for id, arguments in calls)  # fmt: skip
        return [fact(**arguments) for _, arguments in calls]

    def test_raises_the_packages_errors(self) -> None:
        for name, url in self.names():
            with self.subTest(name):
                long = [{"role": "user", "content": TOO_LONG}]
                with self.assertRaises(litellm.ContextWindowExceededError) as caught:
                    litellm.completion(**self.given(name, url, messages=long))
                self.assertIn(str(CONTEXT_LENGTH), str(caught.exception))
                with self.assertRaises(litellm.AuthenticationError):
                    litellm.completion(**self.given(name, url, api_key="wrong-key"))
                with self.assertRaises(litellm.NotFoundError):
                    litellm.completion(**self.given(name.replace("abacus", "other"), url))
                with self.assertRaises(litellm.BadRequestError):
                    litellm.completion(**self.given(name, url, temperature=-1))


class InstructorTest(FrameworkCase):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.client = openai.OpenAI(base_url=cls.url, api_key=KEY, max_retries=0)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.client.close()
        super().tearDownClass()

    def given(self, **more: Any) -> dict[str, Any]:
        return {"model": self.model, "messages": MESSAGES, "temperature": 0, "max_tokens": 400,
                "response_model": Fruits, "max_retries": 0} | more  # fmt: skip

    def patched(self, mode: Any = instructor.Mode.JSON_SCHEMA) -> Any:
        return instructor.from_openai(self.client, mode=mode)

    def test_returns_objects_in_each_mode_with_a_schema(self) -> None:
        for mode in (instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT,
                     instructor.Mode.JSON_SCHEMA):  # fmt: skip
            with self.subTest(mode):
                found, raw = self.patched(mode).create_with_completion(**self.given())
                self.assertIsInstance(found, Fruits)
                self.assertGreater(raw.usage.completion_tokens, 0)

    def test_awaits_objects(self) -> None:
        async def run() -> Fruits:
            async with openai.AsyncOpenAI(base_url=self.url, api_key=KEY) as client:
                patched = instructor.from_openai(client, mode=instructor.Mode.JSON_SCHEMA)
                return await patched.create(**self.given())

        whole = self.patched().create(**self.given())
        self.assertEqual(self.await_(run()).model_dump(), whole.model_dump())

    def test_streams_objects_in_parts(self) -> None:
        whole = self.patched().create(**self.given())
        parts = list(self.patched().create_partial(**self.given()))
        self.assertGreater(len(parts), 1)
        self.assertEqual(parts[-1].model_dump(), whole.model_dump())

    def test_asks_again_with_the_reason(self) -> None:
        num_checked = 0

        class Checked(Fruits):
            @pydantic.field_validator("number")
            @classmethod
            def check(cls, number: int) -> int:
                nonlocal num_checked
                num_checked += 1
                if num_checked < 2:
                    raise ValueError("that is the wrong number")
                return number

        given = self.given(response_model=Checked, max_retries=2)
        self.assertIsInstance(self.patched(instructor.Mode.TOOLS).create(**given), Checked)
        self.assertEqual(num_checked, 2)

    def test_raises_the_servers_errors(self) -> None:
        with self.assertRaises((openai.BadRequestError, InstructorRetryException)) as caught:
            self.patched().create(**self.given(messages=[{"role": "user", "content": TOO_LONG}]))
        self.assertIn(str(CONTEXT_LENGTH), str(caught.exception))


class LlamaIndexTest(FrameworkCase):
    def like(self, **more: Any) -> OpenAILike:
        return OpenAILike(**({"api_base": self.url, "api_key": KEY, "model": self.model,
                              "context_window": CONTEXT_LENGTH, "is_chat_model": True,
                              "is_function_calling_model": True, "temperature": 0,
                              "max_tokens": 400, "max_retries": 0} | more))  # fmt: skip

    def test_answers_and_streams_the_same(self) -> None:
        messages = [ChatMessage(role="user", content=SUM)]
        whole = self.like().chat(messages)
        self.assertEqual(whole.message.content, self.answer(SUM))
        self.assertGreater(whole.raw.usage.completion_tokens, 0)
        pieces = [chunk.delta or "" for chunk in self.like().stream_chat(messages)]
        self.assertEqual("".join(pieces), whole.message.content)
        self.assertEqual(self.like().complete(SUM).text, whole.message.content)
        awaited = self.await_(self.like().achat(messages))
        self.assertEqual(awaited.message.content, whole.message.content)

    def test_completes_a_text(self) -> None:
        like = self.like(is_chat_model=False, max_tokens=8)
        pieces = [chunk.delta or "" for chunk in like.stream_complete(SUM)]
        self.assertEqual("".join(pieces), like.complete(SUM).text)

    def test_structured_output(self) -> None:
        messages = [ChatMessage(role="user", content=SUM)]
        self.assertIsInstance(self.like().as_structured_llm(Fruits).chat(messages).raw, Fruits)
        like = self.like(should_use_structured_outputs=True).as_structured_llm(Fruits)
        whole = like.chat(messages).raw
        self.assertIsInstance(whole, Fruits)
        *_, last = like.stream_chat(messages)
        self.assertEqual(last.raw.model_dump(), whole.model_dump())

    def test_an_agent_calls_tools_over_several_turns(self) -> None:
        """The agent calls, answers, and with what it remembers does so for a second question."""
        agent = FunctionAgent(tools=[FunctionTool.from_defaults(count_apples)], llm=self.like(),
                              initial_tool_choice="count_apples",
                              allow_parallel_tool_calls=False)  # fmt: skip

        async def run(context: Context, question: str) -> tuple[list[str], str]:
            handler = agent.run(question, ctx=context)
            results = [event async for event in handler.stream_events()
                       if isinstance(event, ToolCallResult)]  # fmt: skip
            for result in results:
                self.assertEqual(str(result.tool_output), count_apples(**result.tool_kwargs))
            return [fact(**result.tool_kwargs) for result in results], str(await handler)

        async def ask_twice() -> None:
            context = Context(agent)
            facts, answer = await run(context, QUESTION)
            self.assertEqual(len(facts), 1)
            self.assertEqual(answer, self.answer(*facts, QUESTION))
            more, _ = await run(context, "And without Ann?")
            self.assertEqual(len(more), 1)

        self.await_(ask_twice())

    def test_raises_the_servers_errors(self) -> None:
        with self.assertRaises(openai.BadRequestError) as caught:
            self.like().complete(TOO_LONG)
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        with self.assertRaises(openai.AuthenticationError):
            self.like(api_key="wrong-key").complete(SUM)


class ExamplesTest(SnippetCase):
    def test_examples(self) -> None:
        self.check("instructor", "litellm", "llama_index")


if __name__ == "__main__":
    main(__doc__)
