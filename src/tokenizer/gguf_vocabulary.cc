#include "tokenizer/gguf_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "tokenizer/function_ref.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/ranked_vocabulary.h"
#include "tokenizer/sentencepiece_model.h"
#include "tokenizer/unicode.h"

namespace quire {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, SentencePiece's space
constexpr int kMaxSequenceDepth = 8;                     // of nested sequences

Status cannot_express(std::string_view part, std::string_view got, std::string_view expected) {
  return unimplemented(fmt::format(
      "the tokenizer's {}; got {}, expected {}: GGUF files cannot express it, write a w4a16 "
      "checkpoint instead",
      part, got, expected));
}

std::string quoted(std::string_view text) {
  return fmt::format("\"{}\"", clipped(text));
}

// The tokenizer has already been read successfully, so the fields that it uses have the right
// types.
std::string_view text_or(JsonElement json, std::string_view name, std::string_view fallback) {
  const Result<std::string_view> text = json_or(json, name, fallback);
  return text.ok() ? *text : fallback;
}

bool flag_or(JsonElement json, std::string_view name, bool fallback) {
  const Result<bool> flag = json_or(json, name, fallback);
  return flag.ok() ? *flag : fallback;
}

// Calls visit(json) for a component or, for a Sequence of components, for each part in its field
// `list`.
Status for_each_part(JsonElement json, std::string_view list, int depth,
                     FunctionRef<Status(JsonElement)> visit) {
  if (text_or(json, "type", "") != "Sequence") return visit(json);
  if (depth > kMaxSequenceDepth)
    return invalid_argument("the tokenizer's sequences are nested too deeply");
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::array parts,
                         json_required<simdjson::dom::array>(json, list));
  for (const JsonElement part : parts) {
    QUIRE_RETURN_IF_ERROR(for_each_part(part, list, depth + 1, visit));
  }
  return {};
}

// The regexes of a byte-level tokenizer that split the text one after another.
struct Splits {
  std::vector<std::string> regexes;
  bool is_byte_level = false;
  bool nfc = false;
};

Status add_split(JsonElement json, Splits& splits) {
  const std::string_view type = text_or(json, "type", "");
  if (type == "ByteLevel") {
    if (flag_or(json, "add_prefix_space", true)) {
      return cannot_express("pre_tokenizer ByteLevel", "add_prefix_space true", "false");
    }
    splits.is_byte_level = true;
    if (flag_or(json, "use_regex", true)) splits.regexes.emplace_back(kByteLevelRegex);
    return {};
  }
  if (type == "Digits" && flag_or(json, "individual_digits", false)) {
    splits.regexes.emplace_back(kDigitRegex);
    return {};
  }
  const std::optional<JsonElement> pattern = json_field(json, "pattern");
  const std::string_view regex = pattern ? text_or(*pattern, "Regex", "") : "";
  if (type != "Split" || regex.empty() || text_or(json, "behavior", "") != "Isolated" ||
      flag_or(json, "invert", false)) {
    return cannot_express("pre_tokenizer", quoted(type), "Split by a regex, Digits, ByteLevel");
  }
  splits.regexes.emplace_back(regex);
  return {};
}

Result<Splits> read_splits(JsonElement root) {
  Splits splits;
  if (const auto pre = json_field(root, "pre_tokenizer")) {
    QUIRE_RETURN_IF_ERROR(for_each_part(*pre, "pretokenizers", 0,
                                        [&](JsonElement part) { return add_split(part, splits); }));
  }
  const auto add_normalizer = [&](JsonElement part) -> Status {
    const std::string_view type = text_or(part, "type", "");
    if (type != "NFC") return cannot_express("normalizer", quoted(type), "NFC or none");
    splits.nfc = true;
    return {};
  };
  if (const auto normalizer = json_field(root, "normalizer")) {
    QUIRE_RETURN_IF_ERROR(for_each_part(*normalizer, "normalizers", 0, add_normalizer));
  }
  return splits;
}

