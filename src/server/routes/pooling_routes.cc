// POST /v1/embeddings, /api/embed, /api/embeddings, /v1/score and /v1/rerank. Embeddings come from
// models that embed. Scores come from models that generate: the probability that their answer about
// a document is "yes".
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <utility>

#include "server/pooling_api/pooling_requests.h"
#include "server/pooling_api/pooling_writers.h"
#include "server/routes/routes.h"

namespace quire::server {
namespace {

// Finds the id of a text that must be one token of the model. A model can score if its vocabulary
// has the prompt's tokens; for other models the route is a 404, as in check_model().
std::optional<ApiError> find_token(const EngineApi& engine, std::string_view text, int32_t& id) {
  const Result<std::vector<int32_t>> ids = engine.encode(text, false, {});
  if (!ids.ok()) return api_error(ids.status());
  if (ids->size() == 1) {
    id = ids->front();
    return std::nullopt;
  }
  return make_api_error(
      404,
      fmt::format(
          "the model cannot score documents: its tokenizer has {} tokens for '{}', expected "
          "one; serve a reranker such as Qwen/Qwen3-Reranker-0.6B",
          ids->size(), text),
      "model", "unsupported_model");
}

// Finds the ids of kRelevantWord and kIrrelevantWord.
std::optional<ApiError> find_words(const EngineApi& engine, std::array<int32_t, 2>& words) {
  int32_t unused = 0;
  for (const std::string_view control : kRerankerControlTokens) {
    if (auto error = find_token(engine, control, unused)) return error;
  }
  if (auto error = find_token(engine, kRelevantWord, words[0])) return error;
  return find_token(engine, kIrrelevantWord, words[1]);
}

// Adds the two requests of each document. Each allows only one token, a different one, but the
// token's log probability does not depend on that restriction.
std::optional<ApiError> add_requests(const ServerState& state, const ScoreRequest& scores,
                                     const std::array<int32_t, 2>& words,
                                     std::vector<Request>& requests) {
  Request common = scores.engine_request;
  common.add_special_tokens = false;  // the prompt has its own
  common.sampling.max_tokens = 1;
  common.sampling.temperature = 0;
  common.sampling.logprobs = 0;
  common.sampling.detokenize = false;
  for (size_t i = 0; i < scores.documents.size(); ++i) {
    MarkedText prompt = reranker_prompt(scores, i);
    Request judged = common;
    judged.prompt = std::move(prompt.text);
    if (auto error = prepare_prompt(state, judged, prompt.untrusted)) {
      return with_prompt(std::move(*error), "documents", i, scores.documents.size());
    }
    judged.prompt.clear();  // the engine takes its ids
    for (const int32_t word : words) {
      judged.sampling.allowed_token_ids = {word};
      requests.push_back(judged);
    }
  }
  return std::nullopt;
}

// Refuses documents that can never be admitted together.
std::optional<ApiError> check_count(const ServerState& state, const ScoreRequest& scores) {
  const AdmissionConfig& admission = state.config.admission;
  const int max_sequences = admission.max_num_seqs + admission.max_num_queued_reqs;
  const int most = max_sequences / 2;
  if (scores.documents.size() <= static_cast<size_t>(most)) return std::nullopt;
  return make_api_error(
      400,
      fmt::format(
          "got {} texts to score, expected at most {} per request: each takes two sequences "
          "of the {} that the server runs and queues",
          scores.documents.size(), most, max_sequences),
      "documents");
}

using MakeScoreWriter = std::unique_ptr<ResponseWriter> (*)(ScoreRequest, ResponseInfo);

void score(ServerState& state, RequestContext&& context, Parsed<ScoreRequest>&& parsed,
           std::string_view id_prefix, MakeScoreWriter make_writer) {
  if (parsed.error) return context.refuse(*parsed.error);
  ScoreRequest& scores = parsed.request;
  if (refuse_unknown_model(state, context, scores.model)) return;
  std::array<int32_t, 2> words = {};
  if (const auto error = find_words(state.engine, words)) return context.refuse(*error);
  if (const auto error = check_count(state, scores)) return context.refuse(*error);
  const Status capacity = state.admission.check_capacity(
      context.key_idx, 2 * static_cast<int>(scores.documents.size()));
  if (!capacity.ok()) return context.refuse(api_error(capacity));
  isolate_by_key(state, context, scores.engine_request);
  PreparedGeneration generation;
  if (const auto error = add_requests(state, scores, words, generation.requests)) {
    return context.refuse(*error);
  }
  ResponseInfo info =
      response_info(state, fmt::format("{}-{}", id_prefix, context.log.id), generation.requests);
  generation.writer = make_writer(std::move(scores), std::move(info));
  generate(state, std::move(context), std::move(generation));
}

void embed(ServerState& state, RequestContext&& context, Parsed<EmbeddingsRequest>&& parsed) {
  if (parsed.error) return context.refuse(*parsed.error);
  EmbeddingsRequest& embeddings = parsed.request;
  if (refuse_unknown_model(state, context, embeddings.model)) return;
  const Status capacity =
      state.admission.check_capacity(context.key_idx, static_cast<int>(embeddings.inputs.size()));
  if (!capacity.ok()) return context.refuse(api_error(capacity));
  isolate_by_key(state, context, embeddings.engine_request);
  PreparedGeneration generation;
  for (size_t i = 0; i < embeddings.inputs.size(); ++i) {
    CompletionPrompt& input = embeddings.inputs[i];
    Request request = embeddings.engine_request;
    request.prompt = std::move(input.text);
    request.prompt_token_ids = std::move(input.token_ids);
    if (auto error = prepare_prompt(state, request, {})) {
      const bool is_prompt = embeddings.shape == EmbeddingShape::kOllamaPrompt;
      return context.refuse(with_prompt(std::move(*error), is_prompt ? "prompt" : "input", i,
                                        embeddings.inputs.size()));
    }
    generation.requests.push_back(std::move(request));
  }
  embeddings.arrived = context.log.arrived;
  ResponseInfo info = response_info(state, "embd-" + context.log.id, generation.requests);
  generation.writer = make_embeddings_writer(std::move(embeddings), std::move(info));
  generate(state, std::move(context), std::move(generation));
}

}  // namespace

void post_embeddings(ServerState& state, RequestContext&& context) {
  auto parsed = parse_embeddings_request(context.request.body, request_defaults(state));
  embed(state, std::move(context), std::move(parsed));
}

void post_ollama_embed(ServerState& state, RequestContext&& context) {
  auto parsed = parse_ollama_embeddings_request(context.request.body, request_defaults(state),
                                                EmbeddingShape::kOllama);
  embed(state, std::move(context), std::move(parsed));
}

void post_ollama_embeddings(ServerState& state, RequestContext&& context) {
  auto parsed = parse_ollama_embeddings_request(context.request.body, request_defaults(state),
                                                EmbeddingShape::kOllamaPrompt);
  embed(state, std::move(context), std::move(parsed));
}

void post_score(ServerState& state, RequestContext&& context) {
  Parsed<ScoreRequest> parsed = parse_score_request(context.request.body, request_defaults(state));
  score(state, std::move(context), std::move(parsed), "score", make_score_writer);
}

void post_rerank(ServerState& state, RequestContext&& context) {
  Parsed<ScoreRequest> parsed = parse_rerank_request(context.request.body, request_defaults(state));
  score(state, std::move(context), std::move(parsed), "rerank", make_rerank_writer);
}

}  // namespace quire::server
