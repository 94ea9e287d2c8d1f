// Receives XGrammar's messages. A fatal message is caused by a request's grammar, and becomes an
// exception that src/grammar catches.
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/log.h"
#include "grammar/xgrammar_api.h"

namespace quire::grammar {
namespace {

constinit thread_local WarningScope* current_scope = nullptr;

// An unknown escape stands for the character itself. With overlapping branches of oneOf, an answer
// still matches at least one of them.
bool is_harmless(std::string_view message) {
  return message.find("The character itself will be matched") != std::string_view::npos ||
         message.find("falling back to anyOf semantics") != std::string_view::npos;
}

}  // namespace

WarningScope::WarningScope() {
  current_scope = this;
}

WarningScope::~WarningScope() {
  current_scope = nullptr;
}

void note_warning(const std::string& message) {
  if (current_scope == nullptr || is_harmless(message)) return;
  if (current_scope->first_.empty()) current_scope->first_ = message;
}

}  // namespace quire::grammar

namespace xgrammar {

// Declared in XGrammar's support/logging.h for programs that define XGRAMMAR_LOG_CUSTOMIZE.
[[noreturn]] void LogFatalImpl(const std::string& file, int lineno, const std::string& message);
void LogMessageImpl(const std::string& file, int lineno, int level, const std::string& message);

void LogFatalImpl(const std::string&, int, const std::string& message) {
  throw std::runtime_error(message);
}

void LogMessageImpl(const std::string&, int, int level, const std::string& message) {
  constexpr int kWarning = 2;
  if (level == kWarning) quire::grammar::note_warning(message);
  quire::log_debug("[xgrammar] {}", message);
}

}  // namespace xgrammar
