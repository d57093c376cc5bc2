// The terms of a stage's fullest instant, and what rests.
#include <algorithm>

#include "derive/memory.h"
#include "derive/stage_memory.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

/// What one state takes as an engine stores it, beside its tensors.
void add_stored(const StateBytes& stored, std::size_t s, std::string_view what,
                std::vector<MemoryTerm>& terms) {
  if (stored.device.at(s) == 0 && stored.host.at(s) == 0 && stored.nvme.at(s) == 0) return;
  terms.push_back({.category = static_cast<MemoryCategory>(s),
                   .what = what,
                   .rest = bytes(stored.device.at(s)),
                   .host = bytes(stored.host.at(s)),
                   .nvme = bytes(stored.nvme.at(s))});
}

/// Adds what rests of a state of one unit, one term for all tensors that the same axes divide: the
/// largest first.
void add_divided_alike(const std::vector<DividedStates>& parts, std::size_t s,
                       const MemoryTerm& named, std::vector<MemoryTerm>& terms) {
  const auto begin = static_cast<std::ptrdiff_t>(terms.size());
  for (const DividedStates& part : parts) {
    const StateBytes& sum = part.bytes;
    if (sum.device[s] == 0 && sum.host[s] == 0 && sum.nvme[s] == 0) continue;
    const Division& own = part.division;
    auto known = std::find_if(terms.begin() + begin, terms.end(), [&](const MemoryTerm& term) {
      return term.divided_by == own.by[s] && term.replicas == own.replicas &&
             term.replica_axes == own.replica_axes;
    });
    if (known == terms.end()) {
      terms.push_back(named);
      known = terms.end() - 1;
      known->divided_by = own.by[s];
      known->replica_axes = own.replica_axes;
      known->replicas = own.replicas;
    }
    known->rest += bytes(sum.device[s]);
    known->host += bytes(sum.host[s]);
    known->nvme += bytes(sum.nvme[s]);
  }
  if (terms.end() - terms.begin() < begin + 2) return;
  std::stable_sort(terms.begin() + begin, terms.end(), [](const auto& x, const auto& y) {
    return x.rest + x.host + x.nvme > y.rest + y.host + y.nvme;
  });
}

class TermWriter {
 public:
  explicit TermWriter(const StageFigures& figures)
      : layout_(figures.layout),
        job_(*layout_.job),
        stage_(figures.stage),
        content_(figures.content),
        activations_(figures.activations),
        instants_(figures.instants) {}

  MemoryClass write() {
    out_.stage = stage_.device;
    out_.devices = devices_of(job_.placement) / layout_.stages;
    const Moment& peak = *std::ranges::max_element(instants_, {}, &Moment::total);
    out_.instants.reserve(instants_.size());
    for (std::size_t i = 0; i < instants_.size(); ++i) {
      if (instants_[i].total == 0) continue;
      out_.instants.push_back(
          {.instant = static_cast<Instant>(i), .bytes = bytes(instants_[i].total)});
    }
    out_.peak_instant = peak.instant;
    out_.peak_unit = peak.unit;
    out_.terms.reserve(16);
    const StateBytes& rest = content_.rest;
    write_state(State::parameters, rest.device[0]);
    write_state(State::optimizer, rest.device[1]);
    write_state(State::gradients, peak.gradients);
    write_activations(peak);
    write_staging();
    write_transients(peak);
    write_engine_terms(peak);
    write_sums();
    ensure(in_bytes(out_.peak) == peak.total, "the terms of a peak add up to it");
    return std::move(out_);
  }

 private:
  void add_term(MemoryCategory category, std::string_view what, std::string_view unit,
                std::int64_t alive) {
    if (alive == 0) return;
    add({.category = category, .what = what, .unit = unit, .bytes = bytes(alive)});
  }

  void add(const MemoryTerm& term) {
    out_.at_peak[static_cast<std::size_t>(term.category)] += term.bytes;
    if (term.outside) out_.outside += term.bytes;
    out_.terms.push_back(term);
  }

  /// Where gradients are still growing, only a part of what will rest is alive.
  void write_state(State state, std::int64_t alive) {
    const auto s = static_cast<std::size_t>(state);
    const bool whole = alive == content_.rest.device[s];
    for (MemoryTerm term : content_.resting[s]) {
      if (whole) term.bytes = term.rest;
      add(term);
    }
    if (!whole) add_term(static_cast<MemoryCategory>(s), "gradients made so far", {}, alive);
  }

  /// Of activations `rest` is what the micro-batches in flight keep at most, `alive` what of it is
  /// there at the peak.
  void add_kept(std::string_view what, std::string_view unit, std::int64_t alive,
                std::int64_t rest) {
    if (alive == 0 && rest == 0) return;
    add({.category = MemoryCategory::activations,
         .what = what,
         .unit = unit,
         .bytes = bytes(alive),
         .rest = bytes(rest)});
  }

