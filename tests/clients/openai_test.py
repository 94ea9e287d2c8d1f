"""Runs OpenAI's own client against the real binary with its embedded model: every route and mode.

    openai_test.py --quire BINARY [TEST …]
"""

import json
import math
import threading
from pathlib import Path
from typing import Any

import openai
import pydantic
from openai import OpenAI

from client_case import ClientCase, main, tool_template

PROMPT = "Question: Tom has 3 apples and buys 5 more. How many apples does Tom have?\nAnswer:"
QUESTION: list[Any] = [{"role": "user", "content": "Tom has 3 apples and buys 5. How many?"}]
MANY_TOKENS = 4000  # which take seconds
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Today's weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"enum": ["Paris", "Rome"]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
TIME: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_time",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
    },
}


class ClientTest(ClientCase):
    """The client does not retry."""

    client: OpenAI

    @classmethod
    def new_client(cls, **more: Any) -> OpenAI:
        url = cls.served.url + "/v1"
        return OpenAI(**({"base_url": url, "api_key": cls.key, "max_retries": 0} | more))

    def complete(self, **more: Any) -> Any:
        given = {"model": self.model, "prompt": PROMPT, "max_tokens": 12, "temperature": 0}
        return self.client.completions.create(**(given | more))

    def chat(self, **more: Any) -> Any:
        given = {"model": self.model, "messages": QUESTION, "max_tokens": 24, "temperature": 0}
        return self.client.chat.completions.create(**(given | more))

    def check_weather(self, name: str, arguments: str) -> None:
        self.assertEqual(name, "get_weather")
        self.assertIn(json.loads(arguments)["city"], ["Paris", "Rome"])


