// The files of a repository on the hub, and which of them Quire reads. The list is untrusted: its
// names and hashes become paths on this machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire::hub {

inline constexpr size_t kMaxListBytes = size_t{32} << 20;

struct RepositoryFile {
  std::string name;       // relative to the repository, with '/'
  std::string hash;       // hexadecimal: SHA-256 of a large file, git's SHA-1 of a small one
  bool is_large = false;  // stored as LFS
  int64_t size = 0;       // bytes
};

struct RepositoryList {
  std::string commit;
  std::string gguf_architecture = {};  // of llama.cpp, such as "llama"; empty: not stated
  std::vector<RepositoryFile> files;

  const RepositoryFile* find(std::string_view name) const;
};

// Parses the response of GET /api/models/NAME/revision/REVISION?blobs=true. Fails if the commit is
// not valid, if a name is absolute, has ".." or is repeated, or if there are more than 100,000
// files. Hashes and sizes are checked by check_file().
Result<RepositoryList> parse_repository_list(std::string_view json);

// Fails if the file cannot be downloaded safely, for example without a hash to check it.
Status check_file(const RepositoryFile& file);

// The files that Quire reads.
struct FileChoice {
  std::vector<RepositoryFile> small;  // configuration, tokenizer, template, the index of the shards
  bool has_index = false;             // the index names the needed weights
  bool is_gguf = false;               // the weights are one GGUF model, and nothing else is needed
  std::vector<RepositoryFile> weights;  // without an index, model.safetensors or the GGUF shards
  // Files that are not downloaded; with an index, also the shards until choose_shards().
  std::vector<RepositoryFile> others;
};

// Chooses the GGUF model of the tag (see choose_gguf()). Without a tag, chooses safetensors, and a
// GGUF model if the repository has no safetensors. Fails if there is no such model, if shards are
// missing, if safetensors have no config.json, or if all weights are in other formats.
Result<FileChoice> choose_files(const RepositoryList& list, std::string_view gguf_tag);

// Moves the shards from `others` to `weights`. Fails if the repository lacks one.
Status choose_shards(const std::vector<std::string>& names, FileChoice& choice);

// "3 files that Quire does not read (1.2 GB): a, b, c"; empty without such files. Beside a GGUF
// model, lists only the files that belong to it.
std::string describe_skipped(const std::vector<RepositoryFile>& others);

// The size as text, for example "1.5 GB", in powers of 1000.
std::string bytes_text(int64_t bytes);

}  // namespace quire::hub
