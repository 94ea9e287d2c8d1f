#include "support/integer_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "support/source_models.h"
#include "tensor/dtype.h"
#include "tensor/safetensors.h"

namespace quire::testing {
namespace {

std::string quantization_config(const IntegerFormat& format) {
  const auto compressed = [&](std::string_view name, std::string_view strategy,
                              std::string_view inputs) {
    return fmt::format(
        R"({{"quant_method":"compressed-tensors","format":"{0}","quantization_status":)"
        R"("compressed","ignore":["lm_head"],"kv_cache_scheme":null,"version":"0.20.0",)"
        R"("config_groups":{{"group_0":{{"targets":["Linear"],"format":"{0}",)"
        R"("output_activations":null,"input_activations":{1},"weights":{{"num_bits":{2},)"
        R"("type":"int","symmetric":{3},"dynamic":false,"strategy":"{4}","group_size":{5},)"
        R"("actorder":{6},"block_structure":null,"observer":"minmax","observer_kwargs":{{}}}}}}}}}})",
        name, inputs, format.bits, format.symmetric, strategy,
        format.group_size > 0 ? std::to_string(format.group_size) : "null",
        format.act_order ? "\"group\"" : "null");
  };
  const std::string_view strategy = format.group_size > 0    ? "group"
                                    : format.group_size == 0 ? "tensor"
                                                             : "channel";
  switch (format.tool) {
    case IntegerTool::kAwq:
      return fmt::format(R"({{"quant_method":"awq","bits":4,"group_size":{},"zero_point":true,)"
                         R"("version":"gemm","backend":"autoawq","do_fuse":false,)"
                         R"("modules_to_not_convert":null,"exllama_config":null}})",
                         format.group_size);
    case IntegerTool::kGptq:
    case IntegerTool::kGptqV2:
      return fmt::format(
          R"({{"quant_method":"gptq","bits":{},"group_size":{},"sym":{},"desc_act":{},)"
          R"("checkpoint_format":"{}","damp_percent":0.01,"lm_head":false,"pack_dtype":"int32",)"
          R"("static_groups":false,"true_sequential":true,"meta":{{"quantizer":["gptqmodel:2"]}}}})",
          format.bits, format.group_size, format.symmetric, format.act_order,
          format.tool == IntegerTool::kGptq ? "gptq" : "gptq_v2");
    case IntegerTool::kCompressedPack:
      return compressed("pack-quantized", strategy, "null");
    case IntegerTool::kCompressedBytes:
      return compressed("int-quantized", strategy,
                        R"({"num_bits":8,"type":"int","symmetric":true,"dynamic":false,)"
                        R"("strategy":"tensor","group_size":null})");
  }
  return "";
}

// A matrix of numbers that become part of a tensor.
template <typename T>
struct Grid {
  Grid(int64_t rows_, int64_t columns_)
      : rows(rows_), columns(columns_), cells(static_cast<size_t>(rows * columns)) {}
  T& at(int64_t row, int64_t column) { return cells[static_cast<size_t>(row * columns + column)]; }
  StoredTensor stored(std::string_view dtype) const {
    const auto bytes = std::as_bytes(std::span(cells));
    return {std::string(dtype), {rows, columns}, {bytes.begin(), bytes.end()}};
  }

  int64_t rows;
  int64_t columns;
  std::vector<T> cells;
};

using Words = Grid<uint32_t>;
using Integers = Grid<int>;  // unsigned
using Scales = Grid<float>;

template <typename T>
Grid<T> transposed(Grid<T>& grid) {
  Grid<T> out(grid.columns, grid.rows);
  for (int64_t row = 0; row < grid.rows; ++row) {
    for (int64_t column = 0; column < grid.columns; ++column) {
      out.at(column, row) = grid.at(row, column);
    }
  }
  return out;
}

// Packs along the columns, the first integer in the lowest bits.
Words packed_columns(Integers& integers, int bits) {
  const int64_t in_word = 32 / bits;
  Words words(integers.rows, (integers.columns + in_word - 1) / in_word);
  for (int64_t row = 0; row < integers.rows; ++row) {
    for (int64_t column = 0; column < integers.columns; ++column) {
      words.at(row, column / in_word) |= static_cast<uint32_t>(integers.at(row, column))
                                         << (bits * (column % in_word));
    }
  }
  return words;
}

// Packs along the rows.
Words packed_rows(Integers& integers, int bits) {
  Integers columns = transposed(integers);
  Words words = packed_columns(columns, bits);
  return transposed(words);
}

// Packs [columns, rows] along the rows of the matrix, in the order of AutoAWQ's gemm.
Words packed_awq(Integers& integers) {
  constexpr int64_t kOrder[] = {0, 2, 4, 6, 1, 3, 5, 7};
  Words words(integers.columns, integers.rows / 8);
  for (int64_t column = 0; column < integers.columns; ++column) {
    for (int64_t word = 0; word < words.columns; ++word) {
      for (int64_t i = 0; i < 8; ++i) {
        words.at(column, word) |= static_cast<uint32_t>(integers.at(word * 8 + kOrder[i], column))
                                  << (4 * i);
      }
    }
  }
  return words;
}

class Quantizer {
 public:
  Quantizer(const IntegerFormat& format, IntegerCheckpoint& out) : format_(format), out_(out) {}