class CompletionsTest(ClientTest):
    def tokens(self, text: str) -> list[int]:
        answer = self.client.post("/../tokenize", body={"prompt": text}, cast_to=object)
        assert isinstance(answer, dict)
        return answer["tokens"]

    def test_lists_and_finds_models(self) -> None:
        self.assertEqual([model.id for model in self.client.models.list()], [self.model])
        self.assertEqual(self.client.models.retrieve(self.model).id, self.model)

    def test_text_and_its_ids_are_completed_alike(self) -> None:
        of_text = self.complete()
        ids = self.tokens(PROMPT)
        of_ids = self.complete(prompt=ids)
        self.assertEqual(of_text.object, "text_completion")
        self.assertEqual(of_text.model, self.model)
        self.assertEqual(of_text.choices[0].text, of_ids.choices[0].text)
        self.assertEqual(of_text.usage.prompt_tokens, len(ids))
        self.assertEqual(of_text.choices[0].finish_reason, "length")
        self.assertEqual(of_text.usage.completion_tokens, 12)
        self.assertEqual(of_text.usage.total_tokens, len(ids) + 12)

    def test_many_prompts_and_answers_come_in_order(self) -> None:
        prompts = ["Question: 1 + 1?\nAnswer:", PROMPT]
        alone = [self.complete(prompt=prompt).choices[0].text for prompt in prompts]
        both = self.complete(prompt=prompts, n=2)
        self.assertEqual([choice.index for choice in both.choices], [0, 1, 2, 3])
        self.assertEqual([c.text for c in both.choices], [t for t in alone for _ in range(2)])
        of_ids = self.complete(prompt=[self.tokens(prompt) for prompt in prompts])
        self.assertEqual([choice.text for choice in of_ids.choices], alone)

    def test_echo_and_logprobs_say_what_prompt_and_answer_are(self) -> None:
        choice = self.complete(echo=True, logprobs=3).choices[0]
        self.assertTrue(choice.text.startswith(PROMPT))
        logprobs = choice.logprobs
        num = len(self.tokens(PROMPT)) + 12
        for values in (logprobs.tokens, logprobs.token_logprobs, logprobs.top_logprobs):
            self.assertEqual(len(values), num)
        self.assertIsNone(logprobs.token_logprobs[0])
        self.assertTrue(all(value <= 0 for value in logprobs.token_logprobs[1:]))
        self.assertEqual("".join(logprobs.tokens[1:]), choice.text)  # the first id is <|begin|>
        self.assertEqual(
            logprobs.text_offset,
            [len("".join(logprobs.tokens[:i])) for i in range(num)],
        )
        for value, top in zip(logprobs.token_logprobs[-12:], logprobs.top_logprobs[-12:]):
            self.assertEqual(value, max(top.values()))  # greedy
            self.assertGreaterEqual(len(top), 2)

    def test_prompt_logprobs_are_those_of_echo(self) -> None:
        of_echo = self.complete(echo=True, logprobs=0).choices[0].logprobs.token_logprobs
        answer = self.complete(extra_body={"prompt_logprobs": 0})
        positions = answer.choices[0].model_extra["prompt_logprobs"]
        self.assertIsNone(positions[0])
        for ours, position in zip(of_echo[1:], positions[1:], strict=False):
            self.assertAlmostEqual(ours, next(iter(position.values()))["logprob"], places=4)

    def test_echo_alone_scores_the_prompt(self) -> None:
        answer = self.complete(echo=True, max_tokens=0, logprobs=0)
        self.assertEqual(answer.choices[0].text, PROMPT)
        self.assertEqual(answer.usage.completion_tokens, 0)
        num_scored = len(answer.choices[0].logprobs.tokens)
        self.assertEqual(num_scored, len(self.tokens(PROMPT)))

    def test_a_stream_is_the_whole_answer_in_pieces(self) -> None:
        whole = self.complete(n=2, prompt=[PROMPT, "Question:"], logprobs=1, max_tokens=20)
        texts = ["", "", "", ""]
        tokens: list[list[str]] = [[], [], [], []]
        reasons: list[str | None] = [None] * 4
        usage = None
        stream = self.complete(n=2, prompt=[PROMPT, "Question:"], logprobs=1, max_tokens=20,
                               stream=True, stream_options={"include_usage": True})  # fmt: skip
        for chunk in stream:
            self.assertIsNone(usage)  # the usage is in the last chunk
            usage = chunk.usage
            for choice in chunk.choices:
                texts[choice.index] += choice.text
                tokens[choice.index] += choice.logprobs.tokens
                reasons[choice.index] = choice.finish_reason
        self.assertEqual(texts, [choice.text for choice in whole.choices])
        self.assertEqual(tokens, [choice.logprobs.tokens for choice in whole.choices])
        self.assertEqual(reasons, [choice.finish_reason for choice in whole.choices])
        assert usage is not None
        self.assertEqual(usage.completion_tokens, whole.usage.completion_tokens)
        self.assertEqual(usage.prompt_tokens, whole.usage.prompt_tokens)

    def test_usage_can_come_with_each_chunk(self) -> None:
        more = {"include_usage": True, "continuous_usage_stats": True}
        chunks = list(self.complete(stream=True, stream_options=more))
        counts = [chunk.usage.completion_tokens for chunk in chunks]
        self.assertEqual(counts, sorted(counts))
        self.assertEqual(counts[-1], 12)

    def test_stops_before_a_text_and_after_it(self) -> None:
        text = self.complete(max_tokens=30).choices[0].text
        stop = text[8:11]
        choice = self.complete(max_tokens=30, stop=stop).choices[0]
        self.assertEqual(choice.text, text[: text.index(stop)])
        self.assertEqual(choice.finish_reason, "stop")
        self.assertEqual(choice.model_extra["stop_reason"], stop)
        kept = self.complete(max_tokens=30, stop=[stop], stream=True,
                             extra_body={"include_stop_str_in_output": True})  # fmt: skip
        pieces = "".join(c.text for chunk in kept for c in chunk.choices)
        self.assertEqual(pieces, text[: text.index(stop) + len(stop)])

    def test_a_seed_decides(self) -> None:
        def sample(seed: int) -> str:  # of a text for which the model has many continuations
            return self.complete(prompt="A", seed=seed, temperature=2.0, max_tokens=24).choices[0].text

        self.assertEqual(sample(7), sample(7))
        self.assertNotEqual(sample(7), sample(8))

    def test_what_an_answer_may_have(self) -> None:
        [word] = self.tokens("4")[-1:]
        forced = self.complete(logit_bias={str(word): 100}, max_tokens=3).choices[0].text
        self.assertEqual(forced, "444")
        only = self.complete(extra_body={"allowed_token_ids": [word]}, max_tokens=3)
        self.assertEqual(only.choices[0].text, "444")


