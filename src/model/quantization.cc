#include "model/quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/ascii.h"
#include "base/thread_pool.h"
#include "model/config_fields.h"
#include "model/mxfp4_weights.h"
#include "model/weights.h"
#include "tensor/dtype.h"

namespace quire {
namespace {

constexpr int kMaxInt = std::numeric_limits<int>::max();
constexpr size_t kMaxModules = 1 << 16;
constexpr std::string_view kQuantizationConfig = "quantization_config";
constexpr std::string_view kCompressionConfig = "compression_config";  // of old llm-compressor

// Reads a nested object, if it is present, and keeps its first error.
template <class Read>
void read_nested(ConfigFields& fields, std::string_view key, const Read& read) {
  std::optional<ConfigFields> nested = fields.object(key);
  if (!nested) return;
  read(*nested);
  fields.keep(nested->status());
}

// The scheme of a quantized checkpoint, such as "gptq, 4 bits, groups of 128".
std::string describe_fields(ConfigFields& scheme) {
  scheme.add_spellings("bits", {"w_bit"});
  scheme.add_spellings("group_size", {"q_group_size"});
  std::string text;
  const bool is_awq = scheme.optional_text("quant_method") == "awq";
  for (const std::string_view key :
       {"quant_method", "quant_algo", "format", "checkpoint_format", "version"}) {
    const std::optional<std::string> name = scheme.optional_text(key);
    if (key == "version" && !is_awq) continue;
    if (name && text.find(quote_name(*name)) == std::string::npos)
      text += (text.empty() ? "" : ", ") + quote_name(*name);
  }
  if (text.empty()) text = "unknown method";
  if (const auto bits = scheme.optional_integer("bits", 1, kMaxInt)) {
    text += fmt::format(", {} bits", *bits);
  }
  if (const auto size = scheme.optional_integer("group_size", 1, kMaxInt)) {
    text += fmt::format(", groups of {}", *size);
  }
  if (scheme.optional_boolean("load_in_4bit").value_or(false)) text += ", 4 bits";
  if (scheme.optional_boolean("load_in_8bit").value_or(false)) text += ", 8 bits";
  return text;
}

std::string_view quantization_key(ConfigFields& fields) {
  if (!fields.has(kCompressionConfig)) return kQuantizationConfig;
  if (fields.has(kQuantizationConfig)) {
    fields.fail(kCompressionConfig, "it beside quantization_config", "one of them");
  }
  return kCompressionConfig;
}

Status refusal(ConfigFields scheme, std::string_view source, std::string_view served) {
  return unimplemented(
      fmt::format("[config] {}: the checkpoint is quantized ({}), which is not supported; expected "
                  "{}the checkpoint in float32, float16 or bfloat16 that it was made from",
                  source, describe_fields(scheme), served));
}

// Records the error for a quantization that is not served.
void refuse(ConfigFields& scheme, std::string_view source) {
  scheme.keep(refusal(
      scheme, source,
      "FP8 by modelopt, compressed-tensors or Hugging Face (fp8), MXFP4 of experts, integers of 4 "
      "or 8 bits by AWQ (gemm), GPTQ or compressed-tensors (pack-quantized, int-quantized), a GGUF "
      "file, or "));
}

WeightFormat fp8_format(ScaleLayout layout) {
  return {.scheme = {.values = DType::kF8E4M3, .scales = layout}, .scales_suffix = ".weight_scale"};
}

void set_blocks(const std::vector<int>& block, WeightScheme& scheme) {
  scheme.scales = ScaleLayout::kBlocks;
  scheme.block_rows = block[0];
  scheme.block_columns = block[1];
}

// Reads two integers. Otherwise records an error and returns {1, 1}.
std::vector<int> read_block(ConfigFields& fields, std::string_view key) {
  std::vector<int> block = fields.integers(key, 1, kMaxInt, 2);
  if (block.size() == 2) return block;
  fields.fail(key, fmt::format("{} numbers", block.size()), "two: rows and columns");
  return {1, 1};
}

// quant_method "fp8": Hugging Face's (transformers, DeepSeek, Qwen) and AutoFP8's.
WeightFormat read_hugging_face(ConfigFields& fields) {
  fields.expect_only({"quant_method", "activation_scheme", "weight_block_size", "fmt", "scale_fmt",
                      "modules_to_not_convert", "ignored_layers", "kv_cache_scheme", "dequantize"});
  require_text(fields, "fmt", "e4m3");
  require_text(fields, "scale_fmt", "ue8m0");
  require_text(fields, "kv_cache_scheme", "static");
  (void)fields.texts("modules_to_not_convert", kMaxModules);
  (void)fields.texts("ignored_layers", kMaxModules);
  (void)fields.optional_boolean("dequantize");  // the numbers are the same either way
  const std::string activations = fields.optional_text("activation_scheme").value_or("dynamic");
  if (activations != "dynamic" && activations != "static") {
    fields.fail("activation_scheme", quote_name(activations), "\"dynamic\" or \"static\"");
  }
  WeightFormat format = fp8_format(ScaleLayout::kTensor);
  if (!fields.has("weight_block_size")) {
    if (activations == "static") format.input_scale_suffix = ".input_scale";
    return format;
  }
  set_blocks(read_block(fields, "weight_block_size"), format.scheme);
  // The name is misleading: values are multiplied by these scales.
  format.scales_suffix = ".weight_scale_inv";
  if (activations == "static") {
    fields.fail("activation_scheme", "\"static\"", "\"dynamic\", because of weight_block_size");
  }
  return format;
}

// Integers with a scale per group of columns, or per row with group size -1.
WeightFormat integer_format(Packing packing, int bits, int group_size) {
  WeightFormat format = {.scheme = {.values = DType::kI8, .scales = ScaleLayout::kRows},
                         .scales_suffix = std::string(packed_names(packing).scales),
                         .packing = packing};
  format.scheme.bits = bits;
  if (group_size > 0) set_blocks({1, group_size}, format.scheme);
  return format;
}

// The columns that share a scale: -1 for all, or a multiple of kGroupSizeStep.
int read_group_size(ConfigFields& fields, std::string_view key) {
  const int size = fields.integer(key, -1, kMaxInt);
  if (size != -1 && (size < 1 || size % kGroupSizeStep != 0)) {
    fields.fail(key, std::to_string(size), fmt::format("-1 or a multiple of {}", kGroupSizeStep));
    return -1;
  }
  return size;
}

// Reads a list of module names, which AWQ and GPTQ use as compressed-tensors uses `ignore`.
void check_modules(ConfigFields& fields) {
  (void)fields.texts("modules_to_not_convert", kMaxModules);
  if (fields.boolean("lm_head", false)) {
    fields.fail("lm_head", "true", "false: a quantized output matrix is not supported");
  }
}

// quant_method "awq", of AutoAWQ. Fields that say how the weights were found are not read.
WeightFormat read_awq(ConfigFields& fields, std::string_view source) {
  fields.add_spellings("bits", {"w_bit"});
  fields.add_spellings("group_size", {"q_group_size"});
  const std::string version = fields.optional_text("version").value_or("gemm");
  if (!equals_ignoring_case(version, "gemm") || fields.integer("bits", 1, 64, 4) != 4) {
    refuse(fields, source);
    return {};
  }
  require_switch(fields, "zero_point", true);
  check_modules(fields);
  WeightFormat format = integer_format(Packing::kAwq, 4, read_group_size(fields, "group_size"));
  format.scheme.has_zeros = true;
  return format;
}

// GPTQModel's overrides per module; an override that leaves a module unquantized begins with "-:".
void check_overrides(ConfigFields& fields) {
  read_nested(fields, "dynamic", [&](const ConfigFields& modules) {
    for (const std::string& module : modules.keys()) {
      if (module.starts_with("-:")) continue;
      fields.fail("dynamic", fmt::format("an override of {}", quote_name(module)),
                  "one scheme for all matrices");
    }
  });
}

// GPTQModel calls the layout checkpoint_format in the files that it writes, and also reads
// `format`.
std::string read_gptq_layout(ConfigFields& fields) {
  const std::optional<std::string> layout = fields.optional_text("checkpoint_format");
  const std::optional<std::string> synonym = fields.optional_text("format");
  if (layout && synonym && !equals_ignoring_case(*layout, *synonym)) {
    fields.fail(
        "format",
        fmt::format("{} beside checkpoint_format {}", quote_name(*synonym), quote_name(*layout)),
        "the same in both");
  }
  return layout ? *layout : synonym.value_or("gptq");
}

// quant_method "gptq", of AutoGPTQ and GPTQModel. Fields that say how the weights were found are
// not read. Neither is `sym`, because the zero points are stored in any case.
WeightFormat read_gptq(ConfigFields& fields, std::string_view source) {
  const int bits = fields.integer("bits", 1, 64);
  const std::string stored = read_gptq_layout(fields);
  const bool is_v1 = equals_ignoring_case(stored, "gptq");
  if (fields.boolean("is_marlin_format", false)) {
    fields.fail("is_marlin_format", "true",
                "false: the layout of Marlin's kernel is not supported; use the checkpoint in "
                "GPTQ's own layout that it was made from");
  }
  if ((bits != 4 && bits != 8) || (!is_v1 && !equals_ignoring_case(stored, "gptq_v2"))) {
    refuse(fields, source);
    return {};
  }
  require_text(fields, "pack_dtype", "int32");
  check_overrides(fields);
  check_modules(fields);
  WeightFormat format = integer_format(is_v1 ? Packing::kGptq : Packing::kGptqV2, bits,
                                       read_group_size(fields, "group_size"));
  format.scheme.has_zeros = true;
  format.has_column_groups = fields.boolean("desc_act", false);
  return format;
}

// Fails on unknown fields in compressed-tensors' objects of weights, activations or the KV cache.
void expect_numbers(ConfigFields& numbers) {
  numbers.expect_only({"num_bits", "type", "strategy", "symmetric", "dynamic", "group_size",
                       "block_structure", "actorder", "observer", "observer_kwargs", "scale_dtype",
                       "zp_dtype"});
}

// Checks that the fields of compressed-tensors describe FP8 numbers.
void expect_fp8(ConfigFields& numbers) {
  expect_numbers(numbers);
  const int num_bits = numbers.integer("num_bits", 1, 64);
  if (num_bits != 8) numbers.fail("num_bits", std::to_string(num_bits), "8");
  require_text(numbers, "type", "float");
  require_switch(numbers, "symmetric", true);
}

void read_weights(ConfigFields& weights, WeightScheme& scheme) {
  expect_fp8(weights);
  require_switch(weights, "dynamic", false);
  if (weights.has("group_size")) weights.fail("group_size", "a number", "null");
  const std::string strategy = weights.optional_text("strategy").value_or("tensor");
  if (strategy == "block") {
    set_blocks(read_block(weights, "block_structure"), scheme);
  } else if (strategy == "channel") {
    scheme.scales = ScaleLayout::kRows;
  } else if (strategy != "tensor") {
    weights.fail("strategy", quote_name(strategy), "\"tensor\", \"channel\" or \"block\"");
  }
}

void read_input_activations(ConfigFields& inputs, WeightFormat& format) {
  expect_fp8(inputs);
  if (inputs.boolean("dynamic", false)) return;
  require_text(inputs, "strategy", "tensor");
  format.input_scale_suffix = ".input_scale";
}

// Whether `actorder` needs the group of each column. null and "static" do not.
bool has_column_groups(ConfigFields& weights) {
  const std::string order = weights.optional_text("actorder").value_or("static");
  if (order == "group" || order == "dynamic") return true;
  if (order != "static" && order != "weight") {
    weights.fail("actorder", quote_name(order), "\"group\", \"weight\", \"static\" or null");
  }
  return false;
}

// Reads integers of `packing`, which compressed-tensors calls pack-quantized or int-quantized.
WeightFormat read_integer_weights(ConfigFields& weights, Packing packing) {
  expect_numbers(weights);
  require_text(weights, "type", "int");
  require_switch(weights, "dynamic", false);
  const int bits = weights.integer("num_bits", 1, 64);
  const bool is_packed = packing != Packing::kNone;
  if (bits != 8 && (bits != 4 || !is_packed)) {
    weights.fail("num_bits", std::to_string(bits), is_packed ? "4 or 8" : "8");
  }
  const std::string strategy = weights.optional_text("strategy").value_or("tensor");
  WeightFormat format = integer_format(packing, bits, -1);
  if (strategy == "group" && is_packed) {
    format = integer_format(packing, bits, read_group_size(weights, "group_size"));
    format.has_column_groups = has_column_groups(weights);
  } else if (strategy == "tensor") {
    format.scheme.scales = ScaleLayout::kTensor;
    if (is_packed) require_switch(weights, "symmetric", true);  // the tool packs no zero point
  } else if (strategy != "channel") {
    weights.fail("strategy", quote_name(strategy),
                 is_packed ? "\"tensor\", \"channel\" or \"group\"" : "\"tensor\" or \"channel\"");
  }
  format.scheme.has_zeros = !weights.boolean("symmetric", true);
  return format;
}

// Activations are computed with more bits than the tool rounds them to; a static scale is checked.
void read_integer_activations(ConfigFields& inputs, WeightFormat& format) {
  expect_numbers(inputs);
  require_text(inputs, "type", "int");
  const int num_bits = inputs.integer("num_bits", 1, 64);
  if (num_bits != 8) inputs.fail("num_bits", std::to_string(num_bits), "8");
  if (inputs.boolean("dynamic", false)) return;
  require_text(inputs, "strategy", "tensor");
  require_switch(inputs, "symmetric", true);
  format.input_scale_suffix = ".input_scale";
}

// The formats of compressed-tensors.
struct CompressedFormat {
  std::string_view name;
  DType values = DType::kF8E4M3;
  Packing packing = Packing::kNone;
};
constexpr CompressedFormat kCompressedFormats[] = {
    {"float-quantized"},
    {"naive-quantized"},
    {"pack-quantized", DType::kI8, Packing::kCompressed},
    {"int-quantized", DType::kI8},
};

// Reads the only group of config_groups.
WeightFormat read_groups(ConfigFields& fields, const CompressedFormat& stored) {
  WeightFormat format = fp8_format(ScaleLayout::kTensor);
  const bool is_fp8 = stored.values == DType::kF8E4M3;
  if (!fields.has("config_groups")) fields.fail("config_groups", "nothing", "an object");
  read_nested(fields, "config_groups", [&](ConfigFields& groups) {
    if (groups.keys() != std::vector<std::string>{"group_0"}) {
      fields.fail("config_groups", fmt::format("{} groups", groups.keys().size()),
                  "one, \"group_0\", with the scheme of all matrices");
    }
    read_nested(groups, "group_0", [&](ConfigFields& group) {
      group.expect_only({"targets", "weights", "input_activations", "format"});
      (void)group.texts("targets", kMaxModules);
      require_text(group, "format", is_fp8 ? "float-quantized" : stored.name);
      if (!group.has("weights")) group.fail("weights", "nothing", "an object");
      read_nested(group, "weights", [&](ConfigFields& weights) {
        if (is_fp8) return read_weights(weights, format.scheme);
        format = read_integer_weights(weights, stored.packing);
      });
      read_nested(group, "input_activations", [&](ConfigFields& inputs) {
        is_fp8 ? read_input_activations(inputs, format) : read_integer_activations(inputs, format);
      });
    });
  });
  return format;
}

void check_kv_cache_scheme(ConfigFields& fields) {
  read_nested(fields, "kv_cache_scheme", [](ConfigFields& cache) {
    expect_fp8(cache);
    require_switch(cache, "dynamic", false);
    require_text(cache, "strategy", "tensor");
  });
}

// quant_method "compressed-tensors", of llm-compressor.
WeightFormat read_compressed_tensors(ConfigFields& fields, std::string_view source) {
  const std::string stored = fields.optional_text("format").value_or("");
  const auto* const format = std::ranges::find(kCompressedFormats, stored, &CompressedFormat::name);
  if (format == std::end(kCompressedFormats)) {
    refuse(fields, source);
    return {};
  }
  fields.expect_only({"quant_method", "format", "config_groups", "ignore", "kv_cache_scheme",
                      "quantization_status", "global_compression_ratio", "sparsity_config",
                      "transform_config", "version", "run_compressed"});
  (void)fields.texts("ignore", kMaxModules);
  const std::string status = fields.optional_text("quantization_status").value_or("compressed");
  if (status != "compressed" && status != "frozen") {
    fields.fail("quantization_status", quote_name(status), "\"compressed\" or \"frozen\"");
  }
  read_nested(fields, "sparsity_config",
              [](ConfigFields& sparsity) { require_text(sparsity, "format", "dense"); });
  read_nested(fields, "transform_config", [&](const ConfigFields& transform) {
    if (!transform.keys().empty()) fields.fail("transform_config", "transforms", "none");
  });
  check_kv_cache_scheme(fields);
  return read_groups(fields, *format);
}

// Reads the object with modelopt's quant_algo: the `quantization` of hf_quant_config.json, or a
// quantization_config. Without an algorithm, only the KV cache has scales.
std::optional<WeightFormat> read_modelopt(ConfigFields& fields, std::string_view source) {
  const std::optional<std::string> algorithm = fields.optional_text("quant_algo");
  const bool has_weights = algorithm || !fields.has("kv_cache_quant_algo");
  if (has_weights && !equals_ignoring_case(algorithm.value_or(""), "fp8")) {
    refuse(fields, source);
    return {};
  }
  fields.expect_only({"quant_method", "quant_algo", "kv_cache_quant_algo", "exclude_modules",
                      "ignore", "config_groups", "kv_cache_scheme", "producer"});
  (void)fields.texts("exclude_modules", kMaxModules);
  (void)fields.texts("ignore", kMaxModules);
  const std::string cache = fields.optional_text("kv_cache_quant_algo").value_or("FP8");
  if (!equals_ignoring_case(cache, "fp8")) {
    fields.fail("kv_cache_quant_algo", quote_name(cache), "\"FP8\" or null");
  }
  check_kv_cache_scheme(fields);
  if (!has_weights) {
    if (fields.has("config_groups")) {
      fields.fail("config_groups", "groups without a quant_algo",
                  "none, where only the KV cache is quantized");
    }
    return std::nullopt;
  }
  WeightFormat format = fp8_format(ScaleLayout::kTensor);
  format.input_scale_suffix = ".input_scale";
  if (fields.has("config_groups") && read_groups(fields, kCompressedFormats[0]) != format) {
    fields.fail("config_groups", "another scheme",
                "that of quant_algo FP8: static scales per tensor of weights and inputs");
  }
  return format;
}

std::optional<WeightFormat> read_scheme(ConfigFields& scheme, std::string_view source) {
  const std::string method = scheme.optional_text("quant_method").value_or("");
  if (method == "fp8") return read_hugging_face(scheme);
  if (method == "compressed-tensors") return read_compressed_tensors(scheme, source);
  if (method == "awq") return read_awq(scheme, source);
  if (method == "gptq") return read_gptq(scheme, source);
  if (method == "bitsandbytes") {
    // bitsandbytes packs numbers for its own kernels alone.
    scheme.keep(refusal(scheme, source,
                        "the same model in AWQ, GPTQ or compressed-tensors, a GGUF file, or "));
    return {};
  }
  if (method != "modelopt") {
    refuse(scheme, source);
    return {};
  }
  if (!scheme.has("quantization")) return read_modelopt(scheme, source);
  scheme.expect_only({"quant_method", "quantization", "producer"});
  std::optional<WeightFormat> format;
  read_nested(scheme, "quantization",
              [&](ConfigFields& nested) { format = read_modelopt(nested, source); });
  return format;
}

}  // namespace

std::string describe(const WeightFormat& format) {
  return describe(format.scheme) +
         (format.input_scale_suffix.empty() ? "" : " and static scales of its inputs");
}

bool read_mxfp4_experts(ConfigFields& fields) {
  bool is_mxfp4 = false;
  read_nested(fields, kQuantizationConfig, [&](ConfigFields& scheme) {
    is_mxfp4 = scheme.optional_text("quant_method") == "mxfp4";
    if (!is_mxfp4) return;
    scheme.expect_only({"quant_method", "modules_to_not_convert", "dequantize"});
    (void)scheme.texts("modules_to_not_convert", kMaxModules);
    (void)scheme.optional_boolean("dequantize");  // the numbers are the same either way
  });
  return is_mxfp4;
}

std::optional<WeightFormat> read_quantization(ConfigFields& fields, std::string_view source) {
  std::optional<WeightFormat> format;
  read_nested(fields, quantization_key(fields),
              [&](ConfigFields& scheme) { format = read_scheme(scheme, source); });
  return format;
}

Result<std::optional<WeightFormat>> parse_hf_quant_config(std::string_view json,
                                                          std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(json, source, kConfigLimits));
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::object object, root_object(document, source));
  ConfigFields fields(object, source);
  fields.expect_only({"producer", "quantization"});
  if (!fields.has("quantization")) fields.fail("quantization", "nothing", "an object");
  std::optional<WeightFormat> format;
  read_nested(fields, "quantization",
              [&](ConfigFields& nested) { format = read_modelopt(nested, source); });
  QUIRE_RETURN_IF_ERROR(fields.status());
  return format;
}

