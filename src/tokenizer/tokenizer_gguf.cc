#include "tokenizer/tokenizer_gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <deque>
#include <set>
#include <utility>

#include "base/json_writer.h"
#include "base/text.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/scanners.h"
#include "tokenizer/sentencepiece_model.h"
#include "tokenizer/token_model.h"
#include "tokenizer/tokenizer_parts.h"

namespace quire {
namespace {

// A reply of gpt-oss has several messages. All of them except the last end with kEndOfMessage.
constexpr std::string_view kEndOfMessage = "<|end|>";
constexpr std::string_view kReturn = "<|return|>";
constexpr std::string_view kCall = "<|call|>";

constexpr std::string_view kDigit = R"(\p{N})";
// The four regexes of llama.cpp's "default".
constexpr std::string_view kPunctuation = R"([\p{P}\$\+<=>\^~\|]+)";
constexpr std::string_view kWords =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
constexpr std::string_view kDigits = R"(\p{N}+)";
constexpr std::string_view kThreeDigits = "[0-9][0-9][0-9]";
// DeepSeek's regexes. They are for all vocabularies before DeepSeek-V3, for "deepseek-llm", for
// "deepseek-coder" and for "deepseek-v3".
constexpr std::string_view kLineEnd = R"([\r\n])";
constexpr std::string_view kHanAndHangul = R"([一-龥ࠀ-一가-퟿]+)";
constexpr std::string_view kCasedLetters =
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)";
constexpr std::string_view kAsciiPunctuation = R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)";
constexpr std::string_view kLastSpaces = R"(\s+$)";
constexpr std::string_view kLetters = R"(\s?\p{L}+)";
constexpr std::string_view kAllPunctuation = R"(\s?\p{P}+)";
constexpr std::string_view kUpToThreeDigits = R"(\p{N}{1,3})";
constexpr std::string_view kHanAndKana = R"([一-龥぀-ゟ゠-ヿ]+)";

// Qwen2's regex, except that marks belong to words.
constexpr std::string_view kQwen35Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// A pre-tokenizer: regexes that split the text one after another.
struct PreRule {
  std::string_view name = {};
  std::array<std::string_view, 6> splits = {};  // empty: unused
  bool ignore_merges = false;                   // a word that is itself a token becomes that token,
                                                // without merges
  bool adds_bos = false;                        // if the file does not state it
  bool nfc = false;            // the checkpoint's tokenizer composes characters first
  bool byte_fallback = false;  // characters without a token become tokens of bytes
};

constexpr std::array kPreRules = {
    PreRule{"llama-bpe", {scan::kLlama3Regex}, true, true},
    PreRule{"llama3", {scan::kLlama3Regex}, true, true},
    PreRule{"llama-v3", {scan::kLlama3Regex}, true, true},
    PreRule{"falcon3", {scan::kLlama3Regex}, true, true},
    PreRule{"lfm2", {scan::kLlama3Regex}, true, true},
    PreRule{"smaug-bpe", {scan::kLlama3Regex}},
    PreRule{"qwen2", {scan::kQwen2Regex}, false, false, true},
    PreRule{"qwen35", {kQwen35Regex}, false, false, true},
    PreRule{"deepseek-r1-qwen", {scan::kQwen2Regex}, false, false, true},
    PreRule{"deepseek-llm",
            {kLineEnd, kCasedLetters, kAsciiPunctuation, kLastSpaces, kHanAndHangul, kDigit}},
    PreRule{"deepseek-coder", {kLineEnd, kLetters, kAllPunctuation, kHanAndHangul, kDigit}},
    PreRule{"deepseek-v3", {kUpToThreeDigits, kHanAndKana, scan::kDeepSeekV3Regex}},
    PreRule{"tekken", {scan::kTekkenRegex}, true, true},
    PreRule{"kimi-k2", {scan::kKimiRegex}, true},
    PreRule{"gpt-4o", {scan::kO200kRegex}, true},
    PreRule{"default", {kPunctuation, kWords, kDigits, kThreeDigits}},
    PreRule{"gpt-2", {scan::kGpt2Regex}},
    PreRule{"mellum", {scan::kGpt2Regex}},
    PreRule{"smollm", {kDigit, scan::kGpt2Regex}},
    PreRule{"starcoder", {kDigit, scan::kGpt2Regex}},
    PreRule{"refact", {kDigit, scan::kGpt2Regex}},
};

