#include "attn/builtin_tables.h"

#include "base/check.h"

namespace quire {
namespace {

// An array, because a string_view would count the characters at compile time and exceed the
// compiler's limit.
constexpr char kH200[] =
#include "attn/tables/h200.inc"
    ;

struct BuiltinTable {
  std::string_view device;  // part of the driver's device name
  std::string_view csv;
};
constexpr BuiltinTable kTables[] = {{"H200", {kH200, sizeof kH200 - 1}}};

}  // namespace

TuningTable builtin_table(const Device& device) {
  for (const BuiltinTable& table : kTables) {
    if (device.name.find(table.device) == std::string::npos) continue;
    Result<TuningTable> parsed = TuningTable::parse(table.csv, table.device);
    QUIRE_CHECK(parsed.ok(), "[tuning] a table of this build cannot be read");
    return std::move(*parsed);
  }
  return {};
}

}  // namespace quire
