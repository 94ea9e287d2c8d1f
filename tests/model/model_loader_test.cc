#include "model/model_loader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <map>
#include <set>
#include <thread>
#include <variant>
#include <vector>

#include "base/thread_pool.h"
#include "cpu/attention/reference.h"
#include "cpu/ops/cpu_ops.h"
#include "model/decoder.h"
#include "model/weights.h"
#include "ops/collectives.h"
#include "ops/host_matrices.h"
#include "ops/layer_tail_ops.h"
#include "support/model_harness.h"
#include "support/reference_ops.h"
#include "support/value_of.h"
#include "tensor/dtype.h"

namespace quire::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

DecoderConfig small_decoder(int num_layers = 2) {
  DecoderConfig decoder;
  decoder.intermediate_size = 24;
  decoder.num_heads = 4;
  decoder.num_kv_heads = 2;
  decoder.head_dim = 8;
  decoder.max_position_embeddings = 64;
  decoder.attention_scale = 1.0F / std::sqrt(8.0F);
  decoder.layer_windows.assign(static_cast<size_t>(num_layers), 0);
  decoder.ropes = {RopeConfig()};
  decoder.layer_ropes.assign(static_cast<size_t>(num_layers), 0);
  return decoder;
}

DecoderConfig biased_decoder() {
  DecoderConfig decoder = small_decoder();
  decoder.qkv_bias = decoder.o_bias = decoder.mlp_bias = true;
  decoder.qk_norm = QkNorm::kPerHead;
  return decoder;
}

ModelConfig small_config(const DecoderConfig& decoder = small_decoder()) {
  ModelConfig config;
  config.architecture = "LlamaForCausalLM";
  config.hidden_size = 16;
  config.num_layers = static_cast<int>(decoder.layer_windows.size());
  config.vocab_size = 20;
  config.longest_model_len = 64;
  config.family = std::make_shared<DecoderConfig>(decoder);
  return config;
}

ModelLimits small_limits() {
  ModelLimits limits;
  limits.max_num_tokens = 16;
  limits.max_num_logit_rows = 4;
  limits.max_model_len = 32;
  limits.kv_dtype = DType::kF32;
  return limits;
}

// Dummy weights that list the names of their tensors as a checkpoint does, one of which may be
// damaged.
class ListedWeights : public WeightSource {
 public:
  explicit ListedWeights(const ModelConfig& config) : dummy_(DType::kF32) {
    RecordingSource recorder(dummy_, names_);
    ReferenceOps ops;
    EXPECT_TRUE(load_model(config, recorder, ops, small_limits()).ok());
  }

  Result<TensorView> tensor(std::string_view name, const Shape& expected) override {
    if (!has(name)) return not_found("there is no " + std::string(name));
    held_.insert(std::string(name));
    QUIRE_ASSIGN_OR_RETURN(TensorView view, dummy_.tensor(name, expected));
    if (name == other_type_) view.dtype = DType::kBF16;
    return view;
  }
  bool has(std::string_view name) const override { return names_.contains(std::string(name)); }
  std::optional<DType> dtype_of(std::string_view name) const override {
    return dummy_.dtype_of(name);
  }
  void release(std::string_view name) override {
    held_.erase(std::string(name));
    dummy_.release(name);
  }
  std::vector<std::string> names() const override { return {names_.begin(), names_.end()}; }

  std::set<std::string> names_;
  std::set<std::string> held_;
  std::string other_type_;

 private:
  class RecordingSource : public WeightSource {
   public:
    RecordingSource(WeightSource& source, std::set<std::string>& names)
        : source_(source), names_(names) {}
    Result<TensorView> tensor(std::string_view name, const Shape& expected) override {
      names_.emplace(name);
      return source_.tensor(name, expected);
    }
    bool has(std::string_view /*name*/) const override { return true; }
    std::optional<DType> dtype_of(std::string_view name) const override {
      return source_.dtype_of(name);
    }
    void release(std::string_view name) override { source_.release(name); }
    std::vector<std::string> names() const override { return {}; }

   private:
    WeightSource& source_;
    std::set<std::string>& names_;
  };

  DummyWeights dummy_;
};

std::string load_error(const ModelConfig& config, WeightSource& source) {
  ReferenceOps ops;
  const auto model = load_model(config, source, ops, small_limits());
  return model.ok() ? "" : model.status().message();
}

TEST(ModelLoader, AsksForTheCheckpointsNames) {
  ListedWeights weights(small_config());
  EXPECT_EQ(weights.names_.size(), 3U + 2 * 9);
  for (const char* name :
       {"model.embed_tokens.weight", "lm_head.weight", "model.norm.weight",
        "model.layers.1.self_attn.q_proj.weight", "model.layers.0.mlp.down_proj.weight",
        "model.layers.1.post_attention_layernorm.weight"}) {
    EXPECT_TRUE(weights.has(name)) << name;
  }
  EXPECT_EQ(load_error(small_config(), weights), "");
  EXPECT_TRUE(weights.held_.empty()) << "all memory of the source is released";
}

TEST(ModelLoader, AsksForBiasesAndNormsOfTheFamily) {
  DecoderConfig decoder = biased_decoder();
  decoder.tie_word_embeddings = true;
  const ListedWeights weights(small_config(decoder));
  EXPECT_EQ(weights.names_.size(), 2U + 2 * (9 + 7 + 2));
  EXPECT_TRUE(weights.has("model.layers.0.self_attn.o_proj.bias"));
  EXPECT_TRUE(weights.has("model.layers.1.self_attn.k_norm.weight"));
}

TEST(ModelLoader, EveryMissingTensorIsNamed) {
  const ListedWeights whole(small_config());
  for (const std::string& name : whole.names_) {
    ListedWeights weights(small_config());
    weights.names_.erase(name);
    EXPECT_THAT(load_error(small_config(), weights), HasSubstr(name));
  }
}

TEST(ModelLoader, LeftoverTensorsAreNamed) {
  ListedWeights weights(small_config());
  weights.names_.insert("model.layers.2.mlp.up_proj.weight");
  weights.names_.insert("model.layers.0.self_attn.q_proj.bias");
  EXPECT_THAT(load_error(small_config(), weights),
              AllOf(HasSubstr("2 tensors"), HasSubstr("model.layers.2.mlp.up_proj.weight"),
                    HasSubstr("model.layers.0.self_attn.q_proj.bias")));
}

TEST(ModelLoader, OldFrequenciesAndTiedHeadsAreNotLeftovers) {
  DecoderConfig decoder = small_decoder();
  decoder.tie_word_embeddings = true;
  const ModelConfig config = small_config(decoder);
  ListedWeights weights(config);
  weights.names_.insert("model.layers.0.self_attn.rotary_emb.inv_freq");
  weights.names_.insert("lm_head.weight");
  EXPECT_EQ(load_error(config, weights), "");
}

TEST(ModelLoader, PartsOfOneMatrixMustBeOfOneType) {
  ListedWeights weights(small_config());
  weights.other_type_ = "model.layers.1.self_attn.v_proj.weight";
  EXPECT_THAT(
      load_error(small_config(), weights),
      AllOf(HasSubstr("model.layers.1.self_attn.v_proj"), HasSubstr("got bf16, expected f32")));
}

