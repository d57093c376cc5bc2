#include "lower/unit_values.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "units/at.h"
#include "units/error.h"

namespace placet {

std::string word_of(std::string text) {
  std::ranges::replace(text, ' ', '-');
  return text;
}

UnitValues::UnitValues(Lowering& in, const UnitParameters& parameters, int kind)
    : in_(in),
      w_(in.writer),
      parameters_(parameters),
      kind_(in.model.reference.kinds[at(kind)]),
      source_(in.job.model.kinds[at(kind)]),
      map_(in.model.kinds[at(kind)]) {}

std::string UnitValues::name_of(int v) const { return word_of(kind_.values[at(v)].name); }

Dtype UnitValues::dtype_of(int v) const {
  for (std::size_t m = 0; m < map_.value_of.size(); ++m) {
    if (map_.value_of[m] != v) continue;
    switch (source_.values[m].type) {
      case ValueType::compute:
        return in_.job.precision.compute;
      case ValueType::fp32:
        return Dtype::fp32;
      case ValueType::mask:
        return Dtype::uint8;
      case ValueType::int64:
        return Dtype::int64;
    }
  }
  return Dtype::fp32;
}

std::vector<Division> UnitValues::divisions_at(int v, Place place) const {
  std::vector<Division> by;
  for (int d : kind_.values[at(v)].dims) by.push_back(in_.layouts.division(d, place));
  return by;
}

Spread UnitValues::whole_loss() const {
  return {.tensor = kind_.values[at(kind_.loss)].dims,
          .by = divisions_at(kind_.loss, Place::parallel),
          .partial = {}};
}

BufferRef UnitValues::parameter_buffer(int v) const {
  const auto& [p, piece] = parameters_.plan_of[at(kind_.values[at(v)].parameter)];
  const ParameterPlan& plan = parameters_.plans[at(p)];
  return buffer_of(plan, plan.whole, piece);
}

// --- values

Held UnitValues::held_input(int v) const {
  const Spread spread{
      .tensor = kind_.values[at(v)].dims, .by = divisions_at(v, Place::parallel), .partial = {}};
  return {.buffer = input_buffer(in_, kind_.values[at(v)].input), .spread = spread, .holders = {}};
}

namespace {

/// Whether nothing but parts of dims comes together.
bool only_gathers(const std::vector<Division>& from, const std::vector<Division>& to) {
  return from != to && std::ranges::equal(from, to, [](const Division& fine, const Division& left) {
           return minus(axes_of(left), axes_of(fine)).empty();
         });
}

}  // namespace

const Held& UnitValues::value(int v, const std::vector<Division>& by) {
  if (kind_.values[at(v)].input >= 0 && !held_.contains(v)) held_[v] = held_input(v);
  ensure(held_.contains(v), "a value is made before it is used");
  Held& own = held_[v];
  if (!own.spread.partial.empty()) {
    // The complete value stays as it lies, and a copy of it comes together.
    Held whole = w_.brought(own, only_gathers(own.spread.by, by) ? own.spread.by : by, name_of(v));
    w_.drop(own);
    own = whole;
  }
  if (own.spread.by == by) return own;
  auto& copies = copies_[v];
  const auto found = std::ranges::find_if(copies, [&](const Held& h) { return h.spread.by == by; });
  if (found != copies.end()) return *found;
  copies.push_back(w_.brought(own, by, name_of(v)));
  return copies.back();
}

void UnitValues::finish(int v, const std::set<int>& keep) {
  if (is_parameter(v) || !held_.contains(v)) return;
  if (keep.contains(v)) return drop_copies(v);
  for (Held& copy : copies_[v]) w_.drop(copy);
  copies_.erase(v);
  w_.drop(held_[v]);
  held_.erase(v);
}

std::vector<Held> UnitValues::all_of(int v) const {
  std::vector<Held> all{held_.at(v)};
  if (const auto found = copies_.find(v); found != copies_.end()) {
    all.insert(all.end(), found->second.begin(), found->second.end());
  }
  return all;
}

void UnitValues::hold_again(int v, std::vector<Held> all) {
  for (Held& held : all) {
    held.holders = std::make_shared<int>(1);
    w_.note_alive(held.buffer);
  }
  held_[v] = all.front();
  all.erase(all.begin());
  if (!all.empty()) copies_[v] = std::move(all);
}

void UnitValues::move_to(Medium medium, int v) {
  std::vector<Held> all = all_of(v);
  for (Held& held : all) {
    const Dtype dtype = w_.family_at(held.buffer.family).type.dtype;
    Held there = medium == Medium::host ? w_.make_on_host("host." + name_of(v), held.spread, dtype)
                                        : w_.make(name_of(v), held.spread, dtype);
    w_.move(InstructionKind::host_copy, held.buffer, there.buffer);
    w_.drop(held);
    held = there;
  }
  held_[v] = all.front();
  all.erase(all.begin());
  copies_[v] = std::move(all);
}

void UnitValues::bring(int v, const std::vector<Division>& by) {
  Held& own = held_[v];
  if (own.spread.by == by && own.spread.partial.empty()) return;
  Held there = w_.brought(own, by, name_of(v));
  w_.drop(own);
  own = there;
}

std::vector<Division> UnitValues::parts_of(int v, const AxisList& axes) const {
  std::vector<Division> by = held_.at(v).spread.by;
  const std::vector<int>& dims = held_.at(v).spread.tensor;
  const auto is_token = [&](int dim) { return in_.model.indices[at(dim)] == Index::token; };
  const auto token = std::ranges::find_if(dims, is_token);
  ensure(token != dims.end(), "the stream has tokens");
  by[static_cast<std::size_t>(token - dims.begin())].push_back(axes);
  return by;
}

void UnitValues::drop_copies(int v) {
  if (kept_copies_ != nullptr && kept_copies_->contains(v)) return;
  for (Held& copy : copies_[v]) w_.drop(copy);
  copies_.erase(v);
}

void UnitValues::divide(int v, const std::vector<Division>& by) {
  Held& own = held_[v];
  if (own.spread.partial.empty() || own.spread.by == by) return;
  Held divided = w_.divided(own, by, name_of(v));
  w_.drop(own);
  own = divided;
}

Held UnitValues::make(int v, const Spread& spread) {
  return w_.make(name_of(v), spread, dtype_of(v));
}

// --- gradients

void UnitValues::give(int v, Held share, bool stays) {
  std::vector<Held>& all = gradients_[v];
  for (Held& h : all) {
    const bool alike = h.spread.by == share.spread.by && h.spread.partial == share.spread.partial;
    if (!alike) continue;
    if (stays) std::swap(h, share);
    add_up(h, share, v);
    return;
  }
  all.push_back(std::move(share));
}

/// sum += share. Where others hold the sum's buffer too, a new one is made.
void UnitValues::add_up(Held& sum, Held& share, int v) {
  if (*sum.holders > 1 && *share.holders == 1) std::swap(sum, share);
  if (*sum.holders > 1) {
    Held fresh = w_.make("d." + name_of(v), sum.spread, dtype_of(v));
    w_.move(InstructionKind::copy, sum.buffer, fresh.buffer);
    w_.drop(sum);
    sum = fresh;
  }
  w_.move(InstructionKind::accumulate, share.buffer, sum.buffer);
  w_.drop(share);
}

Held& UnitValues::gradient(int v, const std::vector<Division>& by, bool passes) {
  std::vector<Held>& all = gradients_[v];
  ensure(!all.empty(), "a gradient has arrived");
  if (passes && all.size() == 1 && all[0].spread.by == by) return all[0];
  for (Held& h : all) {
    Held whole = w_.brought(h, by, "d." + name_of(v));
    w_.drop(h);
    h = whole;
  }
  while (all.size() > 1) {
    Held share = all.back();
    all.pop_back();
    add_up(all.front(), share, v);
  }
  return all.front();
}

void UnitValues::divide_gradient(int v, const Applied& a) {
  std::vector<Held>& all = gradients_[v];
  if (a.place == Place::stream || all.size() != 1 || all[0].spread.partial.empty()) return;
  const auto place = std::ranges::find(a.from, v) - a.from.begin();
  const Spread& use = a.uses[static_cast<std::size_t>(place)];
  if (all[0].spread.by == use.by) return;
  Held divided = w_.divided(all[0], use.by, "d." + name_of(v));
  w_.drop(all[0]);
  all[0] = divided;
}

void UnitValues::drop_gradient(int v) {
  for (Held& h : gradients_[v]) w_.drop(h);
  gradients_.erase(v);
}

void UnitValues::drop_gradients_except(int v) {
  for (auto& [other, all] : gradients_) {
    for (Held& h : all) {
      if (other != v) w_.drop(h);
    }
  }
}

void UnitValues::clear() {
  held_.clear();
  copies_.clear();
  gradients_.clear();
}

}  // namespace placet
