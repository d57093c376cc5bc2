#include "algebra/verify.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "algebra/error_bound.h"
#include "algebra/machine.h"
#include "ranks/plan.h"
#include "units/error.h"

namespace placet {
namespace {

using namespace algebra;  // NOLINT(google-build-using-namespace): this file is its only door
using namespace ranks;    // NOLINT(google-build-using-namespace): likewise

/// Seeds are drawn anew where a random number that is divided by happens to be zero.
constexpr int kDraws = 4;
constexpr std::uint64_t kStateNumber = number_of("state");
constexpr std::uint64_t kInputNumber = number_of("input");
constexpr std::uint64_t kLeftNumber = number_of("left");

[[noreturn]] void refuse_size(const std::string& what, double value, double most) {
  throw InputError({.where = "program",
                    .value = what,
                    .problem = "is too large to run with all ranks: " +
                               std::to_string(static_cast<std::int64_t>(value)),
                    .allowed = "at most " + std::to_string(static_cast<std::int64_t>(most)) +
                               ": a program of fewer devices or shorter dims (placet check takes "
                               "any)"});
}

void check_instructions(const Program& program, const Mesh& mesh, const RunLimits& limits) {
  double instructions = 0;
  std::vector<double> of_class;
  of_class.reserve(program.classes.size());
  for (const DeviceClass& c : program.classes) of_class.push_back(instructions_in(program, c));
  for (int c : classes_of(program, mesh)) instructions += of_class[static_cast<std::size_t>(c)];
  if (instructions > limits.instructions) {
    refuse_size("instructions over all ranks", instructions, limits.instructions);
  }
}

void check_work(const OperationList& list, const RunLimits& limits) {
  double products = 0;
  for (const Operation& op : list.operations) {
    if (op.code != nullptr) products += op.code->products;
  }
  if (products > limits.products) {
    refuse_size("products in one step", products, limits.products);
  }
}

/// One program with its reference, ready for any number of seeds.
class Comparison {
 public:
  Comparison(const Program& program, const VerifyOptions& options)
      : options_(options),
        mesh_(program, options.limits.ranks),
        program_(program),
        builder_(program, library_) {}

  Verification run() {
    check_instructions(program_, mesh_, options_.limits);
    reference_ = builder_.build();
    check_work(reference_.list, options_.limits);
    plan_ = Planner(program_, reference_, library_, mesh_)
                .build({.count = options_.steps}, options_.limits.elements);
    result_.steps = options_.steps;
    result_.ranks = mesh_.ranks();
    result_.field = "F_p, p = " + std::to_string(kPrime);
    result_.stuck = plan_.stuck;
    if (result_.stuck) return std::move(result_);
    check_work(plan_.list, options_.limits);
    result_.stuck = unheld();
    if (result_.stuck) return std::move(result_);
    count_compared();
    result_.equal = true;
    for (int seed = 0; seed < options_.seeds && result_.equal; ++seed) {
      run_seed(static_cast<std::uint64_t>(seed));
      ++result_.seeds;
    }
    if (result_.equal) bound_error();
    return std::move(result_);
  }

 private:
  /// The first trained parameter or state of which some entry is on no rank.
  std::optional<std::string> unheld() const {
    std::vector<bool> held(static_cast<std::size_t>(reference_.list.memory), false);
    for (const Region& region : plan_.checks) {
      for (const Run& run : region.runs) std::fill_n(held.begin() + run.from, run.length, true);
    }
    for (const ReferenceTensor& tensor : reference_.tensors) {
      const auto first = held.begin() + tensor.address;
      const auto last = first + elements_in(tensor.extents);
      if (!is_trained(tensor.ref) || std::find(first, last, false) == last) continue;
      return "some of " + tensor.name + " is on no rank";
    }
    return std::nullopt;
  }

  bool is_trained(const StateRef& ref) const {
    if (ref.kind != StateRef::Kind::parameter && ref.kind != StateRef::Kind::state) return false;
    const Reference& reference = program_.reference;
    const int kind = reference.units[static_cast<std::size_t>(ref.unit)].kind;
    return reference.kinds[static_cast<std::size_t>(kind)]
        .parameters[static_cast<std::size_t>(ref.tensor)]
        .trainable;
  }

  void count_compared() {
    std::int64_t entries = 0;
    for (const Region& region : plan_.checks) {
      for (const Run& run : region.runs) entries += run.length;
    }
    result_.compared = entries * options_.steps;
  }

  void bound_error() {
    const double one = error_probability(error_terms(reference_.list, options_.steps),
                                         error_terms(plan_.list, options_.steps),
                                         static_cast<double>(result_.compared));
    result_.error_probability = std::pow(one, result_.seeds);
  }

  void run_seed(std::uint64_t seed) {
    for (int draw = 0; draw < kDraws; ++draw) {
      const KeyedHash hash(seed + static_cast<std::uint64_t>(draw) * 0x1000003U);
      divided_by_zero_.reset();
      if (run_steps(hash)) return;
    }
    result_.equal = false;
    result_.stuck = *divided_by_zero_;
  }

  /// False: something was divided by zero.
  bool run_steps(const KeyedHash& hash) {
    expected_.assign(static_cast<std::size_t>(reference_.list.memory), 0);
    found_.assign(static_cast<std::size_t>(plan_.list.memory), 0);
    draw_state(hash);
    fill(plan_.once);
    for (int step = 0; step < options_.steps && goes_on(); ++step) {
      if (step > 0) forget_the_rest(hash, step);
      draw_inputs(hash, step);
      fill(plan_.fresh);
      if (machine_.run(reference_.list, expected_, hash, step)) {
        divided_by_zero_ = "the reference divides by zero whatever the numbers";
        return false;
      }
      if (const auto failed = machine_.run(plan_.list, found_, hash, step)) {
        describe_division(plan_.list.operations[*failed], step);
        return false;
      }
      compare(step);
      if (options_.in_full) compare_replicas();
    }
    return true;
  }