TEST(ModelLoader, TellsItsProgress) {
  DummyWeights weights(DType::kF32);
  ReferenceOps ops;
  std::vector<int> seen;
  const auto model =
      load_model(small_config(), weights, ops, small_limits(),
                 {.progress = [&seen](int done, int total) { seen.push_back(10 * done + total); }});
  ASSERT_TRUE(model.ok());
  EXPECT_THAT(seen, ElementsAre(12, 22));
}

TEST(KvGroups, LayersOfOneWindowShareOne) {
  DecoderConfig decoder = small_decoder(4);
  decoder.layer_windows = {0, 8, 32, 8};  // 32 is max_model_len, so this window has no effect
  const ModelConfig config = small_config(decoder);
  DummyWeights weights(DType::kF32);
  ReferenceOps ops;
  const auto model = value_of(load_model(config, weights, ops, small_limits()));
  const std::vector<KvGroup>& groups = model->kv_groups();
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].decode.window, 0);
  EXPECT_THAT(groups[0].layers, ElementsAre(0, 2));
  EXPECT_EQ(groups[1].decode.window, 8);
  EXPECT_THAT(groups[1].layers, ElementsAre(1, 3));
  EXPECT_FLOAT_EQ(groups[0].decode.scale, 1.0F / std::sqrt(8.0F));
}

TEST(Shard, PartsTileTheWholeOnce) {
  for (const int64_t total : {12, 13, 17}) {
    for (const int size : {1, 2, 3, 6}) {
      int64_t next = 0;
      for (int rank = 0; rank < size; ++rank) {
        const Slice slice = shard(total, {rank, size});
        EXPECT_EQ(slice.first, next);
        EXPECT_LE(slice.count, shard(total, {0, size}).count);
        next += slice.count;
      }
      EXPECT_EQ(next, total);
    }
  }
}

TEST(Shard, BlocksOfAnInnerSizeStayWhole) {
  for (const int64_t block : {1, 8, 16, 128}) {
    for (const int size : {1, 2, 3, 4, 8, 64}) {
      for (const int64_t width : {1, 3, 8, 12, 24, 64, 96, 192, 256, 320}) {
        SCOPED_TRACE(fmt::format("{} ranks of {} and blocks of {}", size, width, block));
        const int64_t total = width * size;
        const bool has_equal_parts = block >= total || width % block == 0;
        const int64_t most = shard_blocks(total, block, {0, size}).slice.count;
        int64_t next = 0;
        for (int rank = 0; rank < size; ++rank) {
          const auto [slice, is_zero] = shard_blocks(total, block, {rank, size});
          EXPECT_GT(slice.count, 0);
          EXPECT_LE(slice.count, most) << "rank 0 has the largest part";
          if (has_equal_parts) {
            EXPECT_EQ(slice.first, shard(total, {rank, size}).first);
            EXPECT_EQ(slice.count, width);
          } else {
            EXPECT_EQ(slice.first % block, 0);
            EXPECT_EQ(cut_block(block, slice, total), block);
            EXPECT_EQ(most, std::min(round_up(width, block), total));
          }
          EXPECT_EQ(is_zero, next == total);
          if (is_zero) continue;
          EXPECT_EQ(slice.first, next);
          next += slice.count;
        }
        EXPECT_EQ(next, total);
      }
    }
  }
  EXPECT_EQ(shard_blocks(1536, 128, {0, 8}).slice.count, 256);
  EXPECT_EQ(shard_blocks(1536, 128, {7, 8}).slice.count, 128);
  EXPECT_EQ(shard_blocks(1000, 128, {1, 2}).slice.count, 1000 - 512) << "the last block has 104";
}

TEST(Shard, RanksBeyondTheHeadsShareOne) {
  for (int rank = 0; rank < 8; ++rank) {
    const Slice slice = shard_heads(2 * 16, 2, {rank, 8});
    EXPECT_EQ(slice.first, rank < 4 ? 0 : 16);
    EXPECT_EQ(slice.count, 16);
  }
  EXPECT_EQ(shard_heads(2 * 16, 2, {1, 2}).first, 16);
}

TEST(Shard, ModelsThatDoNotDivideAreRefused) {
  DecoderConfig decoder = small_decoder();
  decoder.num_heads = 12;
  decoder.num_kv_heads = 4;
  EXPECT_THAT(check_shards(small_config(decoder), {0, 6}).message(),
              AllOf(HasSubstr("num_key_value_heads; got 4"), HasSubstr("size` 6")));
  EXPECT_THAT(check_shards(small_config(), {0, 3}).message(),
              AllOf(HasSubstr("num_attention_heads; got 4"), HasSubstr("size` 3")));
  EXPECT_FALSE(check_shards(small_config(), {2, 2}).ok());
  EXPECT_TRUE(check_shards(small_config(), {1, 2}).ok());
  EXPECT_TRUE(check_shards(small_config(), {3, 4}).ok()) << "two ranks share a head of keys";
  ModelConfig few_tokens = small_config();
  few_tokens.vocab_size = 5;
  EXPECT_THAT(check_shards(few_tokens, {0, 4}).message(), HasSubstr("vocab_size; got 5"));
}

TEST(Shard, AnUnusedSizeOfDenseLayersNeedNotDivide) {
  DecoderConfig decoder = small_decoder();
  decoder.intermediate_size = 25;
  decoder.moe = MoeConfig();
  decoder.moe->intermediate_size = 24;
  decoder.moe->layers = {true, true};
  EXPECT_TRUE(check_shards(small_config(decoder), {0, 2}).ok());
  decoder.moe->layers = {true, false};
  EXPECT_THAT(check_shards(small_config(decoder), {0, 2}).message(),
              HasSubstr("intermediate_size; got 25"));
}

WeightView fp8_matrix(std::vector<uint8_t>& values, std::vector<float>& scales, int64_t rows,
                      int64_t columns, const WeightScheme& scheme) {
  for (int64_t i = 0; i < rows * columns; ++i) values.push_back(static_cast<uint8_t>(i % 127));
  const Shape grid = scales_shape(scheme, {rows, columns});
  for (int64_t i = 0; i < grid.num_elements(); ++i) scales.push_back(static_cast<float>(i + 1));
  return {
      {values.data(), DType::kF8E4M3, {rows, columns}}, {scales.data(), DType::kF32, grid}, scheme};
}

// Returns the value at (row, column) by the definition of the scheme.
float number_at(const WeightView& matrix, int64_t row, int64_t column) {
  const Shape block = scale_block(matrix.scheme, matrix.values.shape);
  const int64_t at = row / block[0] * matrix.scales.shape[1] + column / block[1];
  return e4m3_to_f32(matrix.values.as<uint8_t>()[row * matrix.values.shape[1] + column]) *
         matrix.scales.as<float>()[at];
}

