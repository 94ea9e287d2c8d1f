#include "server/openai/response_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace quire::server {
namespace {

std::string shown(int32_t id, const LogprobsStyle& style) {
  if (style.as_ids) return fmt::format("token_id:{}", id);
  std::string text = style.decode(id);
  return is_valid_utf8(text) ? text : replace_invalid_utf8(text);
}

int64_t num_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

// Writes a field whose value is a list; write(item) writes each item.
template <typename Items, typename Write>
void write_list(std::string_view name, const Items& items, JsonWriter& json, Write write) {
  json.key(name);
  json.begin_array();
  for (const auto& item : items) write(item);
  json.end_array();
}

// Clamps to at least -9999, as vLLM does, since JSON has no infinities.
void write_logprob(float logprob, JsonWriter& json) {
  constexpr float kLeast = -9999.0F;
  std::array<char, 32> digits;  // fmt writes to an array several times as fast as to a string
  char* const end = fmt::format_to(digits.data(), "{}", logprob >= kLeast ? logprob : kLeast);
  json.raw(std::string_view(digits.data(), static_cast<size_t>(end - digits.data())));
}

// Visits the most likely tokens of a position, up to `num_top`. Skips the chosen token, which is
// the first entry.
template <typename Visit>
void for_likely(const PositionLogprobs& position, int num_top, Visit visit) {
  const size_t end = std::min(position.size(), static_cast<size_t>(std::max(num_top, 0)) + 1);
  for (size_t i = 1; i < end; ++i) visit(position[i]);
}

// Writes an object whose keys are token texts. If several tokens have the same text, the first one
// is kept.
void write_top_by_text(const ScoredToken& token, const std::string& text,
                       const LogprobsStyle& style, JsonWriter& json) {
  if (token.position == nullptr) return json.null();
  std::vector<std::string> seen;
  seen.reserve(token.position->size());
  const auto write = [&](std::string key, float logprob) {
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) return;
    json.key(key);
    write_logprob(logprob, json);
    seen.push_back(std::move(key));
  };
  json.begin_object();
  write(text, token.position->front().logprob);
  for_likely(*token.position, style.num_top, [&](const TokenLogprob& likely) {
    if (likely.token_id != token.id) write(shown(likely.token_id, style), likely.logprob);
  });
  json.end_object();
}

void write_token_fields(int32_t id, float logprob, const LogprobsStyle& style, JsonWriter& json) {
  const std::string bytes = style.decode(id);
  json.field("token", style.as_ids ? fmt::format("token_id:{}", id) : bytes);
  json.key("logprob");
  write_logprob(logprob, json);
  write_list("bytes", bytes, json, [&](char c) { json.value(int{static_cast<uint8_t>(c)}); });
}

}  // namespace

void begin_response(const ResponseHeader& header, std::string_view object, JsonWriter& json) {
  json.begin_object();
  json.field("id", header.id);
  json.field("object", object);
  json.field("created", header.created);
  json.field("model", header.model);
  json.key("system_fingerprint");
  json.value_or_null(header.system_fingerprint);
  json.key("choices");
  json.begin_array();
}

void end_choices(const StreamOptions& streaming, const Usage* usage, JsonWriter& json) {
  json.end_array();
  if (usage == nullptr && !streaming.include_usage) return;
  json.key("usage");
  if (usage == nullptr) return json.null();
  json.begin_object();
  json.field("prompt_tokens", usage->num_prompt_tokens);
  json.field("completion_tokens", usage->num_completion_tokens);
  json.field("total_tokens", int64_t{usage->num_prompt_tokens} + usage->num_completion_tokens);
  json.key("prompt_tokens_details");
  json.begin_object();
  json.field("cached_tokens", usage->num_cached_tokens);
  if (usage->cache_miss != CacheMiss::kNone) {
    json.field("cache_miss_cause", cache_miss_name(usage->cache_miss));
  }
  json.end_object();
  json.key("completion_tokens_details");
  json.begin_object();
  json.field("reasoning_tokens", usage->num_reasoning_tokens);
  json.end_object();
  json.end_object();
}

