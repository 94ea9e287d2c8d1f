#include "server/openai/logprobs_json.h"

#include <algorithm>

#include "base/text.h"
#include "server/openai/json_text.h"

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

// Appends a JSON list; write(item) appends each item.
template <typename Items, typename Write>
void append_list(const Items& items, std::string& out, Write write) {
  out += '[';
  bool is_first = true;
  for (const auto& item : items) {
    if (!is_first) out += ',';
    is_first = false;
    write(item);
  }
  out += ']';
}

// Visits the most likely tokens of a position, up to `num_top`. Skips the chosen token, which is
// the first entry.
template <typename Visit>
void for_likely(const PositionLogprobs& position, int num_top, Visit visit) {
  const size_t end = std::min(position.size(), static_cast<size_t>(std::max(num_top, 0)) + 1);
  for (size_t i = 1; i < end; ++i) visit(position[i]);
}

// Appends an object whose keys are token texts. If several tokens have the same text, the first one
// is kept.
void append_top_by_text(const ScoredToken& token, const std::string& text,
                        const LogprobsStyle& style, std::string& out) {
  if (token.position == nullptr) {
    out += "null";
    return;
  }
  std::vector<std::string> seen;
  seen.reserve(token.position->size());
  const auto write = [&](std::string key, float logprob) {
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) return;
    out += seen.empty() ? "{" : ",";
    append_string(key, out);
    out += ':';
    append_logprob(logprob, out);
    seen.push_back(std::move(key));
  };
  write(text, token.position->front().logprob);
  for_likely(*token.position, style.num_top, [&](const TokenLogprob& likely) {
    if (likely.token_id != token.id) write(shown(likely.token_id, style), likely.logprob);
  });
  out += '}';
}

void append_token_fields(int32_t id, float logprob, const LogprobsStyle& style, std::string& out) {
  const std::string bytes = style.decode(id);
  out += "{\"token\":";
  append_string(style.as_ids ? fmt::format("token_id:{}", id) : bytes, out);
  out += ",\"logprob\":";
  append_logprob(logprob, out);
  out += ",\"bytes\":";
  append_list(bytes, out, [&](char byte) { append_int(static_cast<unsigned char>(byte), out); });
}

}  // namespace

void append_scored(const std::vector<int32_t>& ids, const std::vector<PositionLogprobs>& positions,
                   std::vector<ScoredToken>& out) {
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool is_known = i < positions.size() && !positions[i].empty();
    out.push_back({ids[i], is_known ? &positions[i] : nullptr});
  }
}

void append_completion_logprobs(const std::vector<ScoredToken>& tokens, const LogprobsStyle& style,
                                int64_t& text_offset, std::string& out) {
  std::vector<std::string> texts;
  texts.reserve(tokens.size());
  for (const ScoredToken& token : tokens) texts.push_back(shown(token.id, style));
  out += "{\"tokens\":";
  append_list(texts, out, [&](const std::string& text) { append_string(text, out); });
  out += ",\"token_logprobs\":";
  append_list(tokens, out, [&](const ScoredToken& token) {
    if (token.position == nullptr) {
      out += "null";
    } else {
      append_logprob(token.position->front().logprob, out);
    }
  });
  out += ",\"top_logprobs\":";
  append_list(tokens, out, [&](const ScoredToken& token) {
    append_top_by_text(token, texts[static_cast<size_t>(&token - tokens.data())], style, out);
  });
  out += ",\"text_offset\":";
  append_list(texts, out, [&](const std::string& text) {
    append_int(text_offset, out);
    text_offset += num_characters(text);
  });
  out += '}';
}

void append_chat_logprobs(const std::vector<ScoredToken>& tokens, const LogprobsStyle& style,
                          std::string& out) {
  out += "{\"content\":";
  append_list(tokens, out, [&](const ScoredToken& token) {
    const float logprob = token.position == nullptr ? 0.0F : token.position->front().logprob;
    append_token_fields(token.id, logprob, style, out);
    out += ",\"top_logprobs\":[";
    bool is_first = true;
    if (token.position != nullptr) {
      for_likely(*token.position, style.num_top, [&](const TokenLogprob& likely) {
        if (!is_first) out += ',';
        is_first = false;
        append_token_fields(likely.token_id, likely.logprob, style, out);
        out += '}';
      });
    }
    out += "]}";
  });
  out += '}';
}

void append_prompt_logprobs(const std::vector<PositionLogprobs>& positions,
                            const LogprobsStyle& style, std::string& out) {
  append_list(positions, out, [&](const PositionLogprobs& position) {
    if (position.empty()) {
      out += "null";
      return;
    }
    for (size_t i = 0; i < position.size(); ++i) {
      const TokenLogprob& token = position[i];
      if (i > 0 && token.token_id == position[0].token_id) continue;
      out += i == 0 ? "{\"" : ",\"";
      append_int(token.token_id, out);
      out += "\":{\"logprob\":";
      append_logprob(token.logprob, out);
      out += ",\"rank\":";
      append_int(token.rank, out);
      out += ",\"decoded_token\":";
      append_string(shown(token.token_id, style), out);
      out += '}';
    }
    out += '}';
  });
}

}  // namespace quire::server
