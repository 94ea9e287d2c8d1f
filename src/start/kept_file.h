// The files that Quire keeps between its runs: measured times, and packed weights.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "platform/platform.h"
#include "quire/config.h"
#include "tensor/packed_weights.h"

namespace quire {

struct ModelFiles;

// A CSV file in the user's cache directory, below $XDG_CACHE_HOME or $HOME/.cache; empty if neither
// is set. Its name consists of `kind`, the parts, and the version of Quire: a new version may have
// faster kernels, so it does not read the times of another one.
std::filesystem::path kept_file(std::string_view kind,
                                std::initializer_list<std::string_view> parts);

// Opens the packed weights of a model, as `packed_weights` says. Null: none are kept, because they
// are turned off, the weights do not lie in files, the threads of `platform` are several ranks or
// on several nodes, or, with "auto", the model is small or there is no cache directory on a disk.
// Fails if the directory's path is a file.
Result<std::shared_ptr<PackedWeights>> open_packed_weights(const EngineConfig& config,
                                                           const ModelFiles& files,
                                                           const PlatformConfig& platform);

}  // namespace quire