  void add(const std::string& name, const SafetensorsEntry& entry) {
    if (!name.ends_with("_proj.weight")) {
      const StoredTensor same = {
          std::string(entry.dtype), entry.shape, {entry.bytes.begin(), entry.bytes.end()}};
      out_.tensors[name] = out_.dequantized[name] = same;
      return;
    }
    add_matrix(name.substr(0, name.size() - std::string_view(".weight").size()), entry);
  }

 private:
  // The group of each column. All matrices with as many columns have the same.
  std::vector<int32_t> groups_of(int64_t columns) const {
    std::vector<int32_t> ranks(static_cast<size_t>(columns));
    std::iota(ranks.begin(), ranks.end(), 0);
    if (format_.act_order) {
      std::shuffle(ranks.begin(), ranks.end(), std::mt19937(static_cast<uint32_t>(columns)));
    }
    const int64_t size = format_.group_size > 0 ? format_.group_size : columns;
    for (int32_t& rank : ranks) rank = static_cast<int32_t>(rank / size);
    return ranks;
  }

  float rounded_scale(float scale) const {
    if (format_.scales == "F16") return f16_to_f32(f32_to_f16(scale));
    return format_.scales == "BF16" ? bf16_to_f32(f32_to_bf16(scale)) : scale;
  }

  // The scale and the unsigned zero point of numbers from `low` to `high`. Every second symmetric
  // scale is negative, as AutoRound writes some.
  void set_scale(float low, float high, int64_t group, float& scale, int& zero) const {
    const int half = 1 << (format_.bits - 1);
    const auto steps = static_cast<float>(format_.symmetric ? half - 1 : 2 * half - 1);
    zero = half;
    if (format_.symmetric) {
      scale = std::max(-low, high) / steps;
      if (group % 2 == 1) scale = -scale;
    } else {
      scale = (high - low) / steps;
    }
    scale = rounded_scale(scale);
    if (scale == 0.0F) scale = rounded_scale(1.0F);
    if (format_.symmetric) return;
    zero = std::clamp(static_cast<int>(std::lround(-low / scale)), 0, 2 * half - 1);
  }

