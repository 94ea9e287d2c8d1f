#include "nodes/node_place.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <optional>

#include "base/ascii.h"
#include "base/text.h"

namespace quire {
namespace {

struct Launcher {
  const char* name;
  const char* size;  // the variable with the number of processes
  const char* rank;
};

constexpr Launcher kLaunchers[] = {
    {"Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"PMI", "PMI_SIZE", "PMI_RANK"},
    {"LeaderWorkerSet", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX"},
    {"torchrun", "WORLD_SIZE", "RANK"},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
    {"Slurm", "SLURM_NTASKS", "SLURM_PROCID"},
};

class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  // Returns an empty text if the variable is not set.
  std::string text(const char* name) const {
    const char* value = environment_(name);
    return value == nullptr ? "" : value;
  }
  Result<int> number(const char* name) const {
    const std::string value = text(name);
    const std::optional<int> parsed = parse_whole<int>(value);
    if (parsed && *parsed >= 0) return *parsed;
    return invalid_argument(fmt::format("[nodes] {}: got '{}', expected a number from 0", name,
                                        one_line(value.substr(0, 80))));
  }
  const Launcher* launcher() const {
    for (const Launcher& launcher : kLaunchers) {
      if (!text(launcher.size).empty() && !text(launcher.rank).empty()) return &launcher;
    }
    return nullptr;
  }
  // " (WORLD_SIZE is set, but RANK is not)"; empty: no variable of a pair is set alone.
  std::string describe_half_pair() const {
    for (const Launcher& launcher : kLaunchers) {
      const bool has_size = !text(launcher.size).empty();
      if (has_size == !text(launcher.rank).empty()) continue;
      return fmt::format(" ({} is set, but {} is not)", has_size ? launcher.size : launcher.rank,
                         has_size ? launcher.rank : launcher.size);
    }
    return "";
  }

 private:
  const Environment& environment_;
};

Status contradiction(const char* field, int got, const Launcher& launcher, const char* variable,
                     int expected) {
  return invalid_argument(fmt::format(
      "[nodes] `{}`: got {}, but {} says {} ({}); leave the flag out, or set both `nnodes` and "
      "`node_rank`, which ignores the launcher",
      field, got, launcher.name, expected, variable));
}

// Sets num_nodes and node.
Status place_by_launcher(const NodeFlags& flags, const Variables& variables, NodePlace& place) {
  const Launcher* launcher = variables.launcher();
  if (launcher == nullptr) {
    return invalid_argument(fmt::format(
        "[nodes] {} no pair of variables of Open MPI, PMI, a LeaderWorkerSet, torchrun or Slurm is "
        "set{}; set `nnodes` and `node_rank`, or start Quire by one of them",
        flags.nnodes == 0 ? "`nnodes`: got auto, but" : "`node_rank` is missing, and",
        variables.describe_half_pair()));
  }
  QUIRE_ASSIGN_OR_RETURN(place.num_nodes, variables.number(launcher->size));
  QUIRE_ASSIGN_OR_RETURN(place.node, variables.number(launcher->rank));
  if (flags.nnodes > 0 && flags.nnodes != place.num_nodes) {
    return contradiction("nnodes", flags.nnodes, *launcher, launcher->size, place.num_nodes);
  }
  if (flags.node_rank >= 0 && flags.node_rank != place.node) {
    return contradiction("node_rank", flags.node_rank, *launcher, launcher->rank, place.node);
  }
  return {};
}

// Returns an empty text if no variable names the machine of node 0.
std::string find_master(const Variables& variables, int num_nodes) {
  for (const char* name : {"MASTER_ADDR", "LWS_LEADER_ADDRESS"}) {
    if (std::string address = variables.text(name); !address.empty()) return address;
  }
  // By default, Slurm starts the processes in the order of its list.
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
    if (std::string host = first_slurm_host(variables.text(name)); !host.empty()) return host;
  }
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "LOCAL_WORLD_SIZE"}) {
    if (variables.text(name) == fmt::to_string(num_nodes)) return "127.0.0.1";
  }
  return "";
}

