#include "quantize/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/file.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/numbers.h"
#include "base/thread_pool.h"
#include "model/families.h"
#include "quantize/gguf_plan.h"
#include "quantize/part_file.h"
#include "quantize/source.h"
#include "quantize/w4a16_plan.h"
#include "tensor/checkpoint.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kChunkBytes = int64_t{16} << 20;  // of the output, computed before it is written
constexpr int64_t kTaskBytes = int64_t{64} << 10;   // that a thread computes at a time

// Computes and writes the tensors of a plan.
class PlanWriter {
 public:
  PlanWriter(const OutputPlan& plan, PartFile& file, WeightSource& weights, int num_threads,
             const QuantizeHooks& hooks)
      : plan_(plan), file_(file), weights_(weights), threads_(num_threads), hooks_(hooks) {}

  Status write();
  size_t num_continued() const { return num_continued_; }

 private:
  Status begin();
  Status write_tensor(const PlannedTensor& tensor);
  Status compute(const PlannedTensor& tensor, const RowWriter& write_row, int64_t first,
                 int64_t count);
  void report(size_t tensor) const;

  const OutputPlan& plan_;
  PartFile& file_;
  WeightSource& weights_;
  ThreadPool threads_;
  const QuantizeHooks& hooks_;
  std::vector<std::byte> chunk_;
  size_t num_continued_ = 0;
};

// Keeps the tensors that an earlier run wrote. The last of them counts only if bytes follow it:
// they were written after the disk had all of it.
Status PlanWriter::begin() {
  const std::vector<PlannedTensor>& tensors = plan_.tensors;
  while (num_continued_ < tensors.size() && file_.size() > tensors[num_continued_].end()) {
    ++num_continued_;
  }
  if (num_continued_ > 0) {
    log_info("[quantize] continuing an earlier run after {} of {} tensors", num_continued_,
             tensors.size());
    return file_.truncate(tensors[num_continued_ - 1].end());
  }
  QUIRE_RETURN_IF_ERROR(file_.truncate(0));
  return file_.append(std::as_bytes(std::span(plan_.header)));
}

void PlanWriter::report(size_t tensor) const {
  const bool is_done = tensor == plan_.tensors.size();
  hooks_.on_progress({tensor, plan_.tensors.size(),
                      is_done ? std::string_view() : std::string_view(plan_.tensors[tensor].name),
                      file_.size(), plan_.file_bytes});
}

// Computes rows [first, first + count) into the chunk. If several fail, the error is that of the
// first.
Status PlanWriter::compute(const PlannedTensor& tensor, const RowWriter& write_row, int64_t first,
                           int64_t count) {
  chunk_.resize(static_cast<size_t>(count * tensor.row_bytes));
  const int64_t rows_per_task = std::max<int64_t>(1, kTaskBytes / tensor.row_bytes);
  std::vector<Status> statuses(static_cast<size_t>(ceil_div(count, rows_per_task)));
  threads_.parallel_for(static_cast<int64_t>(statuses.size()), [&](int64_t task) {
    Status& status = statuses[static_cast<size_t>(task)];
    const int64_t end = std::min(count, (task + 1) * rows_per_task);
    for (int64_t row = task * rows_per_task; row < end && status.ok(); ++row) {
      status = write_row(first + row, chunk_.data() + row * tensor.row_bytes);
    }
  });
  const auto failed = std::ranges::find_if_not(statuses, &Status::ok);
  return failed == statuses.end() ? Status() : std::move(*failed);
}

Status PlanWriter::write_tensor(const PlannedTensor& tensor) {
  QUIRE_ASSIGN_OR_RETURN(const RowWriter write_row, tensor.open());
  const int64_t rows_per_chunk = std::max<int64_t>(1, kChunkBytes / tensor.row_bytes);
  for (int64_t first = 0; first < tensor.num_rows; first += rows_per_chunk) {
    if (hooks_.interrupted()) return cancelled("");
    const int64_t count = std::min(rows_per_chunk, tensor.num_rows - first);
    QUIRE_RETURN_IF_ERROR(compute(tensor, write_row, first, count));
    QUIRE_RETURN_IF_ERROR(file_.append(chunk_));
  }
  if (!tensor.source.empty()) weights_.release(tensor.source);
  return file_.sync();
}

