// Writes the parts of a program: families, kernels, instructions. Inside of lower/.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lower/mesh.h"
#include "program/program.h"

namespace placet {

/// How a tensor lies on the devices: the division of each dim, and the axes along which what the
/// devices have must still be put together.
struct Spread {
  std::vector<int> tensor;  // logical dims
  std::vector<Division> by;
  AxisList partial;
  Combine op = Combine::sum;
  std::vector<std::int64_t> shift = {};  // by dim, as of `DividedDim`; empty: none

  friend bool operator==(const Spread&, const Spread&) = default;
};

/// A buffer with what it holds. Copies share the buffer; the last one that lets go frees it.
struct Held {
  BufferRef buffer;
  Spread spread;
  std::shared_ptr<int> holders;  // none: not ours to free
};

/// The buffer with the indices of the procedure that is being written, or none.
enum class Indexing : std::uint8_t { unit_and_micro_batch, unit, micro_batch, none };

class Writer {
 public:
  Writer(Program& program, const ModelReference& model) : program_(program), model_(model) {}

  /// Where instructions go from now on.
  void write_to(std::vector<Step>& body) { body_ = &body; }
  /// Forgets which buffers are alive: a procedure begins.
  void forget_buffers() { alive_.clear(); }
  /// Notes a buffer that is alive when the procedure begins.
  void note_alive(const BufferRef& ref) { alive_.push_back(ref); }
  void set_phase(StepPhase phase) { phase_ = phase; }
  StepPhase phase() const { return phase_; }

  int add_kernel(const Kernel& kernel);
  const Kernel& kernel(int number) const {
    return program_.kernels[static_cast<std::size_t>(number)];
  }

  /// The family of that name and type; another type of the same name gets a number.
  int family(const std::string& name, const BufferType& type, Indexing indexing,
             bool on_host = false);
  const Family& family_at(int number) const {
    return program_.families[static_cast<std::size_t>(number)];
  }

  /// A reference to the element of a family for the variables of a procedure.
  BufferRef here(int family) const;

  /// Makes a new buffer: writes its allocation. While another one of that name is alive it gets a
  /// number.
  Held make(const std::string& name, const Spread& spread, Dtype dtype,
            Indexing indexing = Indexing::unit_and_micro_batch);
  /// The same in host memory.
  Held make_on_host(const std::string& name, const Spread& spread, Dtype dtype);
  /// Makes the buffer `ref` of a known family.
  Held make_at(const BufferRef& ref, const Spread& spread);
  /// Lets go of a buffer; the last holder's letting go frees it.
  void drop(Held& held);

  Instruction& add(Instruction instruction);
  /// Instructions on one buffer, for those that keep account of what is alive themselves.
  void alloc(const BufferRef& ref);
  void free(const BufferRef& ref);
  void zero(const BufferRef& ref);
  void add(const Call& call) { body_->push_back({call}); }

  void move(InstructionKind kind, const BufferRef& from, const BufferRef& to);
  /// `among`: the coordinates of one axis that take part; empty: all.
  void reduce(std::vector<BufferRef> buffers, const AxisList& axes, Combine op,
              const std::string& label, const std::vector<std::int64_t>& among = {});

  /// Brings a tensor to another spread (complete: nothing partial), with the collectives of
  /// docs/theory.md §4. A buffer that needs no change is shared. `into`: the buffer of the result,
  /// if it is a certain one.
  Held brought(const Held& from, const std::vector<Division>& by, const std::string& name,
               const BufferRef* into = nullptr);
  /// The same without the sums that change no division: the result may still be partial.
  Held divided(const Held& from, const std::vector<Division>& by, const std::string& name);

 private:
  struct Moves;
  Held make_unused(const std::string& name, const Spread& spread, Dtype dtype, Indexing indexing,
                   bool on_host);
  Held move_all(const Held& from, const std::vector<Division>& by, const std::string& name,
                const BufferRef* into, bool sums);
  static void put_in_order(Moves& moves, const Spread& from, const std::vector<Division>& by);
  Moves moves_between(const Spread& from, const std::vector<Division>& by) const;
  Held result_of(const Held& from, const Spread& spread, const std::string& name,
                 const BufferRef* into);

  Program& program_;
  const ModelReference& model_;
  std::vector<Step>* body_ = nullptr;
  StepPhase phase_ = StepPhase::forward;
  std::vector<BufferRef> alive_;
  std::map<std::string, int> kernels_;
  std::map<std::string, int> families_;
};

/// The type of a tensor with that spread.
BufferType type_of(const Spread& spread, Dtype dtype);

/// Axes of a division, in order.
AxisList axes_of(const Division& division);

bool has(const AxisList& axes, int axis);
/// Those of `a` that are not in `b`.
AxisList minus(const AxisList& a, const AxisList& b);
/// Those of `a` that are in `b`.
AxisList common(const AxisList& a, const AxisList& b);
/// All of `a`, then those of `b` that are missing; sorted.
AxisList united(const AxisList& a, const AxisList& b);

}  // namespace placet
