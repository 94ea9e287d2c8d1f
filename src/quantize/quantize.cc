#include "quantize/quantize.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/locked_file.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/numbers.h"
#include "base/thread_pool.h"
#include "model/model_loader.h"
#include "model/quantization.h"
#include "quantize/channel_scales.h"
#include "quantize/gguf_plan.h"
#include "quantize/input_statistics.h"
#include "quantize/part_file.h"
#include "quantize/source.h"
#include "quantize/w4a16_plan.h"
#include "start/embedding_modules.h"
#include "start/model_files.h"
#include "tensor/checkpoint.h"
#include "tokenizer/tokenizer.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kChunkBytes = int64_t{16} << 20;  // of the output, computed before it is written
constexpr int64_t kTaskBytes = int64_t{64} << 10;   // that a thread computes at a time

// Computes and writes the tensors of a plan.
class PlanWriter {
 public:
  PlanWriter(const OutputPlan& plan, PartFile& file, const QuantizeSource& source,
             ThreadPool& threads, const QuantizeHooks& hooks)
      : plan_(plan), file_(file), source_(source), threads_(threads), hooks_(hooks) {}

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
  const QuantizeSource& source_;
  ThreadPool& threads_;
  const QuantizeHooks& hooks_;
  std::vector<std::byte> chunk_;
  size_t num_continued_ = 0;
};

// Keeps the tensors that an earlier run wrote. The last of them counts only if bytes follow it,
// because these are written only after the disk has the whole tensor.
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

// Computes rows [first, first + count) into the chunk. If several fail, returns the error of the
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
    QUIRE_RETURN_IF_ERROR(check_unchanged(source_));
    const int64_t count = std::min(rows_per_chunk, tensor.num_rows - first);
    QUIRE_RETURN_IF_ERROR(compute(tensor, write_row, first, count));
    QUIRE_RETURN_IF_ERROR(file_.append(chunk_));
  }
  if (!tensor.source.empty()) source_.files.weights->release(tensor.source);
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
  return check_unchanged(source_);
}

// Identifies everything that the output depends on. `calibration` identifies the calibration text
// and the results of the calibration.
std::string fingerprint(const QuantizeSource& source, const OutputPlan& plan,
                        std::string_view calibration = {}) {
  return to_hexadecimal(
             sha256_of(fmt::format("{}{}{}", source.identity, calibration, plan.header))) +
         "\n";
}

// Warns of tensors, and names the first five.
void warn_of_tensors(std::string_view what, std::span<const std::string> names) {
  constexpr size_t kMaxNamed = 5;
  if (names.empty()) return;
  log_warning("[quantize] {} {}: {}{}", names.size(), what,
              fmt::join(names.first(std::min(names.size(), kMaxNamed)), ", "),
              names.size() > kMaxNamed ? ", …" : "");
}

// The files that w4a16 has beside the weights.
constexpr auto kTextFiles = [] {
  constexpr std::string_view kOthers[] = {"config.json",
                                          "generation_config.json",
                                          "tokenizer_config.json",
                                          "special_tokens_map.json",
                                          "added_tokens.json",
                                          "vocab.json",
                                          "merges.txt",
                                          "chat_template.jinja"};
  std::array<std::string_view, std::size(kOthers) + kTokenizerFiles.size()> files;
  const auto end = std::ranges::copy(kOthers, files.begin()).out;
  std::ranges::copy(kTokenizerFiles, end);
  return files;
}();

// Returns an entry of the directory that this command does not write; empty: none.
Result<std::string> find_foreign(const fs::path& directory) {
  const std::string part = std::string(kWeightsFile) + ".part";
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    const bool is_known = name == kWeightsFile || name.starts_with(part) ||
                          std::ranges::find(kTextFiles, name) != std::end(kTextFiles);
    if (!is_known || !entry->is_regular_file(error)) return name;
  }
  if (!error) return std::string();
  return invalid_argument(
      fmt::format("[quantize] cannot read {}; {}", directory.string(), error.message()));
}

