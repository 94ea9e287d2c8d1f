// Mixtures of experts, latent attention and delta nets in GGUF files: the memory plan, and files
// that are wrong.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "cpu/ops/cpu_ops.h"
#include "engine/engine_case.h"
#include "model/gguf/gguf_weights.h"
#include "model/model_loader.h"
#include "model/weights.h"
#include "support/gguf_bytes.h"
#include "support/random_mixtures.h"

namespace quire::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The memory plan counts the blocks that the CPU keeps: about the size of the file.
TEST(GgufExperts, PlanCountsTheirBlocks) {
  ThreadPool pool(1);
  const std::unique_ptr<Ops> ops = make_cpu_ops(pool);
  for (const RandomModel& model : random_models()) {
    SCOPED_TRACE(model.name);
    const ModelConfig config = parse(model);
    const std::vector<TensorSpec> specs = list_tensors(config);
    const std::string file = gguf_of(model, "Q8_0");
    auto gguf = GgufModel::from_memory(bytes_of(file), "m.gguf").value();
    const auto weights = GgufWeights::open(std::move(gguf), config).value();
    const double planned =
        static_cast<double>(plan_weights(specs, *weights, ops->weights(), {}).value().num_bytes);
    EXPECT_NEAR(planned / static_cast<double>(file.size()), 1.0, 0.1);
  }
}

int64_t planned_bytes(const RandomModel& model, const std::vector<std::string>& f16,
                      const Ops& ops) {
  const ModelConfig config = parse(model);
  const std::string file = gguf_of(model, "Q8_0", f16);
  auto gguf = GgufModel::from_memory(bytes_of(file), "m.gguf").value();
  const auto weights = GgufWeights::open(std::move(gguf), config).value();
  return plan_weights(list_tensors(config), *weights, ops.weights(), {}).value().num_bytes;
}

// Blocks are kept only if all matrices of a stack are in blocks, those of experts included.
TEST(GgufExperts, PlanCountsStacksThatAreExpanded) {
  ThreadPool pool(1);
  const std::unique_ptr<Ops> ops = make_cpu_ops(pool);
  for (const RandomModel& model : random_models()) {
    SCOPED_TRACE(model.name);
    const int64_t in_blocks = planned_bytes(model, {}, *ops);
    const int64_t ups = planned_bytes(model, {"ffn_up"}, *ops);
    EXPECT_GT(ups, in_blocks);
    EXPECT_EQ(ups, planned_bytes(model, {"ffn_up", "ffn_gate"}, *ops));
    if (model.architecture == "deepseek2") continue;
    const int64_t values = planned_bytes(model, {"attn_v."}, *ops);
    EXPECT_GT(values, in_blocks);
    EXPECT_EQ(values, planned_bytes(model, {"attn_q.", "attn_k.", "attn_v."}, *ops));
  }
}

std::string error_of(const std::string& bytes) {
  const ScratchDirectory scratch;
  return testing::error_of(cpu_config(scratch.write("m.gguf", bytes)));
}

// The file of a small model with one number of the metadata replaced by another.
std::string with_number(std::string file, std::string_view key, uint32_t value) {
  const std::string field = GgufWriter::raw_text(key) + GgufWriter::raw(uint32_t{4});
  const size_t at = file.find(field);
  EXPECT_NE(at, std::string::npos) << key;
  file.replace(at + field.size(), sizeof(value), GgufWriter::raw(value));
  return file;
}

// The file with a tensor under another name of the same length.
std::string with_name(std::string file, std::string_view from, std::string_view to) {
  const size_t at = file.find(GgufWriter::raw_text(from));
  EXPECT_NE(at, std::string::npos) << from;
  file.replace(at + sizeof(uint64_t), to.size(), to);
  return file;
}

// The file with the first and the second dimension, as the file orders them, of a tensor exchanged.
std::string with_dimensions_exchanged(std::string file, std::string_view name) {
  size_t at = file.find(GgufWriter::raw_text(name));
  EXPECT_NE(at, std::string::npos) << name;
  at += sizeof(uint64_t) + name.size() + sizeof(uint32_t);
  std::swap_ranges(file.begin() + static_cast<int64_t>(at),
                   file.begin() + static_cast<int64_t>(at + sizeof(uint64_t)),
                   file.begin() + static_cast<int64_t>(at + sizeof(uint64_t)));
  return file;
}

