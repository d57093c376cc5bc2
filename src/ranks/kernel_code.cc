#include "ranks/kernel_code.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "program/known_functions.h"
#include "ranks/limits.h"
#include "ranks/numbers.h"
#include "units/at.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet::ranks {
namespace {

bool contains(const std::vector<int>& values, int value) {
  return std::ranges::find(values, value) != values.end();
}

struct KnownFunction {
  std::string_view name;
  FunctionKind kind;
  std::size_t operands;
  std::size_t positions;
};

constexpr KnownFunction kKnown[] = {
    {"exp_dot", FunctionKind::exp_dot, 2, 2},
    {"exp_seen", FunctionKind::exp_seen, 1, 2},
    {"exp_shift", FunctionKind::exp_shift, 2, 0},
    {"ratio", FunctionKind::ratio, 2, 0},
    {"inv", FunctionKind::inv, 1, 0},
    {"id", FunctionKind::id, 1, 0},
    {"onehot", FunctionKind::onehot, 1, 1},
    {"position", FunctionKind::position, 0, 2},
    {"kept", FunctionKind::draw, 0, 0},
    {"chosen", FunctionKind::chosen, 1, 0},
    {"route", FunctionKind::route, 1, 0},
    {"route'", FunctionKind::route, 1, 0},
};

/// "route'" of "route.2'0".
std::string kind_of(const FunctionName& name) {
  return std::string(name.stem) + (name.derivative >= 0 ? "'" : "");
}

class Compiler {
 public:
  Compiler(const Kernel& kernel, const std::vector<std::int64_t>& extents, Tables tables)
      : kernel_(kernel), extents_(extents), tables_(tables) {}

  KernelCode run() {
    out_.inputs = kernel_.inputs;
    out_.arguments = kernel_.inputs + kernel_.outputs;
    out_.extents = extents_;
    for (std::size_t t = 0; t < kernel_.tensors.size(); ++t) {
      out_.sizes.push_back(entries_of(kernel_.tensors[t].dims));
      if (t < at(out_.arguments)) continue;
      out_.scratch = static_cast<std::size_t>(
          checked_add(static_cast<std::int64_t>(out_.scratch),
                      static_cast<std::int64_t>(out_.sizes.back()), "entries of a kernel"));
    }
    for (const Statement& s : kernel_.statements) {
      out_.statements.push_back(s.is_linear() ? linear(s) : function(s));
    }
    return std::move(out_);
  }

 private:
  std::size_t entries_of(const std::vector<int>& dims) const {
    std::int64_t entries = 1;
    for (int d : dims) entries = checked_multiply(entries, extents_[at(d)], "entries of a tensor");
    return static_cast<std::size_t>(entries);
  }

  double size_of(const std::vector<int>& dims) const {
    double entries = 1;
    for (int d : dims) entries *= static_cast<double>(extents_[at(d)]);
    return entries;
  }

  /// Where a tensor with dims `own` stands for each entry of a loop over `loop`, row by row.
  Places places(const std::vector<int>& loop, const std::vector<int>& own) const {
    std::vector<PlaceLoop> loops;
    loops.reserve(loop.size());
    for (const int d : loop) loops.push_back({.extent = extents_[at(d)]});
    std::int64_t stride = 1;
    for (std::size_t i = own.size(); i-- > 0;) {
      const auto found = std::ranges::find(loop, own[i]);
      if (found != loop.end())
        loops[static_cast<std::size_t>(found - loop.begin())].stride = stride;
      stride = checked_multiply(stride, extents_[at(own[i])], "entries of a tensor");
    }
    entries_of(loop);  // there are not too many
    Places result(std::move(loops));
    if (tables_ == Tables::none) return result;
    if (double entries = size_of(loop); entries > kMostPlaces) {
      throw InputError({.where = "kernel " + kernel_.name,
                        .value = std::to_string(static_cast<std::int64_t>(entries)),
                        .problem = "has too many entries to run",
                        .allowed = "at most " + std::to_string(static_cast<int>(kMostPlaces)) +
                                   ": shorter dims in the program (placet check takes any)"});
    }
    result.tabulate();
    return result;
  }

  StatementCode linear(const Statement& s) {
    StatementCode code{.result = s.result.tensor,
                       .entries = entries_of(s.result.dims),
                       .places = places(s.result.dims, s.result.dims)};
    for (const Product& p : s.products) {
      code.products.push_back(product(s, p));
      out_.products += static_cast<double>(code.entries) *
                       static_cast<double>(code.products.back().terms) *
                       static_cast<double>(p.operands.size());
    }
    return code;
  }

  ProductCode product(const Statement& s, const Product& p) const {
    std::vector<int> summed;
    for (const Operand& o : p.operands) {
      std::ranges::copy_if(o.dims, std::back_inserter(summed), [&](int d) {
        return !contains(s.result.dims, d) && !contains(summed, d);
      });
    }
    ProductCode code{.factor = p.factor, .terms = entries_of(summed), .sums = !summed.empty()};
    for (const Operand& o : p.operands) {
      code.operands.push_back({.tensor = o.tensor,
                               .outer = places(s.result.dims, o.dims),
                               .inner = places(summed, o.dims),
                               .along = {},
                               .has_own_dim = has_own_dim(p, o)});
    }
    return code;
  }

