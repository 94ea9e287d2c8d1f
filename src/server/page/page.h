// The chat page and the live panel, compiled into the binary.
#pragma once

#include <span>
#include <string_view>

namespace quire::server {

struct PageFile {
  std::string_view path;  // "/", "/page/chat.js"
  std::string_view content_type;
  std::string_view body;
};

std::span<const PageFile> page_files();
// Returns null if there is no such file.
const PageFile* find_page_file(std::string_view path);
// Returns the Content-Security-Policy: no content from other origins, no inline code, no frames.
std::string_view page_security_policy();

}  // namespace quire::server
