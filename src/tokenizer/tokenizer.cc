#include "tokenizer/tokenizer.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

#include "base/text.h"
#include "tokenizer/tokenizer_parts.h"

namespace quire {
namespace {

void encode_segment(const TokenizerParts& parts, std::string_view text, bool at_start,
                    SearchBudget& budget, std::vector<int32_t>& ids) {
  parts.pre_tokenizer.run({text, at_start}, budget, [&](Piece piece) {
    if (!budget.is_spent()) parts.model->encode(piece.text, budget, ids);
  });
}

// Encodes text without raw added tokens: normalizes it, then splits it at the added tokens that are
// matched in normalized text.
void encode_raw_text(const TokenizerParts& parts, std::string_view text, bool at_start,
                     SearchBudget& budget, std::vector<int32_t>& ids) {
  std::string normalized;
  if (!parts.normalizer.is_identity()) {
    normalized = parts.normalizer.apply(text, budget);
    text = normalized;
  }
  const auto encode_part = [&](std::string_view part, int32_t id) {
    if (id >= 0) {
      ids.push_back(id);
    } else {
      encode_segment(parts, part, at_start && part.data() == text.data(), budget, ids);
    }
  };
  parts.added.split(text, AddedTokens::Stage::kNormalized, budget, encode_part);
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerParts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text,
                                               bool add_special_tokens) const {
  std::string repaired;
  if (!simdjson::validate_utf8(text.data(), text.size())) {
    repaired = replace_invalid_utf8(text);
    text = repaired;
  }
  SearchBudget budget(text.size());
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4 + 16);
  if (add_special_tokens) ids = parts_->post_processor.prefix();
  const auto encode_part = [&](std::string_view part, int32_t id) {
    if (id >= 0) {
      ids.push_back(id);
    } else {
      encode_raw_text(*parts_, part, part.data() == text.data(), budget, ids);
    }
  };
  parts_->added.split(text, AddedTokens::Stage::kRaw, budget, encode_part);
  if (budget.is_spent()) {
    return invalid_argument(
        fmt::format("[tokenizer] the tokenizer's rules exceed their budget on this text of {} "
                    "bytes; shorten the text or its runs of equal characters",
                    text.size()));
  }
  if (add_special_tokens) {
    const std::vector<int32_t>& suffix = parts_->post_processor.suffix();
    ids.insert(ids.end(), suffix.begin(), suffix.end());
  }
  return ids;
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

bool Tokenizer::is_special(int32_t id) const {
  const AddedToken* added = parts_->added.find(id);
  return added != nullptr && added->special;
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
