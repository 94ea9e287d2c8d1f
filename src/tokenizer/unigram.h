// The unigram language model (Kudo 2018, arXiv 1804.10959). Of all ways to split a text into
// tokens, it chooses the one with the greatest sum of scores (log probabilities).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tokenizer/byte_trie.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/model.h"
#include "tokenizer/vocab.h"

namespace quire {

class Unigram final : public TokenModel {
 public:
  // `scores` is indexed by id. `vocab` must outlive the model.
  Unigram(const Vocab& vocab, std::vector<double> scores, int32_t unk_id, double unk_score,
          bool byte_fallback);

  // Allows texts to be split into this token. Special tokens are not added.
  void add_token(std::string_view text, int32_t id) { trie_.insert(text, id); }
  void encode(std::string_view piece, SearchBudget& budget,
              std::vector<int32_t>& ids) const override;

  static constexpr double kUnkPenalty = 10;  // SentencePiece's distance below the lowest score

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

// Read tokenizer.json's "model" of type Unigram: first its vocabulary, then the model on it.
Status read_unigram_vocab(JsonElement json, Vocab& vocab);
Result<std::unique_ptr<TokenModel>> unigram_from_json(JsonElement json, const Vocab& vocab);

}  // namespace quire
