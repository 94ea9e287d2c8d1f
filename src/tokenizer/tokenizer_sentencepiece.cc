// Reads a SentencePiece model and builds its tokenizer.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "quire/status.h"
#include "tokenizer/sentencepiece_model.h"
#include "tokenizer/token_model.h"
#include "tokenizer/tokenizer_parts.h"
#include "tokenizer/unicode.h"
#include "tokenizer/vocab.h"

namespace quire {
namespace {

// Reads one message in place, with the required part of the protobuf wire format
// (protobuf.dev/programming-guides/encoding).
class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) : rest_(message) {}

  // Moves to the next field. Returns false at the end of the message or if it is malformed (see
  // ok()).
  bool next();
  bool ok() const { return ok_; }

  uint32_t field() const { return field_; }
  bool is_varint() const { return wire_type_ == kVarint; }
  bool is_bytes() const { return wire_type_ == kBytes; }
  bool is_fixed32() const { return wire_type_ == kFixed32; }

  uint64_t varint() const { return number_; }
  std::string_view bytes() const { return bytes_; }
  float float32() const { return std::bit_cast<float>(static_cast<uint32_t>(number_)); }

 private:
  enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  bool read_varint(uint64_t& value);
  bool read_fixed(size_t num_bytes);

  std::string_view rest_;
  bool ok_ = true;
  uint32_t field_ = 0;
  uint32_t wire_type_ = 0;
  uint64_t number_ = 0;
  std::string_view bytes_;
};

bool ProtobufReader::read_varint(uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_[0]);
    rest_.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool ProtobufReader::read_fixed(size_t num_bytes) {
  if (rest_.size() < num_bytes) return false;
  number_ = 0;
  for (size_t i = 0; i < num_bytes; ++i) {
    number_ |= static_cast<uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
  }
  rest_.remove_prefix(num_bytes);
  return true;
}

bool ProtobufReader::next() {
  if (!ok_ || rest_.empty()) return false;
  uint64_t key = 0;
  ok_ = read_varint(key) && (key >> 3) != 0 && (key >> 3) < (uint64_t{1} << 29);
  if (!ok_) return false;
  field_ = static_cast<uint32_t>(key >> 3);
  wire_type_ = static_cast<uint32_t>(key & 7);
  switch (wire_type_) {
    case kVarint:
      ok_ = read_varint(number_);
      break;
    case kFixed64:
      ok_ = read_fixed(8);
      break;
    case kFixed32:
      ok_ = read_fixed(4);
      break;
    case kBytes: {
      uint64_t size = 0;
      ok_ = read_varint(size) && size <= rest_.size();
      if (!ok_) break;
      bytes_ = rest_.substr(0, static_cast<size_t>(size));
      rest_.remove_prefix(static_cast<size_t>(size));
      break;
    }
    default:
      ok_ = false;
  }
  return ok_;
}

// Every position inside a piece is tried as a merge, so pieces must be short. Known pieces have at
// most 16 characters, except user-defined pieces.
constexpr size_t kMaxPieceBytes = 256;

Status malformed(std::string_view part) {
  return invalid_argument(fmt::format("the SentencePiece {} is not valid protobuf", part));
}

Result<SentencePieceModel::Piece> parse_piece(std::string_view bytes) {
  SentencePieceModel::Piece piece;
  ProtobufReader reader(bytes);
  while (reader.next()) {
    if (reader.field() == 1 && reader.is_bytes()) {
      piece.text = reader.bytes();
    } else if (reader.field() == 2 && reader.is_fixed32()) {
      piece.score = reader.float32();
    } else if (reader.field() == 3 && reader.is_varint()) {
      if (reader.varint() < 1 || reader.varint() > 6) return malformed("piece type");
      piece.type = static_cast<SentencePieceModel::PieceType>(reader.varint());
    }
  }
  if (!reader.ok()) return malformed("piece");
  QUIRE_RETURN_IF_ERROR(check_piece(piece));
  return piece;
}

