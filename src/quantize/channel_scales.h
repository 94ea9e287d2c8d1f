// Activation-aware scales per channel (AWQ, https://arxiv.org/abs/2306.00978): a channel of a
// matrix's input with large values is divided by a scale, and the matrix's column is multiplied by
// it, so that the rounding of the column to 4 bits costs less. A tensor before the matrix absorbs
// the division, and the function of the model stays the same.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "model/decoder_config.h"
#include "model/weights.h"
#include "quire/status.h"
#include "tensor/weight_source.h"

namespace quire {

// The inputs of a matrix in the calibration text, by channel: the means of |x| and of x^2.
struct InputStatistics {
  std::vector<double> mean_magnitude;
  std::vector<double> mean_square;
};

// By the name of the matrix. Matrices that read the same input share an object.
using InputStatisticsByMatrix =
    std::map<std::string, std::shared_ptr<const InputStatistics>, std::less<>>;

// Whether the tensor is a matrix of a layer: one that is rounded to 4 bits.
bool is_layer_matrix(const TensorSpec& tensor);

// Matrices that read one input, and the tensors that absorb its scales.
struct ScaleGroup {
  std::vector<TensorSpec> readers;
  // A norm's weight, or a matrix (and its bias) on whose output the input depends linearly.
  std::vector<TensorSpec> producers;
  // The channels are heads of head_dim elements. heads_per_producer adjacent heads come from the
  // same rows of the producer, and have the same scales: the query heads of one KV head.
  int64_t head_dim = 1;
  int64_t heads_per_producer = 1;

  int64_t num_channels() const { return readers.front().shape[1]; }
  // The producer's row, or the norm's element, that the channel comes from.
  int64_t producer_row(int64_t channel) const {
    return channel / (head_dim * heads_per_producer) * head_dim + channel % head_dim;
  }
};

// The groups of a dense decoder's layers, in an order in which the scales of a producer's columns
// are found before the scales of its rows. A matrix is in no group if no tensor can absorb the
// scales of its input.
std::vector<ScaleGroup> find_scale_groups(std::span<const TensorSpec> tensors,
                                          const DecoderConfig& decoder);

// The names of the layers' matrices that are the readers of no group.
std::vector<std::string> unscaled_matrices(std::span<const TensorSpec> tensors,
                                           std::span<const ScaleGroup> groups);

// The scales that a tensor absorbs.
struct TensorScales {
  std::vector<float> columns;   // multiply a matrix's columns; empty: 1
  std::vector<float> divisors;  // divide a matrix's rows, or a vector's elements; empty: 1
  float addend = 0.0F;          // of a norm: divides number + addend
  // The cost of errors in each scaled column of a matrix: E[x^2] of the divided input, relative to
  // the largest; empty: all columns cost the same.
  std::vector<float> importance;

  void scale_row(int64_t row, std::span<float> numbers) const;  // of a matrix
  void scale_vector(std::span<float> numbers) const;
};

// By the name of the tensor; other tensors keep their numbers.
using ChannelScales = std::map<std::string, TensorScales, std::less<>>;
// Null: the tensor has none.
const TensorScales* find_scales(const ChannelScales& scales, std::string_view name);

// The number of exponents that are tried: 0, 1/20, …, 1. With exponent 0 all scales are 1.
inline constexpr int kNumScaleExponents = 21;

// The best exponent for a group, and the sum over its matrices of E[x^2] * (error of a weight)^2,
// with plain rounding and with the scales.
struct ScaleChoice {
  double exponent = 0.0;
  double plain_error = 0.0;
  double error = 0.0;
};

// Adds the group's scales to `scales`, which has the scales of the groups before. The scale of
// channel c is mean|x_c|^exponent, divided by the geometric mean of the largest and the smallest.
// The chosen exponent has the least error of rounding to 4 bits in groups of `group_size`. If the
// stored type cannot hold a scaled number of the producer, the scale is moved towards 1. Adds the
// importance of the columns in any case. Fails if a weight is not finite.
Result<ScaleChoice> add_group_scales(const ScaleGroup& group, const InputStatistics& inputs,
                                     int group_size, WeightSource& weights, ThreadPool& threads,
                                     ChannelScales& scales);

// A text that identifies the scales, to the last bit. The output's fingerprint contains it, because
// the scales are in no file: a continued run calculates them again.
std::string identity_of(const ChannelScales& scales);

}  // namespace quire