TEST(GgufExperts, WrongNumbersNameTheirKey) {
  const std::vector<RandomModel> models = random_models();
  const std::string qwen = gguf_of(models[1], "F32");
  const auto qwen_error = [&](std::string_view key, uint32_t value) {
    return error_of(with_number(qwen, fmt::format("qwen3moe.{}", key), value));
  };
  EXPECT_EQ(error_of(qwen), "");
  EXPECT_THAT(qwen_error("expert_count", 0),
              HasSubstr("metadata \"qwen3moe.expert_count\"; got 0, expected 1 to 1024"));
  EXPECT_THAT(qwen_error("expert_count", 1025), HasSubstr("got 1025, expected 1 to 1024"));
  EXPECT_THAT(qwen_error("expert_used_count", 7),
              HasSubstr("\"qwen3moe.expert_used_count\"; got 7, expected 1 to 6"));
  EXPECT_THAT(qwen_error("expert_used_count", 0), HasSubstr("got 0, expected 1 to 6"));
  EXPECT_THAT(qwen_error("expert_feed_forward_length", 0),
              HasSubstr("\"qwen3moe.expert_feed_forward_length\"; got 0, expected at least 1"));
  EXPECT_THAT(qwen_error("expert_count", 7),
              HasSubstr("tensor \"blk.0.ffn_down_exps.weight\"; got shape [6, 256, 96], expected "
                        "[7, 256, 96] by the metadata"));
  const std::string mixtral = gguf_of(models[0], "F32");
  EXPECT_THAT(error_of(with_number(mixtral, "llama.expert_count", 0)), HasSubstr("blk.0.ffn_"));
  EXPECT_THAT(error_of(with_number(mixtral, "llama.expert_used_count", 6)),
              HasSubstr("\"llama.expert_used_count\"; got 6, expected 1 to 5"));
  const std::string deepseek = gguf_of(models[3], "F32");
  const auto deepseek_error = [&](std::string_view key, uint32_t value) {
    return error_of(with_number(deepseek, fmt::format("deepseek2.{}", key), value));
  };
  EXPECT_THAT(
      deepseek_error("expert_group_count", 3),
      HasSubstr("\"deepseek2.expert_group_count\"; got 3 of which 2 are used, with 8 experts "
                "and 3 per token, expected equal groups"));
  EXPECT_THAT(deepseek_error("expert_group_used_count", 5), HasSubstr("got 4 of which 5 are used"));
  EXPECT_THAT(deepseek_error("expert_group_count", 8), HasSubstr("expected equal groups"));
  EXPECT_THAT(deepseek_error("expert_gating_func", 3),
              HasSubstr("\"deepseek2.expert_gating_func\"; got 3, expected 1 (softmax) or 2"));
  EXPECT_THAT(deepseek_error("expert_gating_func", 1), HasSubstr("norm_topk_prob"));
  EXPECT_THAT(deepseek_error("attention.key_length_mla", 16),
              HasSubstr("\"deepseek2.attention.key_length_mla\"; got 16, expected at least 17"));
  EXPECT_THAT(deepseek_error("attention.value_length_mla", 32),
              HasSubstr("tensor \"blk.0.attn_v_b.weight\"; got shape [4, 64, 32], expected "
                        "[4, 32, 32] by the metadata"));
  EXPECT_THAT(deepseek_error("rope.dimension_count", 18),
              HasSubstr("tensor \"blk.0.attn_k_b.weight\""));
  EXPECT_THAT(deepseek_error("leading_dense_block_count", 2), HasSubstr("blk.1.ffn_gate.weight"));
}

TEST(GgufExperts, WrongTensorsAreNamed) {
  const std::vector<RandomModel> models = random_models();
  for (const auto& [idx, matrices] : {std::pair(0, "Q8_0"), std::pair(3, "F16")}) {
    const std::string file = gguf_of(models[static_cast<size_t>(idx)], matrices);
    SCOPED_TRACE(models[static_cast<size_t>(idx)].name);
    EXPECT_EQ(error_of(file), "");
    EXPECT_THAT(error_of(with_name(file, "blk.1.ffn_up_exps.weight", "blk.1.ffn_up_exqs.weight")),
                AllOf(HasSubstr("no tensor \"blk.1.ffn_up_exps.weight\" for "),
                      HasSubstr("experts.0."), Not(HasSubstr("\n"))));
    EXPECT_THAT(error_of(with_name(file, "blk.2.ffn_gate_inp.weight", "blk.2.ffn_gate_inq.weight")),
                HasSubstr("no tensor \"blk.2.ffn_gate_inp.weight\""));
  }
  const std::string file = gguf_of(models[3], "F16");
  EXPECT_THAT(error_of(with_dimensions_exchanged(file, "blk.1.ffn_gate_exps.weight")),
              HasSubstr("tensor \"blk.1.ffn_gate_exps.weight\"; got shape [8, 256, 64], expected "
                        "[8, 64, 256] by the metadata"));
  EXPECT_THAT(error_of(with_dimensions_exchanged(file, "blk.1.ffn_gate_inp.weight")),
              HasSubstr("tensor \"blk.1.ffn_gate_inp.weight\"; got shape [256, 8], expected "
                        "[8, 256]"));
  EXPECT_THAT(error_of(with_name(file, "blk.1.exp_probs_b.bias", "blk.1.exp_probs_c.bias")),
              HasSubstr("no tensor \"blk.1.exp_probs_b.bias\""));
  EXPECT_THAT(error_of(with_name(file, "blk.2.attn_v_b.weight", "blk.2.attn_w_b.weight")),
              HasSubstr("no tensor \"blk.2.attn_v_b.weight\" beside \"blk.2.attn_k_b.weight\""));
  EXPECT_THAT(error_of(with_name(file, "blk.2.attn_k_b.weight", "blk.2.attn_j_b.weight")),
              HasSubstr("no tensor \"blk.2.attn_kv_b.weight\""));
  EXPECT_THAT(error_of(with_name(file, "blk.1.ffn_up_shexp.weight", "blk.1.ffn_up_shexq.weight")),
              HasSubstr("no tensor \"blk.1.ffn_up_shexp.weight\""));
}

