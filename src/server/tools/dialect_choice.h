// Chooses the dialects in which a model writes its tool calls and its reasoning.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "quire/status.h"
#include "server/tools/response_template.h"

namespace quire::server {

// The dialect of the tool calls, or of the reasoning, and why it was chosen.
struct DialectChoice {
  std::string name = {};    // a built-in dialect; empty: checkpoint_template, or none
  std::string reason = {};  // why it was chosen, for the log
  std::shared_ptr<const ResponseTemplate> checkpoint_template = {};  // null: not used

  bool is_none() const { return name.empty() && checkpoint_template == nullptr; }
  // Returns, for example, "hermes (by the chat template)".
  std::string description() const;
};

struct DialectChoices {
  DialectChoice calls;
  DialectChoice reasoning;
};

// Each name is a flag's value: "auto", "none" or a built-in dialect's name. For "auto", the
// checkpoint's own response template (`own_json`; empty: none) takes precedence over the built-in
// dialect whose markers occur in the chat template. If `own_json` cannot be read, the log says why,
// and the markers decide. They also decide if it has no field for the calls or the reasoning.
DialectChoices choose_dialects(std::string_view calls, std::string_view reasoning,
                               std::string_view chat_template, std::string_view own_json);

}  // namespace quire::server
