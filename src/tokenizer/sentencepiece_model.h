// A SentencePiece model as plain data: from the file that SentencePiece writes, or from the
// metadata of a GGUF file.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "quire/status.h"
#include "tokenizer/tokenizer_parts.h"

namespace quire {

// The fields of SentencePiece's ModelProto (src/sentencepiece_model.proto there) that Quire uses.
struct SentencePieceModel {
  enum class Type { kUnigram = 1, kBpe = 2 };
  enum class PieceType {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,
    kUserDefined = 4,
    kUnused = 5,
    kByte = 6,
  };
  struct Piece {
    std::string_view text;  // points into the file's bytes
    float score = 0;
    PieceType type = PieceType::kNormal;
  };

  // Checks bounds and types. `bytes` must outlive the result.
  static Result<SentencePieceModel> parse(std::string_view bytes);

  std::vector<Piece> pieces;  // by id
  Type type = Type::kUnigram;
  bool byte_fallback = false;
  bool whitespace_as_suffix = false;
  int32_t unk_id = 0;  // id of the unknown piece; -1: none, which only a BPE may have
  int32_t bos_id = 1;  // -1: none
  std::string_view precompiled_charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

// Fails for a piece that is empty, too long, not UTF-8 or without a finite score.
Status check_piece(const SentencePieceModel::Piece& piece);

// Builds the tokenizer of a model whose pieces pass check_piece.
Result<std::unique_ptr<TokenizerParts>> parts_from_pieces(const SentencePieceModel& source);

}  // namespace quire
