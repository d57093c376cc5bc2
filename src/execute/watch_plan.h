// What a run of a proven program is watched for: which entries that kernels write are what which
// kernels read (docs/theory.md §6.11).
//
// Between kernels data is only copied, sent and added. So an entry that a kernel reads is a sum of
// entries that kernels have written before, or that rested when the step began; which ones follows
// from the list of operations alone. Entries that are added have the same label: their place in
// the logical tensor.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "execute/sketch.h"
#include "ranks/plan.h"

namespace placet::execute {

/// What a kernel reads and did not get from a kernel of its own rank just so, or what rests when
/// the step ends.
struct Reading {
  std::vector<LabelRun> runs;  // of all its entries, in their order
  std::string tensor;
  int rank = 0;
  bool is_state = false;  // it rests, or comes from nowhere but what rested
  bool is_gradient = false;
  std::string at;         // the instruction, or the end of the step
  std::vector<int> axes;  // that data was sent along on the way
  int sources = 0;        // pieces that it is the sum of
};

/// Entries that are written together and read by the same readings.
struct Writing {
  std::int64_t offset =
      0;  // from the tensor that is written; of what rests, its address in the plan
  std::vector<LabelRun> runs;
  int readers = 0;  // position in WatchPlan::readers
};

struct WatchedOperation {
  /// Where tensors that are read begin, and their readings; -1: not watched.
  std::vector<std::pair<std::int64_t, int>> readings;
  std::vector<std::pair<std::int64_t, Writing>> writings;
};

/// A part of a tensor of the training that rests on a rank.
struct WatchedRegion {
  const ranks::Region* region = nullptr;
  int reading = 0;
};

class WatchPlan {
 public:
  /// Of a program and its plan, which are those that were proven and must outlive it.
  WatchPlan(const Program& program, const ranks::ProgramPlan& plan, ranks::Mesh& mesh);

  const WatchedOperation& at(std::size_t operation) const { return operations_.at(operation); }
  const std::vector<Reading>& readings() const { return readings_; }
  const std::vector<int>& readers(int set) const { return sets_[static_cast<std::size_t>(set)]; }
  const std::vector<Writing>& resting() const { return resting_; }
  const std::vector<WatchedRegion>& regions() const { return regions_; }
  /// Gives all runs the weights of their labels.
  void weigh(const SketchWeights& weights);

 private:
  using Labels = std::vector<std::int64_t>;

  // Forwards: labels.
  void label_all();
  void label_region(const ranks::Region& region);
  void label_call(std::size_t op);
  void label_move(std::size_t op);
  bool has_one_label(const ranks::Transfer& transfer, std::int64_t k) const;
  bool keeps_labels(const ranks::Operation& op) const;
  std::int64_t label_of_sources(const ranks::Transfer& transfer, std::int64_t k) const;
  Labels labels_of_sources(const ranks::Operation& op) const;
  Labels labelled_anew(std::size_t op);
  const Labels& labels_of(int rank, const ranks::ListedRef& ref);
  const ranks::ListedInstruction& listed(const ranks::Operation& op) const;
  std::vector<LabelRun> runs_at(std::int64_t address, std::int64_t length) const;
  void read_at(std::size_t op, std::int64_t address, std::int64_t length, Reading reading);
  std::string name_of(int rank, const ranks::ListedRef& ref) const;
  Reading reading_of(const ranks::Operation& op, std::size_t tensor) const;
  void watch_regions();

  // Backwards: who reads.
  void follow_back();
  void follow_resting(std::int64_t begin, std::int64_t last);
  void rest_between(std::int64_t begin, std::int64_t end);
  void follow_call(std::size_t op);
  void follow_move(std::size_t op);
  int readers_of_target(const ranks::Transfer& transfer, std::int64_t k);
  std::vector<int> readers_of_targets(const ranks::Operation& op);
  void write_anew(std::size_t op, std::int64_t to, std::int64_t length);
  void add_readers(std::int64_t from, std::int64_t length, const int* sets);
  void add_reader(std::int64_t address, std::int64_t length, int reading);
  std::vector<Writing> taken(std::int64_t address, std::int64_t length, std::int64_t base,
                             const Labels& labels);
  void leave_out_local();
  int joined(int a, int b);
  int set_of(std::vector<int> members);
  void note_axes(const ranks::Operation& op, const std::vector<int>& sets);
  std::int64_t element(std::size_t place) const;  // an address of the list

  const Program& program_;
  const ranks::ProgramPlan& plan_;
  ranks::Mesh& mesh_;
  std::vector<WatchedOperation> operations_;
  std::vector<Reading> readings_;
  std::vector<WatchedRegion> regions_;
  std::vector<Writing> resting_;
  std::vector<std::vector<int>> sets_{{}};
  std::map<std::vector<int>, int> set_numbers_{{{}, 0}};
  std::map<std::pair<int, int>, int> unions_;
  Labels labels_;                // by address
  Labels first_labels_;          // likewise, when the step begins
  std::vector<int> readers_;     // by address, while followed back: a set
  std::vector<char> is_opaque_;  // by operation: what it moves is read and written as by a kernel
  std::map<std::pair<int, std::pair<int, int>>, Labels> known_labels_;  // by rank, form and piece
  std::vector<bool> rested_;  // by reading: something of it rested
  std::vector<bool> made_;    // likewise: something of it was written in the step
  std::vector<bool> moved_;   // likewise: it was copied, sent or added on the way
};

}  // namespace placet::execute
