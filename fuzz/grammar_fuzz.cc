// Compiles any grammar, or refuses it, within the limits of size and time. Constraints accept the
// texts that are drawn from their masks, and texts of a schema are JSON.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cpu_bound.h"
#include "grammar/check_spec.h"
#include "grammar/grammar_compiler.h"

namespace {

using namespace quire;

constexpr int32_t kEndId = 1;

// Tokens in addition to all bytes, some of which cross the borders of JSON's syntax.
constexpr std::string_view kTokens[] = {"\": ", "\", \"", "{\"", "\"}", "[{\"", "}]",    "true",
                                        "null", "-1",     "e+",  "ab",  "  ",   "\\u00", "é"};

const Tokenizer& fuzz_tokenizer() {
  static const auto tokenizer = [] {
    std::string vocab = R"("<pad>": 0, "<end>": 1)";
    int id = 2;
    for (int byte = 0; byte < 256; ++byte) {
      constexpr char kHex[] = "0123456789ABCDEF";
      vocab += std::string(", \"<0x") + kHex[byte / 16] + kHex[byte % 16] +
               ">\": " + std::to_string(id++);
    }
    for (const std::string_view token : kTokens) {
      vocab += ", \"";
      for (const char c : token) {
        if (c == '"' || c == '\\') vocab += '\\';
        if (c == ' ') {
          vocab += "▁";
        } else {
          vocab += c;
        }
      }
      vocab += "\": " + std::to_string(id++);
    }
    const std::string json =
        R"({"added_tokens": [{"id": 0, "content": "<pad>", "special": true},
            {"id": 1, "content": "<end>", "special": true}],
            "decoder": {"type": "Sequence", "decoders": [
              {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
              {"type": "ByteFallback"}, {"type": "Fuse"}]},
            "model": {"type": "BPE", "byte_fallback": true, "merges": [], "vocab": {)" +
        vocab + "}}}";
    auto loaded = Tokenizer::from_json(json, "fuzz");
    QUIRE_CHECK(loaded.ok(), loaded.status().message());
    return *loaded;
  }();
  return *tokenizer;
}

constexpr GrammarLimits kLimits = {.max_text_bytes = 4096,
                                   .compile_work = 50'000'000,
                                   .cache_bytes = size_t{8} << 20,
                                   .sequence_burst_ns = 500'000'000};

GrammarCompiler& compiler() {
  static GrammarCompiler compiler(fuzz_tokenizer(), std::vector<int32_t>{kEndId}, kLimits);
  return compiler;
}

GrammarSpec spec_of(const uint8_t* data, size_t size) {
  GrammarSpec spec;
  spec.kind = static_cast<GrammarSpec::Kind>(data[0] % 5);
  if (spec.kind == GrammarSpec::Kind::kGrammar && data[0] >= 0x80) {
    spec.kind = GrammarSpec::Kind::kGbnf;
  }
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  spec.text = text;
  for (size_t from = 0; from <= text.size();) {
    const size_t to = std::min(text.find('\n', from), text.size());
    spec.choices.emplace_back(text.substr(from, to - from));
    from = to + 1;
  }
  return spec;
}

std::vector<int32_t> allowed_ids(const std::vector<uint32_t>& mask) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < fuzz_tokenizer().vocab_size(); ++id) {
    if (((mask[static_cast<size_t>(id) / 32] >> (id % 32)) & 1U) != 0) ids.push_back(id);
  }
  return ids;
}

Result<std::string> plain_text(const GrammarSpec& spec) {
  using grammar::GrammarDialect;
  switch (spec.kind) {
    case GrammarSpec::Kind::kJsonSchema:
      return grammar::plain_schema(spec.text, kLimits);
    case GrammarSpec::Kind::kGrammar:
      return grammar::plain_grammar(spec.text, GrammarDialect::kEbnf, kLimits);
    case GrammarSpec::Kind::kGbnf:
      return grammar::plain_grammar(spec.text, GrammarDialect::kGbnf, kLimits);
    default: {
      auto regex = grammar::plain_regex("the regex", spec.text, kLimits);
      if (!regex.ok()) return regex.status();
      QUIRE_CHECK(regex->min_length <= regex->max_length, "a regex has no length");
      return std::move(regex->text);
    }
  }
}

