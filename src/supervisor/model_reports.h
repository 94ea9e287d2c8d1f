// The lists of models in the form of each API, and the supervisor's own metrics. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/model_pool.h"

namespace quire::supervisor {

// Facts of a model's files that are known without its process.
struct FileFacts {
  int64_t num_bytes = 0;
  std::string modified_at = {};  // UTC
};
// 0 and "" for what cannot be read.
FileFacts facts_of_files(const std::filesystem::path& files);

struct ReportedModel {
  const ModelEntry& entry;
  const ModelStatus& status;
  const FileFacts& files;
};

// The entry of GET /v1/models: the fields of the model's own process, once it has been loaded, and
// its state as llama-server reports it.
std::string model_json(const ReportedModel& model, int64_t created);
std::string anthropic_model_json(const ReportedModel& model, int64_t created);
// The entries of Ollama's /api/tags, for the name or an alias, and /api/ps.
std::string ollama_tag_json(const ReportedModel& model, const std::string& name,
                            int64_t started_at);
std::string ollama_ps_json(const ReportedModel& model);

// Prometheus text with a sample per model.
std::string supervisor_metrics(std::span<const ReportedModel> models, std::string_view version);

}  // namespace quire::supervisor
