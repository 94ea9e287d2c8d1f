#pragma once

#include <cstddef>
#include <functional>

namespace quire::grammar {

// XGrammar's recursion is as deep as a grammar's rules refer to each other, which can be thousands
// of levels in 64 KiB of text. Only the used part of the stack takes memory.
inline constexpr size_t kBigStackBytes = size_t{256} << 20;

// Runs `work` on a new thread with such a stack and waits for it. Rethrows exceptions of `work`.
// Returns false if the machine has no thread or address space left.
bool run_on_big_stack(const std::function<void()>& work);

}  // namespace quire::grammar
