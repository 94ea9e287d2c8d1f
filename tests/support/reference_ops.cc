#include "support/reference_ops.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/check.h"
#include "base/thread_pool.h"
#include "ops/collectives.h"
#include "ops/host_matrices.h"
#include "tensor/dtype.h"

namespace quire::testing {
namespace {

class ReferenceLinear : public Linear {
 public:
  ReferenceLinear(int64_t num_out, int64_t num_in) : num_out_(num_out), num_in_(num_in) {}

  int64_t in_features() const override { return num_in_; }
  int64_t out_features() const override { return num_out_; }
  size_t num_bytes() const override { return weights.size() * sizeof(float); }

  std::vector<float> weights;  // [out, in]
  std::vector<float> bias;     // [out], or empty

 private:
  int64_t num_out_;
  int64_t num_in_;
};

class ReferencePerHeadLinear : public PerHeadLinear {
 public:
  int num_heads() const override { return static_cast<int>(heads.size()); }
  int64_t in_features() const override { return heads.front()->in_features(); }
  int64_t out_features() const override { return heads.front()->out_features(); }
  size_t num_bytes() const override { return 0; }

  std::vector<std::unique_ptr<Linear>> heads;
};

class ReferenceExperts : public Experts {
 public:
  explicit ReferenceExperts(const ExpertsShape& shape) : shape_(shape) {}

  const ExpertsShape& shape() const override { return shape_; }
  size_t num_bytes() const override { return 0; }

  std::vector<std::unique_ptr<Linear>> gate_up;
  std::vector<std::unique_ptr<Linear>> down;

 private:
  ExpertsShape shape_;
};

std::vector<double> reference_scores(const ExpertRouting& routing, std::span<const float> logits) {
  std::vector<double> scores;
  double sum = 0.0;
  for (const float logit : logits) {
    const bool is_softmax = routing.scores == RouterScores::kSoftmax;
    const double e = std::exp(double{logit});
    scores.push_back(is_softmax ? e : e / (1.0 + e));
    sum += e;
  }
  if (routing.scores == RouterScores::kSigmoid) return scores;
  for (double& score : scores) score /= sum;
  return scores;
}

// The indices of the `count` largest numbers, the lower index first among equal ones.
std::vector<size_t> largest(const std::vector<double>& numbers, int count) {
  std::vector<size_t> order(numbers.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::ranges::greater(), [&](size_t i) { return numbers[i]; });
  order.resize(static_cast<size_t>(count));
  return order;
}

// Numbers that are never chosen before others, for the experts outside a token's groups.
void drop_other_groups(const ExpertRouting& routing, std::vector<double>& choices) {
  const size_t size = choices.size() / static_cast<size_t>(routing.num_groups);
  std::vector<double> scores;
  for (size_t first = 0; first < choices.size(); first += size) {
    const std::vector<double> group(choices.begin() + static_cast<int64_t>(first),
                                    choices.begin() + static_cast<int64_t>(first + size));
    double score = 0.0;
    for (const size_t i : largest(group, routing.group_scores == GroupScores::kLargest ? 1 : 2)) {
      score += group[i];
    }
    scores.push_back(score);
  }
  const std::vector<size_t> kept = largest(scores, routing.top_groups);
  for (size_t i = 0; i < choices.size(); ++i) {
    if (std::ranges::find(kept, i / size) == kept.end()) choices[i] = -INFINITY;
  }
}

float element(const TensorView& view, int64_t i) {
  switch (view.dtype) {
    case DType::kF32:
      return view.as<float>()[i];
    case DType::kF16:
      return f16_to_f32(view.as<uint16_t>()[i]);
    case DType::kBF16:
      return bf16_to_f32(view.as<uint16_t>()[i]);
    case DType::kF8E4M3:
      return e4m3_to_f32(view.as<uint8_t>()[i]);
    default:
      QUIRE_CHECK(false, "[test] weights are f32, f16, bf16 or fp8_e4m3");
  }
}

void append(const TensorView& view, std::vector<float>& out) {
  for (int64_t i = 0; i < view.shape.num_elements(); ++i) {
    out.push_back(view.data == nullptr ? 0.0F : element(view, i));
  }
}

void append_scaled(const WeightView& matrix, std::vector<float>& out) {
  if (matrix.scheme.scales == ScaleLayout::kNone) return append(matrix.values, out);
  const Shape& shape = matrix.values.shape;
  if (is_integer(matrix.scheme)) {
    const Tensor plain = Tensor::host({1, shape[1]}, plain_dtype(matrix.scheme)).value();
    for (int64_t row = 0; row < shape[0]; ++row) {
      write_plain_row(matrix, row, plain.view.as<std::byte>());
      append(plain.view, out);
    }
    return;
  }
  const Shape block = scale_block(matrix.scheme, shape);
  for (int64_t row = 0; row < shape[0]; ++row) {
    for (int64_t column = 0; column < shape[1]; ++column) {
      const int64_t at = row / block[0] * matrix.scales.shape[1] + column / block[1];
      out.push_back(element(matrix.values, row * shape[1] + column) * element(matrix.scales, at));
    }
  }
}

double sum_of_squares(const float* x, int64_t size) {
  double squares = 0;
  for (int64_t i = 0; i < size; ++i) squares += double{x[i]} * x[i];
  return squares;
}

void normalize_by(double mean, const float* x, int64_t size, const float* weight, float eps,
                  float* out) {
  const double scale = 1.0 / std::sqrt(mean + double{eps});
  for (int64_t i = 0; i < size; ++i) out[i] = static_cast<float>(x[i] * scale * weight[i]);
}

void normalize(const float* x, int64_t size, const float* weight, float eps, float* out) {
  normalize_by(sum_of_squares(x, size) / static_cast<double>(size), x, size, weight, eps, out);
}

void multiply(float scale, float* x, int64_t size) {
  for (int64_t i = 0; i < size; ++i) x[i] *= scale;
}

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1.0 + std::exp(-x));
    case Activation::kGelu:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case Activation::kGeluTanh:
      return 0.5 * x *
             (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::kClampedSwiglu:
      break;  // of two numbers
  }
  QUIRE_CHECK(false, "[test] every activation has a definition");
}

