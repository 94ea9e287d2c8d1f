// The tokenization models: BPE and unigram.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/json_fields.h"
#include "tokenizer/pattern.h"
#include "tokenizer/vocab.h"

namespace quire {

// Converts one piece of text to ids.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the ids of a non-empty piece. If the budget is spent, the ids are invalid. Thread-safe.
  virtual void encode(std::string_view piece, SearchBudget& budget,
                      std::vector<int32_t>& ids) const = 0;
};

// The spelling of one byte's token in a vocabulary with byte fallback: <0xNN>.
std::string byte_token(unsigned char byte);

struct BpeOptions {
  bool byte_level = false;     // pieces are raw bytes, spelled as in byte_level.h
  bool ignore_merges = false;  // a piece that is itself a token becomes that token
  bool byte_fallback = false;  // a character without a token becomes one token <0xNN> per byte
  bool fuse_unk = false;       // adjacent unknown characters become one unknown token
  std::optional<int32_t> unk_id = std::nullopt;
};

// Byte-pair encoding (Sennrich et al. 2016, arXiv 1508.07909). As long as a rule applies, merges
// the adjacent pair whose rule has the lowest rank (the leftmost pair among equals).
class Bpe final : public TokenModel {
 public:
  // `vocab` must outlive the model. Each text in `user_defined` is one symbol and is never merged.
  Bpe(const Vocab& vocab, const BpeOptions& options, ByteTrie user_defined = {});

  // Adds the rule that merges symbols `left` and `right` into `merged`. A later rule for the same
  // pair replaces an earlier one.
  void add_merge(int32_t left, int32_t right, int32_t rank, int32_t merged);
  // The symbols that a rule merges.
  struct Pair {
    int32_t left;
    int32_t right;
  };
  // For a byte-level vocabulary that has a token for each byte, and whose ids are in the order of
  // merging: adds its rules and returns them in order.
  std::vector<Pair> add_merges_by_id();
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
  void merge(std::span<int32_t> symbols, std::vector<int32_t>& ids) const;
  void merge_short(std::span<int32_t> symbols, std::vector<int32_t>& ids) const;
  void merge_long(std::span<int32_t> symbols, std::vector<int32_t>& ids) const;

  const Vocab& vocab_;
  BpeOptions options_;
  uint64_t serial_;  // distinguishes this model's entries in the word cache
  ByteTrie user_defined_;
  bool has_user_defined_;
  bool splits_words_ = false;
  bool bytes_can_merge_ = false;
  std::array<int32_t, 256> byte_ids_;
  StringMap raw_tokens_;  // only in a byte-level vocabulary: tokens by their raw bytes
  std::string raw_bytes_;
  PairMap<Merge> merges_;
  // Pairs of characters that a merge joins: (last character of left, first character of right).
  std::bitset<128 * 128> ascii_joints_;
  PairMap<bool> joints_;
};

// Reads tokenizer.json's "model" of type BPE. `vocab` holds the vocabulary from the same "model".
Result<std::unique_ptr<TokenModel>> bpe_from_json(JsonElement json, const Vocab& vocab,
                                                  bool byte_level);

// The unigram language model (Kudo 2018, arXiv 1804.10959). It chooses the split of a text into
// tokens that has the greatest sum of scores (log probabilities).
class Unigram final : public TokenModel {
 public:
  // `scores` is indexed by id. `vocab` must outlive the model.
  Unigram(const Vocab& vocab, std::vector<double> scores, int32_t unk_id, double unk_score,
          bool byte_fallback);

  // Allows texts to be split into this token. Special tokens are not added.
  void add_token(std::string_view text, int32_t id) { trie_.insert(text, id); }
  void encode(std::string_view piece, SearchBudget& budget,
              std::vector<int32_t>& ids) const override;

  // The unknown token's score is this much below the lowest score, as in SentencePiece.
  static constexpr double kUnkPenalty = 10;

 private:
  struct Node {  // the best path to an offset
    double score = 0;
    int32_t id = -1;
    uint32_t start = 0;
  };

  std::vector<Node> best_paths(std::string_view piece, SearchBudget& budget) const;
  void append_unknown(std::string_view text, std::vector<int32_t>& ids) const;

  const Vocab& vocab_;
  std::vector<double> scores_;
  int32_t unk_id_;
  double unk_score_;
  bool byte_fallback_;
  ByteTrie trie_;
};

// These functions read tokenizer.json's "model" of type Unigram: first its vocabulary, with the
// scores by id, then the model that uses the vocabulary.
Result<std::vector<double>> read_unigram_vocab(JsonElement json, Vocab& vocab);
Result<std::unique_ptr<TokenModel>> unigram_from_json(JsonElement json, const Vocab& vocab,
                                                      std::vector<double> scores);

}  // namespace quire
