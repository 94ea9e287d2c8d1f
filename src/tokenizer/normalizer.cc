#include "tokenizer/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <type_traits>

#include "base/text.h"
#include "tokenizer/pattern.h"
#include "tokenizer/unicode.h"

namespace quire {
namespace {

// A step implemented by a function.
template <typename Function>
class FunctionStep final : public NormalizerStep {
 public:
  explicit FunctionStep(Function function) : function_(std::move(function)) {}
  void apply(std::string_view text, SearchBudget& budget, StepOutput& out) const override {
    if constexpr (std::is_invocable_v<Function, std::string_view, SearchBudget&, StepOutput&>) {
      function_(text, budget, out);
    } else {
      function_(text, out);
    }
  }

 private:
  Function function_;
};

template <typename Function>
std::unique_ptr<const NormalizerStep> make_step(Function function) {
  return std::make_unique<FunctionStep<Function>>(std::move(function));
}

// Replaces each character of `text` by the text that map(character, text) appends.
template <typename Map>
void map_chars(std::string_view text, StepOutput& out, Map map) {
  const unicode::CharTable& table = unicode::CharTable::get();
  out.reserve(text.size());
  std::string mapped;
  for (size_t i = 0; i < text.size();) {
    const unicode::Char c = table.at(text.data() + i);
    mapped.clear();
    map(c, mapped);
    out.replace(c.num_bytes, mapped);
    i += c.num_bytes;
  }
}

bool is_nmt_dropped(char32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
         c == 0x8F || c == 0x9F;
}

bool is_nmt_space(char32_t c) {
  return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
         c == 0xFFFD;
}

std::string_view strip(std::string_view text, bool left, bool right) {
  const unicode::CharTable& table = unicode::CharTable::get();
  while (left && !text.empty() && (table.at(text.data()).flags & unicode::kSpace)) {
    text.remove_prefix(unicode::char_length(text[0]));
  }
  while (right && !text.empty()) {
    const size_t last = unicode::last_char_start(text);
    if (!(table.at(text.data() + last).flags & unicode::kSpace)) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

// As in the `tokenizers` package, a grapheme cluster of up to kMaxClusterBytes is looked up as a
// whole, and the rule of its shortest prefix applies.
void apply_charsmap(const Charsmap& map, std::string_view text, SearchBudget& budget,
                    StepOutput& out) {
  constexpr size_t kMaxClusterBytes = 5;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size() && !budget.is_spent();) {
    utf8proc_int32_t state = 0;
    size_t end = i;
    Utf8Char c = decode_utf8(text.substr(i));
    for (;;) {
      end += static_cast<size_t>(c.num_bytes);
      if (end >= text.size()) break;
      const Utf8Char next = decode_utf8(text.substr(end));
      if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(c.code_point),
                                           static_cast<utf8proc_int32_t>(next.code_point),
                                           &state)) {
        break;
      }
      c = next;
    }
    const std::string_view cluster = text.substr(i, end - i);
    i = end;
    if (cluster.size() <= kMaxClusterBytes) {
      if (const auto rule = map.shortest_rule(cluster, budget)) {
        out.replace(cluster.size(), rule->replacement);
        continue;
      }
    }
    for (size_t j = 0; j < cluster.size();) {
      const std::string_view part = cluster.substr(j, unicode::char_length(cluster[j]));
      const auto rule = map.shortest_rule(part, budget);
      out.replace(part.size(), rule ? rule->replacement : part);
      j += part.size();
    }
  }
}

// Returns the size of the text's first part whose normal form does not depend on the text after it.
size_t normal_part_size(std::string_view text, NormalForm form) {
  size_t end = unicode::char_length(text[0]);
  while (end < text.size()) {
    const std::string_view part = text.substr(0, end);
    const std::string_view next = text.substr(end, unicode::char_length(text[end]));
    if (part.size() == 1 && next.size() == 1) return end;  // ASCII
    const auto c = static_cast<utf8proc_int32_t>(decode_utf8(next).code_point);
    const bool is_starter = utf8proc_get_property(c)->combining_class == 0;
    if (is_starter && to_normal_form(text.substr(0, end + next.size()), form) ==
                          to_normal_form(part, form) + to_normal_form(next, form)) {
      return end;
    }
    end += next.size();
  }
  return end;
}

void apply_normal_form(std::string_view text, NormalForm form, StepOutput& out) {
  if (!out.has_untrusted_source()) return out.replace_all(to_normal_form(text, form));
  while (!text.empty()) {
    const std::string_view part = text.substr(0, normal_part_size(text, form));
    const std::string normal = to_normal_form(part, form);
    const auto same = std::ranges::mismatch(part, normal).in1 - part.begin();
    size_t num_same = static_cast<size_t>(same);
    while (num_same < part.size() && unicode::is_continuation(part[num_same])) --num_same;
    out.copy(part.substr(0, num_same));
    out.replace(part.size() - num_same, std::string_view(normal).substr(num_same));
    text.remove_prefix(part.size());
  }
}

class ReplaceStep final : public NormalizerStep {
 public:
  ReplaceStep(std::unique_ptr<const Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void apply(std::string_view text, SearchBudget& budget, StepOutput& out) const override {
    out.reserve(text.size() + text.size() / 2);
    for_each_match(*pattern_, text, budget, [&](size_t begin, size_t end, bool is_match) {
      if (budget.is_spent()) return;
      if (is_match) {
        budget.spend_inserted(content_.size());
        out.replace(end - begin, content_);
      } else {
        out.copy(text.substr(begin, end - begin));
      }
    });
  }

 private:
  std::unique_ptr<const Pattern> pattern_;
  std::string content_;
};

class SentencePieceStep final : public NormalizerStep {
 public:
  explicit SentencePieceStep(SentencePieceRules rules)
      : rules_(std::move(rules)), space_(rules_.escape_whitespaces ? "▁" : " ") {}

