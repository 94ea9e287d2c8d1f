#include "tokenizer/decoder.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/text.h"
#include "tokenizer/byte_level.h"

namespace quire {
namespace {

using Kind = DecoderStage::Kind;

constexpr int kMaxDecoderDepth = 8;
constexpr size_t kMaxDecoderStages = 16;
constexpr size_t kMaxContentBytes = 32;
constexpr size_t kMaxStrip = 1024;
constexpr double kMaxGrowth = 64;
constexpr std::string_view kSupportedDecoders =
    "ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Sequence, Strip";

// Returns the byte of a token of the form <0xNN>; -1: the token has another form.
int fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int byte = 0;
  for (const char c : token.substr(3, 2)) {
    const int digit = hex_digit(c);
    if (digit < 0) return -1;
    byte = byte * 16 + digit;
  }
  return byte;
}

// num_prompt: on entry, the number of leading bytes of `text` that come from the prompt; on return,
// the number of such bytes of the result. A replacement counts as part of the prompt if its whole
// match does.
std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content,
                        size_t& num_prompt) {
  std::string out;
  out.reserve(text.size());
  size_t out_prompt = 0;
  for (size_t pos = 0;;) {
    const size_t match = pattern.empty() ? std::string_view::npos : text.find(pattern, pos);
    const size_t literal_end = std::min(match, text.size());
    out += text.substr(pos, literal_end - pos);
    if (num_prompt > pos) {
      out_prompt = out.size() - (literal_end - std::min(num_prompt, literal_end));
    }
    if (match == std::string_view::npos) break;
    out += content;
    pos = match + pattern.size();
    if (num_prompt >= pos) out_prompt = out.size();
  }
  num_prompt = out_prompt;
  return out;
}

// The number of leading bytes, at most `limit`, that form whole characters or whole invalid
// sequences.
size_t whole_characters(std::string_view text, size_t limit) {
  size_t end = 0;
  while (end < text.size()) {
    const size_t next = end + static_cast<size_t>(decode_utf8(text.substr(end)).num_bytes);
    if (next > limit) break;
    end = next;
  }
  return end;
}

// The length of the longest suffix of `text` that is a proper prefix of `pattern`.
size_t partial_match(std::string_view text, std::string_view pattern) {
  size_t length = std::min(text.size(), pattern.empty() ? 0 : pattern.size() - 1);
  while (length > 0 && !pattern.starts_with(text.substr(text.size() - length))) --length;
  return length;
}

// The maximum number of bytes to which a stage expands one byte. Does not count ByteLevel's U+FFFD
// for an invalid byte, because a decoder has at most one such stage.
double growth(const DecoderStage& stage) {
  if (stage.kind != Kind::kReplace || stage.pattern.empty()) return 1;
  return std::max(
      1.0, static_cast<double>(stage.content.size()) / static_cast<double>(stage.pattern.size()));
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

Decoder Decoder::byte_level() {
  Decoder result;
  result.stages_.push_back({.kind = Kind::kByteLevel});
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
  if (stages_.size() >= kMaxDecoderStages)
    return invalid_argument("decoder has more than 16 parts");
  for (const DecoderStage& earlier : stages_) {
    stage.is_fused |= earlier.kind == Kind::kFuse || earlier.kind == Kind::kByteLevel;
  }
  const bool works_fused =
      stage.kind == Kind::kReplace || stage.kind == Kind::kStrip || stage.kind == Kind::kFuse;
  if (stage.is_fused && !works_fused) {
    return unimplemented(
        "a decoder part after Fuse or ByteLevel is not supported; expected one "
        "of Fuse, Replace, Strip there");
  }
  // Limits the growth, because the factors of several replacements multiply.
  growth_ *= growth(stage);
  if (growth_ > kMaxGrowth) {
    return invalid_argument(fmt::format(
        "the decoder's Replace parts turn one byte into {:.0f}; expected at most {:.0f}", growth_,
        kMaxGrowth));
  }
  stages_.push_back(std::move(stage));
  return {};
}

Status Decoder::add_json(JsonElement json, int depth) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view type,
                         json_required<std::string_view>(json, "type"));
  if (depth > kMaxDecoderDepth) return invalid_argument("decoder is more than 8 levels deep");
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
                      .removes_in_first = scheme != "never"});
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
      return invalid_argument(
          "decoder Strip is not valid; expected one character and counts below 1025");
    }
    return add_stage({.kind = Kind::kStrip,
                      .pattern = std::string(content),
                      .start = static_cast<size_t>(start),
                      .stop = static_cast<size_t>(stop)});
  }
  return unsupported_type("decoder", type, kSupportedDecoders);
}