class Builder {
 public:
  Builder(const Tokenizer& tokenizer, const VocabularyUse& use) : tokenizer_(tokenizer) {
    out_.tokens.resize(static_cast<size_t>(use.num_tokens));
    out_.types.assign(out_.tokens.size(), int32_t{kGgufUnused});
    for (size_t id = 0; id < out_.tokens.size(); ++id) out_.tokens[id] = fmt::format("[PAD{}]", id);
  }

  Status read(const TokenizerTexts& texts, std::optional<JsonElement> config,
              std::string_view source);
  Status read_config(std::optional<JsonElement> config, const VocabularyUse& use);
  Status read_surround();
  // Compares the two tokenizers.
  Status check() const;
  OwnedGgufVocabulary take() { return std::move(out_); }

 private:
  Status read_json(JsonElement root);
  Status read_sentencepiece(std::string_view bytes, std::optional<JsonElement> config);
  Status read_ranks(const RankedVocabulary& vocabulary);
  bool set(std::string_view text, int64_t id, int32_t type);
  Status read_vocab(JsonElement model);
  Status read_merges(JsonElement model);
  Status read_added(JsonElement root);
  Status add_added(const AddedToken& token, int64_t id);
  Status choose_pre_rule(const Splits& splits, bool ignore_merges);
  Status read_byte_level(JsonElement root, JsonElement model);
  void write_merges();
  Status read_scored(JsonElement root, JsonElement model);
  Status read_spaces(JsonElement root);
  Status score_by_merges();
  std::optional<int32_t> find(JsonElement config, std::string_view name) const;
  bool differs_by_nfc(std::string_view text) const;
  Status compare(const Tokenizer& written, std::string_view text) const;

  const Tokenizer& tokenizer_;
  OwnedGgufVocabulary out_;
  std::vector<std::pair<std::string_view, std::string_view>> merges_;
  bool composes_ = false;  // Quire's reader of the GGUF file applies NFC, but the source does not
};

// Tokens beyond the embedding are omitted, because the model cannot use them.
bool Builder::set(std::string_view text, int64_t id, int32_t type) {
  if (id < 0 || static_cast<size_t>(id) >= out_.tokens.size()) return false;
  out_.tokens[static_cast<size_t>(id)] = text;
  out_.types[static_cast<size_t>(id)] = type;
  return true;
}

Status Builder::read_vocab(JsonElement model) {
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::object vocab,
                         json_required<simdjson::dom::object>(model, "vocab"));
  for (const auto& [text, value] : vocab) {
    QUIRE_ASSIGN_OR_RETURN(const int64_t id, json_value<int64_t>(value, "model.vocab"));
    set(text, id, kGgufNormal);
  }
  return {};
}

Status Builder::read_merges(JsonElement model) {
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::array merges,
                         json_required<simdjson::dom::array>(model, "merges"));
  for (const JsonElement merge : merges) {
    std::string_view text;
    if (merge.get(text) == simdjson::SUCCESS) {
      const size_t space = text.find(' ', 1);
      if (space == std::string_view::npos) {
        return invalid_argument("model.merges has an entry without a space");
      }
      merges_.emplace_back(text.substr(0, space), text.substr(space + 1));
      continue;
    }
    std::string_view left;
    std::string_view right;
    if (merge.at(0).get(left) != simdjson::SUCCESS || merge.at(1).get(right) != simdjson::SUCCESS) {
      return invalid_argument("model.merges has an entry that is neither a text nor two texts");
    }
    merges_.emplace_back(left, right);
  }
  return {};
}

Status Builder::add_added(const AddedToken& token, int64_t id) {
  if (token.single_word || token.lstrip || token.rstrip) {
    return cannot_express(fmt::format("added token \"{}\"", clipped(token.content)),
                          "single_word, lstrip or rstrip", "none of them");
  }
  if (out_.unk_id && id == *out_.unk_id) return {};
  set(token.content, id, token.special ? int32_t{kGgufControl} : int32_t{kGgufUserDefined});
  return {};
}

