#include "grammar/walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string_view>

#include "support/shared_data.h"
#include "support/value_of.h"

namespace quire::testing {
namespace {

bool is_allowed(const std::vector<uint32_t>& mask, int32_t id) {
  const auto word = static_cast<size_t>(id) / 32;
  return word < mask.size() && ((mask[word] >> (id % 32)) & 1U) != 0;
}

// Returns the first of these texts that is allowed as a token: the closing characters of JSON come
// first.
int32_t closing_token(const std::vector<uint32_t>& mask, const Tokenizer& tokenizer) {
  for (const std::string_view wanted :
       {"\"", "}", "]", ":", "1", "e", "l", "u", "r", "a", "s", ","}) {
    const auto id = tokenizer.token_to_id(wanted);
    if (id && is_allowed(mask, *id) && tokenizer.token_bytes(*id) == wanted) return *id;
  }
  return -1;
}

}  // namespace

GrammarLimits ample_time() {
  constexpr int64_t kHour = 3'600'000'000'000;
  GrammarLimits limits;
  limits.compile_work = INT64_MAX;
  limits.sequence_burst_ns = kHour;
  limits.shared_burst_ns = kHour;
  return limits;
}

std::shared_ptr<const Tokenizer> embedded_tokenizer() {
  static const auto tokenizer = [] {
    return value_of(Tokenizer::load(source_path("models/quire-abacus")));
  }();
  return tokenizer;
}

std::vector<int32_t> allowed_ids(const std::vector<uint32_t>& mask, int vocab_size) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < vocab_size; ++id) {
    if (is_allowed(mask, id)) ids.push_back(id);
  }
  return ids;
}

Walk random_walk(TokenConstraint& constraint, const Tokenizer& tokenizer,
                 std::span<const int32_t> eos_ids, uint64_t seed, int num_free, int max_tokens) {
  std::mt19937_64 random(seed);
  Walk walk;
  const auto is_end = [&](int32_t id) { return std::ranges::count(eos_ids, id) > 0; };
  for (int step = 0; step < max_tokens; ++step) {
    const auto mask = constraint.allowed_tokens();
    const auto allowed = allowed_ids(mask, tokenizer.vocab_size());
    walk.dead_end = allowed.empty();
    if (walk.dead_end) return walk;
    const auto end = std::ranges::find_if(allowed, is_end);
    int32_t id = allowed[random() % allowed.size()];
    if (end != allowed.end() && (step >= num_free || random() % 8 == 0)) id = *end;
    if (step >= num_free && !is_end(id)) {
      const int32_t closing = closing_token(mask, tokenizer);
      if (closing >= 0) id = closing;
    }
    if (!is_end(id) && tokenizer.is_special(id)) walk.complaint = "a special token is allowed";
    if (!constraint.accept(id)) walk.complaint = "an allowed token is refused";
    if (!walk.complaint.empty()) return walk;
    walk.ended = is_end(id);
    if (walk.ended) return walk;
    walk.token_ids.push_back(id);
    walk.text += tokenizer.token_bytes(id);
  }
  return walk;
}

}  // namespace quire::testing
