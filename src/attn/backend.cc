#include "attn/backend.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace quire {
namespace {

constexpr auto kBackendNames = std::to_array<BackendName>({{"cpu", DeviceKind::kCpu},
                                                           {"reference", DeviceKind::kCpu},
                                                           {"native", DeviceKind::kCuda},
                                                           {"flashinfer", DeviceKind::kCuda},
                                                           {"xqa", DeviceKind::kCuda},
                                                           {"cudnn", DeviceKind::kCuda}});

}  // namespace

std::span<const BackendName> backend_names() {
  return kBackendNames;
}

std::string describe(const AttentionUse& use) {
  if (use.phase == Phase::kPrefill || use.q_len == 1) return std::string(phase_name(use.phase));
  return fmt::format("decode of {} query tokens", use.q_len);
}

std::vector<std::string> shape_faults(const AttentionShape& shape) {
  std::vector<std::string> faults;
  const auto require = [&](bool ok, std::string reason) {
    if (!ok) faults.push_back(std::move(reason));
  };
  const bool heads_known = shape.num_heads > 0 && shape.num_kv_heads > 0;
  require(heads_known,
          fmt::format("num_heads is {} and num_kv_heads is {}; both must be at least 1.",
                      shape.num_heads, shape.num_kv_heads));
  require(!heads_known || shape.num_heads % shape.num_kv_heads == 0,
          fmt::format("num_heads is {}; it must be a multiple of num_kv_heads, which is {}.",
                      shape.num_heads, shape.num_kv_heads));
  require(
      !shape.is_latent || shape.head_dim_v <= shape.head_dim,
      fmt::format("head_dim_v is {}; the values of a latent cache are the beginning of its keys, "
                  "so it must be at most head_dim, which is {}.",
                  shape.head_dim_v, shape.head_dim));
  require(shape.page_size == 16 || shape.page_size == 32 || shape.page_size == 64,
          fmt::format("page_size is {}; it must be 16, 32 or 64.", shape.page_size));
  require(std::isfinite(shape.scale), fmt::format("scale is {}; it must be finite.", shape.scale));
  require(std::isfinite(shape.softcap) && shape.softcap >= 0.0F,
          fmt::format("softcap is {}; it must be 0 (off) or positive.", shape.softcap));
  require(shape.window >= 0,
          fmt::format("window is {}; it must be 0 (off) or positive.", shape.window));
  require(shape.causal || shape.window == 0,
          fmt::format("window is {} and causal is false; a window is defined for causal attention "
                      "only.",
                      shape.window));
  require(!shape.chunked || shape.window > 0,
          "chunked is true and window is 0; window must be the size of a chunk.");
  return faults;
}

}  // namespace quire
