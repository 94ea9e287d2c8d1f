// The variables of chat templates for reasoning.
#pragma once

#include <string_view>
#include <vector>

#include "jinja/value.h"
#include "server/openai/requests.h"

namespace quire::server {

// Adds the variables for a reasoning effort, which has the same meaning on all routes. `none`
// switches reasoning off (`enable_thinking`), another effort switches it on. `none` and `minimal`
// are `low` in templates that read `reasoning_effort` but do not have these values. Returns false
// if the template does not read the effort.
bool add_effort(std::string_view effort, const RequestDefaults& defaults,
                std::vector<jinja::Dict::Entry>& out);

// Adds the reasoning of a message under the names that templates read: `reasoning_content`, and
// `reasoning` and `thinking` if the template has them. Names that `out` has already are not added.
void add_reasoning(const jinja::Value& reasoning, const RequestDefaults& defaults,
                   std::vector<jinja::Dict::Entry>& out);

}  // namespace quire::server
