#include "tokenizer/tokenizer.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <span>

#include "base/text.h"
#include "tokenizer/tokenizer_parts.h"

namespace quire {
namespace {

// Encodes one text into `ids`.
class Encoder {
 public:
  Encoder(const TokenizerParts& parts, SearchBudget& budget, std::vector<int32_t>& ids)
      : parts_(parts), budget_(budget), ids_(ids) {}

  void encode(std::string_view text, const ByteSpans& untrusted) {
    const auto encode_part = [&](std::string_view part, int32_t id) {
      if (id >= 0) return ids_.push_back(id);
      const size_t begin = static_cast<size_t>(part.data() - text.data());
      ByteSpans part_untrusted;
      part_untrusted.add_part(untrusted, begin, begin + part.size(), 0);
      encode_raw_part(part, part_untrusted, begin == 0);
    };
    parts_.added.split(text, untrusted, AddedTokens::Stage::kRaw, budget_, encode_part);
  }

 private:
  // Encodes text between raw added tokens. Normalizes the text, then splits it at the added tokens
  // that are matched in normalized text.
  void encode_raw_part(std::string_view text, const ByteSpans& untrusted, bool at_start) {
    const bool has_untrusted = !untrusted.empty();
    MarkedText normalized;
    if (!parts_.normalizer.is_identity()) {
      const bool needs_marks = has_untrusted && parts_.added.has_normalized_control();
      normalized = parts_.normalizer.apply(text, needs_marks ? untrusted : ByteSpans(), budget_);
      text = normalized.text;
    }
    const ByteSpans& marks = parts_.normalizer.is_identity() ? untrusted : normalized.untrusted;
    const auto encode_part = [&](std::string_view part, int32_t id) {
      if (id >= 0) return ids_.push_back(id);
      encode_segment({part, at_start && part.data() == text.data()}, has_untrusted);
    };
    parts_.added.split(text, marks, AddedTokens::Stage::kNormalized, budget_, encode_part);
  }

  // Added tokens have already been split off. So if the model produces a control token from a text
  // with untrusted bytes, the token comes from these bytes. This is rare, so the whole segment is
  // checked at once, and only a segment with such a token is encoded again.
  void encode_segment(Piece segment, bool has_untrusted) {
    const size_t num_before = ids_.size();
    parts_.pre_tokenizer.run(segment, budget_, [&](Piece piece) {
      if (!budget_.is_spent()) parts_.model->encode(piece.text, budget_, ids_);
    });
    if (!has_untrusted || !has_vocab_control(num_before)) return;
    ids_.resize(num_before);
    parts_.pre_tokenizer.run(segment, budget_, [&](Piece piece) {
      if (!budget_.is_spent()) encode_without_control(piece.text);
    });
  }

  void encode_without_control(std::string_view piece) {
    const size_t num_before = ids_.size();
    parts_.model->encode(piece, budget_, ids_);
    if (!has_vocab_control(num_before)) return;
    ids_.resize(num_before);
    parts_.added.cut_vocab_control(piece, budget_, [&](std::string_view part) {
      if (!budget_.is_spent()) parts_.model->encode(part, budget_, ids_);
    });
  }

  bool has_vocab_control(size_t num_before) const {
    return parts_.added.has_vocab_control(std::span(ids_).subspan(num_before));
  }

  const TokenizerParts& parts_;
  SearchBudget& budget_;
  std::vector<int32_t>& ids_;
};

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerParts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, bool add_special_tokens,
                                               const ByteSpans& untrusted) const {
  std::string repaired;
  ByteSpans all;
  if (!simdjson::validate_utf8(text.data(), text.size())) {
    repaired = replace_invalid_utf8(text);
    text = repaired;
    // The repair of invalid UTF-8 moves bytes, so all bytes count as untrusted.
    if (!untrusted.empty()) all = ByteSpans::whole(text.size());
  }
  SearchBudget budget(text.size());
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4 + 16);
  if (add_special_tokens) ids = parts_->post_processor.prefix();
  Encoder(*parts_, budget, ids).encode(text, all.empty() ? untrusted : all);
  if (budget.is_spent()) {
    return invalid_argument(fmt::format(
        "[tokenizer] the tokenizer's rules exceed their search budget for this text of {} "
        "bytes; shorten the text or its runs of equal characters",
        text.size()));
  }
  if (add_special_tokens) {
    const std::vector<int32_t>& suffix = parts_->post_processor.suffix();
    ids.insert(ids.end(), suffix.begin(), suffix.end());
  }
  return ids;
}

