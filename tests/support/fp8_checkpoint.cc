#include "support/fp8_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "support/source_models.h"
#include "tensor/dtype.h"
#include "tensor/safetensors.h"

namespace quire::testing {
namespace {

constexpr int64_t kBlockRows = 128;
constexpr int64_t kBlockColumns = 128;

std::string quantization_config(Fp8Tool tool) {
  const auto compressed = [](std::string_view weights, std::string_view inputs) {
    return fmt::format(
        R"({{"quant_method":"compressed-tensors","format":"float-quantized",)"
        R"("quantization_status":"compressed","ignore":["lm_head","re:.*gate$"],)"
        R"("global_compression_ratio":1.5,"kv_cache_scheme":null,"sparsity_config":{{}},)"
        R"("transform_config":{{}},"version":"0.12.2","config_groups":{{"group_0":{{)"
        R"("format":"float-quantized","targets":["Linear"],"output_activations":null,)"
        R"("weights":{{"num_bits":8,"type":"float","symmetric":true,"dynamic":false,)"
        R"("actorder":null,"observer":"minmax","observer_kwargs":{{}},"group_size":null,{}}},)"
        R"("input_activations":{{"num_bits":8,"type":"float","symmetric":true,{}}}}}}}}})",
        weights, inputs);
  };
  switch (tool) {
    case Fp8Tool::kModelopt:
      return "";
    case Fp8Tool::kCompressedTensor:
      return compressed(R"("strategy":"tensor")", R"("strategy":"tensor","dynamic":false)");
    case Fp8Tool::kCompressedChannel:
      return compressed(R"("strategy":"channel")", R"("strategy":"token","dynamic":true)");
    case Fp8Tool::kCompressedBlock:
      return compressed(R"("strategy":"block","block_structure":[128,128])",
                        R"("strategy":"group","group_size":128,"dynamic":true)");
    case Fp8Tool::kHuggingFaceTensor:
      return R"({"quant_method":"fp8","activation_scheme":"static","ignored_layers":["lm_head"]})";
    case Fp8Tool::kHuggingFaceBlock:
      return R"({"quant_method":"fp8","activation_scheme":"dynamic","fmt":"e4m3",)"
             R"("weight_block_size":[128,128],"modules_to_not_convert":["lm_head"]})";
  }
  return "";
}

constexpr std::string_view kModeloptConfig =
    R"({"producer":{"name":"modelopt","version":"0.29.0"},"quantization":{"quant_algo":"FP8",)"
    R"("kv_cache_quant_algo":"FP8","exclude_modules":["lm_head","*router*"]}})";

bool has_input_scales(Fp8Tool tool) {
  return tool == Fp8Tool::kModelopt || tool == Fp8Tool::kCompressedTensor ||
         tool == Fp8Tool::kHuggingFaceTensor;
}

// Stores the numbers as `dtype`, "F32" or "BF16", and replaces them by what is stored.
StoredTensor store(const std::vector<int64_t>& shape, std::string_view dtype,
                   std::vector<float>& numbers) {
  if (dtype == "F32") return stored_floats(shape, numbers);
  StoredTensor tensor = {"BF16", shape, std::vector<std::byte>(numbers.size() * 2)};
  for (size_t i = 0; i < numbers.size(); ++i) {
    const uint16_t bits = f32_to_bf16(numbers[i]);
    std::memcpy(tensor.bytes.data() + 2 * i, &bits, 2);
    numbers[i] = bf16_to_f32(bits);
  }
  return tensor;
}

class Quantizer {
 public:
  Quantizer(Fp8Tool tool, std::string_view scales, std::string_view product, Fp8Checkpoint& out)
      : tool_(tool), scales_(scales), product_(product), out_(out) {}

  void add(const std::string& name, const SafetensorsEntry& entry) {
    if (!name.ends_with("_proj.weight") && !name.ends_with("_with_mqa.weight")) {
      const StoredTensor same = {
          std::string(entry.dtype), entry.shape, {entry.bytes.begin(), entry.bytes.end()}};
      out_.tensors[name] = out_.dequantized[name] = same;
      return;
    }
    add_matrix(name.substr(0, name.size() - std::string_view(".weight").size()), entry);
  }

