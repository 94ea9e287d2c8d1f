// Reads arbitrary bytes as a hub's list of files, and as a model's name. Names and hashes that are
// accepted become paths, so they must stay inside the model's folder.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/check.h"
#include "hub/cache/model_cache.h"
#include "hub/pull/repository_list.h"

namespace {

using namespace quire::hub;
namespace fs = std::filesystem;

// Whether the path leads to the folder itself or out of it.
bool leaves(const fs::path& folder, const fs::path& path) {
  const fs::path relative = path.lexically_normal().lexically_relative(folder);
  return relative.empty() || *relative.begin() == ".." || *relative.begin() == ".";
}

void check_name(std::string_view text) {
  const auto name = parse_model_name(text);
  if (!name) return;
  const fs::path folder = model_folder("/cache", *name);
  QUIRE_CHECK(folder.parent_path() == "/cache" && !leaves("/cache", folder), "a name is a path");
  QUIRE_CHECK(!leaves(folder / "refs", folder / "refs" / name->revision), "a revision leaves refs");
  QUIRE_CHECK(parse_model_name(name->text()).has_value(), "a name does not parse again");
}

void check_choice(quire::Result<FileChoice> choice) {
  if (!choice.ok()) return;
  (void)choose_shards({"a.safetensors"}, *choice);
  (void)describe_skipped(choice->others);
  for (const auto& files : {choice->small, choice->weights}) {
    for (const RepositoryFile& file : files) {
      QUIRE_CHECK(choice->is_gguf || file.name.find('/') == std::string::npos ||
                      file.name == "1_Pooling/config.json",
                  "a chosen file lies in a folder");
      QUIRE_CHECK(!leaves("/blobs", fs::path("/blobs") / file.hash), "a hash is a path");
      QUIRE_CHECK(file.size >= 0, "a size is negative");
    }
  }
}

void check_list(std::string_view json) {
  const auto list = parse_repository_list(json);
  if (!list.ok()) return;
  QUIRE_CHECK(is_commit(list->commit), "the commit is no commit");
  for (const RepositoryFile& file : list->files) {
    QUIRE_CHECK(!leaves("/snapshot", fs::path("/snapshot") / file.name),
                "a name leaves the folder");
  }
  check_choice(choose_files(*list, ""));
  check_choice(choose_files(*list, "Q8_0"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_name(text);
  check_list(text);
  return 0;
}