  void apply(std::string_view text, SearchBudget& budget, StepOutput& out) const override {
    out.reserve(text.size() * 3 / 2 + space_.size());
    const bool remove_extra = rules_.remove_extra_whitespaces;
    bool after_space = remove_extra;
    bool is_empty = true;
    while (!text.empty() && !budget.is_spent()) {
      const auto [num_bytes, replacement] = next_unit(text, budget);
      text.remove_prefix(num_bytes);
      std::string_view unit = replacement;
      while (after_space && unit.starts_with(' ')) unit.remove_prefix(1);
      if (is_empty && !unit.empty() && rules_.add_dummy_prefix) out.replace(0, space_);
      out.replace(num_bytes, escaped(unit));
      if (unit.empty()) continue;
      is_empty = false;
      after_space = remove_extra && unit.ends_with(' ');
    }
    if (remove_extra) remove_last_spaces(out);
  }

 private:
  Charsmap::Rule next_unit(std::string_view text, SearchBudget& budget) const {
    const ByteTrie::Match match = rules_.user_defined.longest_prefix(text);
    budget.spend(match.num_walked);
    if (match.num_bytes > 0) return {match.num_bytes, text.substr(0, match.num_bytes)};
    if (rules_.charsmap) {
      if (const auto rule = rules_.charsmap->longest_rule(text, budget)) return *rule;
    }
    const size_t length = unicode::char_length(text[0]);
    return {length, text.substr(0, length)};
  }
  std::string escaped(std::string_view unit) const {
    std::string out;
    for (const char c : unit) {
      if (c == ' ') {
        out += space_;
      } else {
        out += c;
      }
    }
    return out;
  }
  void remove_last_spaces(StepOutput& out) const {
    std::string_view kept = out.text();
    while (kept.ends_with(space_)) kept.remove_suffix(space_.size());
    if (kept.size() < out.text().size()) out.remove_suffix(out.text().size() - kept.size());
  }

