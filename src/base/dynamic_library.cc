#include "base/dynamic_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace quire {

Result<DynamicLibrary> DynamicLibrary::open(std::initializer_list<const char*> names) {
  std::string tried;
  for (const char* name : names) {
    void* handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* reason = ::dlerror();
      tried += fmt::format("{}{}", tried.empty() ? "" : "; ", reason != nullptr ? reason : name);
      continue;
    }
    DynamicLibrary library;
    library.handle_ = std::shared_ptr<void>(handle, [](void* open) { ::dlclose(open); });
    library.name_ = name;
    return library;
  }
  return unavailable(
      fmt::format("[library] a library is missing: {}; install it, or name its folder in "
                  "LD_LIBRARY_PATH",
                  tried));
}

Status DynamicLibrary::find_address(const char* name, void** address) const {
  *address = ::dlsym(handle_.get(), name);
  if (*address != nullptr) return {};
  return unavailable(
      fmt::format("[library] {} has no function {}; expected a newer version", name_, name));
}

}  // namespace quire
