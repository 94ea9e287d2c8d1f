#include "model/tensor_layout.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "model/model_loader.h"
#include "model/weights.h"
#include "ops/host_matrices.h"
#include "support/drafter_parts.h"
#include "support/fp8_checkpoint.h"
#include "support/integer_checkpoint.h"
#include "support/reference_layer.h"
#include "support/reference_ops.h"
#include "support/value_of.h"
#include "tensor/checkpoint.h"
#include "tensor/forwarding_source.h"

namespace quire::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr int kHidden = 32;
constexpr int kQueryRows = 256;
constexpr int kKeyRows = 128;
constexpr int kInner = 128;
constexpr int kExperts = 3;
constexpr int kLayers = 2;

std::string config_json(std::string_view architecture, std::string_view fields) {
  return fmt::format(
      R"({{"architectures":["{}"],"hidden_size":{},"intermediate_size":{},"num_hidden_layers":{},)"
      R"("num_attention_heads":4,"num_key_value_heads":2,"head_dim":64,"vocab_size":20,)"
      R"("max_position_embeddings":64,"torch_dtype":"float32",{}}})",
      architecture, kHidden, kInner, kLayers, fields);
}

const std::string kDense =
    config_json("LlamaForCausalLM", R"("attention_bias":true,"mlp_bias":true)");
const std::string kSparse = config_json(
    "Qwen3MoeForCausalLM",
    R"("num_experts":3,"num_experts_per_tok":2,"moe_intermediate_size":128,"mlp_only_layers":[1])");

ModelConfig config_of(std::string_view json) {
  return parse_model_config(json, "config.json").value();
}

std::vector<TensorSpec> specs_of(const ModelConfig& config) {
  return list_tensors(config);
}

// The decoder's tensors, in F32 and one per matrix.
StoredTensors random_model(std::string_view json) {
  RandomTensors random(3);
  for (const TensorSpec& spec : specs_of(config_of(json))) {
    std::vector<int64_t> shape;
    for (int axis = 0; axis < spec.shape.rank(); ++axis) shape.push_back(spec.shape[axis]);
    random.add(spec.name, shape, 0.0F);
  }
  return std::move(random.tensors);
}

const FusedMatrix kFusedQkv = {
    .stored = "self_attn.qkv_proj",
    .parts = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}};
const FusedMatrix kFusedGateUp = {.stored = "mlp.gate_up_proj",
                                  .parts = {"mlp.gate_proj", "mlp.up_proj"}};

// The names and the fused matrices of a checkpoint like Phi-3's inside of a multimodal one.
const TensorLayout kFusedLayout = {
    .renames = {{.stored = "language_model"}, {"attention_norm", "input_layernorm"}},
    .fused = {kFusedQkv, kFusedGateUp},
    .ignored_prefixes = {"vision_tower."}};

size_t element_bytes(const StoredTensor& tensor) {
  size_t elements = 1;
  for (const int64_t extent : tensor.shape) elements *= static_cast<size_t>(extent);
  return tensor.bytes.size() / elements;
}

// One tensor after the other along the first axis.
StoredTensor concatenated(const std::vector<StoredTensor>& tensors) {
  StoredTensor all = tensors.front();
  for (const StoredTensor& tensor : std::span(tensors).subspan(1)) {
    all.shape[0] += tensor.shape[0];
    all.bytes.insert(all.bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
  return all;
}

// The tensors along a new first axis.
StoredTensor stacked(const std::vector<StoredTensor>& tensors) {
  StoredTensor all = concatenated(tensors);
  all.shape = tensors.front().shape;
  all.shape.insert(all.shape.begin(), static_cast<int64_t>(tensors.size()));
  return all;
}

StoredTensor transposed(const StoredTensor& tensor) {
  StoredTensor out = tensor;
  std::swap(out.shape[0], out.shape[1]);
  const size_t size = element_bytes(tensor);
  const auto rows = static_cast<size_t>(tensor.shape[0]);
  const auto columns = static_cast<size_t>(tensor.shape[1]);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t column = 0; column < columns; ++column) {
      std::memcpy(&out.bytes[(column * rows + row) * size],
                  &tensor.bytes[(row * columns + column) * size], size);
    }
  }
  return out;
}

std::string layer(int idx) {
  return fmt::format("model.layers.{}.", idx);
}

// Replaces tensors of F32 parts by the fused tensor.
void fuse(StoredTensors& tensors, const std::string& before, const FusedMatrix& fused) {
  for (const char* suffix : {".weight", ".bias"}) {
    std::vector<StoredTensor> parts;
    for (const std::string& part : fused.parts) {
      const auto found = tensors.find(before + part + suffix);
      if (found == tensors.end()) continue;
      parts.push_back(found->second);
      tensors.erase(found);
    }
    if (!parts.empty()) tensors[before + fused.stored + suffix] = concatenated(parts);
  }
}

void fuse_layers(StoredTensors& tensors) {
  for (int i = 0; i < kLayers; ++i) {
    fuse(tensors, layer(i), kFusedQkv);
    fuse(tensors, layer(i), kFusedGateUp);
  }
}

