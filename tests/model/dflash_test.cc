#include "model/dflash/dflash.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/thread_pool.h"
#include "cpu/attention/reference.h"
#include "cpu/ops/cpu_ops.h"
#include "model/model_loader.h"
#include "support/dflash_reference.h"
#include "support/drafter_parts.h"
#include "support/model_harness.h"
#include "support/reference_ops.h"
#include "support/value_of.h"
#include "tensor/checkpoint.h"

namespace quire::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Row = DFlashReference::Row;

BlockMethod method_of(const BlockShape& shape) {
  return shape.is_dspark ? BlockMethod::kDSpark : BlockMethod::kDFlash;
}

// A drafter beside its target, and the drafter's reference.
class DrafterOfTarget {
 public:
  DrafterOfTarget(const BlockShape& shape, Ops& ops)
      : DrafterOfTarget(shape, random_block_drafter(shape), ops) {}
  DrafterOfTarget(const BlockShape& shape, const StoredTensors& tensors, Ops& ops)
      : shape_(shape), parts_(target_config(shape.target_hidden, shape.vocab), tensors, ops) {}

  Result<std::unique_ptr<Model>> load() {
    QUIRE_ASSIGN_OR_RETURN(const ModelConfig config,
                           parse_dflash_config(block_config_json(shape_), "config.json",
                                               parts_.weights(), method_of(shape_)));
    return load_dflash(config, parts_.target(), parts_.weights(), parts_.ops(), parts_.limits());
  }

  DFlashReference reference() {
    const Shape shape = {shape_.vocab, shape_.hidden};
    return DFlashReference(shape_, parts_.tensors(),
                           parts_.own_or_shared("embed_tokens.weight", shape),
                           parts_.own_or_shared("lm_head.weight", shape));
  }

  const ModelLimits& limits() const { return parts_.limits(); }

 private:
  BlockShape shape_;
  DrafterWithTarget parts_;
};

std::string load_error(const BlockShape& shape, const StoredTensors& tensors) {
  ReferenceOps ops;
  const auto drafter = DrafterOfTarget(shape, tensors, ops).load();
  return drafter.ok() ? "" : drafter.status().message();
}

// Two sequences: each has a context, a block after it, then more context in the block's place, and
// a shorter block. Everything is compared with the reference.
void expect_agrees(const BlockShape& shape, Ops& ops, double tolerance, const std::string& what) {
  DrafterOfTarget parts(shape, ops);
  const auto drafter = parts.load();
  ASSERT_TRUE(drafter.ok()) << what << ": " << drafter.status().message();
  const DFlashReference reference = parts.reference();
  const auto attention = make_reference_attention();
  ModelHarness harness(**drafter, *attention, parts.limits());
  const auto hidden = static_cast<size_t>(shape.hidden);
  const size_t taps_width =
      shape.target_layer_ids.size() * static_cast<size_t>(shape.target_hidden);

  std::vector<std::vector<Row>> contexts(2);
  const auto extend = [&](std::vector<int> counts, uint32_t seed) {
    std::vector<HarnessChunk> chunks;
    for (size_t seq = 0; seq < counts.size(); ++seq) {
      const int count = counts[seq];
      std::vector<float> taps =
          random_floats(static_cast<size_t>(count) * taps_width, seed + static_cast<uint32_t>(seq));
      std::vector<float> states(static_cast<size_t>(count) * hidden);
      (*drafter)->block_head()->combine(
          {taps.data(), DType::kF32, {count, static_cast<int64_t>(taps_width)}},
          {states.data(), DType::kF32, {count, shape.hidden}});
      std::vector<Row> expected;
      for (const Row& row : rows_of(taps, taps_width)) expected.push_back(reference.combine(row));
      expect_near_rows(states, expected, tolerance, what + ", combined");
      contexts[seq].insert(contexts[seq].end(), expected.begin(), expected.end());
      chunks.push_back({static_cast<int>(seq), std::vector<int32_t>(static_cast<size_t>(count)),
                        std::move(states)});
    }
    const Status status = harness.write_context(*(*drafter)->block_head(), chunks);
    ASSERT_TRUE(status.ok()) << what << ": " << status.message();
  };
  const auto expect_blocks = [&](const std::vector<std::vector<int32_t>>& blocks) {
    const auto logits = value_of(harness.step({{0, blocks[0]}, {1, blocks[1]}}));
    for (int seq = 0; seq < 2; ++seq) {
      const auto i = static_cast<size_t>(seq);
      expect_near_rows(logits[i], reference.run(contexts[i], blocks[i]), tolerance,
                       fmt::format("{}, block of {}", what, seq));
      harness.cut(seq, static_cast<int>(contexts[i].size()));
    }
  };
  const int32_t mask = shape.mask_token_id;
  extend({5, 2}, 2);
  expect_blocks({{7, mask, mask, mask}, {3, mask, mask, mask}});
  extend({1, 3}, 7);
  expect_blocks({{0, mask}, {11, mask, mask}});
}

