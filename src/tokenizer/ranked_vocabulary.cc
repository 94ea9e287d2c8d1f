#include "tokenizer/ranked_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "base/ascii.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/text.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/scanners.h"
#include "tokenizer/tokenizer.h"

namespace quire {
namespace {

constexpr size_t kMaxTokenBytes = 4096;
constexpr int64_t kMaxSpecial = int64_t{1} << 16;  // tokens that a file need not list
constexpr std::string_view kBos = "<s>";

Result<std::string> read_bytes(std::string_view digits, std::string_view place) {
  std::string bytes = from_base64(digits);
  if (!bytes.empty() && bytes.size() <= kMaxTokenBytes) return bytes;
  return invalid_argument(fmt::format("{} has the token \"{}\"; expected 1 to {} bytes in base64",
                                      place, clipped(digits), kMaxTokenBytes));
}

AddedToken special_token(std::string content, bool is_special) {
  return {.content = std::move(content), .normalized = false, .special = is_special};
}

// The special tokens of a tekken.json without a list of them, by id.
constexpr std::array<std::string_view, 20> kOldSpecialTokens = {"<unk>",
                                                                kBos,
                                                                "</s>",
                                                                "[INST]",
                                                                "[/INST]",
                                                                "[AVAILABLE_TOOLS]",
                                                                "[/AVAILABLE_TOOLS]",
                                                                "[TOOL_RESULTS]",
                                                                "[/TOOL_RESULTS]",
                                                                "[TOOL_CALLS]",
                                                                "[IMG]",
                                                                "<pad>",
                                                                "[IMG_BREAK]",
                                                                "[IMG_END]",
                                                                "[PREFIX]",
                                                                "[MIDDLE]",
                                                                "[SUFFIX]",
                                                                "[SYSTEM_PROMPT]",
                                                                "[/SYSTEM_PROMPT]",
                                                                "[TOOL_CONTENT]"};

Status read_special_tokens(JsonElement root, JsonElement config, int64_t num_special,
                           RankedVocabulary& vocabulary) {
  if (json_field(root, "special_tokens")) {
    QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::array entries,
                           json_required<simdjson::dom::array>(root, "special_tokens"));
    for (const JsonElement entry : entries) {
      QUIRE_ASSIGN_OR_RETURN(const int64_t rank, json_required<int64_t>(entry, "rank"));
      QUIRE_ASSIGN_OR_RETURN(const std::string_view text,
                             json_required<std::string_view>(entry, "token_str"));
      QUIRE_ASSIGN_OR_RETURN(const bool is_control, json_required<bool>(entry, "is_control"));
      vocabulary.added.push_back({special_token(std::string(text), is_control), rank});
    }
  } else {
    constexpr std::array<std::string_view, 4> kOldVersions = {"v1", "v2", "v3", "v7"};
    QUIRE_ASSIGN_OR_RETURN(const std::string_view version,
                           json_required<std::string_view>(config, "version"));
    if (std::ranges::find(kOldVersions, version) == kOldVersions.end()) {
      return invalid_argument(
          fmt::format("field \"special_tokens\" is missing; expected a list, which only the "
                      "versions {} do not have, got version \"{}\": download the file again",
                      fmt::join(kOldVersions, ", "), clipped(version)));
    }
    for (const std::string_view text : kOldSpecialTokens) {
      const auto id = static_cast<int64_t>(vocabulary.added.size());
      vocabulary.added.push_back({special_token(std::string(text), true), id});
    }
  }
  for (const AddedTokens::WithId& special : vocabulary.added) {
    if (special.id >= 0 && special.id < num_special) continue;
    return invalid_argument(
        fmt::format("special token \"{}\" has the rank {}, expected 0 to {} (below "
                    "config.default_num_special_tokens)",
                    clipped(special.token.content), special.id, num_special - 1));
  }
  for (auto id = static_cast<int64_t>(vocabulary.added.size()); id < num_special; ++id) {
    vocabulary.added.push_back({special_token(fmt::format("<SPECIAL_{}>", id), true), id});
  }
  return {};
}

Result<RankedVocabulary> read_tekken(std::string_view contents) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::parse(contents, "tekken.json"));
  const JsonElement root = document.root();
  QUIRE_RETURN_IF_ERROR(check_keys(root));
  const std::optional<JsonElement> config = json_field(root, "config");
  if (!config) return invalid_argument("field \"config\" is missing; expected an object");
  QUIRE_RETURN_IF_ERROR(check_keys(*config));
  RankedVocabulary vocabulary{.adds_bos = true};
  QUIRE_ASSIGN_OR_RETURN(const std::string_view pattern,
                         json_required<std::string_view>(*config, "pattern"));
  vocabulary.pattern = pattern;
  QUIRE_ASSIGN_OR_RETURN(const int64_t num_ids,
                         json_required<int64_t>(*config, "default_vocab_size"));
  QUIRE_ASSIGN_OR_RETURN(const int64_t num_special,
                         json_required<int64_t>(*config, "default_num_special_tokens"));
  if (num_special < 1 || num_special > kMaxSpecial || num_ids <= num_special ||
      num_ids > Vocab::kMaxId) {
    return invalid_argument(
        fmt::format("config has default_vocab_size {} and default_num_special_tokens {}; expected "
                    "at most {} and {}, and a vocabulary larger than its special tokens",
                    num_ids, num_special, Vocab::kMaxId, kMaxSpecial));
  }
  QUIRE_RETURN_IF_ERROR(read_special_tokens(root, *config, num_special, vocabulary));
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::array entries,
                         json_required<simdjson::dom::array>(root, "vocab"));
  // The model has no embeddings for the entries after these.
  const int64_t num_tokens = num_ids - num_special;
  int64_t index = 0;
  for (const JsonElement entry : entries) {
    if (index == num_tokens) break;
    QUIRE_ASSIGN_OR_RETURN(const int64_t rank, json_required<int64_t>(entry, "rank"));
    if (rank != index) {
      return invalid_argument(
          fmt::format("vocab[{}] has the rank {}; expected its position", index, rank));
    }
    QUIRE_ASSIGN_OR_RETURN(const std::string_view digits,
                           json_required<std::string_view>(entry, "token_bytes"));
    QUIRE_ASSIGN_OR_RETURN(std::string bytes, read_bytes(digits, fmt::format("vocab[{}]", index)));
    vocabulary.tokens.push_back({std::move(bytes), num_special + index++});
  }
  if (index == num_tokens) return vocabulary;
  return invalid_argument(
      fmt::format("vocab has {} entries; expected {}, which is config.default_vocab_size without "
                  "default_num_special_tokens: download the file again",
                  index, num_tokens));
}

