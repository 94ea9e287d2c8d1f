#include "server/structured_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/numbers.h"
#include "engine/engine_internals.h"
#include "server/tools/marker.h"

namespace quire::server {
namespace {

class AfterMarker final : public TokenConstraint {
 public:
  AfterMarker(std::unique_ptr<TokenConstraint> inner, const EngineApi& engine, std::string_view end,
              std::optional<int32_t> end_token)
      : inner_(std::move(inner)), engine_(engine), end_(end), end_token_(end_token) {}

  std::vector<uint32_t> allowed_tokens() override {
    if (!is_before_) return inner_->allowed_tokens();
    constexpr size_t kBitsPerWord = 32;
    const auto vocab_size = static_cast<size_t>(engine_.model_info().vocab_size);
    return std::vector<uint32_t>(ceil_div(vocab_size, kBitsPerWord), ~0U);
  }

  // The bytes that follow the marker in the same token are not passed to the inner constraint. In
  // practice they are white space.
  bool accept(int32_t token_id) override {
    if (!is_before_) {
      if (!inner_->accept(token_id)) return false;
      ++num_inner_tokens_;
      return true;
    }
    matched_before_.push_back(static_cast<uint8_t>(end_.num_matched()));
    if (end_token_) {
      is_before_ = token_id != *end_token_;
      return true;
    }
    for (const char c : engine_.token_bytes(token_id)) {
      if (end_.push(c)) is_before_ = false;
    }
    return true;
  }

  Status status() const override { return inner_->status(); }

  bool can_roll_back() const override { return inner_->can_roll_back(); }

  bool rollback(int num_tokens) override {
    const int num_inner = std::min(num_tokens, num_inner_tokens_);
    if (num_inner > 0 && !inner_->rollback(num_inner)) return false;
    num_inner_tokens_ -= num_inner;
    const auto num_before = static_cast<size_t>(num_tokens - num_inner);
    if (num_before > matched_before_.size()) return false;
    if (num_before == 0) return true;
    matched_before_.resize(matched_before_.size() - num_before + 1);
    end_.resume(matched_before_.back());
    matched_before_.pop_back();
    is_before_ = true;
    return true;
  }

 private:
  std::unique_ptr<TokenConstraint> inner_;
  const EngineApi& engine_;
  Marker end_;
  const std::optional<int32_t> end_token_;
  bool is_before_ = true;
  std::vector<uint8_t> matched_before_;  // end_.num_matched() before each token up to the marker
  int num_inner_tokens_ = 0;
};

}  // namespace

ConstraintCompiler make_constraint_compiler(const Engine& engine) {
  ConstraintCompiler constraints;
  if (!engine.has_tokenizer()) {
    constraints.compile = [](const GrammarSpec&) {
      return invalid_argument(
          "[grammar] the model has no tokenizer, so a grammar cannot restrict its tokens");
    };
    return constraints;
  }
  const auto compiler = std::make_shared<GrammarCompiler>(*EngineInternals::tokenizer(engine),
                                                          engine.model_info().eos_token_ids);
  constraints.compile = [compiler](const GrammarSpec& grammar) {
    return compiler->compile(grammar);
  };
  constraints.find = [compiler](const GrammarSpec& grammar) { return compiler->find(grammar); };
  constraints.stop = [compiler] { compiler->stop(); };
  constraints.stats = [compiler] { return compiler->stats(); };
  return constraints;
}

ConstraintFactory after_marker(ConstraintFactory constraint, const EngineApi& engine,
                               std::string_view end, std::optional<int32_t> end_token) {
  return [constraint = std::move(constraint), &engine, end, end_token] {
    return std::make_unique<AfterMarker>(constraint(), engine, end, end_token);
  };
}

Status GrammarQueue::push(int key_idx, const void* id, int num_sequences, WorkerPool::Task task) {
  std::list<Entry> entry;
  entry.push_back({.id = id, .num_sequences = num_sequences, .task = std::move(task)});
  const std::lock_guard lock(mutex_);
  if (num_requests_ >= limits_.max_requests ||
      (num_requests_ > 0 && num_sequences_ + num_sequences > limits_.max_sequences)) {
    return resource_exhausted(
        fmt::format("[server] {} requests wait for their grammars to be compiled; try again later",
                    num_requests_));
  }
  // run_next() is posted before the entry is inserted: an entry without a posted run_next() would
  // wait forever, but a run_next() without an entry does nothing. The posted run_next() waits for
  // the lock until the entry is inserted. After the post, only creating the key's list allocates
  // memory.
  workers_.post([this] { run_next(); });
  std::list<Entry>& of_key = by_key_[key_idx];
  of_key.splice(of_key.end(), entry);
  ++num_requests_;
  num_sequences_ += num_sequences;
  return {};
}

bool GrammarQueue::remove(const void* id) {
  Entry removed;  // destroyed outside the lock
  const std::lock_guard lock(mutex_);
  for (auto of_key = by_key_.begin(); of_key != by_key_.end(); ++of_key) {
    const auto entry = std::ranges::find(of_key->second, id, &Entry::id);
    if (entry == of_key->second.end()) continue;
    removed = remove_entry(of_key, entry);
    return true;
  }
  return false;
}

int GrammarQueue::num_waiting() const {
  const std::lock_guard lock(mutex_);
  return num_requests_;
}

void GrammarQueue::run_all() {
  bool is_left = true;
  while (is_left) {
    run_guarded("[server] could not run a request that waited for its grammar",
                [&] { is_left = run_next(); });
  }
}

// Runs the oldest request of the next key in turn. The queue can be empty, because requests can be
// removed.
bool GrammarQueue::run_next() {
  Entry next;
  {
    const std::lock_guard lock(mutex_);
    if (by_key_.empty()) return false;
    auto of_key = by_key_.upper_bound(last_key_idx_);
    if (of_key == by_key_.end()) of_key = by_key_.begin();
    last_key_idx_ = of_key->first;
    next = remove_entry(of_key, of_key->second.begin());
  }
  next.task();
  return true;
}

GrammarQueue::Entry GrammarQueue::remove_entry(std::map<int, std::list<Entry>>::iterator of_key,
                                               std::list<Entry>::iterator entry) {
  Entry taken = std::move(*entry);
  of_key->second.erase(entry);
  if (of_key->second.empty()) by_key_.erase(of_key);
  --num_requests_;
  num_sequences_ -= taken.num_sequences;
  return taken;
}

}  // namespace quire::server
