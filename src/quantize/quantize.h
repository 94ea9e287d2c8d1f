// Writes a quantized copy of a checkpoint: a GGUF file, or a checkpoint in 4-bit integers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "quantize/gguf_mixture.h"
#include "quire/status.h"

namespace quire {

inline constexpr int kMinCalibrationTokens = 64;

// A text that is like the prompts and replies of the quantized model.
struct CalibrationText {
  std::string name;  // of the file, for errors
  std::string text;  // UTF-8
  int max_tokens = 4096;
};

// compressed-tensors' "pack-quantized" integers of 4 bits.
struct W4A16Target {
  int group_size = 128;
  // Scales per channel are chosen by the activations of this text; absent: plain rounding.
  std::optional<CalibrationText> calibration = {};
};

struct QuantizeOptions {
  std::string model;          // as EngineConfig::model; empty: the embedded model
  std::filesystem::path out;  // a file, or with W4A16Target a directory
  std::variant<GgufTarget, W4A16Target> target;
  bool force = false;   // replaces `out`, unless it is a file of the model
  int num_threads = 0;  // 0: one per usable CPU
};

struct QuantizeProgress {
  size_t tensor = 0;  // from 0
  size_t num_tensors = 0;
  std::string_view name;
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;
};

struct QuantizeHooks {
  std::function<bool()> interrupted = [] { return false; };  // polled; true ends the run
  std::function<void(const QuantizeProgress& progress)> on_progress = [](const QuantizeProgress&) {
  };
  // Called before the first tensor if there is a calibration text. `what` is "load" (the units are
  // layers), "calibrate" (windows of the text) or "scales" (groups).
  std::function<void(std::string_view what, size_t num_done, size_t num_total)> on_preparation =
      [](std::string_view, size_t, size_t) {};
};

struct QuantizeResult {
  std::filesystem::path out;  // without separators at its end
  int64_t num_weights = 0;
  int64_t source_bytes = 0;  // of the files with weights
  int64_t output_bytes = 0;
  size_t num_tensors = 0;
  size_t num_continued = 0;  // tensors that an earlier run wrote
};

// On failure, an existing `out` is unchanged. After an interruption or a failed write, the same
// call continues; after an error of the source while tensors are written, nothing is left to
// continue. With equal options and source, the output has the same bytes for any number of threads
// and interruptions. With a calibration text, this holds on CPUs with the same instruction sets.
Result<QuantizeResult> quantize(const QuantizeOptions& options, const QuantizeHooks& hooks = {});

// Fails if quantize() would refuse the source or `out`.
Status check_quantize(const QuantizeOptions& options);

}  // namespace quire