 private:
  void set_block(int64_t rows, int64_t columns) {
    block_rows_ = 1;
    block_columns_ = columns;
    if (tool_ == Fp8Tool::kCompressedChannel) return;
    block_rows_ = rows;
    if (tool_ != Fp8Tool::kCompressedBlock && tool_ != Fp8Tool::kHuggingFaceBlock) return;
    block_rows_ = kBlockRows;
    block_columns_ = kBlockColumns;
  }

  void add_matrix(const std::string& module, const SafetensorsEntry& entry) {
    const int64_t rows = entry.shape[0];
    const int64_t columns = entry.shape[1];
    set_block(rows, columns);
    std::vector<float> numbers = floats_of(entry);
    const int64_t grid_columns = (columns + block_columns_ - 1) / block_columns_;
    const int64_t grid_rows = (rows + block_rows_ - 1) / block_rows_;
    const auto block_of = [&](size_t i) {
      const auto row = static_cast<int64_t>(i) / columns;
      const auto column = static_cast<int64_t>(i) % columns;
      return static_cast<size_t>(row / block_rows_ * grid_columns + column / block_columns_);
    };
    std::vector<float> scales(static_cast<size_t>(grid_rows * grid_columns), 0.0F);
    for (size_t i = 0; i < numbers.size(); ++i) {
      scales[block_of(i)] = std::max(scales[block_of(i)], std::abs(numbers[i]) / 448.0F);
    }
    const StoredTensor stored_scales =
        store(shape_of_scales(grid_rows, grid_columns), scales_, scales);
    StoredTensor values = {"F8_E4M3", entry.shape, std::vector<std::byte>(numbers.size())};
    for (size_t i = 0; i < numbers.size(); ++i) {
      const uint8_t bits = f32_to_e4m3(numbers[i] / scales[block_of(i)]);
      values.bytes[i] = std::byte{bits};
      numbers[i] = e4m3_to_f32(bits) * scales[block_of(i)];
    }
    out_.tensors[module + ".weight"] = std::move(values);
    out_.dequantized[module + ".weight"] = store(entry.shape, product_, numbers);
    out_.tensors[module + (tool_ == Fp8Tool::kHuggingFaceBlock ? ".weight_scale_inv"
                                                               : ".weight_scale")] = stored_scales;
    add_static_scales(module);
  }

  // modelopt stores numbers without axes, compressed-tensors vectors of one element.
  std::vector<int64_t> shape_of_number() const {
    return tool_ == Fp8Tool::kCompressedTensor ? std::vector<int64_t>{1} : std::vector<int64_t>{};
  }
  std::vector<int64_t> shape_of_scales(int64_t rows, int64_t columns) const {
    return has_input_scales(tool_) ? shape_of_number() : std::vector<int64_t>{rows, columns};
  }

  void add_static_scales(const std::string& module) {
    if (!has_input_scales(tool_)) return;
    const float scale = 0.25F;
    out_.tensors[module + ".input_scale"] = stored_floats(shape_of_number(), {&scale, 1});
    if (tool_ != Fp8Tool::kModelopt) return;
    for (const char kind : {'k', 'v'}) {
      if (!module.ends_with(fmt::format(".{}_proj", kind))) continue;
      out_.tensors[fmt::format("{}.{}_scale", module, kind)] = stored_floats({}, {&scale, 1});
    }
  }

  Fp8Tool tool_;
  std::string_view scales_;
  std::string_view product_;
  Fp8Checkpoint& out_;
  int64_t block_rows_ = 0;
  int64_t block_columns_ = 0;
};

}  // namespace

Fp8Checkpoint quantize_checkpoint(std::string_view config_json,
                                  std::span<const std::byte> safetensors, Fp8Tool tool,
                                  std::string_view scales) {
  Fp8Checkpoint out;
  out.config_json = config_json;
  const std::string scheme = quantization_config(tool);
  if (scheme.empty()) {
    out.quant_json = kModeloptConfig;
  } else {
    out.config_json.insert(out.config_json.find('{') + 1,
                           fmt::format(R"("quantization_config":{},)", scheme));
  }
  const bool is_bf16 = config_json.find("bfloat16") != std::string_view::npos;
  Quantizer quantizer(tool, scales, is_bf16 ? "BF16" : "F32", out);
  const Safetensors file = Safetensors::parse(safetensors, "weights").value();
  for (const std::string& name : file.names()) quantizer.add(name, *file.find(name));
  return out;
}

}  // namespace quire::testing
