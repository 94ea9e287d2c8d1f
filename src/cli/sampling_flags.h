// The sampling flags: one per field of SamplingParams that a user may set.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "cli/flags.h"
#include "quire/engine.h"
#include "quire/request.h"
#include "sample/sampling_fields.h"

namespace quire::cli {

// Whether the params ask for log probabilities, which only the JSON format can print.
bool asks_for_logprobs(const SamplingParams& params);

// Returns the field's value as JSON; "null" if it has none.
std::string json_of(const SamplingField& field, const SamplingParams& params);

// The sampling flags given on the command line. They are applied over defaults that are known only
// once the model is loaded.
class SamplingFlags {
 public:
  // `max_tokens` describes the default of that field in --help.
  explicit SamplingFlags(std::string max_tokens) : max_tokens_(std::move(max_tokens)) {}

  // Adds one flag per field. This object must outlive the parse.
  void add_to(FlagSet& flags);
  // Does the same as the field's flag: appends to a list, and replaces any other value. `source`
  // must outlive this object.
  Status set(const SamplingField& field, std::string_view text,
             std::string_view source = "the command line");
  // Forgets all values of the field.
  void unset(const SamplingField& field);
  bool gives(const SamplingField& field) const;
  bool any_given() const { return !edits_.empty(); }
  SamplingParams applied_to(SamplingParams defaults) const;
  // Also appends the sources of values that differ from the defaults, such as "the command line",
  // to SamplingDefaults::source.
  SamplingDefaults applied_to(SamplingDefaults defaults) const;
  // Writes the given fields into the object of a request to a server.
  void write_given(JsonWriter& json) const;

 private:
  struct Edit {
    const SamplingField* field;
    std::string_view source;
    std::function<void(SamplingParams&)> apply;
  };

  std::string max_tokens_;
  std::vector<Edit> edits_;
};

}  // namespace quire::cli
