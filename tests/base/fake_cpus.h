// Files that describe a machine's CPUs, as the kernel has them below /sys/devices.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "support/scratch_directory.h"

namespace quire::testing {

class FakeCpus {
 public:
  const std::filesystem::path& root() const { return directory_.path(); }

  void write(const std::string& file, std::string_view text) const {
    std::filesystem::create_directories((root() / file).parent_path());
    directory_.write(file, text);
  }
  void remove(const std::string& file) const { std::filesystem::remove(root() / file); }

  void write_online(int num_cpus) const {
    write("system/cpu/online", fmt::format("0-{}\n", num_cpus - 1));
  }
  void write_capacity(int cpu, std::string_view text) const {
    write(fmt::format("system/cpu/cpu{}/cpu_capacity", cpu), text);
  }
  // A physical core with these logical CPUs.
  void add_core(const std::vector<int>& cpus) const {
    for (const int cpu : cpus) {
      write(fmt::format("system/cpu/cpu{}/topology/thread_siblings_list", cpu),
            fmt::format("{}\n", fmt::join(cpus, ",")));
    }
  }
  void add_node(int node, std::string_view cpus) const {
    write(fmt::format("system/node/node{}/cpulist", node), cpus);
  }

  // A Xeon with two sockets of `num_cores` cores: CPUs 0, 1, … are the first of each core, socket
  // by socket, and the second ones follow in the same order.
  void add_two_sockets(int num_cores) const {
    const int n = num_cores;
    for (int core = 0; core < 2 * n; ++core) add_core({core, core + 2 * n});
    for (int node = 0; node < 2; ++node) {
      const int first = node * n;
      add_node(node, fmt::format("{}-{},{}-{}\n", first, first + n - 1, first + 2 * n,
                                 first + 3 * n - 1));
    }
    write("system/node/online", "0-1\n");  // a file that is not of a node
    write_online(4 * n);
  }
  // A laptop's processor: cores with two CPUs, followed by efficiency cores with one.
  void add_hybrid(int num_performance, int num_efficient) const {
    const int n = 2 * num_performance;
    for (int core = 0; core < num_performance; ++core) add_core({2 * core, 2 * core + 1});
    for (int core = 0; core < num_efficient; ++core) add_core({n + core});
    write("cpu_core/cpus", fmt::format("0-{}\n", n - 1));
    write("cpu_atom/cpus", fmt::format("{}-{}\n", n, n + num_efficient - 1));
    add_node(0, fmt::format("0-{}\n", n + num_efficient - 1));
    write_online(n + num_efficient);
  }
  // A processor with four nodes of `num_cores` cores, and a fifth node of memory alone.
  void add_four_nodes(int num_cores) const {
    for (int core = 0; core < 4 * num_cores; ++core) add_core({core});
    for (int node = 0; node < 4; ++node) {
      add_node(node, fmt::format("{}-{}\n", node * num_cores, (node + 1) * num_cores - 1));
    }
    add_node(4, "\n");
    write_online(4 * num_cores);
  }

 private:
  ScratchDirectory directory_;
};

}  // namespace quire::testing
