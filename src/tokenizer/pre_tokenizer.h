// Splits normalized text into the pieces that the model encodes separately.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "quire/status.h"
#include "tokenizer/function_ref.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/pattern.h"

namespace quire {

struct Piece {
  std::string_view text;
  bool at_start;  // the piece begins the whole text
};
using PieceSink = FunctionRef<void(Piece)>;

class PreTokenizerStage {
 public:
  virtual ~PreTokenizerStage() = default;
  virtual void run(Piece piece, SearchBudget& budget, PieceSink sink) const = 0;
};

class PreTokenizer {
 public:
  // Reads the "pre_tokenizer" of a tokenizer.json. Without one, the text is one piece.
  static Result<PreTokenizer> from_json(std::optional<JsonElement> json);

  // Splits at the matches of a regex, for a byte-level vocabulary.
  static Result<PreTokenizer> byte_level(std::string_view regex);

  // Emits non-empty pieces in order. In a byte-level vocabulary a piece is raw bytes and may begin
  // or end inside a character; otherwise it is valid UTF-8.
  void run(Piece piece, SearchBudget& budget, PieceSink sink) const {
    run_from(0, piece, budget, sink);
  }
  // Whether the model's vocabulary spells raw bytes (byte_level.h).
  bool is_byte_level() const { return is_byte_level_; }

 private:
  Status add(JsonElement json, int depth);
  Status add_byte_level(JsonElement json);
  Status add_split(JsonElement json);
  void run_from(size_t stage, Piece piece, SearchBudget& budget, PieceSink sink) const;

  std::vector<std::unique_ptr<const PreTokenizerStage>> stages_;
  bool is_byte_level_ = false;
};

}  // namespace quire
