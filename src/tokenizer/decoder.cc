#include "tokenizer/decoder.h"

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/byte_level.h"

namespace quire {
namespace {

using Kind = DecoderStage::Kind;

constexpr int kMaxDepth = 8;
constexpr size_t kMaxStages = 16;
constexpr size_t kMaxContentBytes = 32;
constexpr size_t kMaxStrip = 1024;
constexpr std::string_view kSupported =
    "ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Sequence, Strip";

// The byte that a token of the form <0xNN> stands for, or -1.
int fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int byte = 0;
  for (const char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    byte = byte * 16 + digit;
  }
  return byte;
}

std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content) {
  std::string out;
  out.reserve(text.size());
  for (;;) {
    const size_t at = pattern.empty() ? std::string_view::npos : text.find(pattern);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += content;
    text.remove_prefix(at + pattern.size());
  }
}

// The length of the longest end of `text` that begins `pattern` without being all of it.
size_t partial_match(std::string_view text, std::string_view pattern) {
  size_t length = std::min(text.size(), pattern.empty() ? 0 : pattern.size() - 1);
  while (length > 0 && !pattern.starts_with(text.substr(text.size() - length))) --length;
  return length;
}

}  // namespace

Result<Decoder> Decoder::from_json(std::optional<JsonElement> json) {
  Decoder result;
  if (!json) {
    result.stages_.push_back({.kind = Kind::kJoin});
  } else {
    QUIRE_RETURN_IF_ERROR(result.add_json(*json, 0));
  }
  return result;
}

Decoder Decoder::sentencepiece(bool byte_fallback, bool strips_first_space) {
  Decoder result;
  result.stages_.push_back({.kind = Kind::kReplace, .pattern = "▁", .content = " "});
  if (byte_fallback) result.stages_.push_back({.kind = Kind::kByteFallback});
  result.stages_.push_back({.kind = Kind::kFuse});
  if (strips_first_space) {
    result.stages_.push_back({.kind = Kind::kStrip, .pattern = " ", .start = 1, .is_fused = true});
  }
  return result;
}

Status Decoder::add_stage(DecoderStage stage) {
  if (stages_.size() >= kMaxStages) return invalid_argument("decoder has more than 16 parts");
  for (const DecoderStage& earlier : stages_) {
    stage.is_fused |= earlier.kind == Kind::kFuse || earlier.kind == Kind::kByteLevel;
  }
  const bool works_fused =
      stage.kind == Kind::kReplace || stage.kind == Kind::kStrip || stage.kind == Kind::kFuse;
  if (stage.is_fused && !works_fused) {
    return unimplemented(
        "a decoder part behind Fuse or ByteLevel is not supported; expected one "
        "of Fuse, Replace, Strip there");
  }
  stages_.push_back(std::move(stage));
  return {};
}

Status Decoder::add_json(JsonElement json, int depth) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view type,
                         json_required<std::string_view>(json, "type"));
  if (depth > kMaxDepth) return invalid_argument("decoder is more than 8 levels deep");
  if (type == "Sequence") {
    QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::array parts,
                           json_required<simdjson::dom::array>(json, "decoders"));
    for (const JsonElement part : parts) QUIRE_RETURN_IF_ERROR(add_json(part, depth + 1));
    return {};
  }
  if (type == "ByteLevel") return add_stage({.kind = Kind::kByteLevel});
  if (type == "ByteFallback") return add_stage({.kind = Kind::kByteFallback});
  if (type == "Fuse") return add_stage({.kind = Kind::kFuse});
  if (type == "Metaspace") {
    QUIRE_ASSIGN_OR_RETURN(const std::string_view replacement,
                           json_or(json, "replacement", std::string_view("▁")));
    QUIRE_ASSIGN_OR_RETURN(const bool add_prefix_space, json_or(json, "add_prefix_space", true));
    QUIRE_ASSIGN_OR_RETURN(
        const std::string_view scheme,
        json_or(json, "prepend_scheme", std::string_view(add_prefix_space ? "always" : "never")));
    return add_stage({.kind = Kind::kMetaspace,
                      .pattern = std::string(replacement),
                      .content = " ",
                      .start = scheme == "never" ? size_t{0} : size_t{1}});
  }
  if (type == "Replace") {
    const std::optional<JsonElement> pattern = json_field(json, "pattern");
    if (!pattern || !json_field(*pattern, "String")) {
      return unimplemented("decoder Replace is not supported; expected a pattern of kind String");
    }
    QUIRE_ASSIGN_OR_RETURN(const std::string_view text,
                           json_required<std::string_view>(*pattern, "String"));
    QUIRE_ASSIGN_OR_RETURN(const std::string_view content,
                           json_required<std::string_view>(json, "content"));
    if (content.size() > kMaxContentBytes || text.size() > kMaxContentBytes) {
      return invalid_argument("decoder Replace is too long; expected at most 32 bytes");
    }
    return add_stage(
        {.kind = Kind::kReplace, .pattern = std::string(text), .content = std::string(content)});
  }
  if (type == "Strip") {
    QUIRE_ASSIGN_OR_RETURN(const std::string_view content,
                           json_required<std::string_view>(json, "content"));
    QUIRE_ASSIGN_OR_RETURN(const int64_t start, json_required<int64_t>(json, "start"));
    QUIRE_ASSIGN_OR_RETURN(const int64_t stop, json_required<int64_t>(json, "stop"));
    const auto in_range = [](int64_t n) { return n >= 0 && n <= static_cast<int64_t>(kMaxStrip); };
    if (content.empty() || content.size() > 4 || !in_range(start) || !in_range(stop)) {
      return invalid_argument("decoder Strip is broken; expected one character, counts below 1025");
    }
    return add_stage({.kind = Kind::kStrip,
                      .pattern = std::string(content),
                      .start = static_cast<size_t>(start),
                      .stop = static_cast<size_t>(stop)});
  }
  return unsupported_type("decoder", type, kSupported);
}

