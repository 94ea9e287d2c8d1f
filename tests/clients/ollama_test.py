"""Runs Ollama's own client against the real binary with its embedded model.

    ollama_test.py --quire BINARY [TEST …]
"""

import json
import urllib.request
from typing import Any

import ollama

from client_case import ClientCase, main, tool_template

PROMPT = "Tom has 3 apples and buys 5. How many?"
QUESTION: list[Any] = [{"role": "user", "content": PROMPT}]
GREEDY = {"temperature": 0, "num_predict": 60}
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Today's weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "Paris or Rome"}},
            "required": ["city"],
        },
    },
}
COUNT: dict[str, Any] = {
    "type": "object",
    "properties": {"apples": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["apples"],
    "additionalProperties": False,
}
KEY = "secret"


class OllamaTest(ClientCase):
    flags = ("--chat-template", tool_template(), "--tool-call-parser", "hermes",
             "--api-key", KEY)  # fmt: skip
    client: ollama.Client

    @classmethod
    def new_client(cls, key: str = KEY) -> ollama.Client:
        return ollama.Client(host=cls.served.url, headers={"Authorization": f"Bearer {key}"})

    def chat(self, **more: Any) -> Any:
        given = {"model": self.model, "messages": QUESTION, "options": GREEDY} | more
        return self.client.chat(**given)

    def generate(self, **more: Any) -> Any:
        given = {"model": self.model, "prompt": PROMPT, "options": GREEDY} | more
        return self.client.generate(**given)

    def test_answers_and_streams_the_same(self) -> None:
        whole = self.chat()
        self.assertEqual(whole.message.role, "assistant")
        self.assertTrue(whole.message.content)
        self.assertTrue(whole.done)
        pieces = list(self.chat(stream=True))
        self.assertEqual("".join(p.message.content for p in pieces), whole.message.content)
        self.assertEqual([p.done for p in pieces], [False] * (len(pieces) - 1) + [True])
        last = pieces[-1]
        self.assertEqual(last.done_reason, whole.done_reason)
        self.assertEqual(last.eval_count, whole.eval_count)
        self.assertGreater(last.prompt_eval_count, 0)
        self.assertGreaterEqual(last.total_duration, last.eval_duration)
        self.assertGreater(last.eval_duration, 0)

    def test_generates_as_a_chat_of_one_message(self) -> None:
        text = self.chat().message.content
        self.assertEqual(self.generate().response, text)
        self.assertEqual("".join(p.response for p in self.generate(stream=True)), text)
        system = [{"role": "system", "content": "Be exact."}, *QUESTION]
        self.assertEqual(
            self.generate(system="Be exact.").response, self.chat(messages=system).message.content
        )

    def test_takes_a_raw_prompt(self) -> None:
        raw = self.generate(raw=True, prompt="Question: What is 12 * 8?\nAnswer:")
        self.assertTrue(raw.response)
        self.assertLess(raw.prompt_eval_count, self.generate(prompt=PROMPT).prompt_eval_count + 40)

    def test_follows_its_options(self) -> None:
        text = self.chat().message.content
        short = self.chat(options=GREEDY | {"num_predict": 2})
        self.assertEqual((short.eval_count, short.done_reason), (2, "length"))
        stopped = self.chat(options=GREEDY | {"stop": [text[3:6]]})
        self.assertEqual(stopped.message.content, text[: text.index(text[3:6])])
        self.assertEqual(stopped.done_reason, "stop")
        options = ollama.Options(temperature=1.5, seed=7, num_predict=20, num_ctx=128, num_thread=1)
        first, second = (self.chat(options=options).message.content for _ in range(2))
        self.assertEqual(first, second)

    def test_restricts_the_text(self) -> None:
        self.assertEqual(self.generate(format="json").response.lstrip()[0], "{")
        count = json.loads(self.chat(format=COUNT).message.content)
        self.assertLessEqual(count["apples"], 99)

    def test_sends_logprobs(self) -> None:
        whole = self.chat(logprobs=True, top_logprobs=2)
        self.assertEqual(len(whole.logprobs), whole.eval_count)
        self.assertEqual(len(whole.logprobs[0].top_logprobs), 2)
        pieces = self.chat(logprobs=True, top_logprobs=2, stream=True)
        tokens = [token.token for piece in pieces for token in piece.logprobs or []]
        self.assertEqual(tokens, [token.token for token in whole.logprobs])

    def test_takes_tools_and_their_results(self) -> None:
        asked = self.chat(tools=[WEATHER])
        self.assertTrue(asked.message.content or asked.message.tool_calls)
        call = {"function": {"name": "get_weather", "arguments": {"city": "Rome"}}}
        told = self.chat(tools=[WEATHER], messages=[
            *QUESTION, {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_name": "get_weather", "content": "sunny"}])  # fmt: skip
        self.assertGreater(told.prompt_eval_count, asked.prompt_eval_count)

    def test_describes_the_model(self) -> None:
        [listed] = self.client.list().models
        self.assertEqual(listed.model, f"{self.model}:latest")
        self.assertEqual(self.chat(model=listed.model).message.content, self.chat().message.content)
        [running] = self.client.ps().models
        self.assertEqual((running.name, running.digest), (listed.model, listed.digest))
        self.assertGreater(running.size, 0)
        self.assertIn(running.size_vram, (0, running.size))
        shown = self.client.show(listed.model)
        self.assertEqual(shown.details, listed.details)
        self.assertEqual(shown.capabilities, ["completion", "tools"])
        family = shown.modelinfo["general.architecture"]
        self.assertEqual(shown.modelinfo[f"{family}.context_length"], running.context_length)
        with self.assertRaises(ollama.ResponseError) as caught:
            self.client.show("other")
        self.assertEqual(caught.exception.status_code, 404)

    def test_finds_the_model_loaded(self) -> None:
        self.assertEqual(self.generate(prompt="", keep_alive="5m").done_reason, "load")
        self.assertEqual(self.chat(messages=[], keep_alive=-1).done_reason, "load")
        self.assertEqual(self.chat(messages=[], keep_alive=0).done_reason, "unload")
        self.assertEqual(self.client.pull(self.model).status, "success")
        self.assertEqual([p.status for p in self.client.pull(self.model, stream=True)][-1],
                         "success")  # fmt: skip

    def test_raises_the_clients_own_errors(self) -> None:
        cases: list[tuple[Any, str]] = [
            (lambda: self.chat(options={"mirostat": 2}), "options.mirostat; got 2, expected 0"),
            (lambda: self.generate(images=[b"image"]), "images; got a list of 1, expected none"),
            (lambda: self.generate(context=[1, 2]), "POST /api/chat takes the messages"),
            (lambda: self.client.embed(self.model, "a"), "serve an embedding model"),
            (lambda: self.client.pull("other"), "run 'quire pull NAME'"),
            (lambda: self.client.delete("other"), "run 'quire rm NAME'"),
        ]
        for send, message in cases:
            with self.assertRaises(ollama.ResponseError) as caught:
                send()
            self.assertIn(message, caught.exception.error)
        wrong_key = self.new_client("wrong")
        with wrong_key, self.assertRaises(ollama.ResponseError) as caught:
            wrong_key.list()
        self.assertEqual(caught.exception.status_code, 401)

    def test_serves_curl_as_ollamas_documentation_writes_it(self) -> None:
        body = json.dumps({"model": self.model, "prompt": PROMPT, "options": GREEDY}).encode()
        form = "application/x-www-form-urlencoded"  # urllib's default too, as curl's
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": form}
        request = urllib.request.Request(
            f"{self.served.url}/api/generate", data=body, headers=headers
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            self.assertEqual(answer.headers["Content-Type"], "application/x-ndjson")
            lines = [json.loads(line) for line in answer]
        self.assertEqual("".join(line["response"] for line in lines), self.generate().response)

    def test_is_there_for_the_heartbeat(self) -> None:
        headers = {"Authorization": f"Bearer {KEY}"}
        request = urllib.request.Request(self.served.url, method="HEAD", headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            self.assertEqual(answer.status, 200)


if __name__ == "__main__":
    main(__doc__)
