#include "quantize/channel_scales.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

#include "base/digest.h"
#include "quantize/int4_groups.h"
#include "quantize/output_plan.h"

namespace quire {
namespace {

// Least magnitude of a channel, relative to the largest: for channels that the text hardly uses.
constexpr double kLeastMagnitude = 1e-4;

using SpecsByName = std::unordered_map<std::string_view, const TensorSpec*>;

// VectorSpec::addend; 0 for matrices.
float addend_of(const TensorSpec& tensor) {
  const auto* const vector = std::get_if<VectorSpec>(&tensor.role);
  return vector == nullptr ? 0.0F : vector->addend;
}

// A group, if the model has all of its readers and the first of its producers.
std::optional<ScaleGroup> make_group(const SpecsByName& specs, const std::string& layer,
                                     std::span<const std::string_view> readers,
                                     std::span<const std::string_view> producers) {
  ScaleGroup group;
  for (const std::string_view name : readers) {
    const auto found = specs.find(layer + std::string(name));
    if (found == specs.end()) return {};
    group.readers.push_back(*found->second);
  }
  for (const std::string_view name : producers) {
    const auto found = specs.find(layer + std::string(name));
    if (found != specs.end()) group.producers.push_back(*found->second);
  }
  if (group.producers.empty() || !group.producers.front().name.ends_with(producers.front())) {
    return {};
  }
  return group;
}

void add_layer_groups(const SpecsByName& specs, const std::string& layer,
                      const DecoderConfig& decoder, std::vector<ScaleGroup>& groups) {
  using Names = std::initializer_list<std::string_view>;
  const auto make = [&](Names readers, Names producers) {
    return make_group(specs, layer, std::span(readers.begin(), readers.size()),
                      std::span(producers.begin(), producers.size()));
  };
  const auto add = [&](std::optional<ScaleGroup> group) {
    if (group) groups.push_back(std::move(*group));
  };
  add(make({"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"},
           {"input_layernorm.weight"}));
  // Each element of attention's output is a weighted sum of one element of the values.
  if (auto output =
          make({"self_attn.o_proj.weight"}, {"self_attn.v_proj.weight", "self_attn.v_proj.bias"})) {
    output->head_dim = decoder.head_dim;
    output->heads_per_producer = decoder.num_heads / decoder.num_kv_heads;
    groups.push_back(std::move(*output));
  }
  // In layers with four norms, this is the name of the norm before the MLP.
  const bool has_four_norms = specs.contains(layer + "pre_feedforward_layernorm.weight");
  add(make(
      {"mlp.gate_proj.weight", "mlp.up_proj.weight"},
      {has_four_norms ? "pre_feedforward_layernorm.weight" : "post_attention_layernorm.weight"}));
  // The product activation(gate) * up is linear in up.
  add(make({"mlp.down_proj.weight"}, {"mlp.up_proj.weight", "mlp.up_proj.bias"}));
}

// Calls body(row, numbers) for every row of a matrix, on several threads. Its memory in the source
// is released.
template <class Body>
Status for_rows(WeightSource& weights, const TensorSpec& matrix, ThreadPool& threads,
                const Body& body) {
  QUIRE_ASSIGN_OR_RETURN(const TensorView view, weights.tensor(matrix.name, matrix.shape));
  std::vector<Status> statuses(static_cast<size_t>(matrix.shape[0]));
  threads.parallel_for(matrix.shape[0], [&](int64_t row) {
    std::vector<float> numbers(static_cast<size_t>(matrix.shape[1]));
    Status& status = statuses[static_cast<size_t>(row)];
    status = read_row(view, row, matrix.name, {}, numbers.data());
    if (status.ok()) body(row, numbers);
  });
  weights.release(matrix.name);
  const auto failed = std::ranges::find_if_not(statuses, &Status::ok);
  return failed == statuses.end() ? Status() : *failed;
}

Result<std::vector<float>> read_vector(WeightSource& weights, const TensorSpec& vector) {
  QUIRE_ASSIGN_OR_RETURN(const TensorView view, weights.tensor(vector.name, vector.shape));
  std::vector<float> numbers(static_cast<size_t>(vector.shape[0]));
  QUIRE_RETURN_IF_ERROR(read_row(view, 0, vector.name, {}, numbers.data()));
  weights.release(vector.name);
  return numbers;
}

DType stored_dtype(const WeightSource& weights, const TensorSpec& tensor) {
  return weights.dtype_of(tensor.name).value_or(DType::kF32);
}

// Changes scales so that a producer can absorb them.
class Producer {
 public:
  virtual ~Producer() = default;
  virtual float absorbable(size_t row, float scale) const = 0;
};

// A norm's weight is stored in few bits. The scale becomes the quotient of the weights before and
// after, so that the rounding does not change the function.
class NormProducer final : public Producer {
 public:
  NormProducer(std::vector<float> weights, float addend, DType dtype)
      : weights_(std::move(weights)), addend_(addend), dtype_(dtype) {}

