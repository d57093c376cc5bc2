// Where contents began to be wrong: the way back through what they were made from.
#include <algorithm>
#include <ranges>
#include <utility>
#include <vector>

#include "check/machine.h"
#include "units/at.h"

namespace placet {
namespace {

constexpr int kLongestWay = 10'000;
constexpr std::size_t kMostBeginnings = 4;

/// What it is a sum of, in order.
std::vector<NodeId> terms_of(const Content& content) {
  std::vector<NodeId> terms;
  for (const Tensor& t : content.pieces) {
    for (const Item& item : t.items) terms.push_back(item.node);
  }
  std::ranges::sort(terms);
  return terms;
}

bool has_scale(const Content& content, const Rational& scale) {
  return std::ranges::any_of(content.pieces, [&](const Tensor& t) {
    return std::ranges::any_of(t.items, [&](const Item& i) { return scale_of(i) == scale; });
  });
}

/// The scale that a value has in it; none: it has not the value, or several.
std::optional<Rational> scale_in(const Content& content, NodeId node) {
  for (const Tensor& t : content.pieces) {
    const auto found = std::ranges::find(t.items, node, &Item::node);
    if (found != t.items.end()) return scale_of(*found);
  }
  return std::nullopt;
}

/// But for the sign.
bool is_one(const Rational& factor) {
  return factor == Rational(1) || factor == Rational(0) - Rational(1);
}

/// Whether there is something in each of its tensors, and all of it has a scale that is so.
template <class Which>
bool all_scales(const Content& content, Which which) {
  const auto is_so = [&](const Item& item) {
    const std::optional<Rational> scale = scale_of(item);
    return scale && *scale != Rational(0) && which(*scale);
  };
  return std::ranges::all_of(content.pieces, [&](const Tensor& t) {
    return !t.items.empty() && std::ranges::all_of(t.items, is_so);
  });
}

/// Whether everything in it has one over this scale, but for the sign, and not the scale itself.
bool is_divided_by(const Content& content, const Rational& by) {
  return !is_one(by) && all_scales(content, [&](const Rational& s) { return is_one(s * by); });
}

/// Whether everything in it has this scale but for the sign, or one over it, as below a fraction.
bool is_scaled_by(const Content& content, const Rational& by) {
  return all_scales(content, [&](const Rational& s) { return is_one(s / by) || is_one(s * by); });
}

/// A value with another scale, but for the sign, than what is added to it; null: there is none.
const Item* oddly_scaled(const Content& content) {
  for (const Tensor& t : content.pieces) {
    const auto is_odd = [](const Item& i) { return i.complete() && !is_one(i.factor); };
    const auto odd = std::ranges::find_if(t.items, is_odd);
    if (odd == t.items.end() || odd->factor == Rational(0)) continue;
    const bool alike = std::ranges::all_of(
        t.items, [&](const Item& i) { return i.complete() && is_one(i.factor / odd->factor); });
    if (!alike) return &*odd;
  }
  return nullptr;
}

/// The micro-batches of a sum that count otherwise than others of it; none: all count alike.
std::optional<Share::Run> uneven_run(const Content& content) {
  std::optional<Share::Run> odd;
  any_share(content, [&](const Share& share) {
    const auto& runs = share.runs;
    const auto other = std::ranges::find_if(
        runs, [&](const Share::Run& run) { return run.factor != runs.front().factor; });
    if (other == runs.end()) return false;
    odd = other->factor == Rational(1) ? runs.front() : *other;
    return true;
  });
  return odd;
}

bool is_nothing(const Content& content) {
  return std::ranges::all_of(content.pieces, [](const Tensor& t) { return t.items.empty(); });
}

/// Whether some sum in it lacks the parts along all these axes.
bool lacks(const Content& content, const AxisList& axes) {
  const auto is_missing_in = [&](const Share& share) {
    std::vector<int> missing;
    add_missing_axes(share, -1, missing);
    return std::ranges::all_of(
        axes, [&](int a) { return std::ranges::find(missing, a) != missing.end(); });
  };
  return any_share(content, is_missing_in);
}

/// How many values have each scale, in the order in which these come.
using ScaleCounts = std::vector<std::pair<Rational, int>>;

/// Counts the scales of all values of a tensor but this one.
void count_other_scales(const Tensor& t, NodeId node, ScaleCounts& counts) {
  for (const Item& item : t.items) {
    const std::optional<Rational> scale = scale_of(item);
    if (item.node == node || !scale) continue;
    const auto known = std::ranges::find(counts, *scale, &ScaleCounts::value_type::first);
    if (known != counts.end()) {
      ++known->second;
    } else {
      counts.emplace_back(*scale, 1);
    }
  }
}

/// The scale that most of the other values have that are added up with it, of several the one that
/// comes first; none: there are none. A norm adds up thousands of values in a few scales.
std::optional<Rational> usual_scale(const Content& content, NodeId node) {
  ScaleCounts counts;
  for (const Tensor& t : content.pieces) {
    const bool has_it = std::ranges::find(t.items, node, &Item::node) != t.items.end();
    if (has_it) count_other_scales(t, node, counts);
  }
  const auto most = std::ranges::max_element(counts, {}, &ScaleCounts::value_type::second);
  if (most == counts.end()) return std::nullopt;
  return most->first;
}

/// The input that an output is a copy of, or put together from; null: it is another value.
const BufferRef* moved_into(const Instruction& i, const BufferRef& ref, const Arguments& a) {
  const bool moves = i.kind == InstructionKind::copy || i.kind == InstructionKind::host_copy ||
                     i.kind == InstructionKind::all_gather || i.kind == InstructionKind::slice;
  for (std::size_t b = 0; moves && b < i.outputs.size(); ++b) {
    if (element_of(i.outputs[b], a) == element_of(ref, {})) return &i.inputs[b];
  }
  return nullptr;
}

}  // namespace

/// Whether both do the same to the same buffers.
bool Machine::do_the_same(const Instruction& a, const Instruction& b) {
  return a.kind == b.kind && a.kernel == b.kernel && a.axes == b.axes && a.factor == b.factor &&
         a.op == b.op && a.dim == b.dim && a.into == b.into && a.shift == b.shift &&
         a.key == b.key && a.positions == b.positions && a.outputs == b.outputs &&
         a.inputs == b.inputs;
}

void Machine::note_making(int c, const Numbered& value) {
  if (value.number < 0 || !traces_) return;
  if (at(value.number) >= makings_.size()) makings_.resize(at(value.number) + 1);
  Made& made = makings_[at(value.number)];
  if (made.there) return;
  const Content& content = *value.content;
  made = {.origin = here(c),
          .inputs = reads_,
          .hash = hash_of(content),
          .content = lasting(value),
          .there = true,
          .foreign = is_foreign(content),
          .nothing = is_nothing(content)};
}

/// The content as it is now: what is no one's but a buffer's may become a longer sum.
std::shared_ptr<const Content> Machine::lasting(const Numbered& value) const {
  const bool stays =
      at(value.number) < memory_->interned.size() && memory_->interned[at(value.number)];
  return stays ? memory_->interned[at(value.number)]
               : std::make_shared<const Content>(*value.content);
}

/// A sum with one more micro-batch: what is told of it is as before.
void Machine::note_extended(int c, int number, int before, int source) {
  const Made* sum = making_of(before);
  const Made* more = making_of(source);
  if (sum == nullptr || more == nullptr) return;
  Made made = *sum;
  made.origin = here(c);
  made.inputs = {before, source};
  made.hash = mixed(sum->hash, more->hash);
  makings_.resize(std::max(makings_.size(), at(number) + 1));
  makings_[at(number)] = std::move(made);
}

const Machine::Made* Machine::making_of(int number) const {
  if (number < 0 || at(number) >= makings_.size()) return nullptr;
  const Made& made = makings_[at(number)];
  return made.there ? &made : nullptr;
}

bool Machine::is_foreign(const Content& content) const {
  const auto is_new = [&](NodeId node) {
    return at(node) >= foreign_from_ || origin_of(node) != nullptr;
  };
  return std::ranges::any_of(content.pieces, [&](const Tensor& t) {
    return std::ranges::any_of(t.scales, is_new) ||
           std::ranges::any_of(t.items, [&](const Item& item) { return is_new(item.node); });
  });
}

/// How much speaks for an input being what is wrong with what was made of it.
int Machine::suspicion(int input, const std::optional<Rational>& scale) const {
  const Made* made = making_of(input);
  if (made == nullptr) return 0;
  if (scale && has_scale(*made->content, *scale)) return 2;
  return made->foreign ? 1 : 0;
}

/// Of what a content was made from, what is most likely the cause of what is wrong with it; null:
/// nothing is.
const Machine::Made* Machine::most_suspect_input(const Made& made,
                                                 const std::optional<Rational>& scale) const {
  const Made* best = nullptr;
  int most = 0;
  for (const int input : made.inputs) {
    const int score = suspicion(input, scale);
    const Made* one = making_of(input);
    if (score == 0 || score < most || one == &made) continue;
    // What was made first is nearest to the cause.
    if (score == most && one->origin.time >= best->origin.time) continue;
    most = score;
    best = one;
  }
  return best;
}

/// Back from what a buffer holds to the first that is wrong.
const Machine::Made* Machine::first_wrong(int device_class, const BufferRef& ref,
                                          const std::optional<Rational>& scale) const {
  const Made* made = making_of(number_of(device_class, ref));
  for (int way = 0; made != nullptr && way < kLongestWay; ++way) {
    const Made* before = most_suspect_input(*made, scale);
    if (before == nullptr) break;
    made = before;
  }
  if (made == nullptr || made->origin.instruction == nullptr) return nullptr;
  return scale ? made : &first_mixed(*made);
}

/// Back from what is made of a sum one of whose values has a scale of its own to where it got that.
const Machine::Made& Machine::first_mixed(const Made& made) const {
  for (const int input : made.inputs) {
    const Made* m = making_of(input);
    if (m == nullptr || m == &made || m->origin.instruction == nullptr) continue;
    if (const Item* odd = oddly_scaled(*m->content))
      return first_scaled(*m, odd->node, odd->factor);
  }
  return made;
}

const Origin* Machine::beginning_of(int device_class, const BufferRef& ref,
                                    const std::optional<Rational>& scale) const {
  const Made* made = first_wrong(device_class, ref, scale);
  return made == nullptr ? nullptr : &made->origin;
}

/// Of what a content was made from, what was made last of that which lacks these parts; null: none.
const Machine::Made* Machine::lacking_input(const Made& made, const AxisList& axes) const {
  const Made* last = nullptr;
  for (const int input : made.inputs) {
    const Made* one = making_of(input);
    if (one == nullptr || one == &made || one->origin.instruction == nullptr) continue;
    const bool later = last == nullptr || one->origin.time > last->origin.time;
    if (later && lacks(*one->content, axes)) last = one;
  }
  return last;
}

SumPast Machine::past_of_sum(int device_class, const BufferRef& ref, const AxisList& axes) const {
  SumPast past;
  const Made* made = first_wrong(device_class, ref, std::nullopt);
  if (made != nullptr && !lacks(*made->content, axes)) made = lacking_input(*made, axes);
  for (int way = 0; made != nullptr && way < kLongestWay; ++way) {
    past.maker = &made->origin;
    const bool moved = is_collective(made->origin.instruction->kind);
    if (moved && past.message == nullptr) past.message = &made->origin;
    made = lacking_input(*made, axes);
  }
  return past;
}

/// The number of what a buffer holds; -1: nothing.
int Machine::number_of(int device_class, const BufferRef& ref) const {
  const Slot* slot = runners_[at(device_class)].slots.find(ref, {});
  return slot == nullptr || !slot->alive || !slot->written ? -1 : slot->value.number;
}

std::optional<Machine::ScaleBeginning> Machine::beginning_of_scale(NodeId node,
                                                                   const Rational& factor) const {
  const auto known = scales_.find(node);
  if (known == scales_.end() || factor == Rational(0)) return std::nullopt;
  const auto found = std::ranges::find(known->second, factor, &Scaled::factor);
  if (found == known->second.end()) return std::nullopt;
  const Made* made = making_of(found->number);
  if (made == nullptr || made->origin.instruction == nullptr) {
    return ScaleBeginning{.origin = found->origin};
  }
  const Made& first = first_scaled(*made, node, factor);
  return ScaleBeginning{.origin = first.origin, .divides = is_divided_by(*first.content, factor)};
}

/// Back from where a value has a scale of its own to the first that is scaled so: along what the
/// value has another scale in than what is added to it, then along what is scaled as a whole.
const Machine::Made& Machine::first_scaled(const Made& scaled, NodeId node,
                                           const Rational& factor) const {
  const Made* made = &scaled;
  Rational usual = usual_scale(*made->content, node).value_or(Rational(1));
  for (int way = 0; way < kLongestWay; ++way) {
    const Made* before = unusual_input(*made, node, usual);
    if (before == nullptr) break;
    made = before;
    usual = usual_scale(*made->content, node).value_or(usual);
  }
  const Rational by =
      usual == Rational(0) ? usual : scale_in(*made->content, node).value_or(factor) / usual;
  for (int way = 0; way < kLongestWay; ++way) {
    const Made* before = scaled_input(*made, by);
    if (before == nullptr) break;
    made = before;
  }
  return *made;
}

/// Of what a content was made from, what is as a whole scaled by that; null: nothing is.
const Machine::Made* Machine::scaled_input(const Made& made, const Rational& by) const {
  if (is_one(by) || by == Rational(0)) return nullptr;
  const auto found = std::ranges::find_if(made.inputs, [&](int input) {
    const Made* m = making_of(input);
    return m != nullptr && m != &made && m->origin.instruction != nullptr &&
           is_scaled_by(*m->content, by);
  });
  return found == made.inputs.end() ? nullptr : making_of(*found);
}

/// Of what a content was made from, the last in which the value has another scale than the values
/// beside it, or, of one that stands alone, than `usual`; null: it has that nowhere.
const Machine::Made* Machine::unusual_input(const Made& made, NodeId node,
                                            const Rational& usual) const {
  const Made* found = nullptr;
  for (const int input : made.inputs) {
    const Made* m = making_of(input);
    if (m == nullptr || m == &made || m->origin.instruction == nullptr) continue;
    const std::optional<Rational> scale = scale_in(*m->content, node);
    if (scale && *scale != usual_scale(*m->content, node).value_or(usual)) found = m;
  }
  return found;
}

/// Of what a content was made from, the sum that counts micro-batches otherwise; null: none does.
const Machine::Made* Machine::uneven_input(const Made& made) const {
  const auto found = std::ranges::find_if(made.inputs, [&](int input) {
    const Made* m = making_of(input);
    return m != nullptr && m != &made && m->origin.instruction != nullptr &&
           uneven_run(*m->content);
  });
  return found == made.inputs.end() ? nullptr : making_of(*found);
}

std::optional<Machine::Uneven> Machine::unevenness_of(int device_class,
                                                      const BufferRef& ref) const {
  const Made* made = making_of(number_of(device_class, ref));
  for (int way = 0; made != nullptr && way < kLongestWay; ++way) {
    const Made* before = uneven_input(*made);
    if (before == nullptr && uneven_run(*made->content)) break;
    made = before != nullptr ? before : most_suspect_input(*made, std::nullopt);
  }
  if (made == nullptr || made->origin.instruction == nullptr) return std::nullopt;
  const std::optional<Share::Run> odd = uneven_run(*made->content);
  if (!odd) return std::nullopt;
  // That micro-batch's own part of the sum, and where it came to its scale.
  for (int way = 0; way < kLongestWay; ++way) {
    const Made* before = scaled_input(*made, odd->factor);
    if (before == nullptr) break;
    made = before;
  }
  return Uneven{.origin = made->origin, .micro_batch = odd->first, .factor = odd->factor};
}

/// The first content that is a sum of these; null: there is none.
const Machine::Made* Machine::first_of_terms(const std::vector<NodeId>& terms) const {
  if (sums_looked_through_ != makings_.size()) {
    by_terms_.clear();
    for (std::size_t number = 0; number < makings_.size(); ++number) {
      const Made& made = makings_[number];
      if (made.there) by_terms_.try_emplace(mixed(0, terms_of(*made.content)), number);
    }
    sums_looked_through_ = makings_.size();
  }
  const auto found = by_terms_.find(mixed(0, terms));
  if (found == by_terms_.end()) return nullptr;
  const Made& made = makings_[found->second];
  return terms_of(*made.content) == terms ? &made : nullptr;
}

const Origin* Machine::mixing_of(const std::vector<NodeId>& terms) const {
  const Made* made = terms.empty() ? nullptr : first_of_terms(terms);
  if (made == nullptr) return nullptr;
  const auto goes_on = [&](int input) {
    const Made* one = making_of(input);
    if (one == nullptr || one == made) return false;
    const std::vector<NodeId> held = terms_of(*one->content);
    return held.size() > 1 && std::ranges::includes(terms, held);
  };
  for (int way = 0; way < kLongestWay; ++way) {
    const auto before = std::ranges::find_if(made->inputs, goes_on);
    if (before == made->inputs.end()) break;
    made = making_of(*before);
  }
  return made->origin.instruction == nullptr ? nullptr : &made->origin;
}

std::vector<Origin> Machine::beginnings_of_nothing() const {
  std::vector<Origin> out;
  for (const int number : nothings_) {
    const Made* made = first_nothing(making_of(number));
    // What a kernel makes zero of what is not is zero by an identity.
    const bool known = made == nullptr || made->origin.instruction == nullptr ||
                       calls_kernel(made->origin.instruction->kind) ||
                       std::ranges::find(out, made->origin) != out.end();
    if (!known && out.size() < kMostBeginnings) out.push_back(made->origin);
  }
  return out;
}

/// Back from a zero along zeros.
const Machine::Made* Machine::first_nothing(const Made* made) const {
  for (int way = 0; made != nullptr && way < kLongestWay; ++way) {
    const auto before = std::ranges::find_if(made->inputs, [&](int input) {
      const Made* m = making_of(input);
      return m != nullptr && m != made && m->nothing;
    });
    if (before == made->inputs.end()) break;
    made = making_of(*before);
  }
  return made;
}

std::vector<Origin> Machine::movements_to(int device_class, const BufferRef& ref) const {
  std::vector<std::pair<const Instruction*, Arguments>> list;
  for_each_instruction(program_, program_.classes[at(device_class)].body, {},
                       [&](const Instruction& i, const Arguments& a) {
                         if (i.step == 0 || i.step == step_) list.emplace_back(&i, a);
                       });
  std::vector<Origin> out;
  BufferRef now = ref;
  for (const auto& [instruction, arguments] : std::views::reverse(list)) {
    const BufferRef* from = moved_into(*instruction, now, arguments);
    if (from == nullptr) continue;
    out.push_back({.device_class = device_class,
                   .instruction = instruction,
                   .arguments = arguments,
                   .step = step_ - 1});
    const BufferElement element = element_of(*from, arguments);
    now = {.family = element.family, .unit = {}, .micro_batch = {}};
    now.unit.offset = element.unit;
    now.micro_batch.offset = element.micro_batch;
  }
  return out;
}

/// Whether the class executes an instruction that does the same.
bool Machine::has_twin(int device_class, const Instruction& i) const {
  bool found = false;
  for_each_written_instruction(
      program_, program_.classes[at(device_class)].body,
      [&](const Instruction& other) { found = found || do_the_same(i, other); });
  return found;
}

/// Whether two contents are equal.
bool Machine::are_alike(int one, int other) const {
  const Made* a = making_of(one);
  const Made* b = making_of(other);
  return one == other || (a != nullptr && b != nullptr && a->hash == b->hash);
}

/// The first inputs of two instructions that differ; nothing: none do.
std::optional<std::pair<int, int>> Machine::first_difference(const Made& a, const Made& b) const {
  for (std::size_t k = 0; k < std::min(a.inputs.size(), b.inputs.size()); ++k) {
    if (!are_alike(a.inputs[k], b.inputs[k])) return std::pair(a.inputs[k], b.inputs[k]);
  }
  return std::nullopt;
}

/// Where two contents that should be equal part: the last of their makings that are alike but for
/// what went in, or, of two that are not, the one that the other class does not have.
const Origin* Machine::parting(int one, int other) const {
  const Origin* found = nullptr;
  std::optional<std::pair<int, int>> next(std::in_place, one, other);
  for (int way = 0; next && way < kLongestWay; ++way) {
    const Made* a = making_of(next->first);
    const Made* b = making_of(next->second);
    if (a == nullptr || b == nullptr) return found;
    if (a->origin.instruction == nullptr || b->origin.instruction == nullptr) return found;
    found = &b->origin;
    if (!do_the_same(*a->origin.instruction, *b->origin.instruction)) {
      const bool mine = has_twin(b->origin.device_class, *a->origin.instruction);
      return mine ? &b->origin : &a->origin;
    }
    next = first_difference(*a, *b);
  }
  return found;
}

}  // namespace placet
