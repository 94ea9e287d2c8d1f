// The check of a quantized KV cache (FP8 or int8) at start: a probe prompt runs with the cache as
// configured and with an unquantized one, and the next-token distributions are compared. With
// `calculate_kv_scales`, the keys and values of the unquantized cache also give the scales of an
// FP8 cache.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/model.h"
#include "platform/platform.h"
#include "quire/request.h"
#include "quire/status.h"
#include "start/engine_plan.h"
#include "start/model_files.h"

namespace quire {

// The bounds of mean_variation(), chosen by these variations of an FP8 cache on a CPU with F32
// activations. All scales that a row does not name are 1, which fits the three models.
// docs/architecture.md has more rows.
//
//   scales                                 embedded model   stories15M   stories260K
//   keys 0.01                              28.9 %           12.2 %       22.2 %
//   values 100                             17.9 %           18.8 %       8.1 %
//   keys 100, values 0.01                  6.4 %            3.6 %        4.0 %
//   keys and values 0.01, middle layer     18.8 %           4.6 %        8.3 %
//
// With scales of 1, the variation is 1.1 % to 6.6 % for the random models of tests/golden, except
// for 9.5 % for the model of DeepSeek-V3. With an int8 cache, it is 1.3 % for the embedded model.
//
// The bounds are not for log probabilities, because these depend on how likely the text is for the
// model: a harmless cache changes the log probability of an unlikely token by 0.3 nats on average.
// The variation does not depend on that.
inline constexpr double kKvProbeWarning = 0.10;
inline constexpr double kKvProbeRefusal = 0.25;

// Upper bound of the probe's tokens.
inline constexpr int kKvProbeTokens = 64;

// The mean over positions of the total variation distance between the next-token distributions of
// two runs: the smallest fraction of sampled tokens, 0 to 1, that can differ. It is a lower bound,
// because each position has only a token and the most likely ones, in descending order. NaN if any
// number is NaN, or if the numbers of positions are 0 or differ.
double mean_variation(std::span<const PositionLogprobs> got,
                      std::span<const PositionLogprobs> expected);

enum class KvProbeVerdict { kGood, kWarning, kRefusal };

// A variation that is not a number is refused.
KvProbeVerdict judge_kv_probe(double variation);

// At most max_tokens token ids: the model's encoding of a fixed English text, or, without a
// tokenizer, ids that are spread over the vocabulary.
Result<std::vector<int32_t>> kv_probe_tokens(const ModelFiles& files, int max_tokens);

// The scales that a layer's FP8 cache gets from the largest magnitudes of the probe's keys and
// values: magnitudes up to kKvScaleMargin times as large do not exceed 448, the largest FP8 number.
// The margin is for text that differs from the probe; it costs precision only for numbers far below
// the largest.
inline constexpr float kKvScaleMargin = 4.0F;
float kv_scale(float largest_magnitude);

// Probes the quantized KV cache of `plan`. If plan.calculates_kv_scales, first gives the layers
// without scales in the checkpoint the scales of a probe over an unquantized cache. A start does
// this only on request, because in the measured models calculated scales change the variation by
// less than its spread.
//
// Then compares the cache with an unquantized one. Warns above kKvProbeWarning, and fails with
// kInvalidArgument above kKvProbeRefusal. Only logs a reason for a model without logits, dummy
// weights, or a device without attention over an unquantized cache. `model` has the weights of
// files.weights, and no runner uses it yet.
//
// The comparison takes 0.02 to 0.4 s for the measured models on two CPU cores. On a GPU, each of
// its two runners also measures products of up to 64 rows. Its memory, kKvProbeTokens tokens of
// cache and 32 rows of logits, is freed when it returns, so call it before the KV cache is
// allocated. It runs only a prompt of the target. So it checks neither decode kernels nor a
// drafter, whose cache cannot change the output.
Status probe_kv_cache(DeviceContext& context, const ModelFiles& files, const EnginePlan& plan,
                      Model& model);

}  // namespace quire