TEST(DFlash, AgreesWithTheReference) {
  const std::pair<const char*, BlockShape> cases[] = {
      {"DFlash", {}},
      {"DFlash, one layer and tap", {.num_layers = 1, .target_layer_ids = {-1}}},
      {"DFlash, biases", {.has_bias = true}},
      {"DFlash, own matrices and a wider target",
       {.target_hidden = 24, .has_embeddings = true, .has_lm_head = true}},
      {"DFlash of speculators",
       {.is_speculators = true, .draft_vocab = 12, .has_embeddings = true, .has_lm_head = true}},
      {"DFlash of speculators, the target's matrices", {.is_speculators = true}},
      {"DFlash of speculators, own embeddings", {.is_speculators = true, .has_embeddings = true}},
      {"DFlash, a part of the vocabulary", {.draft_vocab = 7, .has_lm_head = true}},
      {"DSpark", {.is_dspark = true, .markov_rank = 6}},
      {"DSpark of speculators",
       {.is_dspark = true,
        .is_speculators = true,
        .draft_vocab = 12,
        .markov_rank = 6,
        .has_lm_head = true}},
      {"DSpark, own matrices",
       {.is_dspark = true, .num_layers = 3, .has_embeddings = true, .has_lm_head = true}},
  };
  ThreadPool pool(2);
  const auto cpu = make_cpu_ops(pool);
  ReferenceOps reference;
  for (const auto& [what, shape] : cases) {
    expect_agrees(shape, reference, 1e-5, what);
    expect_agrees(shape, *cpu, 1e-4, std::string(what) + " on the CPU");
  }
}

TEST(DFlash, HasTheTransitionsOfDSpark) {
  for (const int draft_vocab : {20, 12}) {
    const BlockShape shape = {
        .is_dspark = true, .draft_vocab = draft_vocab, .markov_rank = 6, .has_lm_head = true};
    ReferenceOps ops;
    DrafterOfTarget parts(shape, ops);
    const auto drafter = value_of(parts.load());
    BlockHead& head = *drafter->block_head();
    ASSERT_TRUE(head.has_transitions());
    const int32_t previous[] = {4, 19, 4};
    std::vector<float> got(3 * static_cast<size_t>(draft_vocab));
    head.transitions(previous, 3, {got.data(), DType::kF32, {3, draft_vocab}});
    const DFlashReference reference = parts.reference();
    const std::vector<Row> expected = {reference.transition(4), reference.transition(19),
                                       reference.transition(4)};
    expect_near_rows(got, expected, 1e-5, "transitions");
  }
}

TEST(DFlash, ListsTheTargetsIdsByDraftId) {
  ReferenceOps ops;
  const auto ids = [&](const BlockShape& shape) {
    const auto drafter = value_of(DrafterOfTarget(shape, ops).load());
    const std::span<const int32_t> span = drafter->block_head()->target_ids();
    return std::vector<int32_t>(span.begin(), span.end());
  };
  EXPECT_THAT(ids({.is_speculators = true, .draft_vocab = 12, .has_lm_head = true}),
              ElementsAre(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 0, 2));
  EXPECT_THAT(ids({.is_speculators = true}), ElementsAre());
}

