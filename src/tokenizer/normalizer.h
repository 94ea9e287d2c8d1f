// Normalizes a text before it is split: the steps of tokenizer.json's "normalizer", or the rules of
// a SentencePiece model.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/pattern.h"
#include "tokenizer/string_map.h"

namespace quire {

class NormalizerStep {
 public:
  virtual ~NormalizerStep() = default;
  // Maps valid UTF-8 to valid UTF-8.
  virtual std::string apply(std::string_view text, SearchBudget& budget) const = 0;
};

class Normalizer {
 public:
  static Result<Normalizer> from_json(std::optional<JsonElement> json);
  void add(std::unique_ptr<const NormalizerStep> step) { steps_.push_back(std::move(step)); }

  bool is_identity() const { return steps_.empty(); }
  std::string apply(std::string_view text, SearchBudget& budget) const;

 private:
  Status add_json(JsonElement json, int depth);

  std::vector<std::unique_ptr<const NormalizerStep>> steps_;
};

// The NormalizerSpec of a SentencePiece model.
struct SentencePieceRules {
  std::optional<Charsmap> charsmap = std::nullopt;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  ByteTrie user_defined = {};  // texts that are copied unchanged
};
std::unique_ptr<const NormalizerStep> make_sentencepiece_step(SentencePieceRules rules);

}  // namespace quire
