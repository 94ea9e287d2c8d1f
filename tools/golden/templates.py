"""Renders the golden files of the chat-template tests anew with Jinja2.

The environment is the one of transformers' chat_template_utils (5.x), built here by hand:

    python3 tools/golden/templates.py --templates ../shared/data/chat_templates \
        --golden tests/golden/templates

Needs jinja2 >= 3.1.6. The golden files are where the cases are written down: a new case is a line
with "template" and "variables" in expressions.json, or one with "name" and "variables" in
conversations.json, and this script adds what Jinja2 makes of it. Chat templates are not stored.
"""

import argparse
import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.runtime
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW_UNIX_S = 1_722_038_400 + 4 * 3600 + 5 * 60 + 6  # 2024-07-27 04:05:06 UTC


class GenerationTag(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.CallBlock:
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_pass", []), [], [], body).set_lineno(lineno)

    def _pass(self, caller: jinja2.runtime.Macro) -> str:
        return caller()


class TemplateNamespace(jinja2.utils.Namespace):
    def __init__(*args: Any, **kwargs: Any) -> None:  # noqa: B902
        self, args = args[0], args[1:]
        attrs = dict(*args, **kwargs)
        for name in attrs:
            TemplateNamespace._check_name(name)
        jinja2.utils.Namespace.__init__(self, attrs)

    def __setitem__(self, name: str, value: Any) -> None:
        TemplateNamespace._check_name(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def _check_name(name: Any) -> None:
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError("underscore-prefixed attribute on a namespace")


class Raised(jinja2.exceptions.TemplateError):
    """What a template's raise_exception raises; told apart so that its message is compared."""


def make_environment() -> ImmutableSandboxedEnvironment:
    def raise_exception(message: str) -> None:
        raise Raised(message)

    def tojson(
        x: Any,
        ensure_ascii: bool = False,
        indent: Any = None,
        separators: Any = None,
        sort_keys: bool = False,
    ) -> str:
        return json.dumps(
            x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    def strftime_now(format: str) -> str:
        return datetime.fromtimestamp(NOW_UNIX_S, timezone.utc).replace(tzinfo=None).strftime(format)

    class TemplateDict:
        def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
            return dict(*args, **kwargs)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    environment.globals["dict"] = TemplateDict()
    environment.globals["namespace"] = TemplateNamespace
    return environment


def render(environment: ImmutableSandboxedEnvironment, source: str, variables: Any) -> dict[str, str]:
    """{"text": …}, {"raised": message} of raise_exception, or {"error": …} for whatever else."""
    try:
        # Through JSON, so that the template sees just what the C++ side reads back.
        text = environment.from_string(source).render(**json.loads(json.dumps(variables)))
        text.encode("utf-8")  # half a surrogate pair is no text
        return {"text": text}
    except Raised as error:
        return {"raised": str(error)}
    except Exception as error:  # noqa: BLE001 - any failure of the template is a result here
        return {"error": f"{type(error).__name__}: {error}"}


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    """A JSON array with one element a line."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def shared_prefix(text: str, other: str) -> int:
    count = 0
    while count < min(len(text), len(other)) and text[count] == other[count]:
        count += 1
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--templates", type=Path, help="folder of .jinja files; optional")
    parser.add_argument("--golden", type=Path, required=True, help="folder that is changed")
    args = parser.parse_args()
    environment = make_environment()

    expressions = args.golden / "expressions.json"
    cases = [(case["template"], case["variables"]) for case in json.loads(expressions.read_text(encoding="utf-8"))]
    rows = [
        {"template": source, "variables": variables, **render(environment, source, variables)}
        for source, variables in cases
    ]
    write_lines(expressions, rows)
    print(f"{expressions.name}: {len(rows)} cases, {sum('text' in r for r in rows)} that render")

    if args.templates is None:
        return
    named = json.loads((args.golden / "conversations.json").read_text(encoding="utf-8"))
    for path in sorted(args.templates.glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        results = []
        base = ""
        for case in named:
            result: dict[str, Any] = {"name": case["name"], **render(environment, source, case["variables"])}
            if "text" in result:
                # Long system preambles repeat: a text is stored from where it leaves the one before.
                text = result["text"]
                result["shared_prefix_chars"] = shared_prefix(text, base)
                result["text"] = text[result["shared_prefix_chars"] :]
                base = text
            results.append(result)
        write_lines(args.golden / f"{path.stem}.json", results)
        print(f"{path.stem}: {sum('text' in r for r in results)} render, "
              f"{sum('raised' in r for r in results)} raise, {sum('error' in r for r in results)} fail")


if __name__ == "__main__":
    main()
