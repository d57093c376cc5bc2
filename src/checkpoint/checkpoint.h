// Checkpoints: the state of all ranks between two steps, one file of tensors per rank and an index
// (docs/formats.md, section 19).
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "checkpoint/index.h"
#include "checkpoint/safetensors.h"

namespace placet::checkpoint {

/// Throws InputError that speaks of `flag` where there is something at `folder` already, or where
/// nothing can be written: before work whose result would go there.
void require_new_folder(const std::filesystem::path& folder, const std::string& flag);

/// Throws InputError that speaks of `flag` where no index can hold such facts, as a word of them is
/// not UTF-8: before work whose result would be written with them.
void require_facts(const CheckpointFacts& facts, const std::string& flag);

/// Writes the state into a new folder: whole, or not at all. Holds one slice of it at a time, and
/// the same one of another rank beside it. Returns the bytes of the tensors stored. Throws
/// InputError that speaks of `flag`.
std::int64_t write_checkpoint(const std::filesystem::path& folder, const CheckpointFacts& facts,
                              const execute::StateView& state, const std::string& flag);

/// A checkpoint whose index, headers and digests have been read and agree.
class Checkpoint : public execute::StateSource {
 public:
  /// Throws InputError where something is missing, broken or foreign. Reads all files once.
  explicit Checkpoint(std::filesystem::path folder);

  const CheckpointFacts& facts() const { return index_.facts; }
  const std::vector<IndexedSlice>& slices() const { return index_.slices; }
  const std::string& where() const { return where_; }
  int ranks() const { return index_.ranks; }

  int steps() const override { return index_.facts.steps; }
  /// All of a rank's slice. Throws InputError where it has no such slice.
  execute::EncodedSlice numbers(const execute::StateSlice& slice) const override;
  /// `count` entries of a slice from number `first` of its own on.
  execute::EncodedSlice part(const IndexedSlice& slice, std::int64_t first,
                             std::int64_t count) const;

 private:
  struct Place {
    StoredTensor tensor;
    execute::Encoding encoding = execute::Encoding::f32;
  };
  void check_files();
  void check_file(int rank, std::map<std::string, std::string>& digests);
  const SafetensorsFile& file(int rank) const;

  std::filesystem::path folder_;
  std::string where_;
  CheckpointIndex index_;
  std::map<std::pair<int, std::string>, Place> places_;  // by file and name
  std::map<std::string, std::size_t> positions_;         // of slices, by what they are
  mutable std::map<int, SafetensorsFile> open_;
};

}  // namespace placet::checkpoint