Status Builder::read_added(JsonElement root) {
  const std::optional<JsonElement> field = json_field(root, "added_tokens");
  if (!field) return {};
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::array tokens,
                         json_value<simdjson::dom::array>(*field, "added_tokens"));
  for (const JsonElement json : tokens) {
    QUIRE_ASSIGN_OR_RETURN(const AddedToken token, AddedTokens::from_json(json));
    QUIRE_ASSIGN_OR_RETURN(const int64_t id, json_required<int64_t>(json, "id"));
    QUIRE_RETURN_IF_ERROR(add_added(token, id));
  }
  return {};
}

Status Builder::choose_pre_rule(const Splits& splits, bool ignore_merges) {
  const std::optional<GgufPreRule> rule = find_gguf_pre_rule(splits.regexes, ignore_merges);
  if (!rule) {
    std::string regexes;
    for (const std::string& regex : splits.regexes) regexes += fmt::format(" \"{}\"", regex);
    return cannot_express("pre_tokenizer",
                          fmt::format("the regexes{} with ignore_merges {}", regexes,
                                      ignore_merges ? "true" : "false"),
                          "those of a pre-tokenizer that llama.cpp has");
  }
  out_.model = "gpt2";
  out_.pre = rule->name;
  if (splits.nfc && !rule->nfc) {
    return cannot_express("normalizer", "NFC",
                          fmt::format("none, with the pre-tokenizer {}", quoted(rule->name)));
  }
  composes_ = rule->nfc && !splits.nfc;
  if (composes_) {
    log_info(
        "[tokenizer] readers of GGUF files join a letter and its combining accent into one "
        "character (NFC) with the pre-tokenizer \"{}\", and this checkpoint does not: only texts "
        "with such pairs, which are rare, get other ids",
        rule->name);
  }
  return {};
}

Status Builder::read_byte_level(JsonElement root, JsonElement model) {
  QUIRE_ASSIGN_OR_RETURN(const Splits splits, read_splits(root));
  QUIRE_RETURN_IF_ERROR(choose_pre_rule(splits, flag_or(model, "ignore_merges", false)));
  write_merges();
  return {};
}

// Omits the merges to tokens beyond the embedding.
void Builder::write_merges() {
  const std::unordered_set<std::string_view> kept(out_.tokens.begin(), out_.tokens.end());
  for (const auto& [left, right] : merges_) {
    if (kept.contains(fmt::format("{}{}", left, right)) && kept.contains(left) &&
        kept.contains(right)) {
      out_.merges.push_back(fmt::format("{} {}", left, right));
    }
  }
}

// Reads whether a space is added before a text, and checks that spaces become U+2581.
Status Builder::read_spaces(JsonElement root) {
  bool prefix = false;
  bool replaces = false;
  const auto normalizer = [&](JsonElement part) -> Status {
    const std::string_view type = text_or(part, "type", "");
    const std::optional<JsonElement> pattern = json_field(part, "pattern");
    const std::string_view from = pattern ? text_or(*pattern, "String", "") : "";
    if (type == "Prepend" && text_or(part, "prepend", "") == kSpaceMark) {
      prefix = true;
    } else if (type == "Replace" && from == " " && text_or(part, "content", "") == kSpaceMark) {
      replaces = true;
    } else {
      return cannot_express("normalizer", quoted(type), "U+2581 in the place of spaces");
    }
    return {};
  };
  const auto pre = [&](JsonElement part) -> Status {
    const std::string_view type = text_or(part, "type", "");
    // Gemma's Split at a space has no effect, because the normalizer has replaced all spaces.
    if (type == "Split" && replaces) return {};
    if (type != "Metaspace" || text_or(part, "replacement", "") != kSpaceMark) {
      return cannot_express("pre_tokenizer", quoted(type), "Metaspace with U+2581, or none");
    }
    replaces = true;
    prefix = text_or(part, "prepend_scheme", "always") != "never" &&
             flag_or(part, "add_prefix_space", true);
    return {};
  };
  if (const auto json = json_field(root, "normalizer")) {
    QUIRE_RETURN_IF_ERROR(for_each_part(*json, "normalizers", 0, normalizer));
  }
  if (const auto json = json_field(root, "pre_tokenizer")) {
    QUIRE_RETURN_IF_ERROR(for_each_part(*json, "pretokenizers", 0, pre));
  }
  if (!replaces) return cannot_express("normalizer", "none", "U+2581 in the place of spaces");
  out_.add_space_prefix = prefix;
  return {};
}

