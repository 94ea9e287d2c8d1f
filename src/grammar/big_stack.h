#pragma once

#include <cstddef>
#include <functional>

namespace quire::grammar {

// XGrammar recurses as deep as a grammar's rules refer to each other; 64 KiB of text hold
// thousands. Only the part of the stack that is used takes memory.
inline constexpr size_t kBigStackBytes = size_t{256} << 20;

// Runs `work` on a thread of its own with such a stack, and waits for it. Exceptions of `work` are
// thrown on to the caller. False: the machine has no thread or address space left.
bool run_on_big_stack(const std::function<void()>& work);

}  // namespace quire::grammar
