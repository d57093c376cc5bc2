// Parameters of a unit, their gradients and optimizer state: where they rest, how they come
// together for use, and how gradients go to their owners (docs/theory.md §6.4). Inside of lower/.
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lower/mesh.h"
#include "lower/writer.h"

namespace placet {

struct Lowering;

/// One parameter tensor of a unit kind. A fused one has several pieces in one buffer.
struct ParameterPlan {
  std::string name;
  const Parameter* source = nullptr;
  std::vector<int> pieces;     // parameters of the reference
  std::vector<Spread> spread;  // by piece: as operators use it
  AxisList cut;                // axes that divide it by its dims
  AxisList gathered;           // Θ rests in part along these and is gathered for use
  AxisList rests;              // Θ: axes that divide it at rest, by elements
  AxisList owned;              // Ω
  AxisList scattered;          // G: reduced to its owner in each micro-batch
  AxisList deferred;           // G: reduced to its owner after the last micro-batch
  AxisList regathered;         // Ω rests in part, but is put together for the update
  bool materialized = false;   // Θ = M: made from the master
  Keep keep = Keep::none;
  /// What stays gathered to its backward is there for all micro-batches under way: units gather
  /// into it, and the stage makes and frees it.
  bool shared_in_flight = false;
  Dtype sums_in = Dtype::fp32;  // what its gradient is added up in
  bool sums_each = false;  // what is not scattered or owned is summed where others are scattered
  bool trainable = true;
  bool has_master = true;
  std::array<bool, 3> on_host{};  // Θ, Ω, G
  std::vector<int> rules;         // of the reference, by piece
  int owner = -1;                 // the unit whose tensor it is, if another's
  /// Some device uses it in two units, and its gradient goes to owners in each micro-batch: that of
  /// the later unit waits for that of the owner's.
  bool joins = false;
  /// Axes along which its gradient is partial, as the backward pass shows: by piece, and what all
  /// pieces have in common.
  std::vector<AxisList> piece_partial;
  AxisList shared;  // tensor axes along which several devices hold one key and value head
  AxisList partial;

  // Families.
  int rest = -1;      // Θ at rest; -1 where it is M
  int whole = -1;     // Θ as it is used; the same where it is not gathered
  int gradient = -1;  // G
  int master = -1;    // of Ω
  std::vector<int> states;
};

/// The parameters of a kind of the model, as plans.
struct UnitParameters {
  int kind = 0;
  std::string mark;  // of procedures of units that use them otherwise than others of the kind
  std::vector<ParameterPlan> plans;
  std::vector<std::pair<int, int>> plan_of;  // by parameter of the reference: plan and piece
};

/// Plans for one kind, and their families. `before`: those of the kinds before it, which own what
/// is shared.
UnitParameters plan_parameters(Lowering& in, int kind, const std::vector<UnitParameters>& before);

/// The same as a unit uses them that keeps what is gathered to its backward.
UnitParameters kept_to_backward(const Lowering& in, const UnitParameters& unit);

/// Of the axes along which a gradient is partial, those that are summed right after its scatter.
AxisList summed_each(const ParameterPlan& plan, const AxisList& partial);

/// A buffer of that plan, for the unit that the procedure is about.
BufferRef buffer_of(const ParameterPlan& plan, int family, int piece = -1);

/// Axes that all pieces have.
AxisList common_partial(const std::vector<AxisList>& pieces);

/// Pieces of gradients by the axes along which they are still to be summed.
using PieceSums = std::map<AxisList, std::vector<BufferRef>>;

/// Notes those pieces of a whole gradient that are partial along more axes than the others: key and
/// value rows of a fused tensor whose heads several devices share.
void note_pieces(const BufferRef& gradient, const std::vector<AxisList>& partial, PieceSums& sums);

/// Sums them, one message for each group.
void reduce_pieces(Writer& writer, const PieceSums& sums);

/// The type of a buffer of that parameter, divided by elements over `flat`.
BufferType parameter_type(const ParameterPlan& plan, const AxisList& flat, Dtype dtype);

/// The format in which a parameter is gathered: its own, where it has one.
Dtype gathered_in(const ParameterPlan& plan, const Precision& precision);

/// What is gathered along the same axes in one format travels in one message.
using Gathers = std::map<std::pair<AxisList, Dtype>, Instruction>;

}  // namespace placet
