#include "derive/kept_tensors.h"

#include <algorithm>

#include "derive/memory.h"
#include "derive/narrow_products.h"
#include "derive/stage_memory.h"
#include "derive/stage_units.h"
#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

/// What of the first `sum` bytes that a unit keeps is on the device. All of them: its kept bytes.
std::int64_t on_device(const UnitMemory& unit, std::int64_t sum) {
  if (unit.kept_on_host == 0) return sum;
  const Rational moved(unit.kept_on_host, unit.kept_whole);
  return sum - in_bytes(part_rounded_up(bytes(sum), moved));
}

class TensorList {
 public:
  explicit TensorList(const Layout& layout) : layout_(layout) {}

  /// Adds what one run of units keeps, `held` micro-batches in flight.
  void add(const UnitRun& run, std::int64_t held) {
    if (run.inside) return;  // of blocks made again together the first one's input is kept
    const LocalUnit& local = layout_.units[at(run.local)];
    const UnitKind& kind = layout_.job->model.kinds[at(local.kind)];
    const PreparedKind& prepared = layout_.prepared->kinds[at(local.kind)];
    const SavedPlan& plan = run.recomputed ? prepared.recomputed : prepared.plain;
    const UnitMemory walk = unit_memory(layout_, run.local, run.recomputed);
    const std::vector<std::int64_t> sizes = value_bytes(layout_, run.local, run.recomputed).held;
    std::int64_t before = 0;
    for (const int v : plan.kept) {
      const std::int64_t after = before + sizes[at(v)];
      const std::int64_t own = on_device(walk, after) - on_device(walk, before);
      before = after;
      add({.unit = kind.name,
           .what = name_of_kept(kind, v),
           .as = plan.whole_unit ? KeptAs::checkpoint : KeptAs::value,
           .each = bytes(own),
           .times = checked_multiply(run.count, held, "kept tensors")});
    }
  }

  /// Adds what a run leaves of `waiting` micro-batches for gradients of weights.
  void add_waiting(const UnitRun& run, std::int64_t waiting) {
    const LocalUnit& local = layout_.units[at(run.local)];
    const UnitKind& kind = layout_.job->model.kinds[at(local.kind)];
    const PreparedKind& prepared = layout_.prepared->kinds[at(local.kind)];
    const SavedPlan& plan = run.recomputed ? prepared.recomputed : prepared.plain;
    const ValueBytes sizes = value_bytes(layout_, run.local, run.recomputed);
    const auto add_values = [&](const std::vector<int>& values,
                                const std::vector<std::int64_t>& each, KeptAs as) {
      for (const int v : values) {
        add({.unit = kind.name,
             .what = name_of_kept(kind, v),
             .as = as,
             .each = bytes(each[at(v)]),
             .times = checked_multiply(run.count, waiting, "kept tensors")});
      }
    };
    add_values(plan.for_weights, sizes.held, KeptAs::waiting);
    for (const PreparedOperator& op : prepared.operators) {
      add_values(op.parts.carried, sizes.once, KeptAs::waiting_gradient);
    }
  }

  std::vector<KeptTensor> take() {
    std::erase_if(tensors_, [](const KeptTensor& tensor) { return tensor.bytes == Bytes(); });
    std::ranges::stable_sort(tensors_, std::ranges::greater(), &KeptTensor::bytes);
    return std::move(tensors_);
  }

 private:
  /// "attention.o", and of its copy in the products' format "attention.o in fp8".
  std::string name_of_kept(const UnitKind& kind, int v) const {
    const std::optional<std::size_t> op = casting_operator(kind, v);
    std::string name =
        op ? "weights of " + kind.operators[*op].name : kind.values[at(value_of(kind, v))].name;
    if (!op && !is_copy(kind, v)) return name;
    return name + " in " + std::string(name_of(format_of_copies(*layout_.job).dtype));
  }

  void add(KeptTensor tensor) {
    tensor.bytes = tensor.each * count(tensor.times);
    const auto known = std::ranges::find_if(tensors_, [&](const KeptTensor& other) {
      return other.unit == tensor.unit && other.what == tensor.what && other.each == tensor.each &&
             other.as == tensor.as;
    });
    if (known == tensors_.end()) {
      tensors_.push_back(tensor);
      return;
    }
    known->times += tensor.times;
    known->bytes += tensor.bytes;
  }

  const Layout& layout_;
  std::vector<KeptTensor> tensors_;
};

}  // namespace

std::vector<KeptTensor> kept_tensors(const Job& job, const MemoryClass& memory) {
  const Prepared prepared = prepare(job);
  const Layout layout = memory.coordinates.empty() ? lay_out(job, prepared)
                                                   : lay_out(job, prepared, memory.coordinates);
  const std::vector<Stage> stages = stages_of(job);
  const Stage& stage = stages[at(memory.stage)];
  const StageUnits units = units_of(layout, stage);
  const MicroBatchesHeld most =
      held_by_chunk(layout, stage, figures_of(layout), units, moments_of(layout)[at(stage.device)]);
  TensorList list(layout);
  for (std::size_t c = 0; c < most.held.size(); ++c) {
    for (std::size_t r = units.chunk_begin(c); r < units.chunk_ends[c]; ++r) {
      list.add(units.runs[r], most.held[c]);
      list.add_waiting(units.runs[r], most.waiting[c]);
    }
  }
  return list.take();
}

}  // namespace placet
