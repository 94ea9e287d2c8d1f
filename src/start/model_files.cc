#include "start/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/file.h"
#include "base/log.h"
#include "base/setting_name.h"
#include "base/text.h"
#include "hub/cache/model_cache.h"
#include "model/gguf/gguf_config.h"
#include "model/gguf/gguf_weights.h"
#include "model/model_loader.h"
#include "start/gguf_files.h"
#include "start/setting_values.h"
#include "start/settings.h"
#include "tensor/checkpoint.h"
#include "tensor/gguf.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// The error for a file where a model's directory is expected.
Status refuse_file(const fs::path& path) {
  QUIRE_RETURN_IF_ERROR(MappedFile::open(path).status());  // reports a file that cannot be opened
  if (is_gguf_file(path)) {
    return unimplemented(fmt::format(
        "[model] model: {} is a GGUF file, which cannot be a drafter; expected a directory with "
        "config.json and safetensors",
        path.string()));
  }
  return invalid_argument(
      fmt::format("[model] model: {} is a file; expected a GGUF file, or a directory with "
                  "config.json and safetensors",
                  path.string()));
}

// Returns the first GGUF file of the directory by name; empty if it has none.
fs::path find_gguf(const fs::path& directory) {
  std::error_code error;
  fs::path first;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.extension() == ".gguf" && (first.empty() || path < first)) first = path;
  }
  return first;
}

// Fails for a model's folder in the Hugging Face hub's cache, which has a directory per commit
// (a snapshot) and no model files of its own.
Status check_is_snapshot(const fs::path& directory) {
  QUIRE_ASSIGN_OR_RETURN(const bool has_config, path_exists(directory / "config.json"));
  QUIRE_ASSIGN_OR_RETURN(const bool has_snapshots, path_exists(directory / "snapshots"));
  if (has_config || !has_snapshots) return {};
  constexpr size_t kCommitBytes = 40;
  const auto commit = read_file(directory / "refs" / "main", kCommitBytes);
  const fs::path snapshot = directory / "snapshots" / (commit.ok() ? *commit : "COMMIT");
  return not_found(fmt::format(
      "[model] model: must be a model's name or one of the snapshots in the hub's cache, for "
      "example {}, got the cache's folder {}",
      snapshot.string(), directory.string()));
}

// Warns about tokens beyond the vocabulary of the model. They may be padding, or show that the
// tokenizer belongs to another model.
void warn_about_excess_tokens(const ModelFiles& files) {
  const int num_tokens = files.tokenizer->vocab_size();
  if (num_tokens <= files.config.vocab_size) return;
  log_warning(
      "[tokenizer] the tokenizer has {} tokens and the model {}: prompts with a token id of {} or "
      "more are refused; check that the tokenizer belongs to the model",
      num_tokens, files.config.vocab_size, files.config.vocab_size);
}

// Fails if the configured tokenizer cannot be the model's: padded embeddings and added tokens
// change the size of a vocabulary by at most 10 % or 256 tokens.
Status check_named_tokenizer(const EngineConfig& engine, const ModelFiles& files) {
  constexpr int kFewTokens = 256;
  const int num_tokens = files.tokenizer->vocab_size();
  const int expected = files.config.vocab_size;
  const int most = std::max(num_tokens, expected);
  if (most - std::min(num_tokens, expected) > std::max(most / 10, kFewTokens)) {
    return invalid_argument(fmt::format(
        "[tokenizer] tokenizer: {} has {} tokens, expected about {}, as the model has: it belongs "
        "to another model; leave the setting out, or name the model's own",
        engine.tokenizer, num_tokens, expected));
  }
  const std::vector<int>& ends = files.config.eos_token_ids;
  const bool has_end = std::ranges::any_of(
      ends, [&](int id) { return id < num_tokens && files.tokenizer->is_special(id); });
  if (!ends.empty() && !has_end) {
    log_warning(
        "[tokenizer] {}: the model ends its text with token {}, which in {} is '{}' and not a "
        "special token; the tokenizer may belong to another model",
        SettingName{"tokenizer"}, ends.front(), engine.tokenizer,
        clipped(files.tokenizer->id_to_token(ends.front())));
  }
  QUIRE_ASSIGN_OR_RETURN(const std::optional<int32_t> bos, find_bos(*files.tokenizer));
  if (bos && files.config.bos_token_id && *bos != *files.config.bos_token_id) {
    log_warning(
        "[tokenizer] {}: {} begins texts with token {}, and the model with {}: it may belong to "
        "another model",
        SettingName{"tokenizer"}, engine.tokenizer, *bos, *files.config.bos_token_id);
  }
  return {};
}