  SentencePieceRules rules_;
  std::string space_;
};

std::unique_ptr<const NormalizerStep> make_normal_form_step(NormalForm form) {
  return make_step(
      [form](std::string_view text, StepOutput& out) { apply_normal_form(text, form, out); });
}

std::unique_ptr<const NormalizerStep> make_lowercase_step() {
  return make_step([](std::string_view text, StepOutput& output) {
    map_chars(text, output, [](const unicode::Char& c, std::string& out) {
      if (c.code_point == 0x130) {  // the only character whose lower case has two characters
        out += "i\u0307";
      } else {
        append_utf8(
            static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c.code_point))),
            out);
      }
    });
  });
}

std::unique_ptr<const NormalizerStep> make_strip_accents_step() {
  return make_step([](std::string_view text, StepOutput& output) {
    map_chars(text, output, [](const unicode::Char& c, std::string& out) {
      if (!(c.flags & unicode::kMark)) append_utf8(c.code_point, out);
    });
  });
}

// Removes the control characters, and replaces the unusual spaces, that SentencePiece's NMT rules
// list.
std::unique_ptr<const NormalizerStep> make_nmt_step() {
  return make_step([](std::string_view text, StepOutput& output) {
    map_chars(text, output, [](const unicode::Char& c, std::string& out) {
      if (is_nmt_dropped(c.code_point)) return;
      append_utf8(is_nmt_space(c.code_point) ? U' ' : c.code_point, out);
    });
  });
}

// Prepends a text, unless the input is empty.
std::unique_ptr<const NormalizerStep> make_prepend_step(std::string prefix) {
  return make_step([prefix = std::move(prefix)](std::string_view text, StepOutput& out) {
    if (text.empty()) return;
    out.reserve(prefix.size() + text.size());
    out.replace(0, prefix);
    out.copy(text);
  });
}

std::unique_ptr<const NormalizerStep> make_replace_step(std::unique_ptr<const Pattern> pattern,
                                                        std::string content) {
  return std::make_unique<ReplaceStep>(std::move(pattern), std::move(content));
}

std::unique_ptr<const NormalizerStep> make_strip_step(bool left, bool right) {
  return make_step([left, right](std::string_view text, StepOutput& out) {
    const std::string_view kept = strip(text, left, right);
    out.replace(static_cast<size_t>(kept.data() - text.data()), "");
    out.copy(kept);
  });
}

std::unique_ptr<const NormalizerStep> make_precompiled_step(Charsmap map) {
  return make_step(
      [map = std::move(map)](std::string_view text, SearchBudget& budget, StepOutput& out) {
        apply_charsmap(map, text, budget, out);
      });
}

Result<std::string> decode_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string out;
  out.reserve(text.size() * 3 / 4);
  uint32_t bits = 0;
  int num_bits = 0;
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return invalid_argument("base64 text is not valid");
    bits = ((bits << 6) | static_cast<uint32_t>(digit)) & 0xFFFFFFU;
    num_bits += 6;
    if (num_bits >= 8) {
      num_bits -= 8;
      out += static_cast<char>((bits >> num_bits) & 0xFFU);
    }
  }
  return out;
}

constexpr int kMaxNormalizerDepth = 8;
constexpr size_t kMaxSteps = 32;
constexpr size_t kMaxInsertedBytes = 32;
constexpr std::string_view kSupportedNormalizers =
    "Lowercase, NFC, NFD, NFKC, NFKD, Nmt, Precompiled, Prepend, Replace, Sequence, Strip, "
    "StripAccents";

Result<std::string> inserted_text(JsonElement json, std::string_view name) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view text, json_required<std::string_view>(json, name));
  if (text.size() > kMaxInsertedBytes) {
    return invalid_argument(
        fmt::format("normalizer field \"{}\" is too long; got {} bytes, "
                    "expected at most {}",
                    name, text.size(), kMaxInsertedBytes));
  }
  return std::string(text);
}

Result<std::unique_ptr<Pattern>> parse_pattern(JsonElement json) {
  const std::optional<JsonElement> pattern = json_field(json, "pattern");
  if (!pattern) return invalid_argument("field \"pattern\" of a Replace is missing");
  if (json_field(*pattern, "String")) {
    QUIRE_ASSIGN_OR_RETURN(const std::string_view literal,
                           json_required<std::string_view>(*pattern, "String"));
    return make_literal_pattern(std::string(literal));
  }
  QUIRE_ASSIGN_OR_RETURN(const std::string_view regex,
                         json_required<std::string_view>(*pattern, "Regex"));
  return make_regex_pattern(regex);
}