TEST(DFlash, RefusesAWrongVocabulary) {
  const BlockShape shape = {.is_speculators = true, .draft_vocab = 3, .has_lm_head = true};
  const auto error_of = [&](const std::vector<int64_t>& differences) {
    StoredTensors tensors = random_block_drafter(shape);
    tensors["d2t"] = stored_integers(differences);
    return load_error(shape, tensors);
  };
  EXPECT_EQ(error_of({0, 5, 17}), "");
  EXPECT_THAT(error_of({0, 5, 18}),
              AllOf(HasSubstr("tensor \"d2t\" maps draft id 2 outside of the "
                              "target's 20 tokens; got a difference of 18, expected -2 to 17"),
                    HasSubstr("use a drafter that was trained for this model, or get the "
                              "checkpoint beside config.json again")));
  EXPECT_THAT(error_of({0, 0}), AllOf(HasSubstr("got [2], expected [3]"),
                                      HasSubstr("use a drafter that was trained for this model")));
  StoredTensors tensors = random_block_drafter(shape);
  tensors.erase("d2t");
  EXPECT_THAT(load_error(shape, tensors), HasSubstr("\"d2t\" of shape [3] is missing"));
  tensors = random_block_drafter(shape);
  tensors.erase("lm_head.weight");
  EXPECT_THAT(load_error(shape, tensors),
              HasSubstr("no tensor \"lm_head.weight\", and the target's has another vocabulary; "
                        "got 20, expected 3"));
}

TEST(DFlash, NamesTheTensorThatIsMissingOrHasAnotherShape) {
  for (const bool is_dspark : {false, true}) {
    const BlockShape shape = {.is_dspark = is_dspark,
                              .draft_vocab = 12,
                              .markov_rank = is_dspark ? 3 : 0,
                              .has_lm_head = true};
    for (const auto& [name, tensor] : random_block_drafter(shape)) {
      if (name.starts_with("confidence_head.") || name == "t2d") continue;
      StoredTensors tensors = random_block_drafter(shape);
      tensors[name].shape.insert(tensors[name].shape.begin(), 1);
      EXPECT_THAT(load_error(shape, tensors), HasSubstr('"' + name + '"')) << "another shape";
      tensors.erase(name);
      EXPECT_THAT(load_error(shape, tensors), HasSubstr('"' + name + '"')) << "missing";
    }
  }
}

TEST(DFlash, RefusesTensorsThatItDoesNotUse) {
  StoredTensors tensors = random_block_drafter({});
  tensors["mask_embedding"] = tensors["norm.weight"];
  EXPECT_THAT(load_error({}, tensors),
              AllOf(HasSubstr("\"mask_embedding\""), HasSubstr("the DFlash drafter")));
}

TEST(DFlash, PlansItsMemory) {
  for (const int markov_rank : {0, 5}) {
    const BlockShape shape = {
        .is_dspark = true, .draft_vocab = 12, .markov_rank = markov_rank, .has_lm_head = true};
    const StoredTensors tensors = random_block_drafter(shape);
    const DrafterFile file(tensors);
    const ModelConfig config = parse_dflash_config(block_config_json(shape), "config.json",
                                                   *file.weights, BlockMethod::kDSpark)
                                   .value();
    CountingOps ops;
    DrafterOfTarget parts(shape, ops);
    ops.num_bytes = 0;
    ModelLimits limits = parts.limits();
    ASSERT_TRUE(parts.load().ok());
    limits.tapped_layers = {1, 4, 7};  // of the target
    const int64_t logits = int64_t{limits.max_num_logit_rows} * shape.draft_vocab * 4;
    EXPECT_EQ(dflash_activation_bytes(config, limits, ops), ops.num_bytes + logits);

    std::set<std::string> listed = {"confidence_head.proj.bias", "confidence_head.proj.weight",
                                    "d2t", "t2d"};
    for (const TensorSpec& tensor : list_dflash_tensors(config)) listed.insert(tensor.name);
    std::set<std::string> stored;
    for (const auto& [name, tensor] : tensors) stored.insert(name);
    EXPECT_EQ(listed, stored);
  }
}

