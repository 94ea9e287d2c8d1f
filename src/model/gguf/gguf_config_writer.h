// Writes the fields of a GGUF file's metadata as a config.json. The rotation's fields are in
// gguf_config_rope.cc, those of experts in gguf_config_experts.cc, those of layers with states in
// gguf_config_states.cc, those of Gemma 4 alone in gguf_config_gemma4.cc, all others in
// gguf_config.cc.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "model/gguf/gguf_architectures.h"
#include "ops/expert_ops.h"
#include "quire/status.h"
#include "tensor/gguf.h"

namespace quire {

inline constexpr int64_t kAnyInteger = std::numeric_limits<int32_t>::max();
inline constexpr std::string_view kExpertCount = "expert_count";
inline constexpr std::string_view kHeads = "attention.head_count";
inline constexpr std::string_view kKvHeads = "attention.head_count_kv";
inline constexpr std::string_view kDeltaLayers = "attention.recurrent_layers";
inline constexpr std::string_view kPattern = "attention.sliding_window_pattern";

// The fields of delta nets that are written as they are.
inline constexpr std::array kGgufDeltaFields = {
    GgufField{"ssm.group_count", "linear_num_key_heads"},
    GgufField{"ssm.time_step_rank", "linear_num_value_heads"},
    GgufField{"ssm.state_size", "linear_key_head_dim"},
    GgufField{"ssm.conv_kernel", "linear_conv_kernel_dim"},
};

// A number of the metadata as an integer; -1 for any other number, which is refused later.
inline int64_t integer_of(double number) {
  const bool is_integer =
      number >= 0.0 && number <= static_cast<double>(kAnyInteger) && number == std::floor(number);
  return is_integer ? static_cast<int64_t>(number) : -1;
}

// The numbers of a tensor, whose size the caller has checked.
std::vector<float> numbers_of(const GgufTensor& tensor);

// Writes the config.json of one file. Keeps the first error.
class GgufConfigWriter {
 public:
  GgufConfigWriter(const GgufModel& gguf, const GgufArchitecture& row) : gguf_(gguf), row_(row) {}

  Result<std::string> write();

 private:
  const GgufValue* find(std::string_view key) const {
    read_.insert(key);
    return gguf_.find(fmt::format("{}.{}", row_.name, key));
  }
  std::optional<int64_t> integer(std::string_view key) const {
    const GgufValue* const value = find(key);
    return value == nullptr ? std::nullopt : value->integer();
  }
  // Returns an integer from `least` to `most`. An absent field returns `fallback`, if there is one.
  // Everything else is an error and returns `least`.
  int64_t integer(std::string_view key, int64_t least, int64_t most,
                  std::optional<int64_t> fallback = {});
  double number(std::string_view key, double fallback);
  bool boolean(std::string_view key, bool fallback);
  // Whether the field is present and not 0. Also true if it is not a number; its reader reports
  // that.
  bool is_set(std::string_view key) const {
    const GgufValue* const value = find(key);
    return value != nullptr && value->number() != 0.0;
  }
  bool has(std::string_view tensor) const { return gguf_.tensor(tensor) != nullptr; }
  bool is_gemma() const { return row_.layers_of_largest_gemma > 0; }
  bool has_groups() const { return row_.experts == GgufExperts::kScaled; }
  bool has_chunks() const { return row_.windows == GgufWindows::kChunks; }
  // The largest attention.head_count of all layers.
  std::optional<int64_t> num_heads() const;
  int64_t num_layers() const;
  bool has_experts() const;
  bool has_sigmoid_router() const;
  // The architecture in config.json.
  std::string_view hf_architecture() const;
  // Returns the expert_gating_func that applies if the metadata has the value `stated`; 0: it has
  // none.
  int64_t gating_of(int64_t stated) const;
  void write_field(const GgufField& field);
  void write_sizes();
  void write_num_layers();
  void write_vocab_size();
  void write_rope();
  void write_longrope();
  void write_yarn();
  void write_yarn_factor();
  void write_temperature();
  void write_divisors(std::string_view field, std::string_view tensor);
  void write_query_scalar();
  void write_multipliers();
  void write_windows();
  void write_layer_types();
  void write_special_tokens();
  void write_heads();
  void write_hybrid();
  void write_convs();
  void write_deltas();
  void write_delta_layers();
  void write_head_dim();
  // Fails if the key is present with another number.
  void expect_head_dim(std::string_view key, int64_t head_dim);
  void write_gemma4();
  void write_gemma4_heads(const std::vector<bool>& windows);
  void write_gemma4_width();
  void write_gemma4_ropes();
  void write_mla();
  void write_switches();
  void check_divisors(std::string_view tensor);
  void check_unserved();
  void check_window();
  void check_chunks();
  void check_pooling();
  void write_experts();
  void write_scaled_experts(const ExpertRouting& routing);
  int64_t num_shared_experts(int64_t width);
  int64_t num_dense_layers() const;
  ExpertRouting read_routing();
  void fail(std::string_view key, std::string_view got, std::string_view expected) {
    if (!status_.ok()) return;
    status_ = unimplemented(fmt::format("[gguf] {}: metadata \"{}.{}\"; got {}, expected {}",
                                        gguf_.source(), row_.name, key, got, expected));
  }

  const GgufModel& gguf_;
  const GgufArchitecture& row_;
  mutable std::set<std::string_view> read_;  // the keys that were looked for
  int64_t head_dim_ = 0;
  int64_t rotated_dim_ = 0;  // of a head
  JsonWriter json_;
  Status status_;
};

}  // namespace quire
