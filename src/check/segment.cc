#include "check/segment.h"

#include <algorithm>
#include <utility>

#include "check/periods.h"
#include "units/at.h"

namespace placet {
namespace {

/// Shorter runs are not worth remembering.
constexpr std::size_t kShortest = 3;

/// Notes in order what instructions do with buffers.
class Notes {
 public:
  explicit Notes(Segment& out) : out_(out) {}

  void add(const Instruction& i) {
    out_.instructions.push_back(&i);
    if (i.kind == InstructionKind::alloc) {
      for (const BufferRef& ref : i.outputs) begin(ref);
    } else if (i.kind == InstructionKind::free) {
      for (const BufferRef& ref : i.inputs) end(ref);
    } else {
      for (const BufferRef& ref : i.inputs) read(ref, i);
      const bool adds = i.kind == InstructionKind::accumulate;
      for (const BufferRef& ref : i.outputs) adds ? accumulate(ref, i) : write(ref);
    }
  }

 private:
  Touched& touch(const BufferRef& ref) {
    Touched& t = find(ref);
    t.sum = t.ends = false;
    return t;
  }

  Touched& find(const BufferRef& ref) {
    BufferRef all = ref;
    all.piece = -1;
    const auto known = std::ranges::find(out_.touched, all, &Touched::buffer);
    if (known != out_.touched.end()) return *known;
    written_.push_back(false);
    return out_.touched.emplace_back(Touched{.buffer = all, .sum = true});
  }

  std::vector<bool>::reference written(const Touched& t) {
    return written_[static_cast<std::size_t>(&t - out_.touched.data())];
  }

  void begin(const BufferRef& ref) {
    const std::size_t before = out_.touched.size();
    Touched& t = touch(ref);
    if (out_.touched.size() > before) t.fresh = true;
    t.begins = t.changes = true;
    t.reader = nullptr;
    written(t) = true;
  }

  void end(const BufferRef& ref) {
    Touched& t = touch(ref);
    t.changes = t.ends = true;
  }

  void read(const BufferRef& ref, const Instruction& i) {
    Touched& t = touch(ref);
    if (!written(t)) t.needed = true;
    if (t.reader == nullptr) t.reader = &i;
  }

  void write(const BufferRef& ref) {
    Touched& t = touch(ref);
    t.changes = true;
    if (ref.piece >= 0 && !written(t)) t.needed = true;
    if (ref.piece < 0) written(t) = true;
  }

  void accumulate(const BufferRef& ref, const Instruction& i) {
    Touched& t = find(ref);
    t.changes = true;
    t.ends = false;
    if (!written(t)) t.needed = true;
    if (t.reader == nullptr) t.reader = &i;
  }

  Segment& out_;
  std::vector<bool> written_;  // by touched: what it held before no longer matters
};

/// Whether two buffers of one family may be one under some arguments and two under others.
bool may_meet(const BufferRef& a, const BufferRef& b) {
  return a.family == b.family &&
         (a.unit.variable != b.unit.variable || a.micro_batch.variable != b.micro_batch.variable);
}

bool has_meeting(const std::vector<Touched>& touched) {
  for (std::size_t i = 0; i < touched.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (may_meet(touched[i].buffer, touched[k].buffer)) return true;
    }
  }
  return false;
}

Segment segment_of(const Program& program, const std::vector<const Instruction*>& instructions) {
  Segment out;
  Notes notes(out);
  for (const Instruction* i : instructions) {
    notes.add(*i);
    const auto follows = [&](const BufferRef& ref) { return follows_call(program, ref); };
    out.follows_call = out.follows_call && std::ranges::all_of(i->inputs, follows) &&
                       std::ranges::all_of(i->outputs, follows) &&
                       i->key.unit.variable != IndexTerm::Variable::micro_batch;
    if (calls_kernel(i->kind) && draws(program.kernels[at(i->kernel)])) {
      out.keys.push_back(i->key.unit);
    }
  }
  return out;
}

/// Puts what begins and ends within the run apart.
void set_apart(Segment& segment) {
  for (const Touched& t : segment.touched) {
    if (t.fresh && t.ends) segment.within.push_back(t.buffer);
  }
  std::erase_if(segment.touched, [](const Touched& t) { return t.fresh && t.ends; });
}

}  // namespace