  float absorbable(size_t row, float scale) const override {
    const float weight = weights_[row] + addend_;
    std::array<std::byte, sizeof(float)> unused;
    const float stored = store_number(weight / scale - addend_, dtype_, unused.data()) + addend_;
    const float absorbed = weight / stored;
    return std::isfinite(stored) && std::isfinite(absorbed) && absorbed > 0 ? absorbed : 1.0F;
  }

 private:
  std::vector<float> weights_;
  float addend_;
  DType dtype_;
};

struct Magnitudes {
  float least = std::numeric_limits<float>::max();  // of the groups' scales
  float most = 0;                                   // of these, and of the bias
};

// The bias of a matrix, and the scales of the groups of its rows, are divided by the channel's
// scale. They must stay in the range in which their type has at least 8 significant bits; if one of
// them is F16, in the range of F16.
class MatrixProducer final : public Producer {
 public:
  MatrixProducer(std::vector<Magnitudes> rows, bool has_f16)
      : rows_(std::move(rows)),
        least_(has_f16 ? 0x1p-16F : std::numeric_limits<float>::min()),
        most_(has_f16 ? 65504.0F : 0x1p127F) {}

  float absorbable(size_t row, float scale) const override {
    const float low = std::min(rows_[row].most / most_, 1.0F);
    const float high = std::max(rows_[row].least / least_, 1.0F);
    return std::clamp(scale, low, high);
  }

 private:
  std::vector<Magnitudes> rows_;
  float least_;
  float most_;
};

class Search {
 public:
  Search(const ScaleGroup& group, const InputStatistics& inputs, int group_size,
         WeightSource& weights, ThreadPool& threads, ChannelScales& scales)
      : group_(group),
        inputs_(inputs),
        group_size_(static_cast<size_t>(group_size)),
        weights_(weights),
        threads_(threads),
        scales_(scales) {}

  Result<ScaleChoice> run();

 private:
  Result<std::unique_ptr<Producer>> read_producer();
  Result<std::vector<Magnitudes>> row_magnitudes(const TensorSpec& matrix);
  std::vector<double> row_means() const;
  void add_candidate(const Producer& producer, std::span<const double> means, double exponent);
  Status add_errors(const TensorSpec& matrix);
  double rounding_error(std::span<const float> numbers, DType dtype,
                        std::span<const float> columns) const;
  // The scales of one exponent.
  struct Candidate {
    double exponent = 0.0;
    std::vector<float> rows;     // by the producer's row
    std::vector<float> columns;  // by channel
    double error = 0.0;
  };

  void keep(const Candidate& best);

  const ScaleGroup& group_;
  const InputStatistics& inputs_;
  size_t group_size_;
  WeightSource& weights_;
  ThreadPool& threads_;
  ChannelScales& scales_;
  std::vector<Candidate> candidates_;
};

Result<std::vector<Magnitudes>> Search::row_magnitudes(const TensorSpec& matrix) {
  std::vector<Magnitudes> rows(static_cast<size_t>(matrix.shape[0]));
  const TensorScales* const before = find_scales(scales_, matrix.name);
  QUIRE_RETURN_IF_ERROR(
      for_rows(weights_, matrix, threads_, [&](int64_t row, std::span<float> numbers) {
        if (before != nullptr) before->scale_row(row, numbers);
        Magnitudes& found = rows[static_cast<size_t>(row)];
        for (size_t first = 0; first < numbers.size(); first += group_size_) {
          std::array<std::byte, sizeof(float)> unused;
          const float scale =
              int4_scale(numbers.subspan(first, group_size_), DType::kF32, unused.data());
          found.least = std::min(found.least, scale);
          found.most = std::max(found.most, scale);
        }
      }));
  return rows;
}

Result<std::unique_ptr<Producer>> Search::read_producer() {
  const TensorSpec& first = group_.producers.front();
  if (first.shape.rank() == 1) {
    QUIRE_ASSIGN_OR_RETURN(std::vector<float> numbers, read_vector(weights_, first));
    return std::unique_ptr<Producer>(
        new NormProducer(std::move(numbers), addend_of(first), stored_dtype(weights_, first)));
  }
  QUIRE_ASSIGN_OR_RETURN(std::vector<Magnitudes> rows, row_magnitudes(first));
  for (const TensorSpec& bias : std::span(group_.producers).subspan(1)) {
    QUIRE_ASSIGN_OR_RETURN(const std::vector<float> numbers, read_vector(weights_, bias));
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].most = std::max(rows[i].most, std::abs(numbers[i]));
    }
  }
  const bool has_f16 = std::ranges::any_of(group_.producers, [&](const TensorSpec& producer) {
    return stored_dtype(weights_, producer) == DType::kF16;
  });
  return std::unique_ptr<Producer>(new MatrixProducer(std::move(rows), has_f16));
}

