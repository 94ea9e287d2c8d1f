// Any text that is drawn from the masks conforms to its grammar.
#include "grammar/walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/text.h"
#include "grammar/grammar_compiler.h"
#include "grammar/schema_validator.h"
#include "support/shared_data.h"
#include "support/value_of.h"

namespace quire::testing {
namespace {

using Kind = GrammarSpec::Kind;

struct NamedTokenizer {
  std::string name;
  std::string end;  // empty: the embedded model
};

class GrammarWalk : public ::testing::TestWithParam<NamedTokenizer> {
 protected:
  void SetUp() override {
    if (GetParam().end.empty()) {
      tokenizer_ = embedded_tokenizer();
      eos_ids_ = {kEmbeddedEosId};
    } else {
      const auto dir = shared_data_path("tokenizers/" + GetParam().name);
      QUIRE_REQUIRE_SHARED(dir);
      tokenizer_ = value_of(Tokenizer::load(dir));
      const auto end = tokenizer_->token_to_id(GetParam().end);
      ASSERT_TRUE(end) << GetParam().end;
      eos_ids_ = {*end};
    }
    compiler_ = std::make_unique<GrammarCompiler>(*tokenizer_, eos_ids_, ample_time());
  }

  // Calls `check` with the text of each sequence that ended.
  void walk(const GrammarSpec& spec, int num_walks, int num_free,
            const std::function<void(const std::string&)>& check) {
    const auto factory = compiler_->compile(spec);
    ASSERT_TRUE(factory.ok()) << spec.text << ": " << factory.status().message();
    int num_ended = 0;
    std::string unfinished;
    for (int i = 0; i < num_walks; ++i) {
      const auto constraint = (*factory)();
      const Walk walk = random_walk(*constraint, *tokenizer_, eos_ids_, static_cast<uint64_t>(i),
                                    num_free, num_free + 200);
      ASSERT_EQ(walk.complaint, "") << walk.text;
      ASSERT_FALSE(walk.dead_end) << spec.text << " after " << walk.text;
      if (!walk.ended) unfinished = walk.text;
      if (!walk.ended) continue;
      ++num_ended;
      ASSERT_TRUE(is_valid_utf8(walk.text)) << walk.text;
      check(walk.text);
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(num_ended, num_walks / 2)
        << spec.text << " has too few ends; unfinished: " << unfinished;
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<int32_t> eos_ids_;
  std::unique_ptr<GrammarCompiler> compiler_;
};

TEST_P(GrammarWalk, JsonObjectsAreObjects) {
  walk({.kind = Kind::kJsonObject}, 20, 30, [](const std::string& text) {
    EXPECT_EQ(validate_json(text, R"({"type": "object"})"), "") << text;
  });
}

TEST_P(GrammarWalk, SchemasAreMet) {
  const char* const schemas[] = {
      R"({"type": "object", "properties": {"name": {"type": "string", "minLength": 2,
          "maxLength": 5}, "age": {"type": "integer", "minimum": 0, "maximum": 130}},
          "required": ["name", "age"], "additionalProperties": false})",
      R"({"type": "array", "items": {"enum": ["red", "green", 3, null, true]}, "minItems": 1,
          "maxItems": 4})",
      R"({"$defs": {"tree": {"type": "object", "properties": {"value": {"type": "number"},
          "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 2}},
          "required": ["value"]}}, "$ref": "#/$defs/tree"})",
      R"({"anyOf": [{"type": "string", "pattern": "^[a-c]{2}-\\d+$"}, {"type": "boolean"},
          {"const": "it's \"so\" \\ ü"}]})",
      R"({"type": "object", "properties": {"tags": {"type": ["array", "null"],
          "items": {"type": "string", "pattern": "x(yz|é)*"}}, "extra": {}},
          "required": ["tags"], "additionalProperties": {"type": "integer"}})",
      R"({"type": "object", "properties": {"title": {"type": "object", "properties": {"default":
          {"type": "null"}}, "required": ["default"]}, "q\"\\\n": {"type": "object", "properties":
          {"default": {"enum": [0.1, 2.5]}}, "required": ["default"]}, "é": {"type": "null"}},
          "required": ["q\"\\\n"], "additionalProperties": {"type": "boolean"}})",
      R"({"type": "array", "items": {"type": "string", "pattern": "^(\"é|.\\\\[^a])\\S$"},
          "minItems": 1, "maxItems": 4})",
  };
  for (const std::string schema : schemas) {
    walk({.kind = Kind::kJsonSchema, .text = schema}, 12, 25, [&](const std::string& text) {
      EXPECT_EQ(validate_json(text, schema), "") << text << "\n" << schema;
    });
  }
}

