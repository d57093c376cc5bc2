// One unit as the rules of communication see it, and the list of terms that they write. Inside of
// the files *_traffic.cc.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "derive/communication.h"
#include "derive/routed_exchange.h"
#include "derive/unit_view.h"

namespace placet {

class UnitTraffic : public UnitView {
 public:
  UnitTraffic(const Layout& of, int unit, bool recomputed);

  struct Message {
    std::string_view what;
    Collective collective = Collective::all_reduce;
    Phase phase = Phase::forward;
    AxisMask axes = 0;
    std::int64_t elements = 0;  // of the payload
    Dtype dtype = Dtype::bf16;
    std::int64_t count = 1;                                  // per micro-batch
    ReduceOp op = ReduceOp::sum;                             // of collectives that reduce
    bool nvme = false;                                       // of host copies
    const std::vector<BlockConstants>* constants = nullptr;  // of its blocks, sent with them
  };

  /// Adds a term per micro-batch, unless its group is one device or nothing is sent.
  void add(const Message& message);
  std::vector<UnitTerm> take() { return std::move(terms_); }

  std::size_t axis_count() const { return job.placement.axes.size(); }
  const AxisPlacement& axis(std::size_t a) const { return job.placement.axes[a]; }

  /// How an operator's tensors see an axis.
  const How& how_for(std::size_t a, std::size_t op) const;

  /// Tensor axes that cut an index of an operator which `from` has and `without` has not.
  AxisMask axes_that_cut(std::size_t op, IndexSet from, IndexSet without) const;

  /// Whether backward runs the operator again to the point where it reads its inputs; and to its
  /// end. An engine may stop once the last value that backward needs is there.
  bool starts_again(std::size_t op) const;
  bool ends_again(std::size_t op) const;

  /// Whether an operator works on routed tokens, their sending and coming back included.
  bool is_routed(const Operator& op) const;

  /// The format of a value on the wire.
  Dtype dtype_of(const Value& value) const;

  int number() const { return number_; }  // of the local unit, in Layout::units
  bool recomputed() const { return recomputed_; }

 private:
  bool keeps_something(const Operator& op) const;

  int number_ = 0;
  bool recomputed_ = false;
  std::size_t last_needed_ =
      0;  // one past the last operator that a recomputation runs to its inputs
  std::vector<UnitTerm> terms_;
};

/// The rules of single operators: attention over a cut sequence, routed tokens, statistics of cut
/// norms and of the loss, activations that rest elsewhere.
void write_operators(UnitTraffic& unit);

/// Of write_operators: an attention; the dispatch and the combine of routed tokens.
void write_attention(UnitTraffic& unit, std::size_t op);
void write_sent_tokens(UnitTraffic& unit, std::size_t op);
void write_returned_tokens(UnitTraffic& unit, std::size_t op);

/// Indices of some dims.
IndexSet indices_in(const std::vector<Dim>& dims);

}  // namespace placet
