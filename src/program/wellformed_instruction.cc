// The grammar of one instruction.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "program/grammar.h"
#include "program/instruction_form.h"
#include "program/sizes.h"
#include "program/text.h"
#include "program/text_names.h"

namespace placet {
namespace {

using Buffers = InstructionForm::Buffers;

/// Devices at which sizes are compared that are written in different ways.
constexpr std::int64_t kMostPairs = 1024;

class InstructionGrammar {
 public:
  InstructionGrammar(Grammar& g, const Instruction& i)
      : g_(g), p_(g.program()), i_(i), form_(form_of(i.kind)) {}

  void check() const {
    for (const BufferRef& buffer : i_.inputs) check(buffer);
    for (const BufferRef& buffer : i_.outputs) check(buffer);
    g_.require_text(i_.label, "a label");
    g_.require_text(i_.because, "a reason");
    g_.require(
        i_.step >= 0 && i_.step <= 2, [&] { return text(); }, "has a step that is not judged",
        "1 or 2, or none: every step");
    check_count();
    check_unused();
    check_outputs();
    if (form_.buffers == Buffers::kernel) check_kernel();
    if (form_.axes) check_axes();
    if (form_.dim) check_dim(i_.dim);
    if (form_.into) check_dim(i_.into);
    g_.require(
        !form_.into || i_.dim != i_.into, [&] { return text(); },
        "splits the dim that it puts together", "two dims");
  }

 private:
  std::string text() const { return to_text(p_, i_); }

  const Family& family_of(const BufferRef& buffer) const {
    return p_.families[as_index(buffer.family)];
  }

  void check(const BufferRef& buffer) const {
    g_.require_number(buffer.family, p_.families.size(), "buffer");
    const Family& family = family_of(buffer);
    g_.require(family.by_unit || buffer.unit == IndexTerm{}, family.name, "has no index of units");
    g_.require(family.by_micro_batch || buffer.micro_batch == IndexTerm{}, family.name,
               "has no index of micro-batches");
    if (buffer.piece == -1) return;
    g_.require_number(buffer.piece, family.type.pieces.size(), "tensor of '" + family.name + "'");
    g_.require(family.type.flat.empty(), family.name,
               "is divided as a row, in which its tensors have no names");
  }

  void require_count(bool holds, const std::string& allowed) const {
    g_.require(
        holds, [&] { return text(); }, "has another number of buffers", allowed);
  }

  void check_count() const {
    const std::size_t in = i_.inputs.size();
    const std::size_t out = i_.outputs.size();
    switch (form_.buffers) {
      case Buffers::makes:
        return require_count(in == 0 && out == 1, "one out");
      case Buffers::takes:
        return require_count(in == 1 && out == 0, "one in");
      case Buffers::pair:
        return require_count(in == 1 && out == 1, "one in, one out");
      case Buffers::pairs:
        return require_count(in == out && in > 0, "as many out as in");
      case Buffers::in_place:
        require_count(in > 0, "one or more");
        g_.require(
            i_.inputs == i_.outputs, [&] { return text(); }, "gives other buffers than it takes");
        return;
      case Buffers::none:
        return require_count(in == 0 && out == 0, "none");
      case Buffers::kernel:
        return;
    }
  }

  /// No buffer is written twice.
  void check_outputs() const {
    for (auto out = i_.outputs.begin(); out != i_.outputs.end(); ++out) {
      const auto is_apart = [&](const BufferRef& other) { return are_apart(other, *out); };
      g_.require(
          std::all_of(i_.outputs.begin(), out, is_apart), [&] { return text(); },
          [&] { return "may write '" + to_text(p_, *out) + "' twice"; });
    }
  }

  /// Whether two buffers are two, whatever unit and micro-batch a procedure is called with.
  bool are_apart(const BufferRef& a, const BufferRef& b) const {
    const auto differ = [](const IndexTerm& x, const IndexTerm& y) {
      return x.variable == y.variable && x.offset != y.offset;
    };
    return a.family != b.family || differ(a.unit, b.unit) || differ(a.micro_batch, b.micro_batch) ||
           (a.piece >= 0 && b.piece >= 0 && a.piece != b.piece);
  }

  /// Fields that the kind does not use have their defaults.
  void check_unused() const {
    const auto unused = [&](bool is_default, const char* field) {
      g_.require(
          is_default, [&] { return text(); },
          [&] {
            return std::string("has ") + field + ", which " + std::string(name_of(i_.kind)) +
                   " does not use";
          });
    };
    if (form_.buffers != Buffers::kernel) {
      unused(i_.kernel == -1, "a kernel");
      unused(i_.positions.empty(), "positions");
      unused(i_.key == DrawKey{}, "a key");
    }
    if (!form_.factor) {
      unused(i_.factor == Rational(1), "a factor");
      unused(i_.because.empty(), "a reason");
    }
    if (!form_.axes) unused(i_.axes.empty(), "axes");
    if (!form_.op) unused(i_.op == Combine::sum, "a way to combine");
    if (!form_.dim) unused(i_.dim == kFlat, "a dim");
    if (!form_.into) unused(i_.into == kFlat, "a second dim");
    if (!form_.shift) unused(i_.shift == 0, "a shift");
    if (!form_.peer) unused(i_.peer == 0, "a peer");
    if (!form_.among) unused(i_.among.empty(), "coordinates that take part");
    g_.require(
        form_.event ? i_.event >= 0 : i_.event == -1, [&] { return text(); },
        [&] {
          return form_.event ? "has no event" : "has an event, which only record and wait use";
        });
  }

