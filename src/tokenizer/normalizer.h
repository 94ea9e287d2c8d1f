// Normalizes a text before it is split: the steps of tokenizer.json's "normalizer", or the rules of
// a SentencePiece model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/marked_text.h"
#include "quire/status.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/pattern.h"
#include "tokenizer/string_map.h"

namespace quire {

// The output of a step, which grows while the step runs. If the input has untrusted bytes, the
// output has them too.
class StepOutput {
 public:
  // `untrusted` are the untrusted bytes of the input, and must outlive this object.
  explicit StepOutput(const ByteSpans& untrusted) : source_(untrusted) { read(0); }

  // Appends text that replaces the next `num_bytes` of the input. 0: the step adds the text.
  void replace(size_t num_bytes, std::string_view text) {
    if (next_.begin < num_read_ + num_bytes) {
      out_.append_untrusted(text);
    } else {
      out_.text += text;
    }
    read(num_bytes);
  }
  // Replaces the whole input, which must not have untrusted bytes.
  void replace_all(std::string text) { out_.text = std::move(text); }
  // Appends `text`, which must be the next part of the input.
  void copy(std::string_view text) {
    const size_t end = num_read_ + text.size();
    if (next_.begin <= num_read_ && end <= next_.end) {
      out_.append_untrusted(text);
    } else {
      if (next_.begin < end) {
        out_.untrusted.add_part(source_, num_read_, end, out_.text.size());
      }
      out_.text += text;
    }
    read(text.size());
  }
  void remove_suffix(size_t num_bytes) {
    const std::string_view text = out_.text;
    out_ = copy_part(out_, text.substr(0, text.size() - num_bytes));
  }
  void reserve(size_t num_bytes) { out_.text.reserve(num_bytes); }
  const std::string& text() const { return out_.text; }
  bool has_untrusted_source() const { return !source_.empty(); }
  MarkedText take() { return std::move(out_); }

 private:
  void read(size_t num_bytes) {
    num_read_ += num_bytes;
    while (next_.end <= num_read_) {
      next_ =
          next_idx_ < source_.count() ? source_[next_idx_] : ByteSpans::Span{SIZE_MAX, SIZE_MAX};
      ++next_idx_;
    }
  }

  const ByteSpans& source_;
  size_t num_read_ = 0;
  size_t next_idx_ = 0;
  ByteSpans::Span next_;  // the first range of source_ that ends after num_read_
  MarkedText out_;
};

class NormalizerStep {
 public:
  virtual ~NormalizerStep() = default;
  // Maps valid UTF-8 to valid UTF-8.
  virtual void apply(std::string_view text, SearchBudget& budget, StepOutput& out) const = 0;
};

class Normalizer {
 public:
  static Result<Normalizer> from_json(std::optional<JsonElement> json);
  void add(std::unique_ptr<const NormalizerStep> step) { steps_.push_back(std::move(step)); }

  bool is_identity() const { return steps_.empty(); }
  // Each part of the result has the marks of the text that it replaces.
  MarkedText apply(std::string_view text, const ByteSpans& untrusted, SearchBudget& budget) const;

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
