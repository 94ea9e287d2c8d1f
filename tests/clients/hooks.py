"""Hooks for schemathesis: valid requests also keep the rules that /openapi.json states only in words.

Ids are in the vocabulary, roles are those of the template, the names of tools differ, a request has
one of the fields that exclude each other, grammars are valid, prompts are not empty and fit the context, and outputs are
short. Requests that are meant to be invalid are not changed.
"""

import json
import re
from typing import Any

import schemathesis

VOCAB_SIZE = 4096  # the embedded model's
ROLES = ("system", "user", "assistant")
# Fields that restrict the output; a request has at most one.
RESTRICTIONS: dict[str, Any] = {
    "response_format": {"type": "json_object"},
    "structured_outputs": {"regex": "[0-9]{3}"},
    "guided_json": {"type": "object"},
    "guided_regex": "[0-9]{3}",
    "guided_choice": ["yes", "no"],
    "guided_grammar": 'root ::= "a" | "b"',
    "guided_json_object": True,
    "json_schema": {"type": "object"},
    "grammar": "root ::= [ab] .?",
    "regex": "[0-9]{3}",
    "ebnf": 'root ::= "a" | "b"',
}
MAX_MESSAGES = 64
MAX_TEXT_BYTES = 512  # of all messages: a token has at least one byte
ID_LISTS = ("tokens", "stop_token_ids", "allowed_token_ids")


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if "x-data-parallel-rank" in (case.headers or {}):
        case.headers["x-data-parallel-rank"] = "0"  # there is one replica
    if not isinstance(case.body, dict):
        return
    if case.path == "/v1/responses":
        case.body = settle_responses(case.body)
    elif case.path.startswith("/v1/messages"):
        case.body = settle_messages(case.body, is_answered=case.path == "/v1/messages")
    elif case.path in ("/api/chat", "/api/generate"):
        case.body = settle_ollama(case.body)
    elif case.path.endswith(("/score", "/rerank")):
        settle_scores(case.body)
    else:
        case.body = settle(case.body, is_answered=case.path.startswith("/v1/"))


@schemathesis.hook
def filter_failure(context: Any, failure: Any, case: Any, response: Any) -> bool:
    """Drops "schema-violating request accepted" for unknown headers, which HTTP allows, and for
    empty lists, which mean that a field is absent."""
    if type(failure).__name__ != "AcceptedNegativeData":
        return True
    is_unknown = "x-schemathesis-unknown-property" in (case.headers or {})
    violated = re.search(r"violates `\w+` at /properties/(\w+)", str(failure.message))
    is_absent = violated and isinstance(case.body, dict) and case.body.get(violated[1]) == []
    return not (is_unknown or is_absent)


@schemathesis.deserializer("application/x-ndjson")
def last_of_stream(_context: Any, response: Any) -> Any:
    """Parses each line of a stream. The last one, with the counts, is compared with the schema."""
    return [json.loads(line) for line in response.content.splitlines()][-1]


def settle_responses(body: dict[str, Any]) -> dict[str, Any]:
    # The template reads no efforts, and no response is stored.
    unserved = ("reasoning", "store", "previous_response_id")
    body = {k: v for k, v in body.items() if v is not None and k not in unserved}
    if isinstance(body["input"], list):
        body["input"] = settle_items(body["input"])
    elif text_bytes(body["input"]) > MAX_TEXT_BYTES:
        body["input"] = "q"
    if text_bytes(body.get("instructions", "")) > MAX_TEXT_BYTES:
        del body["instructions"]
    if "top_logprobs" in body:
        body["include"] = ["message.output_text.logprobs"]
    body["max_output_tokens"] = min(body.get("max_output_tokens", 4), 4)
    settle_format(body, "text", settle_tool_choice(body, ("required", "function")))
    return body


def settle_items(items: list[Any]) -> list[Any]:
    """Shortens the items, and removes calls and results of tools, which the template lacks."""
    settled = []
    room = MAX_TEXT_BYTES
    for item in items[:MAX_MESSAGES]:
        if item.get("type") in ("function_call", "function_call_output", "custom_tool_call"):
            continue
        item.pop("encrypted_content", None)
        size = text_bytes(item.get("content") or "")
        if size > room:
            item["content"], size = [], 0
        room -= size
        settled.append(item)
    return settled or [{"role": "user", "content": "q"}]


