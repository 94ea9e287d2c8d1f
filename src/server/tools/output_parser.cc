#include "server/tools/output_parser.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "base/ascii.h"
#include "server/tools/call_reader.h"
#include "server/tools/dialects.h"
#include "server/tools/template_parser.h"

namespace quire::server {
namespace {

// Parses an output whose content a grammar has forced to be calls.
class ForcedOutput final : public OutputParser {
 public:
  ForcedOutput(std::shared_ptr<const ParserPlan> plan, const OutputParserConfig& config)
      : tool_names_(config.tool_names), text_(std::move(plan), config), out_(config, false) {
    if (config.forced == ForcedCall::kNamed) {
      calls_ = std::make_unique<ForcedArguments>(tool_names_.front());
    } else {
      calls_ = std::make_unique<ForcedCalls>(tool_names_);
    }
  }

  MessageDeltas feed(std::string_view text) override {
    read(text_.feed(text));
    return out_.take();
  }
  MessageDeltas feed_token(int32_t token_id, std::string_view text) override {
    read(text_.feed_token(token_id, text));
    return out_.take();
  }
  MessageDeltas finish(TextEnd end) override {
    read(text_.finish(end));
    calls_->finish(out_);
    out_.finish();
    return out_.take();
  }

 private:
  void read(const MessageDeltas& deltas) {
    for (const MessageDelta& delta : deltas) {
      out_.reasoning(delta.reasoning);
      for (const char c : delta.content) calls_->push(c, out_);
    }
  }

  std::vector<std::string> tool_names_;
  TemplateParser text_;
  MessageWriter out_;
  std::unique_ptr<ForcedParser> calls_;
};

std::vector<std::string> all_names(std::vector<std::string> ResponseTemplate::*names) {
  std::vector<std::string> all;
  for (const ResponseTemplate& dialect : dialects()) {
    all.insert(all.end(), (dialect.*names).begin(), (dialect.*names).end());
  }
  std::ranges::sort(all);
  return all;
}

std::string detect(std::string_view chat_template, Detection ResponseTemplate::*detection,
                   std::vector<std::string> ResponseTemplate::*names) {
  const ResponseTemplate* best = nullptr;
  for (const ResponseTemplate& dialect : dialects()) {
    if (!(dialect.*detection).fits(chat_template)) continue;
    if (best == nullptr || (dialect.*detection).priority > (best->*detection).priority) {
      best = &dialect;
    }
  }
  return best == nullptr ? std::string() : (best->*names).front();
}

Status check_name(std::string_view what, const std::string& name,
                  const std::vector<std::string>& names) {
  if (name.empty() || has_name(names, name)) return {};
  return invalid_argument(fmt::format("[tools] unknown {} parser; got '{}', expected one of {}",
                                      what, name, fmt::join(names, ", ")));
}

const TemplateField* reasoning_field(const ResponseTemplate& dialect) {
  return dialect.field(TemplateField::Target::kReasoning);
}

std::string_view without_space_at_end(std::string_view text) {
  while (!text.empty() && is_json_space(text.back())) text.remove_suffix(1);
  return text;
}

// White space, words and single signs are not markers, although some tokenizers have added tokens
// for them, because a model may also write them with other tokens.
bool is_like_marker(std::string_view text) {
  const bool has_space = std::ranges::any_of(text, is_json_space);
  const bool has_bounds = text.find_first_of("<[|") != std::string_view::npos ||
                          text.find("\uff5c") != std::string_view::npos;
  return text.size() > 2 && !has_space && has_bounds;
}

}  // namespace

const std::vector<std::string>& tool_call_parser_names() {
  static const std::vector<std::string> names = all_names(&ResponseTemplate::names);
  return names;
}

const std::vector<std::string>& reasoning_parser_names() {
  static const std::vector<std::string> names = all_names(&ResponseTemplate::reasoning_names);
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
  return detect(chat_template, &ResponseTemplate::detect, &ResponseTemplate::names);
}

std::string detect_reasoning_parser(std::string_view chat_template) {
  return detect(chat_template, &ResponseTemplate::detect_reasoning,
                &ResponseTemplate::reasoning_names);
}

std::vector<TokenMarker> markers_among(std::vector<TokenMarker> added_tokens,
                                       std::initializer_list<const ResponseTemplate*> dialects) {
  ResponseTemplate::Literals literals;
  for (const ResponseTemplate* const dialect : dialects) {
    if (dialect != nullptr) dialect->add_literals(literals);
  }
  const auto is_used = [&](const TokenMarker& token) {
    return literals.has_pattern || std::ranges::any_of(literals.texts, [&](std::string_view text) {
             return text.find(token.text) != std::string_view::npos;
           });
  };
  std::erase_if(added_tokens, [&](const TokenMarker& token) {
    return !is_like_marker(token.text) || !is_used(token);
  });
  return added_tokens;
}

bool prompt_opens_reasoning(std::string_view prompt, const ResponseTemplate& dialect) {
  const TemplateField* const field = reasoning_field(dialect);
  if (field == nullptr) return false;
  const std::string_view text = without_space_at_end(prompt);
  const auto ends_prompt = [&](const Form& form) {
    const std::string_view marker = trimmed(first_literal(form));
    return !marker.empty() && text.ends_with(marker);
  };
  return std::ranges::any_of(field->start, ends_prompt) ||
         std::ranges::any_of(field->open, ends_prompt);
}

bool prompt_closes_reasoning(std::string_view prompt, const ResponseTemplate& dialect) {
  const std::string_view end = trimmed(reasoning_end(dialect));
  return !end.empty() && without_space_at_end(prompt).ends_with(end);
}

std::string_view call_opening(const ResponseTemplate* dialect) {
  if (dialect == nullptr) return {};
  const TemplateField* const calls = dialect->field(TemplateField::Target::kCalls);
  if (calls == nullptr || calls->open.empty()) return {};
  const FormPart& first = calls->open.front().parts.front();
  return first.kind == FormPart::Kind::kLiteral ? std::string_view(first.text) : "";
}

std::string_view reasoning_end(const ResponseTemplate& dialect) {
  const TemplateField* const field = reasoning_field(dialect);
  if (field == nullptr || field->close.empty()) return {};
  return first_literal(field->close.front());
}

Result<std::unique_ptr<OutputParser>> make_output_parser(const OutputParserConfig& config) {
  QUIRE_RETURN_IF_ERROR(check_name("tool call", config.tool_call_parser, tool_call_parser_names()));
  QUIRE_RETURN_IF_ERROR(check_name("reasoning", config.reasoning_parser, reasoning_parser_names()));
  if (config.forced == ForcedCall::kNo) {
    return std::unique_ptr<OutputParser>(
        std::make_unique<TemplateParser>(std::make_shared<const ParserPlan>(config), config));
  }
  if (config.tool_names.empty()) {
    return invalid_argument("[tools] a forced call needs a tool; got none, expected at least one");
  }
  OutputParserConfig text = config;
  text.tool_call_parser.clear();
  text.call_template = nullptr;
  return std::unique_ptr<OutputParser>(
      std::make_unique<ForcedOutput>(std::make_shared<const ParserPlan>(text), config));
}

ParsedMessage parse_output(OutputParser& parser, std::string_view text) {
  ParsedMessage message;
  append(message, parser.feed(text));
  append(message, parser.finish(TextEnd::kModel));
  return message;
}

void append(ParsedMessage& message, const MessageDeltas& deltas) {
  for (const MessageDelta& delta : deltas) {
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
    message.has_cut_call |= delta.cut != CutCall::kNone;
  }
}

}  // namespace quire::server
