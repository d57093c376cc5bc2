// A small network as a step program over a mesh "data" x "tensor", written by hand, for tests of
// the algebraic reading and for mutants of it.
//
//   a = act(x w),  y = a v,  loss of a token = sum over out of cost(y, z)
//
// The hidden dim is cut over "tensor", samples over "data" and the micro-batches.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "program/program.h"

namespace placet {

struct SmallStep {
  std::int64_t data = 1;
  std::int64_t tensor = 1;
  std::int64_t micro_batches = 1;
  std::int64_t samples = 8;
  std::int64_t hidden = 4;
  std::vector<std::int64_t> data_shares;
  std::vector<std::int64_t> tensor_shares;
  bool divided_state = false;  // optimizer states and updates are divided over "data"
};

Program small_step(const SmallStep& request);

/// Puts programs together: kernels from text, buffers, instructions.
class ProgramWriter {
 public:
  Program program;
  std::vector<Step>* body = nullptr;  // where instructions go

  int axis(const std::string& name, std::int64_t degree, std::vector<std::int64_t> shares = {});
  int dim(const std::string& name, std::int64_t extent);
  int kernel(const std::string& text);
  /// The kernel's number; one that is there already keeps its own, and names stand once.
  int add_kernel(Kernel kernel);
  /// A family of one tensor.
  BufferRef buffer(const std::string& name, std::vector<DividedDim> dims, AxisList flat = {});

  Instruction& add(InstructionKind kind, std::vector<BufferRef> inputs,
                   std::vector<BufferRef> outputs);
  Instruction& call(int kernel, std::vector<BufferRef> inputs, std::vector<BufferRef> outputs);
  Instruction& over(InstructionKind kind, AxisList axes, BufferRef from, BufferRef to,
                    int dim = kFlat);
  /// Calls the backward kernel. `tensors`: buffers of the forward kernel's inputs and outputs;
  /// `from`: gradients of its outputs; `to`: buffers for the gradients of the inputs named.
  void backward(int kernel, const std::vector<BufferRef>& tensors,
                const std::vector<BufferRef>& from,
                const std::vector<std::pair<int, BufferRef>>& to);
  void alloc_all(const std::vector<BufferRef>& buffers);
  void free_all(const std::vector<BufferRef>& buffers);
};

/// The buffer at the micro-batch of the loop it stands in.
BufferRef at_micro_batch(BufferRef ref);

/// The same kernels and reference for all small programs, in this order of kernels.
struct SmallNet {
  int lower = 0, upper = 0, loss = 0, count = 0, seed = 0, squares = 0, limit = 0, update = 0,
      weighted = 0;
  int sample = 0, token = 0, in = 0, hidden = 0, out = 0;
};
SmallNet add_small_net(ProgramWriter& writer, std::int64_t samples, std::int64_t hidden);

/// Every instruction of a program, in order of the text, to be changed.
struct InstructionPlace {
  std::vector<Step>* body = nullptr;
  std::size_t index = 0;
  Instruction& what() const { return std::get<Instruction>((*body)[index].what); }
};
std::vector<InstructionPlace> instructions_of(Program& program);

/// The nth instruction of the kind.
InstructionPlace nth(Program& program, InstructionKind kind, std::size_t n = 0);

}  // namespace placet
