#include "kv/block_hash.h"

#include <openssl/evp.h>

#include <string>

#include "base/check.h"

namespace quire {
namespace {

// Each thread has one digest context, because fetching the algorithm costs more than hashing a
// block.
class Sha256 {
 public:
  Sha256() : algorithm_(EVP_MD_fetch(nullptr, "SHA256", nullptr)), context_(EVP_MD_CTX_new()) {
    QUIRE_CHECK(algorithm_ != nullptr && context_ != nullptr, "[kv] libcrypto offers no SHA-256");
  }
  ~Sha256() {
    EVP_MD_CTX_free(context_);
    EVP_MD_free(algorithm_);
  }
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  BlockHash digest(std::span<const std::byte> head, std::span<const std::byte> tail) {
    BlockHash hash;
    const bool ok =
        EVP_DigestInit_ex2(context_, algorithm_, nullptr) == 1 &&
        EVP_DigestUpdate(context_, head.data(), head.size()) == 1 &&
        EVP_DigestUpdate(context_, tail.data(), tail.size()) == 1 &&
        EVP_DigestFinal_ex(context_, reinterpret_cast<unsigned char*>(hash.data()), nullptr) == 1;
    QUIRE_CHECK(ok, "[kv] SHA-256 failed");
    return hash;
  }

 private:
  EVP_MD* algorithm_;
  EVP_MD_CTX* context_;
};

BlockHash sha256(std::span<const std::byte> head, std::span<const std::byte> tail) {
  thread_local Sha256 hasher;
  return hasher.digest(head, tail);
}

}  // namespace

BlockHash root_block_hash(std::string_view salt, int block_size) {
  const std::string head = "quire-kv-block/" + std::to_string(block_size) + "/";
  return sha256(std::as_bytes(std::span(head)), std::as_bytes(std::span(salt)));
}

// Tokens are hashed in the machine's byte order, which is safe because a hash never leaves the
// process.
BlockHash block_hash(const BlockHash& parent, std::span<const int32_t> token_ids) {
  return sha256(parent, std::as_bytes(token_ids));
}

void extend_block_hashes(std::string_view salt, int block_size, std::span<const int32_t> token_ids,
                         int num_blocks, std::vector<BlockHash>& hashes) {
  const size_t size = static_cast<size_t>(block_size);
  QUIRE_CHECK(static_cast<size_t>(num_blocks) * size <= token_ids.size(),
              "[kv] only full blocks have a hash");
  for (size_t idx = hashes.size(); idx < static_cast<size_t>(num_blocks); ++idx) {
    const BlockHash parent = idx == 0 ? root_block_hash(salt, block_size) : hashes[idx - 1];
    hashes.push_back(block_hash(parent, token_ids.subspan(idx * size, size)));
  }
}

}  // namespace quire
