#include "model/model.h"

#include <algorithm>

namespace quire {

void assign_tables(std::span<KvGroup> groups) {
  std::vector<int> windows;
  for (KvGroup& group : groups) {
    const auto found = std::ranges::find(windows, group.decode.window);
    group.table = std::min(static_cast<int>(found - windows.begin()), kMaxKvTables - 1);
    if (found == windows.end()) windows.push_back(group.decode.window);
  }
}

std::vector<int> table_windows(std::span<const KvGroup> groups) {
  std::vector<int> windows;
  for (const KvGroup& group : groups) {
    const auto table = static_cast<size_t>(group.table);
    const int window = group.decode.window;
    if (table == windows.size()) {
      windows.push_back(window);
    } else {
      windows[table] = window == 0 || windows[table] == 0 ? 0 : std::max(windows[table], window);
    }
  }
  return windows;
}

}  // namespace quire
