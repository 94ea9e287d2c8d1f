// bench_tokenizer DIR TEXT_FILE IDS_FILE [SECONDS]: loads DIR's tokenizer, encodes the whole text
// repeatedly for SECONDS, writes the ids (int32, native byte order) and prints one JSON line with
// the CPU time of each operation.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/file.h"
#include "base/machine.h"
#include "tokenizer/tokenizer.h"

namespace {

double cpu_seconds() {
  return static_cast<double>(quire::process_cpu_ns()) * 1e-9;
}

// Returns the shortest time of the calls that fit into `budget` seconds (at least three).
template <typename Function>
double best_seconds(double budget, Function function) {
  double best = 1e30;
  double spent = 0;
  for (int i = 0; i < 3 || spent < budget; ++i) {
    const double start = cpu_seconds();
    function();
    const double taken = cpu_seconds() - start;
    best = std::min(best, taken);
    spent += taken;
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: bench_tokenizer DIR TEXT_FILE IDS_FILE [SECONDS]\n", stderr);
    return 2;
  }
  const double budget = argc > 4 ? std::atof(argv[4]) : 2.0;
  const double start = cpu_seconds();
  const auto tokenizer = quire::Tokenizer::load(argv[1]);
  const double load_seconds = cpu_seconds() - start;
  const auto text = quire::read_file(argv[2], size_t{1} << 30);
  if (!tokenizer.ok() || !text.ok()) {
    const auto status = tokenizer.ok() ? text.status() : tokenizer.status();
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  std::vector<int32_t> ids;
  const double first = cpu_seconds();
  ids = (*tokenizer)->encode(*text, false).value();
  const double first_seconds = cpu_seconds() - first;
  const double encode_seconds =
      best_seconds(budget, [&] { ids = (*tokenizer)->encode(*text, false).value(); });
  std::string decoded;
  const double decode_seconds =
      best_seconds(budget / 4, [&] { decoded = (*tokenizer)->decode(ids, false); });
  std::ofstream(argv[3], std::ios::binary)
      .write(reinterpret_cast<const char*>(ids.data()),
             static_cast<std::streamsize>(ids.size() * sizeof(int32_t)));
  fmt::print(
      "{{\"load_s\":{},\"first_encode_s\":{},\"encode_s\":{},\"decode_s\":{},\"num_bytes\":{},"
      "\"num_ids\":{},\"round_trip\":{}}}\n",
      load_seconds, first_seconds, encode_seconds, decode_seconds, text->size(), ids.size(),
      decoded == *text);
  return 0;
}
