#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <cstring>

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
  std::string pattern = token.normalized ? normalizer.apply(token.content, budget) : token.content;
  if (budget.is_spent()) {
    return invalid_argument(
        fmt::format("the normalizer's rules take too long on added token \"{}\"; expected a "
                    "simpler normalizer",
                    clipped(token.content)));
  }
  if (!pattern.empty()) {
    Matcher& matcher = token.normalized ? normalized_ : raw_;
    matcher.trie.insert(pattern, token_id);
    matcher.first_bytes.set(static_cast<unsigned char>(pattern[0]));
    matcher.only_first_byte = pattern[0];
  }
  by_id_[token_id] = {std::move(token), std::move(pattern)};
  return {};
}

size_t AddedTokens::Matcher::find_candidate(std::string_view text, size_t from) const {
  const size_t num_first_bytes = first_bytes.count();
  if (num_first_bytes == 0) return text.size();
  if (num_first_bytes == 1) return std::min(text.find(only_first_byte, from), text.size());
  while (from < text.size() && !first_bytes[static_cast<unsigned char>(text[from])]) ++from;
  return from;
}

void AddedTokens::split(std::string_view text, Stage stage, SearchBudget& budget,
                        Visit visit) const {
  const Matcher& matcher = stage == Stage::kRaw ? raw_ : normalized_;
  size_t covered = 0;
  size_t stripped = 0;  // end of the last white space that an rstrip token included
  for (size_t at = matcher.find_candidate(text, 0); at < text.size();) {
    const ByteTrie::Match match = matcher.trie.longest_prefix(text.substr(at));
    budget.spend(match.num_walked);
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

}  // namespace quire
