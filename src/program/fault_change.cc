// What each kind of fault makes of an instruction.
#include <algorithm>
#include <charconv>

#include "program/fault_parts.h"
#include "program/instruction_form.h"
#include "program/text_names.h"

namespace placet {
namespace {

using Changes = std::optional<std::vector<Change>>;

std::int64_t number(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// An instruction over the same step and stream with nothing else said.
Instruction beside(const Instruction& i, InstructionKind kind) {
  Instruction out;
  out.kind = kind;
  out.stream = i.stream;
  out.phase = i.phase;
  out.label = i.label;
  return out;
}

Instruction scaling(const Instruction& i, const BufferRef& ref, const Rational& by) {
  Instruction out = beside(i, InstructionKind::scale);
  out.inputs = out.outputs = {ref};
  out.factor = by;
  return out;
}

class Changer {
 public:
  Changer(const Program& program, const Fault& fault, const std::vector<Step>& body, std::size_t at)
      : p_(program),
        fault_(fault),
        body_(body),
        at_(at),
        i_(std::get<Instruction>(body[at].what)) {}

  Changes changes() const {
    switch (fault_.op) {
      case FaultOp::remove:
      case FaultOp::local_norm:
      case FaultOp::local_weight:
      case FaultOp::drop_use:
        return removed();
      case FaultOp::drop_zero:
        return i_.kind == InstructionKind::zero ? removed() : std::nullopt;
      case FaultOp::drop_wait:
        return i_.kind == InstructionKind::wait ? removed() : std::nullopt;
      case FaultOp::drop_record:
        return i_.kind == InstructionKind::record ? removed() : std::nullopt;
      case FaultOp::skip_update:
        return i_.kind == InstructionKind::update ? removed() : std::nullopt;
      case FaultOp::duplicate:
        return one(Change::Kind::after, i_);
      case FaultOp::move:
        return moved_by(number(fault_.by));
      case FaultOp::swap_order:
        return swapped_order();
      case FaultOp::early_free:
        return freed_early();
      case FaultOp::stale:
        return stale();
      case FaultOp::reuse_buffer:
        return reused();
      case FaultOp::add_zero:
        return zeroed(Change::Kind::before);
      case FaultOp::regroup:
        return regrouped();
      case FaultOp::rescale:
        return rescaled();
      case FaultOp::reduce_op:
        return combined();
      case FaultOp::swap_shards:
        return swapped_shards();
      case FaultOp::shift_slice:
        return shifted(number(fault_.by));
      case FaultOp::wrong_key:
        return with_key({.name = i_.key.name + "'", .unit = i_.key.unit});
      case FaultOp::copy_key:
        return with_key(other_key());
      case FaultOp::detach_adjoint:
        return detached();
      case FaultOp::substitute:
        return substituted();
      case FaultOp::redim:
        return with_dim(static_cast<int>(number(fault_.to)));
      case FaultOp::drop_position:
        return without_position();
      case FaultOp::compress:
        return passed_through("compressed." + fault_.by);
      case FaultOp::mask:
        return passed_through("masked." + fault_.by);
    }
    return std::nullopt;
  }

 private:
  /// What it makes of gradients, or receives of them, is lost.
  Changes detached() const {
    const bool makes = calls_kernel(i_.kind) || i_.kind == InstructionKind::receive;
    if (i_.phase != StepPhase::backward || !makes) return std::nullopt;
    return zeroed(Change::Kind::after);
  }

  Changes one(Change::Kind kind, Instruction what) const {
    return std::vector<Change>{{.kind = kind, .at = at_, .what = std::move(what)}};
  }
  Changes removed() const { return one(Change::Kind::remove, {}); }
  Changes replaced(Instruction what) const {
    if (what == i_) return std::nullopt;
    return one(Change::Kind::replace, std::move(what));
  }

  Changes moved_to(std::size_t to) const {
    const Change::Kind side = to > at_ ? Change::Kind::after : Change::Kind::before;
    return std::vector<Change>{{.kind = Change::Kind::remove, .at = at_, .what = {}},
                               {.kind = side, .at = to, .what = i_}};
  }

  Changes moved_by(std::int64_t by) const {
    const std::int64_t to = static_cast<std::int64_t>(at_) + by;
    if (to < 0 || to >= static_cast<std::int64_t>(body_.size())) return std::nullopt;
    return moved_to(static_cast<std::size_t>(to));
  }

  const Instruction* instruction_at(std::size_t k) const {
    return std::get_if<Instruction>(&body_[k].what);
  }

  Changes swapped_order() const {
    std::int64_t left = fault_.with;
    for (std::size_t k = at_ + 1; k < body_.size(); ++k) {
      const Instruction* other = instruction_at(k);
      if (other == nullptr || other->kind != i_.kind || --left > 0) continue;
      if (*other == i_) return std::nullopt;
      return std::vector<Change>{{.kind = Change::Kind::replace, .at = at_, .what = *other},
                                 {.kind = Change::Kind::replace, .at = k, .what = i_}};
    }
    return std::nullopt;
  }

  /// The free goes before the last step that uses the buffer.
  Changes freed_early() const {
    if (i_.kind != InstructionKind::free) return std::nullopt;
    for (std::size_t k = at_; k-- > 0;) {
      const Instruction* other = instruction_at(k);
      if (other == nullptr) continue;
      if (other->kind == InstructionKind::alloc || other->kind == InstructionKind::free) continue;
      const bool uses =
          names_buffer(other->inputs, i_.inputs[0]) || names_buffer(other->outputs, i_.inputs[0]);
      if (uses) return moved_to(k);
    }
    return std::nullopt;
  }

  /// What is gathered is used before it is gathered: the gather goes behind its next use, or, if
  /// that lies in the next step, before what it gathers is made.
  Changes stale() const {
    if (i_.kind != InstructionKind::all_gather) return std::nullopt;
    for (std::size_t k = at_ + 1; k < body_.size(); ++k) {
      const Instruction* other = instruction_at(k);
      if (other == nullptr || other->kind == InstructionKind::free) continue;
      const bool uses = std::ranges::any_of(
          i_.outputs, [&](const BufferRef& r) { return names_buffer(other->inputs, r); });
      if (uses) return moved_to(k);
    }
    for (std::size_t k = at_; k-- > 0;) {
      const Instruction* other = instruction_at(k);
      if (other == nullptr || other->kind == InstructionKind::alloc) continue;
      const bool makes = std::ranges::any_of(
          i_.inputs, [&](const BufferRef& r) { return names_buffer(other->outputs, r); });
      if (makes) return moved_to(k);
    }
    return std::nullopt;
  }

  bool may_take_place(const BufferRef& mine, int family) const {
    const Family& a = p_.families[as_index(mine.family)];
    const Family& b = p_.families[as_index(family)];
    return family != mine.family && a.type == b.type && a.by_unit == b.by_unit &&
           a.by_micro_batch == b.by_micro_batch && fits_glob(fault_.of, b.name);
  }

  static void rename(std::vector<BufferRef>& list, const BufferRef& mine, int family) {
    for (BufferRef& ref : list) {
      if (names_buffer({mine}, ref)) ref.family = family;
    }
  }

  /// The first family whose buffers may take this one's place; -1 if there is none.
  int family_in_place_of(const BufferRef& mine) const {
    for (int f = 0; f < static_cast<int>(p_.families.size()); ++f) {
      if (may_take_place(mine, f)) return f;
    }
    return -1;
  }

  /// The result is written into another buffer of the same type, and read from there in the rest
  /// of the body.
  Changes reused() const {
    if (i_.outputs.empty() || i_.kind == InstructionKind::alloc) return std::nullopt;
    const BufferRef mine = i_.outputs[0];
    const int family = family_in_place_of(mine);
    if (family < 0) return std::nullopt;
    std::vector<Change> out;
    for (std::size_t k = at_; k < body_.size(); ++k) {
      const Instruction* other = instruction_at(k);
      if (other == nullptr || other->kind == InstructionKind::free) continue;
      if (k > at_ && other->kind == InstructionKind::alloc) continue;
      Instruction what = *other;
      for (std::vector<BufferRef>* list : {&what.inputs, &what.outputs}) {
        rename(*list, mine, family);
      }
      if (what != *other) {
        out.push_back({.kind = Change::Kind::replace, .at = k, .what = std::move(what)});
      }
    }
    return out;
  }

  Changes zeroed(Change::Kind side) const {
    const bool makes = i_.kind == InstructionKind::alloc || i_.kind == InstructionKind::zero;
    if (i_.outputs.empty() || makes) return std::nullopt;
    std::vector<Change> out;
    for (const BufferRef& ref : i_.outputs) {
      Instruction zero = beside(i_, InstructionKind::zero);
      zero.outputs = {ref};
      out.push_back({.kind = side, .at = at_, .what = std::move(zero)});
    }
    return out;
  }

  Changes regrouped() const {
    const auto axes = axes_named(p_, fault_.to);
    const InstructionForm form = form_of(i_.kind);
    if (!axes || axes->empty() || !form.axes) return std::nullopt;
    if (form.one_axis && axes->size() > 1) return std::nullopt;
    std::int64_t group = 1;
    for (int axis : *axes) group *= p_.axes[as_index(axis)].degree;
    if (form.peer && i_.peer >= group) return std::nullopt;
    Instruction what = i_;
    what.axes = *axes;
    if (what.axes != i_.axes) what.among.clear();
    return replaced(std::move(what));
  }

  Changes rescaled() const {
    const auto by = value_of_product(p_, fault_.by);
    if (!by || *by == Rational(1)) return std::nullopt;
    if (i_.kind == InstructionKind::scale) {
      Instruction what = i_;
      what.factor = what.factor * *by;
      return replaced(std::move(what));
    }
    if (i_.outputs.empty() || i_.kind == InstructionKind::alloc) return std::nullopt;
    return scaled(*by, {});
  }

  Changes scaled(const Rational& by, std::vector<Change> out) const {
    for (const BufferRef& ref : i_.outputs) {
      out.push_back({.kind = Change::Kind::after,
                     .at = at_,
                     .what = scaling(i_, ref, by),
                     .kernel = entrywise("rescaled", {})});
    }
    return out;
  }

  /// A mean is a sum over the group's size; the least is the largest of the negative.
  Changes combined() const {
    if (!form_of(i_.kind).op) return std::nullopt;
    Instruction what = i_;
    what.op = fault_.to == "mean" ? Combine::sum : Combine::max;
    if (fault_.to == "max") return replaced(std::move(what));
    std::vector<Change> out;
    if (fault_.to == "min") {
      for (const BufferRef& ref : i_.inputs) {
        out.push_back({.kind = Change::Kind::before,
                       .at = at_,
                       .what = scaling(i_, ref, -1),
                       .kernel = entrywise("rescaled", {})});
      }
    }
    out.push_back({.kind = Change::Kind::replace, .at = at_, .what = std::move(what)});
    std::int64_t group = 1;
    for (int axis : i_.axes) group *= p_.axes[as_index(axis)].degree;
    if (!i_.among.empty()) group = static_cast<std::int64_t>(i_.among.size());
    if (fault_.to == "mean" && group == 1) return std::nullopt;
    return scaled(fault_.to == "mean" ? Rational(1, group) : Rational(-1), std::move(out));
  }

  Changes swapped_shards() const {
    if (form_of(i_.kind).shift) return shifted(1);
    const InstructionForm form = form_of(i_.kind);
    Instruction what = i_;
    if (form.into) {
      std::swap(what.dim, what.into);
    } else if (form.dim) {
      std::ranges::reverse(what.axes);
    } else {
      return std::nullopt;
    }
    return replaced(std::move(what));
  }

  Changes shifted(std::int64_t by) const {
    if (!form_of(i_.kind).shift) return std::nullopt;
    std::int64_t group = 1;
    for (int axis : i_.axes) group *= p_.axes[as_index(axis)].degree;
    if (by % group == 0) return std::nullopt;
    Instruction what = i_;
    what.shift += by;
    return replaced(std::move(what));
  }

  Changes with_key(const DrawKey& key) const {
    if (!calls_kernel(i_.kind) || i_.key.name.empty() || key.name.empty()) return std::nullopt;
    Instruction what = i_;
    what.key = key;
    return replaced(std::move(what));
  }

  /// An instruction of another kind on the same buffers, where both kinds take such buffers.
  Changes substituted() const {
    using Kind = InstructionKind;
    static const std::vector<std::vector<Kind>> kAlike = {{Kind::reduce_scatter, Kind::slice},
                                                          {Kind::all_reduce, Kind::broadcast},
                                                          {Kind::accumulate, Kind::copy}};
    for (const std::vector<Kind>& alike : kAlike) {
      if (std::ranges::find(alike, i_.kind) == alike.end()) continue;
      const auto to = std::ranges::find(alike, fault_.to, [](Kind k) { return name_of(k); });
      if (to == alike.end() || (*to == Kind::slice && i_.outputs.size() > 1)) return std::nullopt;
      Instruction what = i_;
      what.kind = *to;
      keep_fields(form_of(*to), what);
      return replaced(std::move(what));
    }
    return std::nullopt;
  }

  /// Fields that a kind does not use get their defaults.
  static void keep_fields(const InstructionForm& form, Instruction& what) {
    const Instruction plain;
    if (!form.axes) what.axes.clear();
    if (!form.op) what.op = plain.op;
    if (!form.dim) what.dim = plain.dim;
    if (!form.into) what.into = plain.into;
    if (!form.shift) what.shift = plain.shift;
    if (!form.peer) what.peer = plain.peer;
    if (!form.among) what.among.clear();
  }

  /// What a movement takes, or what a kernel makes, is put through a function of which nothing is
  /// known but its name.
  Changes passed_through(const std::string& function) const {
    const bool makes = calls_kernel(i_.kind) || i_.kind == InstructionKind::receive;
    const bool takes = is_collective(i_.kind) || i_.kind == InstructionKind::accumulate ||
                       i_.kind == InstructionKind::copy || i_.kind == InstructionKind::host_copy;
    if (!makes && !takes) return std::nullopt;
    std::vector<Change> out;
    for (const BufferRef& ref : makes ? i_.outputs : i_.inputs) {
      Instruction through = beside(i_, InstructionKind::compute);
      through.inputs = through.outputs = {ref};
      out.push_back({.kind = makes ? Change::Kind::after : Change::Kind::before,
                     .at = at_,
                     .what = std::move(through),
                     .kernel = entrywise(function, function)});
    }
    return out;
  }

  /// The movement takes apart, or puts together, along another dim.
  Changes with_dim(int dim) const {
    if (!form_of(i_.kind).dim) return std::nullopt;
    const auto has_dim = [&](const BufferRef& ref) {
      const BufferType& type = p_.families[as_index(ref.family)].type;
      return type.pieces.size() == 1 && dim < static_cast<int>(type.pieces[0].dims.size());
    };
    for (const std::vector<BufferRef>* list : {&i_.inputs, &i_.outputs}) {
      if (!std::ranges::all_of(*list, has_dim)) return std::nullopt;
    }
    Instruction what = i_;
    what.dim = dim;
    return replaced(std::move(what));
  }

  /// The code takes its part along an axis, or along all, for the first one.
  Changes without_position() const {
    Instruction what = i_;
    const auto is_dropped = [&](int a) {
      return fault_.axis.empty() || p_.axes[as_index(a)].name == fault_.axis;
    };
    for (Position& position : what.positions) {
      const AxisList last = position.by.empty() ? AxisList{} : position.by.back();
      for (AxisList& level : position.by) std::erase_if(level, is_dropped);
      std::erase_if(position.by, [](const AxisList& level) { return level.empty(); });
      if (position.by.empty() || position.by.back() != last) position.shift = 0;
    }
    return replaced(std::move(what));
  }

  /// Another key that is drawn for in the program, the next by name.
  DrawKey other_key() const {
    std::set<std::string> names;
    for (const Procedure& procedure : p_.procedures) {
      for (const Step& step : procedure.body) {
        const auto* i = std::get_if<Instruction>(&step.what);
        if (i != nullptr && !i->key.name.empty()) names.insert(i->key.name);
      }
    }
    names.erase(i_.key.name);
    if (names.empty()) return {};
    const auto next = names.upper_bound(i_.key.name);
    return {.name = next == names.end() ? *names.begin() : *next, .unit = i_.key.unit};
  }

  const Program& p_;
  const Fault& fault_;
  const std::vector<Step>& body_;
  std::size_t at_;
  const Instruction& i_;
};

std::int64_t tokens_of(const Program& program) {
  if (program.reference.weights < 0) return 1;
  std::int64_t product = 1;
  for (int dim : program.reference.inputs[as_index(program.reference.weights)].dims) {
    product *= program.dims[as_index(dim)].extent;
  }
  return product;
}

std::optional<std::int64_t> value_of_name(const Program& program, const std::string& name) {
  if (name == "m") return program.axes.back().degree;
  if (name == "tokens") return tokens_of(program);
  for (const ProgramAxis& axis : program.axes) {
    if (axis.name == name) return axis.degree;
  }
  std::int64_t value = 0;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (error != std::errc() || rest != name.data() + name.size() || value == 0) return std::nullopt;
  return value;
}

}  // namespace

Kernel entrywise(const std::string& name, const std::string& function) {
  Kernel kernel{.name = name,
                .dims = {{.name = std::string(kAnyDims)}},
                .tensors = {{.name = "x", .dims = {0}}, {.name = "y", .dims = {0}}},
                .inputs = 1,
                .outputs = 1,
                .statements = {}};
  Statement& y = kernel.statements.emplace_back();
  y.result = {.tensor = 1, .dims = {0}};
  y.function = function;
  if (function.empty()) {
    y.products = {{.operands = {{.tensor = 0, .dims = {0}}}}};
  } else {
    y.operands = {{.tensor = 0, .dims = {0}}};
  }
  return kernel;
}

std::optional<std::vector<Change>> changes_for(const Program& program, const Fault& fault,
                                               const std::vector<Step>& body, std::size_t at) {
  return Changer(program, fault, body, at).changes();
}

namespace {

/// Appends an instruction; `only` is the step it is for, 0: both.
void add_for(std::vector<Step>& out, Instruction what, std::int64_t only) {
  if (only != 0 && what.step != 0 && what.step != only) return;
  if (only != 0) what.step = only;
  out.push_back({std::move(what)});
}

/// Appends those of the changes that are of the kind.
void add_kind(std::vector<Step>& out, const std::vector<const Change*>& changes, Change::Kind kind,
              std::int64_t step) {
  for (const Change* c : changes) {
    if (c->kind == kind) add_for(out, c->what, step);
  }
}

}  // namespace

std::vector<Step> changed(const std::vector<Step>& body, const std::vector<Change>& changes,
                          std::int64_t step) {
  using Kind = Change::Kind;
  std::vector<std::vector<const Change*>> by_step(body.size());
  for (const Change& c : changes) by_step[c.at].push_back(&c);
  std::vector<Step> out;
  for (std::size_t k = 0; k < body.size(); ++k) {
    const bool gone = std::ranges::any_of(by_step[k], [](const Change* c) {
      return c->kind == Kind::remove || c->kind == Kind::replace;
    });
    add_kind(out, by_step[k], Kind::before, step);
    if (!gone) out.push_back(body[k]);
    if (gone && step != 0) add_for(out, std::get<Instruction>(body[k].what), 3 - step);
    add_kind(out, by_step[k], Kind::replace, step);
    add_kind(out, by_step[k], Kind::after, step);
  }
  return out;
}

std::optional<Rational> value_of_product(const Program& program, const std::string& text) {
  Rational value(1);
  bool over = false;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find_first_of("*/", begin), text.size());
    std::string name = text.substr(begin, end - begin);
    std::erase(name, ' ');
    const auto factor = value_of_name(program, name);
    if (!factor) return std::nullopt;
    value = over ? value / Rational(*factor) : value * Rational(*factor);
    over = end < text.size() && text[end] == '/';
    begin = end + 1;
  }
  return value;
}

std::optional<AxisList> axes_named(const Program& program, const std::string& text) {
  AxisList axes;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find_first_of("*/+, ()", begin), text.size());
    const std::string name = text.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty()) continue;
    int found = -1;
    for (int a = 0; a + 1 < static_cast<int>(program.axes.size()); ++a) {
      if (program.axes[as_index(a)].name == name) found = a;
    }
    if (found < 0 || std::ranges::find(axes, found) != axes.end()) return std::nullopt;
    axes.push_back(found);
  }
  return axes;
}

}  // namespace placet