// Schemas in the form that pydantic, zod and OpenAI's clients write.
TEST_P(GrammarWalk, ClientsSchemasAreMet) {
  const char* const schemas[] = {
      // An optional field, a literal, an enumeration, a nested model.
      R"({"$defs": {"Color": {"enum": ["red", "blue"], "title": "Color", "type": "string"},
          "Point": {"properties": {"x": {"title": "X", "type": "integer", "maximum": 99,
          "minimum": -9}}, "required": ["x"], "title": "Point", "type": "object"}},
          "properties": {"color": {"$ref": "#/$defs/Color", "default": "red"},
          "at": {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}], "default": null},
          "kind": {"const": "dot", "default": "dot", "title": "Kind", "type": "string"}},
          "required": ["at", "kind"], "title": "Dot", "type": "object"})",
      // Optional[constr], a literal of strings, Literal[1, 2].
      R"({"properties": {"code": {"anyOf": [{"type": "string", "maxLength": 4, "minLength": 2},
          {"type": "null"}], "title": "Code"}, "unit": {"enum": ["C", "F"], "type": "string"},
          "n": {"enum": [1, 2], "title": "N", "type": "integer"}},
          "required": ["code", "unit", "n"], "title": "M", "type": "object"})",
      // A dict with the keys of an enumeration, and a dict of lists.
      R"({"$defs": {"K": {"enum": ["a", "b"], "title": "K", "type": "string"}}, "properties":
          {"d": {"additionalProperties": {"type": "boolean"}, "propertyNames":
          {"$ref": "#/$defs/K"}, "maxProperties": 2, "title": "D", "type": "object"}},
          "required": ["d"], "title": "M", "type": "object"})",
      // A tuple.
      R"({"properties": {"t": {"maxItems": 2, "minItems": 2, "prefixItems": [{"type": "boolean"},
          {"type": "null"}], "title": "T", "type": "array"}}, "required": ["t"],
          "title": "M", "type": "object"})",
      // A discriminated union.
      R"({"$defs": {"Cat": {"properties": {"pet": {"const": "cat", "title": "Pet", "type":
          "string"}, "lives": {"type": "integer", "maximum": 9, "minimum": 0}}, "required":
          ["pet", "lives"], "type": "object"}, "Dog": {"properties": {"pet": {"const": "dog",
          "type": "string"}}, "required": ["pet"], "type": "object"}}, "properties": {"p":
          {"discriminator": {"mapping": {"cat": "#/$defs/Cat", "dog": "#/$defs/Dog"},
          "propertyName": "pet"}, "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]}},
          "required": ["p"], "type": "object"})",
      // A recursive model.
      R"({"$defs": {"Node": {"properties": {"v": {"type": "boolean"}, "next": {"anyOf":
          [{"$ref": "#/$defs/Node"}, {"type": "null"}], "default": null}}, "required": ["v"],
          "title": "Node", "type": "object"}}, "$ref": "#/$defs/Node"})",
      // pydantic 1: a reference within allOf.
      R"({"title": "M", "type": "object", "properties": {"c": {"title": "C", "default": 1,
          "allOf": [{"$ref": "#/definitions/C"}]}}, "required": ["c"], "definitions": {"C":
          {"title": "C", "description": "An enumeration.", "enum": [1, 2]}}})",
      // zod, through zod-to-json-schema.
      R"({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/S",
          "definitions": {"S": {"type": "object", "properties": {"steps": {"type": "array",
          "items": {"type": "object", "properties": {"done": {"type": "boolean"}}, "required":
          ["done"], "additionalProperties": false}, "maxItems": 2}}, "required": ["steps"],
          "additionalProperties": false}}})",
      // OpenAI's strict mode: a type and an enumeration that may be null.
      R"({"type": "object", "properties": {"unit": {"type": ["string", "null"], "enum": ["C", "F",
          null], "description": "The unit"}, "days": {"type": ["integer", "null"], "minimum": 0,
          "maximum": 14}}, "required": ["unit", "days"], "additionalProperties": false})",
      // A tool without parameter types.
      R"({"properties": {"on": {"type": "boolean"}}, "required": ["on", "by"]})",
      // A dict with required names, nested in another.
      R"({"type": "object", "required": ["a", "b"], "additionalProperties": {"type": "object",
          "required": ["c"], "additionalProperties": {"type": "boolean"}}})",
      // A type beside anyOf.
      R"({"type": "string", "anyOf": [{"maxLength": 3}, {"enum": ["automatic", 7]}]})",
      R"({"type": "array", "items": {"type": "string", "format": "date"}, "minItems": 1,
          "maxItems": 2})",
  };
  for (const std::string schema : schemas) {
    walk({.kind = Kind::kJsonSchema, .text = schema}, 6, 25, [&](const std::string& text) {
      EXPECT_EQ(validate_json(text, schema), "") << text << "\n" << schema;
    });
  }
}

