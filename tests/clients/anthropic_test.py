"""Runs Anthropic's own client against the real binary with its embedded model.

    anthropic_test.py --quire BINARY [TEST …]
"""

from typing import Any

import anthropic
from anthropic import Anthropic

from client_case import ClientCase, main, tool_template

QUESTION: list[Any] = [{"role": "user", "content": "Tom has 3 apples and buys 5. How many?"}]
WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "Today's weather",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Rome"]}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
KEY = "secret"


class MessagesTest(ClientCase):
    flags = ("--chat-template", tool_template(), "--tool-call-parser", "hermes",
             "--api-key", KEY)  # fmt: skip
    client: Anthropic

    @classmethod
    def new_client(cls, **more: Any) -> Anthropic:
        return Anthropic(**({"base_url": cls.served.url, "api_key": KEY, "max_retries": 0} | more))

    def given(self, **more: Any) -> dict[str, Any]:
        return {"model": self.model, "max_tokens": 60, "messages": QUESTION,
                "extra_body": {"temperature": 0}} | more  # fmt: skip

    def send(self, **more: Any) -> Any:
        return self.client.messages.create(**self.given(**more))

    def test_answers_and_streams_the_same(self) -> None:
        whole = self.send(system="Be exact.")
        self.assertEqual([block.type for block in whole.content], ["text"])
        self.assertGreater(whole.usage.output_tokens, 0)
        with self.client.messages.stream(**self.given(system="Be exact.")) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(text, whole.content[0].text)
        self.assertEqual(final.content[0].text, text)
        self.assertEqual(final.stop_reason, whole.stop_reason)
        self.assertEqual(final.usage.output_tokens, whole.usage.output_tokens)
        types = [event.type for event in self.send(stream=True)]
        self.assertEqual(types[0], "message_start")
        self.assertEqual(types[-3:], ["content_block_stop", "message_delta", "message_stop"])

    def test_says_why_it_stopped(self) -> None:
        self.assertEqual(self.send(max_tokens=2).stop_reason, "max_tokens")
        text = self.send().content[0].text
        stopped = self.send(stop_sequences=[text[3:6]])
        self.assertEqual((stopped.stop_reason, stopped.stop_sequence),
                         ("stop_sequence", text[3:6]))  # fmt: skip
        self.assertEqual(stopped.content[0].text, text[: text.index(text[3:6])])

    def test_continues_a_last_message(self) -> None:
        begun = [*QUESTION, {"role": "assistant", "content": "The number of apples is"}]
        self.assertNotEqual(self.send(messages=begun).content, self.send().content)

    def test_counts_the_tokens_of_a_message(self) -> None:
        counted = self.client.messages.count_tokens(
            model=self.model, messages=QUESTION, system="Be exact.", tools=[WEATHER])  # fmt: skip
        usage = self.send(system="Be exact.", tools=[WEATHER]).usage
        self.assertEqual(counted.input_tokens, usage.input_tokens + usage.cache_read_input_tokens)

    def test_calls_a_tool_over_two_turns(self) -> None:
        forced = {"tools": [WEATHER], "max_tokens": 200,
                  "tool_choice": {"type": "tool", "name": "get_weather"}}  # fmt: skip
        asked = self.send(**forced)
        self.assertEqual(asked.stop_reason, "tool_use")
        [call] = asked.content
        self.assertEqual(call.name, "get_weather")
        self.assertIn(call.input["city"], ["Paris", "Rome"])
        with self.client.messages.stream(**self.given(**forced)) as stream:
            [streamed] = stream.get_final_message().content
        self.assertEqual(streamed.input, call.input)
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
        told = self.send(tools=[WEATHER], messages=[
            *QUESTION, {"role": "assistant", "content": asked.content},
            {"role": "user", "content": [result]}])  # fmt: skip
        self.assertEqual(told.content[0].type, "text")

    def test_raises_the_clients_own_errors(self) -> None:
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.send(messages=[{"role": "user", "content": [{"type": "image", "source": {
                "type": "url", "url": "https://a.example"}}]}])  # fmt: skip
        self.assertEqual(caught.exception.body["error"]["type"], "invalid_request_error")
        self.assertIn("messages[0].content[0].type; got 'image'", str(caught.exception))
        with self.assertRaises(anthropic.NotFoundError):
            self.send(model="other")
        wrong_key = self.new_client(api_key="wrong")
        with wrong_key, self.assertRaises(anthropic.AuthenticationError):
            wrong_key.messages.create(**self.given())


if __name__ == "__main__":
    main(__doc__)
