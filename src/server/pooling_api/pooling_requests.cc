#include "server/pooling_api/pooling_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <utility>

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

// The fields that all these bodies share. Fields of other servers that this server lacks are
// refused, because ignoring them would change the result.
template <typename Fields, typename Body>
FieldTable<Fields> common_table() {
  constexpr std::string_view kNothingIsCut = "no such field: send a shorter text";
  static constexpr auto kTable = std::to_array<BodyField<Fields>>({
      {kModelField, into<&Body::model>},
      {kPriorityField, into<&Request::priority>},
      {kCacheSaltField, into<&Request::cache_salt>},
      {kAddSpecialTokensField, into<&Request::add_special_tokens>},
      {refused("truncate_prompt_tokens", kNothingIsCut)},
      {refused("max_tokens_per_doc", kNothingIsCut)},
      {refused("max_tokens_per_query", kNothingIsCut)},
      {refused("max_chunks_per_doc", kNothingIsCut)},
      {refused("label_token_ids",
               "no such field: a score compares the probabilities of yes and no")},
      {without_effect("user")},
  });
  return kTable;
}

class EmbeddingsFields {
 public:
  EmbeddingsFields(EmbeddingsRequest& request, const RequestDefaults& defaults)
      : request_(request), limits_(defaults.limits) {
    request_.engine_request.embedding.emplace();
  }

  static FieldTable<EmbeddingsFields> table();
  static FieldTable<EmbeddingsFields> common() {
    return common_table<EmbeddingsFields, EmbeddingsRequest>();
  }
  auto parts() {
    return std::tie(request_, request_.engine_request, *request_.engine_request.embedding);
  }

  FieldError read(std::string_view name, Element value) {
    if (const auto* const row = find_field(table(), name)) return row->read(*this, name, value);
    const auto* const row = find_field(common(), name);
    return row == nullptr ? FieldError() : row->read(*this, name, value);
  }

  FieldError finish() {
    if (!request_.inputs.empty()) return {};
    return field_error("input", "got none, expected text or token ids");
  }

 private:
  FieldError read_input(const Path& path, Element value) {
    return read_prompts(path, value, limits_.max_embedding_inputs, request_.inputs);
  }
  FieldError read_format(const Path& path, Element value) {
    constexpr Field kFormats = only("", kFormatValues, R"("float" or "base64")");
    request_.as_base64 = value.is_string() && value.get_string().value_unsafe() == "base64";
    return refuse(kFormats, path, value);
  }
  static constexpr std::string_view kFormatValues = R"("float" "base64")";

  EmbeddingsRequest& request_;
  const RequestLimits& limits_;
};

FieldTable<EmbeddingsFields> EmbeddingsFields::table() {
  constexpr std::string_view kModelNormalizes =
      "no such field: the model decides whether embeddings are normalized";
  static constexpr auto kTable = std::to_array<BodyField<EmbeddingsFields>>({
      {required({"input", schema(kPromptWords, "EmbeddingInputs"), "At most 2048 inputs."}),
       call<&EmbeddingsFields::read_input>},
      {{"dimensions", integer(1), "Keeps the first numbers of the embedding, normalized again."},
       into<&EmbeddingParams::dimensions>},
      {{"encoding_format", one_of(kFormatValues), "`base64`: of little-endian F32."},
       call<&EmbeddingsFields::read_format>},
      {only("embed_dtype", R"("float32")", R"("float32")")},
      {only("endianness", R"("native" "little")", R"("native" or "little")")},
      {refused("messages", "no such field: send the texts as `input`")},
      {refused("normalize", kModelNormalizes)},
      {refused("use_activation", kModelNormalizes)},
      {refused("activation", kModelNormalizes)},
      {refused("softmax", kModelNormalizes)},
  });
  return kTable;
}

class OllamaEmbeddingFields {
 public:
  OllamaEmbeddingFields(EmbeddingsRequest& request, const RequestDefaults& defaults,
                        EmbeddingShape shape)
      : request_(request), limits_(defaults.limits) {
    request_.engine_request.embedding.emplace();
    request_.shape = shape;
  }

  static FieldTable<OllamaEmbeddingFields> embed_table();
  static FieldTable<OllamaEmbeddingFields> prompt_table();
  static FieldTable<OllamaEmbeddingFields> table();  // of both routes
  auto parts() { return std::tie(request_, *request_.engine_request.embedding); }

  FieldError read(std::string_view name, Element value) {
    const auto own = takes_prompt() ? prompt_table() : embed_table();
    for (const auto& rows : {own, table()}) {
      if (const auto* const row = find_field(rows, name)) return row->read(*this, name, value);
    }
    return {};
  }