// ------ configuration

std::string misfit(const BlockShape& shape, const ModelConfig& target) {
  const DrafterFile file(random_block_drafter(shape));
  const auto config =
      parse_dflash_config(block_config_json(shape), "config.json", *file.weights, method_of(shape));
  if (!config.ok()) return config.status().message();
  return check_dflash(*config, target).message();
}

TEST(DFlashConfig, FitsItsTargetAlone) {
  EXPECT_EQ(misfit({}, target_config()), "");
  EXPECT_THAT(misfit({}, target_config(16, 21)),
              HasSubstr("the DFlash drafter's vocab_size is not that of the target; got 20, "
                        "expected 21"));
  EXPECT_THAT(misfit({.is_dspark = true}, target_config(24)),
              HasSubstr("the DSpark drafter's target_hidden_size is not that of the target; got "
                        "16, expected 24"));
  EXPECT_THAT(misfit({}, target_config(16, 20, 8)),
              HasSubstr("num_target_layers is not that of the target; got 7, expected 8"));
  EXPECT_THAT(misfit({.target_layer_ids = {2, 7}}, target_config()),
              HasSubstr("target_layer_ids are beyond the target's layers; got 7, expected at most "
                        "6"));
  EXPECT_THAT(misfit({.is_speculators = true, .target_layer_ids = {2, 7}}, target_config()),
              HasSubstr("aux_hidden_state_layer_ids are beyond the target's layers; got 8, "
                        "expected at most 7"));
  EXPECT_THAT(misfit({.draft_vocab = 12, .has_lm_head = true}, target_config(16, 12)),
              HasSubstr("vocab_size is not that of the target; got 20, expected 12"));
  EXPECT_THAT(
      misfit({.target_hidden = 24}, target_config(24)),
      AllOf(HasSubstr("no tensor \"embed_tokens.weight\""), HasSubstr("got 24, expected 16")));
  EXPECT_THAT(misfit({.target_hidden = 24, .has_embeddings = true}, target_config(24)),
              HasSubstr("no tensor \"lm_head.weight\""));
  EXPECT_EQ(
      misfit({.target_hidden = 24, .has_embeddings = true, .has_lm_head = true}, target_config(24)),
      "");
}

// A valid config.json with `from` replaced by `to`.
Result<ModelConfig> parse_with(std::string_view from, std::string_view to,
                               const BlockShape& shape = {}) {
  std::string json = block_config_json(shape);
  json.replace(json.find(from), from.size(), to);
  return parse_dflash_config(json, "c", DummyWeights(DType::kF32), method_of(shape));
}

std::string config_error(std::string_view from, std::string_view to, const BlockShape& shape = {}) {
  const auto config = parse_with(from, to, shape);
  return config.ok() ? "" : config.status().message();
}

TEST(DFlashConfig, ReadsItsBlock) {
  const auto config = value_of(parse_with("{", "{"));
  EXPECT_THAT(dflash_config(config).tapped_layers, ElementsAre(1, 4, 7));
  const BlockLayout block = dflash_config(config).block;
  EXPECT_EQ(block.size, 5);
  EXPECT_EQ(block.mask_token_id, 18);
  EXPECT_EQ(block.max_drafts(), 4);
  EXPECT_EQ(block.num_tokens(3), 4);
  const auto dspark = value_of(parse_with("{", "{", {.is_dspark = true, .markov_rank = 3}));
  EXPECT_EQ(dflash_config(dspark).markov_rank, 3);
  EXPECT_EQ(dflash_config(dspark).block.max_drafts(), 5);
  EXPECT_EQ(dflash_config(dspark).block.num_tokens(3), 3);
  const auto shifted = parse_with("{", R"({"sample_from_anchor":false,)", {.is_dspark = true});
  EXPECT_EQ(dflash_config(*shifted).block.max_drafts(), 4);
}

