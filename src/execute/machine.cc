#include "execute/machine.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "ranks/numbers.h"

namespace placet::execute {
namespace {

/// Rounds to so many bits, numbers below 2^least to multiples of what is left there.
double to_bits(double x, int bits, int least) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int exponent = std::max(std::ilogb(x), least);
  const double unit = std::ldexp(1.0, exponent - bits + 1);
  return std::nearbyint(x / unit) * unit;
}

}  // namespace

double rounded_to(Dtype format, double x) {
  switch (format) {
    case Dtype::bf16:
      return to_bits(x, 8, -126);
    case Dtype::fp16: {
      constexpr double kMost = 65520;  // from here on the nearest is infinite
      const double y = to_bits(x, 11, -14);
      return std::fabs(y) < kMost ? y : std::copysign(INFINITY, x);
    }
    case Dtype::fp32:
      return static_cast<double>(static_cast<float>(x));
    case Dtype::fp8:
      return to_bits(x, 4, -6);
    case Dtype::int64:
    case Dtype::int32:
    case Dtype::int8:
    case Dtype::uint8:
    case Dtype::nf4:
    case Dtype::fp4:
    case Dtype::fp64:
    case Dtype::int4:
      return x;
  }
  return x;
}

template <class Numbers>
std::optional<std::size_t> Machine<Numbers>::run(const OperationList& list, Memory<Numbers>& memory,
                                                 int step) {
  for (std::size_t i = 0; i < list.operations.size(); ++i) {
    const Operation& op = list.operations[i];
    if (op.step >= 0 && op.step != step) continue;
    if (upset && upset->step == step && upset->operation == i) change(memory);
    for (CallWatcher* one : calls) one->before(i);
    if (!run_one(list, op, memory, step)) return i;
    for (CallWatcher* one : calls) one->after(i);
  }
  return std::nullopt;
}

template <class Numbers>
void Machine<Numbers>::change(Memory<Numbers>& memory) const {
  Stored& x = memory.numbers.at(static_cast<std::size_t>(upset->address));
  if constexpr (std::is_same_v<Stored, Number>) {
    x.high += static_cast<Wide>(1) << kHighBits;
  } else {
    x += 1;
  }
}

template <class Numbers>
CallContext Machine<Numbers>::context_of(const OperationList& list, const Operation& op,
                                         int step) const {
  CallContext context{.step = step + 1,
                      .factor = static_cast<double>(op.factor.numerator()) /
                                static_cast<double>(op.factor.denominator()),
                      .slip = slip};
  if (op.begins >= 0) context.begins = list.begins.data() + op.begins;
  if (op.wholes >= 0) context.wholes = list.wholes.data() + op.wholes;
  if (op.draws) context.draw = ranks::mixed(op.draw + static_cast<std::uint64_t>(step));
  return context;
}

/// Of what a kernel reads.
template <class Numbers>
void Machine<Numbers>::read_levels(const OperationList& list, const Operation& op,
                                   const Memory<Numbers>& memory) {
  levels_.assign(op.code->sizes.size(), 0);
  if constexpr (!Memory<Numbers>::kHasLevels) return;
  for (std::size_t t = 0; t < static_cast<std::size_t>(op.code->inputs); ++t) {
    const auto first = memory.levels.begin() + list.addresses[op.addresses + t];
    const auto size = static_cast<std::ptrdiff_t>(op.code->sizes[t]);
    if (size > 0) levels_[t] = *std::max_element(first, first + size);
  }
}

template <class Numbers>
bool Machine<Numbers>::call(const OperationList& list, const Operation& op, Memory<Numbers>& memory,
                            const CallContext& context) {
  const auto count = static_cast<std::size_t>(op.code->arguments);
  const auto inputs = static_cast<std::size_t>(op.code->inputs);
  const auto address = [&](std::size_t t) {
    return static_cast<std::size_t>(list.addresses[op.addresses + t]);
  };
  tensors_.clear();
  for (std::size_t t = 0; t < count; ++t) tensors_.push_back(memory.numbers.data() + address(t));
  read_levels(list, op, memory);
  std::vector<Stored*> used = tensors_;
  if (op.overlaps) {
    std::size_t size = 0;
    for (std::size_t t = 0; t < count; ++t) size += op.code->sizes[t];
    staged_.resize(size);
    Stored* next = staged_.data();
    for (std::size_t t = 0; t < count; ++t) {
      std::copy_n(tensors_[t], op.code->sizes[t], next);
      used[t] = next;
      next += op.code->sizes[t];
    }
  }
  if (!runner_.run(*op.code, used.data(), levels_, context)) return false;
  for (std::size_t t = inputs; t < count; ++t) {
    if (op.overlaps) std::copy_n(used[t], op.code->sizes[t], tensors_[t]);
    if constexpr (Memory<Numbers>::kHasLevels) {
      std::fill_n(memory.levels.begin() + static_cast<std::ptrdiff_t>(address(t)),
                  op.code->sizes[t], levels_[t]);
    }
    round_stored(address(t), op.code->sizes[t], memory);
  }
  return true;
}

