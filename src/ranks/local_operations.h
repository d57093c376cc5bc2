// What one rank does by itself, as operations: calls of kernels, copies, slices, zeros
// (docs/theory.md §6.7).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ranks/groups.h"
#include "ranks/operation.h"
#include "ranks/rank.h"

namespace placet::ranks {

/// One rank of a program. Refers to all that it is given.
class LocalOperations {
 public:
  struct Shared {
    const Program& program;
    KernelLibrary& library;
    Mesh& mesh;
  };
  LocalOperations(const Shared& shared, int rank, const Listing& listing, const RankImage& image)
      : shared_(shared), rank_(rank), listing_(listing), image_(image) {}

  /// Adds the operation of an instruction that is no collective; of alloc, free, record and wait
  /// none. Returns why it cannot run; empty: it can.
  std::string add(const ListedInstruction& one, OperationList& list);

  /// Tensors inside a buffer.
  std::size_t pieces_in(const ListedRef& ref) const;

 private:
  std::string call(const ListedInstruction& one, OperationList& list);
  void note_wholes(const ListedInstruction& one, OperationList& list) const;
  bool find_begins(const ListedInstruction& one, std::vector<std::int64_t>& begins) const;
  int logical_dim(const ListedInstruction& one, int dim) const;
  int logical_dim(const ListedRef& ref, const std::vector<int>& names, int dim) const;
  std::string move(const ListedInstruction& one, OperationList& list);
  void clear(const ListedInstruction& one, OperationList& list) const;
  Member member(const ListedRef& from, const ListedRef& to) const;
  std::string move_all(const ListedInstruction& one, OperationList& list);
  std::string slice(const Instruction& what, const ListedRef& from, const ListedRef& to,
                    OperationList& list);

  Shared shared_;
  int rank_;
  const Listing& listing_;
  const RankImage& image_;
};

}  // namespace placet::ranks
