// The table of SamplingParams fields that a user may set, with their names, types, ranges and help:
// for example `top_p` in a JSON object, and `--top-p` on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/numbers.h"
#include "quire/request.h"
#include "quire/status.h"

namespace simdjson::dom {
class element;
}

namespace quire {

struct SamplingField {
  using Member =
      std::variant<int SamplingParams::*, float SamplingParams::*, bool SamplingParams::*,
                   std::optional<int> SamplingParams::*, std::optional<uint64_t> SamplingParams::*,
                   std::vector<std::string> SamplingParams::*,
                   std::vector<int32_t> SamplingParams::*,
                   std::vector<std::pair<int32_t, float>> SamplingParams::*>;

  std::string_view name;  // "top_p"
  Member member;
  Range range;
  std::string_view help;  // of the flag; for a field that is true by default, the flag is --no-…
  bool has_model_default = false;  // generation_config.json may give a default
};

constexpr int kMaxSequencesPerPrompt = 128;
constexpr int kMaxLogprobs = 20;  // per position
constexpr double kMinRepetitionPenalty = 1e-3;
constexpr double kMaxRepetitionPenalty = 1e3;
constexpr Range kBiasRange = {.min = -100, .max = 100};  // of each logit_bias entry

std::span<const SamplingField> sampling_fields();
const SamplingField* find_sampling_field(std::string_view name);

// An integer may be written like 5.0. The error names the expected value.
Status set_sampling_field(const SamplingField& field, simdjson::dom::element value,
                          SamplingParams& params);

// Fails if the field's value is outside its range; vocab_size bounds every token id. The error
// contains the value and the expected value, without the field's name.
Status check_sampling_field(const SamplingField& field, const SamplingParams& params,
                            int vocab_size);
// Checks each field and their combinations. Errors name the field.
Status validate_sampling_params(const SamplingParams& params, int vocab_size, int max_model_len);

}  // namespace quire
