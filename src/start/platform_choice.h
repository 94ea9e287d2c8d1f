// The platform that a configuration asks for, with its devices and threads.
#pragma once

#include <memory>
#include <string_view>

#include "measure/choices.h"
#include "platform/platform.h"
#include "quire/config.h"
#include "start/model_files.h"

namespace quire {

// Checks that this machine has a GPU, or a thread, per rank of this node, as make_platform() needs
// with several nodes. Costs nothing, so that it can come before a wait for the other nodes.
Status check_devices(const EngineConfig& config);

// Opens the choices that EngineConfig::measure asks for. driver: empty for a CPU.
std::shared_ptr<MeasuredChoices> open_choices(const EngineConfig& config, std::string_view device,
                                              std::string_view driver);

// Makes the platform that EngineConfig::device names. `auto` selects a GPU if the build supports it
// and the machine has one. nodes: null on a single node; all must have the same kind of device.
// `replica` is one of EngineConfig::data_parallel_size. choices: null to open them; replicas share
// those of the first.
Result<std::unique_ptr<Platform>> make_platform(const EngineConfig& config, const ModelFiles& files,
                                                std::shared_ptr<Nodes> nodes = nullptr,
                                                const Parallel& replica = {},
                                                std::shared_ptr<MeasuredChoices> choices = nullptr);

}  // namespace quire
