#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>

#include "base/one_line.h"
#include "grammar/big_stack.h"
#include "grammar/work_budget.h"
#include "grammar/xgrammar_door.h"

namespace quire::grammar {
namespace {

constexpr std::string_view kAnyObject = R"({"type": "object", "additionalProperties": true})";

// Characters that mean something in EBNF's strings, or that a line must not hold, as \u00XX.
void append_literal(std::string_view text, std::string& ebnf) {
  ebnf += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '"' || c == '\\') {
      ebnf += fmt::format("\\u{:04x}", byte);
    } else {
      ebnf += c;
    }
  }
  ebnf += '"';
}

std::string choice_grammar(const std::vector<std::string>& choices) {
  std::string ebnf = "root ::= ";
  for (size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) ebnf += " | ";
    append_literal(choices[i], ebnf);
  }
  return ebnf;
}

// Bounded: a weak model would else say nothing but spaces until its tokens run out.
constexpr int kMaxWhitespace = 20;

xgrammar::CompiledGrammar compile_schema(xgrammar::GrammarCompiler& compiler,
                                         std::string_view schema) {
  return compiler.CompileJSONSchema(std::string(schema), /*any_whitespace=*/true,
                                    /*indent=*/std::nullopt, /*separators=*/std::nullopt,
                                    /*strict_mode=*/true, kMaxWhitespace);
}

xgrammar::CompiledGrammar compile(const Vocabulary& vocabulary, const GrammarSpec& spec) {
  // Without threads, so that the budget of this one holds, and without a cache: that is ours.
  xgrammar::GrammarCompiler compiler(vocabulary.info, /*max_threads=*/1, /*cache_enabled=*/false);
  switch (spec.kind) {
    case GrammarSpec::Kind::kJsonObject:
      return compile_schema(compiler, kAnyObject);
    case GrammarSpec::Kind::kJsonSchema:
      return compile_schema(compiler, spec.text);
    case GrammarSpec::Kind::kChoice:
      return compiler.CompileGrammar(choice_grammar(spec.choices));
    case GrammarSpec::Kind::kRegex:
      return compiler.CompileRegex(spec.text);
    case GrammarSpec::Kind::kGrammar:
      return compiler.CompileGrammar(spec.text);
  }
  throw std::runtime_error("unknown kind of grammar");
}

std::shared_ptr<const Compiled> compile_in_budget(
    const std::shared_ptr<const Vocabulary>& vocabulary, const GrammarSpec& spec,
    const GrammarLimits& limits) {
  const WorkBudget budget({.cpu_ns = limits.compile_cpu_ns, .mask_bytes = limits.compile_bytes});
  auto compiled = std::make_shared<Compiled>(
      Compiled{.vocabulary = vocabulary, .grammar = compile(*vocabulary, spec), .limits = limits});
  compiled->num_bytes = compiled->grammar.MemorySizeBytes();
  return compiled;
}

Status refused(std::string_view why) {
  return invalid_argument(fmt::format("[grammar] cannot be compiled; {}", one_line(why)));
}

Status too_costly(const BudgetExceeded& error, const GrammarLimits& limits) {
  return invalid_argument(fmt::format(
      "[grammar] is too complex; compiling it takes more {} than allowed ({} ms, {} MiB)",
      error.what(), limits.compile_cpu_ns / 1'000'000, limits.compile_bytes >> 20));
}

// What it warns of it leaves out, and an answer might not be what was asked for.
Result<std::shared_ptr<const Compiled>> compile_guarded(
    const std::shared_ptr<const Vocabulary>& vocabulary, const GrammarSpec& spec,
    const GrammarLimits& limits) {
  try {
    const WarningScope warnings;
    auto compiled = compile_in_budget(vocabulary, spec, limits);
    if (!warnings.first().empty()) return refused(warnings.first());
    if (compiled->num_bytes > limits.cache_bytes) {
      return invalid_argument(
          fmt::format("[grammar] is too complex; it takes {} MiB, expected at most {}",
                      compiled->num_bytes >> 20, limits.cache_bytes >> 20));
    }
    const auto first_mask = make_grammar_constraint(compiled)->allowed_tokens();
    if (std::ranges::all_of(first_mask, [](uint32_t word) { return word == 0; })) {
      return invalid_argument("[grammar] allows no answer, or is too costly to follow");
    }
    return compiled;
  } catch (const BudgetExceeded& error) {
    return too_costly(error, limits);
  } catch (const std::bad_alloc&) {
    return resource_exhausted("[grammar] not enough memory to compile it");
  } catch (const std::exception& error) {
    return refused(error.what());
  }
}

}  // namespace

Vocabulary make_vocabulary(TokenTable tokens) {
  xgrammar::TokenizerInfo info(tokens.bytes, xgrammar::VocabType::RAW, std::nullopt,
                               tokens.end_ids);
  return {.tokens = std::move(tokens), .info = std::move(info)};
}

Result<std::shared_ptr<const Compiled>> compile_spec(
    const std::shared_ptr<const Vocabulary>& vocabulary, const GrammarSpec& spec,
    const GrammarLimits& limits) {
  std::optional<Result<std::shared_ptr<const Compiled>>> result;
  const bool ran = run_on_big_stack([&] { result = compile_guarded(vocabulary, spec, limits); });
  if (!ran) return resource_exhausted("[grammar] no thread left to compile it");
  return std::move(*result);
}

}  // namespace quire::grammar
