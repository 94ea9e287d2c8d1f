#include "cli/line_editor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/text.h"
#include "base/text_input.h"
#include "cli/input.h"
#include "cli/output.h"

namespace quire::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxEntryBytes = size_t{64} << 10;  // longer messages are not in the history
constexpr std::string_view kPasteEnd = "\x1b[201~";

// --- The history's file ---

Status file_error(const fs::path& path) {
  return unavailable(fmt::format("[chat] {}: {}", path.string(), std::strerror(errno)));
}

// Writes a file that only its user may read, because messages are private.
Status write_private(const fs::path& path, std::string_view text, int flags) {
  const int fd = ::open(path.c_str(), flags | O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return file_error(path);
  const bool is_written = ::fchmod(fd, 0600) == 0 && ::write(fd, text.data(), text.size()) ==
                                                         static_cast<ssize_t>(text.size());
  const Status status = is_written ? Status() : file_error(path);
  ::close(fd);
  return status;
}

// Reads the history, and drops entries beyond the bounds from the file.
Result<std::vector<std::string>> load_history(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (!fs::exists(path, error)) return std::vector<std::string>();
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_file(path, 16 * kMaxHistoryBytes));
  std::vector<std::string> entries = parse_history(text);
  std::string kept;
  for (const std::string& entry : entries) kept += history_line(entry);
  if (kept.size() < text.size()) {
    const fs::path fresh = path.string() + "." + std::to_string(::getpid());
    QUIRE_RETURN_IF_ERROR(write_private(fresh, kept, O_TRUNC));
    if (std::rename(fresh.c_str(), path.c_str()) != 0) return file_error(path);
  }
  return entries;
}

// --- The terminal ---

// Sets a UTF-8 locale: messages are always UTF-8, and libedit uses the locale's encoding.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(::nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

bool is_editable_terminal() {
  const char* name = std::getenv("TERM");
  const bool is_dumb = name == nullptr || *name == '\0' || std::strcmp(name, "dumb") == 0;
  return !is_dumb && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
}

struct CloseFile {
  void operator()(std::FILE* file) const { (void)std::fclose(file); }
};
struct EndEditLine {
  void operator()(EditLine* line) const { ::el_end(line); }
};
struct EndHistory {
  void operator()(History* history) const { ::history_end(history); }
};

std::atomic<bool> has_resized = false;

// Replaces the handler of SIGWINCH that libedit installs in el_gets(). libedit's handler updates
// its own copy of the screen, but does not redraw the terminal.
void note_resizes() {
  struct sigaction action = {};
  action.sa_handler = [](int) { has_resized = true; };
  ::sigaction(SIGWINCH, &action, nullptr);
}

class TerminalEditor final : public LineEditor {
 public:
  explicit TerminalEditor(Options options)
      : options_(std::move(options)),
        // A buffered stream, unlike stderr, so that a redrawn message is one write.
        out_(::fdopen(::dup(STDERR_FILENO), "w")),
        line_(::el_init("quire", stdin, out_.get(), stderr)),
        history_(::history_init()) {
    set_up_history();
    set_up_line();
  }

  Typed read(const std::string& prompt) override {
    prompt_ = prompt;
    was_interrupted_ = false;
    ::el_resize(line_.get());  // the terminal may have another size since the last message
    // Precedes the prompt, because until this call Ctrl-C is a signal and Ctrl-D ends the input.
    ::el_set(line_.get(), EL_PREP_TERM, 1);
    show("\x1b[?2004h");  // the terminal then marks pasted text
    int count = 0;
    const char* text = ::el_gets(line_.get(), &count);
    show("\x1b[?2004l");
    if (was_interrupted_) {
      show(std::string(num_lines_below_ + 1, '\n'));
      return {.end = End::kInterrupt, .text = std::exchange(interrupted_, {})};
    }
    if (text == nullptr || count <= 0) {
      show("\n");
      return {.end = End::kEndOfInput, .text = {}};
    }
    Typed typed = {.end = End::kEnter, .text = std::string(text, static_cast<size_t>(count))};
    if (typed.text.ends_with('\n')) typed.text.pop_back();
    remember(typed.text);
    return typed;
  }

