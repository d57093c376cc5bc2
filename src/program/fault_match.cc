// Which instructions a fault concerns.
#include <algorithm>

#include "program/fault_parts.h"
#include "program/text_names.h"

namespace placet {
namespace {

bool has(const std::vector<BufferRef>& refs, const std::set<int>& families) {
  return std::ranges::any_of(refs, [&](const BufferRef& r) { return families.contains(r.family); });
}

template <class Visit>
void for_each_written(const std::vector<Step>& body, const Visit& visit) {
  for (const Step& step : body) {
    if (const auto* instruction = std::get_if<Instruction>(&step.what)) visit(*instruction);
    if (const auto* loop = std::get_if<Loop>(&step.what)) for_each_written(loop->body, visit);
  }
}

/// Every instruction of the text once.
template <class Visit>
void for_each_written(const Program& program, const Visit& visit) {
  for (const Procedure& p : program.procedures) for_each_written(p.body, visit);
  for (const DeviceClass& c : program.classes) for_each_written(c.body, visit);
}

/// Adds what is computed from the families by sums, copies and collectives.
void follow(const Program& program, std::set<int>& families) {
  for (std::size_t before = families.size() + 1; before != families.size();) {
    before = families.size();
    for_each_written(program, [&](const Instruction& i) {
      if (calls_kernel(i.kind) || !has(i.inputs, families)) return;
      for (const BufferRef& out : i.outputs) families.insert(out.family);
    });
  }
}

using Names = std::vector<std::set<std::string>>;

/// The parameters that families hold, or the states of.
Names held_names(const Program& program) {
  const Reference& r = program.reference;
  Names names(program.families.size());
  const auto note = [&](const Initial& initial) {
    for (const StateRef& ref : initial.pieces) {
      if (ref.kind != StateRef::Kind::parameter && ref.kind != StateRef::Kind::state) continue;
      const ReferenceKind& kind = r.kinds[as_index(r.units[as_index(ref.unit)].kind)];
      names[as_index(initial.buffer.family)].insert(kind.parameters[as_index(ref.tensor)].name);
    }
  };
  for (const DeviceClass& c : program.classes) std::ranges::for_each(c.initial, note);
  return names;
}

bool is_scalar(const Program& program, int family) {
  const BufferType& type = program.families[as_index(family)].type;
  return std::ranges::all_of(type.pieces, [](const PieceType& p) { return p.dims.empty(); });
}

/// Gives families of one update, and those that are copied or summed into each other, the names of
/// each other; true: something was new.
bool share_names(const Program& program, const Instruction& i, Names& names) {
  const bool update = i.kind == InstructionKind::update;
  if ((!update && calls_kernel(i.kind)) || i.outputs.empty()) return false;
  bool grew = false;
  const auto share = [&](int a, int b) {
    std::set<std::string>& to = names[as_index(a)];
    const std::size_t before = to.size();
    to.insert(names[as_index(b)].begin(), names[as_index(b)].end());
    grew = grew || to.size() > before;
  };
  for (std::size_t k = 0; k < i.inputs.size(); ++k) {
    const int in = i.inputs[k].family;
    const int out = i.outputs[update ? 0 : std::min(k, i.outputs.size() - 1)].family;
    if (is_scalar(program, in)) continue;
    share(out, in);
    share(in, out);
  }
  return grew;
}

/// A parameter's name in one unit.
std::string in_unit(const std::string& name, std::int64_t number) {
  const std::size_t at = name.find("{}");
  if (at == std::string::npos) return name;
  return name.substr(0, at) + std::to_string(number) + name.substr(at + 2);
}

std::int64_t number_of_unit(const Program& program, std::int64_t unit) {
  const auto& units = program.reference.units;
  if (unit < 0 || unit >= static_cast<std::int64_t>(units.size())) return -1;
  return units[static_cast<std::size_t>(unit)].number;
}

bool fits_tensor(const Program& program, const FaultTables& tables, const std::string& glob,
                 const Instruction& i, const Arguments& arguments) {
  if (glob.empty() || fits_glob(glob, i.label)) return true;
  const auto fits_buffer = [&](const BufferRef& ref) {
    if (fits_glob(glob, program.families[as_index(ref.family)].name)) return true;
    const std::int64_t number = number_of_unit(program, value_of(ref.unit, arguments));
    const auto fits_name = [&](const std::string& name) {
      return fits_glob(glob, name) || fits_glob(glob, in_unit(name, number));
    };
    return std::ranges::any_of(tables.names[as_index(ref.family)], fits_name);
  };
  return std::ranges::any_of(i.inputs, fits_buffer) || std::ranges::any_of(i.outputs, fits_buffer);
}

/// Whether the instruction belongs to a unit of that number: by its unit, or by its buffers.
bool fits_layer(const Program& program, std::int64_t layer, const Instruction& i,
                const Arguments& arguments) {
  for (const std::vector<BufferRef>* list : {&i.outputs, &i.inputs}) {
    for (const BufferRef& ref : *list) {
      if (!program.families[as_index(ref.family)].by_unit) continue;
      const bool varies = ref.unit.variable == IndexTerm::Variable::unit;
      return number_of_unit(program, varies ? arguments.unit : ref.unit.offset) == layer;
    }
  }
  return false;
}

bool fits_micro_batch(const Program& program, std::int64_t number, const Instruction& i,
                      const Arguments& arguments) {
  for (const std::vector<BufferRef>* list : {&i.outputs, &i.inputs}) {
    for (const BufferRef& ref : *list) {
      if (!program.families[as_index(ref.family)].by_micro_batch) continue;
      return value_of(ref.micro_batch, arguments) == number;
    }
  }
  return false;
}

/// Whether the axis is one of the group's or, where positions are the matter, of a claimed part.
bool fits_axis(const Program& program, const Fault& fault, const Instruction& i) {
  const auto names = [&](const AxisList& axes) {
    return std::ranges::any_of(axes,
                               [&](int a) { return program.axes[as_index(a)].name == fault.axis; });
  };
  if (fault.op != FaultOp::drop_position) return names(i.axes);
  return std::ranges::any_of(i.positions,
                             [&](const Position& p) { return std::ranges::any_of(p.by, names); });
}

/// What operations ask for beside what changes_for finds.
bool fits_op(const Program& program, const FaultTables& tables, FaultOp op, const Instruction& i,
             const Arguments& arguments) {
  if (op == FaultOp::local_norm || op == FaultOp::local_weight) {
    const std::set<int>& families = op == FaultOp::local_norm ? tables.norms : tables.counts;
    return i.kind == InstructionKind::all_reduce && has(i.inputs, families) &&
           is_scalar(program, i.inputs[0].family);
  }
  if (op != FaultOp::drop_use) return true;
  if (i.outputs.empty()) return false;
  const std::set<std::string>& names = tables.names[as_index(i.outputs[0].family)];
  const bool shared = std::ranges::any_of(
      names, [&](const std::string& name) { return tables.shared.contains(name); });
  if (!shared) return false;
  if (i.kind == InstructionKind::accumulate) return tables.users.contains(arguments.unit);
  return i.kind == InstructionKind::all_reduce &&
         std::ranges::any_of(i.axes, [&](int a) { return tables.apart.contains(a); });
}

void add_shared(const Program& program, FaultTables& tables) {
  const Reference& r = program.reference;
  for (std::size_t u = 0; u < r.units.size(); ++u) {
    for (const ReferenceParameter& p : r.kinds[as_index(r.units[u].kind)].parameters) {
      if (!p.tied) continue;
      tables.users.insert(static_cast<std::int64_t>(u));
      const int kind = r.units[as_index(p.tied->unit)].kind;
      tables.shared.insert(r.kinds[as_index(kind)].parameters[as_index(p.tied->parameter)].name);
    }
  }
}

/// Families that hold norms and counts of tokens as they are made.
void add_scalars(const Program& program, FaultTables& tables) {
  for_each_written(program, [&](const Instruction& i) {
    const bool norm = i.kind == InstructionKind::norm ||
                      (i.kernel >= 0 && i.kernel == program.reference.norm_kernel);
    const bool count = i.kernel >= 0 && i.kernel == program.reference.count_kernel;
    for (const BufferRef& out : i.outputs) {
      if (norm) tables.norms.insert(out.family);
      if (count) tables.counts.insert(out.family);
    }
  });
}

/// Axes along which devices are of different classes.
void add_apart(const Program& program, FaultTables& tables) {
  for (const DeviceClass& c : program.classes) {
    for (std::size_t a = 0; a < c.box.size(); ++a) {
      if (!c.box[a].empty()) tables.apart.insert(static_cast<int>(a));
    }
  }
}

}  // namespace

FaultTables tables_of(const Program& program) {
  FaultTables tables;
  add_scalars(program, tables);
  follow(program, tables.norms);
  follow(program, tables.counts);
  tables.names = held_names(program);
  for (bool grew = true; grew;) {
    grew = false;
    for_each_written(program, [&](const Instruction& i) {
      grew = share_names(program, i, tables.names) || grew;
    });
  }
  add_shared(program, tables);
  add_apart(program, tables);
  return tables;
}

bool fits(const Program& program, const FaultTables& tables, const Fault& fault,
          const Instruction& i, const Arguments& arguments) {
  if (!fault.kinds.empty() && std::ranges::find(fault.kinds, i.kind) == fault.kinds.end()) {
    return false;
  }
  if (fault.phase && *fault.phase != i.phase) return false;
  if (fault.stream && *fault.stream != i.stream) return false;
  if (!fault.axis.empty() && !fits_axis(program, fault, i)) return false;
  if (fault.layer && !fits_layer(program, *fault.layer, i, arguments)) return false;
  if (fault.micro_batch && !fits_micro_batch(program, *fault.micro_batch, i, arguments)) {
    return false;
  }
  return fits_op(program, tables, fault.op, i, arguments) &&
         fits_tensor(program, tables, fault.tensor, i, arguments);
}

bool fits_glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]) && pattern[p] != '*') {
      ++p;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace placet