// Rewriting a spec takes space and time that are linear in its size.
void check_growth(const GrammarSpec& spec) {
  if (spec.kind == GrammarSpec::Kind::kJsonObject || spec.kind == GrammarSpec::Kind::kChoice)
    return;
  if (!grammar::check_spec(spec, kLimits).ok()) return;
  constexpr size_t kMaxFactor = 30;  // for GBNF, in which "." becomes a class
  constexpr size_t kMaxAdded = 100;  // for the smallest schema
  const fuzz::CpuBound bound({.fixed_ns = 200'000'000, .ns_per_byte = 50'000});
  const Result<std::string> plain = plain_text(spec);
  bound.check(spec.text.size());
  QUIRE_CHECK(!plain.ok() || plain->size() <= kMaxAdded + kMaxFactor * spec.text.size(),
              "a spec grows more than linearly");
  if (!plain.ok() || spec.kind == GrammarSpec::Kind::kJsonSchema) return;
  // The rewritten form is stable: rewriting it again changes at most the names of rules.
  GrammarSpec written = spec;
  written.text = *plain;
  if (spec.kind == GrammarSpec::Kind::kGbnf) written.kind = GrammarSpec::Kind::kGrammar;
  const Result<std::string> again = plain_text(written);
  QUIRE_CHECK(again.ok(), "a written spec is refused: " + again.status().message());
  QUIRE_CHECK(spec.kind != GrammarSpec::Kind::kRegex || *again == *plain,
              "a written regex changes again");
}

// A complete text of a schema is JSON. simdjson refuses numbers that no double holds and escapes of
// half a surrogate pair, which JSON allows. XGrammar's character classes allow bytes that would
// encode a surrogate, so UTF-8 is not checked.
void check_answer(const GrammarSpec& spec, const std::string& text) {
  if (spec.kind != GrammarSpec::Kind::kJsonSchema && spec.kind != GrammarSpec::Kind::kJsonObject) {
    return;
  }
  static simdjson::dom::parser parser;
  const simdjson::error_code error = parser.parse(text).error();
  QUIRE_CHECK(error == simdjson::SUCCESS || error == simdjson::NUMBER_ERROR ||
                  error == simdjson::STRING_ERROR || error == simdjson::UTF8_ERROR,
              "a text is not JSON: " + text);
}

Result<ConstraintFactory> compile(const GrammarSpec& spec) {
  // The budget of the compilation and of the first mask, times 5: with a sanitizer, the JSON parser
  // and frees take CPU time that the budget does not count.
  constexpr int64_t kMaxNs = 5 * (1'000'000'000 + kLimits.sequence_burst_ns);
  const fuzz::CpuBound bound({.fixed_ns = kMaxNs, .ns_per_byte = 0});
  auto factory = compiler().compile(spec);
  bound.check(spec.text.size());
  return factory;
}

}  // namespace

// The first byte selects the kind, the second seeds the choice of tokens.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = (set_log_level(LogLevel::kOff), true);
  if (size < 2 || !quiet) return 0;
  const GrammarSpec spec = spec_of(data, size);
  check_growth(spec);
  const auto factory = compile(spec);
  if (!factory.ok()) return 0;
  const auto constraint = (*factory)();
  std::string text;
  uint32_t state = data[1];
  for (int step = 0; step < 50; ++step) {
    const auto allowed = allowed_ids(constraint->allowed_tokens());
    if (allowed.empty()) return 0;  // a dead end, or too costly
    state = state * 1664525U + 1013904223U;
    const int32_t id = allowed[(state >> 8) % allowed.size()];
    QUIRE_CHECK(id == kEndId || !fuzz_tokenizer().is_special(id), "a special token is allowed");
    const bool accepted = constraint->accept(id);
    if (!accepted) {
      // Only a constraint that has spent its time may do this; it then allows no token.
      QUIRE_CHECK(allowed_ids(constraint->allowed_tokens()).empty(), "allowed, but refused");
      return 0;
    }
    if (id == kEndId) {
      check_answer(spec, text);
      break;
    }
    text += fuzz_tokenizer().token_bytes(id);
  }
  return 0;
}
