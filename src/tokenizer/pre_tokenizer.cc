#include "tokenizer/pre_tokenizer.h"

#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/pattern.h"
#include "tokenizer/scanners.h"
#include "tokenizer/unicode.h"

namespace quire {
namespace {

// How a split handles the matches of its pattern.
enum class SplitBehavior { kIsolated, kRemoved, kContiguous, kMergedWithPrevious, kMergedWithNext };
enum class PrependScheme { kAlways, kFirst, kNever };

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
    // A part that may still be extended by the next part.
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

std::unique_ptr<const PreTokenizerStage> make_split_stage(std::unique_ptr<const Pattern> pattern,
                                                          SplitBehavior behavior, bool invert) {
  return std::make_unique<SplitStage>(std::move(pattern), behavior, invert);
}

// Adds `prefix` to a piece that does not begin with it.
std::unique_ptr<const PreTokenizerStage> make_prefix_stage(std::string prefix) {
  return std::make_unique<PrefixStage>(std::move(prefix));
}

// Replaces each space by `replacement`, and prepends `replacement` according to the scheme.
std::unique_ptr<const PreTokenizerStage> make_metaspace_stage(std::string replacement,
                                                              PrependScheme scheme) {
  return std::make_unique<MetaspaceStage>(std::move(replacement), scheme);
}

constexpr int kMaxPreTokenizerDepth = 8;
constexpr size_t kMaxPreTokenizerStages = 32;
constexpr size_t kMaxReplaceContentBytes = 32;
constexpr std::string_view kSupportedPreTokenizers =
    "ByteLevel, CharDelimiterSplit, Digits, Metaspace, Punctuation, Sequence, Split, Whitespace, "
    "WhitespaceSplit";

Result<SplitBehavior> parse_behavior(std::string_view name) {
  constexpr std::pair<std::string_view, SplitBehavior> kBehaviors[] = {
      {"Isolated", SplitBehavior::kIsolated},
      {"Removed", SplitBehavior::kRemoved},
      {"Contiguous", SplitBehavior::kContiguous},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext}};
  for (const auto& [known, behavior] : kBehaviors) {
    if (name == known) return behavior;
  }
  return unimplemented(
      fmt::format("pre_tokenizer behavior \"{}\" is not supported", clipped(name)));
}

Result<PrependScheme> parse_prepend_scheme(JsonElement json) {
  QUIRE_ASSIGN_OR_RETURN(const bool add_prefix_space, json_or(json, "add_prefix_space", true));
  QUIRE_ASSIGN_OR_RETURN(
      const std::string_view name,
      json_or(json, "prepend_scheme", std::string_view(add_prefix_space ? "always" : "never")));
  if (name == "always") return PrependScheme::kAlways;
  if (name == "first") return PrependScheme::kFirst;
  if (name == "never") return PrependScheme::kNever;
  return unimplemented(fmt::format("prepend_scheme \"{}\" is not supported", clipped(name)));
}

}  // namespace

Result<PreTokenizer> PreTokenizer::from_json(std::optional<JsonElement> json) {
  PreTokenizer result;
  if (json) QUIRE_RETURN_IF_ERROR(result.add(*json, 0));
  return result;
}

Result<PreTokenizer> PreTokenizer::byte_level(std::string_view regex) {
  PreTokenizer result;
  QUIRE_ASSIGN_OR_RETURN(auto pattern, make_regex_pattern(regex));
  result.stages_.push_back(make_split_stage(std::move(pattern), SplitBehavior::kIsolated, false));
  result.is_byte_level_ = true;
  return result;
}