TEST(GgufDeltas, WrongFilesAreNamed) {
  const std::string file = gguf_of(random_delta_model(), "Q8_0");
  EXPECT_EQ(error_of(file), "");
  EXPECT_THAT(error_of(with_number(file, "qwen35.ssm.group_count", 2)),
              HasSubstr("tensor \"blk.0.ssm_conv1d.weight\"; got shape [1536, 4], expected "
                        "[1280, 4] by the metadata"));
  EXPECT_THAT(error_of(with_number(file, "qwen35.full_attention_interval", 1)),
              HasSubstr("no tensor \"blk.0.attn_q.weight\" for "));
  EXPECT_THAT(error_of(with_name(file, "blk.0.attn_qkv.weight", "blk.0.attn_qkw.weight")),
              HasSubstr("no tensor \"blk.0.attn_qkv.weight\" for "));
  EXPECT_THAT(error_of(with_name(file, "blk.0.ssm_dt.bias", "blk.0.ssm_dq.bias")),
              HasSubstr("no tensor \"blk.0.ssm_dt.bias\" for "));
  EXPECT_THAT(error_of(with_dimensions_exchanged(file, "blk.0.ssm_conv1d.weight")),
              HasSubstr("tensor \"blk.0.ssm_conv1d.weight\"; got shape [4, 1536], expected "
                        "[1536, 4]"));
  EXPECT_THAT(error_of(with_dimensions_exchanged(file, "blk.1.attn_q.weight")),
              HasSubstr("tensor \"blk.1.attn_q.weight\"; got shape [256, 512], expected "
                        "[512, 256]"));
  // The first rate of decay, whose sign is damaged.
  auto gguf = GgufModel::from_memory(bytes_of(file), "m.gguf").value();
  const auto* const rates = reinterpret_cast<const char*>(gguf.tensor("blk.0.ssm_a")->bytes.data());
  std::string damaged = file;
  damaged[static_cast<size_t>(rates - file.data()) + 3] ^= '\x80';
  EXPECT_THAT(error_of(damaged), HasSubstr("tensor \"blk.0.ssm_a\"; got a number above 0"));
}

// A rank has 2 of the 4 heads of each tile, which are a block of 256 columns.
TEST(GgufDeltas, RanksCutNoBlockOfTheOutput) {
  const ScratchDirectory scratch;
  const auto error_on = [&](std::string_view matrices, int num_ranks) {
    EngineConfig config =
        cpu_config(scratch.write("m.gguf", gguf_of(random_delta_model(), matrices)));
    config.tensor_parallel_size = num_ranks;
    return testing::error_of(config);
  };
  EXPECT_THAT(error_on("Q4_K", 4),
              HasSubstr("tensor \"blk.0.ssm_out.weight\"; got blocks of 256 columns, expected a "
                        "divisor of the 128 that a rank has of each tile of value heads"));
}

// Every file that ends early is refused, and by its name.
TEST(GgufExperts, TruncatedFilesAreRefused) {
  const std::string file = gguf_of(random_models()[3], "Q4_0");
  for (size_t size = 0; size < file.size(); size += 1 + file.size() / 40) {
    EXPECT_THAT(error_of(file.substr(0, size)), AllOf(HasSubstr("m.gguf"), Not(HasSubstr("\n"))))
        << size;
  }
}

}  // namespace
}  // namespace quire::testing
