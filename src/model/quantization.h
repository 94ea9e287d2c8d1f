// The storage of the quantized matrices of a checkpoint's layers: read from quantization_config in
// config.json and from hf_quant_config.json. Only these functions read the formats of the tools
// that quantize; the rest of the code uses a WeightFormat. Model families do not use this header.
// decoder_layer_weights() gives the model's format to the layers' matrices. The loader decides by
// the type of each stored matrix whether it is quantized.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/packed_integers.h"
#include "quire/status.h"
#include "tensor/weight_source.h"

namespace quire {

class ConfigFields;
class ThreadPool;

// The format of a checkpoint's quantized matrices. The names and types of a matrix's tensors decide
// whether it is quantized (scheme_of). The configuration's lists of modules to leave out are not
// used: they give the same result, but the tools match the lists' patterns in different ways.
struct WeightFormat {
  WeightScheme scheme;
  std::string scales_suffix;            // name suffix of a matrix's scales: ".weight_scale"
  std::string input_scale_suffix = {};  // of the scale of its inputs; empty: none
  // The checkpoint stores F32, F16 or BF16, and the matrices are quantized when they are loaded.
  bool at_load = false;
  Packing packing = Packing::kNone;  // of integers
  // Act-order: each matrix must have a tensor with the group of each column. If false, that tensor
  // is read only where it exists.
  bool has_column_groups = false;

  friend bool operator==(const WeightFormat&, const WeightFormat&) = default;
};

// Returns for example "fp8_e4m3 with a scale per tensor and static scales of its inputs".
std::string describe(const WeightFormat& format);

// The number of columns that share a scale of integers is a multiple of this.
inline constexpr int kGroupSizeStep = 16;

inline constexpr std::string_view kQuantConfigFile = "hf_quant_config.json";

// Reads `quantization_config`; nullopt if there is none. A scheme that is not served is an error
// that describes it.
std::optional<WeightFormat> read_quantization(ConfigFields& fields, std::string_view source);
// Reads a `quantization_config` of quant_method "mxfp4", as gpt-oss has it. A matrix is in MXFP4 if
// it has the tensors of mxfp4_weights.h. Returns false if the scheme is another one.
bool read_mxfp4_experts(ConfigFields& fields);
// Parses an hf_quant_config.json, which NVIDIA's modelopt writes beside config.json; nullopt if
// only the KV cache is quantized.
Result<std::optional<WeightFormat>> parse_hf_quant_config(std::string_view json,
                                                          std::string_view source);
// Records an error if `fields` has any quantization_config.
void refuse_quantized(ConfigFields& fields, std::string_view source);

// FP8 with a scale per row. The device quantizes the matrices when the weights are loaded
// (MatricesToQuantize).
WeightFormat fp8_at_load();
// Sets WeightScheme::dequantized_dtype to the model's type before it was quantized, if it is known.
void set_dequantized_dtype(std::optional<DType> dtype, std::optional<WeightFormat>& format);

// `format` without a quantization at load.
std::optional<WeightFormat> without_load_quantization(const std::optional<WeightFormat>& format);

// The name of the tensor with the values of matrix `name`: packed ones, if the source has them.
std::string stored_values_name(const std::string& name, const std::optional<WeightFormat>& format,
                               const WeightSource& source);
// The scheme in which a device gets a matrix whose values the checkpoint stores as `stored`.
WeightScheme scheme_of(const std::optional<WeightFormat>& format, DType stored);

// The division of one of a matrix's tensors, if the matrix is divided by rows.
struct RowAxis {
  std::optional<int> axis;        // absent: the tensor belongs to all rows
  int64_t rows_per_element = 1;   // along the axis
  bool has_matrix_shape = false;  // the tensor is the matrix's shape, [2]
};
// `suffix` follows the name of the matrix; nullopt: no tensor of a matrix in this format has it.
std::optional<RowAxis> row_axis(std::string_view suffix, const std::optional<WeightFormat>& format);

// The names, after the name of a layer's attention, of the scale of its keys or values in an FP8 KV
// cache: compressed-tensors', modelopt's, and two of AutoFP8.
std::span<const std::string_view> key_scale_names();
std::span<const std::string_view> value_scale_names();

// Fails if one of the scales, F32, F16 or BF16, is not a positive finite number; scales of integers
// may be any finite number (AutoRound writes negative ones).
Status check_scales(const TensorView& scales, const WeightScheme& scheme = {});

}  // namespace quire