// The decoder's names as kFusedLayout has them.
StoredTensors with_stored_names(const StoredTensors& tensors) {
  StoredTensors renamed;
  for (const auto& [name, tensor] : tensors) {
    std::string stored = "language_model." + name;
    const size_t norm = stored.find("input_layernorm");
    if (norm != std::string::npos) stored.replace(norm, 15, "attention_norm");
    renamed[stored] = tensor;
  }
  return renamed;
}

// A file, and its tensors as the decoder reads them.
struct Arranged {
  Arranged(const StoredTensors& tensors, const TensorLayout& layout,
           std::span<const TensorSpec> specs)
      : bytes(safetensors_file(tensors)) {
    auto opened =
        apply_layout(Checkpoint::from_memory(bytes, "model.safetensors").value(), layout, specs);
    if (opened.ok()) {
      source = std::move(opened).value();
    } else {
      error = opened.status().message();
    }
  }

  bool contains(const void* data) const {
    return std::less_equal<const void*>()(bytes.data(), data) &&
           std::less<const void*>()(data, bytes.data() + bytes.size());
  }

  std::vector<std::byte> bytes;
  std::unique_ptr<WeightSource> source;
  std::string error;
};

// Expects the source to have these tensors, bit for bit, and no others.
void expect_tensors(WeightSource& source, const StoredTensors& expected) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : expected) names.push_back(name);
  EXPECT_EQ(source.names(), names);
  for (const auto& [name, tensor] : expected) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(source.has(name));
    if (name.ends_with("weight_shape")) {
      std::vector<int64_t> extents(2);
      std::memcpy(extents.data(), tensor.bytes.data(), tensor.bytes.size());
      EXPECT_EQ(value_of(source.integers(name, 2)), extents);
      continue;
    }
    const TensorView view = value_of(source.tensor(name, Shape(std::span(tensor.shape))));
    ASSERT_EQ(view.num_bytes(), tensor.bytes.size());
    EXPECT_EQ(std::memcmp(view.data, tensor.bytes.data(), tensor.bytes.size()), 0);
    source.release(name);
  }
}

TEST(TensorLayout, ReadsFusedMatricesUnderOtherNames) {
  const StoredTensors model = random_model(kDense);
  StoredTensors stored = model;
  fuse_layers(stored);
  const Arranged file(with_stored_names(stored), kFusedLayout, specs_of(config_of(kDense)));
  ASSERT_EQ(file.error, "");
  expect_tensors(*file.source, model);
  EXPECT_EQ(file.source->name_in_file("model.layers.1.self_attn.k_proj.bias"),
            "language_model.model.layers.1.self_attn.qkv_proj.bias");
  EXPECT_EQ(file.source->name_in_file("model.layers.0.input_layernorm.weight"),
            "language_model.model.layers.0.attention_norm.weight");
  EXPECT_EQ(file.source->file_of("model.layers.1.self_attn.k_proj.bias"), "model.safetensors");
  EXPECT_EQ(file.source->dtype_of("model.layers.1.self_attn.k_proj.bias"), DType::kF32);
}

TEST(TensorLayout, PartsMayBeMatricesOfTheirOwn) {
  const StoredTensors model = random_model(kDense);
  StoredTensors stored = model;
  fuse(stored, layer(1), kFusedQkv);
  const Arranged file(stored, {.renames = {}, .fused = {kFusedQkv, kFusedGateUp}},
                      specs_of(config_of(kDense)));
  ASSERT_EQ(file.error, "");
  expect_tensors(*file.source, model);
}

TEST(TensorLayout, ReadsFusedIntegers) {
  const std::vector<TensorSpec> plain = specs_of(config_of(kDense));
  const StoredTensors model = random_model(kDense);
  StoredTensors fused = model;
  fuse_layers(fused);
  for (const IntegerFormat& format :
       {IntegerFormat{.tool = IntegerTool::kAwq, .group_size = 16},
        IntegerFormat{.tool = IntegerTool::kAwq, .group_size = -1, .scales = "BF16"},
        IntegerFormat{.tool = IntegerTool::kGptq, .group_size = 32},
        IntegerFormat{.tool = IntegerTool::kGptq, .group_size = 16, .act_order = true},
        IntegerFormat{.tool = IntegerTool::kGptqV2, .bits = 8, .group_size = 16},
        IntegerFormat{.tool = IntegerTool::kCompressedPack, .group_size = 16, .symmetric = true},
        IntegerFormat{.tool = IntegerTool::kCompressedPack, .group_size = 16, .act_order = true},
        IntegerFormat{.tool = IntegerTool::kCompressedPack, .bits = 8, .group_size = -1},
        IntegerFormat{.tool = IntegerTool::kCompressedBytes, .bits = 8, .group_size = -1}}) {
    // Groups have columns of one row, so that the parts are quantized as their matrix is.
    const IntegerCheckpoint parts = quantize_integers(kDense, safetensors_file(model), format);
    const IntegerCheckpoint whole = quantize_integers(kDense, safetensors_file(fused), format);
    SCOPED_TRACE(parts.config_json);
    const Arranged file(with_stored_names(whole.tensors), kFusedLayout,
                        specs_of(config_of(whole.config_json)));
    ASSERT_EQ(file.error, "");
    expect_tensors(*file.source, parts.tensors);
  }
}

