#include "grammar/grammar_compiler.h"

#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <future>
#include <utility>

#include "base/log.h"
#include "grammar/check_spec.h"
#include "grammar/compile_spec.h"

namespace quire {
namespace grammar {
namespace {

CompileOutcome run(const std::function<CompileOutcome()>& compile,
                   CompileOutcome failure) noexcept {
  try {
    return compile();
  } catch (...) {
    return failure;
  }
}

}  // namespace

CompileResult CompileCache::get(const std::string& key,
                                const std::function<CompileOutcome()>& compile) {
  std::unique_lock lock(mutex_);
  if (const auto found = entries_.find(key); found != entries_.end()) {
    ++stats_.num_hits;
    // Keeps the entry alive: it may be erased from the map during the wait.
    const std::shared_ptr<Entry> entry = found->second;
    return wait_for(lock, entry);
  }
  // Nothing may throw between the insertion and publish(); otherwise waiters would block forever.
  // So the list node and the failure are allocated first.
  const auto entry = std::make_shared<Entry>();
  entry->use.push_front(key);
  CompileOutcome failure = {
      .result = resource_exhausted(
          "[grammar] compilation failed, probably for lack of memory; try again later"),
      .is_final = false};
  entries_.emplace(key, entry);
  ++stats_.num_compiled;
  lock.unlock();
  CompileOutcome outcome = run(compile, std::move(failure));
  lock.lock();
  publish(entry, std::move(outcome));
  lock.unlock();
  compiled_.notify_all();
  return *entry->result;
}

std::optional<CompileResult> CompileCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || !found->second->result) return std::nullopt;
  ++stats_.num_hits;
  touch(*found->second);
  return found->second->result;
}

void CompileCache::touch(const Entry& entry) {
  // An entry without bytes is not in by_use_: it was not kept or has been dropped.
  if (entry.num_bytes > 0) by_use_.splice(by_use_.begin(), by_use_, entry.used);
}

CompileResult CompileCache::wait_for(std::unique_lock<std::mutex>& lock,
                                     const std::shared_ptr<Entry>& entry) {
  compiled_.wait(lock, [&] { return entry->result.has_value(); });
  touch(*entry);
  return *entry->result;
}

void CompileCache::publish(const std::shared_ptr<Entry>& entry, CompileOutcome outcome) noexcept {
  entry->result = std::move(outcome.result);
  const CompileResult& result = *entry->result;
  const std::string& key = entry->use.front();
  constexpr size_t kEntryBytes = 512;
  constexpr size_t kRefusalBytes = 2048;  // of a message, whose size one_line() bounds
  const size_t num_bytes =
      2 * key.size() + kEntryBytes + (result.ok() ? (*result)->num_bytes : kRefusalBytes);
  if (!outcome.is_final || num_bytes > max_bytes_) {
    entries_.erase(key);
    return;
  }
  entry->num_bytes = num_bytes;
  entry->used = entry->use.begin();
  by_use_.splice(by_use_.begin(), entry->use);
  stats_.cache_bytes += num_bytes;
  while (stats_.cache_bytes > max_bytes_) {
    const auto oldest = entries_.find(by_use_.back());
    stats_.cache_bytes -= oldest->second->num_bytes;
    oldest->second->num_bytes = 0;
    entries_.erase(oldest);
    by_use_.pop_back();
  }
}

GrammarStats CompileCache::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace grammar

namespace {

// The tool is in the key because a cached refusal names it.
void add_tool(const ToolSchema& schema, std::string& key) {
  key +=
      fmt::format("{}:{}:{}:{}", schema.path.size(), schema.path, schema.tool.size(), schema.tool);
}

// The cache key of a spec. Different specs have different keys.
std::string cache_key(const GrammarSpec& spec) {
  std::string key = std::to_string(static_cast<int>(spec.kind)) + ":";
  if (spec.kind == GrammarSpec::Kind::kJsonObject) return key;
  for (const ToolSchema& schema : spec.tools) add_tool(schema, key);
  for (const GrammarValue& value : spec.values) {
    key += fmt::format("{}:{}:{}:{}:", value.rule, static_cast<int>(value.kind), value.text.size(),
                       value.text);
    for (const ToolSchema& schema : value.tools) add_tool(schema, key);
    for (const std::string& text : value.barred) key += fmt::format("{}:{}", text.size(), text);
  }
  for (const int32_t id : spec.token_ids) key += fmt::format("{},", id);
  if (spec.kind != GrammarSpec::Kind::kChoice) return key + ":" + spec.text;
  for (const std::string& choice : spec.choices) {
    key += fmt::format("{}:{}", choice.size(), choice);
  }
  return key;
}

}  // namespace

struct GrammarCompiler::Impl {
  bool has_end = false;  // the vocabulary has a token that ends a sequence
  std::shared_future<std::shared_ptr<const grammar::Vocabulary>> vocabulary = {};
  GrammarLimits limits;
  std::shared_ptr<ByteBudget> memory;
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
    : impl_(new Impl{.limits = limits,
                     .memory = std::make_shared<ByteBudget>(limits.shared_bytes),
                     .time = std::make_shared<grammar::SharedTime>(
                         limits.shared_burst_ns, grammar::SharedTime::Clock::now()),
                     .cache = grammar::CompileCache(limits.cache_bytes)}) {
  grammar::TokenTable tokens = grammar::make_token_table(tokenizer, eos_ids);
  impl_->has_end = !tokens.end_ids.empty();
  auto make = [tokens = std::move(tokens)]() mutable {
    try {
      return std::make_shared<const grammar::Vocabulary>(
          grammar::make_vocabulary(std::move(tokens)));
    } catch (const std::exception& error) {
      log_error("[grammar] no grammar can be compiled: {}; restart with more memory", error.what());
      throw;
    }
  };
  // If no thread can start, the first compilation sorts the vocabulary.
  constexpr auto kPolicy = std::launch::async | std::launch::deferred;
  impl_->vocabulary = std::async(kPolicy, std::move(make)).share();
}

GrammarCompiler::~GrammarCompiler() = default;

Result<ConstraintFactory> GrammarCompiler::compile(const GrammarSpec& spec) {
  if (!impl_->has_end) {
    return invalid_argument(
        "[grammar] the model has no end-of-sequence token, so a constrained output could not end");
  }
  QUIRE_RETURN_IF_ERROR(grammar::check_spec(spec, impl_->limits));
  return impl_->factory_of(impl_->cache.get(cache_key(spec), [&] {
    return grammar::compile_spec(impl_->vocabulary.get(), spec, impl_->limits, impl_->memory,
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