Status check_bos(int64_t id, int64_t most) {
  if (id >= -1 && id <= most) return {};
  return invalid_argument(fmt::format(
      "SentencePiece trainer_spec.bos_id; got {}, expected a piece's id, 0 to {}, or -1 "
      "for none",
      id, most));
}

Status parse_trainer_spec(std::string_view bytes, SentencePieceModel& model) {
  ProtobufReader reader(bytes);
  while (reader.next()) {
    if (!reader.is_varint()) continue;
    const uint64_t value = reader.varint();
    switch (reader.field()) {
      case 3:
        if (value != 1 && value != 2) {
          return unimplemented(
              fmt::format("SentencePiece model_type {} is not supported; expected "
                          "1 (unigram) or 2 (BPE)",
                          value));
        }
        model.type = static_cast<SentencePieceModel::Type>(value);
        break;
      case 24:
        model.whitespace_as_suffix = value != 0;
        break;
      case 35:
        model.byte_fallback = value != 0;
        break;
      case 41:
        QUIRE_RETURN_IF_ERROR(check_bos(static_cast<int64_t>(value), Vocab::kMaxId));
        model.bos_id = static_cast<int32_t>(static_cast<int64_t>(value));
        break;
      default:
        break;
    }
  }
  return reader.ok() ? Status() : malformed("trainer_spec");
}

Status parse_normalizer_spec(std::string_view bytes, SentencePieceModel& model) {
  ProtobufReader reader(bytes);
  while (reader.next()) {
    if (reader.field() == 2 && reader.is_bytes()) model.precompiled_charsmap = reader.bytes();
    if (!reader.is_varint()) continue;
    if (reader.field() == 3) model.add_dummy_prefix = reader.varint() != 0;
    if (reader.field() == 4) model.remove_extra_whitespaces = reader.varint() != 0;
    if (reader.field() == 5) model.escape_whitespaces = reader.varint() != 0;
  }
  return reader.ok() ? Status() : malformed("normalizer_spec");
}

// Finds the id of the unknown piece, and checks the id of BOS.
Status resolve_special_ids(SentencePieceModel& model) {
  using PieceType = SentencePieceModel::PieceType;
  const auto num_pieces = static_cast<int32_t>(model.pieces.size());
  const auto unknown =
      std::find_if(model.pieces.begin(), model.pieces.end(),
                   [](const auto& piece) { return piece.type == PieceType::kUnknown; });
  if (unknown == model.pieces.end()) {
    return invalid_argument("the SentencePiece model has no unknown piece; expected one");
  }
  model.unk_id = static_cast<int32_t>(unknown - model.pieces.begin());
  return check_bos(model.bos_id, num_pieces - 1);
}

using PieceType = SentencePieceModel::PieceType;

// The merge rank of each piece. SentencePiece first merges the neighbours whose union is the piece
// with the best score. Equal scores have equal ranks.
std::vector<int32_t> ranks_by_score(const std::vector<SentencePieceModel::Piece>& pieces) {
  std::vector<uint32_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return pieces[a].score > pieces[b].score; });
  std::vector<int32_t> ranks(pieces.size());
  for (size_t i = 1; i < order.size(); ++i) {
    const bool is_lower = pieces[order[i]].score < pieces[order[i - 1]].score;
    ranks[order[i]] = ranks[order[i - 1]] + (is_lower ? 1 : 0);
  }
  return ranks;
}

// Calls visit(left, right) for every split of the text into two normal pieces.
template <typename Visit>
void for_each_merge(std::string_view text, const SentencePieceModel& source, const Vocab& vocab,
                    Visit visit) {
  const auto find_normal = [&](std::string_view part) -> std::optional<int32_t> {
    const std::optional<int32_t> found = vocab.find(part);
    if (!found || source.pieces[static_cast<size_t>(*found)].type != PieceType::kNormal) {
      return std::nullopt;
    }
    return found;
  };
  for (size_t at = unicode::char_length(text[0]); at < text.size();
       at += unicode::char_length(text[at])) {
    const std::optional<int32_t> left = find_normal(text.substr(0, at));
    if (!left) continue;
    const std::optional<int32_t> right = find_normal(text.substr(at));
    if (right) visit(*left, *right);
  }
}