TEST(TensorLayout, ReadsFusedFp8) {
  const StoredTensors model = random_model(kDense);
  StoredTensors fused = model;
  fuse_layers(fused);
  // The rows of all parts are whole blocks of 128.
  for (const Fp8Tool tool :
       {Fp8Tool::kCompressedChannel, Fp8Tool::kCompressedBlock, Fp8Tool::kHuggingFaceBlock}) {
    const Fp8Checkpoint parts = quantize_checkpoint(kDense, safetensors_file(model), tool);
    const Fp8Checkpoint whole = quantize_checkpoint(kDense, safetensors_file(fused), tool);
    SCOPED_TRACE(parts.config_json);
    const Arranged file(with_stored_names(whole.tensors), kFusedLayout,
                        specs_of(config_of(whole.config_json)));
    ASSERT_EQ(file.error, "");
    expect_tensors(*file.source, parts.tensors);
  }
}

TEST(TensorLayout, PartsShareAScaleOfTheirMatrix) {
  StoredTensors fused = random_model(kDense);
  fuse_layers(fused);
  const Fp8Checkpoint whole =
      quantize_checkpoint(kDense, safetensors_file(fused), Fp8Tool::kHuggingFaceTensor);
  const Arranged file(whole.tensors, {.renames = {}, .fused = {kFusedQkv, kFusedGateUp}},
                      specs_of(config_of(whole.config_json)));
  ASSERT_EQ(file.error, "");
  for (const char* suffix : {".weight_scale", ".input_scale"}) {
    const StoredTensor& scale = whole.tensors.at(layer(0) + kFusedQkv.stored + suffix);
    for (const std::string& part : kFusedQkv.parts) {
      const TensorView view = value_of(file.source->tensor(layer(0) + part + suffix, {1, 1}));
      EXPECT_EQ(std::memcmp(view.data, scale.bytes.data(), scale.bytes.size()), 0) << part;
    }
  }
}

// The experts of layer 0 of kSparse, whose gate and up matrices are stored as one.
std::vector<StoredTensor> tensors_of_experts(const StoredTensors& model, const std::string& end) {
  std::vector<StoredTensor> tensors;
  for (int i = 0; i < kExperts; ++i) {
    tensors.push_back(model.at(fmt::format("{}mlp.experts.{}.{}", layer(0), i, end)));
  }
  return tensors;
}

TensorLayout stack_layout(bool is_transposed) {
  return {.renames = {},
          .fused = {{.stored = "mlp.experts.gate_up_proj",
                     .parts = {"mlp.experts.*.gate_proj", "mlp.experts.*.up_proj"},
                     .is_transposed = is_transposed},
                    {.stored = "mlp.experts.down_proj",
                     .parts = {"mlp.experts.*.down_proj"},
                     .is_transposed = is_transposed}}};
}

// Replaces one kind of tensors of the experts by their stacks.
void stack_experts(StoredTensors& tensors, const std::string& suffix,
                   const std::string& stored_suffix, bool is_transposed) {
  const auto gates = tensors_of_experts(tensors, "gate_proj" + suffix);
  const auto ups = tensors_of_experts(tensors, "up_proj" + suffix);
  auto downs = tensors_of_experts(tensors, "down_proj" + suffix);
  std::vector<StoredTensor> gate_ups;
  for (size_t i = 0; i < gates.size(); ++i) {
    gate_ups.push_back(concatenated({gates[i], ups[i]}));
    if (!is_transposed) continue;
    gate_ups.back() = transposed(gate_ups.back());
    downs[i] = transposed(downs[i]);
  }
  const std::string before = layer(0) + "mlp.experts.";
  std::erase_if(tensors, [&](const auto& tensor) {
    return tensor.first.starts_with(before) && tensor.first.ends_with("_proj" + suffix);
  });
  tensors[before + "gate_up_proj" + stored_suffix] = stacked(gate_ups);
  tensors[before + "down_proj" + stored_suffix] = stacked(downs);
}

TEST(TensorLayout, ReadsStacksOfExperts) {
  const StoredTensors model = random_model(kSparse);
  for (const bool is_transposed : {false, true}) {
    for (const char* suffix : {"", ".weight"}) {
      StoredTensors stored = model;
      stack_experts(stored, ".weight", suffix, is_transposed);
      const Arranged file(stored, stack_layout(is_transposed), specs_of(config_of(kSparse)));
      SCOPED_TRACE(fmt::format("{} {}", is_transposed, suffix));
      ASSERT_EQ(file.error, "");
      expect_tensors(*file.source, model);
      EXPECT_EQ(file.source->name_in_file("model.layers.0.mlp.experts.2.up_proj.weight"),
                fmt::format("model.layers.0.mlp.experts.gate_up_proj{}", suffix));
    }
  }
}

TEST(TensorLayout, ReadsStacksInHalves) {
  StoredTensors model = random_model(kSparse);
  for (auto& [name, tensor] : model) {
    tensor.dtype = "BF16";
    tensor.bytes.resize(tensor.bytes.size() / 2);
  }
  StoredTensors stored = model;
  stack_experts(stored, ".weight", "", true);
  const Arranged file(stored, stack_layout(true), specs_of(config_of(kSparse)));
  ASSERT_EQ(file.error, "");
  expect_tensors(*file.source, model);
}