  // --- kernels

  static bool takes_any(const Kernel& kernel, const Kernel::Tensor& formal) {
    return formal.dims.size() == 1 && kernel.dims[as_index(formal.dims[0])].name == kAnyDims;
  }

  /// What is known of the sizes of a kernel's dims from the buffers so far.
  struct Binding {
    std::vector<const DividedDim*> dims;
    const BufferRef* any = nullptr;  // a buffer whose dims are "..."
  };

  void check_kernel() const {
    g_.require_number(i_.kernel, p_.kernels.size(), "kernel");
    const Kernel& kernel = p_.kernels[as_index(i_.kernel)];
    g_.require(
        static_cast<int>(i_.inputs.size()) == kernel.inputs &&
            static_cast<int>(i_.outputs.size()) == kernel.outputs,
        [&] { return text(); },
        [&] { return "gives '" + kernel.name + "' another number of buffers"; },
        [&] {
          return std::to_string(kernel.inputs) + " in, " + std::to_string(kernel.outputs) + " out";
        });
    Binding binding{.dims = std::vector<const DividedDim*>(kernel.dims.size(), nullptr)};
    int tensor = 0;
    for (const BufferRef& buffer : i_.inputs) bind(kernel, tensor++, buffer, binding);
    for (const BufferRef& buffer : i_.outputs) bind(kernel, tensor++, buffer, binding);
    check_positions(kernel);
    g_.require_text(i_.key.name, "a key");
    g_.require(
        !i_.key.name.empty() || i_.key.unit == IndexTerm{}, [&] { return text(); },
        "has a unit of a key without a name");
    g_.require(
        i_.factor.numerator() != std::numeric_limits<std::int64_t>::min(), [&] { return text(); },
        "has a factor out of range");
  }

  void bind(const Kernel& kernel, int tensor, const BufferRef& buffer, Binding& b) const {
    const Kernel::Tensor& formal = kernel.tensors[as_index(tensor)];
    if (takes_any(kernel, formal)) return bind_any(kernel, buffer, b);
    const PieceType& piece = piece_of(buffer, formal);
    g_.require(
        piece.dims.size() == formal.dims.size(), [&] { return to_text(p_, buffer); },
        [&] { return "has " + std::to_string(piece.dims.size()) + " dims"; },
        [&] {
          return std::to_string(formal.dims.size()) + ", as '" + formal.name + "' of '" +
                 kernel.name + "' has";
        });
    for (std::size_t d = 0; d < formal.dims.size(); ++d) {
      bind_dim(kernel, formal.dims[d], piece.dims[d], buffer, b);
    }
  }

  /// The one tensor that a buffer stands for.
  const PieceType& piece_of(const BufferRef& buffer, const Kernel::Tensor& formal) const {
    const BufferType& type = family_of(buffer).type;
    g_.require(
        type.flat.empty(), [&] { return to_text(p_, buffer); },
        "is divided as a row, and the kernel asks for dims",
        [&] { return "a tensor with dims for '" + formal.name + "'"; });
    g_.require(
        buffer.piece >= 0 || type.pieces.size() == 1, [&] { return to_text(p_, buffer); },
        "holds several tensors, and the kernel asks for one",
        [&] { return family_of(buffer).name + ":0 and so on"; });
    return type.pieces[as_index(std::max(buffer.piece, 0))];
  }

  /// The piece and row of a buffer as a type of its own.
  BufferType type_of(const BufferRef& buffer) const {
    BufferType type = family_of(buffer).type;
    type.dtype = Dtype::int8;
    if (buffer.piece >= 0) type.pieces = {type.pieces[as_index(buffer.piece)]};
    return type;
  }

  void bind_any(const Kernel& kernel, const BufferRef& buffer, Binding& b) const {
    if (b.any == nullptr) {
      b.any = &buffer;
      return;
    }
    g_.require(
        same_size(type_of(*b.any), type_of(buffer)), [&] { return to_text(p_, buffer); },
        [&] { return "has another number of entries than " + to_text(p_, *b.any); },
        [&] { return "as many for '...' of '" + kernel.name + "'"; });
  }

