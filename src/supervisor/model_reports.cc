#include "supervisor/model_reports.h"

#include <fmt/format.h>

#include <chrono>
#include <system_error>

#include "base/digest.h"
#include "base/json_writer.h"
#include "base/utc_time.h"
#include "server/metrics/server_metrics.h"
#include "server/ollama_api/ollama_writer.h"
#include "supervisor/json_members.h"

namespace quire::supervisor {
namespace {

namespace fs = std::filesystem;
using std::chrono::system_clock;

// Copies members of a JSON object that it has.
void copy_members(std::string_view from, std::initializer_list<std::string_view> keys,
                  JsonWriter& json) {
  for (const std::string_view key : keys) {
    const std::string_view value = json_member(from, key);
    if (value.empty()) continue;
    json.key(key);
    json.raw(value);
  }
}

void write_status(const ModelStatus& status, JsonWriter& json) {
  json.key("status");
  json.begin_object();
  json.field("value", name_of(status.state));
  json.field("running", status.num_running);
  json.field("waiting", status.num_waiting);
  if (!status.error.empty()) {
    json.field("failed", true);
    json.field("error", std::string_view(status.error));
  }
  json.end_object();
}

void write_ollama_names(const std::string& name, JsonWriter& json) {
  const std::string tagged = server::tagged_name(name);
  json.field("name", std::string_view(tagged));
  json.field("model", std::string_view(tagged));
}

// Ollama's clients recognize a model by its digest. Before the first start, the files stand for it,
// and the details that need the model's metadata are absent.
void write_ollama_details(const ReportedModel& model, JsonWriter& json) {
  const std::string_view known = model.status.ollama_json;
  json.key("digest");
  if (const std::string_view digest = json_member(known, "digest"); !digest.empty()) {
    json.raw(digest);
  } else {
    json.value(std::string_view(to_hexadecimal(sha256_of(fmt::format(
        "{} {} {}", model.entry.name, model.files.num_bytes, model.files.modified_at)))));
  }
  json.key("details");
  if (const std::string_view details = json_member(known, "details"); !details.empty()) {
    return json.raw(details);
  }
  const bool is_gguf = model.entry.files.extension() == ".gguf";
  json.begin_object();
  json.field("parent_model", "");
  json.field("format", is_gguf ? "gguf" : "safetensors");
  json.end_object();
}

std::string text_of_time(fs::file_time_type time) {
  return utc_time(
      std::chrono::time_point_cast<system_clock::duration>(std::chrono::file_clock::to_sys(time)));
}

std::string text_of_seconds(int64_t unix_seconds) {
  return utc_time(system_clock::time_point(std::chrono::seconds(unix_seconds)));
}

}  // namespace

FileFacts facts_of_files(const fs::path& files) {
  FileFacts facts;
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(files, error);
  if (error) return facts;
  facts.modified_at = text_of_time(time);
  if (!fs::is_directory(files, error)) {
    const auto size = fs::file_size(files, error);
    facts.num_bytes = error ? 0 : static_cast<int64_t>(size);
    return facts;
  }
  for (fs::directory_iterator entry(files, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    const auto size =
        fs::is_regular_file(entry->path(), ignored) ? fs::file_size(entry->path(), ignored) : 0;
    if (!ignored) facts.num_bytes += static_cast<int64_t>(size);
  }
  return facts;
}

std::string model_json(const ReportedModel& model, int64_t created) {
  JsonWriter json;
  json.begin_object();
  json.field("id", std::string_view(model.entry.name));
  json.field("object", "model");
  json.field("created", created);
  json.field("owned_by", "quire");
  json.key("aliases");
  json.begin_array();
  for (const std::string& alias : model.entry.aliases) json.value(std::string_view(alias));
  json.end_array();
  copy_members(model.status.model_json, {"root", "max_model_len", "task", "sampling_defaults"},
               json);
  write_status(model.status, json);
  json.end_object();
  return json.take();
}

std::string anthropic_model_json(const ReportedModel& model, int64_t created) {
  JsonWriter json;
  json.begin_object();
  json.field("type", "model");
  json.field("id", std::string_view(model.entry.name));
  json.field("display_name", std::string_view(model.entry.name));
  json.field("created_at", std::string_view(text_of_seconds(created)));
  if (const auto length = json_member(model.status.model_json, "max_model_len"); !length.empty()) {
    json.key("max_input_tokens");
    json.raw(length);
  }
  json.end_object();
  return json.take();
}

std::string ollama_tag_json(const ReportedModel& model, const std::string& name,
                            int64_t started_at) {
  JsonWriter json;
  json.begin_object();
  write_ollama_names(name, json);
  // Clients parse the time, and the embedded model has no file.
  const std::string& modified = model.files.modified_at;
  json.field("modified_at",
             std::string_view(modified.empty() ? text_of_seconds(started_at) : modified));
  json.field("size", model.files.num_bytes);
  write_ollama_details(model, json);
  json.end_object();
  return json.take();
}

std::string ollama_ps_json(const ReportedModel& model) {
  const PlannedMemory& memory = model.status.memory;
  JsonWriter json;
  json.begin_object();
  write_ollama_names(model.entry.name, json);
  json.field("size", memory.num_bytes);
  json.field("size_vram", memory.is_on_gpu ? memory.num_bytes : 0);
  write_ollama_details(model, json);
  copy_members(model.status.ollama_json, {"context_length"}, json);
  const auto& left = model.status.expires_in;
  const std::string expires =
      left ? utc_time(system_clock::now() + *left) : std::string(server::kOllamaNever);
  json.field("expires_at", std::string_view(expires));
  json.end_object();
  return json.take();
}

std::string supervisor_metrics(std::span<const ReportedModel> models, std::string_view version) {
  server::MetricsText out;
  out.family("quire_supervisor_info", "gauge", "The build of the supervisor, as a label.");
  out.sample(1, {{"version", version}});
  const auto per_model = [&](std::string_view name, std::string_view type, std::string_view help,
                             const auto& value_of) {
    out.family(name, type, help);
    for (const ReportedModel& model : models) {
      out.sample(static_cast<double>(value_of(model.status)), {{"model_name", model.entry.name}});
    }
  };
  out.family("quire_supervisor_model_state", "gauge", "1 for the state of each model, as a label.");
  for (const ReportedModel& model : models) {
    out.sample(1, {{"model_name", model.entry.name}, {"state", name_of(model.status.state)}});
  }
  per_model("quire_supervisor_requests_running", "gauge", "Requests that a model's process serves.",
            [](const ModelStatus& status) { return status.num_running; });
  per_model("quire_supervisor_requests_waiting", "gauge",
            "Requests that wait for their model to start.",
            [](const ModelStatus& status) { return status.num_waiting; });
  per_model("quire_supervisor_planned_bytes", "gauge",
            "Planned memory of a model; 0: not planned yet.",
            [](const ModelStatus& status) { return status.memory.num_bytes; });
  per_model("quire_supervisor_requests_total", "counter",
            "Requests that went to a model's process.",
            [](const ModelStatus& status) { return status.num_requests; });
  per_model("quire_supervisor_starts_total", "counter", "Starts of a model's process.",
            [](const ModelStatus& status) { return status.num_starts; });
  per_model("quire_supervisor_start_seconds_total", "counter", "Time of the starts that succeeded.",
            [](const ModelStatus& status) { return status.start_seconds; });
  per_model("quire_supervisor_failed_starts_total", "counter", "Starts and plans that failed.",
            [](const ModelStatus& status) { return status.num_failed_starts; });
  per_model("quire_supervisor_crashes_total", "counter",
            "Ends of processes that the supervisor did not ask for.",
            [](const ModelStatus& status) { return status.num_crashes; });
  per_model("quire_supervisor_unloads_total", "counter", "Models that were unloaded.",
            [](const ModelStatus& status) { return status.num_unloads; });
  return out.take();
}

}  // namespace quire::supervisor