double gated_product(Activation activation, double gate, double up) {
  if (activation != Activation::kClampedSwiglu) return activate(activation, gate) * up;
  if (std::isnan(gate) || std::isnan(up)) return std::nan("");
  const double g = std::min(gate, double{kSwigluLimit});
  const double u = std::clamp(up, -double{kSwigluLimit}, double{kSwigluLimit});
  return (u + 1.0) * g / (1.0 + std::exp(-double{kSwigluAlpha} * g));
}

// Rotates pair i by angle i.
void rotate(float* head, const float* cos_sin, int64_t rope_dim, RotaryPairs pairs) {
  const int64_t half = rope_dim / 2;
  for (int64_t i = 0; i < half; ++i) {
    const int64_t first = pairs == RotaryPairs::kHalves ? i : 2 * i;
    const int64_t second = pairs == RotaryPairs::kHalves ? half + i : 2 * i + 1;
    const double c = cos_sin[i];
    const double s = cos_sin[half + i];
    const double a = head[first];
    const double b = head[second];
    head[first] = static_cast<float>(a * c - b * s);
    head[second] = static_cast<float>(b * c + a * s);
  }
}

void store(void* base, DType dtype, int64_t i, float value) {
  switch (dtype) {
    case DType::kF32:
      static_cast<float*>(base)[i] = value;
      break;
    case DType::kF16:
      static_cast<uint16_t*>(base)[i] = f32_to_f16(value);
      break;
    case DType::kBF16:
      static_cast<uint16_t*>(base)[i] = f32_to_bf16(value);
      break;
    default:
      QUIRE_CHECK(false, "[test] this cache type is not written here");
  }
}

}  // namespace

std::vector<RoutedExpert> reference_route(const ExpertRouting& routing,
                                          std::span<const float> logits,
                                          std::span<const float> bias) {
  const std::vector<double> scores = reference_scores(routing, logits);
  std::vector<double> choices = scores;
  for (size_t i = 0; i < bias.size(); ++i) choices[i] += bias[i];
  for (double& choice : choices) {
    if (std::isnan(choice)) choice = -INFINITY;
  }
  drop_other_groups(routing, choices);
  std::vector<RoutedExpert> routed;
  double sum = 0.0;
  for (const size_t i : largest(choices, routing.top_k)) {
    routed.push_back({static_cast<int32_t>(i), scores[i]});
    sum += scores[i];
  }
  for (RoutedExpert& expert : routed) {
    expert.weight *= double{routing.scale} / (routing.renormalize ? sum : 1.0);
    if (routing.expert_scales != nullptr) expert.weight *= routing.expert_scales[expert.id];
  }
  for (int i = 0; i < routing.num_shared; ++i) routed.push_back({routing.num_experts + i, 1.0});
  return routed;
}