class ChatTest(ClientTest):
    def test_answers_and_streams_the_same(self) -> None:
        whole = self.chat(max_tokens=200)
        self.assertEqual(whole.choices[0].message.role, "assistant")
        self.assertEqual(whole.choices[0].finish_reason, "stop")
        self.assertEqual(whole.object, "chat.completion")
        usage = {"include_usage": True}
        chunks = list(self.chat(max_tokens=200, stream=True, stream_options=usage))
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(chunks[-2].choices[0].finish_reason, "stop")
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)
        self.assertEqual(len({chunk.id for chunk in chunks}), 1)

    def test_top_logprobs(self) -> None:
        answer = self.chat(logprobs=True, top_logprobs=5)
        whole = answer.choices[0]
        self.assertEqual(len(whole.logprobs.content), answer.usage.completion_tokens)
        for token in whole.logprobs.content:
            self.assertEqual(len(token.top_logprobs), 5)
            self.assertEqual(token.top_logprobs[0].logprob, token.logprob)  # greedy
            self.assertEqual(bytes(token.bytes).decode(), token.token)
            total = sum(math.exp(likely.logprob) for likely in token.top_logprobs)
            self.assertLess(total, 1.001)
        text = b"".join(bytes(token.bytes) for token in whole.logprobs.content).decode()
        self.assertEqual(text, whole.message.content + "<|end|>")
        streamed = [token.token for chunk in self.chat(logprobs=True, stream=True)
                    for choice in chunk.choices if choice.logprobs
                    for token in choice.logprobs.content]  # fmt: skip
        self.assertEqual(streamed, [token.token for token in whole.logprobs.content])

    def test_n_and_max_completion_tokens(self) -> None:
        vague = [{"role": "user", "content": "A"}]  # the model has many answers
        answer = self.chat(messages=vague, n=3, temperature=2, seed=3, max_completion_tokens=5, max_tokens=9)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2])
        self.assertEqual(answer.usage.completion_tokens, 15)
        self.assertGreater(len({choice.message.content for choice in answer.choices}), 1)

    def test_parts_of_text_are_joined(self) -> None:
        parts = [{"type": "text", "text": QUESTION[0]["content"]}]
        told = self.chat(messages=[{"role": "user", "content": parts}])
        self.assertEqual(told.choices[0].message.content, self.chat().choices[0].message.content)

    def test_unknown_fields_are_ignored(self) -> None:
        told = self.chat(extra_body={"no_such_field": {"a": [1]}}, user="someone", store=False)
        self.assertEqual(told.choices[0].message.content, self.chat().choices[0].message.content)

    def test_json_object(self) -> None:
        text = self.chat(response_format={"type": "json_object"}, max_tokens=400, seed=1,
                         logit_bias=self.closing_bias()).choices[0]  # fmt: skip
        self.assertEqual(text.finish_reason, "stop")
        self.assertIsInstance(json.loads(text.message.content), dict)

    def test_json_schema(self) -> None:
        wanted = {"type": "json_schema",
                  "json_schema": {"name": "person", "schema": PERSON, "strict": True}}  # fmt: skip
        whole = self.chat(response_format=wanted, max_tokens=400, logit_bias=self.closing_bias())
        self.check_person(whole.choices[0].message.content)
        stream = self.chat(response_format=wanted, max_tokens=400, stream=True,
                           logit_bias=self.closing_bias())  # fmt: skip
        text = "".join(c.delta.content or "" for chunk in stream for c in chunk.choices)
        self.assertEqual(text, whole.choices[0].message.content)

    def test_structured_outputs(self) -> None:
        choice = self.chat(extra_body={"structured_outputs": {"choice": ["yes", "no"]}})
        self.assertIn(choice.choices[0].message.content, ["yes", "no"])
        regex = self.chat(extra_body={"structured_outputs": {"regex": "[0-9]{3}-[a-c]{2}"}})
        self.assertRegex(regex.choices[0].message.content, r"\A[0-9]{3}-[a-c]{2}\Z")
        grammar = self.chat(extra_body={"structured_outputs": {"grammar": 'root ::= "ab" "c"*'}},
                            max_tokens=6)  # fmt: skip
        self.assertRegex(grammar.choices[0].message.content, r"\Aabc*\Z")

    def test_a_wrong_grammar_is_refused(self) -> None:
        for wrong in ({"grammar": "root ::= ("}, {"regex": "["}):
            with self.assertRaises(openai.BadRequestError):
                self.chat(extra_body={"structured_outputs": wrong})

    def test_a_required_tool_is_called(self) -> None:
        for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
            # Only one call is allowed, because this model would add calls until it has no tokens
            # left.
            given: dict[str, Any] = {
                "tools": [WEATHER], "tool_choice": choice, "parallel_tool_calls": False,
                "max_tokens": 200, "logit_bias": self.closing_bias(),
            }  # fmt: skip
            whole = self.chat(**given).choices[0]
            self.assertEqual(whole.finish_reason, "tool_calls" if choice == "required" else "stop")
            [call] = whole.message.tool_calls
            self.check_weather(call.function.name, call.function.arguments)
            stream = self.chat(**given, stream=True)
            deltas = [c.delta for chunk in stream for c in chunk.choices]
            calls = [call for delta in deltas for call in delta.tool_calls or []]
            self.assertEqual({call.index for call in calls}, {0})
            name = "".join(call.function.name or "" for call in calls)
            self.check_weather(name, "".join(call.function.arguments or "" for call in calls))

    def test_tools_that_may_not_be_called(self) -> None:
        message = self.chat(tools=[WEATHER, TIME], tool_choice="none").choices[0].message
        self.assertFalse(message.tool_calls)

    def check_person(self, text: str) -> None:
        person = json.loads(text)
        self.assertEqual(set(person), {"name", "age"})
        self.assertIsInstance(person["age"], int)
        self.assertLessEqual(len(person["name"]), 8)


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=8)
    age: int


