#include "server/tools/dialect_choice.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "server/tools/output_parser.h"

namespace quire::server {
namespace {

using Own = std::shared_ptr<const ResponseTemplate>;

DialectChoice choose(std::string_view flag, std::string_view name, std::string by_markers,
                     const Own& own, TemplateField::Target target) {
  if (name == "none") return {.reason = std::string(flag)};
  if (name != "auto") return {.name = std::string(name), .reason = std::string(flag)};
  if (own != nullptr && own->field(target) != nullptr) {
    return {.reason = "response_template of tokenizer_config.json", .checkpoint_template = own};
  }
  return {.name = std::move(by_markers), .reason = "by the chat template"};
}

}  // namespace

std::string DialectChoice::description() const {
  std::string_view shown = name.empty() ? "none" : std::string_view(name);
  if (checkpoint_template != nullptr) shown = "the checkpoint's own";
  return fmt::format("{} ({})", shown, reason);
}

DialectChoices choose_dialects(std::string_view calls, std::string_view reasoning,
                               std::string_view chat_template, std::string_view own_json) {
  Own own_template;
  if (!own_json.empty() && (calls == "auto" || reasoning == "auto")) {
    auto parsed = parse_response_template(own_json, "response_template of tokenizer_config.json");
    if (parsed.ok()) {
      own_template = std::make_shared<const ResponseTemplate>(std::move(*parsed));
    } else {
      log_warning(
          "{}; the checkpoint's own template is not used, so the chat template's markers decide",
          parsed.status().message());
    }
  }
  return {
      .calls = choose("--tool-call-parser", calls, detect_tool_call_parser(chat_template),
                      own_template, TemplateField::Target::kCalls),
      .reasoning = choose("--reasoning-parser", reasoning, detect_reasoning_parser(chat_template),
                          own_template, TemplateField::Target::kReasoning)};
}

}  // namespace quire::server