constexpr WeightScheme kFp8Schemes[] = {{DType::kF8E4M3, ScaleLayout::kTensor},
                                        {DType::kF8E4M3, ScaleLayout::kRows},
                                        {DType::kF8E4M3, ScaleLayout::kBlocks, 4, 8},
                                        {DType::kF8E4M3, ScaleLayout::kBlocks, 64, 64}};

TEST(Shard, SlicesKeepTheirScales) {
  for (const WeightScheme& scheme : kFp8Schemes) {
    std::vector<uint8_t> values;
    std::vector<float> scales;
    const WeightView whole = fp8_matrix(values, scales, 18, 20, scheme);
    // The last slice of either axis ends in a block that the matrix cuts short.
    for (const Slice& slice : {Slice{0, 8}, Slice{8, 8}, Slice{16, 2}}) {
      std::vector<Tensor> copies;
      const auto rows = value_of(slice_rows(whole, slice, copies));
      for (int64_t row = 0; row < slice.count; ++row) {
        for (int64_t column = 0; column < 20; ++column) {
          ASSERT_EQ(number_at(rows, row, column), number_at(whole, slice.first + row, column));
        }
      }
    }
    for (const Slice& slice : {Slice{0, 8}, Slice{8, 12}, Slice{16, 4}}) {
      std::vector<Tensor> copies;
      const auto columns = value_of(slice_columns(whole, slice, "w", copies));
      EXPECT_EQ(columns.values.shape, (Shape{18, slice.count}));
      for (int64_t row = 0; row < 18; ++row) {
        for (int64_t column = 0; column < slice.count; ++column) {
          ASSERT_EQ(number_at(columns, row, column), number_at(whole, row, slice.first + column));
        }
      }
    }
  }
}

TEST(Shard, SlicesOfIntegersKeepTheirScalesAndZeroPoints) {
  std::vector<int8_t> values;
  std::vector<int8_t> zeros;
  std::vector<float> scales;
  for (int i = 0; i < 6 * 16; ++i) values.push_back(static_cast<int8_t>(i * 7 % 16 - 8));
  for (int i = 0; i < 6 * 4; ++i) zeros.push_back(static_cast<int8_t>(i * 5 % 16 - 8));
  for (int i = 0; i < 6 * 4; ++i) scales.push_back(static_cast<float>(i + 1));
  WeightScheme scheme = {DType::kI8, ScaleLayout::kBlocks, 1, 4};
  scheme.bits = 4;
  scheme.has_zeros = true;
  WeightView whole({values.data(), DType::kI8, {6, 16}}, {scales.data(), DType::kF32, {6, 4}},
                   scheme);
  whole.zeros = {zeros.data(), DType::kI8, {6, 4}};
  const auto row_of = [](const WeightView& matrix, int64_t row) {
    std::vector<float> numbers(static_cast<size_t>(matrix.values.shape[1]));
    write_plain_row(matrix, row, reinterpret_cast<std::byte*>(numbers.data()));
    return numbers;
  };
  std::vector<Tensor> copies;
  const WeightView rows = slice_rows(whole, {2, 3}, copies).value();
  for (int64_t row = 0; row < 3; ++row) EXPECT_EQ(row_of(rows, row), row_of(whole, 2 + row));
  const WeightView columns = slice_columns(whole, {4, 8}, "w", copies).value();
  for (int64_t row = 0; row < 6; ++row) {
    const std::vector<float> all = row_of(whole, row);
    EXPECT_EQ(row_of(columns, row), std::vector<float>(all.begin() + 4, all.begin() + 12));
  }
  std::vector<int32_t> order(16);
  whole.order = {order.data(), DType::kI32, {16}};
  EXPECT_THAT(slice_columns(whole, {4, 8}, "w", copies).status().message(),
              AllOf(HasSubstr("\"w\": its columns are in an order of groups (act-order)"),
                    HasSubstr("tensor_parallel_size")));
}

TEST(Shard, BordersThatCutABlockOfScalesMakeSmallerBlocks) {
  std::vector<uint8_t> values;
  std::vector<float> scales;
  const WeightView whole = fp8_matrix(values, scales, 18, 20, kFp8Schemes[2]);
  std::vector<Tensor> copies;
  for (const Slice& slice : {Slice{0, 6}, Slice{6, 6}, Slice{2, 10}}) {
    const WeightView rows = slice_rows(whole, slice, copies).value();
    EXPECT_EQ(rows.scheme.block_rows, 2);
    EXPECT_EQ(rows.scheme.block_columns, 8);
    for (int64_t i = 0; i < slice.count * 20; ++i) {
      ASSERT_EQ(number_at(rows, i / 20, i % 20), number_at(whole, slice.first + i / 20, i % 20));
    }
  }
  for (const Slice& slice : {Slice{0, 10}, Slice{10, 10}}) {
    const WeightView columns = slice_columns(whole, slice, "w", copies).value();
    EXPECT_EQ(columns.scheme.block_rows, 4);
    EXPECT_EQ(columns.scheme.block_columns, 2);
    for (int64_t i = 0; i < 18 * slice.count; ++i) {
      const int64_t column = i % slice.count;
      ASSERT_EQ(number_at(columns, i / slice.count, column),
                number_at(whole, i / slice.count, slice.first + column));
    }
  }
}

TEST(Shard, BordersThatCutAGroupOfIntegersAreRefused) {
  std::vector<int8_t> values(6 * 16);
  std::vector<float> scales(6 * 4, 1.0F);
  WeightScheme scheme = {DType::kI8, ScaleLayout::kBlocks, 1, 4};
  scheme.bits = 4;
  const WeightView whole({values.data(), DType::kI8, {6, 16}}, {scales.data(), DType::kF32, {6, 4}},
                         scheme);
  std::vector<Tensor> copies;
  EXPECT_THAT(slice_columns(whole, {0, 6}, "w.weight", copies).status().message(),
              AllOf(HasSubstr("w.weight"), HasSubstr("got 6 of its 16 columns"),
                    HasSubstr("tensor_parallel_size")));
}

// A checkpoint whose layers are FP8 with scales, or the same values multiplied by their scales.
class Fp8Weights : public WeightSource {
 public:
  explicit Fp8Weights(const WeightScheme& scheme, bool multiplied)
      : scheme_(scheme), multiplied_(multiplied) {}

  Result<TensorView> tensor(std::string_view name, const Shape& expected) override {
    if (name.ends_with(kInputSuffix)) return input_scale(name);
    if (!is_quantized(name)) return dummy_.tensor(name, expected);
    const std::string matrix(name.substr(0, name.find(".weight")));
    const bool is_scales = name.ends_with(kSuffix);
    // The shape of the scales does not determine the matrix's shape, which was requested earlier.
    if (!is_scales) shapes_[matrix] = expected;
    Parts& parts = make(matrix, shapes_.at(matrix));
    if (is_scales) return parts.view.scales;
    return multiplied_ ? TensorView{parts.numbers.data(), DType::kF32, expected}
                       : parts.view.values;
  }
  bool has(std::string_view /*name*/) const override { return true; }
  std::optional<DType> dtype_of(std::string_view name) const override {
    if (!is_quantized(name) || multiplied_ || name.ends_with(kSuffix)) return DType::kF32;
    return DType::kF8E4M3;
  }
  void release(std::string_view name) override { dummy_.release(name); }
  std::vector<std::string> names() const override { return {}; }
  size_t num_input_scales() const { return input_scales_.size(); }

