#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>

#include "base/text.h"
#include "grammar/big_stack.h"
#include "grammar/check_spec.h"
#include "grammar/stop_scope.h"
#include "grammar/work_budget.h"
#include "grammar/xgrammar_api.h"

namespace quire::grammar {
namespace {

constexpr std::string_view kAnyObject = R"({"type": "object", "additionalProperties": true})";

// Appends `text` as an EBNF string. Quotes, backslashes and control characters become \u00XX.
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

// The limit on indentation. Between JSON tokens, an answer has nothing, a space, or a new line with
// up to this many spaces or tabs (see cmake/xgrammar.cmake). Without the limit, a weak model could
// output only spaces until its tokens run out.
constexpr int kMaxIndent = 20;

xgrammar::CompiledGrammar compile_schema(xgrammar::GrammarCompiler& compiler,
                                         std::string_view schema) {
  return compiler.CompileJSONSchema(std::string(schema), /*any_whitespace=*/true,
                                    /*indent=*/std::nullopt, /*separators=*/std::nullopt,
                                    /*strict_mode=*/true, kMaxIndent);
}

Result<xgrammar::CompiledGrammar> compile(const Vocabulary& vocabulary, const GrammarSpec& spec,
                                          const GrammarLimits& limits) {
  // One thread, because XGrammar's own threads would have no budget. No cache, because CompileCache
  // is the cache.
  xgrammar::GrammarCompiler compiler(vocabulary.info, /*max_threads=*/1, /*cache_enabled=*/false);
  switch (spec.kind) {
    case GrammarSpec::Kind::kJsonObject:
      return compile_schema(compiler, kAnyObject);
    case GrammarSpec::Kind::kJsonSchema: {
      QUIRE_ASSIGN_OR_RETURN(const std::string schema, plain_schema(spec.text, limits));
      return compile_schema(compiler, schema);
    }
    case GrammarSpec::Kind::kChoice:
      return compiler.CompileGrammar(choice_grammar(spec.choices));
    case GrammarSpec::Kind::kRegex:
      return compiler.CompileRegex(spec.text);
    case GrammarSpec::Kind::kGrammar:
      return compiler.CompileGrammar(spec.text);
  }
  return internal_error("[grammar] unknown kind of grammar");
}

Result<std::shared_ptr<Compiled>> compile_in_budget(
    const std::shared_ptr<const Vocabulary>& vocabulary, const GrammarSpec& spec,
    const GrammarLimits& limits, const std::shared_ptr<SharedMemory>& memory,
    const std::atomic<bool>& stop) {
  const StopScope stop_scope(stop);
  const WorkBudget budget({.cpu_ns = limits.compile_cpu_ns, .compile_bytes = limits.compile_bytes});
  QUIRE_ASSIGN_OR_RETURN(auto grammar, compile(*vocabulary, spec, limits));
  auto compiled = std::make_shared<Compiled>(Compiled{.vocabulary = vocabulary,
                                                      .grammar = std::move(grammar),
                                                      .limits = limits,
                                                      .held = HeldMemory(memory)});
  compiled->num_bytes = compiled->grammar.MemorySizeBytes();
  return compiled;
}

Status refused(std::string_view why) {
  return invalid_argument(fmt::format("[grammar] cannot be compiled; {}", one_line(why)));
}

Status stopped() {
  return unavailable("[grammar] the compilation was stopped, because the server is shutting down");
}

Status too_costly(const BudgetExceeded& error, const GrammarLimits& limits) {
  return invalid_argument(fmt::format(
      "[grammar] is too complex; compiling it takes more {} than allowed ({} ms, {} MiB)",
      error.what(), limits.compile_cpu_ns / 1'000'000, limits.compile_bytes >> 20));
}

CompileOutcome check_first_mask(const std::shared_ptr<const Compiled>& compiled,
                                const std::shared_ptr<SharedMemory>& memory) {
  const auto constraint = make_grammar_constraint(compiled, memory, nullptr);
  const auto mask = constraint->allowed_tokens();
  if (const Status failure = constraint->status(); !failure.ok()) {
    return {.result = failure, .is_final = false};
  }
  if (std::ranges::all_of(mask, [](uint32_t word) { return word == 0; })) {
    return {.result = invalid_argument("[grammar] allows no answer")};
  }
  return {.result = compiled};
}

// Refuses a grammar that XGrammar warns of, because XGrammar ignored a part of it and an answer
// could violate that part. Rethrows std::bad_alloc, for which CompileCache has a preallocated
// error.
CompileOutcome compile_guarded(const std::shared_ptr<const Vocabulary>& vocabulary,
                               const GrammarSpec& spec, const GrammarLimits& limits,
                               const std::shared_ptr<SharedMemory>& memory,
                               const std::atomic<bool>& stop) {
  try {
    const WarningScope warnings;
    const auto result = compile_in_budget(vocabulary, spec, limits, memory, stop);
    if (!result.ok()) {
      // A bad schema is final; a lack of memory is not.
      const bool is_final = result.status().code() != StatusCode::kResourceExhausted;
      return {.result = result.status(), .is_final = is_final};
    }
    const std::shared_ptr<Compiled>& compiled = *result;
    if (!warnings.first().empty()) return {.result = refused(warnings.first())};
    if (compiled->num_bytes > limits.cache_bytes) {
      return {.result = invalid_argument(
                  fmt::format("[grammar] is too complex; it takes {} MiB, expected at most {}",
                              compiled->num_bytes >> 20, limits.cache_bytes >> 20))};
    }
    if (!compiled->held.grow(compiled->num_bytes)) {
      return {.result = resource_exhausted(fmt::format(
                  "[grammar] the grammars in use hold {} MiB of at most {}; try again later",
                  memory->held_bytes() >> 20, limits.shared_bytes >> 20)),
              .is_final = false};
    }
    return check_first_mask(compiled, memory);
  } catch (const BudgetExceeded& error) {
    return {.result = too_costly(error, limits), .is_final = false};
  } catch (const WorkStopped&) {
    return {.result = stopped(), .is_final = false};
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return {.result = refused(error.what())};
  }
}

}  // namespace

Vocabulary make_vocabulary(TokenTable tokens) {
  xgrammar::TokenizerInfo info(tokens.bytes, xgrammar::VocabType::RAW, std::nullopt,
                               tokens.end_ids);
  return {.tokens = std::move(tokens), .info = std::move(info)};
}

CompileOutcome compile_spec(const std::shared_ptr<const Vocabulary>& vocabulary,
                            const GrammarSpec& spec, const GrammarLimits& limits,
                            const std::shared_ptr<SharedMemory>& memory,
                            const std::atomic<bool>& stop) {
  std::optional<CompileOutcome> outcome;
  const bool ran = run_on_big_stack(
      [&] { outcome.emplace(compile_guarded(vocabulary, spec, limits, memory, stop)); });
  if (!ran) {
    return {.result = resource_exhausted("[grammar] no thread left to compile it"),
            .is_final = false};
  }
  return std::move(*outcome);
}

}  // namespace quire::grammar
