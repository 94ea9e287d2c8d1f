#include "cli/machine.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>

namespace quire::cli {
namespace {

// Reads to the end, because files in /proc and /sys report no size.
std::string read_system_file(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\n')) {
    text.remove_suffix(1);
  }
  return text;
}

std::vector<std::string> interesting(const std::string& flags) {
  constexpr std::string_view kNames[] = {
      "sse4_2",      "avx",         "avx2",     "fma",         "f16c",     "avx512f",  "avx512bw",
      "avx512_bf16", "avx512_fp16", "avx_vnni", "avx512_vnni", "amx_tile", "amx_bf16", "amx_int8",
      "asimd",       "asimdhp",     "sve",      "sve2",        "bf16",     "i8mm"};
  std::istringstream words(flags);
  const std::vector<std::string> all{std::istream_iterator<std::string>(words), {}};
  std::vector<std::string> found;
  for (const std::string_view name : kNames) {
    if (std::find(all.begin(), all.end(), name) != all.end()) found.emplace_back(name);
  }
  return found;
}

std::string or_unknown(std::string text) {
  return text.empty() ? "unknown" : text;
}

}  // namespace

std::string proc_field(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || trimmed(line.substr(0, colon)) != key) continue;
    return std::string(trimmed(line.substr(colon + 1)));
  }
  return "";
}

int64_t kib_field_bytes(std::string_view value) {
  int64_t kib = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), kib);
  const std::string_view unit(end, static_cast<size_t>(value.data() + value.size() - end));
  if (error != std::errc() || unit != " kB" || kib < 0 || kib > (INT64_MAX >> 10)) return 0;
  return kib << 10;
}

std::string bracketed(std::string_view text) {
  const size_t open = text.find('[');
  const size_t close = text.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return "";
  return std::string(text.substr(open + 1, close - open - 1));
}

Machine inspect_machine() {
  const std::string cpuinfo = read_system_file("/proc/cpuinfo");
  const std::string meminfo = read_system_file("/proc/meminfo");
  const std::string x86_flags = proc_field(cpuinfo, "flags");
  Machine machine;
  machine.cpu = or_unknown(proc_field(cpuinfo, "model name"));
  machine.features = interesting(x86_flags.empty() ? proc_field(cpuinfo, "Features") : x86_flags);
  machine.total_bytes = kib_field_bytes(proc_field(meminfo, "MemTotal"));
  machine.transparent_huge_pages =
      or_unknown(bracketed(read_system_file("/sys/kernel/mm/transparent_hugepage/enabled")));
  const std::string huge_pages = proc_field(meminfo, "HugePages_Total");
  std::from_chars(huge_pages.data(), huge_pages.data() + huge_pages.size(), machine.num_huge_pages);
  return machine;
}

}  // namespace quire::cli