  /// Of what a step left, the next may count on what is compared, and on zeros where the program
  /// begins with some: all else is overwritten.
  void forget_the_rest(const KeyedHash& hash, int step) {
    std::vector<bool> known(found_.size(), false);
    for (const Region& region : plan_.once) {
      if (region.tensor == nullptr && !is_zero(region)) continue;
      for (const Run& run : region.runs) std::fill_n(known.begin() + run.to, run.length, true);
    }
    const std::uint64_t start =
        hash.step(hash.start(kLeftNumber), static_cast<std::uint64_t>(step));
    for (std::size_t a = 0; a < found_.size(); ++a) {
      if (!known[a]) found_[a] = KeyedHash::element(hash.step(start, a));
    }
  }

  bool is_zero(const Region& region) const {
    return std::ranges::all_of(region.runs, [&](const Run& run) {
      const auto begin = found_.begin() + run.to;
      return std::all_of(begin, begin + run.length, [](Element e) { return e == 0; });
    });
  }

  bool goes_on() const { return result_.equal || options_.in_full; }

  void describe_division(const Operation& op, int step) {
    divided_by_zero_ = "step " + std::to_string(step + 1) + ", rank " + std::to_string(op.rank) +
                       ", instruction " + std::to_string(op.instruction) +
                       ": divides by zero whatever the numbers";
  }

  void draw_state(const KeyedHash& hash) {
    for (const ReferenceTensor& tensor : reference_.tensors) {
      const bool is_state = tensor.ref.kind == StateRef::Kind::parameter ||
                            tensor.ref.kind == StateRef::Kind::state ||
                            tensor.ref.kind == StateRef::Kind::number;
      if (is_state) draw(tensor, hash, hash.start(kStateNumber));
    }
  }

  void draw_inputs(const KeyedHash& hash, int step) {
    const std::uint64_t start =
        hash.step(hash.start(kInputNumber), static_cast<std::uint64_t>(step));
    for (const ReferenceTensor& tensor : reference_.tensors) {
      if (tensor.ref.kind == StateRef::Kind::input) draw(tensor, hash, start);
    }
  }

  void draw(const ReferenceTensor& tensor, const KeyedHash& hash, std::uint64_t start) {
    const std::int64_t size = elements_in(tensor.extents);
    for (std::int64_t a = tensor.address; a < tensor.address + size; ++a) {
      const std::uint64_t h = hash.step(start, static_cast<std::uint64_t>(a));
      const auto below = static_cast<std::uint64_t>(tensor.below);
      expected_[static_cast<std::size_t>(a)] =
          below > 0 ? static_cast<Element>((Wide{mixed(h)} * below) >> 64U) : KeyedHash::element(h);
    }
  }

  void fill(const std::vector<Region>& regions) {
    for (const Region& region : regions) {
      if (region.tensor == nullptr) continue;  // the memory begins with zeros
      for (const Run& run : region.runs) {
        std::copy_n(expected_.begin() + run.from, run.length, found_.begin() + run.to);
      }
    }
  }

  void compare(int step) {
    for (const Region& region : plan_.checks) {
      for (const Run& run : region.runs) {
        const auto begin = expected_.begin() + run.from;
        const auto [e, f] = std::mismatch(begin, begin + run.length, found_.begin() + run.to);
        if (e == begin + run.length) continue;
        result_.equal = false;
        if (result_.witness.size() >= kMostWitnesses && !options_.in_full) return;
        Witness one{.tensor = region.tensor->name,
                    .rank = region.rank,
                    .index = index_of(*region.tensor, e - expected_.begin()),
                    .expected = *e,
                    .found = *f,
                    .step = step + 1};
        // Two buffers of a rank may hold one tensor: a copy and its master.
        const bool told =
            !options_.in_full && std::ranges::find(result_.witness, one) != result_.witness.end();
        if (!told) result_.witness.push_back(std::move(one));
        break;
      }
    }
  }

  /// Ranks that hold the same entry of a tensor, against each other.
  void compare_replicas() {
    std::vector<std::optional<Element>> held(expected_.size());
    for (const Region& region : plan_.checks) {
      for (const Run& run : region.runs) compare_run(run, held);
    }
  }

  void compare_run(const Run& run, std::vector<std::optional<Element>>& held) {
    for (std::int64_t k = 0; k < run.length; ++k) {
      const Element mine = found_[static_cast<std::size_t>(run.to + k)];
      std::optional<Element>& other = held[static_cast<std::size_t>(run.from + k)];
      if (other && *other != mine) result_.replicas_agree = false;
      other = mine;
    }
  }

  VerifyOptions options_;
  Mesh mesh_;
  const Program& program_;
  KernelLibrary library_;
  ReferenceBuilder builder_;
  ReferenceRun reference_;
  ProgramPlan plan_;
  Machine machine_;
  std::vector<Element> expected_;
  std::vector<Element> found_;
  std::optional<std::string> divided_by_zero_;
  Verification result_;
};

}  // namespace

Verification verify(const Program& program, const VerifyOptions& options) {
  try {
    return Comparison(program, options).run();
  } catch (const std::out_of_range&) {
    throw InputError({.where = "program",
                      .problem = "refers by number to a dim, an axis or a tensor that it lacks"});
  }
}

}  // namespace placet
