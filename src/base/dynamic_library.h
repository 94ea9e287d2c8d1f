// A shared library that is loaded when it is needed, so that the program starts without it.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>

#include "quire/status.h"

namespace quire {

class DynamicLibrary {
 public:
  // Opens the first of these names that the loader finds. Fails with kUnavailable and the loader's
  // error for each name.
  static Result<DynamicLibrary> open(std::initializer_list<const char*> names);

  // Finds a function, valid while a copy of this lives. kUnavailable: the library does not have it.
  template <typename Function>
  Status find(const char* name, Function*& function) const {
    void* address = nullptr;
    QUIRE_RETURN_IF_ERROR(find_address(name, &address));
    function = reinterpret_cast<Function*>(address);
    return {};
  }

 private:
  Status find_address(const char* name, void** address) const;

  std::shared_ptr<void> handle_;
  std::string name_;
};

}  // namespace quire
