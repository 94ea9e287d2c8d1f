#include "engine/quantized_models.h"

#include <span>
#include <string>
#include <utility>

#include "engine/engine_case.h"
#include "model/gguf/gguf_weights.h"
#include "model/model_loader.h"
#include "model/weights.h"
#include "support/gguf_bytes.h"
#include "support/gguf_conversion.h"
#include "support/random_mixtures.h"

namespace quire::testing {
namespace {

// All rows are whole blocks of 32, and most of 256; two ranks divide them without a cut block.
RandomModel random_model_of(Structure structure) {
  switch (structure) {
    case Structure::kDense:
      return {"dense", "llama",
              sizes("LlamaForCausalLM", 2) + R"("num_key_value_heads": 2, "head_dim": 64})"};
    case Structure::kExperts:
      return {"experts", "qwen3moe",
              sizes("Qwen3MoeForCausalLM", 2) +
                  R"("num_key_value_heads": 2, "head_dim": 64, "num_experts_per_tok": 2,
                     "num_experts": 6, "moe_intermediate_size": 256, "norm_topk_prob": true})"};
    case Structure::kLatent:
      return {"latent", "deepseek2",
              deepseek_sizes("DeepseekV3ForCausalLM",
                             R"("scoring_func": "sigmoid", "topk_method": "noaux_tc",
                                "n_group": 4, "topk_group": 2, "norm_topk_prob": true,
                                "routed_scaling_factor": 2.5)",
                             2)};
    case Structure::kGptOss:
      return {"gpt_oss", "gpt-oss",
              sizes("GptOssForCausalLM", 2) +
                  R"("num_key_value_heads": 2, "head_dim": 64, "num_experts_per_tok": 2,
                     "num_local_experts": 6, "sliding_window": 20, "rope_scaling": {
                     "rope_type": "yarn", "factor": 8.0, "beta_fast": 4.0, "beta_slow": 1.0,
                     "truncate": false, "original_max_position_embeddings": 64}})"};
    case Structure::kDelta:
      return random_delta_model();
  }
  return {};
}

std::string gguf_file(const GgufFormat& format, const RandomModel& model) {
  const std::vector<std::byte> weights = random_weights(parse(model));
  GgufSource source = {model.config, weights};
  source.joins_latent = format.joins_latent;
  return convert_to_gguf(source, model.architecture, format.matrices);
}

std::vector<float> floats_of(GgufWeights& weights, const TensorSpec& spec) {
  std::vector<float> values;
  const GgufBlockType* const type = weights.block_type(spec.name);
  if (type == nullptr) {
    const TensorView view = weights.tensor(spec.name, spec.shape).value();
    for (int64_t i = 0; i < spec.shape.num_elements(); ++i) {
      values.push_back(element_as_f32(view, i));
    }
    return values;
  }
  const BlockMatrix matrix = weights.blocks(spec.name, spec.shape).value();
  values.resize(static_cast<size_t>(spec.shape.num_elements()));
  float* out = values.data();
  for (int64_t row = 0; row < matrix.shape[0]; ++row) {
    for (int64_t i = 0; i < matrix.blocks_per_row(); ++i, out += type->block_elements) {
      dequantize(*type, matrix.row(row) + i * type->block_bytes, out);
    }
  }
  return values;
}

// Stores the queries and the gates of their outputs as a checkpoint does, head by head.
void fuse_gates(size_t num_heads, StoredTensors& tensors) {
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    const auto gate = tensors.find(layer + "self_attn.gate_proj.weight");
    if (gate == tensors.end()) continue;
    StoredTensor& queries = tensors.at(layer + "self_attn.q_proj.weight");
    const auto before = std::exchange(queries.bytes, {});
    const auto head_bytes = static_cast<int64_t>(before.size() / num_heads);
    for (int64_t at = 0; at < std::ssize(before); at += head_bytes) {
      for (const auto& part : {before, gate->second.bytes}) {
        queries.bytes.insert(queries.bytes.end(), part.begin() + at,
                             part.begin() + at + head_bytes);
      }
    }
    queries.shape[0] *= 2;
    tensors.erase(gate);
  }
}

}  // namespace

StoredTensors numbers_of(const std::string& file, const ModelConfig& config) {
  auto gguf = GgufModel::from_memory(bytes_of(file), "m.gguf").value();
  const auto weights = GgufWeights::open(std::move(gguf), config).value();
  StoredTensors tensors;
  for (const TensorSpec& spec : list_tensors(config)) {
    std::vector<int64_t> shape;
    for (int i = 0; i < spec.shape.rank(); ++i) shape.push_back(spec.shape[i]);
    tensors[spec.name] = stored_floats(shape, floats_of(*weights, spec));
    weights->release(spec.name);
  }
  return tensors;
}

