#include "grammar/compile_spec.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>

#include "base/log.h"
#include "base/numbers.h"
#include "base/text.h"
#include "grammar/check_spec.h"
#include "grammar/schema_keywords.h"

namespace quire::grammar {
namespace {

// Whether the warning can be ignored: an unknown escape stands for the character itself, and with
// overlapping branches of oneOf, an output still matches at least one of them.
bool is_harmless(std::string_view message) {
  return message.find("The character itself will be matched") != std::string_view::npos ||
         message.find("falling back to anyOf semantics") != std::string_view::npos;
}

// Keeps XGrammar's first warning on this thread. A warning names an ignored part of a grammar.
class WarningScope {
 public:
  WarningScope() { current_ = this; }
  ~WarningScope() { current_ = nullptr; }
  WarningScope(const WarningScope&) = delete;
  WarningScope& operator=(const WarningScope&) = delete;

  const std::string& first() const { return first_; }
  static void add(const std::string& message) {
    if (current_ != nullptr && current_->first_.empty() && !is_harmless(message)) {
      current_->first_ = message;
    }
  }

 private:
  static constinit thread_local WarningScope* current_;
  std::string first_;
};
constinit thread_local WarningScope* WarningScope::current_ = nullptr;

struct Job {
  const std::function<void()>& work;
  std::exception_ptr thrown;
};

// An exception that leaves a thread's function would end the program.
void* run(void* argument) noexcept {
  auto& job = *static_cast<Job*>(argument);
  try {
    job.work();
  } catch (...) {
    job.thrown = std::current_exception();
  }
  return nullptr;
}

constexpr std::string_view kAnyObject = R"({"type": "object", "additionalProperties": true})";

std::string choice_grammar(const std::vector<std::string>& choices) {
  std::string ebnf = "root ::= ";
  for (size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) ebnf += " | ";
    ebnf += ebnf_string(choices[i]);
  }
  return ebnf;
}

// The limit on indentation. Between JSON tokens, an output has nothing, a space, or a new line with
// up to this many spaces or tabs (patches/xgrammar/white_space.patch). Without the limit, a weak
// model could output only spaces until it reaches its token limit.
constexpr int kMaxIndent = 20;

xgrammar::CompiledGrammar compile_schema(xgrammar::GrammarCompiler& compiler,
                                         std::string_view schema) {
  return compiler.CompileGrammar(schema_grammar(schema));
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
      QUIRE_ASSIGN_OR_RETURN(const std::string schema, plain_schema(spec.text, limits, spec.tools));
      return compile_schema(compiler, schema);
    }
    case GrammarSpec::Kind::kChoice:
      return compiler.CompileGrammar(choice_grammar(spec.choices));
    case GrammarSpec::Kind::kRegex: {
      QUIRE_ASSIGN_OR_RETURN(const RegexText regex, plain_regex("the regex", spec.text, limits));
      return compiler.CompileRegex(regex.text);
    }
    case GrammarSpec::Kind::kGrammar:
    case GrammarSpec::Kind::kGbnf: {
      const auto dialect =
          spec.kind == GrammarSpec::Kind::kGbnf ? GrammarDialect::kGbnf : GrammarDialect::kEbnf;
      QUIRE_ASSIGN_OR_RETURN(const std::string ebnf, plain_grammar(spec.text, dialect, limits));
      return compiler.CompileGrammar(ebnf);
    }
    case GrammarSpec::Kind::kComposed: {
      QUIRE_ASSIGN_OR_RETURN(const std::string ebnf, compose_grammar(spec, limits));
      return compiler.CompileGrammar(ebnf);
    }
  }
  return internal_error("[grammar] unknown kind of grammar");
}

// The tokens that masks may allow: those of the vocabulary, and the special tokens that the grammar
// names.
std::vector<uint32_t> allowed_tokens(const Vocabulary& vocabulary, const GrammarSpec& spec) {
  std::vector<uint32_t> mask = vocabulary.tokens.may_be_allowed;
  for (const int32_t id : spec.token_ids) set_bit(mask, id);
  return mask;
}

Result<std::shared_ptr<Compiled>> compile_in_budget(
    const std::shared_ptr<const Vocabulary>& vocabulary, const GrammarSpec& spec,
    const GrammarLimits& limits, const std::shared_ptr<ByteBudget>& memory,
    const std::atomic<bool>& stop) {
  const StopScope stop_scope(stop);
  const WorkBudget budget({.work = limits.compile_work, .compile_bytes = limits.compile_bytes});
  QUIRE_ASSIGN_OR_RETURN(auto grammar, compile(*vocabulary, spec, limits));
  auto compiled =
      std::make_shared<Compiled>(Compiled{.vocabulary = vocabulary,
                                          .grammar = std::move(grammar),
                                          .limits = limits,
                                          .may_be_allowed = allowed_tokens(*vocabulary, spec),
                                          .held = ByteShare(memory)});
  compiled->num_bytes = compiled->grammar.MemorySizeBytes();
  return compiled;
}

// XGrammar's messages name its own rules and positions in rewritten texts, so a client gets another
// reason. The messages handled here are for errors that only XGrammar itself can find.
Status refused(std::string_view message) {
  log_debug("[grammar] XGrammar refused a grammar: {}", one_line(message));
  return invalid_argument(
      "[grammar] the grammar cannot be compiled, although its parts are supported; simplify it; "
      "a log of level debug has the details");
}