Status PlanWriter::write() {
  QUIRE_RETURN_IF_ERROR(begin());
  for (size_t i = num_continued_; i < plan_.tensors.size(); ++i) {
    report(i);
    QUIRE_RETURN_IF_ERROR(file_.pad(plan_.tensors[i].begin));
    const Status status = write_tensor(plan_.tensors[i]);
    if (status.code() == StatusCode::kCancelled) {
      return cancelled(fmt::format("interrupted after {} of {} tensors; the same command continues",
                                   i, plan_.tensors.size()));
    }
    QUIRE_RETURN_IF_ERROR(status);
  }
  QUIRE_RETURN_IF_ERROR(file_.pad(plan_.file_bytes));
  report(plan_.tensors.size());
  return {};
}

// Identifies everything that the output depends on.
std::string fingerprint(const QuantizeSource& source, const OutputPlan& plan) {
  return to_hexadecimal(sha256_of(source.identity + plan.header)) + "\n";
}

// Fails unless the directory, which is to be replaced, has only the files of a quantized
// checkpoint.
Status check_is_checkpoint(const fs::path& directory) {
  std::error_code error;
  const Result<std::string> config = read_file(directory / "config.json", kMaxConfigBytes);
  bool is_flat = true;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    is_flat &= entry->is_regular_file(error);
  }
  if (!error && is_flat && config.ok() && config->find("quantization_config") != config->npos) {
    return {};
  }
  return invalid_argument(fmt::format(
      "[quantize] out: {} is a directory with other files than those of a quantized checkpoint; "
      "expected one that may be replaced: remove it first",
      directory.string()));
}

Status check_out(const QuantizeOptions& options, const QuantizeSource& source) {
  std::error_code error;
  const fs::path& out = options.out;
  const fs::path folder = out.has_parent_path() ? out.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error)) {
    return not_found(
        fmt::format("[quantize] out: the folder {} does not exist; expected one", folder.string()));
  }
  QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(out));
  if (!exists) return {};
  if (!source.directory.empty() && fs::equivalent(out, source.directory, error)) {
    return invalid_argument(
        fmt::format("[quantize] out: {} is the model itself; expected another path", out.string()));
  }
  if (!options.force) {
    return invalid_argument(fmt::format(
        "[quantize] out: {} exists; expected a new path, or --force to replace it", out.string()));
  }
  const bool wants_directory = std::holds_alternative<W4A16Target>(options.target);
  if (wants_directory != fs::is_directory(out, error)) {
    return invalid_argument(fmt::format("[quantize] out: {} is {}; expected {}", out.string(),
                                        wants_directory ? "a file" : "a directory",
                                        wants_directory ? "a directory" : "a file"));
  }
  return wants_directory ? check_is_checkpoint(out) : Status();
}

// replace_file() would make the file readable by its owner only.
Status write_text(const fs::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.flush();
  if (file) return {};
  return {StatusCode::kInternal,
          fmt::format("[quantize] cannot write {}; {}", path.string(), std::strerror(errno))};
}

class Run {
 public:
  Run(const QuantizeOptions& options, const QuantizeHooks& hooks, QuantizeSource& source)
      : options_(options), hooks_(hooks), source_(source) {}

  Result<QuantizeResult> gguf(GgufTarget target);
  Result<QuantizeResult> w4a16(const W4A16Target& target);

 private:
  Status write(const OutputPlan& plan, const fs::path& path);
  Status write_other_files(const fs::path& folder, int group_size) const;
  Status replace_directory(const fs::path& part) const;

  const QuantizeOptions& options_;
  const QuantizeHooks& hooks_;
  QuantizeSource& source_;
  QuantizeResult result_;
};