// The fields of published checkpoints, and those of tools/train/drafters/train_block.py.
TEST(DFlashConfig, ReadsPublishedConfigurations) {
  const auto parse = [](std::string_view json, BlockMethod method) {
    return value_of(parse_dflash_config(json, "c", DummyWeights(DType::kF32), method));
  };
  const ModelConfig dflash = parse(R"({
      "architectures": ["DFlashDraftModel"], "attention_bias": false, "attention_dropout": 0.0,
      "auto_map": {"AutoModel": "dflash.DFlashDraftModel"}, "block_size": 16,
      "dflash_config": {"mask_token_id": 151669, "target_layer_ids": [1, 9, 17, 25, 33]},
      "dtype": "bfloat16", "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
      "hidden_size": 4096, "intermediate_size": 12288, "layer_types": ["full_attention",
      "full_attention", "full_attention", "full_attention", "full_attention"],
      "max_position_embeddings": 40960, "max_window_layers": 5, "model_type": "qwen3",
      "num_attention_heads": 32, "num_hidden_layers": 5, "num_key_value_heads": 8,
      "num_target_layers": 36, "rms_norm_eps": 1e-06, "rope_scaling": null,
      "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": false,
      "use_sliding_window": false, "vocab_size": 151936})",
                                   BlockMethod::kDFlash);
  EXPECT_EQ(dflash_config(dflash).block.max_drafts(), 15);
  EXPECT_THAT(dflash_config(dflash).tapped_layers, ElementsAre(2, 10, 18, 26, 34));
  const ModelConfig speculators = parse(R"({
      "architectures": ["DFlashDraftModel"], "aux_hidden_state_layer_ids": [1, 9, 17, 25, 33],
      "block_size": 8, "draft_vocab_size": 32000, "dtype": "bfloat16", "has_no_defaults_at_init":
      false, "mask_token_id": 151669, "sample_from_anchor": false, "sliding_window_non_causal":
      false, "speculators_config": {"algorithm": "dflash", "default_proposal_method": "greedy",
      "proposal_methods": [{"accept_tolerance": 0.0, "proposal_type": "greedy",
      "speculative_tokens": 7, "verifier_accept_k": 1}], "verifier": {"architectures":
      ["Qwen3ForCausalLM"], "name_or_path": "Qwen/Qwen3-8B"}}, "speculators_model_type": "dflash",
      "speculators_version": "0.5.0", "target_hidden_size": null, "tie_word_embeddings": false,
      "transformer_layer_config": {"attention_bias": false, "attention_dropout": 0.0, "head_dim":
      128, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
      "intermediate_size": 12288, "layer_types": ["full_attention", "full_attention",
      "full_attention"], "max_position_embeddings": 40960, "max_window_layers": 3, "model_type":
      "qwen3", "num_attention_heads": 32, "num_hidden_layers": 3, "num_key_value_heads": 8,
      "rms_norm_eps": 1e-06, "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"},
      "sliding_window": null, "use_cache": true, "use_sliding_window": false, "vocab_size":
      151936}, "transformers_version": "5.0.0"})",
                                        BlockMethod::kDFlash);
  EXPECT_EQ(speculators.vocab_size, 32000);
  EXPECT_EQ(dflash_config(speculators).target_vocab_size, 151936);
  EXPECT_EQ(dflash_config(speculators).block.max_drafts(), 7);
  EXPECT_THAT(dflash_config(speculators).tapped_layers, ElementsAre(1, 9, 17, 25, 33));
  const ModelConfig dspark = parse(R"({
      "architectures": ["Qwen3DSparkModel"], "attention_bias": false, "block_size": 7,
      "confidence_head_with_markov": true, "dtype": "bfloat16", "enable_confidence_head": true,
      "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 12288,
      "markov_head_type": "vanilla", "markov_rank": 256, "mask_token_id": 151669,
      "max_position_embeddings": 40960, "model_type": "qwen3", "num_anchors": 512,
      "num_attention_heads": 32, "num_hidden_layers": 5, "num_key_value_heads": 8,
      "num_target_layers": 36, "rms_norm_eps": 1e-06,
      "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"},
      "target_layer_ids": [1, 9, 17, 25, 33], "tie_word_embeddings": false,
      "vocab_size": 151936})",
                                   BlockMethod::kDSpark);
  EXPECT_EQ(dflash_config(dspark).block.max_drafts(), 7);
  EXPECT_EQ(dflash_config(dspark).markov_rank, 256);
  const ModelConfig trained = parse(R"({
      "architectures": ["DFlashDraftModel"], "model_type": "qwen3", "vocab_size": 1536,
      "hidden_size": 256, "intermediate_size": 192, "num_hidden_layers": 3,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
      "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
      "block_size": 8, "num_target_layers": 8,
      "dflash_config": {"mask_token_id": 0, "target_layer_ids": [1, 4, 6]},
      "layer_types": ["full_attention", "full_attention", "full_attention"],
      "hidden_act": "silu", "attention_bias": false, "rope_scaling": null,
      "tie_word_embeddings": true, "use_sliding_window": false, "torch_dtype": "bfloat16"})",
                                    BlockMethod::kDFlash);
  EXPECT_EQ(dflash_config(trained).block.max_drafts(), 7);
  EXPECT_THAT(dflash_config(trained).tapped_layers, ElementsAre(2, 5, 7));
  EXPECT_TRUE(dflash_config(trained).shares_lm_head());
}