  FieldError finish() {
    if (!request_.inputs.empty()) return {};
    return field_error(takes_prompt() ? "prompt" : "input", "got none, expected text");
  }

 private:
  bool takes_prompt() const { return request_.shape == EmbeddingShape::kOllamaPrompt; }
  FieldError read_input(const Path& path, Element value) {
    return read_prompts(path, value, limits_.max_embedding_inputs, request_.inputs);
  }
  FieldError read_prompt(const Path& path, Element value) {
    return read_text(path, value, request_.inputs.emplace_back().text);
  }

  EmbeddingsRequest& request_;
  const RequestLimits& limits_;
};

FieldTable<OllamaEmbeddingFields> OllamaEmbeddingFields::embed_table() {
  static constexpr auto kTable = std::to_array<BodyField<OllamaEmbeddingFields>>({
      {required({"input", schema(kPromptWords, "EmbeddingInputs"), "At most 2048 inputs."}),
       call<&OllamaEmbeddingFields::read_input>},
      {{"dimensions", integer(1), "Keeps the first numbers of the embedding, normalized again."},
       into<&EmbeddingParams::dimensions>},
      {without_effect("truncate", "a text that exceeds the context is refused")},
  });
  return kTable;
}

FieldTable<OllamaEmbeddingFields> OllamaEmbeddingFields::prompt_table() {
  static constexpr auto kTable = std::to_array<BodyField<OllamaEmbeddingFields>>({
      {required({"prompt", kTextValue, "The text."}), call<&OllamaEmbeddingFields::read_prompt>},
  });
  return kTable;
}

FieldTable<OllamaEmbeddingFields> OllamaEmbeddingFields::table() {
  constexpr std::string_view kOperators = "the flags of the server decide";
  static constexpr auto kTable = std::to_array<BodyField<OllamaEmbeddingFields>>({
      {{"model", kTextValue, "A name from /api/tags; without it, the served model."},
       into<&EmbeddingsRequest::model>},
      {without_effect("options", kOperators)},
      {without_effect("keep_alive", kOperators)},
  });
  return kTable;
}

enum class ScoreRoute { kScore, kRerank };

class ScoreFields {
 public:
  ScoreFields(ScoreRequest& request, const RequestDefaults& defaults, ScoreRoute route)
      : request_(request), limits_(defaults.limits), route_(route) {
    request_.instruction = kDefaultInstruction;
  }

  static FieldTable<ScoreFields> score_table();
  static FieldTable<ScoreFields> rerank_table();
  static FieldTable<ScoreFields> table();  // of both routes
  static FieldTable<ScoreFields> common() { return common_table<ScoreFields, ScoreRequest>(); }
  auto parts() { return std::tie(request_, request_.engine_request); }

