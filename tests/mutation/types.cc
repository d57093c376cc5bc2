// A type checker such as frameworks have, to compare with: it knows of each buffer whether it is
// whole, divided, or a part of a sum along which axes, and nothing of scales, counts and versions.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <source_location>
#include <tuple>

#include "mutation/mutants.h"
#include "program/text.h"
#include "program/walk.h"
#include "units/at.h"

namespace placet::testing {
namespace {

using AxisSet = std::set<int>;

/// The line of this file that asks for what does not hold.
struct Disagreement {
  unsigned rule = 0;
};

void require(bool holds, std::source_location rule = std::source_location::current()) {
  if (!holds) throw Disagreement{rule.line()};
}

/// What is known of a tensor: along which axes devices hold parts of its sum.
struct Held {
  bool zero = false;    // fits any
  bool scaled = false;  // may be meant as a share of a sum over more axes: scales are not known
  AxisSet open;
};

/// One class, which is typed alone: all devices run the same text.
class Typing {
 public:
  Typing(const Program& program, const DeviceClass& device_class)
      : program_(program), class_(device_class) {}

  /// The instruction that was read last.
  std::string where() const { return last_ == nullptr ? "" : to_text(program_, *last_); }

  void run() {
    for (const Initial& initial : class_.initial) begin(initial);
    for (step_ = 1; step_ <= 2; ++step_) {
      for_each_instruction(program_, class_.body, {},
                           [&](const Instruction& i, const Arguments& a) {
                             if (i.step == 0 || i.step == step_) execute(i, a);
                           });
      for (const Initial& initial : class_.initial) end(initial);
      for (const Initial& result : class_.results) end(result);
    }
  }

 private:
  using Key = std::tuple<int, std::int64_t, std::int64_t>;

  static Key key_of(const BufferRef& ref, const Arguments& a) {
    return {ref.family, value_of(ref.unit, a), value_of(ref.micro_batch, a)};
  }

  const BufferType& type_of(const BufferRef& ref) const {
    return program_.families[at(ref.family)].type;
  }
  std::vector<PieceType> pieces_of(const BufferRef& ref) const {
    const BufferType& type = type_of(ref);
    if (ref.piece < 0) return type.pieces;
    return {type.pieces[at(ref.piece)]};
  }
  static AxisList flat_of(const BufferType& type, const BufferRef& ref) {
    return ref.piece < 0 ? type.flat : AxisList{};
  }

  void begin(const Initial& initial) {
    std::vector<std::optional<Held>>& held = held_[key_of(initial.buffer, {})];
    for (const StateRef& ref : initial.pieces) {
      held.push_back(Held{.zero = ref.kind == StateRef::Kind::zero});
    }
  }

  void end(const Initial& initial) {
    const auto found = held_.find(key_of(initial.buffer, {}));
    require(found != held_.end());
    for (std::size_t p = 0; p < initial.pieces.size(); ++p) {
      if (initial.pieces[p].kind == StateRef::Kind::zero) continue;
      require(p < found->second.size() && found->second[p] && found->second[p]->open.empty());
    }
  }

  std::vector<Held> read(const BufferRef& ref, const Arguments& a) const {
    const auto found = held_.find(key_of(ref, a));
    require(found != held_.end());
    std::vector<Held> out;
    for (std::size_t p = 0; p < found->second.size(); ++p) {
      if (ref.piece >= 0 && at(ref.piece) != p) continue;
      require(found->second[p].has_value());
      out.push_back(*found->second[p]);
    }
    return out;
  }

  void write(const BufferRef& ref, const Arguments& a, const std::vector<Held>& values) {
    const auto found = held_.find(key_of(ref, a));
    require(found != held_.end());
    for (std::size_t p = 0, v = 0; p < found->second.size(); ++p) {
      if (ref.piece >= 0 && at(ref.piece) != p) continue;
      require(v < values.size());
      found->second[p] = values[v++];
    }
  }

  AxisSet axes_of(const Division& by) const {
    AxisSet axes;
    for (const AxisList& level : by) axes.insert(level.begin(), level.end());
    axes.erase(static_cast<int>(program_.axes.size()) - 1);
    std::erase_if(axes, [&](int a) { return program_.axes[at(a)].degree == 1; });
    return axes;
  }
  AxisSet axes_of(const PieceType& piece) const {
    AxisSet axes;
    for (const DividedDim& dim : piece.dims) axes.merge(axes_of(dim.by));
    return axes;
  }
  AxisSet axes_of(const BufferRef& ref) const {
    AxisSet axes = axes_of(one_by_one(flat_of(type_of(ref), ref)));
    for (const PieceType& piece : pieces_of(ref)) axes.merge(axes_of(piece));
    return axes;
  }
  AxisSet group_of(const Instruction& i) const { return axes_of(one_by_one(i.axes)); }

