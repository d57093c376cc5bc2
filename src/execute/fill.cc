#include "execute/fill.h"

#include <algorithm>
#include <cmath>

#include "ranks/numbers.h"
#include "units/at.h"

namespace placet::execute {
namespace {

using ranks::mixed;
using ranks::number_of;
using ranks::ReferenceTensor;

constexpr double kWidth = 0.5;    // of matrices, by the root of their last dim
constexpr double kSpread = 0.1;   // of vectors round one and zero
constexpr std::uint64_t kOneIn = 8;

double uniform(std::uint64_t h) { return std::ldexp(static_cast<double>(mixed(h) >> 11U), -53); }

/// Near to a normal variable of mean 0 and variance 1: the sum of twelve uniform ones.
double normal(std::uint64_t h) {
  double sum = -6;
  for (std::uint64_t i = 0; i < 12; ++i) sum += uniform(h + i * 0x632be59bd9b4e019U);
  return sum;
}

double single(double x) { return static_cast<double>(static_cast<float>(x)); }

/// Whether the parameter is a factor of something: a product of several has it.
bool is_factor(const Program& program, const ReferenceTensor& tensor) {
  const Reference& r = program.reference;
  const ReferenceKind& kind = r.kinds[at(r.units[at(tensor.ref.unit)].kind)];
  const int value = kind.parameters[at(tensor.ref.tensor)].value;
  for (const Application& a : kind.applications) {
    const Kernel& k = program.kernels[at(a.kernel)];
    for (std::size_t i = 0; i < a.inputs.size(); ++i) {
      if (a.inputs[i] != value) continue;
      const auto is_mine = [&](const Operand& o) { return at(o.tensor) == i; };
      for (const Statement& s : k.statements) {
        for (const Product& p : s.products) {
          if (std::ranges::any_of(p.operands, is_mine)) return p.operands.size() > 1;
        }
        // Of functions the first parameter is a factor, as of norms of heads.
        if (std::ranges::any_of(s.operands, is_mine)) return i == 2;
      }
    }
  }
  return false;
}

double number_at_start(const Program& program, const ReferenceTensor& tensor,
                       const Meanings& meanings) {
  const bool is_scale = tensor.ref.kind == StateRef::Kind::number && tensor.ref.tensor == 0 &&
                        !program.reference.numbers.empty();
  return is_scale ? meanings.loss_scale : 0;
}

/// The id at a place of a sample: from the one before by a rule, seven times of eight.
std::vector<std::int64_t> sequence(std::uint64_t key, std::int64_t length, std::int64_t below) {
  std::vector<std::int64_t> ids;
  ids.reserve(at(length));
  for (std::int64_t t = 0; t < length; ++t) {
    const std::uint64_t h = mixed(key + static_cast<std::uint64_t>(t) * 0x9e3779b97f4a7c15U);
    const bool drawn = t == 0 || h % kOneIn == 0;
    const auto any = static_cast<std::int64_t>((h >> 8U) % static_cast<std::uint64_t>(below));
    ids.push_back(drawn ? any : (3 * ids.back() + 7) % below);
  }
  return ids;
}

}  // namespace

std::vector<double> initial_numbers(const Program& program, const ReferenceTensor& tensor,
                                    const Meanings& meanings) {
  const auto size = at(ranks::elements_in(tensor.extents));
  std::vector<double> numbers(size, number_at_start(program, tensor, meanings));
  if (tensor.ref.kind != StateRef::Kind::parameter) return numbers;
  const bool is_vector = tensor.extents.size() < 2;
  const double centre = is_vector && is_factor(program, tensor) ? 1 : 0;
  const double last = tensor.extents.empty() ? 1 : static_cast<double>(tensor.extents.back());
  const double width = is_vector ? kSpread : kWidth / std::sqrt(last);
  const std::uint64_t key = mixed(number_of(tensor.name) + meanings.seed);
  for (std::size_t e = 0; e < size; ++e) numbers[e] = single(centre + width * normal(key ^ mixed(e)));
  return numbers;
}

std::vector<double> step_numbers(const Program& program, const ranks::ReferenceRun& reference,
                                 const ReferenceTensor& tensor, const Meanings& meanings,
                                 int step) {
  const auto size = at(ranks::elements_in(tensor.extents));
  std::vector<double> numbers;
  numbers.reserve(size);
  const std::uint64_t key = mixed(meanings.seed * 0x100000001b3U + static_cast<std::uint64_t>(step));
  if (tensor.below <= 0) {
    const bool is_weight = tensor.ref.tensor == program.reference.weights;
    for (std::size_t e = 0; e < size; ++e) {
      const std::uint64_t h = mixed(key ^ mixed(e + 1));
      numbers.push_back(is_weight ? (h % kOneIn == 0 ? 0 : 1) : single(normal(h)));
    }
    return numbers;
  }
  // Inputs of ids are one sequence, each one token further on than the one before.
  std::int64_t ahead = 0;
  std::int64_t below = tensor.below;
  for (const ReferenceTensor& other : reference.tensors) {
    if (other.ref.kind != StateRef::Kind::input || other.below <= 0) continue;
    below = std::min(below, other.below);
    if (other.ref.tensor < tensor.ref.tensor) ++ahead;
  }
  const std::int64_t tokens = tensor.extents.empty() ? 1 : tensor.extents.back();
  for (std::size_t sample = 0; sample * at(tokens) < size; ++sample) {
    const auto ids = sequence(mixed(key ^ (sample + 77)), tokens + ahead, below);
    for (std::int64_t t = 0; t < tokens; ++t) {
      numbers.push_back(static_cast<double>(ids[at(t + ahead)]));
    }
  }
  return numbers;
}

}  // namespace placet::execute