Result<std::unique_ptr<TokenModel>> make_bpe(const SentencePieceModel& source,
                                             const ByteTrie& user_defined, const Vocab& vocab) {
  BpeOptions options{.byte_fallback = source.byte_fallback, .fuse_unk = true};
  if (source.unk_id >= 0) options.unk_id = source.unk_id;
  auto model = std::make_unique<Bpe>(vocab, options, user_defined);
  const std::vector<int32_t> ranks = ranks_by_score(source.pieces);
  for (size_t i = 0; i < source.pieces.size(); ++i) {
    const SentencePieceModel::Piece& piece = source.pieces[i];
    // SentencePiece merges to an unused piece and later splits it again. An unused piece that no
    // merge produces, such as a converter's [PAD32000], has no effect.
    bool is_reached = false;
    if (piece.type != PieceType::kNormal && piece.type != PieceType::kUnused) continue;
    for_each_merge(piece.text, source, vocab, [&](int32_t left, int32_t right) {
      is_reached = true;
      if (piece.type == PieceType::kNormal) {
        model->add_merge(left, right, ranks[i], static_cast<int32_t>(i));
      }
    });
    if (is_reached && piece.type == PieceType::kUnused) {
      return unimplemented(fmt::format(
          "a SentencePiece BPE with the unused piece \"{}\", to which other pieces merge, is not "
          "supported",
          clipped(piece.text)));
    }
  }
  return std::unique_ptr<TokenModel>(std::move(model));
}

std::unique_ptr<TokenModel> make_unigram(const SentencePieceModel& source, const Vocab& vocab) {
  double lowest = std::numeric_limits<double>::infinity();
  double highest = std::numeric_limits<double>::lowest();
  for (const SentencePieceModel::Piece& piece : source.pieces) {
    if (piece.type != PieceType::kNormal) continue;
    lowest = std::min(lowest, double{piece.score});
    highest = std::max(highest, double{piece.score});
  }
  if (highest < lowest) lowest = highest = 0;  // there is no normal piece
  std::vector<double> scores;
  for (const SentencePieceModel::Piece& piece : source.pieces) {
    // User-defined pieces get the highest score, so that they are always chosen.
    const double bonus = static_cast<double>(piece.text.size()) * highest - 0.1;
    scores.push_back(piece.type == PieceType::kUserDefined ? bonus : double{piece.score});
  }
  auto model = std::make_unique<Unigram>(vocab, std::move(scores), source.unk_id,
                                         lowest - Unigram::kUnkPenalty, source.byte_fallback);
  for (size_t i = 0; i < source.pieces.size(); ++i) {
    const SentencePieceModel::Piece& piece = source.pieces[i];
    if (piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined) {
      model->add_token(piece.text, static_cast<int32_t>(i));
    }
  }
  return model;
}

Result<SentencePieceRules> make_rules(const SentencePieceModel& source,
                                      const ByteTrie& user_defined) {
  SentencePieceRules rules{.add_dummy_prefix = source.add_dummy_prefix,
                           .remove_extra_whitespaces = source.remove_extra_whitespaces,
                           .escape_whitespaces = source.escape_whitespaces,
                           .user_defined = user_defined};
  if (!source.precompiled_charsmap.empty()) {
    QUIRE_ASSIGN_OR_RETURN(rules.charsmap, Charsmap::parse(source.precompiled_charsmap));
  }
  return rules;
}

