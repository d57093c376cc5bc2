// What a unit applies forward and backward, and how each tensor of it is divided there. Inside of
// lower/.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lower/unit_passes.h"

namespace placet {

/// One application of a kernel with the values that stand for its tensors: forward or backward.
struct Applied {
  int application = 0;
  int kernel = 0;  // of the program
  Place place = Place::stream;
  std::vector<int> from;     // backward: values whose gradients come in
  std::vector<int> reads;    // values that are read
  std::vector<int> to;       // values made; backward: values whose gradients are made
  std::vector<Spread> uses;  // by tensor of the kernel, inputs and outputs
  std::vector<Division> by;  // by dim of the kernel
  int ring = -1;             // the dim of the kernel whose pieces go round a ring
  /// Backward, between cut work: gradients that come in as parts of sums are put together first, as
  /// the derivative hangs on values, but for those of heads that several devices hold. Those of
  /// linear steps wait.
  bool completes = false;
  std::string key;
};

class UnitApplications {
 public:
  UnitApplications(Lowering& in, int kind, Again again);

  std::vector<Applied> forward;
  std::vector<bool> made_again;  // by forward application: backward runs it once more
  std::vector<Applied> backward;
  /// By backward application, if the schedule splits backward: the part that makes gradients of
  /// values, and that of parameters. An application without such a part has kernel -1.
  std::vector<Applied> for_inputs, for_weights;
  std::vector<std::vector<std::pair<int, int>>> passes;  // by backward application: to, from
  std::set<int> read;                                    // values that backward reads
  std::set<int> kept;                                    // values that forward leaves
  /// Values that all read alike, but in another layout than they are made in: tokens copied for
  /// experts, and others of which each device has as much there, as heads for tokens. These are
  /// brought there once and stay so.
  std::map<int, std::vector<Division>> exchanged;
  /// Where heads are exchanged, values that cores make and others read too in backward.
  std::set<int> kept_both_ways;
  bool hands_back = false;    // the unit before asks for the gradient of the stream
  bool kept_on_host = false;  // what is kept goes to host memory after forward, and comes back
  /// Axes of the mesh that divide the input of a unit that is made again whole, while it is kept.
  AxisList checkpoint_axes;

  const ReferenceKind& kind() const { return kind_; }
  /// Whether a value is the unit's input and divided while it is kept.
  bool is_checkpoint(int v) const { return !checkpoint_axes.empty() && v == kind_.stream_in; }

 private:
  Place place_of(int application) const;
  Applied applied_forward(int application);
  void add_backward(const BackwardApplication& b);
  /// The backward application as far as it makes gradients of the tensors `to` of the original.
  Applied applied_backward(const BackwardApplication& b, const std::vector<int>& to);
  /// Whether the gradients of these inputs hang on more than parameters and incoming gradients.
  bool hangs_on_values(const BackwardApplication& b, const std::vector<int>& to) const;
  bool is_made_again(int application, Again again) const;
  void spread_out(Applied& a);
  std::vector<int> bound_dims(const Kernel& kernel, const std::vector<int>& values) const;
  Division need(const Kernel& kernel, int d, int logical, Place place) const;
  void find_kept();
  /// Whether it is made by the unit: no parameter and no input.
  bool is_value(int v) const;
  void add_values(const std::vector<int>& from, std::set<int>& to) const;
  /// How each value is read, of those that all read alike.
  std::map<int, std::vector<Division>> read_alike() const;
  void find_exchanged();
  bool is_for_experts(int v) const;
  void find_kept_both_ways();

  Lowering& in_;
  const ReferenceKind& kind_;
  const UnitKind& source_;
  const KindMap& map_;
};

}  // namespace placet