class ResponsesTest(ClientTest):
    flags = ("--max-stored-responses", "8", "--chat-template",
             tool_template(),
             "--tool-call-parser", "hermes")  # fmt: skip

    def given(self, **more: Any) -> dict[str, Any]:
        return {"model": self.model, "input": QUESTION, "temperature": 0,
                "max_output_tokens": 60} | more  # fmt: skip

    def respond(self, **more: Any) -> Any:
        return self.client.responses.create(**self.given(**more))

    def biased(self) -> dict[str, Any]:
        return {"extra_body": {"logit_bias": self.closing_bias()}, "max_output_tokens": 400}

    def test_answers_and_streams_the_same(self) -> None:
        whole = self.respond(max_output_tokens=200, instructions="Be exact.", metadata={"a": "b"})
        self.assertEqual(whole.object, "response")
        self.assertEqual(whole.status, "completed")
        self.assertEqual(whole.metadata, {"a": "b"})
        self.assertEqual(whole.usage.total_tokens,
                         whole.usage.input_tokens + whole.usage.output_tokens)  # fmt: skip
        events = list(self.respond(max_output_tokens=200, instructions="Be exact.", stream=True))
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
        types = [event.type for event in events]
        self.assertEqual(types[:4], ["response.created", "response.in_progress",
                                     "response.output_item.added",
                                     "response.content_part.added"])  # fmt: skip
        self.assertEqual(types[-4:], ["response.output_text.done", "response.content_part.done",
                                      "response.output_item.done", "response.completed"])  # fmt: skip
        text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
        self.assertEqual(text, whole.output_text)
        self.assertEqual(events[-1].response.output_text, whole.output_text)
        self.assertEqual(events[-1].response.usage.output_tokens, whole.usage.output_tokens)

    def test_the_clients_own_stream_follows_the_events(self) -> None:
        with self.client.responses.stream(**self.given(max_output_tokens=200)) as stream:
            snapshots = [e.snapshot for e in stream if e.type == "response.output_text.delta"]
            final = stream.get_final_response()
        self.assertEqual(snapshots[-1], final.output_text)

    def test_a_cut_response_says_so(self) -> None:
        cut = self.respond(max_output_tokens=2)
        self.assertEqual(cut.status, "incomplete")
        self.assertEqual(cut.incomplete_details.reason, "max_output_tokens")

    def test_logprobs(self) -> None:
        given = {"include": ["message.output_text.logprobs"], "top_logprobs": 2}
        part = self.respond(**given).output[0].content[0]
        self.assertEqual("".join(token.token for token in part.logprobs), part.text)
        self.assertEqual({len(token.top_logprobs) for token in part.logprobs}, {2})
        events = self.respond(**given, stream=True)
        tokens = [t.token for e in events if e.type == "response.output_text.delta"
                  for t in e.logprobs]  # fmt: skip
        self.assertEqual(tokens, [token.token for token in part.logprobs])

    def test_parses_a_schema(self) -> None:
        parsed = self.client.responses.parse(text_format=Person, **self.given(**self.biased()))
        self.assertIsInstance(parsed.output_parsed, Person)
        with self.client.responses.stream(
            text_format=Person, **self.given(**self.biased())
        ) as stream:
            self.assertEqual(stream.get_final_response().output_parsed, parsed.output_parsed)

    def test_json_object(self) -> None:
        given = self.biased() | {"text": {"format": {"type": "json_object"}}}
        self.assertIsInstance(json.loads(self.respond(**given).output_text), dict)

    def test_calls_a_tool_over_two_turns(self) -> None:
        function = {"type": "function", **WEATHER["function"]}
        forced = self.biased() | {"tools": [function], "tool_choice": "required",
                                  "parallel_tool_calls": False}  # fmt: skip
        asked = self.respond(**forced)
        [call] = asked.output
        self.check_weather(call.name, call.arguments)
        with self.client.responses.stream(**self.given(**forced)) as stream:
            [streamed] = stream.get_final_response().output
        self.assertEqual(streamed.arguments, call.arguments)
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
        by_items = self.respond(input=[*QUESTION, call, result], tools=[function])
        self.assertEqual(by_items.output[0].type, "message")
        by_id = self.respond(input=[result], previous_response_id=asked.id, tools=[function])
        self.assertEqual(by_id.output_text, by_items.output_text)
        self.assertEqual(by_id.usage.input_tokens, by_items.usage.input_tokens)

    def test_stores_responses(self) -> None:
        first = self.respond()
        self.assertTrue(first.store)
        self.assertEqual(self.client.responses.retrieve(first.id).output_text, first.output_text)
        second = self.respond(input="And 7 more?", previous_response_id=first.id)
        items = list(self.client.responses.input_items.list(second.id, order="asc", limit=2))
        self.assertEqual([item.type for item in items], ["message"] * 3)
        self.assertEqual(items[1].content[0].text, first.output_text)
        self.client.responses.delete(first.id)
        for gone in (self.client.responses.retrieve, self.client.responses.delete):
            with self.assertRaises(openai.NotFoundError):
                gone(first.id)
        unkept = self.respond(store=False)
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve(unkept.id)

    def test_refuses_by_name(self) -> None:
        for field, value in (("tools", [{"type": "web_serch"}]), ("background", True),
                             ("truncation", "auto"), ("previous_response_id", "resp_no")):  # fmt: skip
            with self.assertRaises(openai.BadRequestError) as caught:
                self.respond(**{field: value})
            self.assertTrue(caught.exception.param.startswith(field), caught.exception)


