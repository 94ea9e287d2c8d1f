// The checkpoint to quantize: its model, and the texts of its files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "model/decoder_config.h"
#include "model/weights.h"
#include "quire/status.h"
#include "start/model_files.h"

namespace quire {

inline constexpr size_t kMaxTextBytes = size_t{256} << 20;  // of a file without weights

// A file with weights, as it was when it was opened.
struct SourceFile {
  std::filesystem::path path;
  std::string state;  // changes with the file: its inode, size and times
};

struct QuantizeSource {
  ModelFiles files;
  std::vector<TensorSpec> tensors;  // of the model, in a fixed order
  std::filesystem::path directory;  // empty: the embedded model
  std::string place;                // the directory, or the embedded model's name, for errors
  // The contents of the files; empty if the checkpoint lacks a file.
  std::string config_json;
  std::string generation_config_json;
  std::string_view tokenizer_file;  // the name of the file with the vocabulary
  std::string tokenizer;            // its contents
  std::string tokenizer_config_json;
  std::vector<SourceFile> weight_files;  // empty: the embedded model
  int64_t weight_bytes = 0;              // of the files with the weights
  std::string identity;                  // changes with the files

  const DecoderConfig& decoder() const { return decoder_config(files.config); }
};

// Opens a directory, the name of a model in the hub's cache, or, if `model` is empty, the embedded
// model. Fails, naming the reason, unless it is a checkpoint in F32, F16 or BF16 that generates
// text, with all of its tensors.
Result<QuantizeSource> open_quantize_source(const std::string& model);

// Fails, naming the file, if a file of weights has changed since it was opened. The files are
// mapped: reading the mapping of a file that became shorter ends the process (SIGBUS). This is
// called before every 16 MiB of output, before the model of a calibration is loaded, and before
// each of its scale groups. A change between two calls is not detected in time.
Status check_unchanged(const QuantizeSource& source);

// The names of the checkpoint's tensors that the model does not have, in ascending order.
std::vector<std::string> unused_tensors(const QuantizeSource& source);

}  // namespace quire
