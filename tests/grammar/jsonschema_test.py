#!/usr/bin/env python3
"""Compares grammars of JSON schemas with the package jsonschema, keyword by keyword and combined:
every text that a grammar accepts is valid, and it accepts every valid instance in canonical form
(members in the schema's order, no white space, escapes only where JSON needs them)."""

import argparse
import itertools
import json
import pathlib
import random
import re
import subprocess
import unittest

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[2]  # of the embedded model that the checker loads
SEED = 43
NUM_WALKS = 12
STRINGS = ["", "a", "ab", "abc", "abcd", "A", "AB-12", "1", "a1", "-", " ", "é", "日本", "🤗", "🤗🤗a",
           "\n", "\"", "\\", "a\nb", "\"a\"", "\\\\", "\t\r", "\x01", "a\x1f", "/", "aaaaaaaaaa", "é\"\\\n🤗",
           "c", "bbc", "ababc", "aab", "abb1", "abb-1", "d", "acd", "abbcd", "bcd"]
SCALARS = [None, True, False, 0, 1, -1, 2, 3, 5, 7, 9, 10, 11, 100, 1000, 0.5, 1.5, -0.5, 2.25, 99.5]

# Schemas by keyword. Objects are closed and tuples whole, as the grammar assumes (docs/serving.md).
CLOSED = {"additionalProperties": False}
A_B = {"a": {"type": "integer"}, "b": {"type": "string"}}
KEYWORDS = {
    "type": [{"type": t} for t in ("null", "boolean", "integer", "number", "string", "array",
                                   ["integer", "null"], ["string", "boolean"])],
    "enum": [{"enum": ["a", 1, None, True, "\n\"é"]}, {"type": "string", "enum": ["a", "b", 3]}],
    "const": [{"const": 1.5}, {"const": "a\nb"}, {"const": [1, "a"]}],
    "minLength": [{"type": "string", "minLength": n} for n in (0, 1, 2, 4)],
    "maxLength": [{"type": "string", "maxLength": n} for n in (0, 1, 2, 3, 9)],
    "minLength, maxLength": [{"type": "string", "minLength": low, "maxLength": high}
                             for low, high in ((1, 1), (1, 3), (2, 5), (0, 0))],
    "pattern": [{"type": "string", "pattern": p} for p in (
        "^[a-z]+$", "^.{1,3}$", "^.*$", "^[^a]*$", "^[A-Z]{2}-\\d{1,4}$", "^a\\nb$", "^[\"\\\\\\n]+$",
        "^(a|b|\")*$", "^\\S+$", "^\\w{0,9}$", "^[\\s\\S]{2,5}$", "^[\\x00-\\x1f]*$", "^(?:é|🤗)+a?$",
        "^(ab+)?c$", "^(a+b)?c$", "^[a-z]+(-[0-9]+)?$", "^(a(b+)?c)?d$")],
    "pattern, maxLength": [{"type": "string", "pattern": "^[a-z]+$", "maxLength": 3},
                           {"type": "string", "pattern": "^[^b]*$", "minLength": 2}],
    "minimum": [{"type": "integer", "minimum": 3}, {"type": "number", "minimum": 0.5},
                {"type": "integer", "minimum": -1, "maximum": 10}],
    "maximum": [{"type": "integer", "maximum": 7}, {"type": "number", "maximum": 2.25}],
    "exclusiveMinimum": [{"type": "integer", "exclusiveMinimum": 3},
                         {"type": "number", "exclusiveMinimum": 0.5}],
    "exclusiveMaximum": [{"type": "integer", "exclusiveMaximum": 3},
                         {"type": "number", "exclusiveMaximum": 1.5}],
    "multipleOf": [{"type": "integer", "multipleOf": 5},
                   {"type": "integer", "multipleOf": 3, "minimum": 0, "maximum": 100}],
    "items": [{"type": "array", "items": {"type": "integer"}},
              {"type": "array", "items": {"type": ["string", "null"]}}],
    "minItems, maxItems": [{"type": "array", "minItems": 1}, {"type": "array", "maxItems": 2},
                           {"type": "array", "items": {"type": "integer"}, "minItems": 2,
                            "maxItems": 3}, {"type": "array", "maxItems": 0}],
    "prefixItems": [{"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}],
                     "minItems": 2, "maxItems": 2},
                    {"type": "array", "prefixItems": [{"type": "integer"}], "minItems": 1,
                     "items": {"type": "null"}}],
    "properties": [{"type": "object", "properties": A_B, **CLOSED},
                   {"type": "object", "properties": {"a": A_B["a"], "c\n\"": {"type": "null"}},
                    "required": ["c\n\""], **CLOSED}],
    "required": [{"type": "object", "properties": A_B, "required": ["b"], **CLOSED},
                 {"type": "object", "properties": A_B, "required": ["a", "b"], **CLOSED}],
    "additionalProperties": [{"type": "object", "additionalProperties": {"type": "integer"}},
                             {"type": "object", "properties": {"a": {"type": "integer"}},
                              "additionalProperties": {"type": "string"}}],
    "minProperties, maxProperties": [{"type": "object", "additionalProperties": {"type": "integer"},
                                      "minProperties": 1, "maxProperties": 2}],
    "propertyNames": [{"type": "object", "propertyNames": {"maxLength": 1},
                       "additionalProperties": {"type": "integer"}},
                      {"type": "object", "propertyNames": {"pattern": "^[a-b]$"},
                       "additionalProperties": {"type": "integer"}}],
    "patternProperties": [{"type": "object", "patternProperties": {"^[ab]$": {"type": "integer"}},
                           **CLOSED}],
    "anyOf": [{"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 2}]},
              {"anyOf": [{"not": {}}, {"type": "null"}]}],
    "oneOf": [{"oneOf": [{"type": "integer", "maximum": 3}, {"type": "string"}]}],
    "allOf": [{"allOf": [{"type": "integer", "minimum": 3}]}],
    "$ref": [{"$ref": "#/$defs/x", "$defs": {"x": {"type": "string", "minLength": 2}}},
             {"type": "array", "items": {"$ref": "#"}}],
}
# Forms of older drafts, with the schema of draft 2020-12 that they mean.
OLDER = [
    ({"type": "array", "items": [{"type": "integer"}, {"type": "string"}], "minItems": 2,
      "maxItems": 2}, KEYWORDS["prefixItems"][0]),
    ({"type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "null"},
      "minItems": 1}, KEYWORDS["prefixItems"][1]),
    ({"type": "integer", "minimum": 3, "exclusiveMinimum": True},
     {"type": "integer", "exclusiveMinimum": 3}),
    ({"type": "number", "maximum": 1.5, "exclusiveMaximum": True},
     {"type": "number", "exclusiveMaximum": 1.5}),
    ({"type": "integer", "minimum": 3, "exclusiveMinimum": False}, {"type": "integer", "minimum": 3}),
    ({"type": "string", "nullable": True, "maxLength": 2},
     {"type": ["string", "null"], "maxLength": 2}),
    ({"definitions": {"x": {"type": "null"}}, "allOf": [{"$ref": "#/definitions/x"}],
      "title": "X", "default": None}, {"type": "null"}),
]


# ECMAScript's meaning of a pattern in Python's syntax. "$" of Python also matches before a last "\n".
ECMA = {"$": r"\Z", ".": "[^\\n\\r\u2028\u2029]", "\\d": "[0-9]", "\\w": "[A-Za-z0-9_]",
        "\\S": "[^\\t-\\r \\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"}


def python_pattern(pattern):
    return re.sub(r"\[(?:\\.|[^\]])*\]|\\.|[.$]", lambda m: ECMA.get(m.group(), m.group()), pattern)


def python_schema(schema):
    if isinstance(schema, list):
        return [python_schema(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    return {python_pattern(k) if k.startswith("^") else k:
            python_pattern(v) if k == "pattern" else python_schema(v) for k, v in schema.items()}


def canonical(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def ordered(value, schema):
    """Orders the members of an object as the schema does, with other members after them."""
    if isinstance(value, dict):
        names = [n for n in schema.get("properties", {}) if n in value]
        names += [n for n in value if n not in names]
        return {n: value[n] for n in names}
    return value


def instances():
    """Values of all types: scalars, strings, and arrays and objects of them."""
    draw = random.Random(SEED)
    scalars = SCALARS + STRINGS
    arrays = [[], [[]], [[], [[]]]] + [[draw.choice(scalars) for _ in range(n)]
                                      for n in (1, 1, 2, 2, 2, 3, 3, 4) for _ in range(4)]
    arrays += [[1, 2], [1, 2, 3], [1, "a"], [1, None], [1, None, None], ["a", None], [1]]
    names = ["a", "b", "c", "ab", "c\n\""]
    objects = [{}]
    for names_used in itertools.chain(itertools.combinations(names, 1),
                                      itertools.combinations(names, 2)):
        objects += [{n: draw.choice([1, 2, 7]) for n in names_used},
                    {n: draw.choice(scalars) for n in names_used}]
    objects += [{"a": 1, "b": "x"}, {"a": 1, "b": "\n"}, {"b": ""}, {"c\n\"": None},
                {"a": 3, "c\n\"": None}, {"a": 1, "z": "s"}]
    return scalars + arrays + objects


def combined():
    """Objects and arrays of schemas of single keywords."""
    draw = random.Random(SEED)
    parts = [s for group in KEYWORDS.values() for s in group if "$ref" not in json.dumps(s)]
    for _ in range(60):
        a, b = draw.choice(parts), draw.choice(parts)
        yield {"type": "object", "properties": {"a": a, "b": b}, "required": ["a"], **CLOSED}
        yield {"type": "array", "items": {"anyOf": [a, b]}, "maxItems": 3}


class GrammarTest(unittest.TestCase):
    checker = ""

    def check(self, schema, meaning, values, num_walks=NUM_WALKS):
        validator = jsonschema.Draft202012Validator(python_schema(meaning))
        values = [ordered(v, schema) for v in values]
        request = {"schema": json.dumps(schema), "texts": [canonical(v) for v in values],
                   "num_walks": num_walks}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        self.assertNotIn("refusal", answer, schema)
        for value, is_accepted in zip(values, answer["accepted"], strict=True):
            with self.subTest(schema=schema, instance=value):
                self.assertEqual(is_accepted, validator.is_valid(value))
        for text in answer["walks"]:
            with self.subTest(schema=schema, text=text):
                validator.validate(json.loads(text))

    def setUp(self):
        self.process = subprocess.Popen([self.checker], cwd=ROOT, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def tearDown(self):
        self.process.communicate()
        self.assertEqual(self.process.returncode, 0)

    def test_keywords(self):
        values = instances()
        for schemas in KEYWORDS.values():
            for schema in schemas:
                self.check(schema, schema, values)

    def test_forms_of_older_drafts(self):
        values = instances()
        for schema, meaning in OLDER:
            self.check(schema, meaning, values)

    def test_combinations(self):
        draw = random.Random(SEED)
        values = instances()
        for schema in combined():
            of_a = [v for v in draw.sample(values, 12)]
            if schema["type"] == "object":
                chosen = [{"a": a, "b": b} for a, b in zip(of_a, draw.sample(values, 12))]
                chosen += [{"a": a} for a in of_a]
            else:
                chosen = [[a] for a in of_a] + [[a, b] for a, b in zip(of_a, of_a[1:])]
            self.check(schema, schema, chosen, num_walks=4)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--checker", required=True)
    GrammarTest.checker = parser.parse_args().checker
    unittest.main(argv=["jsonschema_test"])
