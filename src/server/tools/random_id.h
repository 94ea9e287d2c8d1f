#pragma once

#include <string>

namespace quire::server {

// 24 random letters and digits that nobody can guess.
std::string random_id();

}  // namespace quire::server
