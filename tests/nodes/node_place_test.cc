// A node's place, from the flags and from the variables of every launcher.
#include "nodes/node_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace quire {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Result<NodePlace> find(const NodeFlags& flags, const Variables& variables) {
  return find_node_place(flags, [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

void expect_place(const NodeFlags& flags, const Variables& variables, const NodePlace& expected) {
  const Result<NodePlace> place = find(flags, variables);
  ASSERT_TRUE(place.ok()) << place.status().message();
  EXPECT_EQ(place->num_nodes, expected.num_nodes);
  EXPECT_EQ(place->node, expected.node);
  EXPECT_EQ(place->master_addr, expected.master_addr);
  EXPECT_EQ(place->master_port, expected.master_port);
}

std::string error_of(const NodeFlags& flags, const Variables& variables) {
  const Result<NodePlace> place = find(flags, variables);
  return place.ok() ? "no error" : place.status().message();
}

NodeFlags automatic() {
  NodeFlags flags;
  flags.nnodes = 0;
  return flags;
}

const Variables kSlurm = {{"SLURM_NTASKS", "4"},
                          {"SLURM_NNODES", "4"},
                          {"SLURM_PROCID", "2"},
                          {"SLURM_NODEID", "2"},
                          {"SLURM_STEP_NUM_TASKS", "3"},
                          {"SLURM_STEP_NODELIST", "gpu[07-09]"},
                          {"SLURM_JOB_NODELIST", "gpu[06-09]"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "1"}};
const Variables kLws = {{"LWS_LEADER_ADDRESS", "vllm-0.vllm.default"},
                        {"LWS_GROUP_SIZE", "2"},
                        {"LWS_WORKER_INDEX", "1"}};

TEST(NodePlace, OneNodeReadsNoVariables) {
  expect_place({}, kSlurm, {});
  expect_place({.nnodes = 1, .node_rank = 0, .master_addr = "", .master_port = 0}, kLws, {});
}

TEST(NodePlace, ByHand) {
  const NodeFlags flags = {.nnodes = 2, .node_rank = 1, .master_addr = "gpu-0", .master_port = 0};
  expect_place(flags, {},
               {.num_nodes = 2, .node = 1, .master_addr = "gpu-0", .master_port = 29501});
  // Within a job, too.
  expect_place(flags, kSlurm,
               {.num_nodes = 2, .node = 1, .master_addr = "gpu-0", .master_port = 29501});
}

TEST(NodePlace, BySrun) {
  expect_place(automatic(), kSlurm,
               {.num_nodes = 3, .node = 2, .master_addr = "gpu07", .master_port = 29501});
  const Variables without_step = {
      {"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_NODELIST", "a1,a2"}};
  expect_place(automatic(), without_step,
               {.num_nodes = 2, .node = 0, .master_addr = "a1", .master_port = 29501});
}

TEST(NodePlace, ByMpi) {
  NodeFlags flags = automatic();
  flags.master_addr = "10.0.0.1";
  expect_place(flags, kOpenMpi,
               {.num_nodes = 2, .node = 1, .master_addr = "10.0.0.1", .master_port = 29501});
  expect_place(flags, {{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}},
               {.num_nodes = 2, .node = 0, .master_addr = "10.0.0.1", .master_port = 29501});
  // Within a Slurm job, whose variables are those of mpirun's own processes.
  Variables in_slurm = kOpenMpi;
  in_slurm.insert(kSlurm.begin(), kSlurm.end());
  expect_place(automatic(), in_slurm,
               {.num_nodes = 2, .node = 1, .master_addr = "gpu07", .master_port = 29501});
  Variables on_one_machine = kOpenMpi;
  on_one_machine["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  expect_place(automatic(), on_one_machine,
               {.num_nodes = 2, .node = 1, .master_addr = "127.0.0.1", .master_port = 29501});
}

TEST(NodePlace, ByLeaderWorkerSet) {
  expect_place(
      automatic(), kLws,
      {.num_nodes = 2, .node = 1, .master_addr = "vllm-0.vllm.default", .master_port = 29501});
}

TEST(NodePlace, ByTorchrun) {
  const Variables variables = {
      {"MASTER_ADDR", "host-a"}, {"MASTER_PORT", "1234"}, {"WORLD_SIZE", "2"}, {"RANK", "1"}};
  expect_place(automatic(), variables,
               {.num_nodes = 2, .node = 1, .master_addr = "host-a", .master_port = 1234});
  NodeFlags flags = automatic();
  flags.master_port = 99;
  expect_place(flags, variables,
               {.num_nodes = 2, .node = 1, .master_addr = "host-a", .master_port = 99});
}

TEST(NodePlace, ALauncherOfOneProcessIsOneNode) {
  expect_place(automatic(), {{"SLURM_NTASKS", "1"}, {"SLURM_PROCID", "0"}}, {});
}

TEST(NodePlace, RefusesContradictions) {
  NodeFlags flags = automatic();
  flags.nnodes = 4;
  EXPECT_THAT(error_of(flags, kLws), HasSubstr("`nnodes`: got 4, but LeaderWorkerSet says 2"));
  flags = automatic();
  flags.node_rank = 0;
  EXPECT_THAT(error_of(flags, kLws), HasSubstr("`node_rank`: got 0, but LeaderWorkerSet says 1"));
  flags = {.nnodes = 1, .node_rank = 1, .master_addr = "", .master_port = 0};
  EXPECT_THAT(error_of(flags, {}), HasSubstr("`node_rank`: got it with `nnodes` 1"));
  flags = {.nnodes = 1, .node_rank = -1, .master_addr = "a", .master_port = 0};
  EXPECT_THAT(error_of(flags, {}), HasSubstr("`master_addr`: got it with `nnodes` 1"));
  flags = {.nnodes = 1, .node_rank = -1, .master_addr = "", .master_port = 1234};
  EXPECT_THAT(error_of(flags, {}), HasSubstr("`master_port`: got it with `nnodes` 1"));
  flags = {.nnodes = 2, .node_rank = 2, .master_addr = "a", .master_port = 0};
  EXPECT_THAT(error_of(flags, {}), HasSubstr("expected 0 to 1"));
}

TEST(NodePlace, NamesMissingAndMalformedVariables) {
  EXPECT_THAT(error_of(automatic(), {}), HasSubstr("`nnodes`: got auto, but no pair of variables"));
  NodeFlags flags = automatic();
  flags.nnodes = 2;
  EXPECT_THAT(error_of(flags, {}), HasSubstr("`node_rank` is missing"));
  EXPECT_THAT(error_of(automatic(), {{"WORLD_SIZE", "2"}}),
              HasSubstr("(WORLD_SIZE is set, but RANK is not)"));
  EXPECT_THAT(error_of(automatic(), {{"PMI_RANK", "0"}}),
              HasSubstr("(PMI_RANK is set, but PMI_SIZE is not)"));
  EXPECT_THAT(error_of(automatic(), kOpenMpi), HasSubstr("`master_addr` is missing"));
  Variables wrong = kLws;
  wrong["LWS_WORKER_INDEX"] = "-1";
  EXPECT_THAT(error_of(automatic(), wrong), HasSubstr("LWS_WORKER_INDEX: got '-1'"));
  wrong["LWS_WORKER_INDEX"] = "one\n";
  EXPECT_THAT(error_of(automatic(), wrong), HasSubstr("LWS_WORKER_INDEX"));
  wrong = kLws;
  wrong["LWS_GROUP_SIZE"] = "65";
  EXPECT_THAT(error_of(automatic(), wrong), HasSubstr("expected 1 to 64"));
  wrong = kLws;
  wrong["MASTER_PORT"] = "70000";
  EXPECT_THAT(error_of(automatic(), wrong), HasSubstr("expected 1 to 65535"));
}

// They mean all interfaces of the machine that listens, and this machine for one that connects.
TEST(NodePlace, RefusesAddressesThatNoOtherNodeReaches) {
  for (const char* address : {"0.0.0.0", "::", "0:0::0"}) {
    const NodeFlags flags = {.nnodes = 2, .node_rank = 0, .master_addr = address, .master_port = 0};
    EXPECT_THAT(error_of(flags, {}), HasSubstr(std::string("`master_addr`: got ") + address +
                                               ", expected an address that the other nodes reach"));
  }
  const NodeFlags local = {.nnodes = 2, .node_rank = 0, .master_addr = "::1", .master_port = 0};
  EXPECT_EQ(error_of(local, {}), "no error");
}

TEST(NodePlace, ReadsTheFirstHostOfSlurmsList) {
  EXPECT_EQ(first_slurm_host("a"), "a");
  EXPECT_EQ(first_slurm_host("a,b"), "a");
  EXPECT_EQ(first_slurm_host("gpu[03-07,9],cpu1"), "gpu03");
  EXPECT_EQ(first_slurm_host("gpu[9]"), "gpu9");
  EXPECT_EQ(first_slurm_host("rack[1-2]n[04,05]-ib,x"), "rack1n04-ib");
  EXPECT_EQ(first_slurm_host(""), "");
  EXPECT_EQ(first_slurm_host("gpu["), "");
  EXPECT_EQ(first_slurm_host("gpu[]"), "");
  EXPECT_EQ(first_slurm_host("gpu[-"), "");
}

}  // namespace
}  // namespace quire
