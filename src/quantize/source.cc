#include "quantize/source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "base/build_info.h"
#include "base/digest.h"
#include "base/file.h"
#include "model/model_loader.h"
#include "model/weights.h"
#include "tensor/checkpoint.h"
#include "tensor/gguf.h"
#include "tokenizer/tokenizer.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

Result<std::string> read_if_any(const fs::path& path) {
  QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(path));
  if (!exists) return std::string();
  return read_file(path, kMaxTextBytes);
}

Status already_quantized(std::string_view place, std::string_view scheme) {
  return invalid_argument(fmt::format(
      "[quantize] model: {} is already quantized, in {}; expected a checkpoint in float32, float16 "
      "or bfloat16: take the one that it was made from",
      place, scheme));
}

// Returns the error for a GGUF file, which names the types of its quantized blocks.
Status refuse_gguf(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const GgufModel gguf, GgufModel::open(path));
  std::set<std::string_view> types;
  for (const GgufTensor* tensor : gguf.tensors()) {
    if (!tensor->type->plain) types.insert(tensor->type->name);
  }
  if (!types.empty()) {
    return already_quantized(path, fmt::format("GGUF blocks of {}", fmt::join(types, ", ")));
  }
  return unimplemented(
      fmt::format("[quantize] model: {} is a GGUF file; expected a directory with config.json and "
                  "safetensors: take the checkpoint that it was made from",
                  path));
}

Status check_scheme(const QuantizeSource& source) {
  const ModelFiles& files = source.files;
  if (files.config.format) return already_quantized(source.place, describe(*files.config.format));
  if (const std::string types = block_type_names(*files.weights); !types.empty()) {
    return already_quantized(source.place, types);
  }
  if (files.embedding) {
    return unimplemented(fmt::format(
        "[quantize] model: {} is an embedding model; expected one that generates text: serve it as "
        "it is, or with --quantization fp8",
        source.place));
  }
  for (const TensorSpec& tensor : source.tensors) {
    const std::optional<DType> dtype = files.weights->dtype_of(tensor.name);
    if (!dtype || is_weight_dtype(*dtype)) continue;
    return already_quantized(
        files.weights->file_of(tensor.name),
        fmt::format("tensor {} in {}", quote_name(files.weights->name_in_file(tensor.name)),
                    dtype_name(*dtype)));
  }
  return {};
}

// Fails for families that this command does not write; the error names the alternative.
Status check_family(const QuantizeSource& source) {
  const DecoderConfig& decoder = source.decoder();
  std::string_view kind;
  if (decoder.moe) kind = "a mixture of experts";
  if (decoder.mla) kind = "a model with multi-head latent attention";
  if (kind.empty()) return {};
  return unimplemented(fmt::format(
      "[quantize] model: {} ({}) is {}; expected a dense Llama, Mistral, Qwen2, Qwen3, Gemma 2 or "
      "Gemma 3: serve it with --quantization fp8, or convert it by llama.cpp",
      source.place, source.files.config.architecture, kind));
}

struct FileState {
  int64_t num_bytes = 0;
  std::string text;
};

// The times alone do not identify a file: tools that copy files keep them.
Result<FileState> state_of(const fs::path& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) {
    return not_found(fmt::format("[quantize] {}: {}", path.string(), std::strerror(errno)));
  }
  return FileState{.num_bytes = info.st_size,
                   .text = fmt::format("{} {} {} {}.{:09} {}.{:09}", info.st_dev, info.st_ino,
                                       info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
                                       info.st_ctim.tv_sec, info.st_ctim.tv_nsec)};
}

// Adds a file of weights.
Status add_shard(QuantizeSource& source, const fs::path& path) {
  QUIRE_ASSIGN_OR_RETURN(FileState state, state_of(path));
  std::error_code error;
  const fs::path canonical = fs::canonical(path, error);
  if (error) return not_found(fmt::format("[quantize] {}: {}", path.string(), error.message()));
  source.weight_bytes += state.num_bytes;
  source.identity += fmt::format("{} {}\n", canonical.string(), state.text);
  source.weight_files.push_back({path, std::move(state.text)});
  return {};
}

// Identifies the program, and the texts that the output depends on.
std::string identity_of_texts(const QuantizeSource& source) {
  std::string identity = fmt::format("quire {}\n", version());
  for (const std::string* text : {&source.config_json, &source.tokenizer}) {
    identity += to_hexadecimal(sha256_of(*text)) + "\n";
  }
  return identity;
}

// Fails if the checkpoint stores a tensor in another shape than its configuration says. A mapped
// tensor is not read for that.
Status check_shapes(const QuantizeSource& source) {
  for (const TensorSpec& tensor : source.tensors) {
    const Result<TensorView> view = source.files.weights->tensor(tensor.name, tensor.shape);
    if (!view.ok()) return view.status();
    source.files.weights->release(tensor.name);
  }
  return {};
}