Status stopped() {
  return unavailable("[grammar] the compilation was stopped, because the server is shutting down");
}

Status too_costly(const BudgetExceeded& error, const GrammarLimits& limits) {
  return invalid_argument(
      fmt::format("[grammar] the grammar is too complex; compiling it takes more {} than allowed "
                  "({} million steps, {} MiB); shorten or split it",
                  error.what(), limits.compile_work / 1'000'000, limits.compile_bytes >> 20));
}

CompileOutcome check_first_mask(const std::shared_ptr<const Compiled>& compiled,
                                const std::shared_ptr<ByteBudget>& memory) {
  const auto constraint = make_grammar_constraint(compiled, memory, nullptr);
  const auto mask = constraint->allowed_tokens();
  if (const Status failure = constraint->status(); !failure.ok()) {
    return {.result = failure, .is_final = false};
  }
  if (std::ranges::all_of(mask, [](uint32_t word) { return word == 0; })) {
    return {.result = invalid_argument("[grammar] the grammar allows no text")};
  }
  return {.result = compiled};
}

// Refuses a grammar that XGrammar warns of, because XGrammar ignored a part of it and an output
// could violate that part. Rethrows std::bad_alloc, for which CompileCache has a preallocated
// error.
CompileOutcome compile_guarded(const std::shared_ptr<const Vocabulary>& vocabulary,
                               const GrammarSpec& spec, const GrammarLimits& limits,
                               const std::shared_ptr<ByteBudget>& memory,
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
      return {.result = invalid_argument(fmt::format(
                  "[grammar] the grammar is too complex; it takes {} MiB, expected at most {}",
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
    return {.result = too_costly(error, limits)};
  } catch (const WorkStopped&) {
    return {.result = stopped(), .is_final = false};
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return {.result = refused(error.what())};
  }
}

}  // namespace

xgrammar::Grammar schema_grammar(std::string_view schema) {
  return xgrammar::Grammar::FromJSONSchema(std::string(schema), /*any_whitespace=*/true,
                                           /*indent=*/std::nullopt, /*separators=*/std::nullopt,
                                           /*strict_mode=*/true, kMaxIndent);
}

TokenTable make_token_table(const Tokenizer& tokenizer, std::span<const int32_t> end_ids) {
  TokenTable table;
  const int32_t vocab_size = tokenizer.vocab_size();
  table.bytes.resize(static_cast<size_t>(vocab_size));
  table.may_be_allowed.resize(ceil_div(static_cast<size_t>(vocab_size), 32));
  for (const int32_t id : end_ids) {
    if (id >= 0 && id < vocab_size) table.end_ids.push_back(id);
  }
  std::ranges::sort(table.end_ids);
  table.end_ids.erase(std::unique(table.end_ids.begin(), table.end_ids.end()), table.end_ids.end());
  for (int32_t id = 0; id < vocab_size; ++id) {
    if (std::ranges::binary_search(table.end_ids, id)) continue;
    std::string& bytes = table.bytes[static_cast<size_t>(id)];
    bytes = tokenizer.token_bytes(id);
    if (!bytes.empty() && !tokenizer.is_special(id)) set_bit(table.may_be_allowed, id);
  }
  return table;
}

Vocabulary make_vocabulary(TokenTable tokens) {
  xgrammar::TokenizerInfo info(tokens.bytes, xgrammar::VocabType::RAW, std::nullopt,
                               tokens.end_ids);
  return {.tokens = std::move(tokens), .info = std::move(info)};
}

CompileOutcome compile_spec(const std::shared_ptr<const Vocabulary>& vocabulary,
                            const GrammarSpec& spec, const GrammarLimits& limits,
                            const std::shared_ptr<ByteBudget>& memory,
                            const std::atomic<bool>& stop) {
  std::optional<CompileOutcome> outcome;
  const bool ran = run_on_big_stack(
      [&] { outcome.emplace(compile_guarded(vocabulary, spec, limits, memory, stop)); });
  if (!ran) {
    return {.result = resource_exhausted(
                "[grammar] cannot start a thread to compile the grammar; try again later"),
            .is_final = false};
  }
  return std::move(*outcome);
}

bool run_on_big_stack(const std::function<void()>& work) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_t thread{};
  Job job = {.work = work, .thrown = nullptr};
  const bool started = pthread_attr_setstacksize(&attributes, kBigStackBytes) == 0 &&
                       pthread_create(&thread, &attributes, run, &job) == 0;
  pthread_attr_destroy(&attributes);
  if (!started) return false;
  pthread_join(thread, nullptr);
  if (job.thrown) std::rethrow_exception(job.thrown);
  return true;
}

}  // namespace quire::grammar

// Receives XGrammar's messages. A fatal message is caused by a request's grammar, and becomes an
// exception, which compile_spec() and GrammarConstraint catch.
namespace xgrammar {

// Declared in XGrammar's support/logging.h for programs that define XGRAMMAR_LOG_CUSTOMIZE.
[[noreturn]] void LogFatalImpl(const std::string& file, int lineno, const std::string& message);
void LogMessageImpl(const std::string& file, int lineno, int level, const std::string& message);

void LogFatalImpl(const std::string&, int, const std::string& message) {
  throw std::runtime_error(message);
}

void LogMessageImpl(const std::string&, int, int level, const std::string& message) {
  constexpr int kWarning = 2;
  if (level == kWarning) quire::grammar::WarningScope::add(message);
  quire::log_debug("[xgrammar] {}", message);
}

}  // namespace xgrammar