// Fails unless the directory, which is to be replaced, has only the files of a quantized
// checkpoint.
Status check_is_checkpoint(const fs::path& directory) {
  QUIRE_ASSIGN_OR_RETURN(std::string foreign, find_foreign(directory));
  if (foreign.empty()) {
    const Result<std::string> config = read_file(directory / "config.json", kMaxConfigBytes);
    constexpr std::string_view kFormat = "\"format\": \"pack-quantized\"";
    if (config.ok() && config->find(kFormat) != config->npos) return {};
    foreign = "config.json";
  }
  return invalid_argument(fmt::format(
      "[quantize] out: {} is a directory whose {} is not of a w4a16 checkpoint that this command "
      "wrote; expected one that may be replaced: remove it first",
      directory.string(), quote_name(foreign)));
}

// Fails unless an earlier run left the directory, and removes the files that are written after the
// weights, which may be of another source.
Status prepare_part_directory(const fs::path& part) {
  std::error_code error;
  if (fs::is_empty(part, error)) return {};
  QUIRE_ASSIGN_OR_RETURN(std::string foreign, find_foreign(part));
  const std::string weights_part = std::string(kWeightsFile) + ".part";
  const bool is_of_a_run = fs::exists(part / weights_part, error);
  if (!foreign.empty() || !is_of_a_run) {
    return invalid_argument(fmt::format(
        "[quantize] {} {}; expected the files of an interrupted run alone: rename or remove it, or "
        "choose another output",
        part.string(),
        foreign.empty() ? fmt::format("lacks {}", weights_part)
                        : fmt::format("has {}", quote_name(foreign))));
  }
  for (const std::string_view name : kTextFiles) {
    fs::remove(part / name, error);
    if (error) {
      return {StatusCode::kInternal, fmt::format("[quantize] cannot remove {}; {}",
                                                 (part / name).string(), error.message())};
    }
  }
  return {};
}

// Fails if `out` is a file of the checkpoint, or one that the checkpoint links to. A GGUF file or a
// directory beside the checkpoint is allowed.
Status check_is_not_source(const fs::path& out, const fs::path& source) {
  std::error_code error;
  for (fs::directory_iterator entry(source, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code differs;
    if (!fs::equivalent(entry->path(), out, differs)) continue;
    if (fs::is_directory(out, differs) || is_gguf_file(out)) continue;
    return invalid_argument(
        fmt::format("[quantize] out: {} is a file of the model; expected another path, or the name "
                    "of a GGUF file",
                    out.string()));
  }
  if (!error) return {};
  return invalid_argument(
      fmt::format("[quantize] model: cannot list {}; {}", source.string(), error.message()));
}

// Returns the options with an `out` that ends with a name, so that it can get a suffix.
Result<QuantizeOptions> with_plain_out(QuantizeOptions options) {
  fs::path& out = options.out;
  if (!out.empty() && !out.has_filename() && std::holds_alternative<GgufTarget>(options.target)) {
    return invalid_argument(fmt::format(
        "[quantize] out: got {}, the name of a directory, expected that of a GGUF file, such as {}",
        quote_name(out.string()), quote_name((out / "model.gguf").string())));
  }
  while (!out.has_filename() && out.has_relative_path()) out = out.parent_path();
  if (out.has_filename() && out.filename() != "." && out.filename() != "..") return options;
  return invalid_argument(fmt::format(
      "[quantize] out: got {}, expected a path that ends with the name of a new file or "
      "directory",
      quote_name(out.string())));
}

// Fails if the run would write its unfinished output over the checkpoint.
Status check_part_is_not_source(const fs::path& out, const QuantizeSource& source) {
  std::vector<fs::path> sources = {source.directory};
  for (const SourceFile& file : source.weight_files) sources.push_back(file.path);
  const fs::path part = out.string() + ".part";
  for (const fs::path& written : {part, part / (std::string(kWeightsFile) + ".part")}) {
    for (const fs::path& path : sources) {
      std::error_code error;
      if (!fs::equivalent(written, path, error)) continue;
      return invalid_argument(fmt::format(
          "[quantize] out: {}, the name of the unfinished output, is {} of the model; expected "
          "another path",
          written.string(), path.string()));
    }
  }
  return {};
}

// Fails if `out`, which does not exist, has the name of a file that readers of the checkpoint look
// for, such as one in its index. The output would become a part of the checkpoint.
Status check_is_no_name_of_source(const fs::path& out, const fs::path& source) {
  std::vector<std::string> names = {std::string(kWeightsFile), std::string(kWeightsIndexFile),
                                    std::string(kQuantConfigFile), std::string(kModulesFile)};
  names.insert(names.end(), std::begin(kTextFiles), std::end(kTextFiles));
  // An index beside a file with all weights is not read, and may be damaged.
  Result<std::vector<std::string>> shards = read_shard_names(source / kWeightsIndexFile);
  if (shards.ok()) names.insert(names.end(), shards->begin(), shards->end());
  if (std::ranges::find(names, out.filename().string()) == names.end()) return {};
  return invalid_argument(
      fmt::format("[quantize] out: {} is the name of a file of the model, which would read it; "
                  "expected another name or folder",
                  out.string()));
}

std::string_view kind_of(const fs::path& path) {
  std::error_code error;
  switch (fs::status(path, error).type()) {
    case fs::file_type::regular:
      return "a file";
    case fs::file_type::directory:
      return "a directory";
    case fs::file_type::fifo:
      return "a FIFO";
    case fs::file_type::socket:
      return "a socket";
    case fs::file_type::block:
    case fs::file_type::character:
      return "a device";
    default:
      return "neither a file nor a directory";
  }
}

// Fails if `out` exists and is of another kind than the output.
Status check_kind(const fs::path& out, bool wants_directory) {
  QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(out));
  const std::string_view wanted = wants_directory ? "a directory" : "a file";
  if (!exists || kind_of(out) == wanted) return {};
  return invalid_argument(
      fmt::format("[quantize] out: {} is {}; expected {}", out.string(), kind_of(out), wanted));
}

