// Records the device's activity with CUPTI. The library is loaded only when a profile is requested,
// so it costs nothing otherwise.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "base/dynamic_library.h"
#include "cuda/base/device_info.h"
#include "cuda/base/stream.h"
#include "cuda/profile/step_profile.h"
#include "platform/platform.h"

namespace quire::cuda {
namespace {

constexpr size_t kBufferBytes = size_t{8} << 20;
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

Status check(CUptiResult result, const char* function) {
  if (result == CUPTI_SUCCESS) return {};
  return unavailable(fmt::format("[profile] {} failed; got CUPTI result {}, expected 0", function,
                                 static_cast<int>(result)));
}

struct CuptiApi {
  DynamicLibrary library;
  decltype(::cuptiGetVersion)* get_version = nullptr;
  decltype(::cuptiGetTimestamp)* get_timestamp = nullptr;
  decltype(::cuptiActivityRegisterCallbacks)* register_callbacks = nullptr;
  decltype(::cuptiActivityEnable)* enable = nullptr;
  decltype(::cuptiActivityDisable)* disable = nullptr;
  decltype(::cuptiActivityFlushAll)* flush = nullptr;
  decltype(::cuptiActivityGetNextRecord)* next_record = nullptr;
};

// Fails unless the library's version matches the headers of this build, which define the layout of
// the records.
Status check_version(const CuptiApi& api) {
  constexpr uint32_t kMajor = 10000;
  uint32_t version = 0;
  QUIRE_RETURN_IF_ERROR(check(api.get_version(&version), "cuptiGetVersion"));
  if (version / kMajor == CUPTI_API_VERSION / kMajor) return {};
  return unavailable(
      fmt::format("[profile] libcupti does not match this build; got version {}, expected {}; "
                  "install the CUPTI "
                  "of the CUDA toolkit that this build was made with",
                  version / kMajor, CUPTI_API_VERSION / kMajor));
}

Result<CuptiApi> load_api() {
  CuptiApi api;
  QUIRE_ASSIGN_OR_RETURN(api.library,
                         DynamicLibrary::open({"libcupti.so.13", "libcupti.so.12", "libcupti.so"}));
  const DynamicLibrary& library = api.library;
  QUIRE_RETURN_IF_ERROR(library.find("cuptiGetVersion", api.get_version));
  QUIRE_RETURN_IF_ERROR(library.find("cuptiGetTimestamp", api.get_timestamp));
  QUIRE_RETURN_IF_ERROR(library.find("cuptiActivityRegisterCallbacks", api.register_callbacks));
  QUIRE_RETURN_IF_ERROR(library.find("cuptiActivityEnable", api.enable));
  QUIRE_RETURN_IF_ERROR(library.find("cuptiActivityDisable", api.disable));
  QUIRE_RETURN_IF_ERROR(library.find("cuptiActivityFlushAll", api.flush));
  QUIRE_RETURN_IF_ERROR(library.find("cuptiActivityGetNextRecord", api.next_record));
  QUIRE_RETURN_IF_ERROR(check_version(api));
  return api;
}

// Loads the library once per process and never unloads it: CUPTI has threads, and calls registered
// callbacks until the process ends.
Result<const CuptiApi*> find_api() {
  static const Result<CuptiApi>& api = *new Result<CuptiApi>(load_api());
  if (!api.ok()) return api.status();
  return &*api;
}

// CUPTI's callbacks have no user pointer, so one object per process collects the records.
class Records {
 public:
  // The object is never destroyed, because CUPTI may complete a buffer while the process exits.
  static Records& instance() {
    static Records& records = *new Records();
    return records;
  }

  void start(const CuptiApi& api, int device, uint64_t now) {
    const std::lock_guard lock(mutex_);
    api_ = &api;
    device_ = static_cast<uint32_t>(device);
    all_ = {};
    ids_.clear();
    all_.start = now;
  }
  DeviceRecords stop(uint64_t now) {
    const std::lock_guard lock(mutex_);
    api_ = nullptr;
    all_.end = now;
    return std::move(all_);
  }

  static void CUPTIAPI request(uint8_t** buffer, size_t* size, size_t* max_records) {
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(64, kBufferBytes));
    *size = *buffer == nullptr ? 0 : kBufferBytes;
    *max_records = 0;  // 0: as many as fit
  }
  static void CUPTIAPI complete(CUcontext /*context*/, uint32_t /*stream*/, uint8_t* buffer,
                                size_t /*size*/, size_t valid_bytes) {
    instance().read(buffer, valid_bytes);
    std::free(buffer);
  }

 private:
  void read(uint8_t* buffer, size_t valid_bytes) {
    const std::lock_guard lock(mutex_);
    if (api_ == nullptr) return;
    CUpti_Activity* record = nullptr;
    while (api_->next_record(buffer, valid_bytes, &record) == CUPTI_SUCCESS) add(record);
  }

