// The checkpoint of one placement as that of another (docs/theory.md §6.11).
#pragma once

#include "checkpoint/checkpoint.h"

namespace placet::checkpoint {

/// The state that a checkpoint holds, in the slices of other ranks. Numbers are read when they are
/// asked for, slice by slice, so that no more than one is there at a time.
class Resharded : public execute::StateView {
 public:
  /// Throws InputError where the slices are not of the tensors that the checkpoint holds.
  Resharded(const Checkpoint& from, std::vector<execute::StateSlice> slices);

  const std::vector<execute::StateSlice>& slices() const override { return slices_; }
  /// Throws InputError where ranks of the checkpoint hold different numbers, or none holds some.
  execute::EncodedSlice numbers(std::size_t slice) const override;

 private:
  template <class Stored>
  execute::EncodedSlice gathered(const execute::StateSlice& target) const;
  template <class Stored>
  std::int64_t take(const execute::StateSlice& target, const IndexedSlice& source,
                    std::vector<Stored>& numbers, std::vector<char>& known) const;
  [[noreturn]] void refuse_drift(const std::string& tensor, int rank) const;
  Dtype source_format(const execute::StateSlice& target) const;
  void check_tensors() const;

  const Checkpoint& from_;
  std::vector<execute::StateSlice> slices_;
  /// By tensor: slices of the checkpoint, of those that share their bits the first.
  std::map<std::string, std::vector<const IndexedSlice*>> sources_;
};

/// The runs of a slice, from entries of its tensor to entries of its own, both ascending.
/// Case: columns 2 and 3 of a tensor [2 4]: {2, 0, 2} and {6, 2, 2}.
std::vector<ranks::Run> runs_of(const execute::StateSlice& slice);
/// The entries that both have: from places in the first to places in the second.
std::vector<ranks::Run> shared_runs(const std::vector<ranks::Run>& a,
                                    const std::vector<ranks::Run>& b);

}  // namespace placet::checkpoint