TEST(TensorLayout, BiasesOfExpertsAreNotTransposed) {
  StoredTensors model = random_model(kSparse);
  RandomTensors random(8);
  for (int i = 0; i < kExperts; ++i) {
    const std::string expert = fmt::format("{}mlp.experts.{}.", layer(0), i);
    random.add(expert + "gate_proj.bias", {kInner}, 0.0F);
    random.add(expert + "up_proj.bias", {kInner}, 0.0F);
    random.add(expert + "down_proj.bias", {kHidden}, 0.0F);
  }
  model.merge(random.tensors);
  StoredTensors stored = model;
  stack_experts(stored, ".weight", "", true);
  stack_experts(stored, ".bias", "_bias", false);
  const Arranged file(stored, stack_layout(true), specs_of(config_of(kSparse)));
  ASSERT_EQ(file.error, "");
  expect_tensors(*file.source, model);
}

TEST(TensorLayout, ReadsStacksOfFp8Blocks) {
  const Fp8Checkpoint parts = quantize_checkpoint(kSparse, safetensors_file(random_model(kSparse)),
                                                  Fp8Tool::kHuggingFaceBlock);
  StoredTensors stored = parts.tensors;
  stack_experts(stored, ".weight", "", false);
  stack_experts(stored, ".weight_scale_inv", "_scale_inv", false);
  const Arranged file(stored, stack_layout(false), specs_of(config_of(parts.config_json)));
  ASSERT_EQ(file.error, "");
  expect_tensors(*file.source, parts.tensors);
}

TEST(TensorLayout, ReadsStacksOfIntegers) {
  for (const IntegerTool tool : {IntegerTool::kAwq, IntegerTool::kGptq}) {
    const IntegerCheckpoint parts = quantize_integers(
        kSparse, safetensors_file(random_model(kSparse)), {.tool = tool, .group_size = 16});
    // These tensors have the rows last.
    StoredTensors stored = parts.tensors;
    for (const char* kind : {".qweight", ".qzeros", ".scales"}) {
      StoredTensors turned;
      for (const auto& [name, tensor] : stored) {
        if (name.find("experts.") != std::string::npos && name.ends_with(kind)) {
          turned[name] = transposed(tensor);
        }
      }
      stack_experts(turned, kind, kind, true);
      std::erase_if(stored, [&](const auto& tensor) {
        return tensor.first.find("experts.") != std::string::npos && tensor.first.ends_with(kind);
      });
      stored.merge(turned);
    }
    const std::string groups = ".g_idx";
    if (tool == IntegerTool::kGptq) {
      // One matrix has one order of columns.
      const std::string before = layer(0) + "mlp.experts.";
      stored[before + "gate_up_proj" + groups] =
          stacked(tensors_of_experts(stored, "up_proj.g_idx"));
      stored[before + "down_proj" + groups] =
          stacked(tensors_of_experts(stored, "down_proj.g_idx"));
      std::erase_if(stored, [&](const auto& tensor) {
        return tensor.first.ends_with("_proj.g_idx") && tensor.second.shape.size() == 1 &&
               tensor.first.starts_with(before);
      });
    }
    const Arranged file(stored, stack_layout(false), specs_of(config_of(parts.config_json)));
    ASSERT_EQ(file.error, "");
    expect_tensors(*file.source, parts.tensors);
  }
}

TEST(TensorLayout, NamesMayChangePlaces) {
  const TensorLayout layout = {
      .renames = {{"post_self_attn_layernorm", "post_attention_layernorm"},
                  {"post_attention_layernorm", "pre_feedforward_layernorm"},
                  {"model.language_model", "model"},
                  {"block_sparse_moe.gate", "mlp.gate"},
                  {"block_sparse_moe", "mlp"},
                  {"w1", "gate_proj"}}};
  StoredTensors stored;
  for (const char* name :
       {"model.language_model.layers.0.post_self_attn_layernorm.weight",
        "model.language_model.layers.0.post_attention_layernorm.weight",
        "model.layers.1.post_attention_layernorm_2.weight",
        "model.layers.1.block_sparse_moe.experts.0.w1.weight",
        "model.layers.1.block_sparse_moe.gate.weight", "model.layers.1.mlp.w11.weight"}) {
    stored[name] = stored_floats({1}, std::vector<float>{1.0F});
  }
  const Arranged file(stored, layout, {});
  ASSERT_EQ(file.error, "");
  EXPECT_THAT(
      file.source->names(),
      UnorderedElementsAre("model.layers.0.post_attention_layernorm.weight",
                           "model.layers.0.pre_feedforward_layernorm.weight",
                           "model.layers.1.post_attention_layernorm_2.weight",
                           "model.layers.1.mlp.experts.0.gate_proj.weight",
                           "model.layers.1.mlp.gate.weight", "model.layers.1.mlp.w11.weight"));
  EXPECT_EQ(file.source->name_in_file("model.layers.0.post_attention_layernorm.weight"),
            "model.language_model.layers.0.post_self_attn_layernorm.weight");
}

