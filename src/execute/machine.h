// Lists of operations run on real numbers: the reference's and all ranks' alike
// (docs/theory.md §6.11).
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>
#include <vector>

#include "execute/kernel_run.h"
#include "execute/watched.h"
#include "ranks/operation.h"

namespace placet::execute {

using ranks::Operation;
using ranks::OperationList;
using ranks::Transfer;

/// The memory of a list and what is known of it element by element.
template <class Numbers>
struct Memory {
  static constexpr bool kHasLevels = std::is_same_v<typename Numbers::Stored, Number>;

  std::vector<typename Numbers::Stored> numbers;
  std::vector<Level> levels;  // of exact numbers; floating ones have none

  explicit Memory(std::size_t size = 0) : numbers(size), levels(kHasLevels ? size : 0, 0) {}

  std::int64_t bytes() const {
    return static_cast<std::int64_t>(numbers.size() * sizeof(typename Numbers::Stored) +
                                     levels.size() * sizeof(Level));
  }
};

/// What is told of each operation that moves data, before it does.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void moves(const OperationList& list, const Operation& op) = 0;
};

/// What is told of each operation, before and after it is done.
class CallWatcher {
 public:
  virtual ~CallWatcher() = default;
  virtual void before(std::size_t operation) = 0;
  virtual void after(std::size_t operation) = 0;
};

/// Runs lists of operations, with room that it keeps.
template <class Numbers>
class Machine {
 public:
  using Stored = typename Numbers::Stored;
  explicit Machine(const FunctionTable& functions) : runner_(functions) {}

  /// Numbers of these elements are rounded to narrower formats when they are stored; empty: none.
  std::vector<Dtype> formats;
  Watcher* watcher = nullptr;       // of moves; null: none
  std::vector<CallWatcher*> calls;  // of all operations
  std::optional<Upset> upset;
  Slip slip = Slip::none;

  /// One step, counted from 0. The number of the operation whose results are out of range; none:
  /// all were done.
  std::optional<std::size_t> run(const OperationList& list, Memory<Numbers>& memory, int step);
  /// One operation of a step. False: its results are out of range.
  bool run_one(const OperationList& list, const Operation& op, Memory<Numbers>& memory, int step) {
    return op.code == nullptr ? move(list, op, memory)
                              : call(list, op, memory, context_of(list, op, step));
  }

 private:
  void change(Memory<Numbers>& memory) const;
  bool call(const OperationList& list, const Operation& op, Memory<Numbers>& memory,
            const CallContext& context);
  bool move(const OperationList& list, const Operation& op, Memory<Numbers>& memory);
  void read_levels(const OperationList& list, const Operation& op, const Memory<Numbers>& memory);
  void put_staged(std::size_t from, std::size_t to, std::size_t length,
                  Memory<Numbers>& memory) const;
  bool move_directly(const OperationList& list, const Operation& op, Memory<Numbers>& memory);
  bool gather(const OperationList& list, const Operation& op, const Memory<Numbers>& memory);
  CallContext context_of(const OperationList& list, const Operation& op, int step) const;
  struct Taken {
    std::size_t from = 0;
    std::size_t to = 0;
    std::size_t length = 0;
    bool is_first = true;  // of all that come together there
    Combine combine = Combine::sum;
  };
  bool take(const Memory<Numbers>& memory, const Taken& taken);
  void round_stored(std::size_t address, std::size_t size, Memory<Numbers>& memory) const;

  KernelRunner<Numbers> runner_;
  std::vector<Stored> staged_;
  std::vector<Level> staged_levels_;
  std::vector<Stored*> tensors_;
  std::vector<Level> levels_;
};

extern template class Machine<CanonicalNumbers>;
extern template class Machine<PlainNumbers<float>>;
extern template class Machine<PlainNumbers<double>>;

/// The nearest number of a format of 16 or 32 bits; others are left as they are.
double rounded_to(Dtype format, double x);

}  // namespace placet::execute