  void execute(const Instruction& i, const Arguments& a) {
    using Kind = InstructionKind;
    last_ = &i;
    if (calls_kernel(i.kind)) return call(i, a);
    if (i.kind == Kind::alloc) {
      for (const BufferRef& ref : i.outputs) {
        held_[key_of(ref, a)].assign(type_of(ref).pieces.size(), std::nullopt);
      }
    } else if (i.kind == Kind::free) {
      for (const BufferRef& ref : i.inputs) require(held_.erase(key_of(ref, a)) == 1);
    } else if (i.kind == Kind::zero || i.kind == Kind::receive) {
      for (const BufferRef& ref : i.outputs) {
        const Held held{.zero = i.kind == Kind::zero};
        write(ref, a, std::vector<Held>(pieces_of(ref).size(), held));
      }
    } else if (i.kind != Kind::record && i.kind != Kind::wait) {
      for (std::size_t b = 0; b < i.inputs.size(); ++b) move(i, a, b);
    }
  }

  /// Copies, sums and everything that goes between devices.
  void move(const Instruction& i, const Arguments& a, std::size_t b) {
    using Kind = InstructionKind;
    std::vector<Held> values = read(i.inputs[b], a);
    if (i.kind == Kind::send) return require_closed(values, {});
    const BufferRef& to = i.outputs[b];
    if (i.kind == Kind::accumulate) values = sums(values, read(to, a));
    require_fit(i, i.inputs[b], to);
    const AxisSet group = group_of(i);
    const bool reduces = i.kind == Kind::all_reduce || i.kind == Kind::reduce_scatter;
    if (reduces) {
      for (Held& held : values) std::erase_if(held.open, [&](int x) { return group.contains(x); });
    } else if (i.kind == Kind::all_gather || i.kind == Kind::all_to_all ||
               i.kind == Kind::broadcast) {
      require_closed(values, group);
    }
    write(to, a, values);
  }

  static Held sum(const Held& a, const Held& b) {
    if (a.zero) return b;
    if (b.zero || a.open == b.open) return a;
    const bool first = a.scaled && std::ranges::includes(b.open, a.open);
    require(first || (b.scaled && std::ranges::includes(a.open, b.open)));
    return first ? b : a;
  }

  static std::vector<Held> sums(const std::vector<Held>& a, const std::vector<Held>& b) {
    require(a.size() == b.size());
    std::vector<Held> out;
    for (std::size_t p = 0; p < a.size(); ++p) out.push_back(sum(a[p], b[p]));
    return out;
  }

  /// No open sum along these axes; none given: along any.
  static void require_closed(const std::vector<Held>& values, const AxisSet& axes) {
    for (const Held& held : values) {
      for (int axis : held.open) require(!axes.empty() && !axes.contains(axis));
    }
  }

  /// Types of what goes in and what comes out.
  void require_fit(const Instruction& i, const BufferRef& from, const BufferRef& to) const {
    using Kind = InstructionKind;
    const AxisSet mine = axes_of(from);
    const AxisSet theirs = axes_of(to);
    const AxisSet group = group_of(i);
    AxisSet both = i.kind == Kind::all_gather ? theirs : mine;
    const AxisSet& longer = i.kind == Kind::all_gather ? mine : theirs;
    if (i.kind == Kind::all_gather || i.kind == Kind::reduce_scatter || i.kind == Kind::slice) {
      for (int axis : group) require(both.insert(axis).second);
      require(both == longer);
    } else if (i.kind == Kind::all_reduce || i.kind == Kind::broadcast) {
      for (int axis : group) require(!mine.contains(axis));
    } else if (i.kind != Kind::all_to_all) {
      require(pieces_of(from) == pieces_of(to) &&
              flat_of(type_of(from), from) == flat_of(type_of(to), to));
    }
  }

  // --- kernels

