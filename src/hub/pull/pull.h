// `quire pull`: downloads into the hub's cache the files of a model that Quire reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "hub/pull/hub_client.h"
#include "quire/status.h"

namespace quire::hub {

struct PullOptions {
  HubSettings hub;
  std::filesystem::path cache;  // the folder of the models' folders
  int max_workers = 4;          // files that are downloaded at the same time
};

// The callbacks of a pull. Only `interrupted` is called from other threads.
struct PullHooks {
  std::function<bool()> interrupted;
  std::function<void(const std::string& line)> note;
  // Bytes of the needed files: in the cache by now, and in total (0: unknown).
  std::function<void(int64_t num_done, int64_t num_total)> progress;
  // Checks config.json, before the weights are downloaded, or a GGUF file that was downloaded.
  std::function<Status(const std::filesystem::path& config)> check_config;
  // Checks llama.cpp's name of an architecture, before a GGUF file of the hub is downloaded.
  std::function<Status(std::string_view architecture)> check_gguf_architecture = {};
};

// Returns the snapshot's directory, or the GGUF file in it (the first shard). If it fails, the
// downloaded files stay in the cache, and the next pull continues. All small files come before the
// weights: a snapshot with its weights is complete, and no weights are downloaded of a model that
// check_config refuses. The snapshot also gets links to the GGUF files of the list that are in the
// cache already, so that a new commit does not hide them.
Result<std::filesystem::path> pull(const PullOptions& options, const PullHooks& hooks);

// The settings that huggingface_hub reads too: HF_ENDPOINT, HF_TOKEN or the file of the token
// (HF_TOKEN_PATH, or `token` in HF_HOME), and the cache's folder.
Result<PullOptions> pull_options(const ModelName& model, std::string user_agent);

// Whether HF_HUB_OFFLINE forbids all access to the hub.
bool is_offline();

}  // namespace quire::hub
