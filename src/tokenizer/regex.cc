// compile_regex(): uses PCRE2 for patterns without a hand-written scanner.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/ascii.h"
#include "base/text.h"
#include "tokenizer/pattern.h"

namespace quire {
namespace {

constexpr size_t kMaxPatternBytes = size_t{1} << 16;
constexpr size_t kMaxClassBytes = 4096;
constexpr size_t kMaxScriptBytes = 64;
constexpr size_t kMaxRepeat = 65'535;  // PCRE2's limit
constexpr uint32_t kHeapLimitKib = 16 * 1024;
constexpr uint32_t kNestLimit = 64;

template <auto kFree>
struct Deleter {
  template <typename T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};
using Code = std::unique_ptr<pcre2_code, Deleter<pcre2_code_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Deleter<pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data_free>>;

// Oniguruma's \w. PCRE2's \w lacks the marks and connectors.
constexpr std::string_view kWordClass = R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc})";

Status unsupported(std::string_view pattern, std::string_view what) {
  return unimplemented(
      fmt::format("regex \"{}\" uses {}, which is not supported", clipped(pattern), what));
}

struct Translated {
  std::string pattern;
  // These two values limit the time of one item of the pattern, because PCRE2 scans a class member
  // by member, and does not call the callout during the minimum repeats of an item.
  size_t longest_class = 0;  // bytes
  size_t largest_repeat = 0;
};

// The minimum count of a "{3}" or "{3,5}" at the start of `text`, or 0.
size_t least_count(std::string_view text) {
  size_t count = 0;
  for (size_t i = 1; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    count = std::min(count * 10 + static_cast<size_t>(text[i] - '0'), kMaxRepeat);
  }
  return count;
}

// Whether PCRE2 has a script of this name.
bool is_script(std::string_view name) {
  const std::string pattern = fmt::format("\\p{{sc:{}}}", name);
  int error = 0;
  PCRE2_SIZE where = 0;
  return Code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF,
                            &error, &where, nullptr)) != nullptr;
}

// The name of a script in a \p{Name} or \P{Name} at the start of `text`; empty: there is none.
std::string_view script_name(std::string_view text) {
  if (!text.starts_with("\\p{") && !text.starts_with("\\P{")) return {};
  const size_t end = text.substr(0, kMaxScriptBytes).find('}');
  if (end == std::string_view::npos) return {};
  const std::string_view name = text.substr(3, end - 3);
  const bool is_word = !name.empty() && std::ranges::all_of(name, is_alphanumeric);
  return is_word && is_script(name) ? name : std::string_view();
}

// Translates the pattern into PCRE2's dialect. Fails on constructs that have a different meaning in
// PCRE2.
Result<Translated> to_pcre2(std::string_view pattern) {
  Translated result;
  std::string& out = result.pattern;
  bool in_class = false;
  size_t class_start = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view rest = pattern.substr(i);
    if (rest.starts_with("&&") && in_class) return unsupported(pattern, "&& in a class");
    if (!in_class && rest.starts_with("(*")) return unsupported(pattern, "(*");
    if (!in_class && rest.starts_with("(?C")) return unsupported(pattern, "(?C");
    if (rest[0] != '\\' || rest.size() < 2) {
      if (rest[0] == '[' && in_class) return unsupported(pattern, "a class in a class");
      if (rest.starts_with("[]") || rest.starts_with("[^]")) {
        return unsupported(pattern, "a class that begins with ]");
      }
      if (rest[0] == '[') {
        in_class = true;
        class_start = i;
      } else if (rest[0] == ']' && in_class) {
        in_class = false;
        result.longest_class = std::max(result.longest_class, i - class_start);
      } else if (rest[0] == '{' && !in_class) {
        result.largest_repeat = std::max(result.largest_repeat, least_count(rest));
      }
      out += rest[0];
      continue;
    }
    const char escape = rest[1];
    ++i;
    if (escape == 'w') {
      out += in_class ? std::string(kWordClass) : fmt::format("[{}]", kWordClass);
    } else if (escape == 'W' && !in_class) {
      out += fmt::format("[^{}]", kWordClass);
    } else if (const std::string_view script = script_name(rest); !script.empty()) {
      // Without "sc:", PCRE2 also matches characters that several scripts share.
      out += fmt::format("\\{}{{sc:{}}}", escape, script);
      i += script.size() + 2;
    } else if (std::string_view("hHWbBCKMQERXyYO").find(escape) != std::string_view::npos) {
      return unsupported(pattern, rest.substr(0, 2));
    } else {
      out += rest.substr(0, 2);
    }
  }
  if (result.longest_class > kMaxClassBytes) {
    return unsupported(pattern, fmt::format("a class of {} bytes (expected at most {})",
                                            result.longest_class, kMaxClassBytes));
  }
  return result;
}