Result<std::unique_ptr<Experts>> ReferenceOps::make_experts(ExpertsSource& source) {
  auto experts = std::make_unique<ReferenceExperts>(source.shape());
  for (int i = 0; i < source.shape().num_experts; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const LinearSource gate_up, source.gate_up(i));
    QUIRE_ASSIGN_OR_RETURN(experts->gate_up.emplace_back(), make_linear(gate_up));
    QUIRE_ASSIGN_OR_RETURN(const LinearSource down, source.down(i));
    QUIRE_ASSIGN_OR_RETURN(experts->down.emplace_back(), make_linear(down));
  }
  return std::unique_ptr<Experts>(std::move(experts));
}

void ReferenceOps::route(const ExpertRouting& routing, TensorView logits, const float* bias,
                         TensorView ids, TensorView weights) {
  const auto width = static_cast<size_t>(routing.num_experts);
  for (int64_t t = 0; t < logits.shape[0]; ++t) {
    const std::span row(logits.as<float>() + t * routing.num_experts, width);
    const auto routed = reference_route(
        routing, row, bias == nullptr ? std::span<const float>() : std::span(bias, width));
    int64_t pair = t * routing.num_per_token();
    for (const RoutedExpert& expert : routed) {
      ids.as<int32_t>()[pair] = expert.id;
      weights.as<float>()[pair++] = static_cast<float>(expert.weight);
    }
  }
}

// Token by token, as if each were a dense MLP of its experts.
void ReferenceOps::run_experts(const ExpertsCall& call) {
  const auto& experts = static_cast<const ReferenceExperts&>(*call.experts);
  const int64_t hidden = experts.shape().hidden_size;
  const int64_t inner = experts.shape().intermediate_size;
  std::vector<float> gate_up(static_cast<size_t>(2 * inner));
  std::vector<float> product(static_cast<size_t>(inner));
  std::vector<float> y(static_cast<size_t>(hidden));
  const TensorView y_view = {y.data(), DType::kF32, {1, hidden}};
  const TensorView product_view = {product.data(), DType::kF32, {1, inner}};
  for (int64_t t = 0; t < call.x.shape[0]; ++t) {
    std::vector<double> sums(y.size(), 0.0);
    for (int64_t j = 0; j < call.ids.shape[1]; ++j) {
      const int64_t pair = t * call.ids.shape[1] + j;
      const auto expert = static_cast<size_t>(call.ids.as<int32_t>()[pair]);
      const TensorView gate_up_view = {gate_up.data(), DType::kF32, {1, 2 * inner}};
      linear(*experts.gate_up[expert], call.x.rows(t, 1), gate_up_view);
      gated_mul(call.activation, gate_up_view, product_view);
      linear(*experts.down[expert], product_view, y_view);
      for (size_t i = 0; i < y.size(); ++i) {
        sums[i] += double{call.weights.as<float>()[pair]} * double{y[i]};
      }
    }
    float* out = call.out.as<float>() + t * hidden;
    for (size_t i = 0; i < y.size(); ++i) {
      out[i] = static_cast<float>((call.adds ? double{out[i]} : 0.0) + sums[i]);
    }
  }
}

Result<std::unique_ptr<Linear>> ReferenceOps::make_linear(const LinearSource& source) {
  ThreadPool threads(1);
  std::vector<Tensor> copies;
  QUIRE_ASSIGN_OR_RETURN(const std::vector<WeightView> matrices,
                         matrices_in_memory(source, copies, threads));
  int64_t num_out = 0;
  for (const WeightView& matrix : matrices) num_out += matrix.values.shape[0];
  auto linear = std::make_unique<ReferenceLinear>(num_out, matrices.front().values.shape[1]);
  for (const WeightView& matrix : matrices) append_scaled(matrix, linear->weights);
  for (const TensorView& block : source.biases) append(block, linear->bias);
  return std::unique_ptr<Linear>(std::move(linear));
}