Status check_lists(const GgufVocabulary& vocabulary) {
  const size_t count = vocabulary.tokens.size();
  if (count == 0) {
    return invalid_argument("tokenizer.ggml.tokens; got nothing, expected a list of texts");
  }
  if (!vocabulary.types.empty() && vocabulary.types.size() != count) {
    return invalid_argument(
        fmt::format("tokenizer.ggml.token_type; got {} entries, expected one per token, {}",
                    vocabulary.types.size(), count));
  }
  for (const int64_t type : vocabulary.types) {
    if (type >= kGgufNormal && type <= kGgufByte) continue;
    return invalid_argument(
        fmt::format("tokenizer.ggml.token_type; got {}, expected 1 to 6", type));
  }
  for (const auto& [name, id] :
       {std::pair("bos", vocabulary.bos_id), std::pair("eos", vocabulary.eos_id),
        std::pair("unknown", vocabulary.unk_id)}) {
    if (!id || (*id >= 0 && *id < static_cast<int64_t>(count))) continue;
    return invalid_argument(
        fmt::format("tokenizer.ggml.{}_token_id; got {}, expected 0 to {}", name, *id, count - 1));
  }
  return {};
}

int64_t type_of(const GgufVocabulary& vocabulary, size_t id) {
  if (ends_gguf_replies(vocabulary.tokens[id])) return kGgufControl;
  return vocabulary.types.empty() ? int64_t{kGgufNormal} : vocabulary.types[id];
}

// Fails if a byte-level vocabulary would drop or split text: without merges every text becomes
// single bytes, and a byte without a token disappears. Vocabularies that were trained without an
// initial alphabet, such as SmolLM2's, lack control bytes and bytes that valid UTF-8 has rarely or
// never, so only printable ASCII is required.
Status check_byte_level(const GgufVocabulary& vocabulary) {
  if (vocabulary.merges.empty()) {
    return invalid_argument(
        "tokenizer.ggml.merges; got nothing, expected the merges of a byte-level BPE: convert the "
        "checkpoint again, or name its directory with tokenizer.json by `tokenizer`");
  }
  constexpr size_t kMaxSpelling = 2;  // bytes of the character that stands for a byte
  std::bitset<256> bytes;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const int64_t type = type_of(vocabulary, id);
    if ((type != kGgufNormal && type != kGgufByte) || vocabulary.tokens[id].size() > kMaxSpelling) {
      continue;
    }
    const std::optional<std::string> raw = unspell_bytes(vocabulary.tokens[id]);
    if (raw && raw->size() == 1) bytes.set(static_cast<unsigned char>(raw->front()));
  }
  for (unsigned char byte = ' '; byte <= '~'; ++byte) {
    if (bytes[byte]) continue;
    return invalid_argument(fmt::format(
        "tokenizer.ggml.tokens; got no token of the character \"{}\", expected one per printable "
        "ASCII character: convert the checkpoint again, or name its directory with tokenizer.json "
        "by `tokenizer`",
        static_cast<char>(byte)));
  }
  return {};
}

// The number of tokens without the unused tokens at the end, which pad the model's embedding.
size_t num_used(const GgufVocabulary& vocabulary) {
  size_t count = vocabulary.tokens.size();
  while (count > 1 && type_of(vocabulary, count - 1) == kGgufUnused) --count;
  return count;
}

Result<PreRule> find_pre_rule(std::string_view name) {
  std::string known;
  for (const PreRule& rule : kPreRules) {
    if (rule.name == name) return rule;
    known += known.empty() ? "" : ", ";
    known += rule.name;
  }
  return unimplemented(fmt::format(
      "tokenizer.ggml.pre; got {}, expected one of {}: name the checkpoint's directory with "
      "tokenizer.json by `tokenizer`",
      name.empty() ? "nothing" : fmt::format("\"{}\"", clipped(name)), known));
}