  void add_matrix(const std::string& module, const SafetensorsEntry& entry) {
    const int64_t rows = entry.shape[0];
    const int64_t columns = entry.shape[1];
    const std::vector<int32_t> groups = groups_of(columns);
    const int64_t num_groups = groups.empty() ? 0 : *std::ranges::max_element(groups) + 1;
    const bool per_tensor = format_.group_size == 0;
    const std::vector<float> numbers = floats_of(entry);
    Grid<float> lows(per_tensor ? 1 : rows, num_groups);
    Grid<float> highs = lows;
    const auto scale_row = [&](int64_t row) { return per_tensor ? 0 : row; };
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        const float number = numbers[static_cast<size_t>(row * columns + column)];
        float& low = lows.at(scale_row(row), groups[static_cast<size_t>(column)]);
        float& high = highs.at(scale_row(row), groups[static_cast<size_t>(column)]);
        low = std::min(low, number);
        high = std::max(high, number);
      }
    }
    Scales scales(lows.rows, num_groups);
    Integers zeros(lows.rows, num_groups);
    for (int64_t row = 0; row < scales.rows; ++row) {
      for (int64_t group = 0; group < num_groups; ++group) {
        set_scale(lows.at(row, group), highs.at(row, group), group, scales.at(row, group),
                  zeros.at(row, group));
      }
    }
    Integers values(rows, columns);
    Scales products(rows, columns);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        const int64_t group = groups[static_cast<size_t>(column)];
        const float scale = scales.at(scale_row(row), group);
        const int zero = zeros.at(scale_row(row), group);
        const float number = numbers[static_cast<size_t>(row * columns + column)];
        const int value = static_cast<int>(std::lround(number / scale)) + zero;
        values.at(row, column) = std::clamp(value, 0, (1 << format_.bits) - 1);
        products.at(row, column) = static_cast<float>(values.at(row, column) - zero) * scale;
      }
    }
    out_.dequantized[module + ".weight"] = products.stored("F32");
    store(module, values, scales, zeros, groups);
  }

  void store(const std::string& module, Integers& values, Scales& scales, Integers& zeros,
             const std::vector<int32_t>& groups) {
    switch (format_.tool) {
      case IntegerTool::kAwq:
        out_.tensors[module + ".qweight"] = packed_awq(values).stored("I32");
        out_.tensors[module + ".qzeros"] = packed_awq(zeros).stored("I32");
        out_.tensors[module + ".scales"] = stored_scales(transposed(scales));
        return;
      case IntegerTool::kGptq:
      case IntegerTool::kGptqV2:
        return store_gptq(module, values, scales, zeros, groups);
      case IntegerTool::kCompressedPack:
        out_.tensors[module + ".weight_packed"] =
            packed_columns(values, format_.bits).stored("I32");
        out_.tensors[module + ".weight_scale"] = stored_scales(scales);
        out_.tensors[module + ".weight_shape"] =
            stored_integers(std::vector<int64_t>{values.rows, values.columns});
        if (!format_.symmetric) {
          out_.tensors[module + ".weight_zero_point"] =
              packed_rows(zeros, format_.bits).stored("I32");
        }
        if (format_.act_order) {
          out_.tensors[module + ".weight_g_idx"] = stored_short_integers(groups);
        }
        return;
      case IntegerTool::kCompressedBytes:
        return store_bytes(module, values, scales, zeros);
    }
  }

  void store_gptq(const std::string& module, Integers& values, Scales& scales, Integers& zeros,
                  const std::vector<int32_t>& groups) {
    Integers by_column = transposed(values);
    Integers stored_zeros = transposed(zeros);
    if (format_.tool == IntegerTool::kGptq) {
      const int mask = (1 << format_.bits) - 1;
      for (int& zero : stored_zeros.cells) zero = (zero - 1) & mask;
    }
    out_.tensors[module + ".qweight"] = packed_rows(by_column, format_.bits).stored("I32");
    out_.tensors[module + ".qzeros"] = packed_columns(stored_zeros, format_.bits).stored("I32");
    out_.tensors[module + ".scales"] = stored_scales(transposed(scales));
    out_.tensors[module + ".g_idx"] = stored_short_integers(groups);
  }

  void store_bytes(const std::string& module, const Integers& values, const Scales& scales,
                   const Integers& zeros) {
    const auto bytes_of = [](const Integers& integers) {
      Grid<int8_t> bytes(integers.rows, integers.columns);
      std::ranges::transform(integers.cells, bytes.cells.begin(),
                             [](int value) { return static_cast<int8_t>(value - 128); });
      return bytes.stored("I8");
    };
    out_.tensors[module + ".weight"] = bytes_of(values);
    out_.tensors[module + ".weight_scale"] = stored_scales(scales);
    if (!format_.symmetric) out_.tensors[module + ".weight_zero_point"] = bytes_of(zeros);
    const float input_scale = 0.25F;
    out_.tensors[module + ".input_scale"] = stored_floats({1}, {&input_scale, 1});
  }

  StoredTensor stored_scales(const Scales& scales) const {
    if (format_.scales == "F32") return scales.stored("F32");
    Grid<uint16_t> halves(scales.rows, scales.columns);
    const auto convert = format_.scales == "F16" ? f32_to_f16 : f32_to_bf16;
    std::ranges::transform(scales.cells, halves.cells.begin(), convert);
    return halves.stored(format_.scales);
  }

  IntegerFormat format_;
  IntegerCheckpoint& out_;
};

}  // namespace

IntegerCheckpoint quantize_integers(std::string_view config_json,
                                    std::span<const std::byte> safetensors,
                                    const IntegerFormat& format) {
  IntegerCheckpoint out;
  out.config_json = config_json;
  out.config_json.insert(out.config_json.find('{') + 1,
                         fmt::format(R"("quantization_config":{},)", quantization_config(format)));
  Quantizer quantizer(format, out);
  const Safetensors file = Safetensors::parse(safetensors, "weights").value();
  for (const std::string& name : file.names()) quantizer.add(name, *file.find(name));
  return out;
}

}  // namespace quire::testing