// SentencePiece merges the neighbours whose union has the best score. A tokenizer.json merges the
// neighbours whose merge rule comes first. Both give the same result if all merges to one token are
// adjacent, as in files that were made from a SentencePiece model.
Status Builder::score_by_merges() {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < out_.tokens.size(); ++id) ids.emplace(out_.tokens[id], id);
  out_.scores.assign(out_.tokens.size(), 0.0F);
  std::unordered_set<std::string> scored;
  std::string last;
  for (const auto& [left, right] : merges_) {
    std::string merged = fmt::format("{}{}", left, right);
    if (merged == last) continue;
    if (!scored.insert(merged).second) {
      return cannot_express("merges",
                            fmt::format("merges to \"{}\" in several places", clipped(merged)),
                            "adjacent ones");
    }
    const auto found = ids.find(merged);
    if (found != ids.end()) {
      out_.scores[found->second] = -static_cast<float>(scored.size());
    }
    last = std::move(merged);
  }
  return {};
}

Status Builder::read_scored(JsonElement root, JsonElement model) {
  if (!flag_or(model, "byte_fallback", false)) {
    return cannot_express("model", "a BPE of characters without byte_fallback",
                          "a byte-level BPE, or a BPE with byte_fallback");
  }
  out_.model = "llama";
  QUIRE_RETURN_IF_ERROR(read_spaces(root));
  for (size_t id = 0; id < out_.tokens.size(); ++id) {
    const std::string& text = out_.tokens[id];
    const bool is_byte = text.size() == 6 && text.starts_with("<0x") && text.ends_with(">");
    if (is_byte && out_.types[id] == kGgufNormal) out_.types[id] = kGgufByte;
  }
  const std::string_view unknown = text_or(model, "unk_token", "");
  const auto found = std::ranges::find(out_.tokens, unknown);
  if (unknown.empty() || found == out_.tokens.end()) {
    return cannot_express("model", "no unk_token", "one that the vocabulary has");
  }
  out_.unk_id = static_cast<int32_t>(found - out_.tokens.begin());
  out_.types[static_cast<size_t>(*out_.unk_id)] = kGgufUnknown;
  return score_by_merges();
}

Status Builder::read_json(JsonElement root) {
  const std::optional<JsonElement> model = json_field(root, "model");
  if (!model) return invalid_argument("field \"model\" is missing; expected an object");
  const std::string_view type = text_or(*model, "type", "BPE");
  if (type != "BPE") return cannot_express("model", quoted(type), "BPE");
  QUIRE_RETURN_IF_ERROR(read_vocab(*model));
  QUIRE_RETURN_IF_ERROR(read_merges(*model));
  bool is_byte_level = false;
  if (const auto pre = json_field(root, "pre_tokenizer")) {
    QUIRE_RETURN_IF_ERROR(for_each_part(*pre, "pretokenizers", 0, [&](JsonElement part) -> Status {
      is_byte_level |= text_or(part, "type", "") == "ByteLevel";
      return {};
    }));
  }
  QUIRE_RETURN_IF_ERROR(is_byte_level ? read_byte_level(root, *model) : read_scored(root, *model));
  return read_added(root);
}

Status Builder::read_sentencepiece(std::string_view bytes, std::optional<JsonElement> config) {
  QUIRE_ASSIGN_OR_RETURN(const SentencePieceModel model, SentencePieceModel::parse(bytes));
  if (model.type != SentencePieceModel::Type::kBpe) {
    return cannot_express("model", "a unigram SentencePiece model", "a BPE");
  }
  if (!model.precompiled_charsmap.empty() || model.remove_extra_whitespaces ||
      model.whitespace_as_suffix || !model.escape_whitespaces) {
    return cannot_express("normalizer", "rules of SentencePiece that change the text",
                          "U+2581 in the place of spaces");
  }
  out_.model = "llama";
  out_.add_space_prefix = model.add_dummy_prefix;
  out_.scores.assign(out_.tokens.size(), 0.0F);
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePieceModel::Piece& piece = model.pieces[id];
    if (!set(piece.text, static_cast<int64_t>(id), static_cast<int32_t>(piece.type))) break;
    out_.scores[id] = piece.score;
  }
  out_.unk_id = model.unk_id;
  if (!config) return {};
  QUIRE_ASSIGN_OR_RETURN(const std::vector<AddedTokens::WithId> tokens,
                         AddedTokens::from_decoder(*config));
  for (const AddedTokens::WithId& added : tokens) {
    const std::optional<int32_t> id = tokenizer_.token_to_id(added.token.content);
    if (id) QUIRE_RETURN_IF_ERROR(add_added(added.token, *id));
  }
  return {};
}

