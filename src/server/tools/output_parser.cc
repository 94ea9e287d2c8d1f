#include "server/tools/output_parser.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "base/json.h"
#include "server/tools/tool_parsers.h"

namespace quire::server {
namespace {

constexpr std::string_view kThink = "<think>";
constexpr std::string_view kEndThink = "</think>";

// Splits off <think>…</think> at the start of an output. The prompt may already contain "<think>".
class ThinkBlock {
 public:
  ThinkBlock(bool has_reasoning, bool is_open)
      : section_(has_reasoning ? Section::kBefore : Section::kAfter), is_open_(is_open) {}

  // Passes each content character to `content`.
  template <typename Content>
  void push(char c, MessageWriter& out, Content content) {
    if (section_ == Section::kAfter) return content(c);
    if (section_ == Section::kInside) {
      if (end_.push(c, [&](std::string_view text) { out.reasoning(text); })) {
        section_ = Section::kAfter;
      }
      return;
    }
    push_start(c);
    if (section_ == Section::kBefore) return;
    // It is now known whether the held text is the marker.
    const std::string held = std::exchange(held_, {});
    if (!found_) {
      for (const char h : held) push(h, out, content);
    }
  }

  template <typename Content>
  void finish(MessageWriter& out, Content content) {
    if (section_ == Section::kBefore) section_ = is_open_ ? Section::kInside : Section::kAfter;
    for (const char c : std::exchange(held_, {})) push(c, out, content);
    out.reasoning(end_.take_held());
  }

 private:
  enum class Section { kBefore, kInside, kAfter };

  // Matches optional white space and the marker.
  void push_start(char c) {
    constexpr size_t kMaxHeld = 256;
    held_ += c;
    if (c == kThink[num_matched_]) {
      found_ = ++num_matched_ == kThink.size();
      if (found_) section_ = Section::kInside;
      return;
    }
    if (num_matched_ == 0 && is_json_space(c) && held_.size() < kMaxHeld) return;
    section_ = is_open_ ? Section::kInside : Section::kAfter;
  }

  Section section_;
  bool is_open_;
  bool found_ = false;
  size_t num_matched_ = 0;
  std::string held_;
  Marker end_{kEndThink};
};

class StreamingParser final : public OutputParser {
 public:
  explicit StreamingParser(const OutputParserConfig& config)
      : tool_names_(config.tool_names),
        out_(config.make_id != nullptr ? config.make_id : random_id, config.keeps_first_call_only),
        think_(!config.reasoning_parser.empty(), config.starts_in_reasoning),
        tools_(make_tools(config)) {}

  MessageDelta feed(std::string_view text) override {
    for (const char c : text) think_.push(c, out_, [&](char t) { tools_->push(t, out_); });
    return out_.take();
  }

  MessageDelta finish() override {
    think_.finish(out_, [&](char t) { tools_->push(t, out_); });
    tools_->finish(out_);
    out_.finish();
    return out_.take();
  }

 private:
  std::unique_ptr<ToolParser> make_tools(const OutputParserConfig& config) const {
    if (tool_names_.empty()) return std::make_unique<NoToolParser>();
    if (config.forced == ForcedCall::kNamed) {
      return std::make_unique<ForcedArguments>(tool_names_.front());
    }
    if (config.forced == ForcedCall::kAny) return std::make_unique<ForcedCalls>(tool_names_);
    if (config.tool_call_parser == "hermes") return std::make_unique<HermesCalls>(tool_names_);
    if (config.tool_call_parser == "llama3_json") return std::make_unique<LlamaCalls>(tool_names_);
    if (config.tool_call_parser == "mistral") return std::make_unique<MistralCalls>(tool_names_);
    return std::make_unique<NoToolParser>();
  }

  std::vector<std::string> tool_names_;
  MessageWriter out_;
  ThinkBlock think_;
  std::unique_ptr<ToolParser> tools_;
};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Status check_name(std::string_view what, const std::string& name,
                  const std::vector<std::string>& names) {
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return {};
  return invalid_argument(fmt::format("[tools] unknown {} parser; got '{}', expected one of {}",
                                      what, name, fmt::join(names, ", ")));
}

}  // namespace

const std::vector<std::string>& tool_call_parser_names() {
  static const std::vector<std::string> names = {"hermes", "llama3_json", "mistral"};
  return names;
}

const std::vector<std::string>& reasoning_parser_names() {
  static const std::vector<std::string> names = {"think"};
  return names;
}

std::string random_id() {
  // 64 characters, so that a byte's remainder is unbiased; X and Y occur twice.
  constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyzXY";
  std::array<unsigned char, 24> bytes{};
  // getentropy() needs neither memory nor a descriptor, so it works even if these are exhausted.
  if (::getentropy(bytes.data(), bytes.size()) != 0) throw std::runtime_error("no random bytes");
  std::string id;
  for (const unsigned char byte : bytes) id += kLetters[byte % kLetters.size()];
  return id;
}

std::string detect_tool_call_parser(std::string_view chat_template) {
  if (has(chat_template, "[TOOL_CALLS]")) return "mistral";
  // Qwen's coder models and GLM write XML inside the same tag.
  if (has(chat_template, "<function=") || has(chat_template, "<arg_key>")) return "";
  if (has(chat_template, "<tool_call>")) return "hermes";
  const bool is_llama = has(chat_template, "<|start_header_id|>") &&
                        (has(chat_template, "\"parameters\"") || has(chat_template, "tool_call"));
  return is_llama || has(chat_template, "<|python_tag|>") ? "llama3_json" : "";
}

std::string detect_reasoning_parser(std::string_view chat_template) {
  return has(chat_template, kEndThink) ? "think" : "";
}

bool needs_special_tokens(std::string_view tool_call_parser) {
  return tool_call_parser == "mistral" || tool_call_parser == "llama3_json";
}

bool prompt_opens_reasoning(std::string_view prompt) {
  while (!prompt.empty() && is_json_space(prompt.back())) prompt.remove_suffix(1);
  return prompt.ends_with(kThink);
}

Result<std::unique_ptr<OutputParser>> make_output_parser(const OutputParserConfig& config) {
  QUIRE_RETURN_IF_ERROR(check_name("tool call", config.tool_call_parser, tool_call_parser_names()));
  QUIRE_RETURN_IF_ERROR(check_name("reasoning", config.reasoning_parser, reasoning_parser_names()));
  if (config.forced != ForcedCall::kNo && config.tool_names.empty()) {
    return invalid_argument("[tools] a forced call needs a tool; got none, expected at least one");
  }
  return std::unique_ptr<OutputParser>(std::make_unique<StreamingParser>(config));
}

ParsedMessage parse_output(OutputParser& parser, std::string_view text) {
  ParsedMessage message;
  append(message, parser.feed(text));
  append(message, parser.finish());
  return message;
}

std::string_view whole_arguments(std::string_view arguments) {
  const auto document = JsonDocument::parse(arguments, "the arguments");
  return document.ok() && document->root().is_object() ? arguments : "{}";
}

void append(ParsedMessage& message, const MessageDelta& delta) {
  message.reasoning += delta.reasoning;
  message.content += delta.content;
  for (const ToolCallDelta& piece : delta.tool_calls) {
    const auto idx = static_cast<size_t>(piece.index);
    if (idx >= message.tool_calls.size()) message.tool_calls.resize(idx + 1);
    ToolCall& call = message.tool_calls[idx];
    call.id += piece.id;
    call.name += piece.name;
    call.arguments += piece.arguments;
  }
}

}  // namespace quire::server