Status check_out(const QuantizeOptions& options, const QuantizeSource& source) {
  std::error_code error;
  const fs::path& out = options.out;
  const fs::path folder = out.has_parent_path() ? out.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error)) {
    return not_found(
        fmt::format("[quantize] out: the folder {} does not exist; expected one", folder.string()));
  }
  QUIRE_RETURN_IF_ERROR(check_part_is_not_source(out, source));
  if (fs::is_symlink(out, error) && !fs::exists(out, error)) {
    return invalid_argument(fmt::format(
        "[quantize] out: {} is a symbolic link to {}, which does not exist; expected a new path: "
        "remove the link, or name another output",
        out.string(), fs::read_symlink(out, error).string()));
  }
  QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(out));
  if (!exists) {
    if (source.directory.empty() || !fs::equivalent(folder, source.directory, error)) return {};
    return check_is_no_name_of_source(out, source.directory);
  }
  if (!source.directory.empty() && fs::equivalent(out, source.directory, error)) {
    return invalid_argument(
        fmt::format("[quantize] out: {} is the model itself; expected another path", out.string()));
  }
  if (!options.force) {
    return invalid_argument(fmt::format(
        "[quantize] out: {} exists; expected a new path, or --force to replace it", out.string()));
  }
  const bool wants_directory = std::holds_alternative<W4A16Target>(options.target);
  QUIRE_RETURN_IF_ERROR(check_kind(out, wants_directory));
  if (!source.directory.empty()) {
    QUIRE_RETURN_IF_ERROR(check_is_not_source(out, source.directory));
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
      : options_(options),
        hooks_(hooks),
        source_(source),
        threads_(options.num_threads > 0 ? options.num_threads : num_usable_cpus()) {}

  Result<QuantizeResult> gguf(GgufTarget target);
  Result<QuantizeResult> w4a16(const W4A16Target& target);

 private:
  // Writes the plan's tensors. After an error that the same command would meet again, nothing is
  // left to continue.
  Status write(const OutputPlan& plan, PartFile& file);
  // Chooses scales per channel by the calibration text, and returns their identity.
  Result<std::string> calibrate(const W4A16Target& target, ChannelScales& scales);
  Status search_scales(const InputStatisticsByMatrix& inputs, int group_size,
                       ChannelScales& scales);
  // Writes the directory, which is called `part` meanwhile and is locked.
  Status write_w4a16(const W4A16Target& target, const fs::path& part);
  Status write_other_files(const fs::path& folder, int group_size) const;
  Status replace_directory(const fs::path& part) const;

  const QuantizeOptions& options_;
  const QuantizeHooks& hooks_;
  QuantizeSource& source_;
  ThreadPool threads_;
  QuantizeResult result_;
};

