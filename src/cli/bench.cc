#include "cli/command.h"

namespace quire::cli {

Command bench_command() {
  Command command;
  command.name = "bench";
  command.summary = "Measure an engine, a server, or attention alone";
  command.example =
      "  quire bench throughput --input-len 128 --output-len 32 --num-prompts 32\n"
      "  quire bench latency --batch-size 1\n"
      "  quire bench serve --max-concurrency 64 --num-prompts 256\n"
      "  quire bench attention --grid strict";
  command.subcommands.push_back(bench_throughput_command());
  command.subcommands.push_back(bench_latency_command());
  command.subcommands.push_back(bench_serve_command());
  command.subcommands.push_back(bench_attention_command());
  return command;
}

}  // namespace quire::cli