// The state for charging a search to its budget. PCRE2's own match limit is not sufficient: it
// restarts at each start position, and does not count the characters that a repeated class
// consumes.
struct Meter {
  SearchBudget& budget;
  size_t step_cost;
  size_t position;
};

// The callout between two items of the pattern: charges the distance since the last callout.
int count_steps(pcre2_callout_block* block, void* data) {
  Meter& meter = *static_cast<Meter*>(data);
  const size_t position = block->current_position;
  const size_t distance =
      position > meter.position ? position - meter.position : meter.position - position;
  meter.budget.spend(meter.step_cost * (1 + distance));
  meter.position = position;
  return meter.budget.is_spent() ? PCRE2_ERROR_CALLOUT : 0;
}

MatchContext make_match_context() {
  MatchContext context(pcre2_match_context_create(nullptr));
  if (context == nullptr) return context;
  pcre2_set_match_limit(context.get(), UINT32_MAX);  // the budget limits the search instead
  pcre2_set_heap_limit(context.get(), kHeapLimitKib);
  return context;
}

class Pcre2Pattern final : public Pattern {
 public:
  Pcre2Pattern(Code code, size_t step_cost) : code_(std::move(code)), step_cost_(step_cost) {}

  std::optional<Match> find(std::string_view text, size_t from,
                            SearchBudget& budget) const override {
    // The context holds a pointer to the meter of the current search, so each thread needs its own
    // context.
    thread_local const MatchContext context = make_match_context();
    const MatchData data(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    if (context == nullptr || data == nullptr) budget.spend_all();
    budget.spend(step_cost_);
    if (budget.is_spent()) return std::nullopt;
    Meter meter{budget, step_cost_, from};
    pcre2_set_callout(context.get(), count_steps, &meter);
    // PCRE2_NO_UTF_CHECK: Pattern requires valid text, so it does not have to be checked for each
    // match.
    const int count = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                  text.size(), from, PCRE2_NO_UTF_CHECK, data.get(), context.get());
    // Any error except "no match" means that a limit was reached.
    if (count < 0 && count != PCRE2_ERROR_NOMATCH) budget.spend_all();
    if (count < 0) return std::nullopt;
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
    if (ends[0] > ends[1] || ends[0] < from) return std::nullopt;
    return Match{ends[0], ends[1]};
  }

 private:
  Code code_;
  size_t step_cost_;
};

// Returns the number of budget steps per PCRE2 callout. With it, the time per step is about the
// same for all patterns. It is 1 for the patterns of known models.
size_t step_cost(const Translated& translated, const pcre2_code* code) {
  size_t frame_bytes = 0;  // bytes copied at each choice; grows with the number of groups
  pcre2_pattern_info(code, PCRE2_INFO_FRAMESIZE, &frame_bytes);
  return (1 + translated.longest_class / 64) * (1 + translated.largest_repeat / 4) *
         (1 + frame_bytes / 1024);
}

}  // namespace

Result<std::unique_ptr<Pattern>> compile_regex(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return invalid_argument(fmt::format("regex is too long; got {} bytes, expected at most {}",
                                        pattern.size(), kMaxPatternBytes));
  }
  QUIRE_ASSIGN_OR_RETURN(const Translated translated, to_pcre2(pattern));
  const CompileContext compile_context(pcre2_compile_context_create(nullptr));
  if (compile_context == nullptr) return internal_error("out of memory while compiling a regex");
  pcre2_set_newline(compile_context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(compile_context.get(), kNestLimit);
  int error = 0;
  PCRE2_SIZE where = 0;
  // MULTILINE, because in Oniguruma ^ and $ always match at line ends. AUTO_CALLOUT, to count
  // steps.
  Code code(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated.pattern.data()), translated.pattern.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT,
      &error, &where, compile_context.get()));
  if (code == nullptr) {
    PCRE2_UCHAR reason[256] = {};
    pcre2_get_error_message(error, reason, sizeof(reason));
    return invalid_argument(fmt::format("regex \"{}\" is not valid at byte {}; {}",
                                        clipped(pattern), where,
                                        reinterpret_cast<const char*>(reason)));
  }
  uint32_t num_references = 0;
  pcre2_pattern_info(code.get(), PCRE2_INFO_BACKREFMAX, &num_references);
  // PCRE2 does not call the callout while it compares with an earlier group, so that time would not
  // be counted.
  if (num_references > 0) return unsupported(pattern, "a back reference");
  const size_t cost = step_cost(translated, code.get());
  return std::unique_ptr<Pattern>(std::make_unique<Pcre2Pattern>(std::move(code), cost));
}

}  // namespace quire
