// From a caller's request to a submission: checked, tokenized, resolved to ids. Runs on the
// caller's thread; the engine thread sees only what came through here.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine_core.h"
#include "platform/platform.h"
#include "quire/request.h"
#include "quire/status.h"
#include "tokenizer/tokenizer.h"

namespace quire {

class Admission {
 public:
  struct Limits {
    int vocab_size = 0;
    int max_model_len = 0;
    std::vector<int32_t> eos_ids;
    uint64_t seed = 0;  // of requests that name none
  };

  // Without a tokenizer prompts must be token ids. `platform`, which outlives this, adds its
  // device's own limits.
  Admission(std::shared_ptr<const Tokenizer> tokenizer, Limits limits,
            const Platform* platform = nullptr)
      : tokenizer_(std::move(tokenizer)), limits_(std::move(limits)), platform_(platform) {}

  // Thread-safe. Ids are given in the order of calls.
  Result<Submission> prepare(Request request, Engine::OutputCallback on_output);

 private:
  Result<std::vector<int32_t>> prompt_ids(const Request& request) const;
  Status check_text_wishes(const SamplingParams& params) const;
  // All but the seed.
  Result<SamplingSpec> resolve(const std::shared_ptr<const SamplingParams>& params) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  Limits limits_;
  const Platform* platform_;
  std::atomic<uint64_t> next_id_ = 1;
};

// Each bad word as ids, with and without a leading space, as vLLM spells them. Refused where
// nothing but spaces is left to forbid.
Result<std::vector<std::vector<int32_t>>> bad_words_ids(const Tokenizer& tokenizer,
                                                        const std::vector<std::string>& bad_words);

}  // namespace quire