std::string_view openai_finish_reason(FinishReason reason) {
  return reason == FinishReason::kCancelled ? "abort" : finish_reason_name(reason);
}

void write_finish(std::string_view finish_reason, std::string_view stop_reason,
                  const SamplingParams& sampling, JsonWriter& json) {
  json.key("finish_reason");
  json.value_or_null(finish_reason);
  json.key("stop_reason");
  const bool is_text =
      std::find(sampling.stop.begin(), sampling.stop.end(), stop_reason) != sampling.stop.end();
  const bool is_id =
      !stop_reason.empty() && stop_reason.find_first_not_of("0123456789") == std::string_view::npos;
  if (is_id && !is_text) return json.raw(stop_reason);
  json.value_or_null(stop_reason);
}

void write_token_ids(const GenerationRequest& request, std::string_view name,
                     const std::vector<int32_t>& ids, JsonWriter& json) {
  if (!request.return_token_ids) return;
  json.key(name);
  json.ids(ids);
}

void append_scored(const std::vector<int32_t>& ids, const std::vector<PositionLogprobs>& positions,
                   std::vector<ScoredToken>& out) {
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool is_known = i < positions.size() && !positions[i].empty();
    out.push_back({ids[i], is_known ? &positions[i] : nullptr});
  }
}

void write_completion_logprobs(const std::vector<ScoredToken>& tokens, const LogprobsStyle& style,
                               int64_t& text_offset, JsonWriter& json) {
  std::vector<std::string> texts;
  texts.reserve(tokens.size());
  for (const ScoredToken& token : tokens) texts.push_back(shown(token.id, style));
  json.begin_object();
  write_list("tokens", texts, json, [&](const std::string& text) { json.value(text); });
  write_list("token_logprobs", tokens, json, [&](const ScoredToken& token) {
    if (token.position == nullptr) return json.null();
    write_logprob(token.position->front().logprob, json);
  });
  write_list("top_logprobs", tokens, json, [&](const ScoredToken& token) {
    write_top_by_text(token, texts[static_cast<size_t>(&token - tokens.data())], style, json);
  });
  write_list("text_offset", texts, json, [&](const std::string& text) {
    json.value(text_offset);
    text_offset += num_characters(text);
  });
  json.end_object();
}

void write_scored_tokens(const std::vector<ScoredToken>& tokens, const LogprobsStyle& style,
                         JsonWriter& json) {
  json.begin_array();
  for (const ScoredToken& token : tokens) {
    const float logprob = token.position == nullptr ? 0.0F : token.position->front().logprob;
    json.begin_object();
    write_token_fields(token.id, logprob, style, json);
    json.key("top_logprobs");
    json.begin_array();
    if (token.position != nullptr) {
      for_likely(*token.position, style.num_top, [&](const TokenLogprob& likely) {
        json.begin_object();
        write_token_fields(likely.token_id, likely.logprob, style, json);
        json.end_object();
      });
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

void write_chat_logprobs(const std::vector<ScoredToken>& tokens, const LogprobsStyle& style,
                         JsonWriter& json) {
  json.begin_object();
  json.key("content");
  write_scored_tokens(tokens, style, json);
  json.end_object();
}

void write_prompt_logprobs(const std::vector<PositionLogprobs>& positions,
                           const LogprobsStyle& style, JsonWriter& json) {
  json.begin_array();
  for (const PositionLogprobs& position : positions) {
    if (position.empty()) {
      json.null();
      continue;
    }
    json.begin_object();
    for (const TokenLogprob& token : position) {
      const bool is_first = &token == position.data();
      if (!is_first && token.token_id == position[0].token_id) continue;
      json.key(fmt::format_int(token.token_id).c_str());
      json.begin_object();
      json.key("logprob");
      write_logprob(token.logprob, json);
      json.field("rank", token.rank);
      json.field("decoded_token", shown(token.token_id, style));
      json.end_object();
    }
    json.end_object();
  }
  json.end_array();
}

}  // namespace quire::server
