// Reads arguments whose text is whole, in the notations of a checkpoint's own template.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "server/tools/argument_types.h"
#include "server/tools/response_template.h"

namespace quire::server {

// Returns the arguments as a JSON object. nullopt: the text is not blank and has no argument in
// this format, or the value parser cannot read a value.
std::optional<std::string> body_arguments(
    const BodyFormat& format, std::string_view body,
    const std::map<std::string, ArgumentTypes, std::less<>>& types);

}  // namespace quire::server
