// Derivations written by hand, small enough to add up at sight.
#pragma once

#include <memory>

#include "report/judged.h"

namespace placet {

/// Two axes: pp=2 (layer) and dp=4 (batch, optimizer S), 8 devices of 80 GB on one host.
inline std::shared_ptr<const Job> hand_made_job() {
  Job job;
  job.model.name = "tiny";
  job.model.family = "hand";
  job.model.kinds.push_back(
      {.name = "block",
       .parameters = {
           {.name = "w", .dims = {{.index = Index::hidden, .size = 1000, .parts = 1000}}}}});
  job.model.units.push_back({.kind = 0, .number = 0});
  job.model.figures.blocks = 1;
  AxisPlacement pp{.axis = AxisName("pp"), .degree = 2};
  pp.how = {.cut = Cut::layer,
            .modes = {Mode::sharded, Mode::sharded, Mode::sharded, Mode::sharded}};
  AxisPlacement dp{.axis = AxisName("dp"), .degree = 4};
  dp.how.modes.optimizer = Mode::sharded;
  dp.overrides.push_back({.selector = TensorClass::experts, .how = {.cut = Cut::expert}});
  job.placement.axes = {pp, dp};
  job.batch = {.sequence = 128, .global = 32, .micro = 2};
  job.optimizer.name = "adamw";
  job.placement_text = "pp=2:1f1b dp=4:zero1";
  job.engine_text = "placet@1";
  Cluster cluster{.name = "test:1"};
  cluster.groups.push_back(
      {.device = {.name = "device", .memory = gigabytes(80)},
       .count = 8,
       .levels = {{.link = "inside", .devices = 8, .bandwidth = gigabytes_per_second(100)}}});
  job.cluster = cluster;
  return std::make_shared<const Job>(job);
}

inline MemoryTerm memory_term(MemoryCategory category, const char* what,
                              std::int64_t gigabytes_now) {
  MemoryTerm term;
  term.category = category;
  term.what = what;
  term.bytes = gigabytes(gigabytes_now);
  term.rest = gigabytes(gigabytes_now);
  return term;
}

/// 10 GB parameters, 20 GB optimizer (a quarter along dp), 10 GB gradients, 5 GB activations on
/// stage 0, and half of that on stage 1; 12 GB sent.
inline Judged hand_made() {
  Judged judged{.job = hand_made_job(), .derivation = {}};
  Derivation& d = judged.derivation;
  d.devices = 8;
  d.capacity = gigabytes(80);
  for (int stage = 0; stage < 2; ++stage) {
    MemoryClass memory;
    memory.stage = stage;
    memory.devices = 4;
    memory.peak_instant = Instant::update;
    const std::int64_t part = stage == 0 ? 10 : 5;
    memory.terms = {memory_term(MemoryCategory::parameters, "parameters of block", part),
                    memory_term(MemoryCategory::optimizer, "moments of block", 2 * part),
                    memory_term(MemoryCategory::gradients, "gradients of block", part),
                    memory_term(MemoryCategory::activations, "kept", part / 2)};
    memory.terms[1].divided_by = axis_bit(1);
    for (const MemoryTerm& term : memory.terms) {
      memory.at_peak[static_cast<std::size_t>(term.category)] = term.bytes;
      memory.at_rest[static_cast<std::size_t>(term.category)] = term.bytes;
      memory.peak += term.bytes;
    }
    memory.reserved = memory.peak;
    memory.capacity = d.capacity;
    memory.instants = {{.instant = Instant::update, .bytes = memory.peak}};
    d.memory.push_back(memory);
  }
  d.peak = d.memory[0].peak;
  CommunicationTerm term;
  term.axes = axis_bit(1);
  term.collective = Collective::reduce_scatter;
  term.op = ReduceOp::sum;
  term.state = State::gradients;
  term.what = "gradients of block";
  term.phase = Phase::reduce;
  term.payload = gigabytes(8);
  term.count = 2;
  term.group = 4;
  term.sent = gigabytes(12);  // 2 calls x 3/4 x 8
  d.communication.push_back({.stage = 0, .terms = {term}, .sent = gigabytes(12)});
  d.sent = gigabytes(12);
  return judged;
}

}  // namespace placet