TEST(TensorLayout, TheBeginningOfNamesMayBeLeftOut) {
  StoredTensors stored;
  for (const char* name : {"embed_tokens.weight", "layers.0.mlp.up_proj.weight", "norm.weight"}) {
    stored[name] = stored_floats({1}, std::vector<float>{1.0F});
  }
  const Arranged file(stored, {.renames = {{.stored = "", .decoder = "model"}}}, {});
  ASSERT_EQ(file.error, "");
  EXPECT_THAT(file.source->names(),
              ElementsAre("model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight",
                          "model.norm.weight"));
  EXPECT_EQ(file.source->name_in_file("model.layers.7.mlp.up_proj.weight"),
            "layers.7.mlp.up_proj.weight");
}

// Records the tensors that are in use.
class RecordingSource final : public ForwardingSource {
 public:
  RecordingSource(std::unique_ptr<WeightSource> source, std::multiset<std::string>& used)
      : ForwardingSource(std::move(source)), used_(used) {}
  Result<TensorView> tensor(std::string_view name, const Shape& expected) override {
    used_.emplace(name);
    return ForwardingSource::tensor(name, expected);
  }
  void release(std::string_view name) override {
    used_.erase(std::string(name));
    ForwardingSource::release(name);
  }

 private:
  std::multiset<std::string>& used_;
};

TEST(TensorLayout, AMatrixIsReadOnceAndReleasedWithItsLastPart) {
  StoredTensors stored = random_model(kDense);
  fuse_layers(stored);
  const std::vector<std::byte> bytes = safetensors_file(stored);
  std::multiset<std::string> used;
  const std::unique_ptr<WeightSource> source = value_of(apply_layout(
      std::make_unique<RecordingSource>(Checkpoint::from_memory(bytes, "f").value(), used),
      {.renames = {}, .fused = {kFusedQkv}}, specs_of(config_of(kDense))));
  const std::string whole = layer(0) + "self_attn.qkv_proj.weight";
  const std::string q = layer(0) + "self_attn.q_proj.weight";
  const std::string k = layer(0) + "self_attn.k_proj.weight";
  const std::string v = layer(0) + "self_attn.v_proj.weight";
  for (int pass = 0; pass < 2; ++pass) {
    const TensorView first = value_of(source->tensor(q, {kQueryRows, kHidden}));
    const TensorView second = value_of(source->tensor(k, {kKeyRows, kHidden}));
    EXPECT_EQ(second.as<float>() - first.as<float>(), kQueryRows * kHidden) << "views of the file";
    source->release(q);
    source->release(k);
    EXPECT_THAT(used, ElementsAre(whole)) << "read once, and not released";
    ASSERT_TRUE(source->tensor(q, {kQueryRows, kHidden}).ok());
    ASSERT_TRUE(source->tensor(v, {kKeyRows, kHidden}).ok());
    source->release(v);
    EXPECT_THAT(used, ElementsAre(whole)) << "a part was requested again";
    source->release(q);
    EXPECT_THAT(used, ElementsAre());
  }
  source->release(q);
  EXPECT_THAT(used, ElementsAre());
}

TEST(TensorLayout, PartsOfRowsAreViewsAndTransposedOnesCopies) {
  const StoredTensors model = random_model(kSparse);
  const std::string name = layer(0) + "mlp.experts.1.up_proj.weight";
  for (const bool is_transposed : {false, true}) {
    StoredTensors stored = model;
    stack_experts(stored, ".weight", "", is_transposed);
    const Arranged file(stored, stack_layout(is_transposed), specs_of(config_of(kSparse)));
    ASSERT_EQ(file.error, "");
    const TensorView view = value_of(file.source->tensor(name, {kInner, kHidden}));
    EXPECT_EQ(file.contains(view.data), !is_transposed);
  }
}

// Expands every matrix that a load makes.
class NumberOps : public ReferenceOps {
 public:
  explicit NumberOps(bool keeps_integers) : keeps_integers_(keeps_integers) {}
  int64_t quantized_bytes(const QuantizedForm& matrix) const override {
    return keeps_integers_ && std::holds_alternative<IntegerForm>(matrix.numbers)
               ? matrix.shape.num_elements()
               : 0;
  }
  Result<std::unique_ptr<Linear>> make_linear(const LinearSource& source) override {
    const auto& matrices = std::get<StoredMatrices>(source.numbers);
    for (const WeightView& matrix : matrices.each) {
      const Shape& shape = matrix.values.shape;
      EXPECT_EQ(plain_dtype(matrix.scheme), DType::kF32);
      std::vector<float> row(static_cast<size_t>(shape[1]));
      for (int64_t i = 0; i < shape[0]; ++i) {
        write_plain_row(matrix, i, reinterpret_cast<std::byte*>(row.data()));
        numbers.insert(numbers.end(), row.begin(), row.end());
      }
    }
    for (const TensorView& bias : source.biases) {
      if (bias.data == nullptr) continue;
      for (int64_t i = 0; i < bias.shape[0]; ++i) numbers.push_back(element_as_f32(bias, i));
    }
    return ReferenceOps::make_linear(source);
  }

  std::vector<float> numbers;

 private:
  bool keeps_integers_;
};