// The mean magnitude of the channels that come from each of the producer's rows.
std::vector<double> Search::row_means() const {
  std::vector<double> means(static_cast<size_t>(group_.producers.front().shape[0]));
  for (int64_t c = 0; c < group_.num_channels(); ++c) {
    means[static_cast<size_t>(group_.producer_row(c))] +=
        inputs_.mean_magnitude[static_cast<size_t>(c)] /
        static_cast<double>(group_.heads_per_producer);
  }
  const double largest = std::ranges::max(means);
  for (double& mean : means) {
    mean = largest > 0 ? std::max(mean / largest, kLeastMagnitude) : 1.0;
  }
  return means;
}

void Search::add_candidate(const Producer& producer, std::span<const double> means,
                           double exponent) {
  Candidate candidate;
  candidate.exponent = exponent;
  const double middle = std::pow(std::ranges::max(means) * std::ranges::min(means), exponent / 2);
  for (size_t row = 0; row < means.size(); ++row) {
    const auto scale = static_cast<float>(std::pow(means[row], exponent) / middle);
    candidate.rows.push_back(exponent == 0.0 ? 1.0F : producer.absorbable(row, scale));
  }
  for (int64_t c = 0; c < group_.num_channels(); ++c) {
    candidate.columns.push_back(candidate.rows[static_cast<size_t>(group_.producer_row(c))]);
  }
  candidates_.push_back(std::move(candidate));
}

// The sum of E[x^2] * (error of a weight)^2 of one row.
double Search::rounding_error(std::span<const float> numbers, DType dtype,
                              std::span<const float> columns) const {
  std::vector<float> scaled(group_size_);
  std::vector<float> integers(group_size_);
  std::array<std::byte, sizeof(float)> unused;
  double error = 0.0;
  for (size_t first = 0; first < numbers.size(); first += group_size_) {
    for (size_t i = 0; i < group_size_; ++i) scaled[i] = numbers[first + i] * columns[first + i];
    const float scale = int4_scale(scaled, dtype, unused.data());
    round_to_int4(scaled, scale, integers.data());
    for (size_t i = 0; i < group_size_; ++i) {
      const double rounded = double{integers[i]} * scale / columns[first + i];
      const double difference = rounded - numbers[first + i];
      error += inputs_.mean_square[first + i] * difference * difference;
    }
  }
  return error;
}

// The errors of the rows are added in their order, so that the sum does not depend on threads.
Status Search::add_errors(const TensorSpec& matrix) {
  const size_t num_candidates = candidates_.size();
  const DType dtype = stored_dtype(weights_, matrix);
  std::vector<double> errors(static_cast<size_t>(matrix.shape[0]) * num_candidates);
  QUIRE_RETURN_IF_ERROR(
      for_rows(weights_, matrix, threads_, [&](int64_t row, std::span<const float> numbers) {
        for (size_t i = 0; i < num_candidates; ++i) {
          errors[static_cast<size_t>(row) * num_candidates + i] =
              rounding_error(numbers, dtype, candidates_[i].columns);
        }
      }));
  for (size_t i = 0; i < errors.size(); ++i) candidates_[i % num_candidates].error += errors[i];
  return {};
}

