#include "grammar/grammar_compiler.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "grammar/check_spec.h"
#include "grammar/compile_cache.h"

namespace quire {
namespace {

// The cache key of a spec. Different specs have different keys.
std::string cache_key(const GrammarSpec& spec) {
  std::string key = std::to_string(static_cast<int>(spec.kind)) + ":";
  if (spec.kind == GrammarSpec::Kind::kJsonObject) return key;
  if (spec.kind != GrammarSpec::Kind::kChoice) return key + spec.text;
  for (const std::string& choice : spec.choices) {
    key += fmt::format("{}:{}", choice.size(), choice);
  }
  return key;
}

}  // namespace

struct GrammarCompiler::Impl {
  std::shared_ptr<const grammar::Vocabulary> vocabulary;
  GrammarLimits limits;
  std::shared_ptr<grammar::SharedMemory> memory;
  std::shared_ptr<grammar::SharedTime> time;
  grammar::CompileCache cache;
  std::atomic<bool> is_stopped = false;

  Result<ConstraintFactory> factory_of(const grammar::CompileResult& result) const {
    if (!result.ok()) return result.status();
    return ConstraintFactory([compiled = *result, shared_memory = memory, shared_time = time] {
      return grammar::make_grammar_constraint(compiled, shared_memory, shared_time);
    });
  }
};

GrammarCompiler::GrammarCompiler(const Tokenizer& tokenizer, std::span<const int32_t> eos_ids,
                                 const GrammarLimits& limits)
    : impl_(new Impl{.vocabulary = std::make_shared<const grammar::Vocabulary>(
                         grammar::make_vocabulary(grammar::make_token_table(tokenizer, eos_ids))),
                     .limits = limits,
                     .memory = std::make_shared<grammar::SharedMemory>(limits.shared_bytes),
                     .time = std::make_shared<grammar::SharedTime>(
                         limits.shared_burst_ns, grammar::SharedTime::Clock::now()),
                     .cache = grammar::CompileCache(limits.cache_bytes)}) {}

GrammarCompiler::~GrammarCompiler() = default;

Result<ConstraintFactory> GrammarCompiler::compile(const GrammarSpec& spec) {
  if (impl_->vocabulary->tokens.end_ids.empty()) {
    return invalid_argument(
        "[grammar] the model has no end-of-sequence token, so no grammar's answer could end");
  }
  QUIRE_RETURN_IF_ERROR(grammar::check_spec(spec, impl_->limits));
  return impl_->factory_of(impl_->cache.get(cache_key(spec), [&] {
    return grammar::compile_spec(impl_->vocabulary, spec, impl_->limits, impl_->memory,
                                 impl_->is_stopped);
  }));
}

void GrammarCompiler::stop() {
  impl_->is_stopped = true;
}

std::optional<Result<ConstraintFactory>> GrammarCompiler::find(const GrammarSpec& spec) {
  const auto found = impl_->cache.find(cache_key(spec));
  if (!found) return std::nullopt;
  return impl_->factory_of(*found);
}

GrammarStats GrammarCompiler::stats() const {
  GrammarStats stats = impl_->cache.stats();
  stats.held_bytes = impl_->memory->held_bytes();
  return stats;
}

}  // namespace quire