void refuse_quantized(ConfigFields& fields, std::string_view source) {
  const std::optional<ConfigFields> scheme = fields.object(quantization_key(fields));
  if (scheme) fields.keep(refusal(*scheme, source, ""));
}

WeightFormat fp8_at_load() {
  WeightFormat format = fp8_format(ScaleLayout::kRows);
  format.at_load = true;
  return format;
}

std::optional<WeightFormat> without_load_quantization(const std::optional<WeightFormat>& format) {
  return format && format->at_load ? std::nullopt : format;
}

void set_dequantized_dtype(std::optional<DType> dtype, std::optional<WeightFormat>& format) {
  if (format) format->scheme.dequantized_dtype = dtype.value_or(DType::kF32);
}

std::string stored_values_name(const std::string& name, const std::optional<WeightFormat>& format,
                               const WeightSource& source) {
  if (format && format->packing != Packing::kNone) {
    std::string packed = name + std::string(packed_names(format->packing).values);
    if (source.has(packed)) return packed;
  }
  return name + ".weight";
}

WeightScheme scheme_of(const std::optional<WeightFormat>& format, DType stored) {
  if (!format) return {.values = stored};
  const DType quantized = format->packing == Packing::kNone ? format->scheme.values : DType::kI32;
  return format->at_load || stored == quantized ? format->scheme : WeightScheme{.values = stored};
}

