// The index of a checkpoint: what was trained, how far, on which mesh, and where each rank's part
// of each tensor stands (docs/formats.md, section 19).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "execute/state.h"

namespace placet::checkpoint {

/// The words of a job as a user gave them, by flag: {"model", {"gpt2"}}.
using JobWords = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// What a checkpoint says of itself beside its tensors.
struct CheckpointFacts {
  int steps = 0;     // that were made
  std::string mode;  // "canonical"
  JobWords job;      // of a step program from a file: its path as the model
  std::vector<std::pair<std::string, std::int64_t>> mesh;  // axes with their degrees
  std::vector<std::string> meanings;                       // "learning-rate=0.001"

  friend bool operator==(const CheckpointFacts&, const CheckpointFacts&) = default;
};

/// A slice and the stored tensor that holds it. Replicas with the same bits share one.
struct IndexedSlice {
  execute::StateSlice slice;
  int file = 0;      // of the rank with this number
  std::string name;  // in that file
  std::string digest;

  friend bool operator==(const IndexedSlice&, const IndexedSlice&) = default;
};

struct CheckpointIndex {
  CheckpointFacts facts;
  int ranks = 0;
  std::vector<IndexedSlice> slices;

  friend bool operator==(const CheckpointIndex&, const CheckpointIndex&) = default;
};

inline constexpr std::string_view kIndexFile = "index.json";
/// "rank-00003.safetensors".
std::string file_of_rank(int rank);

std::string text_of(const CheckpointIndex& index);
/// Reads the text of an index strictly. Throws InputError with the key.
CheckpointIndex index_from(std::string_view text, const std::string& where);

/// A number for a run of bytes, in hexadecimal digits: one that is changed by chance has another.
class Digest {
 public:
  void add(std::span<const std::byte> bytes);
  std::string text() const;

 private:
  std::uint64_t value_ = 0x9e3779b97f4a7c15U;
  std::uint64_t word_ = 0;
  unsigned filled_ = 0;
  std::uint64_t length_ = 0;
};

}  // namespace placet::checkpoint
