// The name of a setting in a log line, in the spelling of the program: `max_num_seqs` in backquotes
// for a program that embeds the library, --max-num-seqs for the command line.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <string_view>

namespace quire {

struct SettingName {
  std::string_view field;  // of EngineConfig or of a server's configuration
};

// Set once, before the first line is logged.
inline std::atomic<bool> spells_settings_as_flags = false;

}  // namespace quire

template <>
struct fmt::formatter<quire::SettingName> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }

  template <typename Context>
  auto format(const quire::SettingName& name, Context& context) const {
    auto out = context.out();
    if (!quire::spells_settings_as_flags) return fmt::format_to(out, "`{}`", name.field);
    out = fmt::format_to(out, "--");
    for (const char c : name.field) *out++ = c == '_' ? '-' : c;
    return out;
  }
};