  void bind_dim(const Kernel& kernel, int formal, const DividedDim& dim, const BufferRef& buffer,
                Binding& b) const {
    int at = formal;
    while (b.dims[as_index(at)] == nullptr && kernel.dims[as_index(at)].like >= 0) {
      at = kernel.dims[as_index(at)].like;
    }
    const DividedDim*& known = b.dims[as_index(at)];
    if (known == nullptr) known = &dim;
    if (dim == *known) return;
    const BufferType mine{.dtype = Dtype::int8, .pieces = {{.dims = {dim}}}, .flat = {}};
    const BufferType others{.dtype = Dtype::int8, .pieces = {{.dims = {*known}}}, .flat = {}};
    g_.require(
        same_size(mine, others), [&] { return to_text(p_, buffer); },
        [&] {
          return "has " + dim_text(dim) + " along '" + kernel.dims[as_index(formal)].name +
                 "' of '" + kernel.name + "', where another buffer has " + dim_text(*known);
        });
  }

  std::string dim_text(const DividedDim& dim) const {
    const BufferType type{.dtype = Dtype::fp32, .pieces = {{.dims = {dim}}}, .flat = {}};
    const std::string text = to_text(p_, type);
    return text.substr(text.find('[') + 1, text.size() - text.find('[') - 2);
  }

  /// Whether two types have the same number of entries on every device, as far as is tried. What is
  /// tried is bounded over the whole program.
  bool same_size(const BufferType& a, const BufferType& b) const {
    if (a == b) return true;
    std::vector<bool> axes = dividing_axes(p_, a);
    const std::vector<bool> more = dividing_axes(p_, b);
    for (std::size_t k = 0; k < axes.size(); ++k) axes[k] = axes[k] || more[k];
    ProgramCoordinates at(p_.axes.size(), 0);
    const auto cost = static_cast<std::int64_t>(a.pieces.size() + b.pieces.size());
    for (std::int64_t tried = 0; tried < kMostPairs && g_.spend(cost); ++tried) {
      if (stored_entries(p_, a, at) != stored_entries(p_, b, at)) return false;
      std::size_t k = at.size();
      while (k > 0 && (!axes[k - 1] || ++at[k - 1] == p_.axes[k - 1].degree)) at[--k] = 0;
      if (k == 0) return true;
    }
    return true;
  }

  void check_positions(const Kernel& kernel) const {
    const std::vector<int> allowed = positions_of(kernel);
    std::vector<bool> seen(kernel.dims.size(), false);
    for (const Position& position : i_.positions) {
      g_.require_number(position.dim, kernel.dims.size(), "dim of the kernel");
      const std::string& name = kernel.dims[as_index(position.dim)].name;
      g_.require(std::ranges::find(allowed, position.dim) != allowed.end(), name, [&] {
        return "has a position that no function of '" + kernel.name + "' depends on";
      });
      g_.require(!seen[as_index(position.dim)], name, "has two positions");
      seen[as_index(position.dim)] = true;
      std::vector<bool> used(p_.axes.size(), false);
      g_.require_division(position.by, used);
      g_.require_shift(position.by, position.shift);
    }
  }

  // --- collectives

  void check_axes() const {
    std::vector<bool> used(p_.axes.size(), false);
    g_.require(
        !i_.axes.empty(), [&] { return text(); }, "goes over no axis", "over AXIS");
    g_.require_division({i_.axes}, used);
    g_.require(
        !used.back(), [&] { return text(); }, "goes over the micro-batches, which are no devices",
        "axes of the mesh");
    g_.require(
        i_.axes.size() == 1 || (!form_.one_axis && i_.among.empty()), [&] { return text(); },
        "goes over several axes", "one");
    std::int64_t group = 1;
    for (int axis : i_.axes) group *= p_.axes[as_index(axis)].degree;
    g_.require(
        !form_.peer || (i_.peer >= 0 && i_.peer < group), [&] { return std::to_string(i_.peer); },
        "is no device of the group", [&] { return "from 0 to " + std::to_string(group - 1); });
    std::int64_t before = -1;
    for (std::int64_t coordinate : i_.among) {
      g_.require(
          coordinate > before && coordinate < group, [&] { return std::to_string(coordinate); },
          "is no further coordinate of the group",
          [&] { return "from 0 to " + std::to_string(group - 1) + " in rising order"; });
      before = coordinate;
    }
  }

  void check_dim(int dim) const {
    if (dim == kFlat) return;
    for (const std::vector<BufferRef>* list : {&i_.inputs, &i_.outputs}) {
      for (const BufferRef& buffer : *list) {
        const PieceType& piece = piece_of(buffer, {.name = "dim " + std::to_string(dim)});
        g_.require_number(dim, piece.dims.size(), "dim of " + to_text(p_, buffer));
      }
    }
  }

  Grammar& g_;
  const Program& p_;
  const Instruction& i_;
  const InstructionForm form_;
};

}  // namespace

void check_instruction(Grammar& g, const Instruction& instruction) {
  InstructionGrammar(g, instruction).check();
}

}  // namespace placet
