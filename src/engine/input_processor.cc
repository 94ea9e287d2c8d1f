#include "engine/input_processor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/numbers.h"
#include "sample/sampling_fields.h"

namespace quire {

Result<std::vector<std::vector<int32_t>>> bad_words_ids(const Tokenizer& tokenizer,
                                                        const std::vector<std::string>& bad_words) {
  std::vector<std::vector<int32_t>> all;
  for (const std::string& word : bad_words) {
    const size_t begin = std::min(word.find_first_not_of(' '), word.size());
    const std::string bare = word.substr(begin);
    QUIRE_ASSIGN_OR_RETURN(const std::vector<int32_t> plain, tokenizer.encode(bare, false));
    QUIRE_ASSIGN_OR_RETURN(const std::vector<int32_t> spaced, tokenizer.encode(" " + bare, false));
    if (plain.empty()) {
      return invalid_argument(fmt::format(
          "[request] bad_words: got '{}', expected words of more than spaces; logit_bias forbids "
          "a token by its id",
          word));
    }
    all.push_back(plain);
    if (spaced.size() == plain.size() && spaced.front() != plain.front()) all.push_back(spaced);
  }
  return all;
}

Result<std::vector<int32_t>> InputProcessor::prompt_ids(const Request& request) const {
  std::vector<int32_t> ids = request.prompt_token_ids;
  if (ids.empty() && tokenizer_ == nullptr) {
    return invalid_argument("[request] the model has no tokenizer; expected prompt_token_ids");
  }
  if (ids.empty()) {
    QUIRE_ASSIGN_OR_RETURN(ids, tokenizer_->encode(request.prompt, request.add_special_tokens));
  }
  if (ids.empty()) {
    return invalid_argument("[request] the prompt is empty; expected at least one token");
  }
  for (const int32_t id : ids) {
    if (id < 0 || id >= limits_.vocab_size) {
      return invalid_argument(fmt::format(
          "[request] prompt token id is not in the vocabulary; got {}, expected 0 to {}", id,
          limits_.vocab_size - 1));
    }
  }
  // A prompt to embed needs no room for an output token.
  const int num_output = request.embedding ? 0 : 1;
  if (ids.size() + num_output > static_cast<size_t>(limits_.max_model_len)) {
    if (request.embedding) {
      return invalid_argument(fmt::format(
          "[request] the prompt is too long; got {} tokens, expected at most {} (max_model_len)",
          ids.size(), limits_.max_model_len));
    }
    return invalid_argument(fmt::format(
        "[request] the prompt is too long; got {} tokens, expected at most {} (max_model_len {} "
        "less one token of output)",
        ids.size(), limits_.max_model_len - 1, limits_.max_model_len));
  }
  return ids;
}

Status InputProcessor::check_kind(const Request& request) const {
  if (!request.embedding) {
    if (limits_.embedding_size == 0) return {};
    return invalid_argument(
        "[request] the model embeds prompts and does not generate text; ask for the prompt's "
        "embedding, or use a model that generates");
  }
  if (limits_.embedding_size == 0) {
    return invalid_argument(
        "[request] the model generates text and has no embeddings; use an embedding model: a "
        "checkpoint whose modules.json has a Pooling module");
  }
  const int dimensions = request.embedding->dimensions;
  if (dimensions >= 0 && dimensions <= limits_.embedding_size) return {};
  return invalid_argument(fmt::format("[embedding] dimensions; got {}, expected 1 to {}",
                                      dimensions, limits_.embedding_size));
}

Status InputProcessor::check_replica(const Request& request) const {
  const int rank = request.data_parallel_rank.value_or(0);
  if (rank >= 0 && rank < limits_.num_replicas) return {};
  return invalid_argument(
      fmt::format("[request] data_parallel_rank: got {}, expected 0 to {}: the model has {} "
                  "(`data_parallel_size`)",
                  rank, limits_.num_replicas - 1,
                  limits_.num_replicas == 1 ? "one replica"
                                            : fmt::format("{} replicas", limits_.num_replicas)));
}

// Stop strings and bad words need text; without a tokenizer they would be dropped silently.
Status InputProcessor::check_text_params(const SamplingParams& params) const {
  if (tokenizer_ == nullptr && !(params.stop.empty() && params.bad_words.empty())) {
    return invalid_argument(
        "[request] the model has no tokenizer; expected stop_token_ids instead of stop, and no "
        "bad_words");
  }
  if (!params.detokenize && !params.stop.empty()) {
    return invalid_argument("[request] stop needs text; expected detokenize to be true");
  }
  return {};
}

Result<SamplingSpec> InputProcessor::resolve(
    const std::shared_ptr<const SamplingParams>& params) const {
  SamplingSpec spec = {.params = params, .seed = 0, .end_token_ids = params->stop_token_ids};
  // As in vLLM, min_tokens forbids end-of-sequence even when ignore_eos would not stop at it.
  spec.end_token_ids.insert(spec.end_token_ids.end(), limits_.eos_ids.begin(),
                            limits_.eos_ids.end());
  if (tokenizer_ != nullptr) {
    QUIRE_ASSIGN_OR_RETURN(spec.bad_words_ids, bad_words_ids(*tokenizer_, params->bad_words));
  }
  return spec;
}

Result<Submission> InputProcessor::prepare(Request request, Engine::OutputCallback on_output) {
  QUIRE_RETURN_IF_ERROR(check_kind(request));
  QUIRE_RETURN_IF_ERROR(check_replica(request));
  if (request.embedding) {
    request.sampling = {};
    request.sampling.detokenize = false;
    request.make_constraint = nullptr;
  }
  QUIRE_RETURN_IF_ERROR(
      validate_sampling_params(request.sampling, limits_.vocab_size, limits_.max_model_len));
  QUIRE_RETURN_IF_ERROR(check_text_params(request.sampling));
  QUIRE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, prompt_ids(request));
  std::ranges::sort(request.sampling.stop_token_ids);  // required by check_stop_token
  const auto params = std::make_shared<const SamplingParams>(std::move(request.sampling));
  const auto num_prompt = static_cast<int>(ids.size());
  const auto n = static_cast<uint64_t>(params->n);
  const uint64_t first_id = next_id_.fetch_add(n);
  Submission submission;
  submission.id = first_id;
  submission.on_output = std::move(on_output);
  submission.replica = request.data_parallel_rank;
  submission.session_id = std::move(request.session_id);
  QUIRE_ASSIGN_OR_RETURN(SamplingSpec resolved, resolve(params));
  if (platform_ != nullptr) {
    QUIRE_RETURN_IF_ERROR(platform_->check(resolved, limits_.vocab_size, limits_.max_model_len));
  }
  SampleOutput::Start start = SampleOutput::start_of(tokenizer_.get(), resolved, std::move(ids));
  if (request.embedding) start.embedding = {*request.embedding, limits_.normalizes};
  const auto prompt_hashes = std::make_shared<std::vector<BlockHash>>();
  for (uint64_t i = 0; i < n; ++i) {
    resolved.seed = params->seed ? *params->seed + i : mix(limits_.seed ^ mix(first_id + i));
    const auto spec = std::make_shared<const SamplingSpec>(resolved);
    auto seq = std::make_unique<Sequence>();
    seq->id = first_id + i;
    seq->priority = request.priority;
    seq->arrival = first_id + i;
    seq->cache_salt = request.cache_salt;
    seq->sampling = spec;
    seq->token_ids = start.prompt_ids;
    seq->prompt_hashes = prompt_hashes;
    seq->num_prompt_tokens = num_prompt;
    seq->num_history_tokens = request.num_history_tokens;
    seq->max_total_tokens =
        request.embedding
            ? num_prompt + 1
            : num_prompt + std::min(params->max_tokens, limits_.max_model_len - num_prompt);
    seq->is_constrained = request.make_constraint != nullptr;
    submission.seqs.push_back(std::move(seq));
    submission.sample_outputs.emplace_back(
        start, spec, limits_.eos_ids, static_cast<int>(i),
        request.make_constraint ? request.make_constraint() : nullptr);
  }
  return submission;
}

}  // namespace quire