Result<Tensor> ReferenceOps::make_vector(const TensorView& source) {
  QUIRE_ASSIGN_OR_RETURN(Tensor vector, Tensor::host(source.shape, DType::kF32));
  for (int64_t i = 0; i < source.shape.num_elements(); ++i) {
    vector.view.as<float>()[i] = element(source, i);
  }
  return vector;
}

Result<Tensor> ReferenceOps::allocate(const Shape& shape, DType dtype) {
  return Tensor::host(shape, dtype);
}

void ReferenceOps::embed(const Linear& table, const int32_t* ids, float scale, TensorView out) {
  const auto& linear = static_cast<const ReferenceLinear&>(table);
  const int64_t width = out.shape[1];
  for (int64_t t = 0; t < out.shape[0]; ++t) {
    float* const row = out.as<float>() + t * width;
    const int64_t table_row = ids[t] - table.first_token_id().value_or(0);
    if (table.first_token_id() && (table_row < 0 || table_row >= table.out_features())) {
      std::fill_n(row, width, 0.0F);
      continue;
    }
    const float* const weights = linear.weights.data() + table_row * width;
    for (int64_t i = 0; i < width; ++i) row[i] = scale * weights[i];
  }
}

void ReferenceOps::residual_norm(const ResidualNorm& norm, TensorView out) {
  const TensorView& x = norm.residual;
  if (norm.delta.data != nullptr) {
    if (norm.sums_ranks && collectives() != nullptr) collectives()->all_reduce(norm.delta);
    for (int64_t i = 0; i < x.shape.num_elements(); ++i) {
      x.as<float>()[i] += norm.delta.as<float>()[i];
    }
  }
  if (norm.scale != nullptr) multiply(*norm.scale, x.as<float>(), x.shape.num_elements());
  const int64_t width = x.shape[1];
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    const float* const row = x.as<float>() + t * width;
    float* const out_row = out.as<float>() + t * width;
    if (norm.weight != nullptr) {
      normalize(row, width, norm.weight, norm.eps, out_row);
    } else if (out_row != row) {
      std::copy_n(row, width, out_row);
    }
  }
}

void ReferenceOps::linear(const Linear& w, TensorView x, TensorView out) {
  const auto& linear = static_cast<const ReferenceLinear&>(w);
  const int64_t num_in = linear.in_features();
  const int64_t num_out = linear.out_features();
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    for (int64_t n = 0; n < num_out; ++n) {
      double sum = linear.bias.empty() ? 0.0 : double{linear.bias[static_cast<size_t>(n)]};
      for (int64_t k = 0; k < num_in; ++k) {
        sum += double{x.as<float>()[t * num_in + k]} *
               linear.weights[static_cast<size_t>(n * num_in + k)];
      }
      out.as<float>()[t * num_out + n] = static_cast<float>(sum);
    }
  }
}

void ReferenceOps::rope_angles(const float* inv_freq, float attention_factor,
                               const int32_t* positions, TensorView cos_sin) {
  const int64_t half = cos_sin.shape[1] / 2;
  for (int64_t t = 0; t < cos_sin.shape[0]; ++t) {
    float* row = cos_sin.as<float>() + t * 2 * half;
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(positions[t]) * inv_freq[i];
      row[i] = static_cast<float>(std::cos(angle) * attention_factor);
      row[half + i] = static_cast<float>(std::sin(angle) * attention_factor);
    }
  }
}

void ReferenceOps::position_scales(const PositionScale& scale, const int32_t* positions,
                                   TensorView out) {
  for (int64_t t = 0; t < out.shape[0]; ++t) {
    const double periods = std::floor((positions[t] + double{scale.offset}) / double{scale.period});
    out.as<float>()[t] = static_cast<float>(1.0 + double{scale.beta} * std::log(1.0 + periods));
  }
}

