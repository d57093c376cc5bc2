// The requests of one unit of a model on one device: values, gradients and workspaces in the order
// in which its operators run, forward, again for what is recomputed, and backward. What
// unit_memory.h counts is allocated and released here, one block at a time (docs/theory.md §3.6).
#pragma once

#include <cstdint>
#include <vector>

#include "derive/device_pools.h"
#include "derive/gradient_shares.h"
#include "derive/layout.h"
#include "derive/routed_exchange.h"
#include "derive/unit_memory.h"
#include "derive/unit_view.h"

namespace placet {

/// What is known of one unit before the first request.
struct UnitFacts {
  const UnitKind* kind = nullptr;
  const PreparedKind* prepared = nullptr;
  const LocalUnit* local = nullptr;
  const SavedPlan* plan = nullptr;
  int number = 0;  // of the local unit, in Layout::units
  bool recomputed = false;
  std::vector<std::int64_t> sizes;  // bytes of each value, and of its gradient
  std::vector<std::int64_t> held;   // of the value, in two layouts where both are kept
  UnitMemory memory;
  RoutedExchange routed;
  Rational off_device{0};      // the part of what it keeps that goes to host memory or NVMe
  bool divides_input = false;  // what it keeps of its input is a part of what it was given
};

/// Facts of local unit `unit`, recomputed or not.
UnitFacts unit_facts(const Layout& layout, int unit, bool recomputed);

/// Buffers of one unit in one micro-batch, from its forward to its backward.
struct UnitBuffers {
  std::vector<CachingPool::Handle> values;  // by value, roots only
  std::vector<CachingPool::Handle> loss;    // what the loss leaves for backward
};

class UnitReplay {
 public:
  using Handle = CachingPool::Handle;

  /// All three must outlive the replay.
  UnitReplay(const Job& job, const Layout& layout, DevicePools& pools);

  /// Runs one unit forward. `input` is handed over by the unit before (0: the unit makes its own);
  /// the output is returned and not released. Values that are not kept vanish after their last use.
  Handle forward(const UnitFacts& unit, UnitBuffers& buffers, Handle input);

  /// Runs it backward from the gradient of its output to that of its input, which is returned.
  /// Gradients of weights are added to `held`; the caller releases them.
  Handle backward(const UnitFacts& unit, UnitBuffers& buffers, Handle incoming,
                  std::vector<Handle>& held);

 private:
  void run_forward(const UnitFacts& unit, std::size_t o, UnitBuffers& buffers);
  void put_away(const UnitFacts& unit, UnitBuffers& buffers);
  void bring_back(const UnitFacts& unit, UnitBuffers& buffers);
  void make_again(const UnitFacts& unit, UnitBuffers& buffers);
  void run_again(const UnitFacts& unit, UnitBuffers& buffers);
  void run_again(const UnitFacts& unit, std::size_t o, const std::vector<bool>& stays,
                 UnitBuffers& buffers);
  void end_backward(const UnitFacts& unit, std::size_t o, UnitBuffers& buffers,
                    std::vector<Handle>& held);
  bool has_second_summand(const UnitFacts& unit, std::size_t o) const;
  void add_second_summand(const UnitFacts& unit, std::size_t o);
  bool comes_after(const UnitFacts& unit, const Operator& op, int v) const;
  void run_backward(const UnitFacts& unit, std::size_t o, std::vector<Handle>& adjoints,
                    std::vector<Handle>& held);
  void run_loss(const UnitFacts& unit, const Operator& op, UnitBuffers& buffers);
  void drop_after(const UnitFacts& unit, int v, UnitBuffers& buffers);
  void weigh(const UnitFacts& unit, const Operator& op, std::vector<Handle>& held);
  void scatter_gradients(const UnitFacts& unit, const PreparedOperator& facts);
  void launch(const UnitFacts& unit);
  void gather_inputs(const UnitFacts& unit, const Operator& op);
  void exchange(std::int64_t bytes);
  void make_gradients(const UnitFacts& unit, std::size_t o, std::vector<Handle>& adjoints);
  void join_shares(int v);
  void borrow(const UnitFacts& unit, const Operator& op, Pass pass);
  void allocate(const UnitFacts& unit, UnitBuffers& buffers, int v);
  void release(UnitBuffers& buffers, int v);
  void release_all(std::vector<Handle>& handles);
  void release_values(UnitBuffers& buffers);

  const Job& job_;
  const Profile& profile_;
  const Layout& layout_;
  DevicePools& pools_;
  bool hands_over_late_;  // buffers of collectives come back late
  /// What lives while the operator at hand runs: kept to be filled again without new memory.
  std::vector<Handle> borrowed_;
  std::vector<Handle> temporary_;
  std::vector<Handle> passing_;        // casts of weights that the loss's forward still sees
  GradientShares shares_{0};           // of the unit whose backward runs
  std::vector<Handle> second_shares_;  // by value: of those that stand apart
};

}  // namespace placet