// The name of the directory, resolved first so that "." also has a name.
std::string directory_name(const fs::path& path) {
  std::error_code error;
  const fs::path resolved = fs::canonical(path, error);
  return (error ? path : resolved).filename().string();
}

// Warns about special tokens of the template that the vocabulary lacks: the tokenizer encodes them
// as ordinary text.
void warn_about_unknown_tokens(const ModelFiles& files) {
  for (const auto& [name, text] : files.chat->special_tokens()) {
    const bool is_used = files.chat->source().find(name) != std::string_view::npos;
    if (!is_used || text.empty() || files.tokenizer->token_to_id(text)) continue;
    log_warning(
        "[template] {} is \"{}\", which is not a token of the vocabulary: the chat template writes "
        "it as text; correct tokenizer_config.json",
        name, clipped(text));
  }
}

// A configured template must be usable, and the fields of the model's files must have the right
// kinds. The model's own template may be missing or unsupported. Chat requests then fail with an
// error that names no local paths.
Status take_chat_format(const EngineConfig& engine, Result<ChatFormat> format, ModelFiles& files) {
  const Status& status = format.status();
  if (status.ok()) {
    files.chat = std::move(*format);
    if (engine.allow_special_tokens_in_messages) files.chat->trust_callers();
    warn_about_unknown_tokens(files);
    return {};
  }
  constexpr std::string_view kArea = "[template] ";
  std::string_view fault = status.message();
  if (!engine.chat_template.empty()) {
    if (!fault.starts_with(kArea)) {  // the file cannot be read
      return invalid_argument(
          fmt::format("{}chat_template: {}: {}", kArea, engine.chat_template, fault));
    }
    if (status.code() != StatusCode::kUnimplemented) return status;
    return invalid_argument(fmt::format("{}chat_template: {}", kArea, fault.substr(kArea.size())));
  }
  const bool is_absent = status.code() == StatusCode::kNotFound;
  if (!is_absent && status.code() != StatusCode::kUnimplemented) return status;
  if (!is_absent) {
    files.template_fault =
        Status(status.code(), fmt::format("{}; `chat_template` at the start gives another", fault));
    log_warning("{}", files.template_fault.message());
  }
  files.chat_error = invalid_argument(
      is_absent ? "[template] the model has no chat template; `chat_template` at the start gives "
                  "it one"
                : "[template] the model's chat template cannot be used; `chat_template` at the "
                  "start gives it another");
  return {};
}

Status check_dtype(const EngineConfig& engine, const ModelConfig& config) {
  const std::optional<DType> forced = forced_dtype(engine);
  if (!forced || forced == config.dtype || uses_dummy_weights(engine)) return {};
  return unimplemented(fmt::format(
      "[model] dtype: must be auto for a checkpoint, which runs in its own type, got {} (only "
      "`load_format` dummy supports other types)",
      engine.dtype));
}

void multiply(const TensorView& numbers, float factor) {
  for (int64_t i = 0; i < numbers.shape.num_elements(); ++i) {
    const float product = factor * element_as_f32(numbers, i);
    if (numbers.dtype == DType::kF32) {
      numbers.as<float>()[i] = product;
    } else {
      numbers.as<uint16_t>()[i] =
          numbers.dtype == DType::kF16 ? f32_to_f16(product) : f32_to_bf16(product);
    }
  }
}

