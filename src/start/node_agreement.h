// Plans that must be the same on all nodes. nodes: null on a single node, where every check passes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "nodes/nodes.h"
#include "quire/status.h"

namespace quire {

class DraftModel;
struct EnginePlan;

// Fails unless all nodes have the same value.
Status check_same(Nodes* nodes, std::string_view what, std::string_view value);

// Lowers each element of `fewest` to at most the element of `other`. Returns false if the sizes
// differ.
bool take_fewer(std::vector<int>& fewest, std::span<const int> other);
// Returns the smallest number of blocks of any node, by table, or the error of the first node that
// failed. All nodes get the same result.
Result<std::vector<int>> agree_on_blocks(Nodes* nodes, Result<std::vector<int>> own);

// Fails unless all nodes have resolved their settings to the same values, and draft with the same
// model. draft: null if no model drafts.
Status check_same_plan(Nodes* nodes, const EnginePlan& plan, const DraftModel* draft);

// Fails if CPUs of several nodes could not exchange the results of a step's tokens.
Status check_step_message(int64_t num_tokens, int64_t hidden_size, int num_ranks);

}  // namespace quire