TEST(DFlashConfig, RefusesVariantsByName) {
  const auto added = [](std::string_view fields, const BlockShape& shape = {}) {
    return config_error("{", fmt::format("{{{},", fields), shape);
  };
  const auto nested = [](std::string_view fields) {
    return config_error(R"("dflash_config":{)", fmt::format(R"("dflash_config":{{{},)", fields));
  };
  EXPECT_EQ(added(R"("use_sliding_window":false,"sliding_window":null)"), "");
  EXPECT_EQ(nested(R"("causal":false)"), "");
  EXPECT_THAT(nested(R"("causal":true)"),
              HasSubstr("c: dflash_config.causal; got true, expected false"));
  EXPECT_THAT(nested(R"("use_swa":true)"), HasSubstr("dflash_config.use_swa"));
  EXPECT_THAT(nested(R"("attention_sink_bias":true)"), HasSubstr("attention_sink_bias"));
  EXPECT_THAT(added(R"("is_causal":true)"), HasSubstr("is_causal; got true, expected false"));
  EXPECT_THAT(added(R"("is_neox_style":false)"), HasSubstr("is_neox_style"));
  EXPECT_THAT(added(R"("layer_types":["full_attention","sliding_attention"])"),
              HasSubstr("layer_types"));
  EXPECT_THAT(added(R"("logit_scale":0.5)"), HasSubstr("logit_scale"));
  EXPECT_THAT(added(R"("markov_rank":2)"), HasSubstr("markov_rank; got 2, expected 0, or method "
                                                     "dspark"));
  EXPECT_THAT(added(R"("quantization_config":{"quant_method":"fp8"})"), HasSubstr("quantized"));
  EXPECT_THAT(config_error("DFlashDraftModel", "DFlash2DraftModel"),
              HasSubstr("architectures; got \"DFlash2DraftModel\", expected DFlashDraftModel"));
  EXPECT_THAT(config_error("qwen3", "gemma4_text"), HasSubstr("model_type; got \"gemma4_text\""));
  const BlockShape dspark = {.is_dspark = true, .markov_rank = 3};
  EXPECT_THAT(config_error("vanilla", "rnn", dspark),
              HasSubstr("markov_head_type; got \"rnn\", expected \"vanilla\""));
}

