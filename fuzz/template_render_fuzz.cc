// Renders a template. The input is the template, a NUL byte, and its variables as JSON. The result
// is a text within the bounds or a one-line error, in time and memory that the budget bounds. All
// text of the variables in the result is marked.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/text.h"
#include "heap_peak.h"
#include "jinja/chat_template.h"

namespace {

// The bounds are far above the time of a step under AddressSanitizer (up to 20 µs on a busy
// machine), and far below the time of work that is not charged.
constexpr int64_t kFreeNs = 100'000'000;
constexpr int64_t kMaxStepNs = 60'000;
// A builtin may hold a few copies of its values while it makes another one.
constexpr size_t kMaxLiveCopies = 10;

struct Render {
  quire::Result<quire::MarkedText> text;
  int64_t num_steps = 0;
  int64_t cpu_ns = 0;
  size_t peak_bytes = 0;

  bool is_slow() const { return cpu_ns > kFreeNs + kMaxStepNs * num_steps; }
};

Render render(const quire::ChatTemplate& parsed, const quire::jinja::Value& variables,
              const quire::TemplateLimits& limits) {
  const quire::fuzz::HeapPeak peak;
  const int64_t start = quire::thread_cpu_ns();
  int64_t num_steps = 0;
  auto text = parsed.render(variables, limits, &num_steps);
  return {std::move(text), num_steps, quire::thread_cpu_ns() - start, peak.num_bytes()};
}

// A private-use character, which stands for the text of variables.
constexpr std::string_view kTracer = "\uE123";

// Returns the value with kTracer after each of its texts.
quire::jinja::Value traced(const quire::jinja::Value& value) {
  using quire::jinja::Value;
  if (value.is_string()) return Value::string(value.as_string() + std::string(kTracer));
  if (value.is_sequence()) {
    std::vector<Value> items;
    for (const Value& item : value.items()) items.push_back(traced(item));
    return Value::list(std::move(items));
  }
  if (!value.is_dict()) return value;
  std::vector<quire::jinja::Dict::Entry> entries;
  for (const auto& [key, item] : value.dict()->entries()) entries.emplace_back(key, traced(item));
  return Value::of(Value::DictPtr(quire::jinja::Dict::build(std::move(entries))));
}

bool starts_char(const std::string& text, size_t at) {
  return at == text.size() || (text[at] & 0xc0) != 0x80;
}

void check_marks(const quire::MarkedText& prompt) {
  size_t end = 0;
  for (size_t i = 0; i < prompt.untrusted.count(); ++i) {
    const auto& span = prompt.untrusted[i];
    QUIRE_CHECK(i == 0 || span.begin > end, "marks are in order and apart");
    QUIRE_CHECK(span.begin < span.end && span.end <= prompt.text.size(), "a mark is in the text");
    QUIRE_CHECK(starts_char(prompt.text, span.begin) && starts_char(prompt.text, span.end),
                "a mark covers whole characters");
    end = span.end;
  }
}

// The source of the template must not write kTracer, not even by an escape.
void check_tracers(const quire::ChatTemplate& parsed, const quire::jinja::Value& variables,
                   const quire::TemplateLimits& limits) {
  const auto prompt = parsed.render(traced(variables), limits);
  if (!prompt.ok()) return;
  check_marks(*prompt);
  for (size_t at = prompt->text.find(kTracer); at != std::string::npos;
       at = prompt->text.find(kTracer, at + 1)) {
    const std::string_view tracer = std::string_view(prompt->text).substr(at, kTracer.size());
    QUIRE_CHECK(prompt->is_untrusted(tracer), "text of the variables is marked");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t nul = input.find('\0');
  const std::string_view source = input.substr(0, nul);
  const std::string_view json = nul == std::string_view::npos ? "{}" : input.substr(nul + 1);

  const auto parsed = quire::ChatTemplate::parse(source);
  if (!parsed.ok()) return 0;
  const auto document = quire::JsonDocument::parse(json, "variables");
  const quire::jinja::Value variables = document.ok() && document->root().is_object()
                                            ? quire::value_from_json(document->root())
                                            : quire::jinja::Value::dict({});
  // The bounds are small, so that a template that loops ends soon.
  quire::TemplateLimits limits;
  limits.max_steps = 20'000;
  limits.max_output_bytes = size_t{1} << 20;
  limits.max_live_bytes = size_t{4} << 20;
  limits.now_unix_s = 0;
  Render run = render(*parsed, variables, limits);
  if (run.is_slow()) run = render(*parsed, variables, limits);  // other load may delay one run
  QUIRE_CHECK(!run.is_slow(), "the CPU time is bounded by the steps charged");
  QUIRE_CHECK(run.peak_bytes <= kMaxLiveCopies * limits.max_live_bytes,
              "the memory is bounded by the budget");
  const auto& text = run.text;
  if (text.ok()) {
    QUIRE_CHECK(text->text.size() <= limits.max_output_bytes, "the output is within its bound");
    QUIRE_CHECK(quire::is_valid_utf8(text->text), "the output is UTF-8");
    check_marks(*text);
    const bool can_write_tracer = source.find(kTracer) != std::string_view::npos ||
                                  source.find('\\') != std::string_view::npos;
    if (!can_write_tracer) check_tracers(*parsed, variables, limits);
  } else {
    QUIRE_CHECK(text.status().message().starts_with("[template] "), text.status().message());
  }
  return 0;
}