def pooling_model(name: str) -> Path:
    """A tiny random model of tools/golden/pooling.py."""
    return Path(__file__).parents[1] / "golden" / "pooling" / name


class EmbeddingsTest(ClientTest):
    flags = ("--model", str(pooling_model("embedding")), "--kv-cache-dtype", "f32")

    def cases(self) -> list[dict[str, Any]]:
        return json.loads((pooling_model("embedding") / "cases.json").read_text())

    def embed(self, given: Any, **more: Any) -> list[list[float]]:
        answer = self.client.embeddings.create(model=self.model, input=given, **more)
        self.assertEqual([data.index for data in answer.data], list(range(len(answer.data))))
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens)
        return [data.embedding for data in answer.data]

    def check_close(self, got: list[float], expected: list[float]) -> None:
        self.assertEqual(len(got), len(expected))
        for one, other in zip(got, expected, strict=True):
            self.assertAlmostEqual(one, other, places=5)

    def test_texts_ids_and_forms_of_numbers_agree_with_transformers(self) -> None:
        cases = self.cases()
        texts = self.embed([case["text"] for case in cases])  # as base64, the client's default
        numbers = self.embed([case["text"] for case in cases], encoding_format="float")
        ids = self.embed([case["ids"] for case in cases])
        for i, case in enumerate(cases):
            for got in (texts[i], numbers[i], ids[i]):
                self.check_close(got, case["embedding"])
        self.check_close(self.embed(cases[0]["text"])[0], cases[0]["embedding"])

    def test_fewer_dimensions_have_length_1(self) -> None:
        [short] = self.embed("a", dimensions=4)
        self.assertAlmostEqual(sum(value * value for value in short), 1, places=5)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.embed("a", dimensions=33)
        self.assertEqual(caught.exception.param, "dimensions")

    def test_the_model_does_not_generate(self) -> None:
        with self.assertRaises(openai.NotFoundError) as caught:
            self.chat()
        self.assertIn("use POST /v1/embeddings", str(caught.exception))