Repeating<SegmentOrInstruction> Segments::list(const std::vector<Step>& body) {
  Repeating<SegmentOrInstruction> out;
  for (const Step& step : body) {
    const auto* loop = std::get_if<Loop>(&step.what);
    if (loop != nullptr && repeats_in_list(*loop)) {
      const std::int64_t by = loop->last < loop->first ? -1 : 1;
      out.add_rounds(round_of(*loop, loop->first), round_of(*loop, loop->first + by),
                     rounds_of(*loop));
      continue;
    }
    Listed items;
    add(step, {}, items);
    for (const SegmentOrInstruction& item : items) out.add(item);
  }
  return out;
}

Segments::Listed Segments::round_of(const Loop& loop, std::int64_t value) {
  Listed out;
  add(loop.body, {.micro_batch = value}, out);
  return out;
}

void Segments::add(const std::vector<Step>& body, const Arguments& arguments, Listed& out) {
  for (const Step& step : body) add(step, arguments, out);
}

void Segments::add(const Step& step, const Arguments& arguments, Listed& out) {
  if (const auto* i = std::get_if<Instruction>(&step.what)) {
    const bool orders = i->kind == InstructionKind::record || i->kind == InstructionKind::wait;
    if (orders && orders_ == Orders::left_out) return;
    out.push_back({.segment = nullptr, .instruction = i, .arguments = arguments});
    return;
  }
  if (const auto* call = std::get_if<Call>(&step.what)) return add(*call, arguments, out);
  const auto& loop = std::get<Loop>(step.what);
  for_each_round(loop, arguments, [&](const Arguments& inner) { add(loop.body, inner, out); });
}

void Segments::add(const Call& call, const Arguments& arguments, Listed& out) {
  const Arguments inner{.unit = value_of(call.unit, arguments),
                        .micro_batch = value_of(call.micro_batch, arguments)};
  for (const Cut& cut : cuts_of(call.procedure)) {
    if (cut.segment) {
      out.push_back({.segment = &*cut.segment, .instruction = nullptr, .arguments = inner});
    } else {
      add(*cut.step, inner, out);
    }
  }
}

/// A procedure in segments, as long as they can be.
const std::vector<Segments::Cut>& Segments::cuts_of(int procedure) {
  std::optional<std::vector<Cut>>& known = procedures_[at(procedure)];
  if (known) return *known;
  const std::vector<Step>& body = program_.procedures[at(procedure)].body;
  std::vector<Cut> cuts;
  const Step* first = body.data();
  for (const Step& step : body) {
    const auto* i = std::get_if<Instruction>(&step.what);
    if (i != nullptr && i->step == 0 && local_(*i)) continue;
    add_run({first, &step}, cuts);
    cuts.push_back({.segment = std::nullopt, .step = &step});
    first = &step + 1;
  }
  add_run({first, body.data() + body.size()}, cuts);
  known = std::move(cuts);
  return *known;
}

/// A run of instructions that concern one device alone, as a segment if it is worth that.
void Segments::add_run(std::span<const Step> steps, std::vector<Cut>& cuts) const {
  std::vector<const Instruction*> run;
  run.reserve(steps.size());
  for (const Step& step : steps) run.push_back(std::get_if<Instruction>(&step.what));
  Segment segment = segment_of(program_, run);
  if (run.size() >= kShortest && !has_meeting(segment.touched)) {
    set_apart(segment);
    cuts.push_back({.segment = std::move(segment), .step = nullptr});
    return;
  }
  for (const Step& step : steps) cuts.push_back({.segment = std::nullopt, .step = &step});
}

}  // namespace placet
