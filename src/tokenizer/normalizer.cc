#include "tokenizer/normalizer.h"

#include "tokenizer/normalizer_steps.h"
#include "tokenizer/pattern.h"

namespace quire {
namespace {

constexpr int kMaxDepth = 8;
constexpr size_t kMaxSteps = 32;
constexpr size_t kMaxInsertedBytes = 32;
constexpr std::string_view kSupported =
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
  if (depth > kMaxDepth || steps_.size() >= kMaxSteps) {
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
    return unsupported_type("normalizer", type, kSupported);
  }
  return {};
}

std::string Normalizer::apply(std::string_view text, SearchBudget& budget) const {
  // Bounds the growth, because several steps in a row multiply.
  const size_t max_bytes = text.size() * 16 + (size_t{1} << 16);
  std::string out(text);
  for (const auto& step : steps_) {
    out = step->apply(out, budget);
    if (out.size() > max_bytes) budget.spend_all();
    if (budget.is_spent()) break;
  }
  return out;
}

}  // namespace quire
