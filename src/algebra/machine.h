// Lists of operations run over F_p: the reference's and all ranks' alike.
#pragma once

#include <optional>
#include <vector>

#include "algebra/kernel_run.h"
#include "ranks/operation.h"

namespace placet::algebra {

using ranks::Operation;
using ranks::OperationList;
using ranks::Transfer;

/// Runs lists of operations, with room that it keeps.
class Machine {
 public:
  /// The number of the operation that divided by zero; none: all were done.
  std::optional<std::size_t> run(const OperationList& list, std::vector<Element>& memory,
                                 const KeyedHash& hash, int step);

 private:
  bool call(const OperationList& list, const Operation& op, Element* memory,
            const CallContext& context);
  void move(const OperationList& list, const Operation& op, Element* memory);

  KernelRunner runner_;
  std::vector<Element> staged_;
  std::vector<Element*> tensors_;
};

}  // namespace placet::algebra
