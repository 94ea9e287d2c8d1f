// The dialects in which a model writes its tool calls and its reasoning.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "quire/status.h"
#include "server/tools/response_template.h"

namespace quire::server {

// One of the two dialects.
struct DialectChoice {
  std::string name = {};    // of a built-in dialect; empty: none, or the template below
  std::string reason = {};  // why it was chosen, for the log
  std::shared_ptr<const ResponseTemplate> own = {};  // the checkpoint's own

  bool is_none() const { return name.empty() && own == nullptr; }
  // Returns "hermes (by the chat template)".
  std::string description() const;
};

struct DialectChoices {
  DialectChoice calls;
  DialectChoice reasoning;
};

// Each name is a flag's value: "auto", "none" or a built-in dialect's name. For "auto", the
// checkpoint's own response template takes precedence over the built-in dialect that the chat
// template's markers show. `own` is its JSON, or empty. If it cannot be read, the log says why, and
// the markers decide.
DialectChoices choose_dialects(std::string_view calls, std::string_view reasoning,
                               std::string_view chat_template, std::string_view own);

}  // namespace quire::server
