// What resharding a checkpoint did, for people and as JSON.
#pragma once

#include <cstdint>
#include <string>

#include "report/style.h"

namespace placet {

struct ReshardSheet {
  std::string from;    // placement
  std::string to;      // likewise
  std::string run_as;  // the size of the small job that both are states of; empty: the job's own
  int steps = 0;       // that were made
  int from_ranks = 1;
  int ranks = 1;
  std::int64_t bytes = 0;  // of the tensors that were written
  std::string output;
};

std::string reshard_text(const ReshardSheet& sheet, const TextStyle& style);
/// Schema placet.reshard/1.
std::string reshard_json(const ReshardSheet& sheet);

}  // namespace placet
