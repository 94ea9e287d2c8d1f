// The headers of libraries that most sources include, precompiled once (QUIRE_PCH). Sources include
// what they use all the same: the nightly build compiles each without this file. Quire's own headers
// stay out: when only a comment of one changes, ccache returns the file that was precompiled before,
// and GCC no longer recognizes the changed header behind its #pragma once.
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>
