// Byte-pair encoding: of all neighbours that a rule merges, the pair with the lowest rank is merged
// first, the leftmost of equals, until no rule applies (Sennrich et al. 2016, arXiv 1508.07909).
#pragma once

#include <array>
#include <bitset>
#include <memory>
#include <optional>
#include <span>

#include "tokenizer/byte_trie.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/model.h"
#include "tokenizer/vocab.h"

namespace quire {

struct BpeOptions {
  bool byte_level = false;     // pieces are raw bytes, the vocabulary spells them (byte_level.h)
  bool ignore_merges = false;  // a piece that is a token is that token
  bool byte_fallback = false;  // a character without token becomes its bytes' tokens <0xNN>
  bool fuse_unk = false;       // neighbouring unknown characters are one unknown token
  std::optional<int32_t> unk_id = std::nullopt;
};

class Bpe final : public TokenModel {
 public:
  // `vocab` must outlive the model. `user_defined` texts are single symbols that nothing merges.
  Bpe(const Vocab& vocab, const BpeOptions& options, ByteTrie user_defined = {});

  // Symbols `left` and `right` become `merged`; a later rule for the same pair replaces an earlier.
  void add_merge(int32_t left, int32_t right, int32_t rank, int32_t merged);
  void encode(std::string_view piece, SearchBudget& budget,
              std::vector<int32_t>& ids) const override;

 private:
  static constexpr int32_t kNoRank = INT32_MAX;
  struct Merge {
    int32_t rank = kNoRank;
    int32_t id = -1;
  };

  Merge merge_of(int32_t left, int32_t right) const {
    const Merge* merge = merges_.find(static_cast<uint32_t>(left), static_cast<uint32_t>(right));
    return merge == nullptr ? Merge{} : *merge;
  }
  bool can_touch(char32_t left, char32_t right) const;
  void encode_word(std::string_view word, std::vector<int32_t>& ids) const;
  void append_symbols(std::string_view word, std::vector<int32_t>& symbols) const;
  bool append_byte_tokens(std::string_view text, std::vector<int32_t>& symbols) const;
  void merge_short(std::span<int32_t> symbols, std::vector<int32_t>& ids) const;
  void merge_long(std::span<int32_t> symbols, std::vector<int32_t>& ids) const;

  const Vocab& vocab_;
  BpeOptions options_;
  uint64_t serial_;  // tells this model's words from others' in the word cache
  ByteTrie user_defined_;
  bool has_user_defined_;
  bool splits_words_ = false;
  bool bytes_can_merge_ = false;
  std::array<int32_t, 256> byte_ids_;
  StringMap raw_tokens_;  // in a byte-level vocabulary: tokens by the bytes they spell
  std::string raw_bytes_;
  PairMap<Merge> merges_;
  // The characters that some merge joins: (last of its left, first of its right).
  std::bitset<128 * 128> ascii_joints_;
  PairMap<bool> joints_;
};

// tokenizer.json's "model" of type BPE, on a vocabulary that is already read from it.
Result<std::unique_ptr<TokenModel>> bpe_from_json(JsonElement json, const Vocab& vocab,
                                                  bool byte_level);

}  // namespace quire