std::optional<RowAxis> row_axis(std::string_view suffix,
                                const std::optional<WeightFormat>& format) {
  if (suffix == ".bias" || is_mxfp4_suffix(suffix)) return RowAxis{0};
  if (!format || format->at_load) {
    return suffix == ".weight" ? std::optional(RowAxis{0}) : std::nullopt;
  }
  const WeightScheme& scheme = format->scheme;
  const PackedNames names = packed_names(format->packing);
  const PackedRows rows = packed_rows(format->packing, scheme);
  const int64_t per_scale = scheme.scales == ScaleLayout::kBlocks ? scheme.block_rows : 1;
  const auto of_scales = [&](int64_t rows_per_element) {
    return scheme.scales == ScaleLayout::kTensor ? RowAxis() : RowAxis{rows.axis, rows_per_element};
  };
  if (suffix == names.values) return RowAxis{rows.axis, rows.per_value};
  if (suffix == format->scales_suffix) return of_scales(per_scale);
  if (suffix == names.zeros) return of_scales(per_scale * rows.per_zero_point);
  if (suffix == names.groups || suffix == format->input_scale_suffix) return RowAxis();
  if (suffix == names.shape) return RowAxis{{}, 1, true};
  // A matrix that was left unquantized.
  return suffix == ".weight" ? std::optional(RowAxis{0}) : std::nullopt;
}

std::span<const std::string_view> key_scale_names() {
  static constexpr std::array<std::string_view, 4> kNames = {"k_scale", "k_proj.k_scale",
                                                             "k_proj.output_scale", "kv_scale"};
  return kNames;
}

std::span<const std::string_view> value_scale_names() {
  static constexpr std::array<std::string_view, 4> kNames = {"v_scale", "v_proj.v_scale",
                                                             "v_proj.output_scale", "kv_scale"};
  return kNames;
}

Status check_scales(const TensorView& scales, const WeightScheme& scheme) {
  const bool may_be_any = is_integer(scheme);
  for (int64_t i = 0; i < scales.shape.num_elements(); ++i) {
    const float scale = element_as_f32(scales, i);
    if (std::isfinite(scale) && (may_be_any || scale > 0.0F)) continue;
    return invalid_argument(fmt::format(
        "got {} as number {}, expected finite numbers{}; download the checkpoint again, or "
        "another one",
        scale, i, may_be_any ? "" : " above 0"));
  }
  return {};
}

}  // namespace quire
