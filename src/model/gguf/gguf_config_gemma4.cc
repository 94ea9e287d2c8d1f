#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "model/gguf/gguf_config_writer.h"

namespace quire {
namespace {

constexpr std::string_view kWidth = "feed_forward_length";
constexpr std::string_view kDivisors = "rope_freqs.weight";
// llama.cpp's divisor of a frequency that is 0 in the checkpoint's model.
constexpr float kNoRotation = 1e30F;

}  // namespace

// The metadata has the heads of layers without a window under the usual keys, and the heads of
// layers with a window under keys with "_swa". The number of KV heads is one number, or a list by
// layer.
void GgufConfigWriter::write_gemma4() {
  const GgufValue* const pattern = find(kPattern);
  const auto flags = pattern == nullptr ? std::nullopt : pattern->numbers();
  const int64_t count = num_layers();
  if (!flags || std::ssize(*flags) != count) {
    return fail(kPattern, "no list, or one of another length", "a flag for each layer");
  }
  std::vector<bool> windows;
  for (const double flag : *flags) windows.push_back(flag != 0.0);
  write_gemma4_heads(windows);
  write_gemma4_width();
  write_gemma4_ropes();
  json_.field("hidden_size_per_layer_input",
              integer("embedding_length_per_layer_input", 0, kAnyInteger, 0));
}

void GgufConfigWriter::write_gemma4_heads(const std::vector<bool>& windows) {
  constexpr std::string_view kShared = "attention.shared_kv_layers";
  head_dim_ = integer("attention.key_length", 1, kAnyInteger);
  const int64_t windowed = integer("attention.key_length_swa", 1, kAnyInteger);
  expect_head_dim("attention.value_length", head_dim_);
  expect_head_dim("attention.value_length_swa", windowed);
  expect_head_dim("rope.dimension_count", head_dim_);
  expect_head_dim("rope.dimension_count_swa", windowed);
  const GgufValue* const heads = find(kKvHeads);
  const auto list = heads == nullptr ? std::nullopt : heads->numbers();
  if (list && list->size() != windows.size()) {
    return fail(kKvHeads, fmt::format("{} numbers", list->size()), "one per layer");
  }
  const int64_t num_owners = num_layers() - integer(kShared, 0, num_layers(), 0);
  std::set<double> counts[2];  // without a window, with one
  std::set<bool> has_values;   // without a window
  for (size_t layer = 0; layer < windows.size(); ++layer) {
    if (list) counts[windows[layer] ? 1 : 0].insert((*list)[layer]);
    if (windows[layer] || static_cast<int64_t>(layer) >= num_owners) continue;
    has_values.insert(has(fmt::format("blk.{}.attn_v.weight", layer)));
  }
  if (counts[0].size() > 1 || counts[1].size() > 1 || has_values.size() > 1) {
    return fail(kKvHeads, "different numbers, or matrices of values in some layers",
                "the same in all layers with a window, and in all others");
  }
  const auto count_of = [&](const std::set<double>& numbers) {
    return integer_of(numbers.empty() ? 1.0 : *numbers.begin());
  };
  if (list) {
    json_.field("num_key_value_heads", count_of(counts[1]));
    json_.field("num_global_key_value_heads", count_of(counts[0]));
  } else {
    write_field({kKvHeads, "num_key_value_heads"});
  }
  json_.field("attention_k_eq_v", has_values.contains(false));
}

// The MLPs of the layers that share keys and values may have twice the width of the others.
void GgufConfigWriter::write_gemma4_width() {
  const GgufValue* const value = find(kWidth);
  const auto list = value == nullptr ? std::nullopt : value->numbers();
  if (!list) return write_field({kWidth, "intermediate_size"});
  const int64_t count = num_layers();
  if (list->empty() || std::ssize(*list) != count) {
    return fail(kWidth, fmt::format("{} numbers", list->size()), "one number, or one per layer");
  }
  const double width = list->front();
  const bool doubles = list->back() == 2 * width;
  const int64_t first_shared = count - integer("attention.shared_kv_layers", 0, count, 0);
  for (int64_t layer = 0; layer < count; ++layer) {
    const bool is_double = doubles && layer >= first_shared;
    if ((*list)[static_cast<size_t>(layer)] == (is_double ? 2 * width : width)) continue;
    return fail(kWidth, fmt::format("another width in layer {}", layer),
                "one width, or twice it in the layers that share keys and values");
  }
  json_.field("intermediate_size", integer_of(width));
  json_.field("use_double_wide_mlp", doubles);
}

// The file divides the frequencies that are 0 by a large number, and the others by 1.
void GgufConfigWriter::write_gemma4_ropes() {
  for (const std::string_view key : {"rope.scaling.factor", "rope.scale_linear"}) {
    const double factor = number(key, 1.0);
    if (factor == 1.0 || factor == 0.0) continue;  // llama.cpp's 0 is no factor
    return fail(key, fmt::format("{}", factor), "1, because Gemma 4 has no scaled rotation");
  }
  const GgufValue* const scaling = find("rope.scaling.type");
  if (scaling != nullptr && scaling->text() != "none" && scaling->text() != "linear") {
    return fail("rope.scaling.type", "another scaling", "none, or linear with a factor of 1");
  }
  const GgufTensor* const divisors = gguf_.tensor(kDivisors);
  if (divisors == nullptr) {
    return fail("rope.freq_base", fmt::format("no tensor \"{}\"", kDivisors), "one beside it");
  }
  rotated_dim_ = head_dim_;
  check_divisors(kDivisors);
  if (!status_.ok()) return;
  const std::vector<float> values = numbers_of(*divisors);
  const auto end = std::ranges::find_if(values, [](float divisor) { return divisor != 1.0F; });
  if (std::ranges::any_of(end, values.end(), [](float x) { return x != kNoRotation; })) {
    return fail("rope.freq_base", fmt::format("other numbers in tensor \"{}\"", kDivisors),
                "1 for the first frequencies, and 1e30 for the others");
  }
  json_.key("rope_parameters");
  json_.begin_object();
  json_.key("full_attention");
  json_.begin_object();
  json_.field("rope_type", "proportional");
  write_field({"rope.freq_base", "rope_theta"});
  json_.field("partial_rotary_factor",
              static_cast<double>(end - values.begin()) / static_cast<double>(values.size()));
  json_.end_object();
  json_.key("sliding_attention");
  json_.begin_object();
  write_field({"rope.freq_base_swa", "rope_theta"});
  json_.end_object();
  json_.end_object();
}

}  // namespace quire