  void add(const CUpti_Activity* record) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
        if (kernel->deviceId != device_) return;
        const auto [name, kind] = name_of(kernel->name);
        return all_.records.push_back({.start = kernel->start,
                                       .end = kernel->end,
                                       .kind = kind,
                                       .name = name,
                                       .in_graph = kernel->graphId != 0});
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
        if (copy->deviceId != device_) return;
        return all_.records.push_back(
            {.start = copy->start,
             .end = copy->end,
             .kind = WorkKind::kCopy,
             .in_graph = copy->graphId != 0,
             .to_host = copy->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH});
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto* set = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
        if (set->deviceId != device_) return;
        return all_.records.push_back({.start = set->start, .end = set->end});
      }
      default:
        return;
    }
  }

  struct Name {
    int32_t id;
    WorkKind kind;
  };
  // All records of a kernel share one name string. Instances of a template have the same short
  // name.
  Name name_of(const char* mangled) {
    const auto found = ids_.find(mangled);
    if (found != ids_.end()) return found->second;
    const std::string name = short_kernel_name(mangled);
    size_t id = 0;
    while (id < all_.names.size() && all_.names[id] != name) ++id;
    if (id == all_.names.size()) all_.names.push_back(name);
    return ids_.emplace(mangled, Name{static_cast<int32_t>(id), kind_of_kernel(mangled)})
        .first->second;
  }

  std::mutex mutex_;
  const CuptiApi* api_ = nullptr;  // null: records are ignored
  uint32_t device_ = 0;            // records of other devices are ignored
  DeviceRecords all_;
  std::map<const char*, Name> ids_;
};

class CuptiProfiler final : public DeviceProfiler {
 public:
  static Result<std::unique_ptr<DeviceProfiler>> create(int device) {
    QUIRE_RETURN_IF_ERROR(open_device(device).status());
    QUIRE_ASSIGN_OR_RETURN(const CuptiApi* const api, find_api());
    QUIRE_RETURN_IF_ERROR(check(api->register_callbacks(Records::request, Records::complete),
                                "cuptiActivityRegisterCallbacks"));
    return std::unique_ptr<DeviceProfiler>(new CuptiProfiler(*api, device));
  }
  ~CuptiProfiler() override {
    if (running_) (void)stop();
  }

  Status start() override {
    QUIRE_RETURN_IF_ERROR(synchronize());
    const Result<uint64_t> now = enable();
    if (!now.ok()) {
      disable();
      return now.status();
    }
    Records::instance().start(api_, device_, *now);
    running_ = true;
    return {};
  }

  // Ends the recording even if a call fails, so that no recording continues after an error.
  Result<DeviceProfile> stop() override {
    running_ = false;
    const Result<uint64_t> now = finish();
    disable();
    const Status flushed =
        check(api_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
    DeviceRecords records = Records::instance().stop(now.ok() ? *now : 0);
    QUIRE_RETURN_IF_ERROR(now.status());
    QUIRE_RETURN_IF_ERROR(flushed);
    if (records.records.empty()) {
      return unavailable("[profile] no work ran on the GPU during the profile");
    }
    return summarize_records(std::move(records));
  }

 private:
  CuptiProfiler(const CuptiApi& api, int device) : api_(api), device_(device) {}

  // Returns the time from which all kinds of activity are recorded.
  Result<uint64_t> enable() const {
    for (const CUpti_ActivityKind kind : kKinds) {
      QUIRE_RETURN_IF_ERROR(check(api_.enable(kind), "cuptiActivityEnable"));
    }
    return timestamp();
  }
  void disable() const {
    for (const CUpti_ActivityKind kind : kKinds) (void)api_.disable(kind);
  }

  // Waits for the device, and returns the time after its last work.
  Result<uint64_t> finish() const {
    QUIRE_RETURN_IF_ERROR(synchronize());
    return timestamp();
  }

  Result<uint64_t> timestamp() const {
    uint64_t now = 0;
    QUIRE_RETURN_IF_ERROR(check(api_.get_timestamp(&now), "cuptiGetTimestamp"));
    return now;
  }

  Status synchronize() const {
    QUIRE_RETURN_IF_ERROR(use_device(device_));
    return to_status(cudaDeviceSynchronize(), "waiting for the device");
  }

  const CuptiApi& api_;
  int device_;
  bool running_ = false;
};

}  // namespace
}  // namespace quire::cuda

namespace quire {

Result<std::unique_ptr<DeviceProfiler>> make_device_profiler(int device) {
  return cuda::CuptiProfiler::create(device);
}

}  // namespace quire