Result<std::optional<int32_t>> find_bos(const Tokenizer& tokenizer) {
  constexpr std::string_view kProbe = "a";
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int32_t> plain, tokenizer.encode(kProbe, false));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int32_t> special, tokenizer.encode(kProbe, true));
  if (special.size() <= plain.size()) return std::optional<int32_t>();
  if (!plain.empty() && special.front() == plain.front()) return std::optional<int32_t>();
  return std::optional<int32_t>(special.front());
}

std::optional<std::string_view> Tokenizer::decodable(int32_t id, bool skip_special_tokens) const {
  if (const AddedToken* added = parts_->added.find(id)) {
    if (skip_special_tokens && added->special) return std::nullopt;
    return parts_->added.decoded_form(id);
  }
  if (!parts_->vocab.contains(id)) return std::nullopt;
  return parts_->vocab.text(id);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  DecoderStream stream(parts_->decoder);
  std::string text;
  for (const int32_t id : ids) {
    if (const auto token = decodable(id, skip_special_tokens)) stream.push(*token, text);
  }
  stream.finish(text);
  return text;
}

int Tokenizer::vocab_size() const {
  return std::max(parts_->vocab.num_ids(), parts_->added.num_ids());
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const {
  if (const auto id = parts_->added.find(token)) return id;
  return parts_->vocab.find(token);
}

std::string_view Tokenizer::id_to_token(int32_t id) const {
  if (const AddedToken* added = parts_->added.find(id)) return added->content;
  return parts_->vocab.text(id);
}

bool Tokenizer::is_added(int32_t id) const {
  return parts_->added.find(id) != nullptr;
}

bool Tokenizer::is_special(int32_t id) const {
  const AddedToken* added = parts_->added.find(id);
  return added != nullptr && added->special;
}

bool Tokenizer::is_control(int32_t id) const {
  return parts_->added.is_control(id);
}

std::string Tokenizer::token_bytes(int32_t id) const {
  if (const AddedToken* added = parts_->added.find(id)) return added->content;
  return parts_->decoder.token_bytes(parts_->vocab.text(id));
}

IncrementalDetokenizer::IncrementalDetokenizer(const Tokenizer& tokenizer, bool skip_special_tokens)
    : tokenizer_(&tokenizer),
      skip_special_tokens_(skip_special_tokens),
      stream_(std::make_unique<DecoderStream>(tokenizer.parts_->decoder)) {}
IncrementalDetokenizer::IncrementalDetokenizer(const IncrementalDetokenizer& other)
    : tokenizer_(other.tokenizer_),
      skip_special_tokens_(other.skip_special_tokens_),
      stream_(std::make_unique<DecoderStream>(*other.stream_)) {}
IncrementalDetokenizer::IncrementalDetokenizer(IncrementalDetokenizer&&) noexcept = default;
IncrementalDetokenizer& IncrementalDetokenizer::operator=(IncrementalDetokenizer&&) noexcept =
    default;
IncrementalDetokenizer::~IncrementalDetokenizer() = default;

void IncrementalDetokenizer::prime(std::span<const int32_t> prompt_ids) {
  for (const int32_t id : prompt_ids) {
    if (const auto token = tokenizer_->decodable(id, skip_special_tokens_)) stream_->prime(*token);
  }
}

std::string IncrementalDetokenizer::push(int32_t id) {
  std::string text;
  if (const auto token = tokenizer_->decodable(id, skip_special_tokens_)) {
    stream_->push(*token, text);
  }
  return text;
}

std::string IncrementalDetokenizer::pending() const {
  return stream_->pending();
}

std::string IncrementalDetokenizer::finish() {
  std::string text;
  stream_->finish(text);
  return text;
}

}  // namespace quire