std::string Decoder::token_bytes(std::string_view token) const {
  std::string bytes(token);
  for (const DecoderStage& stage : stages_) {
    if (stage.is_fused) break;
    if (stage.kind == Kind::kReplace || stage.kind == Kind::kMetaspace) {
      bytes = replace_all(bytes, stage.pattern, stage.content);
    } else if (stage.kind == Kind::kByteLevel) {
      return unspell_bytes(bytes).value_or(bytes);
    } else if (stage.kind == Kind::kByteFallback && fallback_byte(bytes) >= 0) {
      return std::string(1, static_cast<char>(fallback_byte(bytes)));
    } else if (stage.kind == Kind::kJoin) {
      bytes = std::string(1, ' ').append(bytes);
    }
  }
  return bytes;
}

void DecoderStream::run(size_t stage, std::string_view token, std::string& out) {
  if (stage == stages_->size()) {
    out += token;
    return;
  }
  const DecoderStage& config = (*stages_)[stage];
  switch (config.kind) {
    case Kind::kJoin:
      if (states_[stage].count++ > 0) run(stage + 1, " ", out);
      return run(stage + 1, token, out);
    case Kind::kByteLevel:
      return run_byte_level(stage, token, out);
    case Kind::kReplace:
      return run_replace(stage, token, out);
    case Kind::kByteFallback:
      return run_byte_fallback(stage, token, out);
    case Kind::kFuse:
      return run(stage + 1, token, out);
    case Kind::kStrip:
      return run_strip(stage, token, out);
    case Kind::kMetaspace: {
      const bool is_first = states_[stage].count++ == 0 && config.start == 1;
      return run(stage + 1, replace_all(token, config.pattern, is_first ? "" : config.content),
                 out);
    }
  }
}

void DecoderStream::run_byte_level(size_t stage, std::string_view token, std::string& out) {
  std::string& held = states_[stage].held;
  if (!append_unspelled(token, held)) held += token;
  const size_t complete = complete_utf8_prefix(held);
  if (complete == 0) return;
  const std::string text = replace_invalid_utf8(std::string_view(held).substr(0, complete));
  held.erase(0, complete);
  run(stage + 1, text, out);
}

void DecoderStream::run_byte_fallback(size_t stage, std::string_view token, std::string& out) {
  const int byte = fallback_byte(token);
  if (byte >= 0) {
    // Whether the run is text at all shows only at its end.
    states_[stage].held += static_cast<char>(byte);
    return;
  }
  flush(stage, out);
  run(stage + 1, token, out);
}

void DecoderStream::run_replace(size_t stage, std::string_view token, std::string& out) {
  const DecoderStage& config = (*stages_)[stage];
  if (!config.is_fused) {
    return run(stage + 1, replace_all(token, config.pattern, config.content), out);
  }
  std::string& held = states_[stage].held;
  held += token;
  // What follows the last whole match may begin another one.
  size_t scanned = 0;
  while (!config.pattern.empty()) {
    const size_t at = held.find(config.pattern, scanned);
    if (at == std::string::npos) break;
    scanned = at + config.pattern.size();
  }
  const size_t open = partial_match(std::string_view(held).substr(scanned), config.pattern);
  const size_t ready = held.size() - open;
  const std::string text =
      replace_all(std::string_view(held).substr(0, ready), config.pattern, config.content);
  held.erase(0, ready);
  run(stage + 1, text, out);
}

void DecoderStream::run_strip(size_t stage, std::string_view token, std::string& out) {
  const DecoderStage& config = (*stages_)[stage];
  State& state = states_[stage];
  if (!config.is_fused) state.count = 0;
  while (state.count < config.start && !token.empty()) {
    if (!token.starts_with(config.pattern)) {
      state.count = config.start;
      break;
    }
    token.remove_prefix(config.pattern.size());
    ++state.count;
  }
  state.held += token;
  size_t trailing = 0;
  size_t ready = state.held.size();
  while (trailing < config.stop &&
         std::string_view(state.held).substr(0, ready).ends_with(config.pattern)) {
    ready -= config.pattern.size();
    ++trailing;
  }
  const std::string text = state.held.substr(0, ready);
  state.held.erase(0, ready);
  if (!config.is_fused) state.held.clear();
  run(stage + 1, text, out);
}

void DecoderStream::flush(size_t stage, std::string& out) {
  const DecoderStage& config = (*stages_)[stage];
  std::string held;
  held.swap(states_[stage].held);
  if (held.empty()) return;
  if (config.kind == Kind::kByteLevel) {
    run(stage + 1, replace_invalid_utf8(held), out);
  } else if (config.kind == Kind::kReplace) {
    run(stage + 1, held, out);
  } else if (config.kind == Kind::kByteFallback) {
    if (is_valid_utf8(held)) return run(stage + 1, held, out);
    for (size_t i = 0; i < held.size(); ++i) run(stage + 1, "\uFFFD", out);
  }  // what Strip holds is what it strips
}

void DecoderStream::finish(std::string& out) {
  for (size_t stage = 0; stage < stages_->size(); ++stage) flush(stage, out);
}

}  // namespace quire