def settle_messages(body: dict[str, Any], is_answered: bool) -> dict[str, Any]:
    body = {name: value for name, value in body.items() if value is not None}
    room = MAX_TEXT_BYTES
    del body["messages"][MAX_MESSAGES:]
    for message in body["messages"]:
        if isinstance(message["content"], list):
            kept = ("text", "thinking")  # the template has no calls
            message["content"] = [b for b in message["content"] if b["type"] in kept]
        size = text_bytes(message["content"])
        if size > room:
            message["content"], size = "", 0
        room -= size
    # A last message of the assistant is continued, which needs text without a call.
    body["messages"].append({"role": "user", "content": "q"})
    if text_bytes(body.get("system", "")) > MAX_TEXT_BYTES:
        del body["system"]
    if body.get("thinking", {}).get("type") == "enabled":
        del body["thinking"]
    body.get("output_config", {}).pop("effort", None)
    if is_answered:
        body["max_tokens"] = min(body["max_tokens"], 4)
        body["stop_sequences"] = body.get("stop_sequences", [])[:16]
    settle_format(body, "output_config", settle_tool_choice(body, ("any", "tool")))
    return body


def settle_ollama(body: dict[str, Any]) -> dict[str, Any]:
    # The template reads no tools, and the embedded model does not reason.
    unserved = ("tools", "think", "keep_alive")
    body = {k: v for k, v in body.items() if v is not None and k not in unserved}
    for name in ("prompt", "system"):
        if text_bytes(body.get(name, "")) > MAX_TEXT_BYTES:
            body[name] = "q"
    if body.get("raw"):
        body.pop("system", None)
    if isinstance(body.get("format"), dict):
        body["format"] = {"type": "object"}
    if "top_logprobs" in body:
        body["logprobs"] = True
    windows = ("repeat_last_n", "penalize_newline")  # these exclude penalties
    options = {k: v for k, v in body.get("options", {}).items() if k not in windows}
    options["num_predict"] = 4
    if options.get("num_ctx"):
        options["num_ctx"] = min(options["num_ctx"], 1024)
    body["options"] = options
    if body.get("messages"):
        body["messages"] = settle_ollama_messages(body["messages"])
    return body


def settle_ollama_messages(messages: list[Any]) -> list[Any]:
    """Shortens the messages, and removes calls and results of tools, which the template lacks."""
    settled = []
    room = MAX_TEXT_BYTES
    for message in messages[:MAX_MESSAGES]:
        if message["role"] == "tool":
            continue
        message.pop("tool_calls", None)
        size = text_bytes(message.get("content") or "")
        if size > room:
            message["content"], size = "", 0
        room -= size
        settled.append(message)
    # A last message of the assistant is continued, which the template must write unchanged.
    return [*settled, {"role": "user", "content": "q"}]


def settle_scores(body: dict[str, Any]) -> None:
    """Leaves one query and few documents, of which each takes two sequences."""
    if isinstance(body.get("text_1"), list):
        del body["text_1"][1:]
    for name in ("text_2", "documents"):
        if isinstance(body.get(name), list):
            del body[name][8:]


def settle_tool_choice(body: dict[str, Any], forcing: tuple[str, ...]) -> bool:
    """Chooses a tool that there is, or none. Returns whether the choice forces a call."""
    if "tools" in body:  # others than functions are left out
        tools = body["tools"]
        body["tools"] = [t for t in tools if t.get("type") == "function" or "input_schema" in t]
    names = settle_names(body.get("tools", []))
    choice = body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    if not names or kind not in forcing:
        none = "none" if "input" in body else {"type": "none"}
        body["tool_choice"] = none  # the template does not read tools
        return False
    if isinstance(choice, dict) and kind in ("function", "tool"):
        choice["name"] = names[0]
    return True


def settle_names(tools: list[dict[str, Any]]) -> list[str]:
    """Gives the tools, or functions of tools, different names, which it returns."""
    for idx, tool in enumerate(tools):
        tool["name"] = f"{tool['name'][:60]}{idx}"
    return [tool["name"] for tool in tools]


def settle_format(body: dict[str, Any], field: str, is_forced: bool) -> None:
    """Leaves one restriction of the output, whose schema can be compiled."""
    settings = body.get(field, {})
    if is_forced:
        settings.pop("format", None)
    wanted = settings.get("format") or {}
    for place in (wanted, wanted.get("json_schema") or {}):
        if place.get("schema") is not None:
            place["schema"] = {"type": "object"}


