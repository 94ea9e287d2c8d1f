// Downloads one file into the cache as huggingface_hub does, so that both can share a cache and
// continue each other's downloads:
//   1. .locks/MODEL/HASH.lock is locked (flock).
//   2. The content is appended to blobs/HASH.incomplete; a partial file is continued.
//   3. If its hash is right, it is renamed to blobs/HASH.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "hub/pull/hub_client.h"
#include "hub/pull/repository_list.h"
#include "quire/status.h"

namespace quire::hub {

// The folders of a model in the cache. Both exist.
struct BlobFolders {
  std::filesystem::path blobs;
  std::filesystem::path locks;
};

// Whether the complete blob is in the cache.
bool has_blob(const RepositoryFile& file, const BlobFolders& folders);

// The bytes of the file that are in the cache, as a complete or a partial blob.
int64_t bytes_in_cache(const RepositoryFile& file, const BlobFolders& folders);

// Makes sure that the blob is in the cache. Adds to `num_bytes` as content arrives, and subtracts
// discarded bytes. If the content has the wrong hash, deletes it and fails.
Status download_blob(HubClient& client, std::string_view commit, const RepositoryFile& file,
                     const BlobFolders& folders, std::atomic<int64_t>& num_bytes);

}  // namespace quire::hub