Status Run::write(const OutputPlan& plan, PartFile& file) {
  PlanWriter writer(plan, file, source_, threads_, hooks_);
  const Status status = writer.write();
  if (status.code() == StatusCode::kInvalidArgument) {
    const Status discarded = file.discard();
    if (!discarded.ok()) log_warning("{}", discarded.message());
  }
  QUIRE_RETURN_IF_ERROR(status);
  result_.out = options_.out;
  result_.num_weights = num_parameters(source_.files.config);
  result_.source_bytes = source_.weight_bytes;
  result_.output_bytes = static_cast<int64_t>(plan.file_bytes);
  result_.num_tensors = plan.tensors.size();
  result_.num_continued = writer.num_continued();
  return {};
}

Result<QuantizeResult> Run::gguf(GgufTarget target) {
  QUIRE_ASSIGN_OR_RETURN(const OutputPlan plan, plan_gguf(source_, target));
  QUIRE_ASSIGN_OR_RETURN(PartFile file,
                         PartFile::open(options_.out, fingerprint(source_, plan), plan.file_bytes));
  QUIRE_RETURN_IF_ERROR(write(plan, file));
  QUIRE_RETURN_IF_ERROR(check_kind(options_.out, false));
  QUIRE_RETURN_IF_ERROR(file.finish(options_.force));
  return result_;
}

Status Run::search_scales(const InputStatisticsByMatrix& inputs, int group_size,
                          ChannelScales& scales) {
  const std::vector<ScaleGroup> groups = find_scale_groups(source_.tensors, source_.decoder());
  double plain_error = 0.0;
  double error = 0.0;
  size_t num_scaled = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (hooks_.interrupted()) {
      return cancelled("interrupted before the first tensor; the same command begins anew");
    }
    hooks_.on_preparation("scales", i, groups.size());
    QUIRE_RETURN_IF_ERROR(check_unchanged(source_));
    const ScaleGroup& group = groups[i];
    const auto input = inputs.find(group.readers.front().name);
    QUIRE_CHECK(input != inputs.end(), "[quantize] a matrix has no statistics of its input");
    QUIRE_ASSIGN_OR_RETURN(const ScaleChoice choice,
                           add_group_scales(group, *input->second, group_size,
                                            *source_.files.weights, threads_, scales));
    plain_error += choice.plain_error;
    error += choice.error;
    if (choice.exponent > 0) ++num_scaled;
  }
  hooks_.on_preparation("scales", groups.size(), groups.size());
  log_info(
      "[quantize] the inputs of {} of {} groups of matrices are scaled: the error of rounding, "
      "weighted by the inputs' squares, is {:.1f} % of that of plain rounding (100 % is no gain; "
      "the perplexity of a text shows the effect on outputs)",
      num_scaled, groups.size(), plain_error > 0 ? 100 * error / plain_error : 100.0);
  warn_of_tensors(
      "matrices are rounded plainly, because no tensor can absorb scales of their inputs",
      unscaled_matrices(source_.tensors, groups));
  return {};
}

Result<std::string> Run::calibrate(const W4A16Target& target, ChannelScales& scales) {
  if (!target.calibration) return std::string();
  const CalibrationText& text = *target.calibration;
  QUIRE_ASSIGN_OR_RETURN(const auto windows, calibration_windows(source_, text));
  QUIRE_RETURN_IF_ERROR(check_unchanged(source_));
  QUIRE_ASSIGN_OR_RETURN(const InputStatisticsByMatrix inputs,
                         collect_input_statistics(source_, windows, options_.num_threads, hooks_));
  QUIRE_RETURN_IF_ERROR(search_scales(inputs, target.group_size, scales));
  return fmt::format("{} {} {}\n", to_hexadecimal(sha256_of(text.text)), text.max_tokens,
                     identity_of(scales));
}