 private:
  static TerminalEditor& of(EditLine* line) {
    TerminalEditor* editor = nullptr;
    ::el_get(line, EL_CLIENTDATA, &editor);
    return *editor;
  }

  void show(std::string_view text) {
    (void)std::fwrite(text.data(), 1, text.size(), out_.get());
    (void)std::fflush(out_.get());
  }

  void set_up_history() {
    HistEvent event;
    ::history(history_.get(), &event, H_SETSIZE, static_cast<int>(kMaxHistoryEntries));
    ::history(history_.get(), &event, H_SETUNIQUE, 1);
    if (options_.history_file.empty()) return;
    const auto entries = load_history(options_.history_file);
    if (!entries.ok()) return stop_saving(entries.status());
    for (const std::string& entry : *entries) {
      ::history(history_.get(), &event, H_ENTER, entry.c_str());
    }
    if (!entries->empty()) last_ = entries->back();
  }

  void stop_saving(const Status& error) {
    log_warning("{}; this session's history is not saved", error.message());
    options_.history_file.clear();
  }

  void remember(const std::string& text) {
    const bool is_blank = text.find_first_not_of(" \t\r\n") == std::string::npos;
    if (is_blank || text.size() > kMaxEntryBytes || text == last_) return;
    last_ = text;
    HistEvent event;
    ::history(history_.get(), &event, H_ENTER, text.c_str());
    if (options_.history_file.empty()) return;
    const Status saved = write_private(options_.history_file, history_line(text), O_APPEND);
    if (!saved.ok()) stop_saving(saved);
  }

  // el_wset() keeps the pointers, so names and texts must be literals. el_set() would leak copies.
  void add_key_function(const wchar_t* name, const wchar_t* help,
                        unsigned char (*function)(EditLine*, int),
                        std::initializer_list<const wchar_t*> keys) {
    ::el_wset(line_.get(), EL_ADDFN, name, help, function);
    for (const wchar_t* key : keys) bind(key, name);
  }

  void bind(const wchar_t* key, const wchar_t* function) {
    ::el_wset(line_.get(), EL_BIND, key, function, nullptr);
  }

  void set_up_line() {
    EditLine* line = line_.get();
    ::el_set(line, EL_CLIENTDATA, this);
    ::el_set(line, EL_PROMPT, &prompt);
    ::el_set(line, EL_EDITOR, "emacs");
    ::el_wset(line, EL_GETCFN, &read_character);
    ::el_set(line, EL_SIGNAL, 1);  // restores the terminal when a signal ends the program
    ::el_set(line, EL_HIST, ::history, history_.get());
    // In the editor, Ctrl-C and Ctrl-Z are keys. During an answer, they are signals again.
    ::el_set(line, EL_SETTY, "-d", "-isig", nullptr);
    add_key_function(L"quire-interrupt", L"Leave the message", &interrupt, {L"^C"});
    add_key_function(L"quire-suspend", L"Suspend the program", &suspend, {L"^Z"});
    add_key_function(L"quire-newline", L"Begin a line of the message", &insert_newline,
                     {L"\\e\\r", L"\\e\\n"});
    add_key_function(L"quire-paste", L"Insert pasted text", &paste, {L"\\e[200~"});
    add_key_function(L"quire-complete", L"Complete a command", &complete, {L"\\t"});
    add_key_function(L"quire-up", L"Go up a line or back in the history", &up,
                     {L"\\e[A", L"\\eOA"});
    add_key_function(L"quire-down", L"Go down a line or forth in the history", &down,
                     {L"\\e[B", L"\\eOB"});
    bind(L"^R", L"em-inc-search-prev");
    for (const wchar_t* key : {L"\\e[H", L"\\eOH", L"\\e[1~"}) bind(key, L"ed-move-to-beg");
    for (const wchar_t* key : {L"\\e[F", L"\\eOF", L"\\e[4~"}) bind(key, L"ed-move-to-end");
    bind(L"\\e[3~", L"ed-delete-next-char");
    bind(L"\\e[1;5C", L"em-next-word");
    bind(L"\\e[1;5D", L"ed-prev-word");
  }