  static constexpr std::string_view kSuffix = ".weight_scale";
  static constexpr std::string_view kInputSuffix = ".input_scale";

 private:
  TensorView input_scale(std::string_view name) {
    float& scale = input_scales_[std::string(name)];
    scale = name.find("k_proj") != std::string_view::npos ? 0.5F : 0.25F;
    return {&scale, DType::kF32, {1}};
  }

  struct Parts {
    std::vector<uint8_t> values;
    std::vector<float> scales;
    std::vector<float> numbers;
    WeightView view;
  };

  static bool is_quantized(std::string_view name) {
    return name.find("_proj.weight") != std::string_view::npos;
  }

  Parts& make(const std::string& name, const Shape& shape) {
    Parts& parts = parts_[name];
    if (!parts.values.empty()) return parts;
    uint32_t state = static_cast<uint32_t>(std::hash<std::string>()(name));
    const auto next = [&state] { return state = state * 1664525U + 1013904223U; };
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      // Values of either sign with magnitudes around 1.
      parts.values.push_back(
          static_cast<uint8_t>(0x28U + next() / 65536U % 32U + (next() / 65536U % 2U) * 128U));
    }
    const Shape grid = scales_shape(scheme_, shape);
    for (int64_t i = 0; i < grid.num_elements(); ++i) {
      parts.scales.push_back(0.02F + 0.01F * static_cast<float>(next() / 65536U % 5U));
    }
    parts.view = {{parts.values.data(), DType::kF8E4M3, shape},
                  {parts.scales.data(), DType::kF32, grid},
                  scheme_};
    for (int64_t row = 0; row < shape[0]; ++row) {
      for (int64_t column = 0; column < shape[1]; ++column) {
        parts.numbers.push_back(number_at(parts.view, row, column));
      }
    }
    return parts;
  }

  WeightScheme scheme_;
  bool multiplied_;
  DummyWeights dummy_{DType::kF32};
  std::map<std::string, Shape> shapes_;
  std::map<std::string, Parts> parts_;
  std::map<std::string, float> input_scales_;
};

ModelConfig fp8_config(const WeightScheme& scheme) {
  ModelConfig config = small_config();
  config.format = {.scheme = scheme, .scales_suffix = std::string(Fp8Weights::kSuffix)};
  return config;
}

// Adds over threads, each of which runs one rank.
class ThreadCollectives final : public Collectives {
 public:
  struct Rendezvous {
    explicit Rendezvous(int num_ranks)
        : barrier(num_ranks), parts(static_cast<size_t>(num_ranks)) {}
    std::barrier<> barrier;
    std::vector<TensorView> parts;
  };
  ThreadCollectives(Rendezvous& rendezvous, size_t rank) : rendezvous_(rendezvous), rank_(rank) {}

  int num_ranks() const override { return static_cast<int>(rendezvous_.parts.size()); }
  void all_reduce(TensorView x) override {
    rendezvous_.parts[rank_] = x;
    rendezvous_.barrier.arrive_and_wait();
    std::vector<float> sum(static_cast<size_t>(x.shape.num_elements()));
    for (const TensorView& part : rendezvous_.parts) {
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += part.as<float>()[i];
    }
    rendezvous_.barrier.arrive_and_wait();
    std::copy(sum.begin(), sum.end(), x.as<float>());
  }

  void all_gather_columns(TensorView part, TensorView whole, TensorView /*scratch*/) override {
    rendezvous_.parts[rank_] = part;
    rendezvous_.barrier.arrive_and_wait();
    float* out = whole.as<float>();
    for (int64_t row = 0; row < part.shape[0]; ++row) {
      for (const TensorView& of_rank : rendezvous_.parts) {
        const int64_t width = of_rank.shape[1];
        out = std::copy_n(of_rank.as<float>() + row * width, width, out);
      }
    }
    rendezvous_.barrier.arrive_and_wait();
  }

 private:
  Rendezvous& rendezvous_;
  size_t rank_;
};

class RankOps : public ReferenceOps {
 public:
  using Rendezvous = ThreadCollectives::Rendezvous;
  RankOps(Rendezvous& rendezvous, size_t rank)
      : collectives_(std::make_unique<ThreadCollectives>(rendezvous, rank)) {}
  Collectives* collectives() const override { return collectives_.get(); }

 private:
  std::unique_ptr<ThreadCollectives> collectives_;
};

std::vector<float> prompt_logits(const ModelConfig& config, WeightSource& weights, Ops& ops,
                                 const Parallel& parallel) {
  ModelLimits limits = small_limits();
  limits.parallel = parallel;
  const auto model = load_model(config, weights, ops, limits).value();
  const auto attention = make_reference_attention();
  ModelHarness harness(*model, *attention, limits);
  return harness.step({{0, {1, 5, 19, 0, 7, 7, 3}}}).value().front();
}

// Computes the parts of all ranks. `make_source` gives each rank its own weights.
template <class OpsOfRank = RankOps, class MakeSource>
std::vector<std::vector<float>> logits_of_ranks(const ModelConfig& config,
                                                const MakeSource& make_source, int num_ranks = 2) {
  RankOps::Rendezvous rendezvous(num_ranks);
  std::vector<std::vector<float>> got(static_cast<size_t>(num_ranks));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < num_ranks; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto idx = static_cast<size_t>(rank);
      OpsOfRank ops(rendezvous, idx);
      auto weights = make_source();
      got[idx] = prompt_logits(config, weights, ops, {rank, num_ranks});
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return got;
}

void expect_near_all(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5) << i;
}

constexpr std::string_view kMixtral =
    R"({"architectures":["MixtralForCausalLM"],"hidden_size":16,"intermediate_size":24,)"
    R"("num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,)"
    R"("vocab_size":20,"max_position_embeddings":64,"num_local_experts":5})";
constexpr std::string_view kQwenMoe =
    R"({"architectures":["Qwen3MoeForCausalLM"],"hidden_size":16,"intermediate_size":40,)"
    R"("num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,)"
    R"("vocab_size":20,"max_position_embeddings":64,"num_experts":5,"num_experts_per_tok":2,)"
    R"("moe_intermediate_size":24,"mlp_only_layers":[1]})";
constexpr std::string_view kDeepseek =
    R"({"architectures":["DeepseekV2ForCausalLM"],"hidden_size":16,"intermediate_size":24,)"
    R"("num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":4,"q_lora_rank":8,)"
    R"("kv_lora_rank":16,"qk_nope_head_dim":8,"qk_rope_head_dim":8,"v_head_dim":12,)"
    R"("vocab_size":20,"max_position_embeddings":64,"n_routed_experts":4,)"
    R"("num_experts_per_tok":2,"moe_intermediate_size":8,"n_shared_experts":1,)"
    R"("first_k_dense_replace":1})";