void write_pre_tokenizer(const PreRule& rule, JsonWriter& json) {
  json.key("pre_tokenizer");
  json.begin_object();
  json.field("type", "Sequence");
  json.key("pretokenizers");
  json.begin_array();
  for (const std::string_view regex : rule.splits) {
    if (regex.empty()) continue;
    json.begin_object();
    json.field("type", "Split");
    json.key("pattern");
    json.begin_object();
    json.field("Regex", regex);
    json.end_object();
    json.field("behavior", "Isolated");
    json.field("invert", false);
    json.end_object();
  }
  json.begin_object();
  json.field("type", "ByteLevel");
  json.field("add_prefix_space", false);
  json.field("use_regex", false);
  json.end_object();
  json.end_array();
  json.end_object();
}

void write_model(const GgufVocabulary& vocabulary, const PreRule& rule, size_t count,
                 JsonWriter& json) {
  json.key("model");
  json.begin_object();
  json.field("type", "BPE");
  json.field("ignore_merges", rule.ignore_merges);
  json.field("byte_fallback", rule.byte_fallback);
  json.key("vocab");
  json.begin_object();
  for (size_t id = 0; id < count; ++id) {
    const int64_t type = type_of(vocabulary, id);
    if (type == kGgufNormal || type == kGgufByte) json.field(vocabulary.tokens[id], id);
  }
  json.end_object();
  json.key("merges");
  json.begin_array();
  for (const std::string_view merge : vocabulary.merges) json.value(merge);
  json.end_array();
  json.end_object();
}

// Writes the tokens that are matched anywhere in a text: control tokens and user-defined tokens.
void write_added_tokens(const GgufVocabulary& vocabulary, size_t count, JsonWriter& json) {
  json.key("added_tokens");
  json.begin_array();
  for (size_t id = 0; id < count; ++id) {
    const int64_t type = type_of(vocabulary, id);
    if (type == kGgufNormal || type == kGgufByte) continue;
    json.begin_object();
    json.field("id", id);
    json.field("content", vocabulary.tokens[id]);
    json.field("normalized", false);
    json.field("special", type != kGgufUserDefined);
    json.end_object();
  }
  json.end_array();
}

// A byte-level BPE is converted back to a tokenizer.json, so that one reader handles both.
std::string byte_level_json(const GgufVocabulary& vocabulary, const PreRule& rule) {
  const size_t count = num_used(vocabulary);
  JsonWriter json;
  json.begin_object();
  if (rule.nfc) {
    json.key("normalizer");
    json.raw(R"({"type":"NFC"})");
  }
  write_pre_tokenizer(rule, json);
  json.key("decoder");
  json.raw(R"({"type":"ByteLevel"})");
  write_model(vocabulary, rule, count, json);
  write_added_tokens(vocabulary, count, json);
  json.end_object();
  return json.take();
}

// A BPE of characters with spaces as "▁", and with tokens of bytes for other characters. Texts are
// not split before their merges.
std::string character_json(const GgufVocabulary& vocabulary) {
  const size_t count = num_used(vocabulary);
  JsonWriter json;
  json.begin_object();
  json.key("normalizer");
  json.raw(R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})");
  json.key("decoder");
  json.raw(R"({"type":"Sequence","decoders":[)"
           R"({"type":"Replace","pattern":{"String":"▁"},"content":" "},)"
           R"({"type":"ByteFallback"},{"type":"Fuse"}]})");
  write_model(vocabulary, {.byte_fallback = true}, count, json);
  write_added_tokens(vocabulary, count, json);
  json.end_object();
  return json.take();
}