// A tiktoken.model does not contain its pattern, which is in the code of its class.
Status check_class(JsonElement config) {
  constexpr std::array<std::string_view, 2> kKimiClasses = {
      "tokenization_kimi.TikTokenTokenizer", "tokenization_moonshot.TikTokenTokenizer"};
  std::string_view name;
  if (const auto classes = json_field(config, "auto_map")) {
    if (classes->at_key("AutoTokenizer").at(0).get(name) != simdjson::SUCCESS) name = {};
  }
  // A copy names the repository of the code too: "moonshotai/Kimi-K2-Instruct--MODULE.CLASS".
  const size_t repository_end = name.rfind("--");
  if (repository_end != std::string_view::npos) name.remove_prefix(repository_end + 2);
  if (std::ranges::find(kKimiClasses, name) != kKimiClasses.end()) return {};
  return unimplemented(fmt::format(
      "auto_map.AutoTokenizer of tokenizer_config.json; got \"{}\", expected {}, because the "
      "pattern of a tiktoken.model is in its class: convert the tokenizer to tokenizer.json",
      clipped(name), fmt::join(kKimiClasses, " or ")));
}

Status read_lines(std::string_view contents, RankedVocabulary& vocabulary) {
  size_t number = 0;
  while (!contents.empty()) {
    const size_t end = std::min(contents.find('\n'), contents.size());
    const std::string_view line = trimmed(contents.substr(0, end));
    contents.remove_prefix(std::min(end + 1, contents.size()));
    ++number;
    if (line.empty()) continue;
    const size_t space = std::min(line.find(' '), line.size());
    const auto rank = parse_whole<int64_t>(line.substr(std::min(space + 1, line.size())));
    if (!rank) {
      return invalid_argument(
          fmt::format("line {} is \"{}\"; expected a token in base64, a space and its rank", number,
                      clipped(line)));
    }
    QUIRE_ASSIGN_OR_RETURN(std::string bytes,
                           read_bytes(line.substr(0, space), fmt::format("line {}", number)));
    vocabulary.tokens.push_back({std::move(bytes), *rank});
  }
  return {};
}