// Dummy weights of a checkpoint in packed integers. The scales of DummyWeights are for integers of
// 4 bits. Larger integers get smaller scales, so that products have the magnitude that other
// matrices give.
class DummyIntegers final : public DummyWeights {
 public:
  DummyIntegers(DType dtype, const WeightFormat& format)
      : DummyWeights(dtype),
        scales_suffix_(packed_names(format.packing).scales),
        factor_(16.0F / static_cast<float>(1 << format.scheme.bits)) {}

  Result<TensorView> tensor(std::string_view name, const Shape& expected) override {
    QUIRE_ASSIGN_OR_RETURN(const TensorView numbers, DummyWeights::tensor(name, expected));
    if (name.ends_with(scales_suffix_)) multiply(numbers, factor_);
    return numbers;
  }

 private:
  std::string_view scales_suffix_;
  float factor_;
};

std::unique_ptr<WeightSource> dummy_weights(const EngineConfig& engine,
                                            std::optional<DType> dtype_of_config,
                                            const std::optional<WeightFormat>& format = {}) {
  const DType chosen = forced_dtype(engine).value_or(dtype_of_config.value_or(DType::kBF16));
  if (format) return std::make_unique<DummyIntegers>(chosen, *format);
  return std::make_unique<DummyWeights>(chosen);
}

// Applies `quantization`: the loader then quantizes the layers' matrices.
Status quantize_at_load(const EngineConfig& engine, ModelFiles& files) {
  if (!quantizes_at_load(engine)) return {};
  if (files.config.format || has_blocks(*files.weights)) {
    return invalid_argument(
        "[model] quantization: got fp8 for a checkpoint that is already quantized, expected one in "
        "float32, float16 or bfloat16; leave it out: a checkpoint runs in the type that it has");
  }
  files.config.format = fp8_at_load();
  std::optional<DType> dtype = files.config.dtype;
  if (uses_dummy_weights(engine) && forced_dtype(engine)) dtype = forced_dtype(engine);
  set_dequantized_dtype(dtype, files.config.format);
  return {};
}

Result<ModelFiles> open_embedded(const EngineConfig& engine) {
  const EmbeddedModel& model = embedded_model();
  ModelFiles files;
  files.name = model.name;
  files.file_format = "gguf";
  QUIRE_ASSIGN_OR_RETURN(files.config, parse_model_config(model.config_json, "embedded model"));
  QUIRE_RETURN_IF_ERROR(check_dtype(engine, files.config));
  QUIRE_ASSIGN_OR_RETURN(files.generation,
                         parse_generation_config(model.generation_config_json, "embedded model"));
  QUIRE_ASSIGN_OR_RETURN(files.tokenizer,
                         Tokenizer::from_json(model.tokenizer_json, "embedded model"));
  QUIRE_RETURN_IF_ERROR(take_chat_format(
      engine,
      ChatFormat::from_config(model.tokenizer_config_json, "embedded model", engine.chat_template),
      files));
  if (uses_dummy_weights(engine)) {
    files.weights = dummy_weights(engine, files.config.dtype);
  } else {
    QUIRE_ASSIGN_OR_RETURN(files.weights, embedded_weights(files.config));
  }
  return files;
}

// Warns that prompts must be token ids. `reason` states which file or directory has no tokenizer.
Status go_without_tokenizer(const EngineConfig& engine, std::string_view reason,
                            ModelFiles& files) {
  if (!engine.chat_template.empty()) {
    return invalid_argument(
        "[template] chat_template: needs a tokenizer, and the model has none; set `tokenizer`");
  }
  log_warning("[tokenizer] {}: prompts must be token ids", reason);
  files.chat_error =
      invalid_argument("[template] the model has no tokenizer, and so no chat template");
  return {};
}

