// Everything that is computed and moved, in the order in which it happens, over one memory. The
// reference and the program with all its ranks are both brought into this form, and run alike.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ranks/kernel_code.h"
#include "ranks/local_shape.h"

namespace placet::ranks {

/// Compiled kernels by kernel and extents. Keeps addresses of kernels, which must outlive it.
class KernelLibrary {
 public:
  explicit KernelLibrary(Tables tables = Tables::made) : tables_(tables) {}
  const KernelCode* compiled(const Kernel& kernel, const Extents& extents);

 private:
  Tables tables_;
  std::map<std::pair<const Kernel*, Extents>, KernelCode> codes_;
};

/// Runs of elements of the memory, element by element: each target becomes the combination of the
/// sources; without sources, zero. Addresses stand in OperationList::addresses.
struct Transfer {
  std::int64_t length = 0;
  std::size_t sources = 0;
  std::size_t source_count = 0;
  std::size_t targets = 0;
  std::size_t target_count = 0;
};

/// A call of a kernel, or transfers that happen at once: all sources are read before a target is
/// written.
struct Operation {
  const KernelCode* code = nullptr;  // null: transfers
  // Calls. Addresses of the kernel's inputs and outputs follow each other.
  std::size_t addresses = 0;
  std::ptrdiff_t begins = -1;  // of the kernel's dims, in OperationList::begins; -1: all 0
  std::ptrdiff_t wholes = -1;  // extents of the dims that the kernel's are parts of, likewise; -1:
                               // those that it is called with
  bool draws = false;
  std::uint64_t draw = 0;
  Rational factor{1};
  bool overlaps = false;  // an output is an input too
  // Transfers.
  std::size_t first = 0;
  std::size_t count = 0;
  Combine combine = Combine::sum;
  // Where it comes from, for messages.
  int rank = -1;
  int instruction = -1;
  int step = -1;  // done in that step only, counted from 0; -1: in every step
};

struct OperationList {
  std::vector<Operation> operations;
  std::vector<std::int64_t> addresses;
  std::vector<Transfer> transfers;
  std::vector<std::int64_t> begins;
  std::vector<std::int64_t> wholes;
  std::int64_t memory = 0;  // elements

  /// Room for so many elements; gives its address.
  std::int64_t reserve(std::int64_t elements);
  void add_transfer(std::int64_t length, const std::vector<std::int64_t>& sources,
                    const std::vector<std::int64_t>& targets);
  /// Makes one operation of the transfers from number `first` on.
  Operation& add_move(std::size_t first, Combine combine);
  /// Calls a kernel on tensors at these addresses, inputs first.
  Operation& add_call(const KernelCode& code, const std::vector<std::int64_t>& tensors, int inputs);
};

}  // namespace placet::ranks