Result<RankedVocabulary> read_tiktoken(std::string_view contents,
                                       std::optional<JsonElement> config) {
  if (!config) {
    return invalid_argument(
        "tokenizer_config.json is missing; expected it beside tiktoken.model, because it has the "
        "special tokens and names the class that has the pattern");
  }
  QUIRE_RETURN_IF_ERROR(check_keys(*config));
  QUIRE_RETURN_IF_ERROR(check_class(*config));
  RankedVocabulary vocabulary{.pattern = std::string(scan::kKimiRegex)};
  QUIRE_RETURN_IF_ERROR(read_lines(contents, vocabulary));
  QUIRE_ASSIGN_OR_RETURN(vocabulary.added, AddedTokens::from_decoder(*config));
  std::unordered_set<int64_t> named;
  for (const AddedTokens::WithId& added : vocabulary.added) named.insert(added.id);
  constexpr int64_t kNumReserved = 256;
  const auto first = static_cast<int64_t>(vocabulary.tokens.size());
  for (int64_t id = first; id < first + kNumReserved; ++id) {
    if (named.contains(id)) continue;
    vocabulary.added.push_back({special_token(fmt::format("<|reserved_token_{}|>", id), true), id});
  }
  return vocabulary;
}

// tiktoken uses Rust's regexes, in which ^ and $ match only at the ends of the text. Here they
// match at the ends of lines.
Status check_anchors(std::string_view pattern) {
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\') {
      ++i;
    } else if (c == '[' || c == ']') {
      in_class = c == '[';
    } else if (!in_class && (c == '^' || c == '$')) {
      return unimplemented(fmt::format("regex \"{}\" uses {}, which is not supported in this file",
                                       clipped(pattern), c));
    }
  }
  return {};
}

Status add_tokens(const RankedVocabulary& vocabulary, Vocab& vocab) {
  for (const RankedVocabulary::Token& token : vocabulary.tokens) {
    QUIRE_RETURN_IF_ERROR(vocab.add(spell_bytes(token.bytes), token.id));
  }
  vocab.index();
  for (const RankedVocabulary::Token& token : vocabulary.tokens) {
    const std::optional<int32_t> id = vocab.find(vocab.text(static_cast<int32_t>(token.id)));
    if (id == token.id) continue;
    return invalid_argument(fmt::format("the ids {} and {} have the same bytes; expected one each",
                                        token.id, id.value_or(-1)));
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char text = static_cast<char>(byte);
    if (vocab.find(spell_bytes({&text, 1}))) continue;
    return invalid_argument(
        fmt::format("no token has the byte 0x{:02X} alone; expected one per byte", byte));
  }
  return {};
}

Status add_special_tokens(const RankedVocabulary& vocabulary, TokenizerParts& parts) {
  // Special tokens have ids of their own, even if the vocabulary has their text too.
  const Vocab none;
  for (const auto& [token, id] : vocabulary.added) {
    const auto slot = static_cast<int32_t>(std::clamp<int64_t>(id, -1, Vocab::kMaxId));
    const bool is_taken = parts.vocab.contains(slot) || parts.added.find(slot) != nullptr;
    if (is_taken || parts.added.find(token.content)) {
      return invalid_argument(fmt::format(
          "the special token \"{}\" with the id {} {}; expected a text and an id of "
          "its own",
          clipped(token.content), id, is_taken ? "has the id of another token" : "appears twice"));
    }
    QUIRE_RETURN_IF_ERROR(parts.added.add(token, id, none, parts.normalizer));
  }
  return {};
}

}  // namespace

Result<RankedVocabulary> read_ranked_vocabulary(std::string_view file, std::string_view contents,
                                                std::optional<JsonElement> config) {
  return file == kTekkenFile ? read_tekken(contents) : read_tiktoken(contents, config);
}

Result<RankedParts> parts_from_ranks(const RankedVocabulary& vocabulary) {
  auto parts = std::make_unique<TokenizerParts>();
  QUIRE_RETURN_IF_ERROR(check_anchors(vocabulary.pattern));
  QUIRE_ASSIGN_OR_RETURN(parts->pre_tokenizer, PreTokenizer::byte_level(vocabulary.pattern));
  parts->decoder = Decoder::byte_level();
  QUIRE_RETURN_IF_ERROR(add_tokens(vocabulary, parts->vocab));
  QUIRE_RETURN_IF_ERROR(add_special_tokens(vocabulary, *parts));
  if (vocabulary.adds_bos) {
    const std::optional<int32_t> bos = parts->added.find(kBos);
    if (!bos) return invalid_argument(fmt::format("no special token is \"{}\"", kBos));
    parts->post_processor = PostProcessor::around(bos, std::nullopt);
  }
  auto model =
      std::make_unique<Bpe>(parts->vocab, BpeOptions{.byte_level = true, .ignore_merges = true});
  std::vector<Bpe::Pair> merges = model->add_merges_by_id();
  parts->model = std::move(model);
  return RankedParts{std::move(parts), std::move(merges)};
}

}  // namespace quire