Result<std::unique_ptr<const NormalizerStep>> parse_precompiled(JsonElement json) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view base64,
                         json_required<std::string_view>(json, "precompiled_charsmap"));
  QUIRE_ASSIGN_OR_RETURN(const std::string blob, decode_base64(base64));
  QUIRE_ASSIGN_OR_RETURN(Charsmap map, Charsmap::parse(blob));
  return make_precompiled_step(std::move(map));
}

std::optional<NormalForm> parse_form(std::string_view type) {
  if (type == "NFC") return NormalForm::kNfc;
  if (type == "NFD") return NormalForm::kNfd;
  if (type == "NFKC") return NormalForm::kNfkc;
  if (type == "NFKD") return NormalForm::kNfkd;
  return std::nullopt;
}

}  // namespace

Result<Normalizer> Normalizer::from_json(std::optional<JsonElement> json) {
  Normalizer result;
  if (json) QUIRE_RETURN_IF_ERROR(result.add_json(*json, 0));
  return result;
}

Status Normalizer::add_json(JsonElement json, int depth) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view type,
                         json_required<std::string_view>(json, "type"));
  if (depth > kMaxNormalizerDepth || steps_.size() >= kMaxSteps) {
    return invalid_argument("normalizer is too large; expected at most 32 parts, 8 levels deep");
  }
  if (type == "Sequence") {
    QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::array parts,
                           json_required<simdjson::dom::array>(json, "normalizers"));
    for (const JsonElement part : parts) QUIRE_RETURN_IF_ERROR(add_json(part, depth + 1));
  } else if (const std::optional<NormalForm> form = parse_form(type)) {
    add(make_normal_form_step(*form));
  } else if (type == "Lowercase") {
    add(make_lowercase_step());
  } else if (type == "StripAccents") {
    add(make_strip_accents_step());
  } else if (type == "Nmt") {
    add(make_nmt_step());
  } else if (type == "Prepend") {
    QUIRE_ASSIGN_OR_RETURN(std::string prefix, inserted_text(json, "prepend"));
    add(make_prepend_step(std::move(prefix)));
  } else if (type == "Replace") {
    QUIRE_ASSIGN_OR_RETURN(std::string content, inserted_text(json, "content"));
    QUIRE_ASSIGN_OR_RETURN(auto pattern, parse_pattern(json));
    add(make_replace_step(std::move(pattern), std::move(content)));
  } else if (type == "Strip") {
    QUIRE_ASSIGN_OR_RETURN(const bool left, json_or(json, "strip_left", true));
    QUIRE_ASSIGN_OR_RETURN(const bool right, json_or(json, "strip_right", true));
    add(make_strip_step(left, right));
  } else if (type == "Precompiled") {
    QUIRE_ASSIGN_OR_RETURN(auto step, parse_precompiled(json));
    add(std::move(step));
  } else {
    return unsupported_type("normalizer", type, kSupportedNormalizers);
  }
  return {};
}

MarkedText Normalizer::apply(std::string_view text, const ByteSpans& untrusted,
                             SearchBudget& budget) const {
  // Limits the growth, because the factors of several steps multiply.
  const size_t max_bytes = text.size() * 16 + (size_t{1} << 16);
  MarkedText current = {std::string(text), untrusted};
  for (const auto& step : steps_) {
    StepOutput out(current.untrusted);
    step->apply(current.text, budget, out);
    current = out.take();
    if (current.text.size() > max_bytes) budget.spend_all();
    if (budget.is_spent()) break;
  }
  return current;
}

std::unique_ptr<const NormalizerStep> make_sentencepiece_step(SentencePieceRules rules) {
  return std::make_unique<SentencePieceStep>(std::move(rules));
}

}  // namespace quire