TEST_P(GrammarWalk, FormatsAreStrings) {
  for (const std::string format :
       {"email", "date", "time", "date-time", "duration", "ipv4", "ipv6", "hostname", "uuid",
        "uuid4", "uri", "uri-reference", "uri-template"}) {
    const GrammarSpec spec = {.kind = Kind::kJsonSchema,
                              .text = R"({"type": "string", "format": ")" + format + "\"}"};
    const auto factory = value_of(compiler_->compile(spec));
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const auto constraint = factory();
      const Walk walk = random_walk(*constraint, *tokenizer_, eos_ids_, seed, 12, 100);
      if (!walk.ended) continue;
      EXPECT_EQ(validate_json(walk.text, R"({"type": "string"})"), "") << format << walk.text;
    }
  }
}

TEST_P(GrammarWalk, RegexesMatch) {
  const char* const patterns[] = {
      "[a-z]{3}-\\d{2,4}",
      "(foo|bar(baz)?)+!?",
      "^\\w{1,5}@\\w{2}\\.(com|org)$",
      "[^\\d\\s]{1,8}",
      "\\u00e9|日本|[α-ω]+",
      "(\\(\\d{3}\\) )?\\d{3}-\\d{4}",
      "",
      "a.c",
      "(?:ab*c?){2,5}|\\\"x\\\"",
      "\\x41\\t[\\-\\]x]",
      "[\\u00e90-9]{1,4}",  // no U+0E90
      "[\\u0001a-f]b",
  };
  for (const std::string pattern : patterns) {
    walk({.kind = Kind::kRegex, .text = pattern}, 12, 12, [&](const std::string& text) {
      EXPECT_TRUE(matches_regex(text, pattern)) << '"' << text << "\" and " << pattern;
    });
  }
}

TEST_P(GrammarWalk, ChoicesAreChosen) {
  const GrammarSpec spec = {
      .kind = Kind::kChoice,
      .text = "",
      .choices = {"yes", "no", "yes, but", "\"quoted\"\n\\n", "日本語 [a-z]*", " leading", "é"}};
  std::vector<std::string> seen;
  walk(spec, 60, 20, [&](const std::string& text) {
    EXPECT_EQ(std::ranges::count(spec.choices, text), 1) << text;
    seen.push_back(text);
  });
  std::ranges::sort(seen);
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_GE(seen.size(), 5U);
}

TEST_P(GrammarWalk, GrammarsAreFollowed) {
  // Balanced brackets and left-recursive sums are not regular.
  const GrammarSpec spec = {.kind = Kind::kGrammar,
                            .text =
                                "root ::= sum\n"
                                "sum ::= term | sum \" + \" term  # left recursion\n"
                                "term ::= [0-9]{1,3} | \"(\" sum \")\"\n"};
  walk(spec, 25, 8, [](const std::string& text) {
    EXPECT_TRUE(matches_regex(text, "((\\d{1,3}|\\((?1)\\))( \\+ (?2))*)")) << text;
  });
}

TEST_P(GrammarWalk, GbnfIsFollowed) {
  const GrammarSpec spec = {.kind = Kind::kGbnf,
                            .text =
                                "# llama.cpp's: names of digits, any character, nothing\r\n"
                                "root ::= item+ (\",\" . | ) |\n"
                                "  \"nothing\"\n"
                                "item ::= 1-x{1,2} | [^a-z\\]\"\\\\\n]  # a raw line end\n"
                                "1-x ::= \"\\x41b\\\"\" [\\-a\\u00e9]*\n"};
  walk(spec, 25, 6, [](const std::string& text) {
    EXPECT_TRUE(matches_regex(text, "((Ab\"[-a\\x{e9}]*){1,2}|[^a-z\\]\"\\\\\n])+(,.)?|nothing"))
        << text;
  });
}

INSTANTIATE_TEST_SUITE_P(
    Tokenizers, GrammarWalk,
    ::testing::Values(NamedTokenizer{"abacus", ""}, NamedTokenizer{"gpt2", "<|endoftext|>"},
                      NamedTokenizer{"llama2", "</s>"}, NamedTokenizer{"qwen2_5", "<|im_end|>"},
                      NamedTokenizer{"llama3.2-instruct", "<|eot_id|>"}),
    [](const auto& tokenizer) {
      std::string name = tokenizer.param.name;
      std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
      return name;
    });

}  // namespace
}  // namespace quire::testing