class RerankTest(ClientTest):
    """Scores have no function in OpenAI's client, which sends other requests, too."""

    flags = ("--model", str(pooling_model("reranker")), "--kv-cache-dtype", "f32")

    def test_documents_are_ranked_as_transformers_scores_them(self) -> None:
        cases = json.loads((pooling_model("reranker") / "cases.json").read_text())
        body = {"query": cases[0]["query"], "documents": [case["document"] for case in cases]}
        answer: Any = self.client.post("/rerank", body=body, cast_to=object)
        scores = {result["index"]: result["relevance_score"] for result in answer["results"]}
        self.assertEqual(list(scores.values()), sorted(scores.values(), reverse=True))
        for i, case in enumerate(cases):
            self.assertAlmostEqual(scores[i], case["score"], places=5)

    def test_the_model_has_no_embeddings(self) -> None:
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.embeddings.create(model=self.model, input="a")
        self.assertIn("has no embeddings", str(caught.exception))


class ErrorsTest(ClientTest):
    flags = ("--max-request-bytes", "64K")

    def check(self, kind: type[openai.APIStatusError], status: int, **more: Any) -> Any:
        with self.assertRaises(kind) as caught:
            self.complete(**more)
        self.assertEqual(caught.exception.status_code, status)
        self.assertIsInstance(caught.exception.body, dict)  # the client found OpenAI's error object
        return caught.exception

    def test_what_is_wrong_with_a_request(self) -> None:
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"temperature": -1}, "temperature"),
            ({"n": 0}, "n"),
            ({"n": 129}, "n"),
            ({"logprobs": 21}, "logprobs"),
            ({"stop": ["x"] * 17}, "stop"),
            ({"max_tokens": "many"}, "max_tokens"),
            ({"suffix": "x"}, "suffix"),
            ({"logit_bias": {"1": 101}}, "logit_bias"),
            ({"stream": "yes"}, "stream"),
        ]
        for given, param in wrong:
            with self.subTest(given=given):
                error = self.check(openai.BadRequestError, 400, **given)
                self.assertTrue(error.request_id)
                self.assertIn(param, error.param or "")
                self.assertEqual(error.type, "invalid_request_error")

    def test_a_prompt_that_cannot_fit_is_told_the_numbers(self) -> None:
        error = self.check(openai.BadRequestError, 400, prompt=[5] * 5000)
        self.assertIn("4096", error.message)
        self.assertIn("5000", error.message)

    def test_an_unknown_model(self) -> None:
        error = self.check(openai.NotFoundError, 404, model="no-such-model")
        self.assertEqual(error.code, "model_not_found")

    def test_an_unknown_route(self) -> None:
        with self.assertRaises(openai.NotFoundError):
            self.client.embeddings.create(model=self.model, input="x")
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("no-such-model")

    def test_a_body_over_the_limit(self) -> None:
        self.check(openai.APIStatusError, 413, prompt="x" * 70_000)
        self.assertEqual(self.complete().choices[0].finish_reason, "length")  # it still serves

    def test_a_wrong_type_in_a_stream_is_an_error_not_a_stream(self) -> None:
        self.check(openai.BadRequestError, 400, stream=True, top_p=2)


