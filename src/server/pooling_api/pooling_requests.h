// The bodies of POST /v1/embeddings (OpenAI's), /api/embed and /api/embeddings (Ollama's),
// /v1/score (vLLM's) and /v1/rerank (Jina's and Cohere's), and the prompt with which a reranker
// judges a document.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/marked_text.h"
#include "server/openai/requests.h"

namespace quire::server {

// kOllama: {"embeddings": […]}. kOllamaPrompt: the older {"embedding": …} of one prompt.
enum class EmbeddingShape { kOpenAi, kOllama, kOllamaPrompt };

struct EmbeddingsRequest {
  std::string model;
  std::vector<CompletionPrompt> inputs;
  Request engine_request;  // common to all inputs; has no prompt itself
  bool as_base64 = false;  // little-endian F32
  EmbeddingShape shape = EmbeddingShape::kOpenAi;
  std::chrono::steady_clock::time_point arrived = {};  // for the durations of Ollama's API
};

// Document i is scored against query i, or against the only query.
struct ScoreRequest {
  std::string model;
  std::string instruction;
  std::vector<std::string> queries;
  std::vector<std::string> documents;
  Request engine_request;  // common to all documents; has no prompt itself
  // Only /v1/rerank has these.
  size_t top_n = 0;  // 0: all documents
  bool return_documents = true;

  const std::string& query_of(size_t document) const {
    return queries.size() == 1 ? queries.front() : queries[document];
  }
};

// Parse bodies like the functions in openai/requests.h.
Parsed<EmbeddingsRequest> parse_embeddings_request(std::string_view body,
                                                   const RequestDefaults& defaults);
Parsed<EmbeddingsRequest> parse_ollama_embeddings_request(std::string_view body,
                                                          const RequestDefaults& defaults,
                                                          EmbeddingShape shape);
Parsed<ScoreRequest> parse_score_request(std::string_view body, const RequestDefaults& defaults);
Parsed<ScoreRequest> parse_rerank_request(std::string_view body, const RequestDefaults& defaults);

// Returns the descriptions of these bodies.
std::vector<ObjectSchema> pooling_schemas();

// Returns the prompt that Qwen3-Reranker is trained on, for which the model's answer is one of the
// words below. The texts of the request are untrusted: only the template writes control tokens.
MarkedText reranker_prompt(const ScoreRequest& request, size_t document);
inline constexpr std::string_view kRelevantWord = "yes";
inline constexpr std::string_view kIrrelevantWord = "no";
// The control tokens of the prompt, each of which must be one token of the model.
inline constexpr std::string_view kRerankerControlTokens[] = {"<|im_start|>", "<|im_end|>"};

}  // namespace quire::server