void Search::keep(const Candidate& best) {
  std::vector<double> importance = inputs_.mean_square;
  for (size_t c = 0; c < importance.size(); ++c) {
    importance[c] /= double{best.columns[c]} * best.columns[c];
  }
  const double largest = std::ranges::max(importance);
  for (const TensorSpec& reader : group_.readers) {
    TensorScales& of_reader = scales_[reader.name];
    for (const double one : importance) {
      of_reader.importance.push_back(static_cast<float>(largest > 0 ? one / largest : 1.0));
    }
    if (best.exponent > 0) of_reader.columns = best.columns;
  }
  if (best.exponent == 0) return;
  for (const TensorSpec& producer : group_.producers) {
    TensorScales& absorbed = scales_[producer.name];
    absorbed.divisors = best.rows;
    absorbed.addend = addend_of(producer);
  }
}

Result<ScaleChoice> Search::run() {
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Producer> producer, read_producer());
  const std::vector<double> means = row_means();
  for (int i = 0; i < kNumScaleExponents; ++i) {
    add_candidate(*producer, means, static_cast<double>(i) / (kNumScaleExponents - 1));
  }
  for (const TensorSpec& reader : group_.readers) QUIRE_RETURN_IF_ERROR(add_errors(reader));
  // A NaN error is never smaller.
  size_t best = 0;
  for (size_t i = 1; i < candidates_.size(); ++i) {
    if (candidates_[i].error < candidates_[best].error) best = i;
  }
  keep(candidates_[best]);
  return ScaleChoice{.exponent = candidates_[best].exponent,
                     .plain_error = candidates_.front().error,
                     .error = candidates_[best].error};
}

}  // namespace

bool is_layer_matrix(const TensorSpec& tensor) {
  return tensor.shape.rank() == 2 && tensor.name.find(".layers.") != std::string::npos;
}

std::vector<ScaleGroup> find_scale_groups(std::span<const TensorSpec> tensors,
                                          const DecoderConfig& decoder) {
  SpecsByName specs;
  for (const TensorSpec& tensor : tensors) specs.emplace(tensor.name, &tensor);
  constexpr std::string_view kFirst = "self_attn.q_proj.weight";
  std::vector<ScaleGroup> groups;
  for (const TensorSpec& tensor : tensors) {
    if (!tensor.name.ends_with(kFirst)) continue;
    const std::string layer = tensor.name.substr(0, tensor.name.size() - kFirst.size());
    add_layer_groups(specs, layer, decoder, groups);
  }
  return groups;
}

std::vector<std::string> unscaled_matrices(std::span<const TensorSpec> tensors,
                                           std::span<const ScaleGroup> groups) {
  std::unordered_set<std::string_view> scaled;
  for (const ScaleGroup& group : groups) {
    for (const TensorSpec& reader : group.readers) scaled.insert(reader.name);
  }
  std::vector<std::string> names;
  for (const TensorSpec& tensor : tensors) {
    if (is_layer_matrix(tensor) && !scaled.contains(tensor.name)) names.push_back(tensor.name);
  }
  return names;
}

void TensorScales::scale_row(int64_t row, std::span<float> numbers) const {
  for (size_t i = 0; i < columns.size(); ++i) numbers[i] *= columns[i];
  if (divisors.empty()) return;
  for (float& number : numbers) number /= divisors[static_cast<size_t>(row)];
}

// A number whose divisor is 1 keeps its bits: (number + addend) - addend may have other bits.
void TensorScales::scale_vector(std::span<float> numbers) const {
  for (size_t i = 0; i < divisors.size(); ++i) {
    if (divisors[i] != 1.0F) numbers[i] = (numbers[i] + addend) / divisors[i] - addend;
  }
}

const TensorScales* find_scales(const ChannelScales& scales, std::string_view name) {
  const auto found = scales.find(name);
  return found == scales.end() ? nullptr : &found->second;
}

Result<ScaleChoice> add_group_scales(const ScaleGroup& group, const InputStatistics& inputs,
                                     int group_size, WeightSource& weights, ThreadPool& threads,
                                     ChannelScales& scales) {
  return Search(group, inputs, group_size, weights, threads, scales).run();
}

std::string identity_of(const ChannelScales& scales) {
  std::string bytes;
  const auto add = [&bytes](std::span<const float> numbers) {
    bytes += std::to_string(numbers.size()) + "\n";
    const auto raw = std::as_bytes(numbers);
    bytes.append(reinterpret_cast<const char*>(raw.data()), raw.size());
  };
  for (const auto& [name, of_tensor] : scales) {
    bytes += name + "\n";
    add(of_tensor.columns);
    add(of_tensor.divisors);
    add(of_tensor.importance);
  }
  return to_hexadecimal(sha256_of(bytes));
}

}  // namespace quire
