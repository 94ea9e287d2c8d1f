#include "model/mla.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/numbers.h"
#include "model/config_fields.h"
#include "model/decoder_config.h"
#include "model/rope.h"

namespace quire {
namespace {

constexpr int kMaxLoraRank = 1 << 14;
constexpr int kMaxHeadPart = 1 << 12;

// The published code has this epsilon for latent vectors, with any rms_norm_eps.
constexpr float kLatentNormEps = 1e-6F;

// Views [num_tokens, heads, width] as [num_tokens, heads * width].
TensorView rows_of(const TensorView& heads) {
  return {heads.data, heads.dtype, {heads.shape[0], heads.shape[1] * heads.shape[2]}};
}

}  // namespace

void read_deepseek_mla(ConfigFields& fields, DecoderConfig& decoder) {
  MlaConfig mla;
  mla.q_lora_rank = fields.integer("q_lora_rank", 0, kMaxLoraRank, 0);
  mla.kv_lora_rank = fields.integer("kv_lora_rank", 1, kMaxLoraRank);
  mla.nope_head_dim = fields.integer("qk_nope_head_dim", 1, kMaxHeadPart);
  mla.rope_head_dim = fields.integer("qk_rope_head_dim", 2, kMaxHeadPart);
  mla.v_head_dim = fields.integer("v_head_dim", 1, kMaxHeadPart);
  if (mla.rope_head_dim % 2 != 0) {
    fields.fail("qk_rope_head_dim", std::to_string(mla.rope_head_dim), "an even number");
  }
  const bool is_interleaved = fields.boolean("rope_interleave", true);
  mla.pairs = is_interleaved ? RotaryPairs::kNeighbours : RotaryPairs::kHalves;
  require_switch(fields, "attention_bias", false);
  // In some versions of transformers, partial_rotary_factor states the rotated part once more.
  for (RopeConfig& rope : decoder.ropes) rope.rotated_part = 1.0;
  decoder.head_dim = mla.rope_head_dim;
  decoder.attention_scale =
      yarn_score_scale(decoder.ropes.front()) / std::sqrt(static_cast<float>(mla.q_head_dim()));
  decoder.mla = mla;
}

void add_mla_weights(const DecoderConfig& config, int64_t hidden_size, const std::string& prefix,
                     const std::optional<WeightFormat>& format, MlaLayer& layer,
                     std::unique_ptr<Linear>& o, WeightGroup& group) {
  const MlaConfig& mla = *config.mla;
  const std::string attention = prefix + "self_attn.";
  const int64_t num_heads = config.num_heads;
  const auto add = [&](std::unique_ptr<Linear>& linear, const char* name, int64_t num_rows,
                       int64_t num_columns, Split split) {
    group.matrices.push_back(
        {&linear, {{attention + name, num_rows}}, num_columns, split, false, format});
  };
  const bool has_q_a = mla.q_lora_rank > 0;
  if (has_q_a) {
    add(layer.q_a, "q_a_proj", mla.q_lora_rank, hidden_size, Split::kNone);
    group.vectors.push_back({&layer.q_a_norm, attention + "q_a_layernorm.weight", mla.q_lora_rank});
  }
  add(layer.q, has_q_a ? "q_b_proj" : "q_proj", num_heads * mla.q_head_dim(),
      has_q_a ? mla.q_lora_rank : hidden_size, Split::kRows);
  add(layer.kv_a, "kv_a_proj_with_mqa", mla.latent_head_dim(), hidden_size, Split::kNone);
  group.vectors.push_back(
      {&layer.kv_a_norm, attention + "kv_a_layernorm.weight", mla.kv_lora_rank});
  const int64_t head_rows = int64_t{mla.nope_head_dim} + mla.v_head_dim;
  group.latents.push_back({&layer.k_up,
                           &layer.v_up,
                           {nullptr,
                            {{attention + "kv_b_proj", num_heads * head_rows}},
                            mla.kv_lora_rank,
                            Split::kRows,
                            false,
                            without_load_quantization(format)},
                           mla.nope_head_dim,
                           mla.v_head_dim});
  add(o, "o_proj", hidden_size, num_heads * mla.v_head_dim, Split::kColumns);
}

// Views begin at multiples of 16 bytes, which matrix products may require. So a view takes whole
// groups of 8 elements per token, which are at least 16 bytes.
constexpr int64_t kViewElements = 8;
constexpr size_t kViewBytes = 16;

int64_t MlaViews::width(const MlaConfig& config, int num_heads) {
  const int64_t heads = num_heads;
  int64_t width = 0;
  for (const int64_t view :
       {int64_t{config.q_lora_rank}, int64_t{config.latent_head_dim()}, heads * config.q_head_dim(),
        heads * std::max(config.latent_head_dim(), config.v_head_dim),
        heads * std::max(config.kv_lora_rank, kExpandedScratch * config.v_head_dim)}) {
    width += round_up(view, kViewElements);
  }
  return width;
}

MlaViews::MlaViews(const MlaConfig& config, int num_heads, const TensorView& scratch) {
  const int64_t num_tokens = scratch.shape[0];
  auto* at = scratch.as<std::byte>();
  const auto place = [&](const Shape& shape) {
    const TensorView view = {at, scratch.dtype, shape};
    at += round_up(view.num_bytes(), kViewBytes);
    return view;
  };
  // Two views of the same memory.
  const auto place_both = [&](TensorView& one, int width, TensorView& other, int other_width) {
    one = other = place({num_tokens, num_heads, std::max(width, other_width)});
    one.shape = {num_tokens, num_heads, width};
    other.shape = {num_tokens, num_heads, other_width};
  };
  q_a = place({num_tokens, config.q_lora_rank});
  latent = place({num_tokens, config.latent_head_dim()});
  q = place({num_tokens, num_heads, config.q_head_dim()});
  place_both(q_absorbed, config.latent_head_dim(), out, config.v_head_dim);
  place_both(attended, config.kv_lora_rank, expanded, kExpandedScratch * config.v_head_dim);
}

void project_latent(const MlaLayer& layer, const TensorView& x, const MlaViews& views, Ops& ops) {
  const bool has_q_a = layer.q_a != nullptr;
  if (has_q_a) {
    ops.linear(*layer.q_a, x, views.q_a);
    const ResidualNorm norm = {
        .residual = views.q_a, .weight = layer.q_a_norm.view.as<float>(), .eps = kLatentNormEps};
    ops.norm_linear(norm, *layer.q, views.q_a, rows_of(views.q));
  } else {
    ops.linear(*layer.q, x, rows_of(views.q));
  }
  ops.linear(*layer.kv_a, x, views.latent);
}

void rotate_and_cache_latent(const MlaConfig& config, const MlaLayer& layer, const MlaViews& views,
                             int64_t num_absorbed, const LatentRopeAndCache& call, Ops& ops) {
  const int64_t num_tokens = views.q.shape[0];
  const auto rotate = [&](int64_t first, int64_t count, const TensorView& q_out) {
    if (count == 0) return;
    LatentRopeAndCache part = call;
    part.q = views.q.rows(first, count);
    part.q_out = q_out.rows(first, count);
    part.latent = views.latent.rows(first, count);
    part.cos_sin = call.cos_sin.rows(first, count);
    part.pairs = config.pairs;
    part.norm = layer.kv_a_norm.view.as<float>();
    part.norm_eps = kLatentNormEps;
    part.kv_slots = call.kv_slots + first;
    if (call.q_scale != nullptr) part.q_scale = call.q_scale + first;
    ops.latents()->latent_rope_and_cache(part);
  };
  if (num_absorbed > 0) {
    ops.latents()->per_head_linear(*layer.k_up, views.q.rows(0, num_absorbed),
                                   views.q_absorbed.rows(0, num_absorbed));
  }
  rotate(0, num_absorbed, views.q_absorbed);
  rotate(num_absorbed, num_tokens - num_absorbed, views.q);
}

void project_values(const MlaLayer& layer, const MlaViews& views, int64_t num_absorbed, Ops& ops) {
  if (num_absorbed == 0) return;
  ops.latents()->per_head_linear(*layer.v_up, views.attended.rows(0, num_absorbed),
                                 views.out.rows(0, num_absorbed));
}

}  // namespace quire