Status Builder::read_ranks(const RankedVocabulary& vocabulary) {
  QUIRE_ASSIGN_OR_RETURN(const RankedParts ranked, parts_from_ranks(vocabulary));
  QUIRE_RETURN_IF_ERROR(
      choose_pre_rule({.regexes = {vocabulary.pattern}, .is_byte_level = true}, true));
  const Vocab& vocab = ranked.parts->vocab;
  for (int32_t id = 0; id < vocab.num_ids(); ++id) {
    if (vocab.contains(id)) set(vocab.text(id), id, kGgufNormal);
  }
  for (const Bpe::Pair& merge : ranked.merges) {
    merges_.emplace_back(vocab.text(merge.left), vocab.text(merge.right));
  }
  write_merges();
  for (const AddedTokens::WithId& added : vocabulary.added) {
    QUIRE_RETURN_IF_ERROR(add_added(added.token, added.id));
  }
  return {};
}

Status Builder::read(const TokenizerTexts& texts, std::optional<JsonElement> config,
                     std::string_view source) {
  if (texts.file == "tokenizer.model") return read_sentencepiece(texts.contents, config);
  if (texts.file == "tokenizer.json") {
    // merges_ has texts of the document until write_merges() copies them.
    QUIRE_ASSIGN_OR_RETURN(const JsonDocument json, JsonDocument::parse(texts.contents, source));
    return read_json(json.root());
  }
  QUIRE_ASSIGN_OR_RETURN(const RankedVocabulary vocabulary,
                         read_ranked_vocabulary(texts.file, texts.contents, config));
  return read_ranks(vocabulary);
}

// Returns the id of the token that a field names, by a text or by an object with "content".
std::optional<int32_t> Builder::find(JsonElement config, std::string_view name) const {
  const std::optional<JsonElement> field = json_field(config, name);
  if (!field) return std::nullopt;
  std::string_view text;
  if (field->get(text) != simdjson::SUCCESS &&
      field->at_key("content").get(text) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  const std::optional<int32_t> id = tokenizer_.token_to_id(text);
  return id && static_cast<size_t>(*id) < out_.tokens.size() ? id : std::nullopt;
}

Status Builder::read_config(std::optional<JsonElement> config, const VocabularyUse& use) {
  out_.bos_id = use.bos_id;
  out_.eos_id = use.eos_id;
  if (!config) return {};
  if (const auto bos = find(*config, "bos_token")) out_.bos_id = bos;
  if (const auto eos = find(*config, "eos_token")) out_.eos_id = eos;
  out_.pad_id = find(*config, "pad_token");
  return {};
}

// Reads the tokens that the tokenizer adds around a text.
Status Builder::read_surround() {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int32_t> around, tokenizer_.encode("", true));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int32_t> whole, tokenizer_.encode("a", true));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int32_t> bare, tokenizer_.encode("a", false));
  const auto at = std::search(whole.begin(), whole.end(), bare.begin(), bare.end());
  const std::span<const int32_t> before(whole.begin(), at);
  const std::span<const int32_t> after(at + static_cast<int64_t>(bare.size()), whole.end());
  if (before.size() > 1 || after.size() > 1 || around.size() != before.size() + after.size()) {
    return cannot_express("post_processor", "several tokens before or after a text",
                          "at most a BOS and an EOS");
  }
  out_.add_bos = !before.empty();
  out_.add_eos = !after.empty();
  if (out_.add_bos) out_.bos_id = before.front();
  if (out_.add_eos) out_.eos_id = after.front();
  return {};
}