// The files beside the weights: the texts of the source, and copies of the others.
Status Run::write_other_files(const fs::path& folder, int group_size) const {
  QUIRE_RETURN_IF_ERROR(write_text(folder / "config.json", w4a16_config_json(source_, group_size)));
  const std::pair<std::string_view, const std::string*> texts[] = {
      {"generation_config.json", &source_.generation_config_json},
      {source_.tokenizer_file, &source_.tokenizer},
      {"tokenizer_config.json", &source_.tokenizer_config_json}};
  for (const auto& [name, text] : texts) {
    if (!text->empty()) QUIRE_RETURN_IF_ERROR(write_text(folder / name, *text));
  }
  if (source_.directory.empty()) return {};
  for (const std::string_view name : kTextFiles) {
    QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(source_.directory / name));
    QUIRE_ASSIGN_OR_RETURN(const bool is_written, path_exists(folder / name));
    if (!exists || is_written) continue;
    QUIRE_ASSIGN_OR_RETURN(const std::string text,
                           read_file(source_.directory / name, kMaxTextBytes));
    QUIRE_RETURN_IF_ERROR(write_text(folder / name, text));
  }
  return {};
}

// Gives the complete directory its name, and removes the directory that it replaces.
Status Run::replace_directory(const fs::path& part) const {
  std::error_code error;
  if (options_.force && fs::exists(options_.out, error)) {
    QUIRE_RETURN_IF_ERROR(check_is_checkpoint(options_.out));
  }
  QUIRE_RETURN_IF_ERROR(give_name(part, options_.out, options_.force));
  fs::remove_all(part, error);
  if (error) {
    log_warning("[quantize] cannot remove {}, the directory that {} replaced; {}", part.string(),
                options_.out.string(), error.message());
  }
  return {};
}

Status Run::write_w4a16(const W4A16Target& target, const fs::path& part) {
  ChannelScales scales;
  QUIRE_ASSIGN_OR_RETURN(const OutputPlan plan, plan_w4a16(source_, target.group_size, scales));
  QUIRE_ASSIGN_OR_RETURN(const std::string calibration, calibrate(target, scales));
  QUIRE_ASSIGN_OR_RETURN(
      PartFile file, PartFile::open(part / kWeightsFile, fingerprint(source_, plan, calibration),
                                    plan.file_bytes));
  QUIRE_RETURN_IF_ERROR(write(plan, file));
  QUIRE_RETURN_IF_ERROR(write_other_files(part, target.group_size));
  QUIRE_RETURN_IF_ERROR(file.finish(true));
  return replace_directory(part);
}

Result<QuantizeResult> Run::w4a16(const W4A16Target& target) {
  const fs::path part = options_.out.string() + ".part";
  std::error_code error;
  std::error_code ignored;
  fs::create_directory(part, error);
  if (error && !fs::exists(fs::symlink_status(part, ignored))) {
    return invalid_argument(
        fmt::format("[quantize] cannot create {}; {}", part.string(), error.message()));
  }
  QUIRE_ASSIGN_OR_RETURN(const LockedFile locked,
                         LockedFile::open(part, O_RDONLY | O_DIRECTORY, "quantize"));
  QUIRE_RETURN_IF_ERROR(prepare_part_directory(part));
  const Status status = write_w4a16(target, part);
  if (status.ok()) return result_;
  ::rmdir(part.c_str());  // succeeds if there is nothing to continue
  return status;
}

}  // namespace

Status check_quantize(const QuantizeOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(const QuantizeOptions plain, with_plain_out(options));
  QUIRE_ASSIGN_OR_RETURN(const QuantizeSource source, open_quantize_source(plain.model));
  QUIRE_RETURN_IF_ERROR(check_out(plain, source));
  const auto* const target = std::get_if<W4A16Target>(&plain.target);
  if (target == nullptr || !target->calibration) return {};
  return calibration_windows(source, *target->calibration).status();
}

Result<QuantizeResult> quantize(const QuantizeOptions& options, const QuantizeHooks& hooks) {
  QUIRE_ASSIGN_OR_RETURN(const QuantizeOptions plain, with_plain_out(options));
  QUIRE_ASSIGN_OR_RETURN(QuantizeSource source, open_quantize_source(plain.model));
  QUIRE_RETURN_IF_ERROR(check_out(plain, source));
  warn_of_tensors("tensors of the checkpoint are not the model's, and are not written",
                  unused_tensors(source));
  Run run(plain, hooks, source);
  if (const auto* const target = std::get_if<W4A16Target>(&plain.target)) {
    return run.w4a16(*target);
  }
  return run.gguf(std::get<GgufTarget>(plain.target));
}

}  // namespace quire