const std::vector<QuantizedModel>& quantized_models() {
  // Products with integers and blocks round their inputs to 16 bits.
  constexpr double kRounded = 2e-3;
  static const std::vector<QuantizedModel> models = [] {
    constexpr Structure kDense = Structure::kDense;
    const IntegerFormat awq = {.tool = IntegerTool::kAwq, .group_size = 64};
    const IntegerFormat in_order = {
        .tool = IntegerTool::kGptq, .symmetric = true, .act_order = true};
    const IntegerFormat pack = {.tool = IntegerTool::kCompressedPack, .group_size = 32};
    const IntegerFormat bytes = {.tool = IntegerTool::kCompressedBytes,
                                 .bits = 8,
                                 .group_size = -1,
                                 .symmetric = true,
                                 .scales = "BF16"};
    std::vector<QuantizedModel> all = {
        {"dense_fp8_per_tensor", kDense, Fp8Tool::kModelopt},
        {"dense_fp8_per_row", kDense, Fp8Tool::kCompressedChannel},
        {"dense_fp8_in_blocks", kDense, Fp8Tool::kHuggingFaceBlock},
        {"dense_awq", kDense, awq, kRounded},
        {"dense_gptq_in_order", kDense, in_order, kRounded, /*divides=*/false},
        {"dense_int4", kDense, pack, kRounded},
        {"dense_int8", kDense, bytes, kRounded},
        {"dense_gguf_f16", kDense, GgufFormat{"F16"}, kRounded},
        {"dense_gguf_q8_0", kDense, GgufFormat{"Q8_0"}, kRounded},
        {"dense_gguf_q4_k", kDense, GgufFormat{"Q4_K"}, kRounded}};
    for (const auto& [name, structure] :
         {std::pair<std::string, Structure>("experts", Structure::kExperts),
          {"latent", Structure::kLatent}}) {
      all.push_back({name + "_fp8_per_row", structure, Fp8Tool::kCompressedChannel});
      all.push_back({name + "_fp8_in_blocks", structure, Fp8Tool::kHuggingFaceBlock});
      all.push_back({name + "_int4", structure, pack, kRounded});
      all.push_back({name + "_gguf_q8_0", structure, GgufFormat{"Q8_0"}, kRounded});
      all.push_back({name + "_gguf_q4_k", structure, GgufFormat{"Q4_K"}, kRounded});
    }
    all.push_back({"latent_gguf_q8_0_joined", Structure::kLatent,
                   GgufFormat{"Q8_0", /*joins_latent=*/true}, kRounded});
    all.push_back({"gpt_oss_mxfp4", Structure::kGptOss, GgufFormat{"MXFP4"}, kRounded});
    for (const char* const type : {"F16", "Q8_0", "Q4_K", "Q6_K"}) {
      all.push_back(
          {fmt::format("delta_gguf_{}", type), Structure::kDelta, GgufFormat{type}, kRounded});
    }
    return all;
  }();
  return models;
}

std::vector<QuantizedModel> some_quantized_models() {
  std::vector<QuantizedModel> some;
  for (const QuantizedModel& model : quantized_models()) {
    if (model.name == "dense_fp8_in_blocks" || model.name == "dense_int4" ||
        model.name == "dense_gguf_q4_k") {
      some.push_back(model);
    }
  }
  return some;
}

EngineConfig write_quantized(const QuantizedModel& model, const ScratchDirectory& directory) {
  const RandomModel source = random_model_of(model.structure);
  if (const auto* const gguf = std::get_if<GgufFormat>(&model.format)) {
    return cpu_config(directory.write("model.gguf", gguf_file(*gguf, source)));
  }
  const std::vector<std::byte> weights = random_weights(parse(source));
  if (const auto* const integers = std::get_if<IntegerFormat>(&model.format)) {
    const IntegerCheckpoint checkpoint = quantize_integers(source.config, weights, *integers);
    return write_checkpoint(directory, checkpoint.config_json, checkpoint.tensors);
  }
  const Fp8Checkpoint checkpoint =
      quantize_checkpoint(source.config, weights, std::get<Fp8Tool>(model.format));
  if (!checkpoint.quant_json.empty()) {
    directory.write("hf_quant_config.json", checkpoint.quant_json);
  }
  return write_checkpoint(directory, checkpoint.config_json, checkpoint.tensors);
}

EngineConfig write_numbers(const QuantizedModel& model, const ScratchDirectory& directory) {
  const RandomModel source = random_model_of(model.structure);
  if (const auto* const gguf = std::get_if<GgufFormat>(&model.format)) {
    std::string config = source.config;
    StoredTensors tensors = numbers_of(gguf_file(*gguf, source), parse(source));
    if (model.structure == Structure::kDelta) {
      fuse_gates(4, tensors);
      config.insert(config.rfind('}'), R"(, "linear_value_heads_are_tiled": true)");
    }
    return write_checkpoint(directory, config, tensors);
  }
  const std::vector<std::byte> weights = random_weights(parse(source));
  const auto* const integers = std::get_if<IntegerFormat>(&model.format);
  return write_checkpoint(
      directory, source.config,
      integers != nullptr
          ? quantize_integers(source.config, weights, *integers).dequantized
          : quantize_checkpoint(source.config, weights, std::get<Fp8Tool>(model.format))
                .dequantized);
}

}  // namespace quire::testing
