// Turns a caller's request into a submission: checks it, tokenizes the prompt and resolves strings
// to token ids. Runs on the caller's thread; the engine thread receives only valid submissions.
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

class InputProcessor {
 public:
  struct Limits {
    int vocab_size = 0;
    int max_model_len = 0;
    std::vector<int32_t> eos_ids;
    uint64_t seed = 0;        // of requests without a seed
    int embedding_size = 0;   // ModelInfo::embedding_size
    bool normalizes = false;  // embeddings have length 1
    int num_replicas = 1;
  };

  // Without a tokenizer, prompts must be token ids. `platform` adds the limits of its device; it
  // must outlive this object.
  InputProcessor(std::shared_ptr<const Tokenizer> tokenizer, Limits limits,
                 const Platform* platform = nullptr)
      : tokenizer_(std::move(tokenizer)), limits_(std::move(limits)), platform_(platform) {}

  // Thread-safe. Ids ascend in the order of calls.
  Result<Submission> prepare(Request request, Engine::OutputCallback on_output);

 private:
  Result<std::vector<int32_t>> prompt_ids(const Request& request) const;
  // Fails if the request asks for text and the model embeds, or the reverse.
  Status check_kind(const Request& request) const;
  Status check_replica(const Request& request) const;
  Status check_text_params(const SamplingParams& params) const;
  // Resolves everything except the seed.
  Result<SamplingSpec> resolve(const std::shared_ptr<const SamplingParams>& params) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  Limits limits_;
  const Platform* platform_;
  std::atomic<uint64_t> next_id_ = 1;
};

// The token ids of each bad word, with and without a leading space, as in vLLM. Fails if a word
// consists of spaces only.
Result<std::vector<std::vector<int32_t>>> bad_words_ids(const Tokenizer& tokenizer,
                                                        const std::vector<std::string>& bad_words);

}  // namespace quire
