#include "start/speculation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/json.h"
#include "base/log.h"
#include "model/config_fields.h"
#include "sched/batch_plan.h"
#include "start/embedded.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

constexpr JsonLimits kSpeculationLimits = {.max_bytes = size_t{64} << 10, .max_depth = 8};

constexpr std::string_view kDraftKey = "draft_sample_method";
constexpr std::string_view kRejectionKey = "rejection_sample_method";
constexpr std::string_view kRatesKey = "synthetic_acceptance_rates";
constexpr std::string_view kLengthKey = "synthetic_acceptance_length";
constexpr std::string_view kRangesKey = "num_speculative_tokens_per_batch_size";
constexpr std::string_view kAdaptiveKey = "enable_adaptive_verification";
constexpr std::string_view kUnpaddedKey = "disable_padded_drafter_batch";
constexpr std::array<std::string_view, 12> kKeys = {"method",
                                                    "model",
                                                    "num_speculative_tokens",
                                                    kRangesKey,
                                                    "prompt_lookup_max",
                                                    "prompt_lookup_min",
                                                    kDraftKey,
                                                    kRejectionKey,
                                                    kRatesKey,
                                                    kLengthKey,
                                                    kAdaptiveKey,
                                                    kUnpaddedKey};
constexpr size_t kMaxRanges = 1024;
constexpr int kMaxSeqs = 1 << 20;
// vLLM's defaults.
constexpr int kNgramMatch = 5;
constexpr int kSuffixMatch = 24;
// Few drafts, because a rejected draft costs one token row of every matrix product, and long
// matches end soon.
constexpr int kSuffixDrafts = 8;
// With method auto, a layer that was trained for the first draft proposes this many.
constexpr int kOwnDrafts = 3;
constexpr std::string_view kAuto = "auto";

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

struct ModelMethod {
  std::string_view name;
  DraftModelKind kind;
};
constexpr std::array<ModelMethod, 5> kModelMethods = {{{"draft_model", DraftModelKind::kModel},
                                                       {"eagle3", DraftModelKind::kEagle3},
                                                       {"mtp", DraftModelKind::kMtp},
                                                       {"dflash", DraftModelKind::kDFlash},
                                                       {"dspark", DraftModelKind::kDSpark}}};

constexpr LookupConfig kSuffixLookup = {.min_match = 1, .max_match = kSuffixMatch, .by_vote = true};

