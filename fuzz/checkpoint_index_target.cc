// Indices of checkpoints: what is read prints as a text that reads as the same index.
#include "checkpoint/index.h"
#include "target.h"

namespace placet::fuzz {

std::string_view target_name() { return "checkpoint_index"; }

void read_one(std::string_view text) {
  const checkpoint::CheckpointIndex index = checkpoint::index_from(text, "index.json");
  const checkpoint::CheckpointIndex again =
      checkpoint::index_from(checkpoint::text_of(index), "print");
  ensure(again.slices == index.slices, "the print of an index reads as the same slices");
}

}  // namespace placet::fuzz