def settle(body: dict[str, Any], is_answered: bool) -> dict[str, Any]:
    body = {name: value for name, value in body.items() if value is not None}
    for name in ID_LISTS:
        if name in body:
            body[name] = ids_in_vocabulary(body[name])
    if isinstance(body.get("prompt"), list):
        body["prompt"] = prompts_in_vocabulary(body["prompt"])
    if "logit_bias" in body:
        biases = body["logit_bias"].items()
        body["logit_bias"] = {str(int(token) % VOCAB_SIZE): bias for token, bias in biases}
    if "messages" in body:
        settle_chat(body)
    if isinstance(body.get("text_1"), list):  # as many as in text_2, or one
        body["text_1"] = body["text_1"][0]
    if is_answered:
        settle_restrictions(body)
        settle_answer(body)
    return body


def ids_in_vocabulary(ids: list[Any]) -> list[Any]:
    return [int(token) % VOCAB_SIZE if is_number(token) else token for token in ids]


def is_number(token: object) -> bool:
    return isinstance(token, (int, float)) and not isinstance(token, bool)


def prompts_in_vocabulary(prompts: list[Any]) -> list[Any]:
    if all(is_number(prompt) for prompt in prompts):
        return ids_in_vocabulary(prompts)
    return [p if isinstance(p, str) else ids_in_vocabulary(p) for p in prompts[:8]]


def settle_chat(body: dict[str, Any]) -> None:
    del body["messages"][MAX_MESSAGES:]
    room = MAX_TEXT_BYTES
    for idx, message in enumerate(body["messages"]):
        message["role"] = ROLES[(len(message["role"]) + idx) % len(ROLES)]
        size = text_bytes(message.get("content") or "")
        if message.get("content") is None or size > room:
            message["content"], size = "", 0
        room -= size
        if message.get("tool_calls"):
            message["content"] = "It calls."  # the template does not write calls
        calls = message.get("tool_calls") or []
        for call in calls:
            if isinstance(call["function"].get("arguments"), str):
                call["function"]["arguments"] = "{}"
        size = len(json.dumps(calls)) if calls else 0  # they are text in the prompt
        if size > room:
            del message["tool_calls"]
            size = 0
        room -= size
    if body.get("continue_final_message"):
        body["add_generation_prompt"] = False
        body["messages"][-1]["content"] = "So it"
    if "tools" in body:  # others than functions are left out
        body["tools"] = [tool for tool in body["tools"] if "function" in tool]
    names = settle_names([tool["function"] for tool in body.get("tools", [])])
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and names:
        if "allowed_tools" in choice:
            choice["allowed_tools"]["mode"] = "required"  # the template does not read tools
        for named in choice.get("allowed_tools", {}).get("tools", [choice]):
            named["function"]["name"] = names[0]
    elif not names:
        body.pop("tool_choice", None)
    if body.get("top_logprobs"):
        body["logprobs"] = True


def text_bytes(content: str | list[Any]) -> int:
    parts = [content] if isinstance(content, str) else content
    kinds = ("text", "refusal", "thinking")
    texts = [
        p if isinstance(p, str) else "".join(str(p.get(k) or "") for k in kinds) for p in parts
    ]
    return len("".join(texts).encode())


def settle_restrictions(body: dict[str, Any]) -> None:
    forced = body.get("tool_choice") not in (None, "none", "auto")
    given = [name for name in RESTRICTIONS if name in body]
    for name in given if forced else given[1:]:
        del body[name]
    if given and not forced and not is_text(body[given[0]]):
        body[given[0]] = RESTRICTIONS[given[0]]
    if given or forced:  # these could forbid every token of the form
        body.pop("allowed_token_ids", None)
        body.pop("bad_words", None)


def is_text(wanted: object) -> bool:
    return isinstance(wanted, dict) and wanted.get("type") == "text"


def settle_answer(body: dict[str, Any]) -> None:
    body.pop("add_special_tokens", None)  # without them "" has no token
    body.pop("documents", None)  # the template does not read them
    if body.get("tools") and body.get("tool_choice", "auto") == "auto":  # nor tools
        body["tool_choice"] = "none"
    if not body.get("stream"):
        body.pop("stream_options", None)
    body["max_tokens"] = min(body.get("max_tokens", 4), 4) or (0 if body.get("echo") else 1)
    if "max_completion_tokens" in body:
        body["max_completion_tokens"] = body["max_tokens"]
    if "min_tokens" in body:
        body["min_tokens"] = min(body["min_tokens"], body["max_tokens"])
    if "best_of" in body:
        body["best_of"] = body["n"] = body.get("n", body["best_of"])
    for name in ("stop", "bad_words"):
        if isinstance(body.get(name), list):
            body[name] = body[name][:16]
