#include "cuda/gemm/dense/gemm_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <span>

#include "base/ascii.h"
#include "base/digest.h"
#include "base/numbers.h"
#include "base/text_input.h"
#include "cuda/gemm/dense/kernels/wgmma_kernel.h"

namespace quire::cuda {
namespace {

using Kind = GemmChoice::Kind;
using Words = std::span<const std::string_view>;

// Absent unless there are N words, all numbers of at least 0.
template <size_t N>
std::optional<std::array<int, N>> numbers_of(Words words) {
  if (words.size() != N) return std::nullopt;
  std::array<int, N> numbers = {};
  for (size_t i = 0; i < N; ++i) {
    const std::optional<int> number = parse_whole<int>(words[i]);
    if (!number || *number < 0) return std::nullopt;
    numbers[i] = *number;
  }
  return numbers;
}

std::optional<GemmChoice> skinny_choice(Words words) {
  const auto numbers = numbers_of<1>(words);
  if (!numbers || (*numbers)[0] >= num_skinny_variants()) return std::nullopt;
  return GemmChoice{.kind = Kind::kSkinny, .skinny_variant = (*numbers)[0]};
}

std::optional<GemmChoice> grouped_choice(Words words) {
  const auto numbers = numbers_of<1>(words);
  if (!numbers || std::ranges::count(wgmma::kGroupedTokens, (*numbers)[0]) == 0) {
    return std::nullopt;
  }
  return GemmChoice{.kind = Kind::kGrouped, .tile_rows = (*numbers)[0]};
}

std::optional<GemmChoice> wgmma_choice(Words words) {
  const auto numbers = numbers_of<4>(words);
  if (!numbers) return std::nullopt;
  const auto& [tile, tokens, weights, splits] = *numbers;
  if (tile >= num_wgmma_tiles() || std::min({tokens, weights, splits}) < 1) return std::nullopt;
  return GemmChoice{
      .kind = Kind::kWgmma,
      .wgmma = {
          .tile = tile, .cluster_tokens = tokens, .cluster_weights = weights, .splits = splits}};
}

std::optional<GemmChoice> cublas_choice(Words words) {
  GemmChoice choice = {.kind = Kind::kCublasLt};
  const std::string bytes = words.size() == 1 ? from_base64(words[0]) : "";
  if (bytes.size() != sizeof choice.algorithm) return std::nullopt;
  std::memcpy(&choice.algorithm, bytes.data(), bytes.size());
  return choice;
}

}  // namespace

int64_t row_bucket(int64_t num_rows) {
  for (const int64_t small : {1, 2, 4, 8, 16}) {
    if (num_rows <= small) return small;
  }
  const int64_t step = num_rows <= 128 ? 16 : num_rows <= 512 ? 64 : num_rows <= 2048 ? 256 : 1024;
  return round_up(num_rows, step);
}

std::vector<int> row_buckets(int max_rows) {
  std::vector<int> buckets;
  for (int64_t rows = 1; rows < max_rows; rows = row_bucket(rows + 1)) {
    buckets.push_back(static_cast<int>(rows));
  }
  buckets.push_back(max_rows);
  return buckets;
}

std::string choice_key(const GemmShape& shape, int64_t row_bucket, size_t cublas_version) {
  return fmt::format(
      "{} rows, {}x{}, {} weights {} out {}, bias {} gated {} operation {} scale rows {}, heads {} "
      "widths {} {} shared {} transposed {}, cuBLASLt {}",
      row_bucket, shape.n, shape.k, dtype_name(shape.type), dtype_name(shape.weights),
      dtype_name(shape.out), shape.has_bias, shape.is_gated, shape.operation, shape.scale_rows,
      shape.num_heads, shape.x_width, shape.out_width, shape.shares_x, shape.transposes_w,
      cublas_version);
}

// cuBLASLt documents that the bytes of an algorithm may be stored and restored.
std::string to_text(const GemmChoice& choice) {
  switch (choice.kind) {
    case Kind::kSkinny:
      return fmt::format("skinny {}", choice.skinny_variant);
    case Kind::kCublasLt: {
      const auto* bytes = reinterpret_cast<const uint8_t*>(&choice.algorithm);
      return "cublaslt " + to_base64({bytes, sizeof choice.algorithm});
    }
    case Kind::kWgmma:
      return fmt::format("wgmma {} {} {} {}", choice.wgmma.tile, choice.wgmma.cluster_tokens,
                         choice.wgmma.cluster_weights, choice.wgmma.splits);
    case Kind::kGrouped:
      return fmt::format("grouped {}", choice.tile_rows);
    case Kind::kGeneric:
      return "generic";
  }
  return {};
}

std::optional<GemmChoice> gemm_choice(std::string_view text) {
  const std::vector<std::string_view> words = split(text, ' ');
  const Words rest = Words(words).subspan(1);
  if (words[0] == "skinny") return skinny_choice(rest);
  if (words[0] == "cublaslt") return cublas_choice(rest);
  if (words[0] == "wgmma") return wgmma_choice(rest);
  if (words[0] == "grouped") return grouped_choice(rest);
  if (words[0] == "generic" && rest.empty()) return GemmChoice{.kind = Kind::kGeneric};
  return std::nullopt;
}

Result<std::optional<GemmChoice>> find_or_measure(MeasuredChoices& choices, ChoiceKind kind,
                                                  const std::string& key,
                                                  const ChoiceSteps& steps) {
  std::optional<GemmChoice> known;
  if (!choices.measures()) {
    known = steps.unmeasured();
  } else if (const auto text = choices.find(kind, key)) {
    known = gemm_choice(*text);
  }
  if (known && steps.runs(*known)) return known;
  if (!choices.measures()) return std::optional<GemmChoice>();
  const MeasuredChoices::Timing timing(choices, kind);
  QUIRE_ASSIGN_OR_RETURN(const GemmChoice measured, steps.measure());
  choices.add(kind, key, to_text(measured));
  return std::optional(measured);
}

}  // namespace quire::cuda
