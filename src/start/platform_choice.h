// The platform that a configuration asks for, with its devices and threads.
#pragma once

#include <memory>
#include <string_view>

#include "measure/choices.h"
#include "platform/platform.h"
#include "quire/config.h"
#include "start/model_files.h"

namespace quire {

// Fails unless this machine has one GPU, or one CPU thread, per rank of this node. A start can call
// it before it waits for other nodes.
Status check_devices(const EngineConfig& config);

// Opens the choices that EngineConfig::measure asks for. driver: empty for a CPU.
std::shared_ptr<MeasuredChoices> open_choices(const EngineConfig& config, std::string_view device,
                                              std::string_view driver);

// Makes the platform that EngineConfig::device names. `auto` selects a GPU if the build supports it
// and the machine has one. nodes: null on a single node; all must have the same kind of device.
// `replica`: its index, and EngineConfig::data_parallel_size. choices: the choices of the first
// replica; null: opens them.
Result<std::unique_ptr<Platform>> make_platform(const EngineConfig& config, const ModelFiles& files,
                                                std::shared_ptr<Nodes> nodes = nullptr,
                                                const Parallel& replica = {},
                                                std::shared_ptr<MeasuredChoices> choices = nullptr);

}  // namespace quire