void ReferenceOps::wide_norm(const WideNorm& norm) {
  const int64_t num_tokens = norm.qkv.shape[0];
  auto* const sums = norm.sums.as<float>();
  const auto for_parts = [&](const auto& body) {
    for (int64_t t = 0; t < num_tokens; ++t) {
      float* const q = norm.qkv.as<float>() + t * norm.qkv.shape[1];
      body(q, norm.q_width, norm.q_norm, sums + 2 * t);
      body(q + norm.q_width, norm.k_width, norm.k_norm, sums + 2 * t + 1);
    }
  };
  for_parts([](const float* x, int64_t width, const float* /*weight*/, float* sum) {
    *sum = static_cast<float>(sum_of_squares(x, width));
  });
  if (collectives() != nullptr) collectives()->all_reduce({sums, DType::kF32, {num_tokens, 2}});
  const int num_ranks = collectives() == nullptr ? 1 : collectives()->num_ranks();
  for_parts([&](float* x, int64_t width, const float* weight, const float* sum) {
    normalize_by(double{*sum} / static_cast<double>(num_ranks * width), x, width, weight, norm.eps,
                 x);
  });
}

void ReferenceOps::rope_and_cache(const RopeAndCache& args) {
  const int64_t dim = args.head_dim;
  const int64_t value_dim = args.value_dim();
  const int64_t row_size = args.row_width();
  for (int64_t t = 0; t < args.qkv.shape[0]; ++t) {
    float* row = args.qkv.as<float>() + t * row_size;
    const float* angles = args.cos_sin.as<float>() + t * args.cos_sin.shape[1];
    const int64_t kv_slot = args.kv_slots[t];
    const int64_t page = kv_slot < 0 ? 0 : kv_slot / args.page_size;
    const int64_t place = kv_slot < 0 ? 0 : kv_slot % args.page_size;
    const float* const row_values =
        row + (args.num_heads + (args.k_is_v ? 0 : args.num_kv_heads)) * dim;
    std::vector<float> values(row_values, row_values + args.num_kv_heads * value_dim);
    for (int64_t h = 0; args.v_norm != nullptr && h < args.num_kv_heads; ++h) {
      float* const value = values.data() + h * value_dim;
      normalize(value, value_dim, args.v_norm, args.norm_eps, value);
    }
    for (int64_t h = 0; h < args.num_heads + args.num_kv_heads; ++h) {
      float* head = row + h * dim;
      const float* norm = h < args.num_heads ? args.q_norm : args.k_norm;
      const auto normalize_head = [&] {
        if (norm != nullptr) normalize(head, dim, norm, args.norm_eps, head);
      };
      if (!args.norms_after_rotation) normalize_head();
      rotate(head, angles, args.cos_sin.shape[1], args.pairs);
      if (args.norms_after_rotation) normalize_head();
    }
    if (args.q_scale != nullptr) multiply(args.q_scale[t], row, args.num_heads * dim);
    std::copy_n(row, args.num_heads * dim, args.q_out.as<float>() + t * args.num_heads * dim);
    if (kv_slot < 0) continue;
    for (int64_t h = 0; h < args.num_kv_heads; ++h) {
      const float* key = row + (args.num_heads + h) * dim;
      const float* value = values.data() + h * value_dim;
      const KvCacheView& kv = args.kv;
      const int64_t k_at =
          page * kv.page_stride_k + h * kv.head_stride_k + place * kv.token_stride_k;
      const int64_t v_at =
          page * kv.page_stride_v + h * kv.head_stride_v + place * kv.token_stride_v;
      for (int64_t d = 0; d < dim; ++d) store(kv.k, kv.dtype, k_at + d, key[d]);
      for (int64_t d = 0; d < value_dim; ++d) {
        store(kv.v, kv.dtype, v_at + d, args.value_scale * value[d]);
      }
    }
  }
}

Result<std::unique_ptr<PerHeadLinear>> ReferenceOps::make_per_head_linear(
    std::span<const TensorView> matrices) {
  auto linear = std::make_unique<ReferencePerHeadLinear>();
  for (const TensorView& matrix : matrices) {
    const WeightView weights(matrix);
    QUIRE_ASSIGN_OR_RETURN(linear->heads.emplace_back(),
                           make_linear({.numbers = StoredMatrices{{&weights, 1}}}));
  }
  return std::unique_ptr<PerHeadLinear>(std::move(linear));
}

