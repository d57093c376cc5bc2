// What a kernel makes of values (docs/theory.md §6.5): the transfer rules of its two kinds of
// statements. Inside of check/.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "check/content.h"
#include "check/nodes.h"

namespace placet {

/// A dim of a buffer that a kernel writes.
struct ResultDim {
  int logical = 0;
  Splits cuts;
};

/// A kernel as an instruction calls it.
struct KernelCall {
  const Kernel* kernel = nullptr;
  std::vector<std::optional<Splits>> positions;  // by dim: where the code believes to be
  std::string key;                               // of random numbers
  /// Dims of the outputs, and of which part of each: what dims stand for that no input has, as the
  /// call makes as many entries as its buffers take.
  std::vector<std::vector<ResultDim>> results;
  Rational factor{1};
  /// Whether a causal mask hides all keys of one part from all queries of another one, on all
  /// devices that make the call; none: not to be asked.
  std::function<bool(const ResultDim& queries, const ResultDim& keys)> hides = {};
  /// Where zeros are asked what they are multiplied by: nodes from here on are not the reference's.
  NodeId foreign_from = -1;
  NodeMaker maker = NodeMaker::program;
  /// A sum of more incomplete parts is no reference's: its parts could double with every layer.
  std::size_t most_parts = 1024;
  std::string trouble;  // why it cannot be right, whatever goes in; empty: it can
};

/// Evaluates kernels. What cannot be right becomes an odd node, whose text says why.
class KernelValues {
 public:
  KernelValues(Nodes& nodes, Regions& regions, std::int64_t micro_batches)
      : nodes_(nodes), regions_(regions), micro_batches_(micro_batches) {}

  /// One content per output. Inputs are single tensors, or, for kernels over all dims, whole rows.
  std::vector<Content> run(const KernelCall& call, const std::vector<ContentView>& inputs);

  std::int64_t micro_batches() const { return micro_batches_; }
  const Rows& rows() const { return rows_; }

 private:
  std::vector<Content> run_row(const KernelCall& call, const std::vector<ContentView>& inputs,
                               std::size_t pieces);

  Nodes& nodes_;
  Regions& regions_;
  Rows rows_;
  std::int64_t micro_batches_;
};

}  // namespace placet
