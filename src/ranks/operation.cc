#include "ranks/operation.h"

#include <algorithm>

#include "units/checked.h"

namespace placet::ranks {
namespace {

bool overlap(std::int64_t a, std::int64_t a_size, std::int64_t b, std::int64_t b_size) {
  return a < b + b_size && b < a + a_size;
}

}  // namespace

const KernelCode* KernelLibrary::compiled(const Kernel& kernel, const Extents& extents) {
  const auto key = std::make_pair(&kernel, extents);
  const auto found = codes_.find(key);
  if (found != codes_.end()) return &found->second;
  return &codes_.emplace(key, compile(kernel, extents, tables_)).first->second;
}

std::int64_t OperationList::reserve(std::int64_t elements) {
  const std::int64_t address = memory;
  memory = checked_add(memory, elements, "elements");
  return address;
}

void OperationList::add_transfer(std::int64_t length, const std::vector<std::int64_t>& sources,
                                 const std::vector<std::int64_t>& targets) {
  if (length == 0) return;
  Transfer transfer{.length = length, .sources = addresses.size(), .source_count = sources.size()};
  addresses.insert(addresses.end(), sources.begin(), sources.end());
  transfer.targets = addresses.size();
  transfer.target_count = targets.size();
  addresses.insert(addresses.end(), targets.begin(), targets.end());
  transfers.push_back(transfer);
}

Operation& OperationList::add_move(std::size_t first, Combine combine) {
  return operations.emplace_back(
      Operation{.first = first, .count = transfers.size() - first, .combine = combine});
}

Operation& OperationList::add_call(const KernelCode& code, const std::vector<std::int64_t>& tensors,
                                   int inputs) {
  Operation& op = operations.emplace_back(Operation{.code = &code, .addresses = addresses.size()});
  addresses.insert(addresses.end(), tensors.begin(), tensors.end());
  const auto size = [&](std::size_t t) { return static_cast<std::int64_t>(code.sizes[t]); };
  for (auto o = static_cast<std::size_t>(inputs); o < tensors.size(); ++o) {
    for (std::size_t i = 0; i < o; ++i) {
      op.overlaps = op.overlaps || overlap(tensors[i], size(i), tensors[o], size(o));
    }
  }
  return op;
}

}  // namespace placet::ranks
