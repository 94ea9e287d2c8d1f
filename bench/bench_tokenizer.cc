// bench_tokenizer DIR TEXT_FILE IDS_FILE [SECONDS]: loads DIR's tokenizer, encodes the whole text
// repeatedly for SECONDS, writes the ids (int32, native byte order) and prints one JSON line with
// the CPU time of each operation. The text is also encoded as a chat, without marks (chat_s) and
// with its messages marked as a request's text (marked_chat_s), from which no control token is
// taken.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

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

// The text as messages of this many bytes or a few more, each between two control tokens.
constexpr size_t kMessageBytes = 400;

quire::MarkedText as_chat(const quire::Tokenizer& tokenizer, std::string_view text) {
  std::string control;
  for (int32_t id = 0; control.empty() && id < tokenizer.vocab_size(); ++id) {
    const auto ids = tokenizer.encode(tokenizer.id_to_token(id), false);
    if (tokenizer.is_control(id) && ids.ok() && *ids == std::vector{id}) {
      control = tokenizer.id_to_token(id);
    }
  }
  quire::MarkedText chat;
  while (!text.empty()) {
    size_t num_bytes = std::min(kMessageBytes, text.size());
    const auto is_continuation = [&] { return (text[num_bytes] & 0xC0) == 0x80; };
    while (num_bytes < text.size() && is_continuation()) ++num_bytes;
    chat.text += control;
    chat.append_untrusted(text.substr(0, num_bytes));
    chat.text += control;
    text.remove_prefix(num_bytes);
  }
  return chat;
}

// The two encodings in turns, so that both see the same state of the machine.
struct ChatSeconds {
  double plain = 1e30;
  double marked = 1e30;
};

ChatSeconds measure_chat(const quire::Tokenizer& tokenizer, std::string_view text, double budget) {
  const quire::MarkedText chat = as_chat(tokenizer, text);
  ChatSeconds best;
  for (const double start = cpu_seconds(); cpu_seconds() < start + budget;) {
    best.plain =
        std::min(best.plain, best_seconds(0, [&] { tokenizer.encode(chat.text, false).value(); }));
    best.marked = std::min(best.marked, best_seconds(0, [&] {
                             tokenizer.encode(chat.text, false, chat.untrusted).value();
                           }));
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
  const ChatSeconds chat = measure_chat(**tokenizer, *text, budget);
  std::ofstream(argv[3], std::ios::binary)
      .write(reinterpret_cast<const char*>(ids.data()),
             static_cast<std::streamsize>(ids.size() * sizeof(int32_t)));
  fmt::print(
      "{{\"load_s\":{},\"first_encode_s\":{},\"encode_s\":{},\"decode_s\":{},\"chat_s\":{},"
      "\"marked_chat_s\":{},\"num_bytes\":{},\"num_ids\":{},\"round_trip\":{}}}\n",
      load_seconds, first_seconds, encode_seconds, decode_seconds, chat.plain, chat.marked,
      text->size(), ids.size(), decoded == *text);
  return 0;
}
