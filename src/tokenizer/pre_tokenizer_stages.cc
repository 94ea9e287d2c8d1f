#include "tokenizer/pre_tokenizer_stages.h"

#include <vector>

namespace quire {
namespace {

class SplitStage final : public PreTokenizerStage {
 public:
  SplitStage(std::unique_ptr<const Pattern> pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void run(Piece piece, SearchBudget& budget, PieceSink sink) const override {
    const auto emit = [&](size_t begin, size_t end) {
      sink({piece.text.substr(begin, end - begin), piece.at_start && begin == 0});
    };
    if (behavior_ == SplitBehavior::kIsolated) {
      for_each_match(*pattern_, piece.text, budget,
                     [&](size_t begin, size_t end, bool) { emit(begin, end); });
    } else if (behavior_ == SplitBehavior::kRemoved) {
      for_each_match(*pattern_, piece.text, budget, [&](size_t begin, size_t end, bool is_match) {
        if (is_match == invert_) emit(begin, end);
      });
    } else {
      run_merged(piece, budget, emit);
    }
  }

 private:
  struct Part {
    size_t begin;
    size_t end;
  };

  template <typename Emit>
  void run_merged(Piece piece, SearchBudget& budget, Emit emit) const {
    // A part that the next part may still extend.
    std::optional<Part> open;
    bool previous_match = false;
    for_each_match(*pattern_, piece.text, budget, [&](size_t begin, size_t end, bool matched) {
      const bool is_match = matched != invert_;
      bool joins = open.has_value();
      switch (behavior_) {
        case SplitBehavior::kContiguous:
          joins = joins && is_match == previous_match;
          break;
        case SplitBehavior::kMergedWithPrevious:
          joins = joins && is_match && !previous_match;
          break;
        default:  // kMergedWithNext: a match is merged with the part after it
          joins = joins && previous_match && !is_match;
      }
      if (joins) {
        open->end = end;
      } else {
        if (open) emit(open->begin, open->end);
        open = Part{begin, end};
      }
      previous_match = is_match;
    });
    if (open) emit(open->begin, open->end);
  }

  std::unique_ptr<const Pattern> pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class PrefixStage final : public PreTokenizerStage {
 public:
  explicit PrefixStage(std::string prefix) : prefix_(std::move(prefix)) {}

  void run(Piece piece, SearchBudget&, PieceSink sink) const override {
    if (piece.text.starts_with(prefix_)) return sink(piece);
    std::string text = prefix_;
    text += piece.text;
    sink({text, piece.at_start});
  }

 private:
  std::string prefix_;
};

class MetaspaceStage final : public PreTokenizerStage {
 public:
  MetaspaceStage(std::string replacement, PrependScheme scheme)
      : replacement_(std::move(replacement)), scheme_(scheme) {}

  void run(Piece piece, SearchBudget& budget, PieceSink sink) const override {
    const bool wants_prefix =
        scheme_ == PrependScheme::kAlways || (scheme_ == PrependScheme::kFirst && piece.at_start);
    const bool has_prefix = piece.text.starts_with(' ') || piece.text.starts_with(replacement_);
    std::string text;
    text.reserve(piece.text.size() + piece.text.size() / 2 + replacement_.size());
    const auto insert = [&] {
      budget.spend_inserted(replacement_.size());
      text += replacement_;
    };
    if (wants_prefix && !has_prefix) insert();
    for (const char c : piece.text) {
      if (budget.is_spent()) return;
      if (c == ' ') {
        insert();
      } else {
        text += c;
      }
    }
    sink({text, piece.at_start});
  }

 private:
  std::string replacement_;
  PrependScheme scheme_;
};

}  // namespace

std::unique_ptr<const PreTokenizerStage> make_split_stage(std::unique_ptr<const Pattern> pattern,
                                                          SplitBehavior behavior, bool invert) {
  return std::make_unique<SplitStage>(std::move(pattern), behavior, invert);
}

std::unique_ptr<const PreTokenizerStage> make_prefix_stage(std::string prefix) {
  return std::make_unique<PrefixStage>(std::move(prefix));
}

std::unique_ptr<const PreTokenizerStage> make_metaspace_stage(std::string replacement,
                                                              PrependScheme scheme) {
  return std::make_unique<MetaspaceStage>(std::move(replacement), scheme);
}

}  // namespace quire
