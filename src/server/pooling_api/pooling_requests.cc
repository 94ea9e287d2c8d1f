#include "server/pooling_api/pooling_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <initializer_list>

#include "server/openai/generation_fields.h"

namespace quire::server {
namespace {

constexpr std::string_view kDefaultInstruction =
    "Given a web search query, retrieve relevant passages that answer the query";
constexpr std::string_view kPromptBegin =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    "the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
    "<|im_start|>user\n<Instruct>: ";
constexpr std::string_view kPromptEnd =
    "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";

// Fields of other servers that this one lacks. If it ignored one, the client would get another
// result than it asked for.
struct AbsentField {
  std::string_view name;
  std::string_view expected;
};
constexpr std::string_view kNothingIsCut = "no such field: send a shorter text";
constexpr std::string_view kFixedWords =
    "no such field: a score compares the probabilities of yes and no";
constexpr auto kAbsentFields =
    std::to_array<AbsentField>({{"truncate_prompt_tokens", kNothingIsCut},
                                {"max_tokens_per_doc", kNothingIsCut},
                                {"max_tokens_per_query", kNothingIsCut},
                                {"max_chunks_per_doc", kNothingIsCut},
                                {"label_token_ids", kFixedWords}});

// Fields of vLLM by which a client chooses whether the result is normalized.
constexpr auto kNormalizations =
    std::to_array<std::string_view>({"normalize", "use_activation", "activation", "softmax"});
bool is_normalization(std::string_view name) {
  return std::ranges::find(kNormalizations, name) != kNormalizations.end();
}

// Reads the fields that all of these bodies share. `is_known`: the field is one of them.
FieldError read_common(std::string_view name, Element value, std::string& model, Request& request,
                       bool& is_known) {
  const Path path(name);
  is_known = true;
  if (name == "model") return read_text(path, value, model);
  if (name == "priority") return read_int(path, value, INT_MIN, INT_MAX, request.priority);
  if (name == "cache_salt") return read_cache_salt(path, value, request.cache_salt);
  if (name == "add_special_tokens") return read_bool(path, value, request.add_special_tokens);
  const auto absent = std::ranges::find(kAbsentFields, name, &AbsentField::name);
  if (absent != kAbsentFields.end()) return unexpected(path, value, absent->expected);
  is_known = false;
  return {};
}

// Refuses a text that is not in `accepted`.
FieldError require_text(const Path& path, Element value,
                        std::initializer_list<std::string_view> accepted) {
  std::string text;
  QUIRE_RETURN_IF_FIELD_ERROR(read_text(path, value, text));
  if (std::ranges::find(accepted, text) != accepted.end()) return {};
  return unexpected(path, value, fmt::format("\"{}\"", fmt::join(accepted, "\" or \"")));
}

class EmbeddingsFields {
 public:
  EmbeddingsFields(EmbeddingsRequest& request, const RequestDefaults& defaults)
      : request_(request), limits_(defaults.limits) {
    request_.engine_request.embedding.emplace();
  }

  FieldError read(std::string_view name, Element value) {
    const Path path(name);
    if (name == "input")
      return read_prompts(path, value, limits_.max_embedding_inputs, request_.inputs);
    if (name == "dimensions") {
      return read_int(path, value, 1, INT_MAX, request_.engine_request.embedding->dimensions);
    }
    if (name == "encoding_format") return read_format(path, value);
    if (name == "embed_dtype") return require_text(path, value, {"float32"});
    if (name == "endianness") return require_text(path, value, {"native", "little"});
    if (name == "messages") {
      return unexpected(path, value, "no such field: send the texts as `input`");
    }
    if (is_normalization(name)) {
      return unexpected(path, value,
                        "no such field: the model decides whether embeddings are normalized");
    }
    bool is_known = false;
    return read_common(name, value, request_.model, request_.engine_request, is_known);
  }

  FieldError finish() {
    if (!request_.inputs.empty()) return {};
    return field_error("input", "got none, expected text or token ids");
  }

 private:
  FieldError read_format(const Path& path, Element value) {
    request_.as_base64 = value.is_string() && value.get_string().value_unsafe() == "base64";
    return require_text(path, value, {"float", "base64"});
  }

  EmbeddingsRequest& request_;
  const RequestLimits& limits_;
};

enum class ScoreRoute { kScore, kRerank };

class ScoreFields {
 public:
  ScoreFields(ScoreRequest& request, const RequestDefaults& defaults, ScoreRoute route)
      : request_(request), limits_(defaults.limits), route_(route) {
    request_.instruction = kDefaultInstruction;
  }

  FieldError read(std::string_view name, Element value) {
    const Path path(name);
    if (name == "instruction" || name == "instruct") {
      return read_text(path, value, request_.instruction);
    }
    if (is_normalization(name)) return read_normalization(path, value);
    bool is_known = false;
    QUIRE_RETURN_IF_FIELD_ERROR(
        read_common(name, value, request_.model, request_.engine_request, is_known));
    if (is_known) return {};
    return route_ == ScoreRoute::kScore ? read_score(name, value) : read_rerank(name, value);
  }

