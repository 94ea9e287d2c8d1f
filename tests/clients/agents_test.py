"""Runs langchain and pydantic-ai, with their agents, against the real binary and embedded model.

    agents_test.py --quire BINARY [TEST …]
"""

import itertools
import os
from typing import Any

import anthropic
import openai
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_anthropic import ChatAnthropic
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic_ai import (
    Agent,
    ModelHTTPError,
    ModelRetry,
    NativeOutput,
    RunContext,
    UsageLimitExceeded,
    UsageLimits,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ToolCallPart, ToolReturnPart
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

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

os.environ["LANGSMITH_TRACING"] = "false"

PARALLEL = {"extra_body": {"structured_outputs": {"grammar": TWO_CALLS}}}


class LangchainTest(FrameworkCase):
    def openai(self, **more: Any) -> ChatOpenAI:
        return ChatOpenAI(**({"base_url": self.url, "api_key": KEY, "model": self.model,
                              "temperature": 0, "max_tokens": 400, "max_retries": 0,
                              "stream_usage": True} | more))  # fmt: skip

    def anthropic(self, **more: Any) -> ChatAnthropic:
        return ChatAnthropic(**({"base_url": self.served.url, "api_key": KEY, "model": self.model,
                                 "temperature": 0, "max_tokens": 400, "max_retries": 0} | more))  # fmt: skip

    def models(self) -> list[Any]:
        """Returns a client of each API: chat completions, responses and messages."""
        return [self.openai(), self.openai(use_responses_api=True), self.anthropic()]

    def test_answers_and_streams_the_same(self) -> None:
        for model in self.models():
            with self.subTest(model=model):
                whole = model.invoke(SUM)
                self.assertEqual(whole.text, self.answer(SUM))
                self.assertEqual(whole.response_metadata["model_name"], self.model)
                usage = whole.usage_metadata
                self.assertEqual(
                    usage["total_tokens"], usage["input_tokens"] + usage["output_tokens"]
                )
                streamed = sum(model.stream(SUM), AIMessageChunk(""))
                self.assertEqual(streamed.text, whole.text)
                self.assertEqual(streamed.usage_metadata["output_tokens"], usage["output_tokens"])

    def test_chains_batches_and_awaits(self) -> None:
        chain = (
            ChatPromptTemplate([("system", "Be exact."), ("human", "{a} + {b}?")]) | self.openai()
        )
        sums = [{"a": 1, "b": 1}, {"a": 3, "b": 5}]
        texts = [message.text for message in chain.batch(sums)]

        async def run() -> tuple[list[str], str]:
            batch = await chain.abatch(sums)
            stream = [chunk.text async for chunk in chain.astream(sums[1])]
            return [message.text for message in batch], "".join(stream)

        self.assertEqual(self.await_(run()), (texts, texts[1]))

    def test_logprobs(self) -> None:
        message = self.openai(logprobs=True, top_logprobs=2).invoke(SUM)
        tokens = message.response_metadata["logprobs"]["content"]
        text = "".join(token["token"] for token in tokens)
        self.assertTrue(text.startswith(message.text), text)  # the token that ends it follows

    def test_structured_output(self) -> None:
        for model, method in itertools.product(self.models(), ("json_schema", "function_calling")):
            with self.subTest(model=model, method=method):
                self.assertIsInstance(
                    model.with_structured_output(Fruits, method=method).invoke(SUM), Fruits
                )
        model = self.openai(model_kwargs={"logit_bias": self.closing_bias()})
        found = model.with_structured_output(None, method="json_mode").invoke("JSON: " + SUM)
        self.assertIsInstance(found, dict)

    def test_an_agent_calls_tools_over_several_turns(self) -> None:
        """The agent calls in two turns, answers, and remembers that for a second question."""

        @wrap_model_call
        def force_two_calls(request: Any, handler: Any) -> Any:
            if sum(isinstance(message, ToolMessage) for message in request.messages) < 2:
                request = request.override(tool_choice="any",
                                           model_settings={"parallel_tool_calls": False})  # fmt: skip
            return handler(request)

        for model in self.models():
            with self.subTest(model=model):
                agent = create_agent(model, [count_apples], middleware=[force_two_calls],
                                     checkpointer=InMemorySaver())  # fmt: skip
                thread: Any = {"configurable": {"thread_id": "1"}}
                messages = agent.invoke({"messages": [("human", QUESTION)]}, thread)["messages"]
                self.assertEqual([message.type for message in messages],
                                 ["human", "ai", "tool", "ai", "tool", "ai"])  # fmt: skip
                facts = self.check_results(messages)
                self.assertEqual(messages[-1].text, self.answer(*facts, QUESTION))
                more = agent.invoke({"messages": [("human", "And 2 more?")]}, thread)["messages"]
                self.assertEqual(len(more), 8)
                usage = more[-1].usage_metadata
                self.assertGreater(
                    usage["input_tokens"], messages[-1].usage_metadata["total_tokens"]
                )

    def test_an_agent_calls_tools_in_parallel(self) -> None:
        @wrap_model_call
        async def generate_calls(request: Any, handler: Any) -> Any:
            if len(request.messages) == 1:
                request = request.override(model_settings=PARALLEL)
            return await handler(request)

        async def run() -> tuple[list[Any], str]:
            agent = create_agent(self.openai(), [count_apples], middleware=[generate_calls])
            messages: list[Any] = []
            text = ""
            async for mode, event in agent.astream({"messages": [("human", QUESTION)]},
                                                   stream_mode=["updates", "messages"]):  # fmt: skip
                if mode == "messages" and isinstance(event[0], AIMessageChunk):
                    text += event[0].text
                elif mode == "updates":
                    messages += [m for update in event.values() for m in update["messages"]]
            return messages, text

        messages, text = self.await_(run())
        self.assertEqual([message.type for message in messages], ["ai", "tool", "tool", "ai"])
        self.assertEqual(len(messages[0].tool_calls), 2)
        facts = self.check_results(messages)
        self.assertEqual(messages[-1].text, self.answer(*facts, QUESTION))
        self.assertEqual(text, messages[-1].text)

    def test_an_agents_answer_is_structured(self) -> None:
        model = self.openai(model_kwargs={"parallel_tool_calls": False})
        agent = create_agent(model, [], response_format=Fruits)
        found = agent.invoke({"messages": [("human", SUM)]})
        self.assertIsInstance(found["structured_response"], Fruits)

    def check_results(self, messages: list[Any]) -> list[str]:
        """Checks that each call has the result of its arguments, and returns the facts."""
        calls = [call for message in messages if isinstance(message, AIMessage)
                 for call in message.tool_calls]  # fmt: skip
        results = {m.tool_call_id: m.content for m in messages if isinstance(m, ToolMessage)}
        self.assertEqual(results, {call["id"]: count_apples(**call["args"]) for call in calls})
        return [fact(**call["args"]) for call in calls]

    def test_raises_the_packages_errors(self) -> None:
        for model in self.models():
            with self.assertRaises(ContextOverflowError):
                model.invoke(TOO_LONG)
        with self.assertRaises(openai.AuthenticationError):
            self.openai(api_key="wrong-key").invoke(SUM)
        with self.assertRaises(anthropic.AuthenticationError):
            self.anthropic(api_key="wrong-key").invoke(SUM)
        with self.assertRaises(openai.NotFoundError):
            self.openai(model="no-such-model").invoke(SUM)


class Calls(AbstractCapability[Any]):
    """Forces one call in each of the first two turns."""

    def get_model_settings(self) -> Any:
        return lambda run: {"tool_choice": "required"} if run.run_step <= 2 else {}


class ParallelCalls(AbstractCapability[Any]):
    def get_model_settings(self) -> Any:
        return lambda run: PARALLEL | {"parallel_tool_calls": True} if run.run_step == 1 else {}


class PydanticAiTest(FrameworkCase):
    def provider(self, key: str = KEY) -> Any:
        return OpenAICompatibleProvider("quire", base_url=self.url, api_key=key)

    def models(self) -> list[Any]:
        settings: Any = {"temperature": 0, "max_tokens": 400, "parallel_tool_calls": False}
        return [kind(self.model, provider=self.provider(), settings=settings)
                for kind in (OpenAIChatModel, OpenAIResponsesModel)]  # fmt: skip

    def test_answers_and_streams_the_same(self) -> None:
        for model in self.models():
            with self.subTest(model=model):
                agent = Agent(model)
                whole = agent.run_sync(SUM)
                self.assertEqual(whole.output, self.answer(SUM))
                self.assertGreater(whole.usage.output_tokens, 0)

                async def stream(agent: Any = agent) -> tuple[str, Any]:
                    async with agent.run_stream(SUM) as run:
                        deltas = [text async for text in run.stream_text(delta=True)]
                        return "".join(deltas), run.usage

                text, usage = self.await_(stream())
                self.assertEqual(text, whole.output)
                self.assertEqual(usage.output_tokens, whole.usage.output_tokens)
                told = agent.run_sync("And 2 more?", message_history=whole.all_messages())
                self.assertGreater(told.usage.input_tokens, whole.usage.total_tokens)

    def test_structured_output(self) -> None:
        for model, output in itertools.product(self.models(), (Fruits, NativeOutput(Fruits))):
            with self.subTest(model=model, output=output):
                self.assertIsInstance(Agent(model, output_type=output).run_sync(SUM).output, Fruits)

    def test_a_rejected_output_is_asked_for_again(self) -> None:
        agent = Agent(self.models()[0], output_type=Fruits, retries=2)

        @agent.output_validator
        def check(run: RunContext[None], output: Fruits) -> Fruits:
            if run.retry < 2:
                raise ModelRetry("Count again.")
            return output

        found = agent.run_sync(SUM)
        self.assertIsInstance(found.output, Fruits)
        self.assertEqual(found.usage.requests, 3)

    def test_an_agent_calls_tools_over_several_turns(self) -> None:
        for model in self.models():
            with self.subTest(model=model):
                agent = Agent(model, tools=[count_apples], capabilities=[Calls()])
                found = agent.run_sync(QUESTION)
                facts = self.check_results(found.all_messages())
                self.assertEqual(len(facts), 2)
                self.assertEqual(found.usage.requests, 3)
                self.assertEqual(found.output, self.answer(*facts, QUESTION))

    def test_an_agent_calls_tools_in_parallel(self) -> None:
        agent = Agent(self.models()[0], tools=[count_apples], capabilities=[ParallelCalls()])
        found = self.await_(agent.run(QUESTION))
        facts = self.check_results(found.all_messages())
        self.assertEqual(len(facts), 2)
        self.assertEqual(found.usage.requests, 2)
        self.assertEqual(found.output, self.answer(*facts, QUESTION))

    def check_results(self, messages: list[ModelMessage]) -> list[str]:
        """Checks that each call has the result of its arguments, and returns the facts."""
        parts = [part for message in messages for part in message.parts]
        calls = {part.tool_call_id: part.args_as_dict()
                 for part in parts if isinstance(part, ToolCallPart)}  # fmt: skip
        results = {part.tool_call_id: part.content
                   for part in parts if isinstance(part, ToolReturnPart)}  # fmt: skip
        self.assertEqual(results, {id: count_apples(**args) for id, args in calls.items()})
        return [fact(**args) for args in calls.values()]

    def test_raises_the_packages_errors(self) -> None:
        for name, key, status in ((self.model, "wrong-key", 401), ("no-such-model", KEY, 404)):
            with self.assertRaises(ModelHTTPError) as caught:
                Agent(OpenAIChatModel(name, provider=self.provider(key))).run_sync(SUM)
            self.assertEqual(caught.exception.status_code, status)
        with self.assertRaises(ModelHTTPError) as caught:
            Agent(self.models()[0]).run_sync(TOO_LONG)
        self.assertIn(str(CONTEXT_LENGTH), str(caught.exception))
        with self.assertRaises(UsageLimitExceeded):
            Agent(self.models()[0]).run_sync(SUM, usage_limits=UsageLimits(output_tokens_limit=1))


class ExamplesTest(SnippetCase):
    def test_examples(self) -> None:
        self.check("openai", "anthropic", "langchain_openai", "langchain_anthropic", "pydantic_ai")


if __name__ == "__main__":
    main(__doc__)
