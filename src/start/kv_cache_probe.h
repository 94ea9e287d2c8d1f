// The check of a quantized KV cache (FP8 or int8) at start: a probe prompt runs with the cache as
// configured and with an unquantized one, and the next-token distributions are compared. The keys
// and values of the unquantized cache also give the scales of an FP8 cache, if they are wanted.
#pragma once

#include <cstdint>
#include <optional>
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
// activations. Scales that the row does not name are 1, which fits all three models.
// docs/architecture.md has the rows in which the scales of all keys and values are alike.
//
//   scales                                 embedded model   stories15M   stories260K
//   keys 0.01                              28.9 %           12.2 %       22.2 %
//   values 100                             17.9 %           18.8 %       8.1 %
//   keys 100, values 0.01                  6.4 %            3.6 %        4.0 %
//   keys and values 0.01, middle layer     18.8 %           4.6 %        8.3 %
//
// With scales of 1, the random models of tests/golden have 1.1 % to 6.6 %, and the one of
// DeepSeek-V3 has 9.5 %. An int8 cache has 1.3 % in the embedded model.
//
// The variation does not depend on how likely the text is for the model. The log probability of an
// unlikely token does: a harmless cache changes it by 0.3 nats on average.
inline constexpr double kKvProbeWarning = 0.10;
inline constexpr double kKvProbeRefusal = 0.25;

// Upper bound of the probe's tokens.
inline constexpr int kKvProbeTokens = 64;

// The mean over positions of the total variation distance between the next-token distributions of
// two runs, from 0 to 1: the least share of sampled tokens that differ. Each position has a token
// and then the most likely ones in descending order, so the result is a lower bound. NaN if any
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
// values: magnitudes up to kKvScaleMargin times as large stay below 448, the largest FP8 number.
// The margin is for text that differs from the probe; it costs no precision, except of numbers far
// below the largest.
inline constexpr float kKvScaleMargin = 4.0F;
float kv_scale(float largest_magnitude);

// Gives the layers without scales in the checkpoint the scales of a probe over an unquantized
// cache. Called directly before check_kv_cache(). Fails if the probe cannot run, because the
// configuration asks for these scales. Returns the argument `expected` of check_kv_cache(). A start
// does this only on request, because in the measured models calculated scales change the variation
// by less than its spread.
Result<std::vector<PositionLogprobs>> calculate_kv_scales(DeviceContext& context,
                                                          const ModelFiles& files,
                                                          const EnginePlan& plan, Model& model);

// Compares the quantized KV cache of `plan` with an unquantized one. `model` has the weights of
// files.weights, and no other runner uses it yet. The memory that the check takes is freed when it
// returns, so it belongs before the allocation of the KV cache. Warns above kKvProbeWarning, and
// fails with kInvalidArgument above kKvProbeRefusal. Does not check a model without logits, dummy
// weights, or a device without attention over an unquantized cache, and logs this. `expected`: of
// calculate_kv_scales(); absent: the check runs the probe over an unquantized cache. The check
// takes 0.02 to 0.4 s for the measured models on two cores. On a GPU, each of its two runners also
// measures products of up to 64 rows. It takes the memory of kKvProbeTokens tokens in a cache and
// of 32 rows of logits. It checks a prompt of the target: neither decode kernels nor a drafter,
// whose cache cannot change the output.
Status check_kv_cache(DeviceContext& context, const ModelFiles& files, const EnginePlan& plan,
                      Model& model, std::optional<std::vector<PositionLogprobs>> expected = {});

}  // namespace quire