// The token for unknown characters: the token that the file names; otherwise the token of type
// "unknown"; otherwise <unk>. llama.cpp's converter gives every special token of a checkpoint the
// type of control tokens, so few files have a token of type "unknown".
std::optional<size_t> find_unknown(const GgufVocabulary& vocabulary, size_t count) {
  if (vocabulary.unk_id) return static_cast<size_t>(*vocabulary.unk_id);
  const auto found = std::ranges::find(vocabulary.types, int64_t{kGgufUnknown});
  if (found != vocabulary.types.end()) {
    return static_cast<size_t>(found - vocabulary.types.begin());
  }
  for (size_t id = 0; id < count; ++id) {
    if (vocabulary.tokens[id] == "<unk>") return id;
  }
  return std::nullopt;
}

// Returns whether every byte has a token. Otherwise some characters need an unknown token.
bool has_all_bytes(const std::set<std::string_view>& tokens) {
  for (int byte = 0; byte < 256; ++byte) {
    if (!tokens.contains(byte_token(static_cast<unsigned char>(byte)))) return false;
  }
  return true;
}

std::string mark_spaces(std::string_view text) {
  std::string marked;
  for (const char c : text) c == ' ' ? marked += "▁" : marked += c;
  return marked;
}

// SentencePiece's BPE merges the neighbours whose union is the piece with the best score.
Result<std::unique_ptr<TokenizerParts>> parts_from_scores(const GgufVocabulary& vocabulary) {
  const size_t count = num_used(vocabulary);
  if (vocabulary.scores.size() != vocabulary.tokens.size()) {
    return invalid_argument(fmt::format(
        "tokenizer.ggml.scores; got {} entries, expected one per token, {}: name the checkpoint's "
        "directory with tokenizer.json or tokenizer.model by `tokenizer`",
        vocabulary.scores.size(), vocabulary.tokens.size()));
  }
  if (count > static_cast<size_t>(Vocab::kMaxId)) {
    return invalid_argument("tokenizer.ggml.tokens; got more than 2^22 entries, expected fewer");
  }
  SentencePieceModel model;
  model.type = SentencePieceModel::Type::kBpe;
  model.remove_extra_whitespaces = false;
  model.add_dummy_prefix = vocabulary.add_space_prefix.value_or(true);
  model.bos_id = -1;
  std::deque<std::string> texts;  // texts of pieces that the file spells differently
  std::set<std::string_view> bytes;
  for (size_t id = 0; id < count; ++id) {
    SentencePieceModel::Piece piece;
    piece.text = vocabulary.tokens[id];
    piece.score = static_cast<float>(vocabulary.scores[id]);
    piece.type = static_cast<SentencePieceModel::PieceType>(type_of(vocabulary, id));
    if (piece.text.empty()) {
      piece.text = texts.emplace_back(fmt::format("[EMPTY_{}]", id));
      piece.type = SentencePieceModel::PieceType::kUnused;
    }
    // llama.cpp's converter writes spaces in these tokens as plain spaces.
    if (piece.type == SentencePieceModel::PieceType::kUserDefined &&
        piece.text.find(' ') != std::string_view::npos) {
      piece.text = texts.emplace_back(mark_spaces(piece.text));
    }
    if (piece.type == SentencePieceModel::PieceType::kByte) bytes.insert(piece.text);
    QUIRE_RETURN_IF_ERROR(check_piece(piece));
    model.pieces.push_back(piece);
  }
  model.byte_fallback = !bytes.empty();
  const std::optional<size_t> unknown = find_unknown(vocabulary, count);
  if (unknown && *unknown < count) {
    model.unk_id = static_cast<int32_t>(*unknown);
  } else if (has_all_bytes(bytes)) {
    model.unk_id = -1;
  } else {
    return invalid_argument(fmt::format(
        "tokenizer.ggml.unknown_token_id; got no unknown token (this key, a token of type 2, or "
        "<unk>) and {} "
        "tokens of bytes; expected an unknown token, or the 256 tokens <0x00> to <0xFF>: name the "
        "checkpoint's directory with tokenizer.json by `tokenizer`",
        bytes.size()));
  }
  return parts_from_pieces(model);
}