  void write_activations(const Moment& peak) {
    const auto category = MemoryCategory::activations;
    const std::string_view unit = unit_name(peak);
    const bool holds_own = peak.running != nullptr && activations_.most.held[peak.chunk] > 0;
    const std::int64_t own = holds_own ? peak.running->kept : 0;
    add_kept("kept for backward by other units and micro-batches", {}, peak.activations,
             activations_.bytes - activations_.waiting - own);
    add_kept("kept for backward by the running unit", unit, peak.peak.kept, own);
    add_kept("kept for gradients of weights, between the two parts of backward", {},
             peak.waiting + peak.peak.waiting, activations_.waiting);
    add_term(category, "recomputed for backward", unit, peak.peak.rebuilt);
    if (activations_.on_host > 0) {
      add({.category = category,
           .what = "kept for backward, in host memory",
           .host = bytes(activations_.on_host)});
    }
    if (activations_.on_nvme > 0) {
      add({.category = category,
           .what = "kept for backward, on NVMe",
           .nvme = bytes(activations_.on_nvme)});
    }
  }

  /// Bytes of a state in host memory, on the way to or from NVMe.
  std::int64_t staged(std::size_t s) const {
    return s == 3 ? activations_.staged : content_.staged[s];
  }

  void write_staging() {
    for (std::size_t s = 0; s < 4; ++s) {
      if (staged(s) == 0) continue;
      add({.category = static_cast<MemoryCategory>(s),
           .what = "staging between NVMe and the device",
           .host = bytes(staged(s))});
    }
  }

  std::string_view unit_name(const Moment& peak) const {
    if (peak.unit < 0) return {};
    return job_.model.kinds[at(job_.model.units[at(peak.unit)].kind)].name;
  }

  void write_transients(const Moment& peak) {
    const auto category = MemoryCategory::transient;
    const std::string_view unit = unit_name(peak);
    const bool forward = peak.instant != Instant::backward;
    add_term(category, forward ? "values in flight" : "gradients of values", unit,
             peak.peak.working);
    add_term(category, "values that wait for their stage's turn", {}, peak.arrived);
    add_term(category, "gathered inputs", unit, peak.peak.gathered);
    add_term(category, "weight gradients not yet added or reduced", unit,
             peak.peak.weight_gradient);
    add_term(category, "weight gradients held until the micro-batch ends", {}, peak.held_gradients);
    add_term(category, "workspace of the loss", unit, peak.peak.loss);
    add_term(category, "gathered parameters", {}, peak.gathered.whole);
    add_term(category, "parameters kept gathered in part", {}, peak.gathered.parts);
    for (const NamedBytes& part : named_parts(peak.peak.exchange)) {
      add_term(category, part.what, unit, part.bytes);
    }
    for (const NamedBytes& part : named_parts(peak.update)) {
      add_term(category, part.what, content_.updated_unit, part.bytes);
    }
  }

  void write_engine_terms(const Moment& peak) {
    for (const EngineMemory& term : job_.profile.memory) {
      const bool there = (term.instants & bit_of(peak.instant)) != 0;
      if (!there || !all_hold(term.when, layout_, stage_)) continue;
      const std::int64_t alive = evaluate(term.bytes, layout_, stage_);
      if (alive == 0) continue;
      add({.category = term.category,
           .what = term.what,
           .bytes = bytes(alive),
           .source = term.source,
           .outside = !term.in_reserved});
    }
  }

  void write_sums() {
    for (std::size_t s = 0; s < 3; ++s) {
      out_.at_rest[s] = bytes(content_.rest.device[s]);
      out_.on_host[s] = bytes(content_.rest.host[s] + staged(s));
      out_.on_nvme[s] = bytes(content_.rest.nvme[s]);
      out_.staged[s] = bytes(staged(s));
    }
    out_.at_rest[3] = bytes(activations_.bytes);
    out_.on_host[3] = bytes(activations_.on_host + staged(3));
    out_.on_nvme[3] = bytes(activations_.on_nvme);
    out_.staged[3] = bytes(staged(3));
    for (const Bytes part : out_.at_peak) out_.peak += part;
    out_.reserved = out_.peak - out_.outside;
  }

  const Layout& layout_;
  const Job& job_;
  const Stage& stage_;
  const StageContent& content_;
  const HeldActivations& activations_;
  const std::array<Moment, kInstantCount>& instants_;
  MemoryClass out_;
};

}  // namespace

std::array<std::vector<MemoryTerm>, 3> resting_terms(const Layout& layout,
                                                     const StageContent& content) {
  constexpr std::array<std::string_view, 3> kNames = {"parameters", "optimizer state", "gradients"};
  std::array<std::vector<MemoryTerm>, 3> out;
  for (std::size_t s = 0; s < out.size(); ++s) {
    out.at(s).reserve(2 * content.per_local.size());
    for (std::size_t k = 0; k < content.per_local.size(); ++k) {
      const MemoryTerm named{.category = static_cast<MemoryCategory>(s),
                             .what = kNames.at(s),
                             .unit = layout.job->model.kinds[at(layout.units[k].kind)].name};
      add_divided_alike(content.per_local[k], s, named, out.at(s));
    }
    add_stored(content.beyond_tensors, s, "padding and rounding of flat buffers", out.at(s));
    add_stored(content.beside_wholes, s, "parts of parameters that stay whole", out.at(s));
  }
  return out;
}

MemoryClass described(const StageFigures& figures) { return TermWriter(figures).write(); }

}  // namespace placet