void ReferenceOps::per_head_linear(const PerHeadLinear& w, TensorView x, TensorView out) {
  const auto& heads = static_cast<const ReferencePerHeadLinear&>(w).heads;
  for (int64_t i = 0; i < x.shape[0] * x.shape[1]; ++i) {
    linear(*heads[static_cast<size_t>(i % x.shape[1])],
           {x.as<float>() + i * x.shape[2], DType::kF32, {1, w.in_features()}},
           {out.as<float>() + i * out.shape[2], DType::kF32, {1, w.out_features()}});
  }
}

void ReferenceOps::latent_rope_and_cache(const LatentRopeAndCache& args) {
  const int64_t rope_dim = args.cos_sin.shape[1];
  const int64_t width = args.latent.shape[1];
  for (int64_t t = 0; t < args.latent.shape[0]; ++t) {
    const float* angles = args.cos_sin.as<float>() + t * rope_dim;
    for (int64_t i = t * args.q.shape[1]; i < (t + 1) * args.q.shape[1]; ++i) {
      const float* from = args.q.as<float>() + (i + 1) * args.q.shape[2] - rope_dim;
      float* to = args.q_out.as<float>() + (i + 1) * args.q_out.shape[2] - rope_dim;
      std::copy_n(from, rope_dim, to);
      rotate(to, angles, rope_dim, args.pairs);
    }
    if (args.q_scale != nullptr) {
      const int64_t size = args.q_out.shape[1] * args.q_out.shape[2];
      multiply(args.q_scale[t], args.q_out.as<float>() + t * size, size);
    }
    const int64_t kv_slot = args.kv_slots[t];
    if (kv_slot < 0) continue;
    const float* latent = args.latent.as<float>() + t * width;
    std::vector<float> key(latent, latent + width);
    normalize(key.data(), width - rope_dim, args.norm, args.norm_eps, key.data());
    rotate(key.data() + width - rope_dim, angles, rope_dim, args.pairs);
    const int64_t at = kv_slot / args.page_size * args.kv.page_stride_k +
                       kv_slot % args.page_size * args.kv.token_stride_k;
    for (int64_t d = 0; d < width; ++d) {
      store(args.kv.k, args.kv.dtype, at + d, key[static_cast<size_t>(d)]);
    }
  }
}

void ReferenceOps::gated_mul(Activation activation, TensorView gate_up, TensorView out) {
  const int64_t width = out.shape[1];
  for (int64_t t = 0; t < out.shape[0]; ++t) {
    const float* row = gate_up.as<float>() + t * 2 * width;
    for (int64_t i = 0; i < width; ++i) {
      out.as<float>()[t * width + i] =
          static_cast<float>(gated_product(activation, row[i], row[width + i]));
    }
  }
}

void ReferenceOps::gated_mul_columns(Activation activation, TensorView gate, TensorView up,
                                     int64_t first_column, TensorView out) {
  const int64_t width = out.shape[1];
  for (int64_t t = 0; t < out.shape[0]; ++t) {
    const float* const up_row = up.as<float>() + t * up.shape[1] + first_column;
    for (int64_t i = 0; i < width; ++i) {
      const double opened = activate(activation, gate.as<float>()[t * width + i]);
      out.as<float>()[t * width + i] = static_cast<float>(opened * up_row[i]);
    }
  }
}

void ReferenceOps::gate(const Gating& gating) {
  const auto opened = [&](double x) {
    switch (gating.function) {
      case GateFunction::kIdentity:
        return x;
      case GateFunction::kSigmoid:
        return 1.0 / (1.0 + std::exp(-x));
      case GateFunction::kSoftplus:
        return std::log(1.0 + std::exp(x));
    }
    QUIRE_CHECK(false, "[test] every function has a definition");
  };
  const int64_t width = gating.x.shape[1];
  const int64_t num_gates = gating.gates.shape[1];
  for (int64_t t = 0; t < gating.x.shape[0]; ++t) {
    for (int64_t i = 0; i < width; ++i) {
      float& x = gating.x.as<float>()[t * width + i];
      const int64_t gate = t * num_gates + i / (width / num_gates);
      x = static_cast<float>(x * opened(element(gating.gates, gate)));
    }
  }
}

