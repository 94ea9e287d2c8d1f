// Reports where a device's time went, as text and as JSON.
#pragma once

#include "base/json.h"
#include "platform/platform.h"

namespace quire::cli {

void print_profile(const DeviceProfile& profile);
// Writes the field "profile".
void write_profile(JsonWriter& json, const DeviceProfile& profile);

}  // namespace quire::cli