Status open_tokenizer(const EngineConfig& engine, const fs::path& model_dir, ModelFiles& files) {
  fs::path directory = model_dir;
  if (!engine.tokenizer.empty()) {
    QUIRE_ASSIGN_OR_RETURN(const hub::FoundModel found,
                           hub::find_model(engine.tokenizer, hub::Needs::kTokenizer));
    directory = found.directory;
  }
  QUIRE_ASSIGN_OR_RETURN(const std::string_view file, find_tokenizer_file(directory));
  if (file.empty()) {
    if (!engine.tokenizer.empty()) {
      return not_found(fmt::format("[tokenizer] tokenizer: {} has no tokenizer; expected {}",
                                   engine.tokenizer, kTokenizerFileList));
    }
    return go_without_tokenizer(
        engine, fmt::format("{} has no tokenizer ({})", directory.string(), kTokenizerFileList),
        files);
  }
  QUIRE_ASSIGN_OR_RETURN(files.tokenizer, Tokenizer::load(directory));
  if (!engine.tokenizer.empty() && !uses_dummy_weights(engine)) {
    QUIRE_RETURN_IF_ERROR(check_named_tokenizer(engine, files));
  }
  warn_about_excess_tokens(files);
  return take_chat_format(engine, ChatFormat::load(directory, engine.chat_template), files);
}

// Reads the generation_config.json of a model's directory if there is one.
Status open_generation_config(const fs::path& directory, ModelFiles& files) {
  const fs::path path = directory / "generation_config.json";
  QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(path));
  if (!exists) return {};
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxConfigBytes));
  QUIRE_ASSIGN_OR_RETURN(files.generation, parse_generation_config(text, path.string()));
  return {};
}

// Opens the tokenizer and the chat template of a GGUF file, unless a tokenizer is configured.
Status open_gguf_tokenizer(const EngineConfig& engine, const GgufModel& gguf, ModelFiles& files) {
  if (!engine.tokenizer.empty()) return open_tokenizer(engine, {}, files);
  if (!has_gguf_tokenizer(gguf)) {
    return go_without_tokenizer(engine, fmt::format("{} has no tokenizer", gguf.source()), files);
  }
  QUIRE_ASSIGN_OR_RETURN(files.tokenizer, read_gguf_tokenizer(gguf));
  warn_about_excess_tokens(files);
  QUIRE_ASSIGN_OR_RETURN(const std::string config, gguf_tokenizer_config(gguf));
  return take_chat_format(
      engine, ChatFormat::from_config(config, gguf.source(), engine.chat_template), files);
}

// A generation_config.json beside the file takes precedence over the metadata. The sampling values
// come from only one of them, because they are chosen together.
Status open_gguf_generation_config(const EngineConfig& engine, const GgufModel& gguf,
                                   const fs::path& path, ModelFiles& files) {
  QUIRE_RETURN_IF_ERROR(open_generation_config(path.parent_path(), files));
  if (files.generation.states_distribution() || engine.generation_config != "auto") return {};
  QUIRE_ASSIGN_OR_RETURN(const std::string json, gguf_generation_config(gguf));
  QUIRE_ASSIGN_OR_RETURN(GenerationConfig sampling, parse_generation_config(json, gguf.source()));
  if (!sampling.states_distribution() && !sampling.repetition_penalty) return {};
  sampling.source = "general.sampling.*";
  if (files.generation.repetition_penalty) {
    sampling.repetition_penalty = files.generation.repetition_penalty;
  }
  sampling.bos_token_id = files.generation.bos_token_id;
  sampling.eos_token_ids = files.generation.eos_token_ids;
  files.generation = std::move(sampling);
  return {};
}

Result<ModelFiles> open_gguf(const EngineConfig& engine, const hub::FoundModel& found) {
  const fs::path& path = found.directory;
  QUIRE_ASSIGN_OR_RETURN(GgufModel gguf, GgufModel::open(path));
  ModelFiles files;
  files.name = found.name.empty() ? path.stem().string() : found.name;
  files.file_format = "gguf";
  files.gguf_mixture = gguf_mixture_name(gguf);
  QUIRE_ASSIGN_OR_RETURN(files.config, read_gguf_config(gguf));
  // The metadata does not state whether embeddings are normalized; llama.cpp's server normalizes
  // them.
  if (files.config.embeds) files.embedding = EmbeddingModules{.normalizes = true};
  QUIRE_RETURN_IF_ERROR(check_dtype(engine, files.config));
  QUIRE_RETURN_IF_ERROR(open_gguf_generation_config(engine, gguf, path, files));
  files.tokenizer_error = open_gguf_tokenizer(engine, gguf, files);
  if (uses_dummy_weights(engine)) {
    files.weights = dummy_weights(engine, files.config.dtype);
  } else {
    QUIRE_ASSIGN_OR_RETURN(files.weights, GgufWeights::open(std::move(gguf), files.config, {},
                                                            engine.tensor_parallel_size));
  }
  return files;
}