  void call(const Instruction& i, const Arguments& a) {
    const Kernel& kernel = program_.kernels[at(i.kernel)];
    std::vector<std::vector<Held>> inputs;
    std::size_t pieces = 1;
    for (const BufferRef& ref : i.inputs) {
      inputs.push_back(read(ref, a));
      pieces = std::max(pieces, inputs.back().size());
    }
    std::vector<std::vector<Held>> outputs(i.outputs.size());
    for (std::size_t p = 0; p < pieces; ++p) {
      const std::vector<Held> made = call_piece(i, kernel, inputs, p);
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        const bool row = pieces_of(i.outputs[o]).size() > 1;
        if (row || p == 0) {
          outputs[o].push_back(made[o]);
        } else {
          outputs[o] = sums(outputs[o], {made[o]});
        }
      }
    }
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      for (Held& held : outputs[o]) {
        held.scaled = held.scaled || i.kind == InstructionKind::scale;
      }
      write(i.outputs[o], a, outputs[o]);
    }
  }

  /// Axes that divide each dim of the kernel; those of "..." are those of the piece and of the row.
  void bind(const Instruction& i, const Kernel& kernel, std::size_t piece) {
    bound_.assign(kernel.dims.size(), std::nullopt);
    for (std::size_t t = 0; t < i.inputs.size() + i.outputs.size(); ++t) {
      const BufferRef& ref = t < i.inputs.size() ? i.inputs[t] : i.outputs[t - i.inputs.size()];
      const std::vector<PieceType> pieces = pieces_of(ref);
      const PieceType& mine = pieces[pieces.size() > 1 ? piece : 0];
      for (std::size_t d = 0; d < kernel.tensors[t].dims.size(); ++d) {
        const int dim = kernel.tensors[t].dims[d];
        if (kernel.dims[at(dim)].name == kAnyDims) {
          AxisSet all = axes_of(mine);
          all.merge(axes_of(one_by_one(flat_of(type_of(ref), ref))));
          bind(dim, all);
        } else {
          require(d < mine.dims.size());
          bind(dim, axes_of(mine.dims[d].by));
        }
      }
    }
    for (const Position& p : i.positions) bind(p.dim, axes_of(p.by));
  }
  void bind(int dim, const AxisSet& axes) {
    std::optional<AxisSet>& bound = bound_[at(dim)];
    require(!bound || *bound == axes);
    bound = axes;
  }
  AxisSet divided(int dim) const { return bound_[at(dim)].value_or(AxisSet{}); }

  std::vector<Held> call_piece(const Instruction& i, const Kernel& kernel,
                               const std::vector<std::vector<Held>>& inputs, std::size_t piece) {
    bind(i, kernel, piece);
    values_.assign(kernel.tensors.size(), Held{});
    for (std::size_t t = 0; t < inputs.size(); ++t) {
      values_[t] = inputs[t][inputs[t].size() > 1 ? piece : 0];
    }
    for (const Statement& s : kernel.statements) {
      values_[at(s.result.tensor)] = s.is_linear() ? linear(s) : function(s);
    }
    return {values_.begin() + kernel.inputs, values_.begin() + kernel.inputs + kernel.outputs};
  }

  Held linear(const Statement& s) const {
    Held total{.zero = true, .open = {}};
    for (const Product& p : s.products) total = sum(total, product(p, s));
    return total;
  }

  Held product(const Product& p, const Statement& s) const {
    Held out;
    for (const Operand& o : p.operands) {
      const Held& value = values_[at(o.tensor)];
      out.zero = out.zero || value.zero;
      require(value.open.empty() || out.open.empty());
      out.open.insert(value.open.begin(), value.open.end());
    }
    for (const Operand& o : p.operands) {
      for (int dim : o.dims) {
        const bool stays = std::ranges::find(s.result.dims, dim) != s.result.dims.end();
        if (!stays) out.open.merge(divided(dim));
      }
    }
    return out;
  }

  Held function(const Statement& s) const {
    for (const Operand& o : s.operands) require(values_[at(o.tensor)].open.empty());
    for (int dim : s.whole) require(divided(dim).empty());
    Held out;
    for (int dim : s.reduced) out.open.merge(divided(dim));
    return out;
  }

  const Program& program_;
  const DeviceClass& class_;
  int step_ = 1;
  const Instruction* last_ = nullptr;
  std::map<Key, std::vector<std::optional<Held>>> held_;
  std::vector<std::optional<AxisSet>> bound_;
  std::vector<Held> values_;
};

}  // namespace

std::string type_error(const Program& program) {
  std::string error;
  for (const DeviceClass& c : program.classes) {
    Typing typing(program, c);
    try {
      typing.run();
    } catch (const Disagreement& disagreement) {
      error = "types.cc:" + std::to_string(disagreement.rule) + " at " + typing.where();
    }
  }
  return error;
}

}  // namespace placet::testing
