#include "cli/profile_report.h"

#include <algorithm>

#include "cli/output.h"

namespace quire::cli {
namespace {

void print_share(const char* indent, const ProfileShare& share, double elapsed_s) {
  print_stdout("{}{:5.1f} %  {:10.3f} ms  {:8}  {}\n", indent, share.seconds / elapsed_s * 100,
               share.seconds * 1e3, share.count, share.name);
}

}  // namespace

void print_profile(const DeviceProfile& profile) {
  constexpr size_t kMostKernels = 12;
  print_stdout("Device time: {:.3f} s\n", profile.elapsed_s);
  for (const ProfileShare& share : profile.shares) print_share("  ", share, profile.elapsed_s);
  print_stdout("Kernels:\n");
  for (size_t i = 0; i < std::min(kMostKernels, profile.kernels.size()); ++i) {
    print_share("  ", profile.kernels[i], profile.elapsed_s);
  }
  const DecodeProfile& decode = profile.decode;
  if (decode.num_steps == 0) return;
  const double us = 1e6 / static_cast<double>(decode.num_steps);
  print_stdout(
      "Decode steps: {} of {:.1f} us; idle {:.1f} us ({:.2f} %) between steps, "
      "{:.1f} us ({:.2f} %) within\n",
      decode.num_steps, decode.seconds * us, decode.idle_between_seconds * us,
      decode.idle_between_seconds / decode.seconds * 100, decode.idle_within_seconds * us,
      decode.idle_within_seconds / decode.seconds * 100);
}

namespace {

void write_shares(JsonWriter& json, const char* name, const std::vector<ProfileShare>& shares) {
  json.key(name);
  json.begin_array();
  for (const ProfileShare& share : shares) {
    json.begin_object();
    json.field("name", share.name);
    json.field("count", share.count);
    json.field("seconds", share.seconds);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

void write_profile(JsonWriter& json, const DeviceProfile& profile) {
  json.key("profile");
  json.begin_object();
  json.field("elapsed_s", profile.elapsed_s);
  write_shares(json, "shares", profile.shares);
  write_shares(json, "kernels", profile.kernels);
  json.field("num_decode_steps", profile.decode.num_steps);
  json.field("decode_s", profile.decode.seconds);
  json.field("decode_idle_between_s", profile.decode.idle_between_seconds);
  json.field("decode_idle_within_s", profile.decode.idle_within_seconds);
  json.end_object();
}

}  // namespace quire::cli
