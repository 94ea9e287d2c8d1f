// Groups the GGUF files of a repository into models, and finds the model that a tag names. Uses
// only the names, so that the hub's list and the cache give the same result. The names are
// untrusted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace quire::hub {

// One model: its file, or the shards into which it is split (NAME-00001-of-00003.gguf).
struct GgufSet {
  // The type that the name ends with, such as "Q4_K_M" or "UD-Q4_K_XL". If the name has no type, or
  // the type of an earlier set, the tag is the path without its shard number and ".gguf".
  std::string tag;
  std::vector<std::string> files;  // paths in the repository, in the order of the shards
  size_t num_files = 1;            // the number of files that the names state

  bool is_complete() const { return files.size() == num_files; }
  // Whether the text is the tag, or the name or path of a file, in any case.
  bool has_name(std::string_view text) const;
};

// Whether the file belongs to another model and is not a model itself: an image projector (mmproj),
// an importance matrix, or a drafter.
bool is_gguf_companion(std::string_view path);

// Returns the models among these paths, sorted by path, without other files and companions.
std::vector<GgufSet> group_gguf_files(std::vector<std::string> paths);

// Returns the set that a tag names: the set that has_name(tag), otherwise the first one whose path
// contains the tag as a whole word. Without a tag, returns Q4_K_M if it exists, otherwise Q8_0,
// otherwise the first set, as llama.cpp does. Null: no set matches.
const GgufSet* choose_gguf(const std::vector<GgufSet>& sets, std::string_view tag);

// "Q4_K_M, Q8_0 and 20 more", for errors.
std::string list_of_tags(const std::vector<GgufSet>& sets);

}  // namespace quire::hub