template <class Numbers>
void Machine<Numbers>::round_stored(std::size_t address, std::size_t size,
                                    Memory<Numbers>& memory) const {
  if constexpr (!std::is_same_v<Stored, Number>) {
    for (std::size_t a = address; a < address + size && a < formats.size(); ++a) {
      if (formats[a] == Dtype::fp32 && std::is_same_v<Stored, float>) continue;
      memory.numbers[a] =
          static_cast<Stored>(rounded_to(formats[a], static_cast<double>(memory.numbers[a])));
    }
  }
}

/// All sources combined, transfer after transfer, in `staged_`.
template <class Numbers>
bool Machine<Numbers>::gather(const OperationList& list, const Operation& op,
                              const Memory<Numbers>& memory) {
  std::size_t size = 0;
  for (std::size_t t = 0; t < op.count; ++t) {
    size += static_cast<std::size_t>(list.transfers[op.first + t].length);
  }
  staged_.assign(size, Stored{});
  staged_levels_.assign(Memory<Numbers>::kHasLevels ? size : 0, 0);
  std::size_t to = 0;
  bool fits = true;
  for (std::size_t t = op.first; t < op.first + op.count; ++t) {
    const Transfer& transfer = list.transfers[t];
    for (std::size_t s = 0; s < transfer.source_count; ++s) {
      const auto from = static_cast<std::size_t>(list.addresses[transfer.sources + s]);
      fits = take(memory, {.from = from,
                           .to = to,
                           .length = static_cast<std::size_t>(transfer.length),
                           .is_first = s == 0,
                           .combine = op.combine}) &&
             fits;
    }
    to += static_cast<std::size_t>(transfer.length);
  }
  return fits;
}

template <class Numbers>
bool Machine<Numbers>::take(const Memory<Numbers>& memory, const Taken& taken) {
  const Stored* from = memory.numbers.data() + taken.from;
  Stored* to = staged_.data() + taken.to;
  bool fits = true;
  if (taken.is_first) {
    std::copy_n(from, taken.length, to);
  } else if (taken.combine == Combine::sum) {
    for (std::size_t k = 0; k < taken.length; ++k) fits = add_to(to[k], from[k]) && fits;
  } else {
    for (std::size_t k = 0; k < taken.length; ++k) {
      if (to[k] < from[k]) to[k] = from[k];
    }
  }
  for (std::size_t k = 0; k < taken.length && Memory<Numbers>::kHasLevels; ++k) {
    Level& level = staged_levels_[taken.to + k];
    level = std::max(level, memory.levels[taken.from + k]);
  }
  return fits;
}

/// Zeros, or a copy of what lies elsewhere. False, and nothing done: it is more than that.
template <class Numbers>
bool Machine<Numbers>::move_directly(const OperationList& list, const Operation& op,
                                     Memory<Numbers>& memory) {
  if (op.count != 1) return false;
  const Transfer& transfer = list.transfers[op.first];
  if (transfer.source_count > 1 || transfer.target_count != 1) return false;
  const std::int64_t to = list.addresses[transfer.targets];
  const std::int64_t from =
      transfer.source_count == 0 ? -transfer.length : list.addresses[transfer.sources];
  if (from < to + transfer.length && to < from + transfer.length) return false;
  const auto put = [&](auto& numbers, const auto& zero) {
    const auto target = numbers.begin() + to;
    if (transfer.source_count == 0) {
      std::fill_n(target, transfer.length, zero);
    } else {
      std::copy_n(numbers.begin() + from, transfer.length, target);
    }
  };
  put(memory.numbers, Stored{});
  if constexpr (Memory<Numbers>::kHasLevels) put(memory.levels, Level{0});
  round_stored(static_cast<std::size_t>(to), static_cast<std::size_t>(transfer.length), memory);
  return true;
}

template <class Numbers>
void Machine<Numbers>::put_staged(std::size_t from, std::size_t to, std::size_t length,
                                  Memory<Numbers>& memory) const {
  std::copy_n(staged_.begin() + static_cast<std::ptrdiff_t>(from), length,
              memory.numbers.begin() + static_cast<std::ptrdiff_t>(to));
  if constexpr (Memory<Numbers>::kHasLevels) {
    std::copy_n(staged_levels_.begin() + static_cast<std::ptrdiff_t>(from), length,
                memory.levels.begin() + static_cast<std::ptrdiff_t>(to));
  }
  round_stored(to, length, memory);
}

template <class Numbers>
bool Machine<Numbers>::move(const OperationList& list, const Operation& op,
                            Memory<Numbers>& memory) {
  if (watcher != nullptr) watcher->moves(list, op);
  if (move_directly(list, op, memory)) return true;
  if (!gather(list, op, memory)) return false;
  std::size_t from = 0;
  for (std::size_t t = op.first; t < op.first + op.count; ++t) {
    const Transfer& transfer = list.transfers[t];
    const auto length = static_cast<std::size_t>(transfer.length);
    for (std::size_t s = 0; s < transfer.target_count; ++s) {
      const auto to = static_cast<std::size_t>(list.addresses[transfer.targets + s]);
      put_staged(from, to, length, memory);
    }
    from += length;
  }
  return true;
}

template class Machine<CanonicalNumbers>;
template class Machine<PlainNumbers<float>>;
template class Machine<PlainNumbers<double>>;

}  // namespace placet::execute
