// What an engine sends: how its messages are cut, quantised and routed, and those that only it has
// (docs/theory.md §4).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "placement/placement.h"
#include "profile/amounts.h"

namespace placet {

/// The closed list of collectives.
enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  send_recv,
  broadcast,
  host_copy
};
std::string_view name_of(Collective collective);
enum class ReduceOp : std::uint8_t { none, sum, max, min };
std::string_view name_of(ReduceOp op);
enum class Phase : std::uint8_t { forward, backward, reduce, update };
std::string_view name_of(Phase phase);

/// A message that an engine adds: scalars, flags, metadata, batch broadcasts.
struct EngineMessage {
  std::string what;
  Collective collective = Collective::all_reduce;
  ReduceOp op = ReduceOp::none;
  State state = State::activations;
  Dtype dtype = Dtype::fp32;
  Phase phase = Phase::update;
  // The group: all axes of which one of these holds.
  std::vector<Cut> over;      // dense tensors have one of these cuts; expert: experts are divided
  bool over_all = false;      // any axis
  bool over_experts = false;  // experts are divided or cut
  bool over_cut_experts = false;  // the experts themselves are cut
  bool over_owners = false;       // devices of a stage update different elements
  bool over_data_owners = false;  // the same, but for axes that cut the matrices of a layer
  bool over_instance = false;     // all but those along which samples are cut and every device
                                  // updates everything: one instance of a divided optimizer
  Amount payload_elements;
  Amount count;  // per step
  std::vector<When> when;
  std::string source;
  friend bool operator==(const EngineMessage&, const EngineMessage&) = default;
};

/// How a partial gradient becomes an owned part of the sum. reduce_scatter_if_gathered: by
/// reduce-scatter where the parameters rest in parts too, else by all-reduce and slice.
enum class ScatterPath : std::uint8_t {
  reduce_scatter,
  all_reduce_and_slice,
  reduce_scatter_if_gathered
};

/// Numbers quantised for the wire: in blocks, with one constant each.
struct Quantised {
  Dtype dtype = Dtype::int8;
  Dtype constants = Dtype::fp32;
  std::int64_t block =
      0;  // most numbers of a block; 0: as many blocks as a matrix has rows or columns
  friend bool operator==(const Quantised&, const Quantised&) = default;
};

/// What one message of a state carries: a unit's tensors; everything the device holds, at once; the
/// same in buckets of so many elements; one tensor.
enum class MessageGrain : std::uint8_t { unit, everything, bucket, tensor };

/// When a bucket of whole tensors is sent. before: before the tensor that would make it larger than
/// its size; after: as soon as its tensors reach that size.
enum class BucketEnd : std::uint8_t { before, after };

/// How tokens reach experts on other devices. exchange: each token goes to the devices of its
/// experts and back, and is gathered where an expert is cut. gather: all tokens go to all devices,
/// and results are reduced and scattered. whole_then_exchange: tokens are made whole along tensor
/// axes before they are sent, and results are reduced and scattered there.
/// exchange_once: as exchange, but a token goes once to each device that has some of its experts.
enum class TokenDispatch : std::uint8_t { exchange, gather, whole_then_exchange, exchange_once };

/// What a state shard is cut from, and what is padded to equal shares. element: each tensor, shares
/// an exact partition, nothing padded; tensor: each tensor by elements, padded; row: each tensor by
/// rows of its first dim, padded to equally many; unit: each unit flattened, padded; everything:
/// all that the device holds flattened, padded.
enum class ShardGrain : std::uint8_t { element, row, unit, everything, tensor };

/// What stands in flat buffers between steps, where shards are cut of such: nothing (tensors rest
/// each by itself), the parts, or also what rests whole, padding included.
enum class FlatRest : std::uint8_t { none, parts, copies };

}  // namespace placet
