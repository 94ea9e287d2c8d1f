// Reads tokenizer.json, the format of the `tokenizers` package.
#include "tokenizer/bpe.h"
#include "tokenizer/tokenizer_parts.h"
#include "tokenizer/unigram.h"

namespace quire {
namespace {

Status read_bpe_vocab(JsonElement model, Vocab& vocab) {
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::object tokens,
                         json_required<simdjson::dom::object>(model, "vocab"));
  for (const auto& [token, value] : tokens) {
    QUIRE_ASSIGN_OR_RETURN(const int64_t id, json_value<int64_t>(value, "model.vocab"));
    QUIRE_RETURN_IF_ERROR(vocab.add(token, id));
  }
  return {};
}

// The "type" of the model, or a guess from its other fields, because old files omit it.
Result<std::string_view> model_type(JsonElement model) {
  if (json_field(model, "type")) return json_required<std::string_view>(model, "type");
  if (json_field(model, "merges")) return std::string_view("BPE");
  if (json_field(model, "unk_id")) return std::string_view("Unigram");
  return invalid_argument("field \"model.type\" is missing; expected BPE or Unigram");
}

Status read_model(JsonElement json, TokenizerParts& parts) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view type, model_type(json));
  const bool byte_level = parts.pre_tokenizer.is_byte_level();
  if (type == "BPE") {
    QUIRE_RETURN_IF_ERROR(read_bpe_vocab(json, parts.vocab));
    parts.vocab.index();
    QUIRE_ASSIGN_OR_RETURN(parts.model, bpe_from_json(json, parts.vocab, byte_level));
    return {};
  }
  if (type != "Unigram") return unsupported_type("model", type, "BPE, Unigram");
  if (byte_level) return unimplemented("a Unigram model behind ByteLevel is not supported");
  QUIRE_RETURN_IF_ERROR(read_unigram_vocab(json, parts.vocab));
  parts.vocab.index();
  QUIRE_ASSIGN_OR_RETURN(parts.model, unigram_from_json(json, parts.vocab));
  return {};
}

Status read_added_tokens(JsonElement root, TokenizerParts& parts) {
  const std::optional<JsonElement> field = json_field(root, "added_tokens");
  if (!field) return {};
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::array tokens,
                         json_value<simdjson::dom::array>(*field, "added_tokens"));
  for (const JsonElement json : tokens) {
    QUIRE_ASSIGN_OR_RETURN(AddedToken token, AddedTokens::from_json(json));
    QUIRE_ASSIGN_OR_RETURN(const int64_t id, json_required<int64_t>(json, "id"));
    QUIRE_RETURN_IF_ERROR(parts.added.add(std::move(token), id, parts.vocab, parts.normalizer));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<TokenizerParts>> parts_from_json(std::string_view json,
                                                        std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::parse(json, source));
  const JsonElement root = document.root();
  const std::optional<JsonElement> model = json_field(root, "model");
  if (!model) return invalid_argument("field \"model\" is missing; expected an object");
  auto parts = std::make_unique<TokenizerParts>();
  QUIRE_ASSIGN_OR_RETURN(parts->normalizer, Normalizer::from_json(json_field(root, "normalizer")));
  QUIRE_ASSIGN_OR_RETURN(parts->pre_tokenizer,
                         PreTokenizer::from_json(json_field(root, "pre_tokenizer")));
  QUIRE_ASSIGN_OR_RETURN(parts->decoder, Decoder::from_json(json_field(root, "decoder")));
  QUIRE_ASSIGN_OR_RETURN(parts->post_processor,
                         PostProcessor::from_json(json_field(root, "post_processor")));
  QUIRE_RETURN_IF_ERROR(read_model(*model, *parts));
  QUIRE_RETURN_IF_ERROR(read_added_tokens(root, *parts));
  return parts;
}

}  // namespace quire
