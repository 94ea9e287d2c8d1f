#include "cuda/profile/step_profile.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>

namespace quire::cuda {
namespace {

constexpr double kNanosecond = 1e-9;

struct NamePart {
  const char* part;
  WorkKind kind;
};

// The first entry whose text a kernel's name contains decides its kind. Attention is before the
// matrix products, because attention libraries also have "gemm" in their kernel names.
constexpr NamePart kNameParts[] = {
    {"kernel_mha", WorkKind::kAttention},
    {"sdpa", WorkKind::kAttention},
    {"flashinfer", WorkKind::kAttention},
    {"cudnn", WorkKind::kAttention},
    {"cuda3xqa", WorkKind::kAttention},
    {"cuda::xqa", WorkKind::kAttention},
    {"cuda6native", WorkKind::kAttention},
    {"cuda::native", WorkKind::kAttention},
    {"nvjet", WorkKind::kGemm},
    {"gemm", WorkKind::kGemm},
    {"gemv", WorkKind::kGemm},
    {"cublas", WorkKind::kGemm},
    {"splitK", WorkKind::kGemm},
    {"cutlass", WorkKind::kGemm},
    {"one_pass_kernel", WorkKind::kSampling},
    {"choose_best_kernel", WorkKind::kSampling},
    {"filter_kernel", WorkKind::kSampling},
    {"forbid_kernel", WorkKind::kSampling},
    {"add_slots_kernel", WorkKind::kSampling},
    {"commit_kernel", WorkKind::kSampling},
    {"drafts_kernel", WorkKind::kSampling},
    {"accept_synthetic_kernel", WorkKind::kSampling},
    {"compare_kernel", WorkKind::kSampling},
    {"residual_kernel", WorkKind::kSampling},
    {"settle_kernel", WorkKind::kSampling},
    {"logprobs_kernel", WorkKind::kSampling},
};

constexpr const char* kKindNames[kNumWorkKinds] = {"matrix products", "attention", "sampling",
                                                   "copies", "rest"};

double seconds(uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * kNanosecond;
}

// Sweeps over records in order of their start. For each record it computes the busy time that the
// record adds to the union of its predecessors, and the idle time before it.
struct Sweep {
  uint64_t covered_to = 0;

  struct Step {
    uint64_t idle = 0;
    uint64_t busy = 0;
  };
  Step take(const DeviceRecord& record) {
    const uint64_t idle = record.start > covered_to ? record.start - covered_to : 0;
    const uint64_t from = std::max(record.start, covered_to);
    const uint64_t busy = record.end > from ? record.end - from : 0;
    covered_to = std::max(covered_to, record.end);
    return {idle, busy};
  }
};

std::vector<ProfileShare> shares_of(const DeviceRecords& all) {
  std::vector<ProfileShare> shares(kNumWorkKinds);
  for (size_t i = 0; i < shares.size(); ++i) shares[i].name = kKindNames[i];
  Sweep sweep{all.start};
  uint64_t busy = 0;
  for (const DeviceRecord& record : all.records) {
    const Sweep::Step step = sweep.take(record);
    ProfileShare& share = shares[static_cast<size_t>(record.kind)];
    ++share.count;
    share.seconds += seconds(step.busy);
    busy += step.busy;
  }
  shares.push_back({"idle", 0, seconds(all.end - all.start) - seconds(busy)});
  return shares;
}

std::vector<ProfileShare> kernels_of(const DeviceRecords& all) {
  std::vector<ProfileShare> kernels(all.names.size());
  for (size_t i = 0; i < kernels.size(); ++i) kernels[i].name = all.names[i];
  Sweep sweep{all.start};
  for (const DeviceRecord& record : all.records) {
    const Sweep::Step step = sweep.take(record);
    if (record.name < 0) continue;
    ProfileShare& kernel = kernels[static_cast<size_t>(record.name)];
    ++kernel.count;
    kernel.seconds += seconds(step.busy);
  }
  std::erase_if(kernels, [](const ProfileShare& kernel) { return kernel.count == 0; });
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return kernels;
}

DecodeProfile decode_of(const DeviceRecords& all) {
  DecodeProfile decode;
  Sweep sweep{all.start};
  DecodeProfile step;  // since the last copy to the host
  bool in_graph = false;
  bool is_first = true;  // the first step began before the measurement
  bool after_copy = true;
  uint64_t step_start = all.start;
  for (const DeviceRecord& record : all.records) {
    const bool is_copy = record.kind == WorkKind::kCopy;
    const double idle = seconds(sweep.take(record).idle);
    (is_copy || after_copy ? step.idle_between_seconds : step.idle_within_seconds) += idle;
    in_graph |= record.in_graph;
    after_copy = is_copy;
    if (!record.to_host) continue;
    if (in_graph && !is_first) {
      ++decode.num_steps;
      decode.seconds += seconds(record.end - step_start);
      decode.idle_between_seconds += step.idle_between_seconds;
      decode.idle_within_seconds += step.idle_within_seconds;
    }
    step = {};
    in_graph = is_first = false;
    step_start = record.end;
  }
  return decode;
}

}  // namespace

WorkKind kind_of_kernel(std::string_view name) {
  for (const NamePart& entry : kNameParts) {
    if (name.find(entry.part) != std::string_view::npos) return entry.kind;
  }
  return WorkKind::kRest;
}

std::string short_kernel_name(std::string_view mangled) {
  const std::string text(mangled);
  int status = 0;
  char* demangled = abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 && demangled != nullptr ? demangled : text;
  std::free(demangled);
  // For "void a::(anonymous namespace)::f<int, 8>(int*)": keep the text before the first bracket
  // that does not open an anonymous namespace.
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (size_t at = name.find(kAnonymous); at != std::string::npos; at = name.find(kAnonymous)) {
    name.erase(at, kAnonymous.size());
  }
  name.erase(std::min(name.find_first_of("<("), name.size()));
  const size_t space = name.rfind(' ');
  if (space != std::string::npos) name.erase(0, space + 1);
  const size_t scope = name.rfind("::");
  if (scope != std::string::npos) name.erase(0, scope + 2);
  return name;
}

DeviceProfile summarize_records(DeviceRecords all) {
  std::erase_if(all.records, [&](const DeviceRecord& record) {
    return record.end <= all.start || record.start >= all.end;
  });
  for (DeviceRecord& record : all.records) {
    record.start = std::clamp(record.start, all.start, all.end);
    record.end = std::clamp(record.end, all.start, all.end);
  }
  std::stable_sort(all.records.begin(), all.records.end(),
                   [](const auto& a, const auto& b) { return a.start < b.start; });
  return {.elapsed_s = seconds(all.end - all.start),
          .shares = shares_of(all),
          .kernels = kernels_of(all),
          .decode = decode_of(all)};
}

}  // namespace quire::cuda