Status check_characters(const GgufVocabulary& vocabulary) {
  const std::set<std::string_view> tokens(vocabulary.tokens.begin(), vocabulary.tokens.end());
  if (!vocabulary.merges.empty() && has_all_bytes(tokens)) return {};
  return invalid_argument(fmt::format(
      "tokenizer.ggml.{}; got {}, expected the merges of a BPE of characters and the tokens <0x00> "
      "to <0xFF>: convert the checkpoint again, or name its directory with tokenizer.json by "
      "`tokenizer`",
      vocabulary.merges.empty() ? "merges" : "tokens",
      vocabulary.merges.empty() ? "nothing" : "no token of some byte"));
}

Result<std::unique_ptr<TokenizerParts>> make_parts(const GgufVocabulary& vocabulary,
                                                   bool& adds_bos) {
  QUIRE_RETURN_IF_ERROR(check_lists(vocabulary));
  adds_bos = true;
  if (vocabulary.model == "llama") return parts_from_scores(vocabulary);
  if (vocabulary.model == "gemma4") {
    QUIRE_RETURN_IF_ERROR(check_characters(vocabulary));
    return parts_from_json(character_json(vocabulary), "metadata", RepeatedTexts::kLastIsEncoded);
  }
  if (vocabulary.model != "gpt2") {
    return unimplemented(
        fmt::format("tokenizer.ggml.model; got \"{}\", expected gpt2, llama or gemma4: name the "
                    "checkpoint's directory "
                    "with tokenizer.json by `tokenizer`",
                    clipped(vocabulary.model)));
  }
  QUIRE_ASSIGN_OR_RETURN(const PreRule rule, find_pre_rule(vocabulary.pre));
  adds_bos = rule.adds_bos;
  QUIRE_RETURN_IF_ERROR(check_byte_level(vocabulary));
  return parts_from_json(byte_level_json(vocabulary, rule), "metadata");
}

std::optional<int32_t> id_if(bool wanted, std::optional<int64_t> id) {
  return wanted && id ? std::optional(static_cast<int32_t>(*id)) : std::nullopt;
}

}  // namespace

bool ends_gguf_replies(std::string_view token) {
  constexpr std::array<std::string_view, 10> kEnds = {
      "<|eot_id|>",      "<|im_end|>", kEndOfMessage, "<end_of_turn>", "<|endoftext|>",
      "<|end_of_text|>", "<|eom_id|>", kReturn,       kCall,           "<turn|>"};
  return std::ranges::find(kEnds, token) != kEnds.end();
}

std::vector<int> gguf_reply_ends(std::span<const std::string_view> tokens) {
  const auto has = [&](std::string_view token) {
    return std::ranges::find(tokens, token) != tokens.end();
  };
  const bool is_harmony = has(kReturn) && has(kCall);
  std::vector<int> ids;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (!ends_gguf_replies(tokens[id]) || (is_harmony && tokens[id] == kEndOfMessage)) continue;
    ids.push_back(static_cast<int>(id));
  }
  return ids;
}

const std::string_view kByteLevelRegex = scan::kGpt2Regex;
const std::string_view kDigitRegex = kDigit;

std::optional<GgufPreRule> find_gguf_pre_rule(std::span<const std::string> regexes,
                                              bool ignore_merges) {
  for (const PreRule& rule : kPreRules) {
    const auto* const end = std::ranges::find(rule.splits, std::string_view());
    if (rule.ignore_merges == ignore_merges &&
        std::equal(rule.splits.begin(), end, regexes.begin(), regexes.end())) {
      return GgufPreRule{rule.name, rule.nfc};
    }
  }
  return std::nullopt;
}

Result<std::shared_ptr<const Tokenizer>> tokenizer_from_gguf(const GgufVocabulary& vocabulary) {
  bool adds_bos = true;
  QUIRE_ASSIGN_OR_RETURN(auto parts, make_parts(vocabulary, adds_bos));
  parts->post_processor =
      PostProcessor::around(id_if(vocabulary.add_bos.value_or(adds_bos), vocabulary.bos_id),
                            id_if(vocabulary.add_eos.value_or(false), vocabulary.eos_id));
  return std::shared_ptr<const Tokenizer>(std::make_shared<Tokenizer>(std::move(parts)));
}

}  // namespace quire