bool Builder::differs_by_nfc(std::string_view text) const {
  return composes_ && to_normal_form(text, NormalForm::kNfc) != text;
}

Status Builder::compare(const Tokenizer& written, std::string_view text) const {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int32_t> expected, tokenizer_.encode(text, true));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int32_t> got, written.encode(text, true));
  if (got == expected) return {};
  const bool has_excess = std::ranges::any_of(
      expected, [&](int32_t id) { return static_cast<size_t>(id) >= out_.tokens.size(); });
  if (has_excess) return {};
  return cannot_express(fmt::format("rules for the text \"{}\"", clipped(text)),
                        fmt::format("the ids {} by llama.cpp's rules", fmt::join(got, ", ")),
                        fmt::format("{}", fmt::join(expected, ", ")));
}

Status Builder::check() const {
  QUIRE_ASSIGN_OR_RETURN(const auto written, tokenizer_from_gguf(out_.view()));
  std::string previous;
  for (size_t id = 0; id < out_.tokens.size(); ++id) {
    const auto token = static_cast<int32_t>(id);
    std::string text = tokenizer_.decode({&token, 1}, false);
    // Skips parts of characters, and texts that only the GGUF file's tokenizer composes by NFC.
    if (text.find("\xEF\xBF\xBD") != std::string::npos || differs_by_nfc(text)) continue;
    QUIRE_RETURN_IF_ERROR(compare(*written, text));
    // Special tokens are not checked after another text. Rules for white space decide whether that
    // text belongs to the token, and templates avoid such text.
    if (tokenizer_.is_special(token)) continue;
    if (!differs_by_nfc(previous + text)) {
      QUIRE_RETURN_IF_ERROR(compare(*written, previous + text));
    }
    previous = std::move(text);
  }
  return {};
}

Result<std::optional<JsonDocument>> parse_if_any(std::string_view text, std::string_view source) {
  if (text.empty()) return std::optional<JsonDocument>();
  QUIRE_ASSIGN_OR_RETURN(JsonDocument document, JsonDocument::parse(text, source));
  return std::optional<JsonDocument>(std::move(document));
}

Result<OwnedGgufVocabulary> build(const TokenizerTexts& texts, const Tokenizer& tokenizer,
                                  const VocabularyUse& use, std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(const auto config_file, parse_if_any(texts.config, source));
  const std::optional<JsonElement> config =
      config_file ? std::optional(config_file->root()) : std::nullopt;
  Builder builder(tokenizer, use);
  QUIRE_RETURN_IF_ERROR(builder.read(texts, config, source));
  QUIRE_RETURN_IF_ERROR(builder.read_config(config, use));
  QUIRE_RETURN_IF_ERROR(builder.read_surround());
  QUIRE_RETURN_IF_ERROR(builder.check());
  return builder.take();
}

}  // namespace

GgufVocabulary OwnedGgufVocabulary::view() const {
  GgufVocabulary all;
  all.model = model;
  all.pre = pre;
  all.tokens.assign(tokens.begin(), tokens.end());
  all.types.assign(types.begin(), types.end());
  all.scores.assign(scores.begin(), scores.end());
  all.merges.assign(merges.begin(), merges.end());
  all.bos_id = bos_id;
  all.eos_id = eos_id;
  all.unk_id = unk_id;
  all.add_bos = add_bos;
  all.add_eos = add_eos;
  all.add_space_prefix = add_space_prefix;
  return all;
}

Result<OwnedGgufVocabulary> gguf_vocabulary(const TokenizerTexts& texts, const Tokenizer& tokenizer,
                                            const VocabularyUse& use, std::string_view source) {
  Result<OwnedGgufVocabulary> vocabulary = build(texts, tokenizer, use, source);
  if (vocabulary.ok()) return vocabulary;
  const Status& status = vocabulary.status();
  return Status(status.code(), fmt::format("[tokenizer] {}: {}", source, status.message()));
}

}  // namespace quire