// Registers <s>, </s> and other control tokens, so that they are matched anywhere in a text.
Status add_control_tokens(const SentencePieceModel& source, TokenizerParts& parts) {
  for (size_t i = 0; i < source.pieces.size(); ++i) {
    const SentencePieceModel::Piece& piece = source.pieces[i];
    if (piece.type != PieceType::kControl && piece.type != PieceType::kUnknown) continue;
    AddedToken token{.content = std::string(piece.text), .normalized = false, .special = true};
    QUIRE_RETURN_IF_ERROR(
        parts.added.add(std::move(token), static_cast<int64_t>(i), parts.vocab, parts.normalizer));
  }
  return {};
}

}  // namespace

Status check_piece(const SentencePieceModel::Piece& piece) {
  if (!piece.text.empty() && piece.text.size() <= kMaxPieceBytes && is_valid_utf8(piece.text) &&
      std::isfinite(piece.score)) {
    return {};
  }
  return invalid_argument(
      fmt::format("a SentencePiece piece of {} bytes is not valid; expected 1 to {} bytes of UTF-8 "
                  "and a finite score",
                  piece.text.size(), kMaxPieceBytes));
}

Result<SentencePieceModel> SentencePieceModel::parse(std::string_view bytes) {
  SentencePieceModel model;
  ProtobufReader reader(bytes);
  while (reader.next()) {
    if (!reader.is_bytes()) continue;
    if (reader.field() == 1) {
      if (model.pieces.size() > static_cast<size_t>(Vocab::kMaxId)) {
        return invalid_argument("the SentencePiece model has more than 2^22 pieces");
      }
      QUIRE_ASSIGN_OR_RETURN(const Piece piece, parse_piece(reader.bytes()));
      model.pieces.push_back(piece);
    } else if (reader.field() == 2) {
      QUIRE_RETURN_IF_ERROR(parse_trainer_spec(reader.bytes(), model));
    } else if (reader.field() == 3) {
      QUIRE_RETURN_IF_ERROR(parse_normalizer_spec(reader.bytes(), model));
    }
  }
  if (!reader.ok()) return malformed("model");
  QUIRE_RETURN_IF_ERROR(resolve_special_ids(model));
  return model;
}

Result<std::unique_ptr<TokenizerParts>> parts_from_sentencepiece(std::string_view bytes) {
  QUIRE_ASSIGN_OR_RETURN(const SentencePieceModel source, SentencePieceModel::parse(bytes));
  return parts_from_pieces(source);
}

Result<std::unique_ptr<TokenizerParts>> parts_from_pieces(const SentencePieceModel& source) {
  if (source.whitespace_as_suffix) {
    return unimplemented("SentencePiece treat_whitespace_as_suffix is not supported");
  }
  auto parts = std::make_unique<TokenizerParts>();
  ByteTrie user_defined;
  for (size_t i = 0; i < source.pieces.size(); ++i) {
    const SentencePieceModel::Piece& piece = source.pieces[i];
    QUIRE_RETURN_IF_ERROR(parts->vocab.add(piece.text, static_cast<int64_t>(i)));
    if (piece.type == PieceType::kUserDefined) {
      user_defined.insert(piece.text, static_cast<int32_t>(i));
    }
  }
  parts->vocab.index();
  QUIRE_ASSIGN_OR_RETURN(SentencePieceRules rules, make_rules(source, user_defined));
  parts->normalizer.add(make_sentencepiece_step(std::move(rules)));
  if (source.type == SentencePieceModel::Type::kBpe) {
    QUIRE_ASSIGN_OR_RETURN(parts->model, make_bpe(source, user_defined, parts->vocab));
  } else {
    parts->model = make_unigram(source, parts->vocab);
  }
  QUIRE_RETURN_IF_ERROR(add_control_tokens(source, *parts));
  parts->decoder = Decoder::sentencepiece(source.byte_fallback, source.add_dummy_prefix);
  const auto bos = source.bos_id < 0 ? std::nullopt : std::optional(source.bos_id);
  parts->post_processor = PostProcessor::around(bos, std::nullopt);  // encodes without EOS
  return parts;
}

}  // namespace quire