TEST(Parallel, TwoRanksGiveTheLogitsOfOne) {
  const std::string gemma =
      R"({"architectures":["Gemma3ForCausalLM"],"hidden_size":16,"intermediate_size":24,)"
      R"("num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,)"
      R"("vocab_size":20,"max_position_embeddings":64,"sliding_window":3,)"
      R"("sliding_window_pattern":2,"attention_bias":true,"final_logit_softcapping":2.0})";
  for (const ModelConfig& config :
       {small_config(biased_decoder()), parse_model_config(gemma, "gemma").value(),
        parse_model_config(kMixtral, "mixtral").value(),
        parse_model_config(kDeepseek, "deepseek").value()}) {
    ReferenceOps one_rank;
    DummyWeights weights(DType::kF32);
    const std::vector<float> expected = prompt_logits(config, weights, one_rank, {0, 1});
    for (const std::vector<float>& logits :
         logits_of_ranks(config, [] { return DummyWeights(DType::kF32); })) {
      expect_near_all(logits, expected);
    }
  }
}

const std::vector<int32_t> kTapTokens = {1, 5, 19, 0, 7};

ModelConfig tap_config(std::string_view architecture, int num_layers) {
  const std::string json = fmt::format(
      R"({{"architectures":["{}"],"hidden_size":16,"intermediate_size":24,"num_hidden_layers":{},)"
      R"("num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,"vocab_size":20,)"
      R"("max_position_embeddings":64}})",
      architecture, num_layers);
  return parse_model_config(json, architecture).value();
}

// A model of dummy weights, which depend on their names alone, after a step over kTapTokens.
std::unique_ptr<Model> run_tap_tokens(const ModelConfig& config, Ops& ops,
                                      const ModelLimits& limits) {
  DummyWeights weights(DType::kF32);
  auto model = load_model(config, weights, ops, limits).value();
  const auto attention = make_reference_attention();
  ModelHarness harness(*model, *attention, limits);
  EXPECT_TRUE(harness.step({{0, kTapTokens}}).ok());
  return model;
}

// [tokens, hidden] of one tap.
std::vector<float> tap_rows(const Model& model, size_t tap) {
  const TensorView taps = model.taps();
  std::vector<float> rows;
  for (size_t token = 0; token < kTapTokens.size(); ++token) {
    const float* row =
        taps.as<float>() + token * static_cast<size_t>(taps.shape[1]) + tap * size_t{16};
    rows.insert(rows.end(), row, row + 16);
  }
  return rows;
}

// rms_norm(rows) with the dummy weights of the final norm.
std::vector<float> final_norm(std::vector<float> rows, bool is_gemma) {
  DummyWeights weights(DType::kF32);
  const TensorView stored = weights.tensor("model.norm.weight", {16}).value();
  std::vector<float> weight(stored.as<float>(), stored.as<float>() + 16);
  for (float& value : weight) value += is_gemma ? 1.0F : 0.0F;
  ReferenceOps ops;
  const TensorView view = {rows.data(), DType::kF32, {static_cast<int64_t>(rows.size() / 16), 16}};
  ops.residual_norm({.residual = view, .weight = weight.data(), .eps = 1e-6F}, view);
  return rows;
}

// The output of a model's last layer after the final norm, by token.
std::vector<float> last_states(Model& model) {
  std::vector<float> states(kTapTokens.size() * 16);
  for (int32_t token = 0; token < static_cast<int32_t>(kTapTokens.size()); ++token) {
    const TensorView row = {states.data() + token * 16, DType::kF32, {1, 16}};
    EXPECT_TRUE(model.hidden_states(&token, 1, row).ok());
  }
  return states;
}

// The tap of layer i is the output of a model of i layers.
TEST(Taps, AreTheInputsOfTheirLayers) {
  ReferenceOps separate;
  FusedTailOps fused;
  ModelLimits limits = small_limits();
  limits.tapped_layers = {0, 1, 3, 4};
  for (const char* architecture : {"LlamaForCausalLM", "Gemma2ForCausalLM", "MixtralForCausalLM"}) {
    const bool is_gemma = std::string_view(architecture).starts_with("Gemma");
    for (Ops* ops : {static_cast<Ops*>(&separate), static_cast<Ops*>(&fused)}) {
      const auto model = run_tap_tokens(tap_config(architecture, 4), *ops, limits);
      EXPECT_EQ(model->taps().shape, (Shape{limits.max_num_tokens, 4 * 16}));
      for (const size_t tap : {1, 2, 3}) {
        const int layer = limits.tapped_layers[tap];
        const auto shorter =
            run_tap_tokens(tap_config(architecture, layer), separate, small_limits());
        EXPECT_EQ(shorter->taps().data, nullptr);
        if (layer == 4) {
          EXPECT_EQ(last_states(*model), last_states(*shorter)) << "taps change nothing";
        }
        expect_near_all(final_norm(tap_rows(*model, tap), is_gemma), last_states(*shorter));
      }
      std::vector<float> embedded(kTapTokens.size() * 16);
      ops->embed(*model->embeddings(), kTapTokens.data(), is_gemma ? 4.0F : 1.0F,
                 {embedded.data(), DType::kF32, {5, 16}});
      EXPECT_EQ(tap_rows(*model, 0), embedded);
    }
  }
}

TEST(Taps, CountAsActivations) {
  const ModelConfig config = small_config();
  ModelLimits limits = small_limits();
  ReferenceOps ops;
  const int64_t without = estimate_activation_bytes(config, limits, ops).value();
  limits.tapped_layers = {0, 1};
  EXPECT_EQ(estimate_activation_bytes(config, limits, ops).value(),
            without + int64_t{limits.max_num_tokens} * 2 * 16 * 4);
  limits.tapped_layers = {1, 0};
  DummyWeights weights(DType::kF32);
  EXPECT_DEATH((void)load_model(config, weights, ops, limits), "not ascending layers");
}

TEST(Fp8Checkpoint, IsTheModelOfItsNumbers) {
  constexpr WeightScheme kSchemes[] = {{DType::kF8E4M3, ScaleLayout::kTensor},
                                       {DType::kF8E4M3, ScaleLayout::kRows},
                                       {DType::kF8E4M3, ScaleLayout::kBlocks, 4, 4}};
  for (const WeightScheme& scheme : kSchemes) {
    Fp8Weights plain(scheme, true);
    Fp8Weights scaled(scheme, false);
    ReferenceOps reference;
    const std::vector<float> expected = prompt_logits(small_config(), plain, reference, {0, 1});
    EXPECT_EQ(prompt_logits(fp8_config(scheme), scaled, reference, {0, 1}), expected)
        << describe(scheme);
    ThreadPool pool(1);
    const auto cpu = make_cpu_ops(pool);
    expect_near_all(prompt_logits(fp8_config(scheme), scaled, *cpu, {0, 1}), expected);
    for (const std::vector<float>& logits :
         logits_of_ranks(fp8_config(scheme), [&scheme] { return Fp8Weights(scheme, false); })) {
      expect_near_all(logits, expected);
    }
  }
}

