#include "engine/chat_format.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "base/file.h"
#include "base/json.h"

namespace quire {
namespace {

using simdjson::dom::element;

constexpr size_t kMaxTemplateBytes = size_t{1} << 20;
constexpr size_t kMaxTokenizerConfigBytes = size_t{64} << 20;
constexpr std::array<std::string_view, 7> kSpecialTokens = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

// Reads a special token, which is a string or an object with a string `content`.
std::optional<std::string> token_text(element value) {
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS || value["content"].get(text) == simdjson::SUCCESS) {
    return std::string(text);
  }
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> special_tokens(element config) {
  std::vector<std::pair<std::string, std::string>> tokens;
  for (const std::string_view name : kSpecialTokens) {
    element value;
    if (config[name].get(value) != simdjson::SUCCESS) continue;
    if (auto text = token_text(value)) tokens.emplace_back(name, std::move(*text));
  }
  return tokens;
}

// Reads the template, which is a string or a list of {name, template} with an entry named
// `default`.
std::optional<std::string> template_of(element config) {
  element value;
  if (config["chat_template"].get(value) != simdjson::SUCCESS) return std::nullopt;
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return std::string(text);
  simdjson::dom::array named;
  if (value.get(named) != simdjson::SUCCESS) return std::nullopt;
  for (const element entry : named) {
    std::string_view name;
    if (entry["name"].get(name) == simdjson::SUCCESS && name == "default" &&
        entry["template"].get(text) == simdjson::SUCCESS) {
      return std::string(text);
    }
  }
  return std::nullopt;
}

Result<std::string> template_source(element config, std::string_view config_name,
                                    const std::filesystem::path& template_file) {
  if (!template_file.empty()) return read_file(template_file, kMaxTemplateBytes);
  auto source = template_of(config);
  if (!source) return not_found(fmt::format("[template] {} has no chat_template", config_name));
  return *std::move(source);
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
  QUIRE_ASSIGN_OR_RETURN(const std::string source,
                         template_source(config.root(), source_name, template_file));
  QUIRE_ASSIGN_OR_RETURN(ChatFormat format, from_template(source));
  format.special_tokens_ = special_tokens(config.root());
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
  if (file.empty()) return config.status();
  QUIRE_ASSIGN_OR_RETURN(const std::string source, read_file(file, kMaxTemplateBytes));
  return from_template(source);
}

Result<MarkedText> ChatFormat::render(const jinja::Value& variables) const {
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
  if (trusts_callers_) prompt.untrusted = {};
  return prompt;
}

Result<MarkedText> ChatFormat::render(element variables) const {
  return render(value_from_json(variables));
}

Result<MarkedText> ChatFormat::render(const std::vector<ChatMessage>& messages) const {
  using jinja::Value;
  std::vector<Value> items;
  for (const ChatMessage& message : messages) {
    items.push_back(Value::dict(
        {{"role", Value::string(message.role)}, {"content", Value::string(message.content)}}));
  }
  return render(Value::dict({{"messages", Value::list(std::move(items))},
                             {"add_generation_prompt", Value::boolean(true)}}));
}

}  // namespace quire
