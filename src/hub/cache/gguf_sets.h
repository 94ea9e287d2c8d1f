// The GGUF models of a repository: which files are one model, and which model a tag names. Works on
// names alone, so that the hub's list and the cache give the same answer. The names are untrusted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace quire::hub {

// One model: its file, or the shards into which it is split (NAME-00001-of-00003.gguf).
struct GgufSet {
  // The type that the name ends with, such as "Q4_K_M" or "UD-Q4_K_XL". A name without a type, or
  // with the type of an earlier set, stands for itself: it is the path without shard and ".gguf".
  std::string tag;
  std::vector<std::string> files;  // paths in the repository, in the order of the shards
  size_t num_files = 1;            // that the names state

  bool is_complete() const { return files.size() == num_files; }
  // Whether the text is the tag, or the name or path of a file, in any case.
  bool has_name(std::string_view text) const;
};

// Whether the file belongs to another model and is none itself: a projector of images (mmproj), an
// importance matrix, or a drafter.
bool is_gguf_companion(std::string_view path);

// The models among these paths, sorted by path. Other files and companions are left out.
std::vector<GgufSet> group_gguf_files(std::vector<std::string> paths);

// Returns the set that a tag names: the set that has_name(tag), otherwise the first one whose path
// holds the tag as a whole word. Without a tag, llama.cpp's order: Q4_K_M, Q8_0, the first. Null:
// no set matches.
const GgufSet* choose_gguf(const std::vector<GgufSet>& sets, std::string_view tag);

// "Q4_K_M, Q8_0 and 20 more", for errors.
std::string list_of_tags(const std::vector<GgufSet>& sets);

}  // namespace quire::hub
