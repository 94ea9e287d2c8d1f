#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "base/ascii.h"
#include "base/text.h"
#include "tokenizer/unicode.h"

namespace quire {
namespace {

uint16_t flags_before(std::string_view text, size_t at) {
  return unicode::CharTable::get()
      .at(text.data() + unicode::last_char_start(text.substr(0, at)))
      .flags;
}

uint16_t flags_at(std::string_view text, size_t at) {
  return unicode::CharTable::get().at(text.data() + at).flags;
}

bool is_single_word(std::string_view text, size_t begin, size_t end) {
  return (begin == 0 || !(flags_before(text, begin) & unicode::kWord)) &&
         (end == text.size() || !(flags_at(text, end) & unicode::kWord));
}

size_t skip_space_left(std::string_view text, size_t begin, size_t limit) {
  while (begin > limit && (flags_before(text, begin) & unicode::kSpace)) {
    begin = unicode::last_char_start(text.substr(0, begin));
  }
  return begin;
}

size_t skip_space_right(std::string_view text, size_t end) {
  while (end < text.size() && (flags_at(text, end) & unicode::kSpace)) {
    end += unicode::char_length(text[end]);
  }
  return end;
}

bool is_between_bars(std::string_view text) {
  for (const auto& [open, close] : {std::pair("<|", "|>"), std::pair("<｜", "｜>")}) {
    const size_t num_bars = std::strlen(open) + std::strlen(close);
    if (text.size() > num_bars && text.starts_with(open) && text.ends_with(close)) return true;
  }
  return false;
}

// Strips spaces, in either spelling, from both ends.
std::string_view without_space(std::string_view text) {
  for (const std::string_view space : {" ", "▁"}) {
    while (text.starts_with(space)) text.remove_prefix(space.size());
    while (text.ends_with(space)) text.remove_suffix(space.size());
  }
  return text;
}

}  // namespace

Result<AddedToken> AddedTokens::from_json(JsonElement json) {
  AddedToken token;
  QUIRE_ASSIGN_OR_RETURN(const std::string_view content,
                         json_required<std::string_view>(json, "content"));
  token.content = content;
  QUIRE_ASSIGN_OR_RETURN(token.single_word, json_or(json, "single_word", false));
  QUIRE_ASSIGN_OR_RETURN(token.lstrip, json_or(json, "lstrip", false));
  QUIRE_ASSIGN_OR_RETURN(token.rstrip, json_or(json, "rstrip", false));
  QUIRE_ASSIGN_OR_RETURN(token.special, json_or(json, "special", false));
  QUIRE_ASSIGN_OR_RETURN(token.normalized, json_or(json, "normalized", !token.special));
  return token;
}

Result<std::vector<AddedTokens::WithId>> AddedTokens::from_decoder(JsonElement config) {
  std::vector<WithId> result;
  const std::optional<JsonElement> field = json_field(config, "added_tokens_decoder");
  if (!field) return result;
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::object tokens,
                         json_value<simdjson::dom::object>(*field, "added_tokens_decoder"));
  for (const auto& [key, json] : tokens) {
    const std::optional<int64_t> id = parse_whole<int64_t>(key);
    if (!id) {
      return invalid_argument(
          fmt::format("added_tokens_decoder has the key \"{}\"; expected an id", clipped(key)));
    }
    QUIRE_ASSIGN_OR_RETURN(AddedToken token, from_json(json));
    result.push_back({std::move(token), *id});
  }
  return result;
}

Status AddedTokens::add(AddedToken token, std::optional<int64_t> id, const Vocab& vocab,
                        const Normalizer& normalizer) {
  if (token.content.empty()) {
    return invalid_argument("an added token has no content; expected a text");
  }
  if (token.content.size() > kMaxTokenBytes || by_id_.size() >= kMaxTokens) {
    return invalid_argument(
        fmt::format("added token \"{}\" exceeds a limit; expected "
                    "at most {} bytes and {} tokens",
                    clipped(token.content), kMaxTokenBytes, kMaxTokens));
  }
  if (id && (*id < 0 || *id > Vocab::kMaxId)) {
    return invalid_argument(
        fmt::format("the id of added token \"{}\" is out of range; got {}, expected 0 to {}",
                    clipped(token.content), *id, Vocab::kMaxId));
  }
  int32_t token_id = std::max(num_ids_, vocab.num_ids());
  if (const auto known = find(token.content)) {
    token_id = *known;
  } else if (const auto in_vocab = vocab.find(token.content)) {
    token_id = *in_vocab;
  } else if (id) {
    token_id = static_cast<int32_t>(*id);
  }
  num_ids_ = std::max(num_ids_, token_id + 1);
  lowest_id_ = std::min(lowest_id_, token_id);
  by_content_[token.content] = token_id;
  SearchBudget budget(token.content.size());
  std::string pattern =
      token.normalized ? normalizer.apply(token.content, {}, budget).text : token.content;
  if (budget.is_spent()) {
    return invalid_argument(
        fmt::format("the normalizer's rules take too long on added token \"{}\"; expected a "
                    "simpler normalizer",
                    clipped(token.content)));
  }
  if (!pattern.empty()) (token.normalized ? normalized_ : raw_).insert(pattern, token_id);
  const bool is_control = token.special || is_between_bars(token.content);
  if (is_control && token.normalized) has_normalized_control_ = true;
  if (is_control && !vocab.text(token_id).empty()) {
    vocab_control_.insert(vocab.text(token_id), token_id);
    const auto idx = static_cast<size_t>(token_id);
    is_vocab_control_.resize(std::max(is_vocab_control_.size(), idx + 1));
    is_vocab_control_[idx] = true;
  }
  const std::string_view core = without_space(pattern);
  const size_t begin = core.empty() ? 0 : static_cast<size_t>(core.data() - pattern.data());
  const size_t end = core.empty() ? pattern.size() : begin + core.size();
  by_id_[token_id] = {.token = std::move(token),
                      .pattern = std::move(pattern),
                      .is_control = is_control,
                      .core_begin = begin,
                      .core_end = end};
  return {};
}

