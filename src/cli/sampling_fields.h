// The fields of SamplingParams that a user may set, each once: its name, type, range and help. A
// JSON object has the field `top_p`; the command line has the flag `--top-p`.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/flags.h"
#include "quire/request.h"

namespace quire::cli {

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
  std::string_view help;
  bool is_of_model = false;  // generation_config.json may have another default
};

std::span<const SamplingField> sampling_fields();
const SamplingField* find_sampling_field(std::string_view name);

// Only JSON has a place for what these ask for.
bool asks_for_logprobs(const SamplingParams& params);

// The message says what was expected.
Status set_sampling_field(const SamplingField& field, simdjson::dom::element value,
                          SamplingParams& params);

// What the command line said, to be laid over defaults that are known only once a model is loaded.
class SamplingFlags {
 public:
  // max_tokens: of requests that say nothing about it.
  explicit SamplingFlags(int max_tokens) : max_tokens_(max_tokens) {}

  // One flag a field. This object outlives the parse.
  void add_to(FlagSet& flags);
  SamplingParams over(SamplingParams defaults) const;

 private:
  int max_tokens_;
  std::vector<std::function<void(SamplingParams&)>> edits_;
};

}  // namespace quire::cli