  FieldError read(std::string_view name, Element value) {
    const auto own = route_ == ScoreRoute::kScore ? score_table() : rerank_table();
    for (const auto& rows : {own, table(), common()}) {
      if (const auto* const row = find_field(rows, name)) return row->read(*this, name, value);
    }
    return {};
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

  FieldError read_queries(const Path& path, Element value) {
    return read_all(path, value, request_.queries);
  }
  FieldError read_documents(const Path& path, Element value) {
    return read_all(path, value, request_.documents);
  }
  FieldError read_query(const Path& path, Element value) {
    request_.queries.resize(1);
    return read_one(path, value, request_.queries.front());
  }
  FieldError read_top_n(const Path& path, Element value) {
    int top_n = 0;
    QUIRE_RETURN_IF_FIELD_ERROR(read_int(path, value, 0, INT_MAX, top_n));
    request_.top_n = static_cast<size_t>(top_n);
    return {};
  }

  // Cohere's clients name the fields of a document by which it is ranked.
  static FieldError read_rank_fields(const Path& path, Element value) {
    std::vector<std::string> names;
    QUIRE_RETURN_IF_FIELD_ERROR(read_texts(path, value, SIZE_MAX, names));
    if (names == std::vector<std::string>{"text"}) return {};
    return unexpected(path, value, "[\"text\"], the only field of a document that is read");
  }

  // Reads a text, or {"text": …}, the form of a document in rerankers' clients.
  FieldError read_one(const Path& path, Element value, std::string& out) {
    if (!value.is_object()) return read_text(path, value, out);
    simdjson::dom::object fields;
    QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
    return read_required(path, fields, "text", out);
  }

  FieldError read_all(const Path& path, Element value, std::vector<std::string>& out) {
    out.clear();
    if (!value.is_array()) return read_one(path, value, out.emplace_back());
    return read_items(
        path, value, static_cast<size_t>(limits_.max_prompts),
        [&](const Path& at, Element item) { return read_one(at, item, out.emplace_back()); });
  }

  ScoreRequest& request_;
  const RequestLimits& limits_;
  ScoreRoute route_;
};

// vLLM has several names for both sides. The JSON schema has one name per side, because it cannot
// express that another name replaces a required field.
FieldTable<ScoreFields> ScoreFields::score_table() {
  using S = ScoreFields;
  constexpr FieldType kTexts = schema("a text, or a list of at most 1024", "ScoredTexts");
  constexpr FieldType kAsText1 = schema("as `text_1`", R"({"type":"null"})");
  constexpr FieldType kAsText2 = schema("as `text_2`", R"({"type":"null"})");
  static constexpr auto kTable = std::to_array<BodyField<S>>({
      {required({"text_1", kTexts, "One, or as many as in text_2."}), call<&S::read_queries>},
      {{"queries", kAsText1, "Another name."}, call<&S::read_queries>},
      {{"data_1", kAsText1, "Another name."}, call<&S::read_queries>},
      {required({"text_2", kTexts, "The texts that are judged."}), call<&S::read_documents>},
      {{"documents", kAsText2, "Another name."}, call<&S::read_documents>},
      {{"items", kAsText2, "Another name."}, call<&S::read_documents>},
      {{"data_2", kAsText2, "Another name."}, call<&S::read_documents>},
  });
  return kTable;
}

FieldTable<ScoreFields> ScoreFields::rerank_table() {
  using S = ScoreFields;
  static constexpr auto kTable = std::to_array<BodyField<S>>({
      {required({"query", schema("a text", "ScoredText"), "The query."}), call<&S::read_query>},
      {required({"documents", schema("a text, or a list of at most 1024", "ScoredTexts"),
                 "The texts that are judged."}),
       call<&S::read_documents>},
      {{"top_n", integer(0), "The number of documents in the response; 0: all."},
       call<&S::read_top_n>},
      {{"return_documents", kBoolean, "The response has the documents; true by default."},
       into<&ScoreRequest::return_documents>},
      {{"rank_fields", list_of(R"({"const":"text"})", 1, 1),
        "`text` alone, the field that is read."},
       check<S::read_rank_fields>},
  });
  return kTable;
}

FieldTable<ScoreFields> ScoreFields::table() {
  constexpr std::string_view kAlwaysOn = "true: a score is a probability";
  constexpr std::string_view kTask = "The task of the judgement. Default: a web search.";
  static constexpr auto kTable = std::to_array<BodyField<ScoreFields>>({
      {{"instruction", kTextValue, kTask}, into<&ScoreRequest::instruction>},
      {{"instruct", kTextValue, kTask}, into<&ScoreRequest::instruction>},
      {only("normalize", "true", kAlwaysOn)},
      {only("use_activation", "true", kAlwaysOn)},
      {only("activation", "true", kAlwaysOn)},
      {only("softmax", "true", kAlwaysOn)},
  });
  return kTable;
}

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

Parsed<EmbeddingsRequest> parse_ollama_embeddings_request(std::string_view body,
                                                          const RequestDefaults& defaults,
                                                          EmbeddingShape shape) {
  Parsed<EmbeddingsRequest> parsed;
  parsed.error =
      read_body(body, defaults.limits, OllamaEmbeddingFields(parsed.request, defaults, shape));
  return parsed;
}

Parsed<ScoreRequest> parse_score_request(std::string_view body, const RequestDefaults& defaults) {
  return parse_scores(body, defaults, ScoreRoute::kScore);
}

Parsed<ScoreRequest> parse_rerank_request(std::string_view body, const RequestDefaults& defaults) {
  return parse_scores(body, defaults, ScoreRoute::kRerank);
}

std::vector<ObjectSchema> pooling_schemas() {
  ObjectSchema embeddings = {"EmbeddingsRequest"};
  embeddings.add(EmbeddingsFields::table());
  embeddings.add(EmbeddingsFields::common());
  ObjectSchema ollama = {"OllamaEmbedRequest"};
  ollama.add(OllamaEmbeddingFields::embed_table());
  ollama.add(OllamaEmbeddingFields::table());
  ObjectSchema ollama_prompt = {"OllamaEmbeddingsRequest"};
  ollama_prompt.add(OllamaEmbeddingFields::prompt_table());
  ollama_prompt.add(OllamaEmbeddingFields::table());
  ObjectSchema score = {"ScoreRequest"};
  score.add(ScoreFields::score_table());
  ObjectSchema rerank = {"RerankRequest"};
  rerank.add(ScoreFields::rerank_table());
  for (ObjectSchema* const object : {&score, &rerank}) {
    object->add(ScoreFields::table());
    object->add(ScoreFields::common());
  }
  return {std::move(embeddings), std::move(ollama), std::move(ollama_prompt), std::move(score),
          std::move(rerank)};
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
