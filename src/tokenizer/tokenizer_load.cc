// The functions that load a tokenizer: they find and read the files, and name them in errors.

#include "base/file.h"
#include "base/text.h"
#include "tokenizer/ranked_vocabulary.h"
#include "tokenizer/token_model.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_parts.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxModelBytes = size_t{64} << 20;

Status read_bpe_vocab(JsonElement model, RepeatedTexts repeated, Vocab& vocab) {
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::object tokens,
                         json_required<simdjson::dom::object>(model, "vocab"));
  for (const auto& [token, value] : tokens) {
    QUIRE_ASSIGN_OR_RETURN(const int64_t id, json_value<int64_t>(value, "model.vocab"));
    QUIRE_RETURN_IF_ERROR(vocab.add(token, id));
  }
  vocab.index();
  if (repeated == RepeatedTexts::kLastIsEncoded) return {};
  for (const auto& [token, value] : tokens) {
    QUIRE_ASSIGN_OR_RETURN(const int64_t id, json_value<int64_t>(value, "model.vocab"));
    if (token.empty() || vocab.find(token) == id) continue;  // GGUF files may have empty tokens
    return invalid_argument(fmt::format("token \"{}\" has the ids {} and {}; expected one",
                                        clipped(token), id, vocab.find(token).value_or(-1)));
  }
  return {};
}

// The "type" of the model, or a guess from its other fields, because old files do not have it.
Result<std::string_view> model_type(JsonElement model) {
  if (json_field(model, "type")) return json_required<std::string_view>(model, "type");
  if (json_field(model, "merges")) return std::string_view("BPE");
  if (json_field(model, "unk_id")) return std::string_view("Unigram");
  return invalid_argument("field \"model.type\" is missing; expected BPE or Unigram");
}

Status read_model(JsonElement json, RepeatedTexts repeated, TokenizerParts& parts) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view type, model_type(json));
  const bool byte_level = parts.pre_tokenizer.is_byte_level();
  if (type == "BPE") {
    QUIRE_RETURN_IF_ERROR(read_bpe_vocab(json, repeated, parts.vocab));
    QUIRE_ASSIGN_OR_RETURN(parts.model, bpe_from_json(json, parts.vocab, byte_level));
    return {};
  }
  if (type != "Unigram") return unsupported_type("model", type, "BPE, Unigram");
  if (byte_level) return unimplemented("a Unigram model after ByteLevel is not supported");
  QUIRE_ASSIGN_OR_RETURN(std::vector<double> scores, read_unigram_vocab(json, parts.vocab));
  parts.vocab.index();
  QUIRE_ASSIGN_OR_RETURN(parts.model, unigram_from_json(json, parts.vocab, std::move(scores)));
  return {};
}

// Fails if the id belongs to another token, or if the token already has another id. If the
// vocabulary has the text, AddedTokens::add() uses the vocabulary's id, as Hugging Face does.
Status check_own_id(const AddedToken& token, int64_t id, const TokenizerParts& parts) {
  if (id < 0 || id > Vocab::kMaxId) return {};  // AddedTokens::add() reports that
  const auto slot = static_cast<int32_t>(id);
  const AddedToken* const added = parts.added.find(slot);
  const bool is_in_vocab = parts.vocab.contains(slot);
  const std::string_view owner = is_in_vocab        ? parts.vocab.text(slot)
                                 : added != nullptr ? std::string_view(added->content)
                                                    : std::string_view(token.content);
  if (owner != token.content) {
    return invalid_argument(
        fmt::format("the tokens \"{}\" and \"{}\" (added) share the id {}; expected one each",
                    clipped(owner), clipped(token.content), id));
  }
  const std::optional<int32_t> known = parts.added.find(token.content);
  if (!known || *known == slot || parts.vocab.find(token.content)) return {};
  return invalid_argument(fmt::format("added token \"{}\" has the ids {} and {}; expected one",
                                      clipped(token.content), *known, id));
}

Status read_added_tokens(JsonElement root, TokenizerParts& parts) {
  const std::optional<JsonElement> field = json_field(root, "added_tokens");
  if (!field) return {};
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::array tokens,
                         json_value<simdjson::dom::array>(*field, "added_tokens"));
  for (const JsonElement json : tokens) {
    QUIRE_ASSIGN_OR_RETURN(AddedToken token, AddedTokens::from_json(json));
    QUIRE_ASSIGN_OR_RETURN(const int64_t id, json_required<int64_t>(json, "id"));
    QUIRE_RETURN_IF_ERROR(check_own_id(token, id, parts));
    QUIRE_RETURN_IF_ERROR(parts.added.add(std::move(token), id, parts.vocab, parts.normalizer));
  }
  return {};
}

