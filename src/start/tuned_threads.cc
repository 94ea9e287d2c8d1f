#include "start/tuned_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/ascii.h"
#include "base/file.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/text.h"
#include "base/text_input.h"
#include "model/families.h"
#include "model/weights.h"
#include "start/kept_file.h"
#include "start/model_files.h"
#include "start/setting_values.h"

namespace quire {
namespace {

constexpr std::string_view kHeader = "cpus,model,decode_threads,prefill_threads";

int parse_threads(std::string_view text) {
  const int number = parse_whole<int>(text).value_or(0);
  return number <= kMaxTunedThreads ? number : 0;
}

Result<TunedThreads> parse_row(std::string_view line) {
  const std::vector<std::string_view> fields = split(line, ',');
  if (fields.size() == 4) {
    const StepThreads threads = {.decode = parse_threads(fields[2]),
                                 .prefill = parse_threads(fields[3])};
    if (threads.decode > 0 && threads.prefill > 0) {
      return TunedThreads{
          .cpus = std::string(fields[0]), .model = std::string(fields[1]), .threads = threads};
    }
  }
  return invalid_argument(fmt::format("got '{}', expected {} with numbers of 1 to {}",
                                      clipped(line), kHeader, kMaxTunedThreads));
}

// The type of the weights; for a GGUF file, the types of its quantized matrices.
std::string weights_key(const EngineConfig& config, const ModelFiles& files) {
  const std::set<std::string_view> block_types = block_type_names(*files.weights);
  if (!block_types.empty()) return fmt::format("{}", fmt::join(block_types, "+"));
  if (files.config.format) return std::string(values_name(files.config.format->scheme));
  return std::string(dtype_name(weight_dtype(config, files.config.dtype)));
}

}  // namespace

std::string cpus_key(const ThreadChoice& choice) {
  std::set<int> nodes;
  for (const ThreadPlace& place : choice.places) nodes.insert(place.node);
  const std::string limit = max_cpu_isa();
  return fmt::format("{} cores {} CPUs {} nodes {} threads {}{}", choice.num_cores, choice.num_cpus,
                     nodes.size(), choice.places.size(),
                     choice.places.front().cpus.empty() ? "not pinned" : "pinned",
                     limit.empty() ? "" : " at most " + limit);
}

std::string model_key(const EngineConfig& config, const ModelFiles& files) {
  const ModelConfig& model = files.config;
  return fmt::format("{} {}x{} {} {} {}", model.architecture, model.num_layers, model.hidden_size,
                     num_parameters(model), weights_key(config, files), config.cpu_activations);
}

std::filesystem::path tuned_threads_file() {
  return kept_file("threads", {cpu_model()});
}

Result<std::vector<TunedThreads>> read_tuned_threads(const std::filesystem::path& file) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(file));
  if (!exists) return std::vector<TunedThreads>();
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_file(file, kMaxBytes));
  std::vector<TunedThreads> rows;
  for (const std::string_view line : split(text, '\n')) {
    if (trimmed(line).empty() || line.starts_with('#') || line == kHeader) continue;
    Result<TunedThreads> row = parse_row(line);
    if (!row.ok()) {
      return invalid_argument(fmt::format("[tune] {}: {}", file.string(), row.status().message()));
    }
    rows.push_back(std::move(*row));
  }
  return rows;
}

Status keep_tuned_threads(const std::filesystem::path& file, const TunedThreads& row) {
  if (file.empty()) {
    return unavailable(
        "[tune] the result cannot be kept: neither XDG_CACHE_HOME nor HOME is set; set one");
  }
  Result<std::vector<TunedThreads>> rows = read_tuned_threads(file);
  if (!rows.ok()) {
    log_warning("{}; the file is written anew", rows.status().message());
    rows = std::vector<TunedThreads>();
  }
  std::erase_if(*rows, [&](const TunedThreads& other) {
    return other.cpus == row.cpus && other.model == row.model;
  });
  rows->push_back(row);
  std::string text = fmt::format(
      "# Thread counts that quire tune measured. Quire may overwrite or delete this file.\n{}\n",
      kHeader);
  for (const TunedThreads& one : *rows) {
    text +=
        fmt::format("{},{},{},{}\n", one.cpus, one.model, one.threads.decode, one.threads.prefill);
  }
  return replace_file(file, text);
}

std::optional<StepThreads> find_tuned_threads(const ThreadChoice& choice,
                                              const EngineConfig& config, const ModelFiles& files) {
  const std::filesystem::path file = tuned_threads_file();
  if (file.empty()) return std::nullopt;
  const Result<std::vector<TunedThreads>> rows = read_tuned_threads(file);
  if (!rows.ok()) {
    log_warning("{}; the measured thread counts are not used; run quire tune again",
                rows.status().message());
    return std::nullopt;
  }
  if (rows->empty()) return std::nullopt;
  const std::string cpus = cpus_key(choice);
  const std::string shape = model_key(config, files);
  const auto found = std::ranges::find_if(
      *rows, [&](const TunedThreads& row) { return row.cpus == cpus && row.model == shape; });
  if (found == rows->end()) return std::nullopt;
  return found->threads;
}

}  // namespace quire