std::vector<float> loaded_numbers(const ModelConfig& config, WeightSource& source,
                                  const Parallel& parallel, bool keeps_integers) {
  ModelLimits limits = drafter_limits();
  limits.parallel = parallel;
  NumberOps ops(keeps_integers);
  EXPECT_EQ(check_slices(config, source, ops, parallel).message(), "");
  EXPECT_EQ(load_model(config, source, ops, limits).status().message(), "");
  return ops.numbers;
}

// Expects every rank of one and of two to load the same numbers from both files.
void expect_same_loads(const std::string& json, const StoredTensors& decoder,
                       const StoredTensors& stored, const TensorLayout& layout) {
  const ModelConfig config = config_of(json);
  const DrafterFile plain(decoder);
  const Arranged file(stored, layout, specs_of(config));
  ASSERT_EQ(file.error, "");
  EXPECT_EQ(check_stored_tensors(config, *plain.weights).message(), "");
  EXPECT_EQ(check_stored_tensors(config, *file.source).message(), "");
  for (const Parallel& parallel : {Parallel{0, 1}, Parallel{0, 2}, Parallel{1, 2}}) {
    for (const bool keeps_integers : {false, true}) {
      const std::vector<float> expected =
          loaded_numbers(config, *plain.weights, parallel, keeps_integers);
      EXPECT_GT(expected.size(), 10000U);
      EXPECT_EQ(loaded_numbers(config, *file.source, parallel, keeps_integers), expected)
          << parallel.rank << " of " << parallel.size;
    }
    ReferenceOps ops;
    EXPECT_EQ(plan_weights(config, *file.source, ops, parallel).value().num_bytes,
              plan_weights(config, *plain.weights, ops, parallel).value().num_bytes);
  }
}

TEST(TensorLayout, EveryRankLoadsTheSameNumbers) {
  const StoredTensors model = random_model(kDense);
  StoredTensors fused = model;
  fuse_layers(fused);
  expect_same_loads(kDense, model, with_stored_names(fused), kFusedLayout);
  for (const IntegerTool tool :
       {IntegerTool::kAwq, IntegerTool::kGptq, IntegerTool::kCompressedPack}) {
    const IntegerFormat format = {.tool = tool, .group_size = 16};
    const IntegerCheckpoint parts = quantize_integers(kDense, safetensors_file(model), format);
    const IntegerCheckpoint whole = quantize_integers(kDense, safetensors_file(fused), format);
    expect_same_loads(parts.config_json, parts.tensors, with_stored_names(whole.tensors),
                      kFusedLayout);
  }
  const Fp8Tool blocks = Fp8Tool::kHuggingFaceBlock;
  const Fp8Checkpoint parts = quantize_checkpoint(kDense, safetensors_file(model), blocks);
  const Fp8Checkpoint whole = quantize_checkpoint(kDense, safetensors_file(fused), blocks);
  expect_same_loads(parts.config_json, parts.tensors, with_stored_names(whole.tensors),
                    kFusedLayout);
}

TEST(TensorLayout, EveryRankLoadsTheSameExperts) {
  const StoredTensors model = random_model(kSparse);
  for (const bool is_transposed : {false, true}) {
    StoredTensors stored = model;
    stack_experts(stored, ".weight", "", is_transposed);
    expect_same_loads(kSparse, model, stored, stack_layout(is_transposed));
  }
}

TEST(TensorLayout, IgnoredTensorsAreCountedInOneLine) {
  StoredTensors stored = random_model(kDense);
  fuse_layers(stored);
  stored = with_stored_names(stored);
  stored["vision_tower.patches.weight"] = stored_floats({1}, std::vector<float>{1.0F});
  stored["vision_tower.norm.weight"] = stored_floats({1}, std::vector<float>{1.0F});
  ::testing::internal::CaptureStderr();
  const Arranged file(stored, kFusedLayout, specs_of(config_of(kDense)));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("[model] 2 tensors of the checkpoint are not the model's and are skipped: "
                        "their names begin with vision_tower.\n"));
  ReferenceOps ops;
  EXPECT_EQ(load_model(config_of(kDense), *file.source, ops, drafter_limits()).status().message(),
            "");
}

// A report of a checkpoint, which reads no tensor.
TEST(TensorLayout, StoredTensorsAreCheckedByNameAndShape) {
  const ModelConfig config = config_of(kDense);
  StoredTensors stored = random_model(kDense);
  const auto error_of = [&](const TensorLayout& layout) {
    const Arranged file(stored, layout, specs_of(config));
    return check_stored_tensors(config, *file.source).message();
  };
  EXPECT_EQ(error_of({}), "");
  const std::string name = layer(0) + "self_attn.o_proj.weight";
  stored[name].shape = {kQueryRows, kHidden};
  EXPECT_THAT(error_of({}), HasSubstr("tensor \"" + name +
                                      "\" has another shape than the configuration says; got [256, "
                                      "32], expected [32, 256]"));
  stored.erase(name);
  EXPECT_THAT(error_of({}), HasSubstr("lacks 1 tensors"));
  stored = random_model(kDense);
  fuse_layers(stored);
  stored = with_stored_names(stored);
  EXPECT_EQ(error_of(kFusedLayout), "");
  stored["language_model.model.layers.0.attention_norm.weight"].shape = {2, kHidden / 2};
  EXPECT_EQ(error_of(kFusedLayout), "") << "a vector";
  stored["language_model.model.layers.0.self_attn.o_proj.weight"].shape = {kQueryRows, kHidden};
  EXPECT_THAT(error_of(kFusedLayout),
              HasSubstr("tensor \"language_model.model.layers.0.self_attn.o_proj.weight\""));
}