class KeysTest(ClientTest):
    key = "right-key"
    flags = ("--api-key", "right-key", "--api-key", "other-key")

    def test_keys(self) -> None:
        self.assertEqual(len(self.client.models.list().data), 1)
        with self.new_client(api_key="other-key") as other:
            self.assertEqual(len(other.models.list().data), 1)
        for wrong in ("wrong-key", "right-ke", "right-key2"):
            with self.new_client(api_key=wrong) as client:
                with self.assertRaises(openai.AuthenticationError):
                    client.models.list()
                with self.assertRaises(openai.AuthenticationError):
                    client.completions.create(model=self.model, prompt="x", stream=True)


class PressureTest(ClientTest):
    """With one slot and no queue, the second request gets 429."""

    flags = ("--max-num-seqs", "1", "--max-num-queued-reqs", "0")

    def long_stream(self) -> Any:
        extra = {"ignore_eos": True}
        stream = self.complete(max_tokens=MANY_TOKENS, stream=True, extra_body=extra)
        next(iter(stream))
        return stream

    def test_429_is_raised_and_retried(self) -> None:
        stream = self.long_stream()
        with self.assertRaises(openai.RateLimitError) as caught:
            self.complete()
        self.assertEqual(caught.exception.response.headers["retry-after"], "1")
        self.assertEqual(caught.exception.type, "rate_limit_error")
        timer = threading.Timer(0.5, stream.close)
        timer.start()
        with self.new_client(max_retries=5) as patient:
            answer = patient.completions.create(model=self.model, prompt=PROMPT, max_tokens=2)
        timer.join()
        self.assertEqual(answer.usage.completion_tokens, 2)
        refused = self.served.metrics()["quire_http_responses_total"]
        self.assertGreaterEqual(refused, 2)

    def num_generated(self) -> float:
        return self.served.metrics()["vllm:generation_tokens_total"]

    def test_closing_a_stream_frees_its_blocks(self) -> None:
        """The sequence ends before its last token, and its slot goes to the next request."""
        for _ in range(3):
            before = self.num_generated()
            stream = self.long_stream()
            next(iter(stream))  # The metrics of a step follow its token.
            self.assertGreater(self.served.num_used_blocks(), 0)
            stream.close()
            self.served.seconds_until_free()
            self.assertLess(self.num_generated() - before, MANY_TOKENS)

    def test_a_timeout_cancels(self) -> None:
        before = self.num_generated()
        with self.new_client(timeout=0.3) as hasty, self.assertRaises(openai.APITimeoutError):
            hasty.completions.create(model=self.model, prompt=PROMPT, max_tokens=MANY_TOKENS,
                                     extra_body={"ignore_eos": True})  # fmt: skip
        self.served.seconds_until_free()
        self.assertLess(self.num_generated() - before, MANY_TOKENS)


if __name__ == "__main__":
    main(__doc__)