TEST(Fp8Checkpoint, NamesTensorsThatDoNotFitTheFormat) {
  ReferenceOps ops;
  const WeightScheme blocks = {DType::kF8E4M3, ScaleLayout::kBlocks, 8, 8};
  Fp8Weights scaled(blocks, false);
  EXPECT_THAT(load_model(small_config(), scaled, ops, small_limits()).status().message(),
              AllOf(HasSubstr("q_proj.weight"), HasSubstr("got fp8_e4m3, expected f32")));
}

// The border between two ranks is at 12 of the 24 rows of the MLP.
TEST(Fp8Checkpoint, RanksMayCutBlocksOfScales) {
  const WeightScheme blocks = {DType::kF8E4M3, ScaleLayout::kBlocks, 8, 8};
  const auto make_source = [&] { return Fp8Weights(blocks, false); };
  Fp8Weights weights = make_source();
  ReferenceOps one_rank;
  const std::vector<float> expected = prompt_logits(fp8_config(blocks), weights, one_rank, {0, 1});
  for (const auto& logits : logits_of_ranks(fp8_config(blocks), make_source)) {
    expect_near_all(logits, expected);
  }
}

// The matrices of a source that are in memory.
std::span<const WeightView> stored_in(const LinearSource& source) {
  const auto* const stored = std::get_if<StoredMatrices>(&source.numbers);
  return stored == nullptr ? std::span<const WeightView>() : stored->each;
}

// Takes blocks of 8 x 8 alone, as a GPU takes those of 128 x 128.
class WholeBlockOps final : public RankOps {
 public:
  using RankOps::RankOps;
  bool needs_whole_blocks() const override { return true; }
  Result<std::unique_ptr<Linear>> make_linear(const LinearSource& source) override {
    for (const WeightView& weight : stored_in(source)) {
      const WeightScheme& scheme = weight.scheme;
      if (!has_fp8_blocks(scheme)) continue;
      if (scheme.block_rows != 8 || scheme.block_columns != 8) return unimplemented("cut blocks");
      EXPECT_EQ(weight.scales.shape, scales_shape(scheme, weight.values.shape));
    }
    return RankOps::make_linear(source);
  }
};

constexpr WeightScheme kBlocksOf8 = {DType::kF8E4M3, ScaleLayout::kBlocks, 8, 8};

ModelConfig in_blocks_of_8(ModelConfig config) {
  config.format = fp8_config(kBlocksOf8).format;
  return config;
}

// The MLPs' inner sizes are 3 and 5 blocks: 2 ranks have different numbers of blocks, and of 3
// blocks the last of 4 ranks has none. DeepSeek's experts have one block of 8, which two ranks
// share.
TEST(Fp8Checkpoint, RanksHaveWholeBlocksIfTheDeviceNeedsThem) {
  const auto make_source = [] { return Fp8Weights(kBlocksOf8, false); };
  const auto parsed = [](std::string_view json) {
    return parse_model_config(json, "test").value();
  };
  for (const ModelConfig& plain : {small_config(), small_config(biased_decoder()), parsed(kQwenMoe),
                                   parsed(kMixtral), parsed(kDeepseek)}) {
    const ModelConfig config = in_blocks_of_8(plain);
    SCOPED_TRACE(config.architecture);
    Fp8Weights weights = make_source();
    ReferenceOps one_rank;
    const std::vector<float> expected = prompt_logits(config, weights, one_rank, {0, 1});
    for (const int num_ranks : {2, 4}) {
      if (num_ranks == 4 && decoder_config(config).mla) continue;  // a rank would have 1.5 blocks
      for (const auto& logits : logits_of_ranks<WholeBlockOps>(config, make_source, num_ranks)) {
        expect_near_all(logits, expected);
      }
    }
  }
}

// The heads of 4 ranks have 12 columns of o.
TEST(Fp8Checkpoint, HeadsThatCutABlockAreRefusedIfTheDeviceNeedsWholeOnes) {
  const ModelConfig config = in_blocks_of_8(parse_model_config(kDeepseek, "deepseek").value());
  Fp8Weights weights(kBlocksOf8, false);
  RankOps::Rendezvous rendezvous(1);
  const WholeBlockOps ops(rendezvous, 0);
  EXPECT_TRUE(check_slices(config, weights, ops, {1, 2}).ok());
  EXPECT_TRUE(check_slices(config, weights, ReferenceOps(), {0, 4}).ok());
  EXPECT_THAT(check_slices(config, weights, ops, {0, 4}).message(),
              AllOf(HasSubstr("model.layers.0.self_attn.o_proj.weight"),
                    HasSubstr("got [16, 12] of its [16, 48], expected multiples of 8 x 8"),
                    HasSubstr("tensor_parallel_size")));
}

// Writes every tensor out.
class UnrepeatedWeights : public DummyWeights {
 public:
  using DummyWeights::DummyWeights;
  Result<std::optional<RepeatedTensor>> repeated(std::string_view /*name*/) override {
    return std::optional<RepeatedTensor>();
  }
};

// Each rank quantizes whole rows.
TEST(Fp8AtLoad, ScalesDoNotDependOnTheNumberOfRanks) {
  for (ModelConfig config : {small_config(), parse_model_config(kMixtral, "mixtral").value(),
                             parse_model_config(kDeepseek, "deepseek").value()}) {
    config.format = fp8_at_load();
    const auto make_source = [] { return DummyWeights(DType::kBF16); };
    DummyWeights weights = make_source();
    ReferenceOps reference;
    const std::vector<float> expected = prompt_logits(config, weights, reference, {0, 1});
    for (const std::vector<float>& logits : logits_of_ranks(config, make_source)) {
      expect_near_all(logits, expected);
    }
    UnrepeatedWeights in_memory(DType::kBF16);
    EXPECT_EQ(prompt_logits(config, in_memory, reference, {0, 1}), expected);
    ModelConfig plain = config;
    plain.format.reset();
    EXPECT_NE(prompt_logits(plain, weights, reference, {0, 1}), expected);
  }
}

// Has a NaN in one tensor.
class BrokenWeights : public UnrepeatedWeights {
 public:
  explicit BrokenWeights(std::string broken)
      : UnrepeatedWeights(DType::kF32), broken_(std::move(broken)) {}

  Result<TensorView> tensor(std::string_view name, const Shape& expected) override {
    QUIRE_ASSIGN_OR_RETURN(const TensorView view, DummyWeights::tensor(name, expected));
    const int64_t first = expected.rank() > 1 ? 2 * expected[1] : 0;
    if (name == broken_) view.as<float>()[first + 3] = std::nanf("");
    return view;
  }

 private:
  std::string broken_;
};

// Fails as a GPU does, without the tensor's name.
class RefusingOps : public ReferenceOps {
 public:
  Result<std::unique_ptr<Linear>> make_linear(const LinearSource& source) override {
    const auto* const plain = std::get_if<MatricesToQuantize>(&source.numbers);
    if (plain != nullptr) {
      for (const WeightView& matrix : std::get<StoredMatrices>(plain->from).each) {
        if (!check_finite(matrix.values).ok()) return invalid_argument("not finite");
      }
    }
    return ReferenceOps::make_linear(source);
  }
};