// Refuses a tokenizer.json in which an object has a key twice. Skips the model: read_bpe_vocab()
// checks its vocabulary, and a nested check would take longer than the rest of the load.
Status check_all_keys(JsonElement root) {
  QUIRE_RETURN_IF_ERROR(check_keys(root));
  simdjson::dom::object fields;
  if (root.get(fields) != simdjson::SUCCESS) return {};
  for (const auto& [name, value] : fields) {
    const auto key = name == "model" ? std::nullopt : find_nested_repeated_key(value);
    if (!key) continue;
    return invalid_argument(fmt::format("the key \"{}{}\" appears twice; expected it once",
                                        clipped(name), clipped(*key)));
  }
  return {};
}

Status with_source(const Status& status, std::string_view source) {
  return {status.code(), fmt::format("[tokenizer] {}: {}", source, status.message())};
}

Result<std::shared_ptr<const Tokenizer>> finish(Result<std::unique_ptr<TokenizerParts>> parts,
                                                std::string_view source) {
  if (!parts.ok()) return with_source(parts.status(), source);
  return std::shared_ptr<const Tokenizer>(std::make_shared<Tokenizer>(std::move(parts).value()));
}

// The text of a token, which is written as a string or as an object with "content".
std::optional<std::string_view> token_text(JsonElement config, std::string_view name) {
  const std::optional<JsonElement> field = json_field(config, name);
  std::string_view text;
  if (!field) return std::nullopt;
  if (field->get(text) == simdjson::SUCCESS) return text;
  if (field->at_key("content").get(text) == simdjson::SUCCESS) return text;
  return std::nullopt;
}

std::optional<int32_t> token_id(const TokenizerParts& parts, std::optional<std::string_view> name) {
  if (!name) return std::nullopt;
  if (const auto id = parts.added.find(*name)) return id;
  return parts.vocab.find(*name);
}

// Whether transformers rebuilds the post-processor of this class from tokenizer_config.json. For
// other classes, the post-processor of tokenizer.json applies.
bool rebuilds_post_processor(std::string_view tokenizer_class) {
  for (const std::string_view family :
       {"LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer", "CohereTokenizer"}) {
    if (tokenizer_class == family || tokenizer_class == std::string(family) + "Fast") return true;
  }
  return false;
}

Status apply_end_tokens(JsonElement config, bool is_sentencepiece, TokenizerParts& parts) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view tokenizer_class,
                         json_or(config, "tokenizer_class", std::string_view()));
  const bool has_settings =
      json_field(config, "add_bos_token") || json_field(config, "add_eos_token");
  if (!has_settings || !(is_sentencepiece || rebuilds_post_processor(tokenizer_class))) return {};
  QUIRE_ASSIGN_OR_RETURN(const bool add_bos, json_or(config, "add_bos_token", true));
  QUIRE_ASSIGN_OR_RETURN(const bool add_eos, json_or(config, "add_eos_token", false));
  const auto bos = add_bos ? token_id(parts, token_text(config, "bos_token")) : std::nullopt;
  const auto eos = add_eos ? token_id(parts, token_text(config, "eos_token")) : std::nullopt;
  if ((add_bos && !bos) || (add_eos && !eos)) {
    return invalid_argument(fmt::format("{0} is not a token of the vocabulary; add_{0} needs one",
                                        add_bos && !bos ? "bos_token" : "eos_token"));
  }
  parts.post_processor = PostProcessor::around(bos, eos);
  return {};
}

// Adds the tokens that were added after the SentencePiece model was trained. They may replace
// pieces with the same ids: InternLM2 renames [UNUSED_TOKEN_145] to <|im_end|>.
Status apply_added_tokens(JsonElement config, TokenizerParts& parts) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<AddedTokens::WithId> tokens,
                         AddedTokens::from_decoder(config));
  for (auto& [token, id] : tokens) {
    if (const auto known = parts.added.find(token.content); known && *known != id) {
      return invalid_argument(
          fmt::format("added_tokens_decoder: token \"{}\" has the ids {} and {}; expected one",
                      clipped(token.content), *known, id));
    }
    QUIRE_RETURN_IF_ERROR(parts.added.add(std::move(token), id, parts.vocab, parts.normalizer));
  }
  return {};
}