  static char* prompt(EditLine* line) { return of(line).prompt_.data(); }

  static unsigned char interrupt(EditLine* line, int /*key*/) {
    TerminalEditor& editor = of(line);
    const LineInfo* info = ::el_line(line);
    editor.interrupted_.assign(info->buffer, info->lastchar);
    editor.num_lines_below_ = static_cast<size_t>(std::count(info->cursor, info->lastchar, '\n'));
    editor.was_interrupted_ = true;
    return CC_EOF;
  }

  static unsigned char suspend(EditLine* line, int /*key*/) {
    ::el_set(line, EL_PREP_TERM, 0);
    ::signal(SIGTSTP, SIG_DFL);
    ::raise(SIGTSTP);  // returns after SIGCONT
    ::el_set(line, EL_PREP_TERM, 1);
    return CC_REDISPLAY;
  }

  // Reads a UTF-8 character, and redraws the message if the terminal is resized meanwhile.
  static int read_character(EditLine* line, wchar_t* character) {
    // The wait is bounded, because a handler that runs on another thread does not interrupt it.
    constexpr int kResizeTickMs = 250;
    note_resizes();
    std::string bytes;
    while (true) {
      if (has_resized.exchange(false)) of(line).redraw();
      pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
      const int num_ready = ::poll(&input, 1, kResizeTickMs);
      if (num_ready == 0 || (num_ready < 0 && errno == EINTR)) continue;
      if (num_ready < 0) return -1;
      char byte = 0;
      const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) return static_cast<int>(count);
      bytes += byte;
      // Waits for the rest of an incomplete character. Invalid bytes become U+FFFD.
      if (complete_utf8_prefix(bytes) < bytes.size()) continue;
      *character = static_cast<wchar_t>(decode_utf8(bytes).code_point);
      return 1;
    }
  }

  // Redraws the message after a change of the terminal's width, because terminals then wrap the
  // lines on the screen again.
  void redraw() {
    const size_t num_columns = terminal_columns(STDERR_FILENO);
    const LineInfoW* info = ::el_wline(line_.get());
    size_t column = prompt_.size();
    size_t row = 0;
    for (const wchar_t* at = info->buffer; at != info->cursor; ++at) {
      const size_t width = *at == L'\n' ? 0 : static_cast<size_t>(std::max(::wcwidth(*at), 0));
      if (*at == L'\n' || column + width > num_columns) {
        ++row;
        column = 0;
      }
      column += width;
    }
    show((row > 0 ? fmt::format("\x1b[{}A", row) : "") + "\r\x1b[J");
    ::el_resize(line_.get());
    ::el_set(line_.get(), EL_REFRESH);
  }

  static unsigned char insert_newline(EditLine* line, int /*key*/) {
    return ::el_insertstr(line, "\n") == 0 ? CC_REFRESH : CC_ERROR;
  }

  // Reads to the mark that the terminal sends after pasted text, and inserts the text. If the text
  // is too long, the terminal beeps and nothing is inserted.
  static unsigned char paste(EditLine* line, int /*key*/) {
    std::string text;
    wchar_t c = 0;
    bool is_too_long = false;
    while (!text.ends_with(kPasteEnd)) {
      // el_getc() would fail on every character that is not ASCII.
      if (::el_wgetc(line, &c) != 1) return CC_EOF;
      append_utf8(static_cast<char32_t>(c), text);
      if (text.size() <= kMaxTypedBytes) continue;
      is_too_long = true;
      text.erase(0, text.size() - kPasteEnd.size());
    }
    text.resize(text.size() - kPasteEnd.size());
    text = cleaned_paste(text);
    return !is_too_long && ::el_insertstr(line, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }

  static unsigned char complete(EditLine* line, int /*key*/) {
    const LineInfo* info = ::el_line(line);
    const std::string_view typed(info->buffer, static_cast<size_t>(info->cursor - info->buffer));
    std::string common;
    bool is_found = false;
    for (const std::string& command : of(line).options_.commands) {
      if (typed.empty() || !command.starts_with(typed)) continue;
      const auto end = std::ranges::mismatch(common, command).in1;
      common = is_found ? std::string(common.begin(), end) : command + " ";
      is_found = true;
    }
    if (common.size() <= typed.size()) return CC_ERROR;
    return ::el_insertstr(line, common.c_str() + typed.size()) == 0 ? CC_REFRESH : CC_ERROR;
  }

  // Move between the lines of a message. Beyond its first or last line, they push the key that
  // moves in the history.
  static unsigned char up(EditLine* line, int /*key*/) { return move(line, -1, "\x10"); }
  static unsigned char down(EditLine* line, int /*key*/) { return move(line, 1, "\x0e"); }

  static unsigned char move(EditLine* line, int direction, const char* history_key) {
    const LineInfoW* info = ::el_wline(line);
    const std::wstring_view text(info->buffer, static_cast<size_t>(info->lastchar - info->buffer));
    const auto at = static_cast<size_t>(info->cursor - info->buffer);
    const size_t begin = at == 0 ? 0 : text.rfind(L'\n', at - 1) + 1;  // npos + 1 is 0
    const size_t end = std::min(text.find(L'\n', at), text.size());
    if (direction < 0 ? begin == 0 : end == text.size()) {
      ::el_push(line, history_key);
      return CC_NORM;
    }
    const size_t other =
        direction < 0 ? (begin < 2 ? 0 : text.rfind(L'\n', begin - 2) + 1) : end + 1;
    const size_t other_end = std::min(text.find(L'\n', other), text.size());
    const size_t to = std::min(other + (at - begin), other_end);
    ::el_cursor(line, static_cast<int>(to) - static_cast<int>(at));
    return CC_REFRESH;
  }

  Options options_;
  std::string prompt_;
  std::unique_ptr<std::FILE, CloseFile> out_;
  std::unique_ptr<EditLine, EndEditLine> line_;
  std::unique_ptr<History, EndHistory> history_;
  bool was_interrupted_ = false;
  std::string interrupted_;
  size_t num_lines_below_ = 0;  // lines of the interrupted message below the cursor
  std::string last_;            // the newest entry of the history
};

}  // namespace

