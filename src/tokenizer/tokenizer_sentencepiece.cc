// Builds the tokenizer's components from SentencePiece's tokenizer.model.
#include <algorithm>
#include <limits>
#include <numeric>

#include "tokenizer/sentencepiece_model.h"
#include "tokenizer/token_model.h"
#include "tokenizer/tokenizer_parts.h"
#include "tokenizer/unicode.h"

namespace quire {
namespace {

using PieceType = SentencePieceModel::PieceType;

// The merge rank of each piece. SentencePiece first merges the neighbours whose union is the piece
// with the best score; equal scores have equal ranks.
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

void add_merges_of(int32_t id, std::string_view text, int32_t rank,
                   const SentencePieceModel& source, const Vocab& vocab, Bpe& model) {
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
    if (right) model.add_merge(*left, *right, rank, id);
  }
}

Result<std::unique_ptr<TokenModel>> make_bpe(const SentencePieceModel& source,
                                             const ByteTrie& user_defined, const Vocab& vocab) {
  const BpeOptions options{
      .byte_fallback = source.byte_fallback, .fuse_unk = true, .unk_id = source.unk_id};
  auto model = std::make_unique<Bpe>(vocab, options, user_defined);
  const std::vector<int32_t> ranks = ranks_by_score(source.pieces);
  for (size_t i = 0; i < source.pieces.size(); ++i) {
    const SentencePieceModel::Piece& piece = source.pieces[i];
    if (piece.type == PieceType::kUnused) {
      return unimplemented("a SentencePiece BPE model with unused pieces is not supported");
    }
    if (piece.type != PieceType::kNormal) continue;
    add_merges_of(static_cast<int32_t>(i), piece.text, ranks[i], source, vocab, *model);
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
    // User-defined pieces always win.
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

Result<std::unique_ptr<TokenizerParts>> parts_from_sentencepiece(std::string_view bytes) {
  QUIRE_ASSIGN_OR_RETURN(const SentencePieceModel source, SentencePieceModel::parse(bytes));
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
  const auto or_none = [](int32_t id) { return id < 0 ? std::nullopt : std::optional(id); };
  parts->post_processor = PostProcessor::around(or_none(source.bos_id), std::nullopt);
  return parts;
}

}  // namespace quire
