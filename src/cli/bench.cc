#include "cli/command.h"

namespace quire::cli {

Command bench_command() {
  Command command;
  command.name = "bench";
  command.summary = "Measure an engine, or attention alone, on this machine";
  command.example =
      "  quire bench throughput --input-len 128 --output-len 32 --num-prompts 32\n"
      "  quire bench latency --batch-size 1\n"
      "  quire bench attention --grid strict";
  command.subcommands.push_back(bench_throughput_command());
  command.subcommands.push_back(bench_latency_command());
  command.subcommands.push_back(bench_attention_command());
  return command;
}

}  // namespace quire::cli
