#include "algebra/machine.h"

#include <algorithm>

namespace placet::algebra {
namespace {

void combine(Combine how, const Element* from, std::int64_t length, Element* to) {
  for (std::int64_t i = 0; i < length; ++i) to[i] = combined(how, to[i], from[i]);
}

}  // namespace

std::optional<std::size_t> Machine::run(const OperationList& list, std::vector<Element>& memory,
                                        const KeyedHash& hash, int step) {
  for (std::size_t i = 0; i < list.operations.size(); ++i) {
    const Operation& op = list.operations[i];
    if (op.step >= 0 && op.step != step) continue;
    if (op.code == nullptr) {
      move(list, op, memory.data());
      continue;
    }
    CallContext context{.hash = hash, .factor = element_of(op.factor)};
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