Status Run::write(const OutputPlan& plan, const fs::path& path) {
  QUIRE_ASSIGN_OR_RETURN(PartFile file,
                         PartFile::open(path, fingerprint(source_, plan), plan.file_bytes));
  const int num_threads = options_.num_threads > 0 ? options_.num_threads : num_usable_cores();
  PlanWriter writer(plan, file, *source_.files.weights, num_threads, hooks_);
  QUIRE_RETURN_IF_ERROR(writer.write());
  result_.num_weights = num_parameters(source_.files.config);
  result_.source_bytes = source_.weight_bytes;
  result_.output_bytes = static_cast<int64_t>(plan.file_bytes);
  result_.num_tensors = plan.tensors.size();
  result_.num_continued = writer.num_continued();
  return file.finish();
}

Result<QuantizeResult> Run::gguf(GgufTarget target) {
  QUIRE_ASSIGN_OR_RETURN(const OutputPlan plan, plan_gguf(source_, target));
  QUIRE_RETURN_IF_ERROR(write(plan, options_.out));
  return result_;
}

// The files beside the weights.
Status Run::write_other_files(const fs::path& folder, int group_size) const {
  QUIRE_RETURN_IF_ERROR(write_text(folder / "config.json", w4a16_config_json(source_, group_size)));
  const std::pair<const char*, const std::string*> texts[] = {
      {"generation_config.json", &source_.generation_config_json},
      {"tokenizer.json", &source_.tokenizer_json},
      {"tokenizer.model", &source_.tokenizer_model},
      {"tokenizer_config.json", &source_.tokenizer_config_json}};
  for (const auto& [name, text] : texts) {
    if (!text->empty()) QUIRE_RETURN_IF_ERROR(write_text(folder / name, *text));
  }
  if (source_.directory.empty()) return {};
  for (const char* name : {"special_tokens_map.json", "added_tokens.json", "vocab.json",
                           "merges.txt", "chat_template.jinja"}) {
    QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(source_.directory / name));
    if (!exists) continue;
    QUIRE_ASSIGN_OR_RETURN(const std::string text,
                           read_file(source_.directory / name, kMaxConfigBytes));
    QUIRE_RETURN_IF_ERROR(write_text(folder / name, text));
  }
  return {};
}

// Gives the complete directory its name. An older one is moved aside first, and removed last.
Status Run::replace_directory(const fs::path& part) const {
  const fs::path& out = options_.out;
  const fs::path old = out.string() + ".replaced";
  std::error_code error;
  const bool replaces = fs::exists(out, error);
  if (replaces) fs::rename(out, old, error);
  if (!error) fs::rename(part, out, error);
  if (error) {
    return {StatusCode::kInternal, fmt::format("[quantize] cannot rename {} to {}; {}",
                                               part.string(), out.string(), error.message())};
  }
  if (replaces) fs::remove_all(old, error);
  return {};
}

Result<QuantizeResult> Run::w4a16(const W4A16Target& target) {
  QUIRE_ASSIGN_OR_RETURN(const OutputPlan plan, plan_w4a16(source_, target.group_size));
  const fs::path part = options_.out.string() + ".part";
  std::error_code error;
  fs::create_directory(part, error);
  if (error) {
    return invalid_argument(
        fmt::format("[quantize] cannot create {}; {}", part.string(), error.message()));
  }
  QUIRE_RETURN_IF_ERROR(write_other_files(part, target.group_size));
  QUIRE_RETURN_IF_ERROR(write(plan, part / kWeightsFile));
  QUIRE_RETURN_IF_ERROR(replace_directory(part));
  return result_;
}

}  // namespace

Status check_quantize(const QuantizeOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(const QuantizeSource source, open_quantize_source(options.model));
  return check_out(options, source);
}

Result<QuantizeResult> quantize(const QuantizeOptions& options, const QuantizeHooks& hooks) {
  QUIRE_ASSIGN_OR_RETURN(QuantizeSource source, open_quantize_source(options.model));
  QUIRE_RETURN_IF_ERROR(check_out(options, source));
  Run run(options, hooks, source);
  if (const auto* const target = std::get_if<W4A16Target>(&options.target)) {
    return run.w4a16(*target);
  }
  return run.gguf(std::get<GgufTarget>(options.target));
}

}  // namespace quire