TEST(TensorLayout, WholeTensorsAreCheckedByTheShapesOfTheirParts) {
  const ModelConfig config = config_of(kSparse);
  StoredTensors stored = random_model(kSparse);
  stack_experts(stored, ".weight", "", false);
  StoredTensor& stack = stored[layer(0) + "mlp.experts.gate_up_proj"];
  const auto error = [&] {
    const Arranged file(stored, stack_layout(false), specs_of(config));
    return check_stored_tensors(config, *file.source).message();
  };
  EXPECT_EQ(error(), "");
  const std::vector<int64_t> shape = stack.shape;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    stack.shape = shape;
    std::swap(stack.shape[axis], stack.shape[(axis + 1) % shape.size()]);
    EXPECT_THAT(error(), HasSubstr("mlp.experts.gate_up_proj\" has another shape")) << axis;
  }
}

// transformers ties them too, so the results agree.
TEST(TensorLayout, AHeadThatIsNotTheEmbeddingIsNamedIfConfigJsonTiesThem) {
  const auto warnings_of = [](const StoredTensors& stored, const std::string& tie) {
    ModelConfig config = config_of(config_json("LlamaForCausalLM", tie));
    const std::vector<std::byte> file = safetensors_file(stored);
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(
        present_weights(Checkpoint::from_memory(file, "model.safetensors").value(), config).ok());
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string tied = R"("tie_word_embeddings":true)";
  StoredTensors stored = random_model(kDense);
  EXPECT_THAT(warnings_of(stored, tied),
              HasSubstr("[model] model.safetensors: tensor \"lm_head.weight\" differs from the "
                        "embedding and is ignored"));
  EXPECT_EQ(warnings_of(stored, R"("tie_word_embeddings":false)"), "");
  stored["lm_head.weight"] = stored["model.embed_tokens.weight"];
  EXPECT_EQ(warnings_of(stored, tied), "");
  stored["lm_head.weight"].bytes.back() ^= std::byte{1};
  EXPECT_THAT(warnings_of(stored, tied), HasSubstr("\"lm_head.weight\" differs"));
  stored.erase("lm_head.weight");
  EXPECT_EQ(warnings_of(stored, tied), "");
}

std::string load_error(const StoredTensors& stored, const TensorLayout& layout,
                       const std::string& json = kDense) {
  const ModelConfig config = config_of(json);
  const Arranged file(stored, layout, specs_of(config));
  if (!file.error.empty()) return file.error;
  ReferenceOps ops;
  return load_model(config, *file.source, ops, drafter_limits()).status().message();
}

TEST(TensorLayout, ErrorsNameTheTensorInTheFile) {
  StoredTensors stored = random_model(kDense);
  fuse_layers(stored);
  stored = with_stored_names(stored);
  const std::string before = "language_model.model.layers.1.";
  for (const char* name : {"self_attn.qkv_proj.weight", "self_attn.qkv_proj.bias",
                           "attention_norm.weight", "self_attn.o_proj.weight"}) {
    StoredTensors damaged = stored;
    damaged[before + name].shape.push_back(1);
    EXPECT_THAT(load_error(damaged, kFusedLayout),
                AllOf(HasSubstr("model.safetensors: tensor \"" + before + name),
                      HasSubstr("has another shape")));
    damaged.erase(before + name);
    EXPECT_THAT(load_error(damaged, kFusedLayout),
                AllOf(HasSubstr('"' + before + name + '"'), HasSubstr("is missing")));
    damaged[before + name] = stored_integers(std::vector<int64_t>{1, 2});
    EXPECT_THAT(load_error(damaged, kFusedLayout), HasSubstr(before + name));
  }
  StoredTensors more = stored;
  const StoredTensor number = stored_floats({1}, std::vector<float>{1.0F});
  for (const char* name :
       {"vision.weight", "language_model.model.layers.2.self_attn.qkv_proj.weight",
        "language_model.model.layers.1.self_attn.qkv_proj.weight_foo",
        "language_model.model.layers.1.attention_norm.bias"}) {
    more[name] = number;
    EXPECT_THAT(load_error(more, kFusedLayout), AllOf(HasSubstr("1 tensors that its architecture"),
                                                      HasSubstr(fmt::format("\"{}\"", name))));
    more.erase(name);
  }
  more["language_model.model.layers.0.self_attn.k_proj.weight"] = number;
  EXPECT_THAT(load_error(more, kFusedLayout),
              AllOf(HasSubstr("\"language_model.model.layers.0.self_attn.k_proj.weight\""),
                    HasSubstr("\"language_model.model.layers.0.self_attn.qkv_proj.weight\""),
                    HasSubstr("are both \"model.layers.0.self_attn.k_proj.weight\"")));
}

TEST(TensorLayout, StacksOfAnotherShapeAreRefused) {
  const StoredTensors model = random_model(kSparse);
  StoredTensors stored = model;
  stack_experts(stored, ".weight", "", false);
  const std::string name = layer(0) + "mlp.experts.gate_up_proj";
  StoredTensor& tensor = stored.at(name);
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{kExperts - 1, 2 * kInner, kHidden},
                                            std::vector<int64_t>{kExperts, kInner, kHidden},
                                            std::vector<int64_t>{kExperts, kHidden, 2 * kInner},
                                            std::vector<int64_t>{kExperts * 2 * kInner, kHidden}}) {
    tensor.shape = shape;
    tensor.bytes.resize(sizeof(float));
    for (const int64_t extent : shape) tensor.bytes.resize(tensor.bytes.size() * extent);
    EXPECT_THAT(load_error(stored, stack_layout(false), kSparse),
                AllOf(HasSubstr('"' + name + '"'), HasSubstr("expected [3, 256, 32]")));
  }
  stored.erase(name);
  EXPECT_THAT(load_error(stored, stack_layout(false), kSparse),
              HasSubstr("\"model.layers.0.mlp.experts.0.gate_proj.weight\" of shape [128, 32] is "
                        "missing"));
}

