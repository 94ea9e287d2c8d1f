#pragma once

#include <string>

namespace quire::server {

// Returns 24 letters and digits that cannot be guessed.
std::string random_id();

}  // namespace quire::server
