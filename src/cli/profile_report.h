// Where a device's time went, for people and for programs.
#pragma once

#include "base/json.h"
#include "platform/profile.h"

namespace quire::cli {

void print_profile(const DeviceProfile& profile);
// As the field "profile".
void write_profile(JsonWriter& json, const DeviceProfile& profile);

}  // namespace quire::cli
