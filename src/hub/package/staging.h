// The folder `.incomplete` in the model folder. Models are prepared and deleted in it, so that the
// model folder has only complete models:
//   NAME.lock       held by the command that downloads or removes the model
//   NAME/wheels     the downloaded files
//        temporary  pip's own files
//        model      becomes the model's folder
//        old        the replaced model, where a file system cannot exchange two folders
// During `quire rm`, NAME is the removed folder itself. NAME remains if a command is killed; the
// next download of any model deletes all folders whose lock is free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hub/pull/hub_client.h"
#include "hub/pull/local_files.h"
#include "quire/status.h"

namespace quire::hub {

// Owns the lock of one model. Deletes the model's folder in `.incomplete` at the end.
class Staging {
 public:
  // Waits for the lock, and deletes the files of an earlier command. Fails if `.incomplete` is a
  // link.
  static Result<Staging> create(const std::filesystem::path& models, const std::string& name,
                                const PullState& state);
  // Does the same without waiting or messages; returns nullopt if another command has the lock.
  static std::optional<Staging> try_create(const std::filesystem::path& models,
                                           const std::string& name);
  Staging(Staging&& other) noexcept = default;
  ~Staging();

  // The size of an earlier command's files that create() has deleted.
  int64_t num_left_bytes() const { return num_left_bytes_; }

  std::filesystem::path path() const { return path_; }
  std::filesystem::path wheels() const { return path_ / "wheels"; }
  std::filesystem::path temporary() const { return path_ / "temporary"; }
  std::filesystem::path model() const { return path_ / "model"; }
  Status make_folders() const;

  // Adds to model() the files of the installed model that model() lacks, and returns their names.
  // The installed model does not change, so that an interrupt loses nothing.
  Result<std::vector<std::string>> keep_other_files() const;
  // Moves model() to the installed model's path, and an installed model to `.incomplete`.
  Status install() const;
  // Moves the installed model out of the model folder and deletes it. Returns its bytes.
  Result<int64_t> remove_installed() const;

 private:
  Staging(const std::filesystem::path& models, const std::string& name, Descriptor lock);

  std::filesystem::path old() const { return path_ / "old"; }
  Status restore_old() const;
  Status clean();

  std::filesystem::path installed_;
  std::filesystem::path path_;
  Descriptor lock_;
  int64_t num_left_bytes_ = 0;
};

// Deletes the files that killed commands left, and calls note() with one line per model.
void clean_incomplete(const std::filesystem::path& models,
                      const std::function<void(const std::string& line)>& note);

// Returns the model's folder in `.incomplete`, which a killed or running command has made; empty:
// no folder.
std::filesystem::path find_incomplete(const std::filesystem::path& models, std::string_view name);

// Deletes the model and the files that a killed command left of it. Returns the bytes. Follows no
// links.
Result<int64_t> remove_model(const std::filesystem::path& models, const std::string& name,
                             const PullState& state);

}  // namespace quire::hub