// Replaces the model's sampling values by vLLM's defaults if `generation_config` is vllm.
void apply_generation_config(const EngineConfig& engine, GenerationConfig& generation) {
  if (engine.generation_config == "auto") return;
  GenerationConfig of_vllm;
  of_vllm.source = "--generation-config vllm";
  of_vllm.bos_token_id = generation.bos_token_id;
  of_vllm.eos_token_ids = std::move(generation.eos_token_ids);
  of_vllm.temperature = SamplingParams().temperature;
  generation = std::move(of_vllm);
}

// Decides whether the model embeds prompts or generates text.
Status open_modules(const fs::path& directory, const fs::path& config_path, ModelFiles& files) {
  QUIRE_ASSIGN_OR_RETURN(files.embedding, read_embedding_modules(directory));
  files.config.embeds = files.embedding.has_value();
  if (!files.config.is_headless || files.config.embeds) return {};
  return invalid_argument(fmt::format(
      "[config] {}: the architecture has no lm_head, so the model can only embed; expected a "
      "modules.json with a Pooling module beside it, got none",
      config_path.string()));
}

}  // namespace

hub::FoundModel find_gguf_file(const std::string& model) {
  const Result<hub::FoundModel> found = hub::find_model(model, hub::Needs::kWeights);
  return found.ok() && is_gguf_file(found->directory) ? *found : hub::FoundModel();
}

Result<std::unique_ptr<WeightSource>> embedded_weights(const ModelConfig& config) {
  QUIRE_ASSIGN_OR_RETURN(GgufModel gguf,
                         GgufModel::from_memory(embedded_model().weights, "embedded model"));
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<WeightSource> weights,
                         GgufWeights::open(std::move(gguf), config, config.dtype));
  return weights;
}

bool is_gguf_file(const fs::path& path) {
  if (!is_file(path)) return false;  // opening a FIFO would wait for its writer
  std::string bytes(4, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return file.gcount() == 4 && is_gguf(bytes);
}

Result<ConfigFile> find_config(const std::string& model, const EngineConfig& engine) {
  QUIRE_ASSIGN_OR_RETURN(const hub::FoundModel found,
                         hub::find_model(model, uses_dummy_weights(engine) ? hub::Needs::kConfig
                                                                           : hub::Needs::kWeights));
  const fs::path& path = found.directory;
  if (is_file(path)) {
    if (!uses_dummy_weights(engine)) return refuse_file(path);
    return ConfigFile{fs::absolute(path), found.name.empty() ? path.stem().string() : found.name};
  }
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    // Fails for a FIFO, a socket or a device.
    QUIRE_RETURN_IF_ERROR(MappedFile::open(path).status());
  }
  QUIRE_RETURN_IF_ERROR(check_is_snapshot(path));
  QUIRE_ASSIGN_OR_RETURN(const bool has_config, path_exists(path / "config.json"));
  if (!has_config) {
    const fs::path gguf = find_gguf(path);
    if (!gguf.empty()) {
      return not_found(
          fmt::format("[model] model: {} has no config.json but GGUF files; expected a Hugging "
                      "Face directory, or the name of one of the files, such as {}; quire serve "
                      "--models-dir {} serves all models of a folder",
                      model, gguf.string(), model));
    }
    return not_found(fmt::format(
        "[model] model: {} has no config.json; expected a Hugging Face directory with config.json "
        "and safetensors",
        model));
  }
  return ConfigFile{path / "config.json", found.name.empty() ? directory_name(path) : found.name};
}

Result<std::unique_ptr<WeightSource>> open_weights(const EngineConfig& engine,
                                                   const fs::path& directory,
                                                   std::optional<DType> dtype_of_config,
                                                   const std::optional<WeightFormat>& format) {
  if (uses_dummy_weights(engine)) return dummy_weights(engine, dtype_of_config, format);
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<WeightSource> weights, Checkpoint::open(directory));
  return weights;
}