// Refuses keys that only other methods have.
void refuse_keys_of(std::string_view methods, std::initializer_list<std::string_view> keys,
                    std::string_view method, ConfigFields& fields) {
  for (const std::string_view key : keys) {
    if (!fields.has(key)) continue;
    fields.fail(key, fmt::format("it with method {}", method),
                fmt::format("it only with method {}", methods));
  }
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

// An empty result means the drafter of the embedded model, which DraftModel::open() refuses for
// another target.
std::string read_model(std::string_view method, ConfigFields& fields) {
  const std::string model = fields.optional_text("model").value_or("");
  if (model.empty() && fields.has("model")) fields.fail("model", "an empty text", kWhichDrafter);
  const auto drafters = embedded_drafters();
  if (model.empty() &&
      std::ranges::find(drafters, method, &EmbeddedDrafter::method) == drafters.end()) {
    fields.fail("model", "nothing", kWhichDrafter);
  }
  return model;
}

// Reads a text that must be one of `values`; the first one if it is absent.
std::string read_choice(std::string_view key, std::initializer_list<std::string_view> values,
                        ConfigFields& fields) {
  const std::string fallback(*values.begin());
  std::string value = fields.optional_text(key).value_or(fallback);
  if (std::ranges::find(values, value) != values.end()) return value;
  fields.fail(key, quote_name(value), fmt::format("one of {}", fmt::join(values, ", ")));
  return fallback;
}

// The rates of synthetic acceptance, from exactly one of the two keys.
std::vector<double> read_synthetic_rates(int num_drafts, ConfigFields& fields) {
  const auto length = fields.optional_number(kLengthKey, 1, 1 + num_drafts);
  if (fields.has(kRatesKey) == length.has_value()) {
    fields.fail(kRejectionKey,
                length ? "synthetic with both rates and a length" : "synthetic without a rate",
                fmt::format("either {} or {}", kRatesKey, kLengthKey));
  }
  if (length) return synthetic_rates(*length, num_drafts);
  std::vector<double> rates = fields.numbers(kRatesKey, 0, 1, kMaxDrafts);
  if (std::ssize(rates) != num_drafts || !std::ranges::is_sorted(rates, std::greater())) {
    fields.fail(kRatesKey, fmt::format("[{}]", fmt::join(rates, ", ")),
                fmt::format("num_speculative_tokens, {}, rates that do not increase: each is the "
                            "probability that its draft and all before it are accepted",
                            num_drafts));
    rates.assign(static_cast<size_t>(num_drafts), 0);
  }
  return rates;
}

// `has_probs`: drafts of this method can be sampled from a distribution.
Verification read_verification(std::string_view method, bool has_probs, int num_drafts,
                               ConfigFields& fields) {
  Verification verification;
  verification.is_adaptive = fields.boolean(kAdaptiveKey, true);
  verification.samples_drafts =
      read_choice(kDraftKey, {"greedy", "probabilistic"}, fields) == "probabilistic";
  if (verification.samples_drafts && !has_probs) {
    fields.fail(kDraftKey, "probabilistic",
                method == kAuto
                    ? std::string("greedy: method auto may choose suffix, whose drafts "
                                  "have no distribution; name the method mtp")
                    : fmt::format("greedy: drafts of method {} have no distribution", method));
  }
  const std::string rejection =
      read_choice(kRejectionKey, {"standard", "block", "synthetic"}, fields);
  if (rejection == "synthetic") {
    verification.method = RejectionMethod::kSynthetic;
    verification.synthetic_rates = read_synthetic_rates(num_drafts, fields);
    return verification;
  }
  for (const std::string_view key : {kRatesKey, kLengthKey}) {
    if (!fields.has(key)) continue;
    fields.fail(key, fmt::format("it with {} {}", kRejectionKey, rejection),
                fmt::format("it only with {} synthetic", kRejectionKey));
  }
  if (rejection == "block") {
    verification.method = RejectionMethod::kBlock;
    if (!verification.samples_drafts) {
      fields.fail(kRejectionKey, "block",
                  has_probs ? fmt::format("standard, or {} probabilistic", kDraftKey)
                            : fmt::format("standard: drafts of method {} have no distribution, "
                                          "and are accepted if they equal the sampled token",
                                          method));
    }
  }
  return verification;
}

// has_own_drafter: whether method auto chooses a layer of the checkpoint.
Result<Speculation> read(std::string_view speculative_config, bool has_own_drafter) {
  Speculation speculation;
  const Result<JsonDocument> document =
      JsonDocument::parse(speculative_config, "", kSpeculationLimits);
  simdjson::dom::object object;
  if (!document.ok() || document->root().get(object)) {
    return invalid_argument(
        fmt::format("got {}, expected a JSON object of at most {} KiB and {} levels such as "
                    "{{\"method\": \"ngram\", \"num_speculative_tokens\": 4}}",
                    quote_name(speculative_config), kSpeculationLimits.max_bytes >> 10,
                    kSpeculationLimits.max_depth));
  }
  ConfigFields fields(object, "");
  const std::string given = fields.optional_text("method").value_or("");
  std::string method = given;
  std::optional<int> default_drafts;
  if (given == kAuto) {
    speculation.is_auto = true;
    method = has_own_drafter ? "mtp" : "suffix";
    if (has_own_drafter) default_drafts = kOwnDrafts;
  }
  if (method == "ngram") {
    speculation.lookup = read_ngram(fields);
  } else if (method == "suffix") {
    speculation.lookup = kSuffixLookup;
    default_drafts = kSuffixDrafts;
  } else if (const auto found = std::ranges::find(kModelMethods, method, &ModelMethod::name);
             found != kModelMethods.end()) {
    const bool has_model = found->kind != DraftModelKind::kMtp || fields.has("model");
    speculation.draft_model = {.kind = found->kind,
                               .model = has_model ? read_model(method, fields) : std::string(),
                               .method = method};
  } else {
    fields.fail("method", method.empty() ? "nothing" : quote_name(method),
                "auto, ngram, suffix, draft_model, eagle3, mtp, dflash or dspark");
  }
  QUIRE_RETURN_IF_ERROR(fields.status());
  if (method != "ngram") {
    refuse_keys_of("ngram", {"prompt_lookup_min", "prompt_lookup_max"}, given, fields);
  }
  if (!speculation.draft_model || speculation.is_auto) {
    refuse_keys_of("draft_model, eagle3, mtp, dflash or dspark", {"model"}, given, fields);
  }
  refuse_other_keys(object, fields);
  speculation.method = method;
  speculation.num_drafts = fields.integer("num_speculative_tokens", 1, kMaxDrafts, default_drafts);
  if (speculation.draft_model) speculation.draft_model->num_drafts = speculation.num_drafts;
  speculation.draft_ranges = read_draft_ranges(fields, speculation.num_drafts);
  speculation.wants_no_padding = fields.boolean(kUnpaddedKey, false);
  speculation.verification =
      read_verification(given, speculation.draft_model.has_value(), speculation.num_drafts, fields);
  QUIRE_RETURN_IF_ERROR(fields.status());
  return speculation;
}

}  // namespace

Result<Speculation> read_speculation(std::string_view speculative_config) {
  if (speculative_config.empty()) return Speculation();
  return read(speculative_config, false);
}

Result<Speculation> settle_method(const Speculation& speculation,
                                  std::string_view speculative_config, bool has_own_drafter) {
  if (!speculation.is_auto) return speculation;
  Result<Speculation> settled = read(speculative_config, has_own_drafter);
  if (!settled.ok()) {
    return invalid_argument(
        fmt::format("[engine] `speculative_config`: {}; the model's own layer "
                    "drafts",
                    settled.status().message()));
  }
  log_info("[engine] `speculative_config`: method auto is {}",
           describe_drafts(settled->method, settled->num_drafts));
  return settled;
}

Status refuse_unpadded_drafts(const Speculation& speculation) {
  if (!speculation.wants_no_padding) return {};
  return invalid_argument(
      "[engine] `speculative_config`: disable_padded_drafter_batch; got true, expected false on "
      "a GPU: its drafters also compute rejected drafts, so that no step waits for the number of "
      "accepted ones; leave it out");
}

std::string describe_drafts(std::string_view method, int num_drafts) {
  return fmt::format("{}, up to {} token{} per step", method, num_drafts,
                     num_drafts == 1 ? "" : "s");
}

}  // namespace quire
