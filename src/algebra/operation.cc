#include "algebra/operation.h"

#include <algorithm>

#include "units/checked.h"

namespace placet::algebra {
namespace {

bool overlap(std::int64_t a, std::int64_t a_size, std::int64_t b, std::int64_t b_size) {
  return a < b + b_size && b < a + a_size;
}

void combine(Combine how, const Element* from, std::int64_t length, Element* to) {
  for (std::int64_t i = 0; i < length; ++i) to[i] = combined(how, to[i], from[i]);
}

}  // namespace

const KernelCode* KernelLibrary::compiled(const Kernel& kernel, const Extents& extents) {
  const auto key = std::make_pair(&kernel, extents);
  const auto found = codes_.find(key);
  if (found != codes_.end()) return &found->second;
  return &codes_.emplace(key, compile(kernel, extents)).first->second;
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

std::optional<std::size_t> Machine::run(const OperationList& list, std::vector<Element>& memory,
                                        const KeyedHash& hash, int step) {
  for (std::size_t i = 0; i < list.operations.size(); ++i) {
    const Operation& op = list.operations[i];
    if (op.step >= 0 && op.step != step) continue;
    if (op.code == nullptr) {
      move(list, op, memory.data());
      continue;
    }
    CallContext context{.hash = hash, .factor = op.factor};
    if (op.begins >= 0) context.begins = list.begins.data() + op.begins;
    if (op.draws) context.draw = mixed(op.draw + static_cast<std::uint64_t>(step));
    if (!call(list, op, memory.data(), context)) return i;
  }
  return std::nullopt;
}

bool Machine::call(const OperationList& list, const Operation& op, Element* memory,
                   const CallContext& context) {
  const auto count = static_cast<std::size_t>(op.code->arguments);
  tensors_.clear();
  for (std::size_t t = 0; t < count; ++t) {
    tensors_.push_back(memory + list.addresses[op.addresses + t]);
  }
  if (!op.overlaps) return runner_.run(*op.code, tensors_.data(), context);
  // All arguments are made elsewhere and brought home afterwards, the outputs last.
  std::size_t size = 0;
  for (std::size_t t = 0; t < count; ++t) size += op.code->sizes[t];
  staged_.resize(size);
  std::vector<Element*> homes = tensors_;
  Element* next = staged_.data();
  for (std::size_t t = 0; t < count; ++t) {
    std::copy_n(homes[t], op.code->sizes[t], next);
    tensors_[t] = next;
    next += op.code->sizes[t];
  }
  if (!runner_.run(*op.code, tensors_.data(), context)) return false;
  for (auto t = static_cast<std::size_t>(op.code->inputs); t < count; ++t) {
    std::copy_n(tensors_[t], op.code->sizes[t], homes[t]);
  }
  return true;
}

void Machine::move(const OperationList& list, const Operation& op, Element* memory) {
  std::size_t size = 0;
  for (std::size_t t = 0; t < op.count; ++t) {
    size += static_cast<std::size_t>(list.transfers[op.first + t].length);
  }
  staged_.assign(size, op.combine == Combine::sum ? 0 : kLeast);
  Element* next = staged_.data();
  for (std::size_t t = op.first; t < op.first + op.count; ++t) {
    const Transfer& transfer = list.transfers[t];
    for (std::size_t s = 0; s < transfer.source_count; ++s) {
      combine(op.combine, memory + list.addresses[transfer.sources + s], transfer.length, next);
    }
    next += transfer.length;
  }
  next = staged_.data();
  for (std::size_t t = op.first; t < op.first + op.count; ++t) {
    const Transfer& transfer = list.transfers[t];
    for (std::size_t s = 0; s < transfer.target_count; ++s) {
      std::copy_n(next, transfer.length, memory + list.addresses[transfer.targets + s]);
    }
    next += transfer.length;
  }
}

}  // namespace placet::algebra
