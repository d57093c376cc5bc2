#include "execute/fill.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "ranks/numbers.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::execute {
namespace {

using ranks::mixed;
using ranks::number_of;
using ranks::ReferenceTensor;

constexpr double kWidth = 0.5;   // of matrices, by the root of their last dim
constexpr double kSpread = 0.1;  // of vectors round one and zero
constexpr std::uint64_t kOneIn = 8;

double uniform(std::uint64_t h) { return std::ldexp(static_cast<double>(mixed(h) >> 11U), -53); }

/// Near to a normal variable of mean 0 and variance 1: the sum of twelve uniform ones.
double normal(std::uint64_t h) {
  double sum = -6;
  for (std::uint64_t i = 0; i < 12; ++i) sum += uniform(h + i * 0x632be59bd9b4e019U);
  return sum;
}

double single(double x) { return static_cast<double>(static_cast<float>(x)); }

/// How a kernel uses its input number `tensor`: as a factor of products, otherwise, not at all.
enum class Use : std::uint8_t { none, factor, other };
Use use_in(const Kernel& kernel, std::size_t tensor) {
  const auto is_mine = [&](const Operand& o) { return at(o.tensor) == tensor; };
  for (const Statement& s : kernel.statements) {
    for (const Product& p : s.products) {
      if (!std::ranges::any_of(p.operands, is_mine)) continue;
      return p.operands.size() > 1 ? Use::factor : Use::other;
    }
    // Of norms of heads the first parameter is a factor.
    constexpr std::size_t kFirst = 2;
    const bool scales = s.function == "normal-of-head" && tensor == kFirst;
    if (std::ranges::any_of(s.operands, is_mine)) return scales ? Use::factor : Use::other;
  }
  return Use::none;
}

/// Whether the parameter is a factor where it is first used.
bool is_factor(const Program& program, const ReferenceTensor& tensor) {
  const Reference& r = program.reference;
  const ReferenceKind& kind = r.kinds[at(r.units[at(tensor.ref.unit)].kind)];
  const int value = kind.parameters[at(tensor.ref.tensor)].value;
  for (const Application& a : kind.applications) {
    const auto found = std::ranges::find(a.inputs, value);
    if (found == a.inputs.end()) continue;
    const Use use =
        use_in(program.kernels[at(a.kernel)], static_cast<std::size_t>(found - a.inputs.begin()));
    if (use != Use::none) return use == Use::factor;
  }
  return false;
}

double number_at_start(const Program& program, const ReferenceTensor& tensor,
                       const Meanings& meanings) {
  const bool is_scale = tensor.ref.kind == StateRef::Kind::number && tensor.ref.tensor == 0 &&
                        !program.reference.numbers.empty();
  return is_scale ? meanings.loss_scale : 0;
}

/// Ids of a sample that are read.
std::vector<std::int64_t> read_sequence(const Corpus& corpus, std::uint64_t key,
                                        std::int64_t length, std::int64_t below) {
  if (corpus.bytes.size() < at(length)) {
    throw InputError({.where = "--corpus",
                      .value = corpus.name,
                      .problem = "has fewer bytes than a sample has tokens",
                      .allowed = "at least " + std::to_string(length) + " bytes"});
  }
  const std::size_t first = mixed(key) % (corpus.bytes.size() - at(length) + 1);
  std::vector<std::int64_t> ids;
  ids.reserve(at(length));
  for (std::size_t t = first; t < first + at(length); ++t) {
    ids.push_back(static_cast<unsigned char>(corpus.bytes[t]) % below);
  }
  return ids;
}

/// Ids of a sample that are drawn: each from the one before by a rule, seven times of eight.
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
  for (std::size_t e = 0; e < size; ++e)
    numbers[e] = single(centre + width * normal(key ^ mixed(e)));
  return numbers;
}

namespace {

/// Weights of tokens, and inputs that are no ids.
std::vector<double> plain_inputs(std::size_t size, std::uint64_t key, bool is_weight) {
  std::vector<double> numbers(size, 0);
  for (std::size_t e = 0; e < size; ++e) {
    const std::uint64_t h = mixed(key ^ mixed(e + 1));
    if (!is_weight) numbers[e] = single(normal(h));
    if (is_weight && h % kOneIn != 0) numbers[e] = 1;
  }
  return numbers;
}

/// Inputs of ids are one sequence, each one token further on than the one before.
struct Ids {
  std::int64_t ahead = 0;
  std::int64_t furthest = -1;  // ahead, of all such inputs
  std::int64_t below = 0;
};
Ids ids_of(const ranks::ReferenceRun& reference, const ReferenceTensor& tensor) {
  Ids ids{.below = tensor.below};
  for (const ReferenceTensor& other : reference.tensors) {
    if (other.ref.kind != StateRef::Kind::input || other.below <= 0) continue;
    ids.below = std::min(ids.below, other.below);
    ++ids.furthest;
    if (other.ref.tensor < tensor.ref.tensor) ++ids.ahead;
  }
  return ids;
}

}  // namespace

std::vector<double> step_numbers(const Program& program, const ranks::ReferenceRun& reference,
                                 const ReferenceTensor& tensor, const Meanings& meanings,
                                 int step) {
  const auto size = at(ranks::elements_in(tensor.extents));
  const std::uint64_t key =
      mixed(meanings.seed * 0x100000001b3U + static_cast<std::uint64_t>(step));
  if (tensor.below <= 0) {
    return plain_inputs(size, key, tensor.ref.tensor == program.reference.weights);
  }
  const Ids ids = ids_of(reference, tensor);
  const std::int64_t tokens = tensor.extents.empty() ? 1 : tensor.extents.back();
  std::vector<double> numbers;
  numbers.reserve(size);
  for (std::size_t sample = 0; sample * at(tokens) < size; ++sample) {
    const std::uint64_t own = mixed(key ^ (sample + 77));
    const std::int64_t length = tokens + ids.furthest;
    const auto row = meanings.corpus == nullptr
                         ? sequence(own, length, ids.below)
                         : read_sequence(*meanings.corpus, own, length, ids.below);
    const auto first = row.begin() + ids.ahead;
    numbers.insert(numbers.end(), first, first + tokens);
  }
  return numbers;
}

}  // namespace placet::execute