void AddedTokens::Matcher::insert(std::string_view text, int32_t id) {
  trie.insert(text, id);
  first_bytes.set(static_cast<unsigned char>(text[0]));
  only_first_byte = text[0];
}

size_t AddedTokens::Matcher::find_candidate(std::string_view text, size_t from) const {
  const size_t num_first_bytes = first_bytes.count();
  if (num_first_bytes == 0) return text.size();
  if (num_first_bytes == 1) return std::min(text.find(only_first_byte, from), text.size());
  while (from < text.size() && !first_bytes[static_cast<unsigned char>(text[from])]) ++from;
  return from;
}

// Returns the longest token that begins at `at`, except control tokens with untrusted bytes.
ByteTrie::Match AddedTokens::longest_match(const Matcher& matcher, std::string_view text, size_t at,
                                           const ByteSpans& untrusted, SearchBudget& budget) const {
  text.remove_prefix(at);
  while (true) {
    const ByteTrie::Match match = matcher.trie.longest_prefix(text);
    budget.spend(match.num_walked);
    // Most tokens come from the template, so their entry does not have to be checked.
    if (match.num_bytes == 0 || !untrusted.intersects(at, at + match.num_bytes)) return match;
    const Entry& entry = by_id_.at(match.id);
    const bool is_refused =
        entry.is_control && untrusted.intersects(at + entry.core_begin, at + entry.core_end);
    if (!is_refused) return match;
    text = text.substr(0, match.num_bytes - 1);  // a shorter token may begin at the same position
  }
}

void AddedTokens::split(std::string_view text, const ByteSpans& untrusted, Stage stage,
                        SearchBudget& budget, Visit visit) const {
  const Matcher& matcher = stage == Stage::kRaw ? raw_ : normalized_;
  size_t covered = 0;
  size_t stripped = 0;  // end of the last white space that an rstrip token included
  for (size_t at = matcher.find_candidate(text, 0); at < text.size();) {
    const ByteTrie::Match match = longest_match(matcher, text, at, untrusted, budget);
    if (budget.is_spent()) return;
    if (match.num_bytes == 0) {
      at = matcher.find_candidate(text, at + 1);
      continue;
    }
    size_t begin = at;
    size_t end = at + match.num_bytes;
    at = matcher.find_candidate(text, end);
    const AddedToken& token = by_id_.at(match.id).token;
    if (token.single_word && !is_single_word(text, begin, end)) continue;
    // As in Hugging Face's tokenizers, tokens are also matched inside the white space that an
    // rstrip token includes; `covered` then moves backwards.
    if (token.lstrip) begin = skip_space_left(text, begin, covered);
    if (token.rstrip) end = stripped = skip_space_right(text, std::max(end, stripped));
    if (covered < begin) visit(text.substr(covered, begin - covered), -1);
    visit(text.substr(begin, end - begin), match.id);
    covered = end;
  }
  if (covered < text.size()) visit(text.substr(covered), -1);
}

void AddedTokens::cut_vocab_control(std::string_view piece, SearchBudget& budget,
                                    FunctionRef<void(std::string_view part)> visit) const {
  size_t covered = 0;
  for (size_t at = vocab_control_.find_candidate(piece, 0); at < piece.size();
       at = vocab_control_.find_candidate(piece, at + 1)) {
    const ByteTrie::Match match = vocab_control_.trie.longest_prefix(piece.substr(at));
    budget.spend(match.num_walked);
    if (match.num_bytes == 0) continue;
    const size_t cut = at + unicode::char_length(piece[at]);
    visit(piece.substr(covered, cut - covered));
    covered = cut;
  }
  if (covered < piece.size()) visit(piece.substr(covered));
}

}  // namespace quire