  FieldError finish() {
    const bool is_score = route_ == ScoreRoute::kScore;
    if (request_.queries.empty()) {
      return field_error(is_score ? "text_1" : "query", "got none, expected a text");
    }
    if (request_.documents.empty()) {
      return field_error(is_score ? "text_2" : "documents", "got none, expected texts");
    }
    const size_t num_queries = request_.queries.size();
    if (num_queries != 1 && num_queries != request_.documents.size()) {
      return field_error("text_1",
                         fmt::format("got {} texts and {} in text_2, expected 1 or equally many",
                                     num_queries, request_.documents.size()));
    }
    return check_size(is_score ? "text_2" : "documents");
  }

 private:
  static FieldError read_normalization(const Path& path, Element value) {
    bool is_wanted = true;
    QUIRE_RETURN_IF_FIELD_ERROR(read_bool(path, value, is_wanted));
    return is_wanted ? FieldError() : unexpected(path, value, "true: a score is a probability");
  }
  FieldError check_size(std::string_view field) const {
    size_t num_bytes = 0;
    for (size_t i = 0; i < request_.documents.size(); ++i) {
      num_bytes +=
          request_.instruction.size() + request_.query_of(i).size() + request_.documents[i].size();
    }
    if (num_bytes <= limits_.max_scored_bytes) return {};
    return field_error(
        field, fmt::format("got prompts of {} bytes, each of which repeats the query, expected at "
                           "most {}; send fewer or shorter texts per request",
                           num_bytes, limits_.max_scored_bytes));
  }

  // vLLM has several names for both sides.
  FieldError read_score(std::string_view name, Element value) {
    if (name == "text_1" || name == "queries" || name == "data_1") {
      return read_all(name, value, request_.queries);
    }
    if (name == "text_2" || name == "documents" || name == "items" || name == "data_2") {
      return read_all(name, value, request_.documents);
    }
    return {};
  }

  FieldError read_rerank(std::string_view name, Element value) {
    const Path path(name);
    if (name == "query") {
      request_.queries.resize(1);
      return read_one(path, value, request_.queries.front());
    }
    if (name == "documents") return read_all(path, value, request_.documents);
    if (name == "return_documents") return read_bool(path, value, request_.return_documents);
    if (name == "rank_fields") return read_rank_fields(path, value);
    if (name != "top_n") return {};
    int top_n = 0;
    QUIRE_RETURN_IF_FIELD_ERROR(read_int(path, value, 0, INT_MAX, top_n));
    request_.top_n = static_cast<size_t>(top_n);
    return {};
  }

  // Cohere's clients name the fields of a document that count.
  static FieldError read_rank_fields(const Path& path, Element value) {
    std::vector<std::string> names;
    QUIRE_RETURN_IF_FIELD_ERROR(read_texts(path, value, SIZE_MAX, names));
    if (names == std::vector<std::string>{"text"}) return {};
    return unexpected(path, value, "[\"text\"], the only field of a document that is read");
  }

  // A text, or {"text": …} as rerankers' clients send documents.
  FieldError read_one(const Path& path, Element value, std::string& out) {
    if (!value.is_object()) return read_text(path, value, out);
    simdjson::dom::object fields;
    QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
    return read_required(path, fields, "text", out);
  }

  FieldError read_all(const Path& path, Element value, std::vector<std::string>& out) {
    out.clear();
    if (!value.is_array()) return read_one(path, value, out.emplace_back());
    simdjson::dom::array items;
    QUIRE_RETURN_IF_FIELD_ERROR(
        read_list(path, value, static_cast<size_t>(limits_.max_prompts), items));
    for (const Element item : items) {
      const Path at(path, out.size());
      QUIRE_RETURN_IF_FIELD_ERROR(read_one(at, item, out.emplace_back()));
    }
    return {};
  }

  ScoreRequest& request_;
  const RequestLimits& limits_;
  ScoreRoute route_;
};

Parsed<ScoreRequest> parse_scores(std::string_view body, const RequestDefaults& defaults,
                                  ScoreRoute route) {
  Parsed<ScoreRequest> parsed;
  parsed.error = read_body(body, defaults.limits, ScoreFields(parsed.request, defaults, route));
  return parsed;
}

}  // namespace

Parsed<EmbeddingsRequest> parse_embeddings_request(std::string_view body,
                                                   const RequestDefaults& defaults) {
  Parsed<EmbeddingsRequest> parsed;
  parsed.error = read_body(body, defaults.limits, EmbeddingsFields(parsed.request, defaults));
  return parsed;
}

Parsed<ScoreRequest> parse_score_request(std::string_view body, const RequestDefaults& defaults) {
  return parse_scores(body, defaults, ScoreRoute::kScore);
}

Parsed<ScoreRequest> parse_rerank_request(std::string_view body, const RequestDefaults& defaults) {
  return parse_scores(body, defaults, ScoreRoute::kRerank);
}

MarkedText reranker_prompt(const ScoreRequest& request, size_t document) {
  MarkedText prompt;
  prompt.text = kPromptBegin;
  prompt.append_untrusted(request.instruction);
  prompt.text += "\n<Query>: ";
  prompt.append_untrusted(request.query_of(document));
  prompt.text += "\n<Document>: ";
  prompt.append_untrusted(request.documents[document]);
  prompt.text += kPromptEnd;
  return prompt;
}

}  // namespace quire::server