TEST(Fp8AtLoad, NamesTheTensorThatADeviceCannotQuantize) {
  const ModelConfig moe = parse_model_config(kMixtral, "mixtral").value();
  const std::pair<ModelConfig, std::string> cases[] = {
      {small_config(), "model.layers.1.self_attn.k_proj.weight"},
      {moe, "model.layers.1.mlp.experts.3.up_proj.weight"}};
  for (auto [config, name] : cases) {
    config.format = fp8_at_load();
    BrokenWeights weights(name);
    RefusingOps ops;
    EXPECT_THAT(load_model(config, weights, ops, small_limits()).status().message(),
                AllOf(HasSubstr(name), HasSubstr("cannot be quantized; got an infinity or a NaN in "
                                                 "row 2")));
  }
}

TEST(ModelLoader, NamesAVectorThatIsNotFinite) {
  const std::string name = "model.layers.1.input_layernorm.weight";
  BrokenWeights weights(name);
  ReferenceOps ops;
  EXPECT_THAT(load_model(small_config(), weights, ops, small_limits()).status().message(),
              AllOf(HasSubstr(name), HasSubstr("is damaged; got an infinity or a NaN in row 3")));
}

TEST(Fp8Checkpoint, ScalesOfInputsAreRead) {
  const WeightScheme scheme = {DType::kF8E4M3, ScaleLayout::kTensor};
  Fp8Weights weights(scheme, false);
  ModelConfig config = fp8_config(scheme);
  config.format->input_scale_suffix = Fp8Weights::kInputSuffix;
  ReferenceOps ops;
  EXPECT_TRUE(load_model(config, weights, ops, small_limits()).ok());
  EXPECT_EQ(weights.num_input_scales(), 2 * 7) << "one per matrix of the layers";
}

TEST(WeightBytes, ComeFromTheTypesInTheCheckpoint) {
  const ModelConfig config = small_config();
  const int64_t num_vectors = 2 * 2 * 16 + 16;  // norms, kept in F32
  const int64_t num_matrix = num_parameters(config) - num_vectors;
  ThreadPool pool(1);
  const auto cpu = make_cpu_ops(pool);
  ReferenceOps in_f32;
  const DummyWeights bf16(DType::kBF16);
  EXPECT_EQ(plan_weights(config, bf16, *cpu, {}).value().num_bytes,
            2 * num_matrix + 4 * num_vectors);
  EXPECT_EQ(plan_weights(config, bf16, in_f32, {}).value().num_bytes,
            4 * num_matrix + 4 * num_vectors);
  // The CPU multiplies FP8 by its scales, into the type that the model had before. The embeddings
  // are not quantized, and each rank holds all of them.
  WeightScheme rows = {DType::kF8E4M3, ScaleLayout::kRows};
  const Fp8Weights fp8(rows, false);
  EXPECT_EQ(plan_weights(fp8_config(rows), fp8, *cpu, {}).value().num_bytes,
            4 * (num_matrix + num_vectors));
  const int64_t num_ends = 2 * 20 * 16;
  rows.dequantized_dtype = DType::kBF16;
  EXPECT_EQ(plan_weights(fp8_config(rows), fp8, *cpu, {}).value().num_bytes,
            2 * (num_matrix - num_ends) + 4 * (num_ends + num_vectors));
  // Without quantized values in the checkpoint, its types count, unless they are quantized at load.
  ModelConfig at_load = fp8_config(rows);
  EXPECT_EQ(plan_weights(at_load, DummyWeights(DType::kF32), *cpu, {}).value().num_bytes,
            4 * (num_matrix + num_vectors));
  at_load.format->at_load = true;
  EXPECT_EQ(plan_weights(at_load, DummyWeights(DType::kF32), *cpu, {}).value().num_bytes,
            2 * (num_matrix - num_ends) + 4 * (num_ends + num_vectors));
  EXPECT_EQ(plan_weights(config, bf16, *cpu, {0, 2}).value().num_bytes,
            num_matrix + 4 * num_vectors);
}

TEST(WeightBytes, CountIntegersAsTheDeviceKeepsThem) {
  ModelConfig config = small_config();
  WeightFormat format = {.scheme = {.values = DType::kI8, .scales = ScaleLayout::kRows},
                         .scales_suffix = ".weight_scale",
                         .packing = Packing::kCompressed};
  config.format = format;
  const int64_t num_vectors = 2 * 2 * 16 + 16;
  const int64_t num_ends = 2 * 20 * 16;
  const int64_t num_matrix = num_parameters(config) - num_vectors;
  const DummyWeights weights(DType::kF32);
  ThreadPool pool(1);
  const auto cpu = make_cpu_ops(pool);
  ReferenceOps in_f32;
  EXPECT_EQ(plan_weights(config, weights, in_f32, {}).value().num_bytes,
            4 * (num_matrix + num_vectors));
  const int64_t bytes = plan_weights(config, weights, *cpu, {}).value().num_bytes;
  EXPECT_GT(bytes, num_matrix - num_ends + 4 * (num_ends + num_vectors));
  EXPECT_LT(bytes, 4 * (num_matrix + num_vectors));
  EXPECT_EQ(
      describe_quantization(config, weights, *cpu, plan_weights(config, weights, *cpu, {}).value()),
      "8-bit integers with a scale per row, computed as they are");
  EXPECT_EQ(describe_quantization(config, weights, in_f32,
                                  plan_weights(config, weights, in_f32, {}).value()),
            "8-bit integers with a scale per row, expanded to f32 at load");
  config.format->scheme.dequantized_dtype = DType::kBF16;
  for (Ops* ops : {cpu.get(), static_cast<Ops*>(&in_f32)}) {
    DummyWeights source(DType::kBF16);
    const auto model = load_model(config, source, *ops, small_limits());
    EXPECT_TRUE(model.ok()) << model.status().message();
  }
}

TEST(WeightBytes, CountTheOrderOfColumnsOncePerStack) {
  ModelConfig config = small_config();
  config.format = {.scheme = {.values = DType::kI8, .scales = ScaleLayout::kRows},
                   .scales_suffix = ".scales",
                   .packing = Packing::kGptq};
  const DummyWeights weights(DType::kF32);
  ThreadPool pool(1);
  const auto cpu = make_cpu_ops(pool);
  ReferenceOps in_f32;
  const auto bytes = [&](const Ops& ops) {
    return plan_weights(config, weights, ops, {}).value().num_bytes;
  };
  const int64_t in_order = bytes(*cpu);
  const int64_t expanded = bytes(in_f32);
  config.format->has_column_groups = true;
  // Per layer: queries, keys and values; o; gate and up; down.
  EXPECT_EQ(bytes(*cpu), in_order + 2 * 4 * (16 + 32 + 16 + 24));
  EXPECT_EQ(bytes(in_f32), expanded);
}

