// The name under which a full block of tokens is cached.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace quire {

// SHA-256, because an attacker who could make two prefixes collide could read another request's
// cache.
using BlockHash = std::array<std::byte, 32>;

// The parent hash of a sequence's first block. Different (salt, block_size) pairs never share a
// chain.
BlockHash root_block_hash(std::string_view salt, int block_size);

// The hash covers everything that the block's keys and values depend on: the tokens before the
// block (through the parent's hash) and its own tokens.
BlockHash block_hash(const BlockHash& parent, std::span<const int32_t> token_ids);

// Appends the hashes of the full blocks of token_ids that `hashes` lacks, up to num_blocks of them.
void extend_block_hashes(std::string_view salt, int block_size, std::span<const int32_t> token_ids,
                         int num_blocks, std::vector<BlockHash>& hashes);

}  // namespace quire
