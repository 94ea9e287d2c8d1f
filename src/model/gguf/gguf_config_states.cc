#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/decoder_config.h"
#include "model/gguf/gguf_config_writer.h"

namespace quire {

// Writes the layers with attention, and their number of KV heads. The MLP's width is the final one.
void GgufConfigWriter::write_convs() {
  if (row_.experts == GgufExperts::kNone) json_.field("block_auto_adjust_ff_dim", false);
  const GgufValue* const heads = find(kKvHeads);
  const auto counts = heads == nullptr ? std::nullopt : heads->numbers();
  if (!counts || std::ssize(*counts) != num_layers()) {
    return fail(kKvHeads, "no list, or one of another length", "a number for each layer");
  }
  std::set<double> numbers;
  json_.key("layer_types");
  json_.begin_array();
  for (const double count : *counts) {
    json_.value(count == 0.0 ? "conv" : "full_attention");
    if (count != 0.0) numbers.insert(count);
  }
  json_.end_array();
  if (numbers.size() != 1) {
    return fail(kKvHeads, fmt::format("{} numbers beside 0", numbers.size()),
                "the same number in all layers that attend, and at least one of them");
  }
  json_.field("num_key_value_heads", integer_of(*numbers.begin()));
}

// A file has the width of all value heads. With one value head per key head, tiling has no effect.
void GgufConfigWriter::write_deltas() {
  constexpr std::string_view kWidth = "ssm.inner_size";
  for (const GgufField& field : kGgufDeltaFields) {
    json_.field(field.name, integer(field.key, 1, kAnyInteger));
  }
  const int64_t num_k_heads = integer("ssm.group_count", 1, kAnyInteger);
  const int64_t num_v_heads = integer("ssm.time_step_rank", 1, kAnyInteger);
  const int64_t width = integer(kWidth, 1, kAnyInteger);
  if (width % num_v_heads != 0) {
    fail(kWidth, std::to_string(width), fmt::format("a multiple of the {} heads", num_v_heads));
  }
  json_.field("linear_value_head_dim", width / num_v_heads);
  json_.field("linear_value_heads_are_tiled",
              row_.deltas == GgufDeltas::kTiled && num_v_heads != num_k_heads);
  write_delta_layers();
}

// The lists of the metadata also have the layers that predict further tokens. Files without the
// list have an interval.
void GgufConfigWriter::write_delta_layers() {
  const GgufValue* const value = find(kDeltaLayers);
  if (value == nullptr) {
    return json_.field("full_attention_interval",
                       integer("full_attention_interval", 1, kMaxLayers, 4));
  }
  const auto flags = value->numbers();
  const int64_t count = num_layers();
  if (!flags || std::ssize(*flags) < count) {
    return fail(kDeltaLayers, "no list, or a shorter one", "a flag for each layer");
  }
  json_.key("layer_types");
  json_.begin_array();
  for (int64_t i = 0; i < count; ++i) {
    const bool has_delta = (*flags)[static_cast<size_t>(i)] != 0.0;
    json_.value(has_delta ? "linear_attention" : "full_attention");
  }
  json_.end_array();
}

}  // namespace quire