// Unlike the engine, this command needs weights.
Status check_has_weights(const EngineConfig& engine) {
  QUIRE_ASSIGN_OR_RETURN(const ConfigFile config, find_config(engine.model, engine));
  const fs::path folder = config.path.parent_path();
  QUIRE_ASSIGN_OR_RETURN(const bool is_one_file, path_exists(folder / kWeightsFile));
  QUIRE_ASSIGN_OR_RETURN(const bool has_index, path_exists(folder / kWeightsIndexFile));
  if (is_one_file || has_index) return {};
  return not_found(fmt::format(
      "[quantize] model: {} has no weights; expected {} or {}: download the checkpoint again, or "
      "convert it to safetensors",
      folder.string(), kWeightsFile, kWeightsIndexFile));
}

Status open_files(QuantizeSource& source, const EngineConfig& engine) {
  QUIRE_ASSIGN_OR_RETURN(const ConfigFile config, find_config(engine.model, engine));
  source.directory = config.path.parent_path();
  source.place = source.directory.string();
  const fs::path& folder = source.directory;
  QUIRE_ASSIGN_OR_RETURN(source.config_json, read_file(config.path, kMaxConfigBytes));
  QUIRE_ASSIGN_OR_RETURN(source.generation_config_json,
                         read_if_any(folder / "generation_config.json"));
  QUIRE_ASSIGN_OR_RETURN(source.tokenizer_file, find_tokenizer_file(folder));
  if (!source.tokenizer_file.empty()) {
    QUIRE_ASSIGN_OR_RETURN(source.tokenizer,
                           read_file(folder / source.tokenizer_file, kMaxTextBytes));
  }
  QUIRE_ASSIGN_OR_RETURN(source.tokenizer_config_json,
                         read_if_any(folder / "tokenizer_config.json"));
  std::vector<std::string> names = {std::string(kWeightsFile)};
  QUIRE_ASSIGN_OR_RETURN(const bool is_one_file, path_exists(folder / kWeightsFile));
  if (!is_one_file) {
    QUIRE_ASSIGN_OR_RETURN(names, read_shard_names(folder / kWeightsIndexFile));
  }
  for (const std::string& name : names) QUIRE_RETURN_IF_ERROR(add_shard(source, folder / name));
  return {};
}

void use_embedded(QuantizeSource& source) {
  const EmbeddedModel& model = embedded_model();
  source.place = "the embedded model " + std::string(model.name);
  source.config_json = model.config_json;
  source.generation_config_json = model.generation_config_json;
  source.tokenizer_file = "tokenizer.json";
  source.tokenizer = model.tokenizer_json;
  source.tokenizer_config_json = model.tokenizer_config_json;
  source.weight_bytes = static_cast<int64_t>(model.weights.size());
  const std::string_view bytes(reinterpret_cast<const char*>(model.weights.data()),
                               model.weights.size());
  source.identity = to_hexadecimal(sha256_of(bytes));
}

}  // namespace

Result<QuantizeSource> open_quantize_source(const std::string& model) {
  EngineConfig engine;
  engine.model = model;
  QuantizeSource source;
  if (const fs::path gguf = find_gguf_file(model).directory; !gguf.empty()) {
    return refuse_gguf(gguf.string());
  }
  if (!is_embedded(model)) QUIRE_RETURN_IF_ERROR(check_has_weights(engine));
  QUIRE_ASSIGN_OR_RETURN(source.files, open_model_files(engine));
  if (is_embedded(model)) {
    use_embedded(source);
  } else {
    QUIRE_RETURN_IF_ERROR(open_files(source, engine));
  }
  source.tensors = list_tensors(source.files.config);
  std::erase_if(source.tensors, [](const TensorSpec& tensor) { return tensor.has_scales(); });
  QUIRE_RETURN_IF_ERROR(check_scheme(source));
  QUIRE_RETURN_IF_ERROR(check_family(source));
  QUIRE_RETURN_IF_ERROR(check_stored_tensors(source.files.config, *source.files.weights));
  QUIRE_RETURN_IF_ERROR(check_shapes(source));
  source.identity += identity_of_texts(source);
  return source;
}

Status check_unchanged(const QuantizeSource& source) {
  for (const SourceFile& file : source.weight_files) {
    const Result<FileState> state = state_of(file.path);
    if (state.ok() && state->text == file.state) continue;
    return invalid_argument(fmt::format(
        "[quantize] {} changed while it was read; {}, expected the file as it was at the start: "
        "run the command again once nothing writes the file",
        file.path.string(),
        state.ok() ? fmt::format("got inode, size and times {}", state->text)
                   : state.status().message()));
  }
  return {};
}

std::vector<std::string> unused_tensors(const QuantizeSource& source) {
  std::unordered_set<std::string_view> used;
  for (const TensorSpec& tensor : source.tensors) used.insert(tensor.name);
  std::vector<std::string> unused = source.files.weights->names();
  std::erase_if(unused, [&](const std::string& name) { return used.contains(name); });
  std::ranges::sort(unused);
  return unused;
}

}  // namespace quire