TEST(TensorLayout, MatricesThatCannotBeDividedAreRefused) {
  // With 3 heads of 32, the keys begin in a block of 128 rows.
  const std::string narrow = config_json("LlamaForCausalLM", R"("tie_word_embeddings":false)");
  std::string json = narrow;
  json.replace(json.find(R"("head_dim":64)"), 13, R"("head_dim":40)");
  StoredTensors fused = random_model(json);
  fuse_layers(fused);
  const Fp8Checkpoint whole =
      quantize_checkpoint(json, safetensors_file(fused), Fp8Tool::kHuggingFaceBlock);
  const TensorLayout layout = {.renames = {}, .fused = {kFusedQkv, kFusedGateUp}};
  EXPECT_THAT(load_error(whole.tensors, layout, whole.config_json),
              AllOf(HasSubstr("self_attn.qkv_proj.weight_scale_inv\" cannot be divided"),
                    HasSubstr("got \"model.layers.0.self_attn.k_proj\" from row 160, expected a "
                              "multiple of the 128 rows")));
  const Fp8Checkpoint sparse = quantize_checkpoint(kSparse, safetensors_file(random_model(kSparse)),
                                                   Fp8Tool::kHuggingFaceBlock);
  StoredTensors stored = sparse.tensors;
  stack_experts(stored, ".weight", "", true);
  EXPECT_THAT(load_error(stored, stack_layout(true), sparse.config_json),
              AllOf(HasSubstr("is quantized and has its rows as columns; got fp8_e4m3"),
                    Not(HasSubstr("\n"))));
}

TEST(TensorLayout, ShapesOfPackedMatricesAreChecked) {
  StoredTensors fused = random_model(kDense);
  fuse_layers(fused);
  IntegerCheckpoint whole = quantize_integers(
      kDense, safetensors_file(fused), {.tool = IntegerTool::kCompressedPack, .group_size = 16});
  const std::string name = layer(1) + "mlp.gate_up_proj.weight_shape";
  whole.tensors.at(name) = stored_integers(std::vector<int64_t>{kInner, kHidden});
  EXPECT_THAT(load_error(whole.tensors, {.renames = {}, .fused = {kFusedQkv, kFusedGateUp}},
                         whole.config_json),
              AllOf(HasSubstr('"' + name + '"'), HasSubstr("got [128, 32], expected [256, 32]")));
}

// transformers 4 and 5 nest the text model differently.
TEST(TensorLayout, ReadsTheTextModelOfAMultimodalGemma3) {
  const ModelConfig config = config_of(
      R"({"architectures":["Gemma3ForConditionalGeneration"],"text_config":{"hidden_size":16,)"
      R"("intermediate_size":24,"num_hidden_layers":1,"head_dim":8,"num_attention_heads":4,)"
      R"("num_key_value_heads":2,"vocab_size":20,"max_position_embeddings":64,)"
      R"("sliding_window":8}})");
  StoredTensors model;
  for (const TensorSpec& spec : specs_of(config)) {
    model[spec.name] = stored_floats({1}, std::vector<float>{1.0F});
  }
  using Names = std::pair<const char*, const char*>;
  for (const auto& [text, vision] : {Names{"language_model.model.", "vision_tower."},
                                     Names{"model.language_model.", "model.vision_tower."}}) {
    StoredTensors stored;
    for (const auto& [name, tensor] : model) stored[text + name.substr(6)] = tensor;
    stored[fmt::format("{}layer.weight", vision)] = model.begin()->second;
    const Arranged file(stored, config.layout, specs_of(config));
    ASSERT_EQ(file.error, "");
    EXPECT_EQ(file.source->names().size(), model.size());
    for (const auto& [name, tensor] : model) EXPECT_TRUE(file.source->has(name)) << name;
  }
}

TEST(TensorLayout, RandomWeightsHaveTheDecodersNames) {
  const std::unique_ptr<WeightSource> source = value_of(apply_layout(
      std::make_unique<DummyWeights>(DType::kF32), kFusedLayout, specs_of(config_of(kDense))));
  ReferenceOps ops;
  EXPECT_TRUE(load_model(config_of(kDense), *source, ops, drafter_limits()).ok());
}

}  // namespace
}  // namespace quire::testing