bool has_blocks(const WeightSource& weights) {
  return !weights.block_types().empty();
}

Result<ModelConfig> read_model_config(const fs::path& path) {
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxConfigBytes));
  QUIRE_ASSIGN_OR_RETURN(ModelConfig config, parse_model_config(text, path.string()));
  const fs::path quantized = path.parent_path() / kQuantConfigFile;
  QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(quantized));
  if (!exists) return config;
  QUIRE_ASSIGN_OR_RETURN(const std::string quantized_text, read_file(quantized, kMaxConfigBytes));
  QUIRE_ASSIGN_OR_RETURN(std::optional<WeightFormat> format,
                         parse_hf_quant_config(quantized_text, quantized.string()));
  set_dequantized_dtype(config.dtype, format);
  if (config.format && config.format != format) {
    return invalid_argument(
        fmt::format("[config] {}: quantization; got {}, expected {}, as config.json says; download "
                    "the checkpoint again",
                    quantized.string(), format ? describe(*format) : "no format of weights",
                    describe(*config.format)));
  }
  config.format = format;
  return config;
}

namespace {

Result<ModelFiles> open_directory(const EngineConfig& engine) {
  ModelFiles files;
  QUIRE_ASSIGN_OR_RETURN(const ConfigFile config, find_config(engine.model, engine));
  files.name = config.model_name;
  QUIRE_ASSIGN_OR_RETURN(files.config, read_model_config(config.path));
  const std::optional<WeightFormat>& format = files.config.format;
  if (uses_dummy_weights(engine) && format && format->packing == Packing::kNone) {
    const bool is_config_alone = fs::path(engine.model).extension() == ".json";
    return unimplemented(fmt::format(
        "[model] {} a quantized checkpoint, {}, with {}, expected {}, or the config.json of the "
        "model that it was made from, with `quantization` fp8",
        is_config_alone ? "got only the config.json of" : "load_format: got dummy for",
        config.path.string(), describe(*format),
        is_config_alone ? "the checkpoint's directory"
                        : "auto, or packed integers (AWQ, GPTQ or pack-quantized)"));
  }
  QUIRE_RETURN_IF_ERROR(check_dtype(engine, files.config));
  const fs::path directory = config.path.parent_path();
  QUIRE_RETURN_IF_ERROR(open_modules(directory, config.path, files));
  QUIRE_RETURN_IF_ERROR(open_generation_config(directory, files));
  files.tokenizer_error = open_tokenizer(engine, directory, files);
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<WeightSource> weights,
                         open_weights(engine, directory, files.config.dtype, format));
  QUIRE_ASSIGN_OR_RETURN(files.weights, present_weights(std::move(weights), files.config));
  return files;
}

Result<ModelFiles> open_files(const EngineConfig& engine) {
  if (is_embedded(engine.model)) return open_embedded(engine);
  if (const hub::FoundModel gguf = find_gguf_file(engine.model); !gguf.directory.empty()) {
    return open_gguf(engine, gguf);
  }
  return open_directory(engine);
}

}  // namespace

Result<ModelFiles> open_model_files(const EngineConfig& engine) {
  QUIRE_ASSIGN_OR_RETURN(ModelFiles files, inspect_model_files(engine));
  QUIRE_RETURN_IF_ERROR(files.tokenizer_error);
  return files;
}

Result<ModelFiles> inspect_model_files(const EngineConfig& engine) {
  QUIRE_RETURN_IF_ERROR(check_settings(engine));
  QUIRE_ASSIGN_OR_RETURN(ModelFiles files, open_files(engine));
  apply_generation_config(engine, files.generation);
  QUIRE_RETURN_IF_ERROR(quantize_at_load(engine, files));
  const int64_t num_readers = int64_t{num_local_ranks(engine)} * engine.data_parallel_size;
  files.weights = share_weights(std::move(files.weights),
                                static_cast<int>(std::clamp<int64_t>(num_readers, 1, INT_MAX)));
  return files;
}

}  // namespace quire