TEST(DFlashConfig, RefusesVariantsOfSpeculatorsByName) {
  const BlockShape shape = {.is_speculators = true};
  const auto added = [&](std::string_view fields) {
    return config_error("{", fmt::format("{{{},", fields), shape);
  };
  const auto nested = [&](std::string_view fields) {
    return config_error(R"("transformer_layer_config":{)",
                        fmt::format(R"("transformer_layer_config":{{{},)", fields), shape);
  };
  EXPECT_EQ(added(R"("projector_type":"dflash","shift_label":false,"sample_from_anchor":false)"),
            "");
  EXPECT_THAT(added(R"("projector_type":"domino")"),
              HasSubstr("projector_type; got \"domino\", expected \"dflash\""));
  EXPECT_THAT(added(R"("shift_label":true)"), HasSubstr("shift_label; got true"));
  EXPECT_THAT(added(R"("layer_types":["full_attention","sliding_attention"])"),
              HasSubstr("c: layer_types; got \"sliding_attention\""));
  EXPECT_THAT(added(R"("use_sliding_window":true)"), HasSubstr("use_sliding_window"));
  EXPECT_THAT(nested(R"("layer_types":["full_attention","sliding_attention"])"),
              HasSubstr("c: transformer_layer_config.layer_types; got \"sliding_attention\""));
  EXPECT_THAT(config_error("qwen3", "llama", shape),
              HasSubstr("transformer_layer_config.model_type; got \"llama\""));
  EXPECT_THAT(config_error(R"("dflash")", R"("dspark")", shape),
              HasSubstr("speculators_model_type; got \"dspark\", expected \"dflash\""));
  EXPECT_THAT(config_error("transformer_layer_config", "layers", shape),
              HasSubstr("transformer_layer_config; got nothing, expected an object"));
  EXPECT_THAT(config_error("aux_hidden_state_layer_ids", "other", shape),
              HasSubstr("aux_hidden_state_layer_ids; got nothing"));
  EXPECT_THAT(config_error(R"("mask_token_id":18)", R"("mask_token_id":null)", shape),
              HasSubstr("mask_token_id; got nothing"));
  EXPECT_THAT(config_error("[1,4,7]", "[4,1]", shape),
              HasSubstr("aux_hidden_state_layer_ids; got [4, 1], expected layers in ascending"));
  EXPECT_THAT(config_error("[1,4,7]", "[-1]", shape), HasSubstr("aux_hidden_state_layer_ids"));
  EXPECT_THAT(config_error(R"("draft_vocab_size":20)", R"("draft_vocab_size":21)", shape),
              HasSubstr("draft_vocab_size; got \"21\", expected a whole number from 1 to 20"));
}

TEST(DFlashConfig, RefusesValuesOutOfRange) {
  EXPECT_THAT(
      config_error(R"("mask_token_id":18)", R"("mask_token_id":20)"),
      HasSubstr("dflash_config.mask_token_id; got \"20\", expected a whole number from 0 to "
                "19"));
  EXPECT_THAT(config_error(R"("mask_token_id":18,)", ""), HasSubstr("mask_token_id; got nothing"));
  EXPECT_THAT(config_error(R"("block_size":5)", R"("block_size":1)"),
              HasSubstr("block_size; got \"1\""));
  EXPECT_THAT(config_error(R"("block_size":5,)", ""), HasSubstr("block_size; got nothing"));
  EXPECT_THAT(config_error("[0,3,6]", "[]"), HasSubstr("target_layer_ids; got nothing"));
  EXPECT_THAT(config_error("[0,3,6]", "[3,0]"),
              HasSubstr("target_layer_ids; got [3, 0], expected layers in ascending order"));
  EXPECT_THAT(config_error("[0,3,6]", "[3,3]"), HasSubstr("ascending order"));
  EXPECT_THAT(config_error("[0,3,6]", "[-2]"), HasSubstr("target_layer_ids"));
}

}  // namespace
}  // namespace quire::testing
