#include "lower/streams.h"

#include <algorithm>

namespace placet {
namespace {

bool moves(InstructionKind kind) {
  return is_collective(kind) || kind == InstructionKind::host_copy;
}

/// Rewrites one body: a procedure, a class, what a loop repeats.
class BodyStreams {
 public:
  /// Its events have the numbers from `events` on.
  BodyStreams(const Program& program, int events) : program_(program), events_(events) {}

  std::vector<Step> rewrite(std::vector<Step> body) {
    out_.reserve(body.size() + body.size() / 2);  // what moves something is recorded and waited for
    for (Step& step : body) {
      if (auto* instruction = std::get_if<Instruction>(&step.what)) {
        add(std::move(*instruction));
        continue;
      }
      wait_for_all();
      if (auto* loop = std::get_if<Loop>(&step.what)) {
        BodyStreams rounds(program_, events_);
        loop->body = rounds.rewrite(std::move(loop->body));
        events_ = rounds.events_;
      }
      out_.push_back(std::move(step));
    }
    wait_for_all();
    return std::move(out_);
  }

 private:
  struct Pending {
    int event = 0;
    Stream stream = Stream::communication;
    std::vector<BufferRef> read;
    std::vector<BufferRef> written;
  };

  Stream stream_of(const Instruction& i) const {
    if (i.kind != InstructionKind::host_copy) return Stream::communication;
    const bool to_host = program_.families[static_cast<std::size_t>(i.outputs[0].family)].on_host;
    return to_host ? Stream::to_host : Stream::from_host;
  }

  /// Whether two references may be of one buffer. Pieces of one buffer count as the same.
  static bool same(const BufferRef& a, const BufferRef& b) {
    return a.family == b.family && a.unit == b.unit && a.micro_batch == b.micro_batch;
  }

  static bool any_same(const std::vector<BufferRef>& a, const std::vector<BufferRef>& b) {
    return std::ranges::any_of(a, [&](const BufferRef& x) {
      return std::ranges::any_of(b, [&](const BufferRef& y) { return same(x, y); });
    });
  }

  static bool touches(const Instruction& i, const Pending& p) {
    if (any_same(i.outputs, p.read) || any_same(i.outputs, p.written)) return true;
    if (any_same(i.inputs, p.written)) return true;
    return i.kind == InstructionKind::free && any_same(i.inputs, p.read);
  }

  void sync(InstructionKind kind, int event, Stream stream, StepPhase phase) {
    Instruction instruction{.kind = kind, .stream = stream, .phase = phase};
    instruction.event = event;
    out_.push_back({std::move(instruction)});
  }

  void wait_for(const Pending& p, Stream stream, StepPhase phase) {
    sync(InstructionKind::wait, p.event, stream, phase);
  }

  void wait_for_all() {
    for (const Pending& p : pending_) wait_for(p, Stream::compute, phase_);
    pending_.clear();
  }

  void add(Instruction i) {
    phase_ = i.phase;
    const Stream stream = moves(i.kind) ? stream_of(i) : Stream::compute;
    for (std::size_t n = 0; n < pending_.size();) {
      if (pending_[n].stream == stream || !touches(i, pending_[n])) {
        ++n;
        continue;
      }
      wait_for(pending_[n], stream, i.phase);
      if (stream == Stream::compute) {
        pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(n));
      } else {
        ++n;
      }
    }
    if (!moves(i.kind)) {
      out_.push_back({std::move(i)});
      return;
    }
    const int before = events_++;
    sync(InstructionKind::record, before, Stream::compute, i.phase);
    sync(InstructionKind::wait, before, stream, i.phase);
    Pending p{.event = events_++, .stream = stream, .read = i.inputs, .written = i.outputs};
    const StepPhase phase = i.phase;
    i.stream = stream;
    out_.push_back({std::move(i)});
    sync(InstructionKind::record, p.event, stream, phase);
    pending_.push_back(std::move(p));
  }

  const Program& program_;
  std::vector<Step> out_;
  std::vector<Pending> pending_;
  StepPhase phase_ = StepPhase::forward;
  int events_ = 0;  // so many have their numbers
};

}  // namespace

Program with_streams(Program program) {
  for (Procedure& p : program.procedures)
    p.body = BodyStreams(program, 0).rewrite(std::move(p.body));
  for (DeviceClass& c : program.classes)
    c.body = BodyStreams(program, 0).rewrite(std::move(c.body));
  return program;
}

}  // namespace placet
