// A directory for the files of a test.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "base/check.h"

namespace quire::testing {

// An empty directory of its own, removed with this object.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "quire_test_XXXXXX").string();
    QUIRE_CHECK(::mkdtemp(name.data()) != nullptr, "[test] cannot make a temporary directory");
    path_ = name;
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Returns the file's path.
  std::string write(const std::string& name, std::string_view text) const {
    return write(name, std::as_bytes(std::span(text)));
  }
  std::string write(const std::string& name, std::span<const std::byte> bytes) const {
    const std::filesystem::path path = path_ / name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    return path.string();
  }
  void copy(const std::filesystem::path& from, const std::string& name) const {
    std::filesystem::copy_file(from, path_ / name);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace quire::testing