Status PreTokenizer::add(JsonElement json, int depth) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view type,
                         json_required<std::string_view>(json, "type"));
  if (depth > kMaxPreTokenizerDepth || stages_.size() >= kMaxPreTokenizerStages) {
    return invalid_argument("pre_tokenizer is too large; expected at most 32 parts, 8 levels deep");
  }
  const auto split_by_flag = [this](unsigned flags, SplitBehavior behavior, bool symbols = false) {
    stages_.push_back(make_split_stage(make_flag_pattern(flags, symbols), behavior, false));
    return Status();
  };
  if (type == "Sequence") {
    QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::array parts,
                           json_required<simdjson::dom::array>(json, "pretokenizers"));
    for (const JsonElement part : parts) QUIRE_RETURN_IF_ERROR(add(part, depth + 1));
    return {};
  }
  if (type == "ByteLevel") return add_byte_level(json);
  if (type == "Split") return add_split(json);
  if (type == "Digits") {
    QUIRE_ASSIGN_OR_RETURN(const bool individual, json_or(json, "individual_digits", false));
    return split_by_flag(unicode::kNumber,
                         individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
  }
  if (type == "Punctuation") {
    QUIRE_ASSIGN_OR_RETURN(const std::string_view name,
                           json_or(json, "behavior", std::string_view("Isolated")));
    QUIRE_ASSIGN_OR_RETURN(const SplitBehavior behavior, parse_behavior(name));
    return split_by_flag(unicode::kPunct, behavior, true);
  }
  if (type == "WhitespaceSplit") return split_by_flag(unicode::kSpace, SplitBehavior::kRemoved);
  if (type == "Whitespace") {
    QUIRE_ASSIGN_OR_RETURN(auto pattern, make_regex_pattern(scan::kWordsRegex));
    stages_.push_back(make_split_stage(std::move(pattern), SplitBehavior::kRemoved, true));
    return {};
  }
  if (type == "CharDelimiterSplit") {
    QUIRE_ASSIGN_OR_RETURN(const std::string_view delimiter,
                           json_required<std::string_view>(json, "delimiter"));
    stages_.push_back(make_split_stage(make_literal_pattern(std::string(delimiter)),
                                       SplitBehavior::kRemoved, false));
    return {};
  }
  if (type == "Metaspace") {
    QUIRE_ASSIGN_OR_RETURN(const std::string_view replacement,
                           json_or(json, "replacement", std::string_view("▁")));
    QUIRE_ASSIGN_OR_RETURN(const PrependScheme scheme, parse_prepend_scheme(json));
    QUIRE_ASSIGN_OR_RETURN(const bool split, json_or(json, "split", true));
    if (replacement.empty() || replacement.size() > kMaxReplaceContentBytes) {
      return invalid_argument(fmt::format("Metaspace replacement; got {} bytes, expected 1 to {}",
                                          replacement.size(), kMaxReplaceContentBytes));
    }
    stages_.push_back(make_metaspace_stage(std::string(replacement), scheme));
    if (split) {
      stages_.push_back(make_split_stage(make_literal_pattern(std::string(replacement)),
                                         SplitBehavior::kMergedWithNext, false));
    }
    return {};
  }
  return unsupported_type("pre_tokenizer", type, kSupportedPreTokenizers);
}

Status PreTokenizer::add_byte_level(JsonElement json) {
  QUIRE_ASSIGN_OR_RETURN(const bool add_prefix_space, json_or(json, "add_prefix_space", true));
  QUIRE_ASSIGN_OR_RETURN(const bool use_regex, json_or(json, "use_regex", true));
  if (is_byte_level_) return unimplemented("a second ByteLevel pre_tokenizer is not supported");
  if (add_prefix_space) stages_.push_back(make_prefix_stage(" "));
  if (use_regex) {
    QUIRE_ASSIGN_OR_RETURN(auto pattern, make_regex_pattern(scan::kGpt2Regex));
    stages_.push_back(make_split_stage(std::move(pattern), SplitBehavior::kIsolated, false));
  }
  is_byte_level_ = true;
  return {};
}

Status PreTokenizer::add_split(JsonElement json) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view name,
                         json_required<std::string_view>(json, "behavior"));
  QUIRE_ASSIGN_OR_RETURN(const SplitBehavior behavior, parse_behavior(name));
  QUIRE_ASSIGN_OR_RETURN(const bool invert, json_or(json, "invert", false));
  const std::optional<JsonElement> pattern_json = json_field(json, "pattern");
  if (!pattern_json) return invalid_argument("field \"pattern\" of a Split is missing");
  std::unique_ptr<Pattern> pattern;
  if (json_field(*pattern_json, "String")) {
    QUIRE_ASSIGN_OR_RETURN(const std::string_view literal,
                           json_required<std::string_view>(*pattern_json, "String"));
    pattern = make_literal_pattern(std::string(literal));
  } else {
    QUIRE_ASSIGN_OR_RETURN(const std::string_view regex,
                           json_required<std::string_view>(*pattern_json, "Regex"));
    QUIRE_ASSIGN_OR_RETURN(pattern, make_regex_pattern(regex));
  }
  if (is_byte_level_) {
    return unimplemented("a Split after ByteLevel is not supported; expected ByteLevel to be last");
  }
  stages_.push_back(make_split_stage(std::move(pattern), behavior, invert));
  return {};
}

void PreTokenizer::run_from(size_t stage, Piece piece, SearchBudget& budget, PieceSink sink) const {
  if (piece.text.empty()) return;
  if (stage == stages_.size()) return sink(piece);
  if (stage + 1 == stages_.size()) {
    const auto drop_empty = [&](Piece part) {
      if (!part.text.empty()) sink(part);
    };
    return stages_[stage]->run(piece, budget, drop_empty);
  }
  stages_[stage]->run(piece, budget, [&](Piece part) { run_from(stage + 1, part, budget, sink); });
}

}  // namespace quire
