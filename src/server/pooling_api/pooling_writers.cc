#include "server/pooling_api/pooling_writers.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

#include "base/digest.h"

namespace quire::server {
namespace {

void write_usage(int num_prompt_tokens, JsonWriter& json) {
  json.key("usage");
  json.begin_object();
  json.field("prompt_tokens", num_prompt_tokens);
  json.field("total_tokens", num_prompt_tokens);
  json.field("completion_tokens", 0);
  json.end_object();
}

// Begins the body's object.
void write_header(const ResponseHeader& header, JsonWriter& json) {
  json.begin_object();
  json.field("id", header.id);
  json.field("created", header.created);
  json.field("model", header.model);
}

// Returns the shortest numbers that read back as the same F32.
std::string number_list(std::span<const float> numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

// Returns the base64 of the numbers as little-endian F32.
std::string base64_of(std::span<const float> numbers) {
  static_assert(std::endian::native == std::endian::little);
  return to_base64({reinterpret_cast<const uint8_t*>(numbers.data()), numbers.size_bytes()});
}

class EmbeddingsWriter final : public ResponseWriter {
 public:
  EmbeddingsWriter(EmbeddingsRequest request, ResponseInfo info)
      : request_(std::move(request)), info_(std::move(info)), embeddings_(request_.inputs.size()) {}

  void add(int choice_idx, Output&& output, std::string& /*out*/) override {
    embeddings_[static_cast<size_t>(choice_idx)] = std::move(output.embedding);
  }

  void finish(std::string& out) override {
    JsonWriter json(out);
    if (request_.shape != EmbeddingShape::kOpenAi) return write_ollama(json);
    write_header(info_.header, json);
    json.field("object", "list");
    json.key("data");
    json.begin_array();
    for (size_t i = 0; i < embeddings_.size(); ++i) {
      json.begin_object();
      json.field("object", "embedding");
      json.field("index", i);
      json.key("embedding");
      if (request_.as_base64) {
        json.value(base64_of(embeddings_[i]));
      } else {
        json.raw(number_list(embeddings_[i]));
      }
      json.end_object();
    }
    json.end_array();
    write_usage(info_.num_prompt_tokens, json);
    json.end_object();
  }

 private:
  // Durations are nanoseconds.
  void write_ollama(JsonWriter& json) const {
    json.begin_object();
    if (request_.shape == EmbeddingShape::kOllamaPrompt) {
      json.key("embedding");
      json.raw(number_list(embeddings_.front()));
      return json.end_object();
    }
    const auto duration = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::steady_clock::now() - request_.arrived);
    json.field("model", request_.model.empty() ? info_.header.model : request_.model);
    json.key("embeddings");
    json.begin_array();
    for (const std::vector<float>& embedding : embeddings_) json.raw(number_list(embedding));
    json.end_array();
    json.field("total_duration", int64_t{duration.count()});
    json.field("load_duration", 0);
    json.field("prompt_eval_count", info_.num_prompt_tokens);
    json.end_object();
  }

  const EmbeddingsRequest request_;
  const ResponseInfo info_;
  std::vector<std::vector<float>> embeddings_;
};

// Collects the scores; the derived classes write them.
class ScoresWriter : public ResponseWriter {
 public:
  ScoresWriter(ScoreRequest request, ResponseInfo info)
      : request_(std::move(request)),
        info_(std::move(info)),
        logprobs_(2 * request_.documents.size()) {}

  void add(int choice_idx, Output&& output, std::string& /*out*/) override {
    if (output.logprobs.empty()) return;
    logprobs_[static_cast<size_t>(choice_idx)] = output.logprobs.front().front().logprob;
  }

 protected:
  std::vector<double> scores() const {
    std::vector<double> all;
    for (size_t i = 0; i < logprobs_.size(); i += 2) {
      all.push_back(1 / (1 + std::exp(logprobs_[i + 1] - logprobs_[i])));
    }
    return all;
  }
  void write_end(JsonWriter& json) const {
    write_usage(info_.num_prompt_tokens / 2, json);  // counts both choices of a document
    json.end_object();
  }
  const ScoreRequest& request() const { return request_; }
  const ResponseHeader& header() const { return info_.header; }

 private:
  const ScoreRequest request_;
  const ResponseInfo info_;
  std::vector<double> logprobs_;
};

class ScoreWriter final : public ScoresWriter {
 public:
  using ScoresWriter::ScoresWriter;

  void finish(std::string& out) override {
    JsonWriter json(out);
    write_header(header(), json);
    json.field("object", "list");
    json.key("data");
    json.begin_array();
    int index = 0;
    for (const double score : scores()) {
      json.begin_object();
      json.field("index", index++);
      json.field("object", "score");
      json.field("score", score);
      json.end_object();
    }
    json.end_array();
    write_end(json);
  }
};

class RerankWriter final : public ScoresWriter {
 public:
  using ScoresWriter::ScoresWriter;

  // The most relevant document comes first; ties are in the order of the request.
  void finish(std::string& out) override {
    const std::vector<double> all = scores();
    std::vector<size_t> order(all.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return all[a] > all[b]; });
    if (request().top_n > 0) order.resize(std::min(order.size(), request().top_n));
    JsonWriter json(out);
    write_header(header(), json);
    json.key("results");
    json.begin_array();
    for (const size_t document : order) {
      json.begin_object();
      json.field("index", document);
      json.field("relevance_score", all[document]);
      if (request().return_documents) {
        json.key("document");
        json.begin_object();
        json.field("text", request().documents[document]);
        json.end_object();
      }
      json.end_object();
    }
    json.end_array();
    write_end(json);
  }
};

}  // namespace

std::unique_ptr<ResponseWriter> make_embeddings_writer(EmbeddingsRequest request,
                                                       ResponseInfo info) {
  return std::make_unique<EmbeddingsWriter>(std::move(request), std::move(info));
}

std::unique_ptr<ResponseWriter> make_score_writer(ScoreRequest request, ResponseInfo info) {
  return std::make_unique<ScoreWriter>(std::move(request), std::move(info));
}

std::unique_ptr<ResponseWriter> make_rerank_writer(ScoreRequest request, ResponseInfo info) {
  return std::make_unique<RerankWriter>(std::move(request), std::move(info));
}

}  // namespace quire::server