// `config` is the tokenizer_config.json, if there is one.
Result<std::unique_ptr<TokenizerParts>> parts_from_file(std::string_view file,
                                                        std::string_view contents,
                                                        std::string_view source,
                                                        std::optional<JsonElement> config) {
  if (file == "tokenizer.json") return parts_from_json(contents, source);
  if (file == "tokenizer.model") return parts_from_sentencepiece(contents);
  QUIRE_ASSIGN_OR_RETURN(const RankedVocabulary vocabulary,
                         read_ranked_vocabulary(file, contents, config));
  QUIRE_ASSIGN_OR_RETURN(RankedParts ranked, parts_from_ranks(vocabulary));
  return std::move(ranked.parts);
}

}  // namespace

Result<std::unique_ptr<TokenizerParts>> parts_from_json(std::string_view json,
                                                        std::string_view source,
                                                        RepeatedTexts repeated) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::parse(json, source));
  const JsonElement root = document.root();
  QUIRE_RETURN_IF_ERROR(check_all_keys(root));
  const std::optional<JsonElement> model = json_field(root, "model");
  if (!model) return invalid_argument("field \"model\" is missing; expected an object");
  QUIRE_RETURN_IF_ERROR(check_keys(*model));
  auto parts = std::make_unique<TokenizerParts>();
  QUIRE_ASSIGN_OR_RETURN(parts->normalizer, Normalizer::from_json(json_field(root, "normalizer")));
  QUIRE_ASSIGN_OR_RETURN(parts->pre_tokenizer,
                         PreTokenizer::from_json(json_field(root, "pre_tokenizer")));
  QUIRE_ASSIGN_OR_RETURN(parts->decoder, Decoder::from_json(json_field(root, "decoder")));
  QUIRE_ASSIGN_OR_RETURN(parts->post_processor,
                         PostProcessor::from_json(json_field(root, "post_processor")));
  QUIRE_RETURN_IF_ERROR(read_model(*model, repeated, *parts));
  QUIRE_RETURN_IF_ERROR(read_added_tokens(root, *parts));
  return parts;
}

Status apply_tokenizer_config(JsonElement config, bool is_sentencepiece, TokenizerParts& parts) {
  QUIRE_RETURN_IF_ERROR(check_all_keys(config));
  if (is_sentencepiece) QUIRE_RETURN_IF_ERROR(apply_added_tokens(config, parts));
  return apply_end_tokens(config, is_sentencepiece, parts);
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_json(std::string_view tokenizer_json,
                                                              std::string_view source_name) {
  return finish(parts_from_json(tokenizer_json, source_name), source_name);
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_sentencepiece(
    std::string_view model_bytes, std::string_view source_name) {
  return finish(parts_from_sentencepiece(model_bytes), source_name);
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_ranks(std::string_view file,
                                                               std::string_view contents,
                                                               std::string_view config_json,
                                                               std::string_view source_name) {
  std::optional<JsonDocument> config;
  if (!config_json.empty()) {
    QUIRE_ASSIGN_OR_RETURN(config, JsonDocument::parse(config_json, "tokenizer_config.json"));
  }
  return finish(parts_from_file(file, contents, source_name,
                                config ? std::optional(config->root()) : std::nullopt),
                source_name);
}

Result<std::string_view> find_tokenizer_file(const fs::path& dir) {
  for (const std::string_view file : kTokenizerFiles) {
    QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(dir / file));
    if (exists) return file;
  }
  return std::string_view();
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(const fs::path& dir) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view file, find_tokenizer_file(dir));
  if (file.empty()) {
    return not_found(fmt::format("[tokenizer] {} has no tokenizer; expected {} there", dir.string(),
                                 kTokenizerFileList));
  }
  const fs::path path = dir / file;
  const bool is_json = file.ends_with(".json");
  QUIRE_ASSIGN_OR_RETURN(const std::string bytes,
                         read_file(path, is_json ? JsonLimits().max_bytes : kMaxModelBytes));
  const fs::path config_path = dir / "tokenizer_config.json";
  QUIRE_ASSIGN_OR_RETURN(const bool has_config, path_exists(config_path));
  std::optional<JsonDocument> document;
  if (has_config) {
    QUIRE_ASSIGN_OR_RETURN(document, JsonDocument::load(config_path));
  }
  const auto config = document ? std::optional(document->root()) : std::nullopt;
  Result<std::unique_ptr<TokenizerParts>> parts =
      parts_from_file(file, bytes, path.string(), config);
  if (!parts.ok()) return with_source(parts.status(), path.string());
  const bool is_sentencepiece = file == "tokenizer.model";
  if (config && (is_sentencepiece || file == "tokenizer.json")) {
    const Status applied = apply_tokenizer_config(*config, is_sentencepiece, **parts);
    if (!applied.ok()) return with_source(applied, config_path.string());
  }
  return finish(std::move(parts), path.string());
}

}  // namespace quire