// Computes one channel of one sequence after the other.
void ReferenceOps::short_conv(const ShortConv& conv) {
  const StatePages& states = conv.states;
  const int64_t channels = conv.out.shape[1];
  for (int seq = 0; seq < states.num_seqs; ++seq) {
    const int64_t first_row = states.query_start[seq];
    const int end = states.seq_lens[seq];
    const int begin = end - (states.query_start[seq + 1] - static_cast<int>(first_row));
    const int32_t* const pages = states.page_table + seq * states.max_pages;
    const auto stored = [&](int page, int position, int64_t channel) -> float& {
      return reinterpret_cast<float*>(
          states.first + page * states.page_bytes)[position % conv.num_rows * channels + channel];
    };
    for (int64_t c = 0; c < channels; ++c) {
      std::vector<float> v(static_cast<size_t>(end), 0.0F);  // by position
      for (int p = std::max(begin - conv.kernel + 1, 0); p < begin; ++p) {
        v[static_cast<size_t>(p)] = stored(pages[(begin - 1) / states.block_size], p, c);
      }
      for (int p = begin; p < end; ++p) {
        const float* const row = conv.bgx.as<float>() + (first_row + p - begin) * 3 * channels + c;
        v[static_cast<size_t>(p)] = row[0] * row[2 * channels];
        double sum = 0.0;
        for (int i = 0; i < conv.kernel; ++i) {
          const int past = p - conv.kernel + 1 + i;
          if (past < 0) continue;
          sum += double{conv.w[i * channels + c]} * v[static_cast<size_t>(past)];
        }
        conv.out.as<float>()[(first_row + p - begin) * channels + c] =
            static_cast<float>(row[channels] * sum);
      }
      for (int block = begin / states.block_size; block * states.block_size < end; ++block) {
        if (pages[block] == 0) continue;
        int last = std::min((block + 1) * states.block_size, end) - 1;
        while (last >= begin && states.kv_slots[first_row + last - begin] < 0) --last;
        if (last / states.block_size != block || last < begin) continue;
        const int known = std::max(begin - conv.kernel + 1, 0);
        for (int p = std::max(last - conv.num_rows + 1, known); p <= last; ++p) {
          stored(pages[block], p, c) = v[static_cast<size_t>(p)];
        }
      }
    }
  }
}