// Returns whether the text is 0.0.0.0 or ::, at which a server listens on all interfaces.
bool is_unspecified(const std::string& address) {
  in_addr ip4 = {};
  if (::inet_pton(AF_INET, address.c_str(), &ip4) == 1) return ip4.s_addr == INADDR_ANY;
  in6_addr ip6 = {};
  return ::inet_pton(AF_INET6, address.c_str(), &ip6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&ip6);
}

// Returns the name of a given flag that needs several nodes; null: no such flag is given.
const char* find_flag_of_several(const NodeFlags& flags) {
  if (!flags.master_addr.empty()) return "master_addr";
  if (flags.node_rank > 0) return "node_rank";
  return flags.master_port == 0 ? nullptr : "master_port";
}

}  // namespace

std::string first_slurm_host(std::string_view node_list) {
  std::string host;
  while (!node_list.empty() && node_list.front() != ',') {
    if (node_list.front() != '[') {
      host.push_back(node_list.front());
      node_list.remove_prefix(1);
      continue;
    }
    const size_t end = node_list.find(']');
    if (end == std::string_view::npos) return "";
    const std::string_view numbers = node_list.substr(1, end - 1);
    const std::string_view first = numbers.substr(0, numbers.find_first_of(",-"));
    if (first.empty()) return "";
    host += first;
    node_list.remove_prefix(end + 1);
  }
  return host;
}

Result<NodePlace> find_node_place(const NodeFlags& flags, const Environment& environment) {
  NodePlace place;
  place.num_nodes = flags.nnodes;
  place.node = flags.node_rank;
  if (flags.nnodes == 1) {
    const char* const flag = find_flag_of_several(flags);
    if (flag == nullptr) return NodePlace();
    return invalid_argument(fmt::format(
        "[nodes] `{}`: got it with `nnodes` 1, expected `nnodes` of at least 2 with it", flag));
  }
  const Variables variables(environment);
  if (flags.nnodes == 0 || flags.node_rank < 0) {
    QUIRE_RETURN_IF_ERROR(place_by_launcher(flags, variables, place));
  }
  if (place.num_nodes < 1 || place.num_nodes > kMaxNodes) {
    return invalid_argument(
        fmt::format("[nodes] `nnodes`: got {}, expected 1 to {}", place.num_nodes, kMaxNodes));
  }
  if (place.node >= place.num_nodes) {
    return invalid_argument(fmt::format("[nodes] `node_rank`: got {} of {} nodes, expected 0 to {}",
                                        place.node, place.num_nodes, place.num_nodes - 1));
  }
  if (place.num_nodes == 1) return NodePlace();
  place.master_addr =
      flags.master_addr.empty() ? find_master(variables, place.num_nodes) : flags.master_addr;
  if (place.master_addr.empty()) {
    return invalid_argument(
        "[nodes] `master_addr` is missing, and neither MASTER_ADDR nor the launcher names the "
        "machine of node 0; set it to that machine's name or address");
  }
  if (is_unspecified(place.master_addr)) {
    return invalid_argument(
        fmt::format("[nodes] `master_addr`: got {}, expected an address that the other nodes "
                    "reach: the name or address of node 0's machine",
                    place.master_addr));
  }
  place.master_port = flags.master_port;
  if (place.master_port == 0 && !variables.text("MASTER_PORT").empty()) {
    QUIRE_ASSIGN_OR_RETURN(place.master_port, variables.number("MASTER_PORT"));
  }
  if (place.master_port == 0) place.master_port = kDefaultMasterPort;
  if (place.master_port > 65535) {
    return invalid_argument(
        fmt::format("[nodes] `master_port`: got {}, expected 1 to 65535", place.master_port));
  }
  return place;
}

}  // namespace quire
