#include "engine/speculation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/json.h"
#include "model/config_fields.h"
#include "sched/batch_plan.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

constexpr std::string_view kSource = "`speculative_config`";
constexpr JsonLimits kLimits = {.max_bytes = size_t{64} << 10, .max_depth = 8};

constexpr std::array<std::string_view, 5> kKeys = {"method", "num_speculative_tokens",
                                                   "num_speculative_tokens_per_batch_size",
                                                   "prompt_lookup_max", "prompt_lookup_min"};
constexpr std::string_view kRangesKey = "num_speculative_tokens_per_batch_size";
constexpr size_t kMaxRanges = 1024;
constexpr int kMaxSeqs = 1 << 20;
// vLLM's defaults.
constexpr int kNgramMatch = 5;
constexpr int kSuffixMatch = 24;
// A rejected draft costs a token row of every matrix product, and long matches end soon.
constexpr int kSuffixDrafts = 8;

void refuse_other_keys(simdjson::dom::object object, ConfigFields& fields) {
  for (const auto [key, value] : object) {
    if (std::ranges::find(kKeys, key) != kKeys.end()) continue;
    fields.fail(quote_name(key), "a key that is not served",
                fmt::format("one of {}", fmt::join(kKeys, ", ")));
  }
}

// A bound that is not given equals the other one, as in vLLM.
LookupConfig read_ngram(ConfigFields& fields) {
  const auto least = fields.optional_integer("prompt_lookup_min", 1, 1024);
  const auto most = fields.optional_integer("prompt_lookup_max", 1, 1024);
  const LookupConfig lookup = {.min_match = least.value_or(most.value_or(kNgramMatch)),
                               .max_match = most.value_or(least.value_or(kNgramMatch))};
  if (lookup.min_match > lookup.max_match) {
    fields.fail("prompt_lookup_min", std::to_string(lookup.min_match),
                fmt::format("at most prompt_lookup_max, {}", lookup.max_match));
  }
  return lookup;
}

LookupConfig read_suffix(ConfigFields& fields) {
  for (const std::string_view key : {"prompt_lookup_min", "prompt_lookup_max"}) {
    if (fields.has(key)) fields.fail(key, "it with method suffix", "it only with method ngram");
  }
  return {.min_match = 1, .max_match = kSuffixMatch, .by_vote = true};
}

// A list of [first, last, num_drafts], where first and last are numbers of decoding sequences.
std::vector<DraftRange> read_draft_ranges(ConfigFields& fields, int most_drafts) {
  std::vector<DraftRange> ranges;
  for (const std::vector<int>& row : fields.integer_rows(kRangesKey, 0, kMaxSeqs, 3, kMaxRanges)) {
    const DraftRange range = {.first = row[0], .last = row[1], .num_drafts = row[2]};
    const bool is_ordered =
        range.first <= range.last && (ranges.empty() || ranges.back().last < range.first);
    if (!is_ordered || range.num_drafts > most_drafts) {
      fields.fail(kRangesKey, fmt::format("[{}]", fmt::join(row, ", ")),
                  fmt::format("ascending ranges [first, last, k] with k of at most "
                              "num_speculative_tokens, {}",
                              most_drafts));
    }
    ranges.push_back(range);
  }
  return ranges;
}

}  // namespace

Result<Speculation> read_speculation(std::string_view speculative_config) {
  Speculation speculation;
  if (speculative_config.empty()) return speculation;
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(speculative_config, kSource, kLimits));
  simdjson::dom::object object;
  if (document.root().get(object)) {
    return invalid_argument(
        fmt::format("[config] {}; got {}, expected an object such as "
                    "{{\"method\": \"ngram\", \"num_speculative_tokens\": 4}}",
                    kSource, quote_name(speculative_config)));
  }
  ConfigFields fields(object, kSource);
  const std::string method = fields.optional_text("method").value_or("");
  if (method != "ngram" && method != "suffix") {
    fields.fail("method", method.empty() ? "nothing" : quote_name(method),
                "ngram or suffix: methods with a draft model are not served yet");
  }
  LookupConfig lookup;
  if (method == "ngram") {
    lookup = read_ngram(fields);
    speculation.num_drafts = fields.integer("num_speculative_tokens", 1, kMaxDrafts);
  } else if (method == "suffix") {
    lookup = read_suffix(fields);
    speculation.num_drafts = fields.integer("num_speculative_tokens", 1, kMaxDrafts, kSuffixDrafts);
  }
  refuse_other_keys(object, fields);
  speculation.draft_ranges = read_draft_ranges(fields, speculation.num_drafts);
  QUIRE_RETURN_IF_ERROR(fields.status());
  speculation.make_drafter = [lookup](DeviceContext& context, const DrafterLimits& limits) {
    return context.make_lookup_drafter(lookup, limits);
  };
  return speculation;
}

}  // namespace quire
