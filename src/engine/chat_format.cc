#include "engine/chat_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "jinja/python_text.h"
#include "tokenizer/tokenizer.h"

namespace quire {
namespace {

using simdjson::dom::element;

constexpr size_t kMaxTemplateBytes = size_t{1} << 20;
constexpr size_t kMaxTokenizerConfigBytes = size_t{64} << 20;
constexpr std::array<std::string_view, 7> kSpecialTokens = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};
// The special tokens of a tekken.json without a tokenizer_config.json that names them.
constexpr std::string_view kTekkenTokens =
    R"({"bos_token":"<s>","eos_token":"</s>","unk_token":"<unk>","pad_token":"<pad>"})";

// Reads a special token, which is a string or an object with a string `content`.
std::optional<std::string> token_text(element value) {
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS || value["content"].get(text) == simdjson::SUCCESS) {
    return std::string(text);
  }
  return std::nullopt;
}

// The kind of a JSON value, for errors.
std::string_view kind_of(element value) {
  if (value.is_string()) return "a text";
  if (value.is_bool()) return "a boolean";
  if (value.is_number()) return "a number";
  return value.is_array() ? "a list" : "an object";
}

Result<ChatFormat::SpecialTokens> read_special_tokens(element config,
                                                      std::string_view config_name) {
  ChatFormat::SpecialTokens tokens;
  for (const std::string_view name : kSpecialTokens) {
    element value;
    if (config[name].get(value) != simdjson::SUCCESS || value.is_null()) continue;
    auto text = token_text(value);
    if (!text) {
      return invalid_argument(
          fmt::format("[template] {}: {}; got {}, expected a text, or an object with the text "
                      "\"content\": download the file again",
                      config_name, name, kind_of(value)));
    }
    tokens.emplace_back(name, std::move(*text));
  }
  return tokens;
}

// Reads the template, which is a string or a list of {name, template} with an entry named
// `default`.
Result<std::string> template_of(element config, std::string_view config_name) {
  element value;
  if (config["chat_template"].get(value) != simdjson::SUCCESS || value.is_null()) {
    return not_found(fmt::format("[template] {} has no chat_template", config_name));
  }
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return std::string(text);
  simdjson::dom::array named;
  const bool is_list = value.get(named) == simdjson::SUCCESS;
  if (is_list) {
    for (const element entry : named) {
      std::string_view name;
      if (entry["name"].get(name) == simdjson::SUCCESS && name == "default" &&
          entry["template"].get(text) == simdjson::SUCCESS) {
        return std::string(text);
      }
    }
  }
  return invalid_argument(fmt::format(
      "[template] {}: chat_template; got {}, expected a text, or a list of {{name, template}} with "
      "the name \"default\": correct the file, or name a template's file by `chat_template`",
      config_name, is_list ? "a list without a default" : kind_of(value)));
}

Result<ChatFormat> parse_template(std::string_view source, std::string_view file) {
  Result<ChatFormat> format = ChatFormat::from_template(source);
  if (format.ok()) return format;
  constexpr std::string_view kArea = "[template] ";
  const Status status = format.status();
  std::string_view fault = status.message();
  if (fault.starts_with(kArea)) fault.remove_prefix(kArea.size());
  return unimplemented(fmt::format("{}{}: {}", kArea, file, fault));
}

// Calls visit(owner) for each owner of visible bytes in the texts of a value.
template <typename Visit>
void visit_owners(const jinja::Value& value, const Visit& visit) {
  if (value.is_sequence()) {
    for (const jinja::Value& item : value.items()) visit_owners(item, visit);
  } else if (value.is_dict()) {
    for (const auto& [name, member] : value.dict()->entries()) visit_owners(member, visit);
  } else if (value.is_string()) {
    const MarkedText& text = *value.text();
    // White space, which templates trim by Python's rules, and reasoning that a client left in the
    // content are not visible.
    constexpr std::string_view kThoughtEnd = "</think>";
    const size_t thought = text.text.rfind(kThoughtEnd);
    const size_t begin = thought == std::string::npos ? 0 : thought + kThoughtEnd.size();
    for (size_t i = 0; i < text.untrusted.count(); ++i) {
      const ByteSpans::Span& span = text.untrusted[i];
      const size_t first = std::max(begin, span.begin);
      if (first >= span.end || span.owner == 0) continue;
      const std::string_view owned = std::string_view(text.text).substr(first, span.end - first);
      if (!jinja::strip(owned, std::nullopt, true, false).empty()) visit(span.owner);
    }
  }
}

// Returns the owner of the first message that is in the variables but not in the prompt.
uint32_t find_dropped(const jinja::Dict& variables, const ByteSpans& prompt) {
  std::vector<bool> is_written;
  for (size_t i = 0; i < prompt.count(); ++i) {
    const size_t owner = prompt[i].owner;
    if (owner >= is_written.size()) is_written.resize(owner + 1);
    is_written[owner] = true;
  }
  const auto& entries = variables.entries();
  const auto messages = std::ranges::find_if(entries, [](const auto& entry) {
    return entry.first.is_string() && entry.first.as_string() == "messages";
  });
  if (messages == entries.end() || !messages->second.is_sequence()) return 0;
  uint32_t dropped = 0;
  for (const jinja::Value& message : messages->second.items()) {
    if (!message.is_dict()) continue;
    for (const auto& [name, field] : message.dict()->entries()) {
      if (name.as_string() != "content" && name.as_string() != "tool_calls") continue;
      visit_owners(field, [&](uint32_t owner) {
        const bool is_in_prompt = owner < is_written.size() && is_written[owner];
        if (!is_in_prompt && (dropped == 0 || owner < dropped)) dropped = owner;
      });
    }
  }
  return dropped;
}

}  // namespace

