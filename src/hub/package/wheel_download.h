// Downloads the wheel of a package into the staging folder, from the package index itself or by
// pip.
#pragma once

#include <filesystem>
#include <string>

#include "hub/package/pull_package.h"
#include "hub/package/staging.h"
#include "hub/pull/hub_client.h"
#include "hub/pull/pull.h"
#include "quire/status.h"

namespace quire::hub {

struct Wheel {
  std::filesystem::path file;
  // From the index; empty: the index lists no hash, or pip has checked it.
  std::string listed_sha256 = {};
};

// Fails as soon as the wheel is larger than its pinned or listed size.
Result<Wheel> download_wheel(const PackagePull& pull, const PackageOptions& options,
                             const PullHooks& hooks, PullState& state, const Staging& staging);

}  // namespace quire::hub