// Computes one head of one sequence after the other. S is kept in F32 between steps.
void ReferenceOps::delta_net(const DeltaNet& net) {
  QUIRE_CHECK(net.num_drafts == 0, "[ops] the reference of a delta net takes no drafts");
  const DeltaNetShape& shape = net.shape;
  const DeltaNetPage layout(shape, 0);
  const StatePages& states = net.states;
  const auto silu = [](double x) { return x / (1.0 + std::exp(-x)); };
  const int64_t keys = int64_t{shape.num_k_heads} * shape.k_dim;
  for (int seq = 0; seq < states.num_seqs; ++seq) {
    const int64_t first_row = states.query_start[seq];
    const int end = states.seq_lens[seq];
    const int begin = end - (states.query_start[seq + 1] - static_cast<int>(first_row));
    const int32_t* const pages = states.page_table + seq * states.max_pages;
    const auto page = [&](int block) {
      return reinterpret_cast<float*>(states.first + pages[block] * states.page_bytes);
    };
    std::vector<float> before;  // the page that the step reads, which it may write
    if (begin > 0) {
      const float* const from = page((begin - 1) / states.block_size);
      before.assign(from, from + layout.size);
    }
    const auto input = [&](int p, int64_t channel) -> double {
      if (p < 0) return 0.0;
      if (p < begin) {
        return before[static_cast<size_t>(p % layout.num_rows * shape.num_channels() + channel)];
      }
      return net.x.as<float>()[(first_row + p - begin) * net.x.shape[1] + channel];
    };
    const auto mixed = [&](int p, int64_t channel) {
      double sum = 0.0;
      for (int i = 0; i < shape.kernel; ++i) {
        sum += double{net.conv[i * shape.num_channels() + channel]} *
               input(p - shape.kernel + 1 + i, channel);
      }
      return silu(sum);
    };
    const auto unit = [&](int p, int64_t first_channel) {
      std::vector<double> vector;
      double sum = 0.0;
      for (int i = 0; i < shape.k_dim; ++i) {
        vector.push_back(mixed(p, first_channel + i));
        sum += vector.back() * vector.back();
      }
      for (double& x : vector) x /= std::sqrt(sum + 1e-6);
      return vector;
    };
    // Writes S of a head and the newest inputs to the page of token p's block.
    const auto write = [&](int p, int head, const std::vector<double>& s) {
      const int block = p / states.block_size;
      if (pages[block] == 0) return;
      float* const to = page(block);
      for (int past = std::max(p - layout.num_rows + 1, 0); past <= p; ++past) {
        for (int64_t c = 0; c < shape.num_channels(); ++c) {
          to[past % layout.num_rows * shape.num_channels() + c] =
              static_cast<float>(input(past, c));
        }
      }
      std::ranges::transform(s, to + layout.states + head * std::ssize(s),
                             [](double x) { return static_cast<float>(x); });
    };
    for (int head = 0; head < shape.num_v_heads; ++head) {
      const int k_head = shape.is_tiled ? head % shape.num_k_heads
                                        : head / (shape.num_v_heads / shape.num_k_heads);
      std::vector<double> s(static_cast<size_t>(shape.k_dim * shape.v_dim), 0.0);
      if (begin > 0) {
        std::copy_n(before.begin() + layout.states + head * std::ssize(s), s.size(), s.begin());
      }
      for (int p = begin; p < end; ++p) {
        const int64_t row = first_row + p - begin;
        const std::vector<double> q = unit(p, int64_t{k_head} * shape.k_dim);
        const std::vector<double> k = unit(p, keys + int64_t{k_head} * shape.k_dim);
        const float* const ba = net.ba.as<float>() + row * 2 * shape.num_v_heads;
        const double beta = 1.0 / (1.0 + std::exp(-double{ba[head]}));
        const double a = double{ba[shape.num_v_heads + head]} + net.dt_bias[head];
        const double decay = std::exp(-std::exp(double{net.a_log[head]}) * std::log1p(std::exp(a)));
        std::vector<double> out(static_cast<size_t>(shape.v_dim));
        double squares = 0.0;
        for (int j = 0; j < shape.v_dim; ++j) {
          const auto at = [&](int i) -> double& {
            return s[static_cast<size_t>(i * shape.v_dim + j)];
          };
          double stored = 0.0;
          for (int i = 0; i < shape.k_dim; ++i) {
            at(i) *= decay;
            stored += at(i) * k[static_cast<size_t>(i)];
          }
          const double value = mixed(p, 2 * keys + int64_t{head} * shape.v_dim + j);
          double& sum = out[static_cast<size_t>(j)];
          for (int i = 0; i < shape.k_dim; ++i) {
            at(i) += k[static_cast<size_t>(i)] * beta * (value - stored);
            sum += q[static_cast<size_t>(i)] / std::sqrt(double(shape.k_dim)) * at(i);
          }
          squares += sum * sum;
        }
        const double scale = 1.0 / std::sqrt(squares / shape.v_dim + net.norm_eps);
        const int64_t first = (row * shape.num_v_heads + head) * shape.v_dim;
        const float* const z = net.x.as<float>() + row * net.x.shape[1] + shape.num_channels() +
                               int64_t{head} * shape.v_dim;
        for (int j = 0; j < shape.v_dim; ++j) {
          net.out.as<float>()[first + j] =
              static_cast<float>(out[static_cast<size_t>(j)] * scale * net.norm[j] * silu(z[j]));
        }
        const bool is_last = p + 1 == end || (p + 1) % states.block_size == 0;
        if (is_last && states.kv_slots[row] >= 0) write(p, head, s);
      }
    }
  }
}

void ReferenceOps::soft_cap(float cap, TensorView x) {
  for (int64_t i = 0; i < x.shape.num_elements(); ++i) {
    x.as<float>()[i] = static_cast<float>(cap * std::tanh(double{x.as<float>()[i]} / cap));
  }
}

void ReferenceOps::gather_rows(TensorView x, const int32_t* rows, TensorView out) {
  const int64_t width = x.shape[1];
  for (int64_t i = 0; i < out.shape[0]; ++i) {
    std::copy_n(x.as<float>() + rows[i] * width, width, out.as<float>() + i * width);
  }
}

void ReferenceOps::write_columns(TensorView x, TensorView out, int64_t first_column) {
  const int64_t width = x.shape[1];
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    std::copy_n(x.as<float>() + t * width, width,
                out.as<float>() + t * out.shape[1] + first_column);
  }
}

}  // namespace quire::testing