std::string Decoder::token_bytes(std::string_view token) const {
  std::string bytes(token);
  for (const DecoderStage& stage : stages_) {
    if (stage.is_fused) break;
    if (stage.kind == Kind::kReplace || stage.kind == Kind::kMetaspace) {
      size_t num_prompt = 0;
      bytes = replace_all(bytes, stage.pattern, stage.content, num_prompt);
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

void DecoderStream::prime(std::string_view token) {
  in_prompt_ = true;
  std::string none;
  run(0, {token, token.size()}, none);
  in_prompt_ = false;
}

void DecoderStream::run(size_t stage, Chunk chunk, std::string& out) {
  if (stage == stages_->size()) {
    out += chunk.text.substr(chunk.num_prompt);
    return;
  }
  const DecoderStage& config = (*stages_)[stage];
  switch (config.kind) {
    case Kind::kJoin:
      if (states_[stage].num_tokens++ > 0) run(stage + 1, {" ", in_prompt_ ? size_t{1} : 0}, out);
      return run(stage + 1, chunk, out);
    case Kind::kByteLevel:
      return run_byte_level(stage, chunk, out);
    case Kind::kReplace:
      return run_replace(stage, chunk, out);
    case Kind::kByteFallback:
      return run_byte_fallback(stage, chunk, out);
    case Kind::kFuse:
      return run(stage + 1, chunk, out);
    case Kind::kStrip:
      return run_strip(stage, chunk, out);
    case Kind::kMetaspace: {
      const bool is_first = states_[stage].num_tokens++ == 0 && config.removes_in_first;
      return pass_replaced(stage, chunk, is_first ? "" : config.content, out);
    }
  }
}

void DecoderStream::pass_replaced(size_t stage, Chunk chunk, std::string_view content,
                                  std::string& out) {
  size_t num_prompt = chunk.num_prompt;
  const std::string text = replace_all(chunk.text, (*stages_)[stage].pattern, content, num_prompt);
  run(stage + 1, {text, num_prompt}, out);
}

void DecoderStream::pass_repaired(size_t stage, Chunk chunk, std::string& out) {
  const size_t end = whole_characters(chunk.text, chunk.num_prompt);
  std::string text = replace_invalid_utf8(chunk.text.substr(0, end));
  const size_t num_prompt = text.size();
  text += replace_invalid_utf8(chunk.text.substr(end));
  run(stage + 1, {text, num_prompt}, out);
}

void DecoderStream::pass_broken(size_t stage, size_t num_bytes, size_t num_prompt,
                                std::string& out) {
  constexpr std::string_view kReplacement = "\uFFFD";
  for (size_t i = 0; i < num_bytes; ++i) {
    run(stage + 1, {kReplacement, i < num_prompt ? kReplacement.size() : 0}, out);
  }
}

// Removes and returns the first `num_bytes` of the held bytes.
DecoderStream::Held DecoderStream::take(State& state, size_t num_bytes) {
  Held taken{state.held.substr(0, num_bytes), std::min(state.num_prompt, num_bytes)};
  state.held.erase(0, num_bytes);
  state.num_prompt -= taken.num_prompt;
  return taken;
}

void DecoderStream::run_byte_level(size_t stage, Chunk chunk, std::string& out) {
  State& state = states_[stage];
  const size_t old_size = state.held.size();
  if (!append_unspelled(chunk.text, state.held)) state.held += chunk.text;
  if (chunk.num_prompt == chunk.text.size()) state.num_prompt += state.held.size() - old_size;
  const size_t complete = complete_utf8_prefix(state.held);
  if (complete == 0) return;
  const Held ready = take(state, complete);
  pass_repaired(stage, {ready.text, ready.num_prompt}, out);
}

void DecoderStream::run_byte_fallback(size_t stage, Chunk chunk, std::string& out) {
  const int byte = fallback_byte(chunk.text);
  if (byte < 0) {
    flush(stage, out);
    return run(stage + 1, chunk, out);
  }
  // One invalid byte turns the whole run into U+FFFD, so a run is held until it ends.
  State& state = states_[stage];
  state.held += static_cast<char>(byte);
  if (chunk.num_prompt > 0) ++state.num_prompt;
  const std::string_view rest = std::string_view(state.held).substr(state.num_valid);
  if (const Utf8Char next = decode_utf8(rest); next.valid) {
    state.num_valid += static_cast<size_t>(next.num_bytes);
  } else {
    state.is_broken |= complete_utf8_prefix(rest) > 0;
  }
  if (!state.is_broken) return;
  pass_broken(stage, state.held.size(), state.num_prompt, out);
  state = {.is_broken = true};
}

void DecoderStream::run_replace(size_t stage, Chunk chunk, std::string& out) {
  const DecoderStage& config = (*stages_)[stage];
  if (!config.is_fused) return pass_replaced(stage, chunk, config.content, out);
  State& state = states_[stage];
  state.held += chunk.text;
  state.num_prompt += chunk.num_prompt;
  // The bytes after the last whole match may begin another match.
  size_t scanned = 0;
  while (!config.pattern.empty()) {
    const size_t at = state.held.find(config.pattern, scanned);
    if (at == std::string::npos) break;
    scanned = at + config.pattern.size();
  }
  const size_t open = partial_match(std::string_view(state.held).substr(scanned), config.pattern);
  const Held ready = take(state, state.held.size() - open);
  pass_replaced(stage, {ready.text, ready.num_prompt}, config.content, out);
}

void DecoderStream::run_strip(size_t stage, Chunk chunk, std::string& out) {
  const DecoderStage& config = (*stages_)[stage];
  State& state = states_[stage];
  if (!config.is_fused) state.num_leading = 0;
  while (state.num_leading < config.start && !chunk.text.empty()) {
    if (!chunk.text.starts_with(config.pattern)) {
      state.num_leading = config.start;
      break;
    }
    chunk.text.remove_prefix(config.pattern.size());
    chunk.num_prompt -= std::min(chunk.num_prompt, config.pattern.size());
    ++state.num_leading;
  }
  state.held += chunk.text;
  state.num_prompt += chunk.num_prompt;
  size_t trailing = 0;
  size_t ready_bytes = state.held.size();
  while (trailing < config.stop &&
         std::string_view(state.held).substr(0, ready_bytes).ends_with(config.pattern)) {
    ready_bytes -= config.pattern.size();
    ++trailing;
  }
  const Held ready = take(state, ready_bytes);
  if (!config.is_fused) take(state, state.held.size());
  run(stage + 1, {ready.text, ready.num_prompt}, out);
}

void DecoderStream::flush(size_t stage, std::string& out) {
  const DecoderStage& config = (*stages_)[stage];
  const State state = std::exchange(states_[stage], {});
  const Chunk chunk{state.held, state.num_prompt};
  if (state.held.empty()) return;
  if (config.kind == Kind::kByteLevel) {
    pass_repaired(stage, chunk, out);
  } else if (config.kind == Kind::kReplace) {
    run(stage + 1, chunk, out);
  } else if (config.kind == Kind::kByteFallback) {
    if (state.num_valid < state.held.size()) {
      return pass_broken(stage, state.held.size(), state.num_prompt, out);
    }
    run(stage + 1, {state.held, whole_characters(state.held, state.num_prompt)}, out);
  }  // the bytes that Strip holds are to be stripped
}

void DecoderStream::finish(std::string& out) {
  for (size_t stage = 0; stage < stages_->size(); ++stage) flush(stage, out);
}

std::string DecoderStream::pending() const {
  std::string text;
  const auto holds = [](const State& state) { return !state.held.empty(); };
  if (std::none_of(states_.begin(), states_.end(), holds)) return text;
  DecoderStream ending = *this;
  for (State& state : ending.states_) state.held.resize(complete_utf8_prefix(state.held));
  ending.finish(text);
  return text;
}

}  // namespace quire
