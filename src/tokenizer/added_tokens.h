// Added tokens: texts that are matched literally before the model tokenizes the remaining text.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/marked_text.h"
#include "tokenizer/function_ref.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/string_map.h"
#include "tokenizer/vocab.h"

namespace quire {

struct AddedToken {
  std::string content;
  bool single_word = false;  // matches only where no word character is adjacent
  bool lstrip = false;       // includes the white space on its left
  bool rstrip = false;
  bool normalized = true;  // its normalized form is matched in the normalized text
  bool special = false;    // omitted when decoding with skip_special_tokens
};

// Control tokens are the added tokens that give a prompt its structure, so a request's text must
// never become a control token. They are the special tokens, and tokens that are spelled with bars
// like special tokens, such as DeepSeek's <｜User｜>, which its file does not mark as special.
// Tokens such as <think> and <tool_call> are not control tokens: models write them into the text
// that clients send back.
class AddedTokens {
 public:
  static constexpr size_t kMaxTokenBytes = 1024;
  static constexpr size_t kMaxTokens = size_t{1} << 20;

  // Uses the id that the text already has here or in `vocab`; otherwise `id`, or the next free id.
  Status add(AddedToken token, std::optional<int64_t> id, const Vocab& vocab,
             const Normalizer& normalizer);
  static Result<AddedToken> from_json(JsonElement json);
  struct WithId {
    AddedToken token;
    int64_t id;
  };
  // Reads {"32000": {"content": …, …}, …}: the "added_tokens_decoder" of a tokenizer_config.json,
  // if it has one.
  static Result<std::vector<WithId>> from_decoder(JsonElement config);

  // Selects the tokens that are matched in raw text, or in normalized text.
  enum class Stage { kRaw, kNormalized };
  // Called as visit(text, id) for consecutive parts, where id is an added token, or -1 for other
  // text.
  using Visit = FunctionRef<void(std::string_view text, int32_t id)>;
  // A control token is matched only if its text has no untrusted bytes. Stops when the budget is
  // spent.
  void split(std::string_view text, const ByteSpans& untrusted, Stage stage, SearchBudget& budget,
             Visit visit) const;
  // Whether control tokens are matched in normalized text, so that the normalized text needs marks.
  bool has_normalized_control() const { return has_normalized_control_; }

  // Whether one of the ids is a control token that the vocabulary also contains, so that the model
  // can produce it from a piece of text.
  bool has_vocab_control(std::span<const int32_t> ids) const {
    return !is_vocab_control_.empty() && std::ranges::any_of(ids, [this](int32_t id) {
      const auto idx = static_cast<size_t>(id);
      return idx < is_vocab_control_.size() && is_vocab_control_[idx];
    });
  }
  // Splits the piece after the first character of each control token that it spells, so that the
  // model does not produce the token.
  void cut_vocab_control(std::string_view piece, SearchBudget& budget,
                         FunctionRef<void(std::string_view part)> visit) const;

  const AddedToken* find(int32_t id) const {
    if (id < lowest_id_ || id >= num_ids_) return nullptr;
    const auto it = by_id_.find(id);
    return it == by_id_.end() ? nullptr : &it->second.token;
  }
  std::optional<int32_t> find(std::string_view content) const {
    const auto it = by_content_.find(std::string(content));
    if (it == by_content_.end()) return std::nullopt;
    return it->second;
  }
  bool is_control(int32_t id) const {
    const auto it = by_id_.find(id);
    return it != by_id_.end() && it->second.is_control;
  }
  // The token's text when decoded. It is the normalized form if the token is matched in that form.
  const std::string& decoded_form(int32_t id) const { return by_id_.at(id).pattern; }
  // The highest id plus 1.
  int32_t num_ids() const { return num_ids_; }

 private:
  struct Entry {
    AddedToken token;
    std::string pattern;
    bool is_control = false;
    // The part of the pattern without the white space around it. The template or a request may
    // write that white space.
    size_t core_begin = 0;
    size_t core_end = 0;
  };
  struct Matcher {
    ByteTrie trie;
    std::bitset<256> first_bytes;
    char only_first_byte = 0;  // valid if first_bytes has exactly one member

    void insert(std::string_view text, int32_t id);
    size_t find_candidate(std::string_view text, size_t from) const;
  };

  ByteTrie::Match longest_match(const Matcher& matcher, std::string_view text, size_t at,
                                const ByteSpans& untrusted, SearchBudget& budget) const;

  std::unordered_map<int32_t, Entry> by_id_;
  std::unordered_map<std::string, int32_t> by_content_;
  Matcher raw_;
  Matcher normalized_;
  Matcher vocab_control_;               // control tokens in the vocabulary's spelling
  std::vector<bool> is_vocab_control_;  // by id
  bool has_normalized_control_ = false;
  int32_t lowest_id_ = INT32_MAX;
  int32_t num_ids_ = 0;
};

}  // namespace quire
