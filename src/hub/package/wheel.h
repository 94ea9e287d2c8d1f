// The parts of a wheel (a Python package as a zip archive) that contain a model.
#pragma once

#include <string>
#include <string_view>

#include "hub/package/zip.h"
#include "quire/status.h"

namespace quire::hub {

// Returns the only GGUF file. Fails if the wheel has no GGUF file, or several.
Result<const ZipEntry*> find_gguf_entry(const ZipArchive& wheel);

// Returns the text of the licence files in *.dist-info and beside `gguf`. Without such files,
// returns the lines of METADATA about the licence, after a line that states that there is no
// licence file.
Result<std::string> licence_text(const ZipArchive& wheel, const ZipEntry& gguf);

}  // namespace quire::hub
