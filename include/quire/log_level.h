// The level of the library's log, which it writes to standard error.
#pragma once

#include <string_view>

#include "quire/status.h"

namespace quire {

// Sets the lowest level of lines that are logged, for all engines of the process: "debug", "info"
// (the default), "warning", "error" or "off". Fails for another text.
Status set_log_level(std::string_view level);

}  // namespace quire
