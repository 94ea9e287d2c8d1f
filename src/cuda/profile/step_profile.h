// Summarizes a device's records by kinds of work. Pure host functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "platform/platform.h"

namespace quire::cuda {

enum class WorkKind { kGemm, kAttention, kSampling, kCopy, kRest };
inline constexpr int kNumWorkKinds = 5;

// The kind of a kernel's work, derived from its mangled or unmangled name.
WorkKind kind_of_kernel(std::string_view name);
// The function's own name: without namespaces, template arguments and parameters.
std::string short_kernel_name(std::string_view mangled);

struct DeviceRecord {
  uint64_t start = 0;  // nanoseconds
  uint64_t end = 0;
  WorkKind kind = WorkKind::kRest;
  int32_t name = -1;      // index into DeviceRecords::names
  bool in_graph = false;  // part of a graph's replay
  bool to_host = false;   // a copy from the device
};

struct DeviceRecords {
  std::vector<std::string> names;
  std::vector<DeviceRecord> records;
  uint64_t start = 0;  // the measured interval, in the records' clock
  uint64_t end = 0;
};

// Kernels may overlap. Overlapping time counts for the kernel that began first, so that the shares
// add up. A step ends with its only copy to the host.
DeviceProfile summarize_records(DeviceRecords records);

}  // namespace quire::cuda