std::vector<std::string> parse_history(std::string_view text) {
  std::vector<std::string> entries;
  for (const Line& line : split_lines(text)) {
    auto entry = parse_text_line(line.text, "history");
    if (entry.ok()) entries.push_back(std::move(*entry));
  }
  size_t num_bytes = 0;
  size_t num_kept = 0;
  while (num_kept < std::min(entries.size(), kMaxHistoryEntries)) {
    num_bytes += history_line(entries[entries.size() - 1 - num_kept]).size();
    if (num_bytes > kMaxHistoryBytes) break;
    ++num_kept;
  }
  entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(num_kept));
  return entries;
}

std::string history_line(std::string_view entry) {
  JsonWriter json;
  json.value(entry);
  return json.text() + "\n";
}

std::string history_path(const char* xdg_state_home, const char* home) {
  const auto is_absolute = [](const char* path) { return path != nullptr && *path == '/'; };
  constexpr std::string_view kFile = "/quire/chat_history.jsonl";
  if (is_absolute(xdg_state_home)) return fmt::format("{}{}", xdg_state_home, kFile);
  return is_absolute(home) ? fmt::format("{}/.local/state{}", home, kFile) : "";
}

std::string cleaned_paste(std::string_view text) {
  std::string cleaned;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '\r') {
      cleaned += '\n';
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
    } else if ((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t') {
      cleaned += text[i];
    }
  }
  return cleaned;
}

std::unique_ptr<LineEditor> LineEditor::open(Options options) {
  if (!is_editable_terminal()) return nullptr;
  use_utf8();
  return std::make_unique<TerminalEditor>(std::move(options));
}

}  // namespace quire::cli