  static bool has_own_dim(const Product& p, const Operand& one) {
    return std::ranges::any_of(one.dims, [&](int d) {
      return std::ranges::none_of(
          p.operands, [&](const Operand& o) { return &o != &one && contains(o.dims, d); });
    });
  }

  [[noreturn]] void refuse(const Statement& s, const std::string& problem) const {
    throw InputError({.where = "kernel " + kernel_.name, .value = s.function, .problem = problem});
  }

  bool in_operands(const Statement& s, int dim) const {
    return std::ranges::any_of(s.operands, [&](const Operand& o) { return contains(o.dims, dim); });
  }

  /// Whether the dim asks for an entry of a function of whole vectors: it is whole, or stands in
  /// the place of one that is.
  bool is_index(const Statement& s, int dim) const {
    if (contains(s.whole, dim)) return true;
    if (in_operands(s, dim) || contains(s.positions, dim)) return false;
    for (std::size_t steps = 0; dim >= 0 && steps < kernel_.dims.size(); ++steps) {
      dim = kernel_.dims[at(dim)].like;
      if (dim >= 0 && contains(s.whole, dim)) return true;
    }
    return false;
  }

  void read_name(const Statement& s, FunctionCode& f) const {
    const std::string stem = kind_of(function_name(s.function));
    const auto* known = std::ranges::find(kKnown, stem, &KnownFunction::name);
    f.name = number_of(s.function);
    if (known == std::end(kKnown)) return;
    if (s.operands.size() < known->operands || s.positions.size() < known->positions) {
      refuse(s, "has too few operands or positions");
    }
    f.kind = known->kind;
    const auto number = function_name(s.function).number;
    f.window = number;
    f.choices = static_cast<std::size_t>(std::max<std::int64_t>(number, 1));
  }

  StatementCode function(const Statement& s) {
    StatementCode code{.result = s.result.tensor, .entries = entries_of(s.result.dims)};
    FunctionCode& f = code.function;
    read_name(s, f);
    std::vector<int> outer;
    std::vector<int> index;
    for (int d : s.result.dims) (is_index(s, d) ? index : outer).push_back(d);
    f.combine = s.combine;
    f.outer = entries_of(outer);
    f.inner = entries_of(s.reduced);
    f.result = places(outer, s.result.dims);
    f.index_place = places(index, s.result.dims);
    for (int d : index) {
      f.indices.push_back(
          {.dim = d, .extent = extents_[at(d)], .outer = places(index, {d}), .inner = {}});
    }
    for (const Operand& o : s.operands) f.operands.push_back(operand(s, o, outer));
    if (s.operands.size() > 1) {
      std::ranges::copy_if(s.operands.front().dims, std::back_inserter(f.beyond),
                           [&](int d) { return !contains(s.operands.back().dims, d); });
    }
    for (int d : s.positions) {
      f.positions.push_back({.dim = d,
                             .extent = extents_[at(d)],
                             .outer = places(outer, {d}),
                             .inner = places(s.reduced, {d})});
    }
    if (f.kind == FunctionKind::chosen || f.kind == FunctionKind::route) {
      if (s.whole.size() != 1 || index.empty()) refuse(s, "chooses along one whole dim");
    }
    count(f, index);
    return code;
  }

  OperandCode operand(const Statement& s, const Operand& o, const std::vector<int>& outer) const {
    std::vector<int> along;
    for (int d : o.dims) {
      if (contains(s.whole, d)) {
        along.push_back(d);
      } else if (!contains(outer, d) && !contains(s.reduced, d)) {
        refuse(s, "has an operand with a dim that is neither in the result nor whole nor reduced");
      }
    }
    const bool is_dot = s.function.starts_with("exp_dot");
    return {.tensor = o.tensor,
            .outer = places(outer, o.dims),
            .inner = places(s.reduced, o.dims),
            .along = places(is_dot ? s.whole : along, o.dims)};
  }

  void count(const FunctionCode& f, const std::vector<int>& index) {
    const double combined = static_cast<double>(f.outer) * static_cast<double>(f.inner);
    const double entries = combined * static_cast<double>(entries_of(index));
    double read = 1;
    for (const OperandCode& o : f.operands) read += static_cast<double>(o.along.size());
    out_.products += entries * 2 + combined * read * 2;
    if (f.kind == FunctionKind::ratio || f.kind == FunctionKind::inv) out_.inversions += entries;
    if (f.kind == FunctionKind::exp_shift) out_.inversions += entries;
    // A chain of as many steps as numbers are read, each of which may collide.
    out_.hashes += entries * read;
  }

  const Kernel& kernel_;
  const std::vector<std::int64_t>& extents_;
  Tables tables_;
  KernelCode out_;
};

}  // namespace

KernelCode compile(const Kernel& kernel, const std::vector<std::int64_t>& extents, Tables tables) {
  return Compiler(kernel, extents, tables).run();
}

}  // namespace placet::ranks