Result<ChatFormat> ChatFormat::from_template(std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(ChatTemplate parsed, ChatTemplate::parse(source));
  return ChatFormat(std::move(parsed), source);
}

Result<ChatFormat> ChatFormat::from_config(std::string_view tokenizer_config_json,
                                           std::string_view source_name,
                                           const std::filesystem::path& template_file) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument config,
                         JsonDocument::parse(tokenizer_config_json, source_name));
  QUIRE_ASSIGN_OR_RETURN(SpecialTokens tokens, read_special_tokens(config.root(), source_name));
  const bool has_file = !template_file.empty();
  QUIRE_ASSIGN_OR_RETURN(const std::string source, has_file
                                                       ? read_file(template_file, kMaxTemplateBytes)
                                                       : template_of(config.root(), source_name));
  QUIRE_ASSIGN_OR_RETURN(
      ChatFormat format,
      parse_template(source, has_file ? template_file.string() : std::string(source_name)));
  format.special_tokens_ = std::move(tokens);
  for (const char* const key : {"response_template", "response_schema"}) {
    element value;
    if (config.root()[key].get(value) != simdjson::SUCCESS || value.is_null()) continue;
    format.response_template_ = simdjson::minify(value);
    break;
  }
  return format;
}

Result<ChatFormat> ChatFormat::load(const std::filesystem::path& tokenizer_dir,
                                    const std::filesystem::path& template_file) {
  const auto config_path = tokenizer_dir / "tokenizer_config.json";
  const auto own_file = tokenizer_dir / "chat_template.jinja";
  QUIRE_ASSIGN_OR_RETURN(const bool has_own, path_exists(own_file));
  const bool takes_own = template_file.empty() && has_own;
  const auto& file = takes_own ? own_file : template_file;
  const Result<std::string> config = read_file(config_path, kMaxTokenizerConfigBytes);
  if (config.ok()) return from_config(*config, config_path.string(), file);
  QUIRE_ASSIGN_OR_RETURN(const std::string_view vocabulary, find_tokenizer_file(tokenizer_dir));
  if (vocabulary == kTekkenFile) {
    return from_config(kTekkenTokens, (tokenizer_dir / vocabulary).string(), file);
  }
  if (file.empty()) return config.status();
  QUIRE_ASSIGN_OR_RETURN(const std::string source, read_file(file, kMaxTemplateBytes));
  return parse_template(source, file.string());
}

Result<RenderedChat> ChatFormat::render(const jinja::Value& variables) const {
  if (!variables.is_dict()) {
    return invalid_argument("[template] the variables are not a JSON object");
  }
  // As in transformers, tools and documents that the caller leaves out are None, which a template
  // can distinguish from undefined. The caller's variables replace earlier ones of the same name.
  std::vector<jinja::Dict::Entry> entries;
  for (const auto& [name, text] : special_tokens_) {
    entries.emplace_back(jinja::Value::literal(name), jinja::Value::literal(text));
  }
  for (const char* name : {"tools", "documents"}) {
    entries.emplace_back(jinja::Value::literal(name), jinja::Value::none());
  }
  const auto& given = variables.dict()->entries();
  entries.insert(entries.end(), given.begin(), given.end());
  QUIRE_ASSIGN_OR_RETURN(MarkedText prompt, template_.render(jinja::Value::of(jinja::Value::DictPtr(
                                                jinja::Dict::build(std::move(entries))))));
  const uint32_t dropped = find_dropped(*variables.dict(), prompt.untrusted);
  if (trusts_callers_) prompt.untrusted = {};
  return RenderedChat{std::move(prompt), dropped};
}

Result<RenderedChat> ChatFormat::render(element variables) const {
  return render(value_from_json(variables));
}

Result<RenderedChat> ChatFormat::render(const std::vector<ChatMessage>& messages) const {
  using jinja::Value;
  std::vector<Value> items;
  for (const ChatMessage& message : messages) {
    const auto owner = static_cast<uint32_t>(items.size() + 1);
    items.push_back(Value::dict({{"role", Value::string(message.role)},
                                 {"content", Value::string(message.content, owner)}}));
  }
  QUIRE_ASSIGN_OR_RETURN(RenderedChat prompt,
                         render(Value::dict({{"messages", Value::list(std::move(items))},
                                             {"add_generation_prompt", Value::boolean(true)}})));
  if (prompt.dropped == 0) return prompt;
  return invalid_argument(fmt::format(
      "[template] messages[{}]; the chat template writes nothing of this message, whose "
      "role is '{}'; expected a role that the template reads there",
      prompt.dropped - 1, clipped(messages[prompt.dropped - 1].role)));
}

}  // namespace quire