// Keeps FP8 with its scales, and counts the bytes of the matrices that it is given and of the
// buffers.
class Fp8Ops final : public ReferenceOps {
 public:
  explicit Fp8Ops(bool needs_whole_blocks) : needs_whole_blocks_(needs_whole_blocks) {}
  bool needs_whole_blocks() const override { return needs_whole_blocks_; }
  Result<Tensor> allocate(const Shape& shape, DType dtype) override {
    num_buffer_bytes += shape.num_elements() * static_cast<int64_t>(dtype_bytes(dtype));
    return ReferenceOps::allocate(shape, dtype);
  }
  bool merges_shared_experts(const ExpertsShape& /*shape*/) const override { return true; }
  Result<DType> linear_dtype(const WeightScheme& scheme) const override {
    return scheme.values == DType::kF8E4M3 ? scheme.values : DType::kF32;
  }
  Result<std::unique_ptr<Linear>> make_linear(const LinearSource& source) override {
    for (const WeightView& weight : stored_in(source)) {
      num_bytes += static_cast<int64_t>(weight.values.num_bytes());
      if (weight.scales.data == nullptr) continue;
      num_bytes += static_cast<int64_t>(weight.scales.num_bytes());
    }
    return ReferenceOps::make_linear(source);
  }

  int64_t num_bytes = 0;
  int64_t num_buffer_bytes = 0;

 private:
  bool needs_whole_blocks_;
};

// Checks the plan of one rank's weights and buffers against what its load makes. Its vectors have
// `num_vector_bytes`.
void expect_planned(const ModelConfig& config, int64_t num_vector_bytes, bool needs_whole_blocks,
                    const Parallel& parallel) {
  SCOPED_TRACE(fmt::format("{}, whole blocks: {}, rank {} of {}", config.architecture,
                           needs_whole_blocks, parallel.rank, parallel.size));
  Fp8Weights weights(config.format->scheme, false);
  Fp8Ops ops(needs_whole_blocks);
  ModelLimits limits = small_limits();
  limits.max_num_tokens = 64;
  limits.parallel = parallel;
  ASSERT_TRUE(load_model(config, weights, ops, limits).ok());
  EXPECT_EQ(plan_weights(config, weights, ops, parallel).value().num_bytes,
            num_vector_bytes + ops.num_bytes);
  const int64_t logits = int64_t{limits.max_num_logit_rows} * config.vocab_size * 4;
  EXPECT_EQ(estimate_activation_bytes(config, limits, ops).value(), ops.num_buffer_bytes + logits);
}

TEST(WeightBytes, CountTheScalesOfBlocksThatABorderCuts) {
  constexpr int64_t kNormBytes = 4 * (2 * 2 * 16 + 16);
  for (const int64_t block : {4, 8, 16}) {
    const WeightScheme scheme = {DType::kF8E4M3, ScaleLayout::kBlocks, block, block};
    for (const int num_ranks : {1, 2, 4}) {
      for (int rank = 0; rank < num_ranks; ++rank) {
        for (const bool needs_whole_blocks : {false, true}) {
          expect_planned(fp8_config(scheme), kNormBytes, needs_whole_blocks, {rank, num_ranks});
        }
      }
    }
  }
}

TEST(WeightBytes, CountTheWholeBlocksOfExperts) {
  const ModelConfig config = in_blocks_of_8(parse_model_config(kQwenMoe, "qwen").value());
  constexpr int64_t kNormBytes = 4 * (2 * (2 * 16 + 2 * 8) + 16);
  for (int rank = 0; rank < 4; ++rank) expect_planned(config, kNormBytes, true, {rank, 4});
}

// Rank 0 has 8 of the 15 blocks of a wide MLP, and needs buffers for gate, up and their product.
TEST(WeightBytes, LeaveRoomForTheProductsOfWholeBlocks) {
  DecoderConfig decoder = small_decoder();
  decoder.intermediate_size = 15 * 8;
  const ModelConfig config = in_blocks_of_8(small_config(decoder));
  ModelLimits limits = small_limits();
  limits.max_num_tokens = 64;
  limits.parallel = {.rank = 0, .size = 2};
  EXPECT_EQ(estimate_activation_bytes(config, limits, Fp8Ops(true)).value(),
            estimate_activation_bytes(config, limits, Fp8Ops(false)).value() +
                int64_t{64} * 3 * (64 - 60) * 4);
  expect_planned(config, 4 * (2 * 2 * 16 + 16), true, limits.parallel);
}

// Two shared experts of 3 blocks each are merged with the others, but not if 2 ranks have 2 blocks
// and 1 of each: as one MLP, they are 3 blocks per rank.
TEST(WeightBytes, CountTheWholeBlocksOfSharedExperts) {
  std::string json(kDeepseek);
  json.replace(json.find(R"("moe_intermediate_size":8,"n_shared_experts":1)"), 46,
               R"("moe_intermediate_size":24,"n_shared_experts":2)");
  const ModelConfig config = in_blocks_of_8(parse_model_config(json, "deepseek").value());
  constexpr int64_t kNormBytes = 4 * (2 * (2 * 16 + 8 + 16) + 16);
  expect_planned(config, kNormBytes, true, {0, 1});
  for (int rank = 0; rank < 2; ++rank) expect_planned(config, kNormBytes, true, {rank, 2});
}

TEST(WeightBytes, AreThoseOfTheLoadedModel) {
  // Loading requests exactly the tensors that a family lists.
  for (const char* architecture :
       {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM",
        "MiMoForCausalLM", "Qwen3MoeForCausalLM", "MixtralForCausalLM", "Gemma2ForCausalLM",
        "Gemma3ForCausalLM"}) {
    const std::string json =
        std::string(R"({"architectures":[")") + architecture +
        R"("],"hidden_size":16,"intermediate_size":24,"num_hidden_layers":2,"head_dim":8,)"
        R"("num_attention_heads":4,"num_key_value_heads":2,"vocab_size":20,)"
        R"("max_position_embeddings":64})";
    const ModelConfig config = parse_model_config(json, architecture).value();
    const ListedWeights weights(config);
    std::set<std::string> listed;
    for (const TensorSpec& tensor : list_tensors(config)) listed.insert(tensor.name);
    EXPECT_EQ(listed, weights.names_) << architecture;
  }
}

TEST(ModelLoader, GemmaAsksForItsNormsAndTiesItsHead) {
  const std::string json =
      R"({"architectures":["Gemma3ForConditionalGeneration"],"text_config":{"hidden_size":16,)"
      R"("intermediate_size":24,"num_hidden_layers":1,"head_dim":8,"num_attention_heads":4,)"
      R"("num_key_value_heads":2,"vocab_size":20,"max_position_embeddings":64,)"
      R"("sliding_window":8}})";
  const ModelConfig config = parse_model_config(json, "gemma").value();
  ListedWeights weights(config);
  EXPECT_EQ(weights.names_.size(), 2U + 7 + 2 + 4);
  EXPECT_TRUE(weights.has("model.layers.0.post_feedforward_layernorm.weight"));
  weights.names_.insert("lm_head.weight");
  EXPECT_EQ(load_error(config, weights), "");
  weights.names_.insert("model.layers.1.self_attn.q_proj.weight");
  EXPECT_THAT(load_error(config, weights), HasSubstr("layers.1.self_attn.q_proj"));
}

}  // namespace
}  // namespace quire::testing
