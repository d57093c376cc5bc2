#include "simulate/pass_steps.h"

#include <algorithm>

namespace placet {
namespace {

/// Parts of units as one: what a pass takes in all.
std::vector<UnitPart> joined(const std::vector<UnitPart>& units) {
  std::vector<UnitPart> out;
  for (const UnitPart& part : units) {
    auto known =
        std::ranges::find_if(out, [&](const UnitPart& other) { return other.part == part.part; });
    if (known == out.end()) {
      out.push_back({.unit = -1, .name = {}, .part = part.part});
      known = out.end() - 1;
    }
    known->kernels += part.kernels;
    known->weights += part.weights;
    known->exposed.add(part.exposed, 1);
    known->hidden.add(part.hidden, 1);
    known->wait += part.wait;
    known->host += part.host;
  }
  return out;
}

Doing doing_of(WorkPart part) {
  switch (part) {
    case WorkPart::forward:
      return Doing::forward;
    case WorkPart::again:
      return Doing::recomputation;
    case WorkPart::backward:
      return Doing::backward;
  }
  return Doing::forward;
}

class PassWriter {
 public:
  PassWriter(const StepParts& parts, const StageParts& stage, std::size_t chunk,
             const PassStepsChoice& choice)
      : parts_(parts), stage_(stage), chunk_(stage.chunks[chunk]), choice_(choice) {}

  std::vector<PassStep> forward() {
    beside_ = parts_.gathers_beside;
    sharing_ = static_cast<double>(stage_.chunks.size());
    write_pass(units_of(chunk_.forward), stage_.forward_gathers, {}, Work::Kind::forward);
    return std::move(out_);
  }

  std::vector<PassStep> backward(Work::Kind kind) {
    beside_ = parts_.gathers_beside_backward;
    sharing_ =
        static_cast<double>(std::ranges::count(stage_.chunks, true, &ChunkParts::runs_backward));
    write_pass(units_of(chunk_.backward), stage_.backward_gathers, stage_.backward_reductions,
               kind);
    return std::move(out_);
  }

  std::vector<PassStep> weights() {
    for (const UnitPart& part : units_of(chunk_.backward)) {
      if (part.part != WorkPart::backward) continue;
      run({.unit = part.unit}, Doing::weights, part.weights * choice_.slower);
      out_.push_back({.kind = PassStep::Kind::reduced});
    }
    return std::move(out_);
  }

 private:
  std::vector<UnitPart> units_of(const std::vector<UnitPart>& units) const {
    return choice_.whole ? joined(units) : units;
  }

  /// Gathers before each unit and reductions after it; beside the units where the engine can, and
  /// then all gathers are asked for at the beginning of the pass.
  void write_pass(const std::vector<UnitPart>& units, const std::vector<MessagePart>& gathers,
                  const std::vector<MessagePart>& reductions, Work::Kind kind) {
    const std::int64_t pieces = std::max<std::int64_t>(1, chunk_.units);
    hold(in_seconds(parts_.host_per_pass) * choice_.slower);
    std::int64_t asked = beside_ ? pieces : 0;
    for (std::int64_t i = 0; i < asked; ++i) issue(gathers);
    std::int64_t reduced = choice_.whole ? begin_whole(pieces, reductions, kind) : 0;
    int unit = -2;
    const auto end_unit = [&] {
      if (unit == -2) return;
      end_unit_of(reductions, kind);
      ++reduced;
    };
    std::int64_t begun = 0;
    for (const UnitPart& part : units) {
      if (part.unit != unit) {
        end_unit();
        unit = part.unit;
        asked += ask(gathers);
        await(beside_ ? static_cast<std::size_t>(++begun) * gathers.size() : issued_);
      }
      write_part(part, kind);
    }
    end_unit();
    for (; asked < pieces; ++asked) issue(gathers);
    for (; reduced < pieces; ++reduced) issue(reductions);
    await(issued_);
  }

  /// Where nothing runs beside units, their parameters are asked for one by one.
  std::int64_t ask(const std::vector<MessagePart>& gathers) {
    if (beside_) return 0;
    issue(gathers);
    return 1;
  }

  /// Of a pass that is one part: all but the last piece of what follows units may run beside it.
  std::int64_t begin_whole(std::int64_t pieces, const std::vector<MessagePart>& reductions,
                           Work::Kind kind) {
    for (std::int64_t i = 1; i < pieces; ++i) {
      if (beside_) issue(reductions);
      if (kind == Work::Kind::backward) out_.push_back({.kind = PassStep::Kind::reduced});
    }
    return beside_ ? pieces - 1 : 0;
  }

  void end_unit_of(const std::vector<MessagePart>& reductions, Work::Kind kind) {
    issue(reductions);
    if (!beside_) await(issued_);
    if (kind == Work::Kind::backward) out_.push_back({.kind = PassStep::Kind::reduced});
  }

  void write_part(const UnitPart& part, Work::Kind kind) {
    hold(in_seconds(part.wait) * choice_.slower);
    const Seconds later = kind == Work::Kind::backward_input ? part.weights : Seconds();
    run(part, doing_of(part.part), (part.kernels - later) * choice_.slower);
    for (const auto& [axes, time] : part.exposed.parts) {
      out_.push_back(
          {.doing = Doing::collective, .time = in_seconds(time), .unit = part.unit, .axes = axes});
    }
  }

  void run(const UnitPart& part, Doing doing, Seconds time) {
    out_.push_back({.doing = doing,
                    .time = in_seconds(time),
                    .host = in_seconds(part.host) * choice_.slower,
                    .unit = part.unit,
                    .beside = part.hidden});
  }

  /// Of differences of times: what is below a picosecond is rounding.
  void hold(double time) {
    if (time > 1e-12) out_.push_back({.doing = Doing::launch, .time = time});
  }

  /// A unit's part of each message.
  void issue(const std::vector<MessagePart>& messages) {
    const auto units = static_cast<double>(std::max<std::int64_t>(1, chunk_.units));
    for (const MessagePart& message : messages) {
      out_.push_back({.kind = PassStep::Kind::issue,
                      .time = in_seconds(message.time) / sharing_ / units,
                      .axes = message.axes,
                      .message = &message,
                      .bytes = static_cast<double>(in_bytes(message.bytes)) / sharing_ / units});
      ++issued_;
    }
  }

  void await(std::size_t pieces) {
    if (pieces == 0) return;
    out_.push_back({.kind = PassStep::Kind::await, .doing = Doing::gather, .pieces = pieces});
  }

  const StepParts& parts_;
  const StageParts& stage_;
  const ChunkParts& chunk_;
  const PassStepsChoice& choice_;
  bool beside_ = false;  // whether messages run beside the units of this pass
  double sharing_ = 1;   // chunks that share the messages of such passes
  std::size_t issued_ = 0;
  std::vector<PassStep> out_;
};

}  // namespace

std::vector<PassStep> pass_steps(const StepParts& parts, const StageParts& stage, std::size_t chunk,
                                 Work::Kind kind, const PassStepsChoice& choice) {
  PassWriter writer(parts, stage, chunk, choice);
  switch (kind) {
    case Work::Kind::forward:
      return writer.forward();
    case Work::Kind::backward:
    case Work::Kind::backward_input:
      return writer.backward(kind);
    case Work::Kind::backward_weight:
      return writer.weights();
  }
  return {};
}

}  // namespace placet
