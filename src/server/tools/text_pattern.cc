#include "server/tools/text_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <cstdint>

#include "base/text.h"

namespace quire::server {
namespace {

constexpr size_t kMaxPatternBytes = 4096;
constexpr size_t kMaxCodeBytes = size_t{256} << 10;
constexpr size_t kMaxWindowBytes = 4096;
constexpr uint32_t kMatchLimit = 10'000;
constexpr uint32_t kHeapLimitKib = 1024;
constexpr uint32_t kNestLimit = 64;

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct FreeCompileContext {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};

}  // namespace

struct TextPattern::Code {
  std::unique_ptr<pcre2_code, FreeCode> code;
  std::unique_ptr<pcre2_match_context, FreeMatchContext> context;

  // Returns PCRE2's result; negative: no match, a partial match, or a limit.
  int run(std::string_view text, size_t from, uint32_t options, pcre2_match_data* data) const {
    return pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                       options, data, context.get());
  }
};

TextPattern::TextPattern(std::unique_ptr<Code> code) : code_(std::move(code)) {
  const pcre2_code* const compiled = code_->code.get();
  uint32_t kind = 0;
  uint32_t unit = 0;
  pcre2_pattern_info(compiled, PCRE2_INFO_FIRSTCODETYPE, &kind);
  pcre2_pattern_info(compiled, PCRE2_INFO_FIRSTCODEUNIT, &unit);
  if (kind == 1) first_byte_ = static_cast<int>(unit);
  uint32_t count = 0;
  uint32_t entry_bytes = 0;
  PCRE2_SPTR table = nullptr;
  pcre2_pattern_info(compiled, PCRE2_INFO_NAMECOUNT, &count);
  pcre2_pattern_info(compiled, PCRE2_INFO_NAMEENTRYSIZE, &entry_bytes);
  pcre2_pattern_info(compiled, PCRE2_INFO_NAMETABLE, &table);
  for (uint32_t i = 0; i < count; ++i, table += entry_bytes) {
    const size_t number = (static_cast<size_t>(table[0]) << 8) | table[1];
    groups_.emplace_back(reinterpret_cast<const char*>(table + 2), number);
  }
}

TextPattern::~TextPattern() = default;

Result<std::shared_ptr<const TextPattern>> TextPattern::compile(std::string_view pattern) {
  const auto bad = [&](std::string_view why) {
    return invalid_argument(fmt::format("the pattern \"{}\" {}", clipped(pattern), why));
  };
  if (pattern.size() > kMaxPatternBytes) {
    return bad(fmt::format("has {} bytes, expected at most {}", pattern.size(), kMaxPatternBytes));
  }
  const std::unique_ptr<pcre2_compile_context, FreeCompileContext> compile_context(
      pcre2_compile_context_create(nullptr));
  auto code = std::make_unique<Code>();
  code->context.reset(pcre2_match_context_create(nullptr));
  if (compile_context == nullptr || code->context == nullptr) {
    return internal_error("out of memory while compiling a pattern");
  }
  pcre2_set_parens_nest_limit(compile_context.get(), kNestLimit);
  pcre2_set_match_limit(code->context.get(), kMatchLimit);
  pcre2_set_heap_limit(code->context.get(), kHeapLimitKib);
  int error = 0;
  PCRE2_SIZE where = 0;
  code->code.reset(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C | PCRE2_NEVER_UTF,
                    &error, &where, compile_context.get()));
  if (code->code == nullptr) {
    PCRE2_UCHAR reason[256] = {};
    pcre2_get_error_message(error, reason, sizeof(reason));
    return bad(
        fmt::format("is not valid at byte {}: {}", where, reinterpret_cast<const char*>(reason)));
  }
  size_t num_bytes = 0;
  pcre2_pattern_info(code->code.get(), PCRE2_INFO_SIZE, &num_bytes);
  if (num_bytes > kMaxCodeBytes) return bad("is too complex");
  return std::make_shared<const TextPattern>(std::move(code));
}

std::string_view TextPattern::Found::group(std::string_view name) const {
  const auto found = std::ranges::find(groups, name, &decltype(groups)::value_type::first);
  return found == groups.end() ? std::string_view() : found->second;
}

bool TextPattern::has_group(std::string_view name) const {
  return std::ranges::find(groups_, name, &decltype(groups_)::value_type::first) != groups_.end();
}

// Reads PCRE2's pairs of offsets. A pattern with \K can have a match whose start is after its end.
TextPattern::Found TextPattern::read_match(std::string_view text, const size_t* ends) const {
  if (ends[0] >= ends[1]) return {};
  Found found{.result = Result::kYes, .begin = ends[0], .end = ends[1]};
  for (const auto& [name, number] : groups_) {
    const size_t begin = ends[2 * number];
    const size_t end = ends[2 * number + 1];
    if (begin == PCRE2_UNSET || begin > end) continue;
    found.groups.emplace_back(name, text.substr(begin, end - begin));
  }
  return found;
}

TextPattern::Found TextPattern::match(std::string_view text, bool is_end) const {
  const bool is_whole = text.size() <= kMaxWindowBytes;
  text = text.substr(0, kMaxWindowBytes);
  const std::unique_ptr<pcre2_match_data, FreeData> data(
      pcre2_match_data_create_from_pattern(code_->code.get(), nullptr));
  if (data == nullptr) return {};
  uint32_t options = PCRE2_ANCHORED | PCRE2_NOTBOL | PCRE2_NOTEMPTY;
  if (!is_end || !is_whole) options |= PCRE2_PARTIAL_HARD;
  const int count = code_->run(text, 0, options, data.get());
  // A match that needs more text than the window does not count.
  if (count == PCRE2_ERROR_PARTIAL) {
    return {.result = is_whole ? Result::kMore : Result::kNo};
  }
  if (count < 0) return {};
  return read_match(text, pcre2_get_ovector_pointer(data.get()));
}

TextPattern::Found TextPattern::find(std::string_view text, size_t from) const {
  const std::unique_ptr<pcre2_match_data, FreeData> data(
      pcre2_match_data_create_from_pattern(code_->code.get(), nullptr));
  // Each place has its own limit, so a text that reaches it ends the search there.
  if (data == nullptr || code_->run(text, from, PCRE2_NOTEMPTY, data.get()) < 0) return {};
  return read_match(text, pcre2_get_ovector_pointer(data.get()));
}

}  // namespace quire::server
