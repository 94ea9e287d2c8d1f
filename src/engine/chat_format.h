// The chat format of a model: its template and the special tokens that the template may use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/chat_template.h"
#include "quire/engine.h"
#include "quire/status.h"

namespace simdjson::dom {
class element;
}

namespace quire {

struct RenderedChat : MarkedText {
  // The owner (see ByteSpans) of the first message whose content and tool calls are missing from
  // the prompt; 0: none is missing. Missing reasoning does not count, because templates drop it
  // from earlier turns.
  uint32_t dropped = 0;
};

class ChatFormat {
 public:
  using SpecialTokens = std::vector<std::pair<std::string, std::string>>;  // "bos_token" → "<s>"

  // Loads template_file. If that is empty, loads chat_template.jinja, or without such a file
  // `chat_template` of tokenizer_config.json. Fails with kNotFound if no template exists, with
  // kUnimplemented if the template is not supported, and otherwise with the error of a file.
  static Result<ChatFormat> load(const std::filesystem::path& tokenizer_dir,
                                 const std::filesystem::path& template_file = {});
  static Result<ChatFormat> from_config(std::string_view tokenizer_config_json,
                                        std::string_view source_name,
                                        const std::filesystem::path& template_file = {});
  static Result<ChatFormat> from_template(std::string_view source);

  std::string_view source() const { return source_; }
  // The special tokens that tokenizer_config.json names.
  const SpecialTokens& special_tokens() const { return special_tokens_; }
  // The JSON that describes how the model writes reasoning and tool calls: `response_template` in
  // tokenizer_config.json, otherwise `response_schema`; empty if both are missing.
  std::string_view response_template() const { return response_template_; }
  // Renders a dict of variables (messages, tools, add_generation_prompt and others), or a JSON
  // object of them. Adds the tokenizer's special tokens (bos_token, …) unless the caller gives
  // them. All texts of the caller's variables are untrusted in the result.
  Result<RenderedChat> render(const jinja::Value& variables) const;
  Result<RenderedChat> render(simdjson::dom::element variables) const;
  // Renders a conversation as a prompt for the assistant's reply. A message that the template drops
  // is an error.
  Result<RenderedChat> render(const std::vector<ChatMessage>& messages) const;
  // Allows control tokens in the callers' texts: render() then marks no text as untrusted.
  void trust_callers() { trusts_callers_ = true; }

 private:
  ChatFormat(ChatTemplate chat_template, std::string_view source)
      : template_(std::move(chat_template)), source_(source) {}

  ChatTemplate template_;
  std::string source_;
  std::string response_template_;
  SpecialTokens special_tokens_;
  bool trusts_callers_ = false;
};

}  // namespace quire
