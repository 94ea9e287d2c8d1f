#pragma once

namespace quire::cli {

// Parses the command line, runs the command and returns the exit code.
int run_app(int argc, const char* const* argv);

}  // namespace quire::cli
