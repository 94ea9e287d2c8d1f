#include "model/model_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "cpu/attention/reference.h"
#include "model/decoder.h"
#include "model/footprint.h"
#include "model/shard.h"
#include "support/model_harness.h"
#include "support/reference_ops.h"

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
  decoder.qkv_bias = decoder.o_bias = decoder.mlp_bias = decoder.qk_norm = true;
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

// Dummy weights that know their names as a checkpoint does, and what is wrong with one of them.
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
  EXPECT_TRUE(weights.held_.empty()) << "all memory of the source is given back";
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
                 [&seen](int done, int total) { seen.push_back(10 * done + total); });
  ASSERT_TRUE(model.ok());
  EXPECT_THAT(seen, ElementsAre(12, 22));
}

TEST(KvGroups, LayersOfOneWindowShareOne) {
  DecoderConfig decoder = small_decoder(4);
  decoder.layer_windows = {0, 8, 32, 8};  // 32 is max_model_len: no sequence outgrows it
  const ModelConfig config = small_config(decoder);
  DummyWeights weights(DType::kF32);
  ReferenceOps ops;
  const auto model = load_model(config, weights, ops, small_limits());
  ASSERT_TRUE(model.ok());
  const std::vector<KvGroup>& groups = (*model)->kv_groups();
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].decode.window, 0);
  EXPECT_THAT(groups[0].layers, ElementsAre(0, 2));
  EXPECT_EQ(groups[1].decode.window, 8);
  EXPECT_THAT(groups[1].layers, ElementsAre(1, 3));
  EXPECT_FLOAT_EQ(groups[0].decode.scale, 1.0F / std::sqrt(8.0F));
}

TEST(Shard, PartsTileTheWholeOnce) {
  for (const int size : {1, 2, 3, 6}) {
    int64_t next = 0;
    for (int rank = 0; rank < size; ++rank) {
      const Slice slice = shard(12, {rank, size});
      EXPECT_EQ(slice.first, next);
      next += slice.count;
    }
    EXPECT_EQ(next, 12);
  }
  EXPECT_THAT(check_shards(small_decoder(), {0, 4}).message(),
              AllOf(HasSubstr("num_key_value_heads; got 2"), HasSubstr("size 4")));
  EXPECT_FALSE(check_shards(small_decoder(), {2, 2}).ok());
  EXPECT_TRUE(check_shards(small_decoder(), {1, 2}).ok());
}

// Sums over two threads, each of which runs one rank.
class TwoRankOps : public ReferenceOps {
 public:
  struct Meeting {
    std::barrier<> barrier{2};
    TensorView parts[2];
  };
  TwoRankOps(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}

  void all_reduce(TensorView x, Stream& /*stream*/) override {
    meeting_.parts[rank_] = x;
    meeting_.barrier.arrive_and_wait();
    std::vector<float> sum(static_cast<size_t>(x.shape.num_elements()));
    for (size_t i = 0; i < sum.size(); ++i) {
      sum[i] = meeting_.parts[0].as<float>()[i] + meeting_.parts[1].as<float>()[i];
    }
    meeting_.barrier.arrive_and_wait();
    std::copy(sum.begin(), sum.end(), x.as<float>());
  }

 private:
  Meeting& meeting_;
  int rank_;
};

std::vector<float> prompt_logits(const ModelConfig& config, Ops& ops, const Parallel& parallel) {
  ModelLimits limits = small_limits();
  limits.parallel = parallel;
  DummyWeights weights(DType::kF32);
  const auto model = load_model(config, weights, ops, limits).value();
  const auto attention = make_reference_attention();
  ModelHarness harness(*model, *attention, limits);
  return harness.step({{0, {1, 5, 19, 0, 7, 7, 3}}}).value().front();
}

TEST(Parallel, TwoRanksGiveTheLogitsOfOne) {
  const ModelConfig config = small_config(biased_decoder());
  ReferenceOps one_rank;
  const std::vector<float> expected = prompt_logits(config, one_rank, {0, 1});

  TwoRankOps::Meeting meeting;
  std::vector<float> got[2];
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      TwoRankOps ops(meeting, rank);
      got[rank] = prompt_logits(config, ops, {rank, 2});
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const std::vector<float>& logits : got) {
    ASSERT_EQ(logits.size(), expected.size());
    for (size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(logits[i], expected[i], 1e-5) << i;
  }
}

}  // namespace
}  // namespace quire::testing
