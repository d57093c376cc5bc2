// Where contents began to be wrong: the way back through what they were made from.
#include <algorithm>

#include "check/machine.h"
#include "units/at.h"

namespace placet {
namespace {

constexpr int kLongestWay = 10'000;
constexpr std::size_t kMostBeginnings = 4;

bool is_open(const Content& content) {
  return std::ranges::any_of(content.pieces, [](const Tensor& t) { return !is_complete(t); });
}

bool is_mixed(const Content& content) {
  return std::ranges::any_of(content.pieces, [](const Tensor& t) { return t.items.size() > 1; });
}

bool is_nothing(const Content& content) {
  return std::ranges::all_of(content.pieces, [](const Tensor& t) { return t.items.empty(); });
}

std::optional<Rational> first_scale(const Content& content) {
  for (const Tensor& t : content.pieces) {
    if (!t.items.empty()) return scale_of(t.items.front());
  }
  return std::nullopt;
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
  if (value.number < 0) return;
  if (at(value.number) >= makings_.size()) makings_.resize(at(value.number) + 1);
  Made& made = makings_[at(value.number)];
  if (made.there) return;
  const Content& content = *value.content;
  made = {.origin = here(c),
          .inputs = reads_,
          .hash = hash_of(content),
          .scale = first_scale(content),
          .there = true,
          .foreign = is_foreign(content),
          .open = is_open(content),
          .mixed = is_mixed(content),
          .nothing = is_nothing(content)};
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
  const auto is_new = [&](const Item& item) {
    return at(item.node) >= foreign_from_ || origin_of(item.node) != nullptr;
  };
  return std::ranges::any_of(content.pieces,
                             [&](const Tensor& t) { return std::ranges::any_of(t.items, is_new); });
}

/// How much speaks for an input being wrong.
int Machine::suspicion(int input, bool odd, const std::optional<Rational>& scale) const {
  const Made* made = making_of(input);
  if (made == nullptr) return 0;
  if (made->foreign) return 4;
  if (scale && made->scale == scale) return 3;
  if (odd && made->open) return 2;
  return made->mixed ? 1 : 0;
}

const Origin* Machine::beginning_of(int device_class, const BufferRef& ref,
                                    const std::optional<Rational>& scale) const {
  const Slot* slot = runners_[at(device_class)].slots.find(ref, {});
  if (slot == nullptr || !slot->alive || !slot->written) return nullptr;
  const Made* made = making_of(slot->value.number);
  bool foreign = true;
  for (int way = 0; made != nullptr && way < kLongestWay; ++way) {
    int best = -1;
    int most = 0;
    for (int input : made->inputs) {
      const int score = suspicion(input, foreign && made->foreign, scale);
      // Behind the first that the reference makes, only what has its scale is followed.
      if (score <= most || (!foreign && score < 3)) continue;
      most = score;
      best = input;
    }
    if (best < 0 || making_of(best) == made) break;
    foreign = most == 4;
    made = making_of(best);
  }
  return made == nullptr || made->origin.instruction == nullptr ? nullptr : &made->origin;
}

const Origin* Machine::beginning_of_scale(NodeId node, const Rational& factor) const {
  const auto known = scales_.find(node);
  if (known == scales_.end()) return nullptr;
  const auto found = std::ranges::find(known->second, factor, &Scaled::factor);
  if (found == known->second.end()) return nullptr;
  const Origin* origin = &found->origin;
  const auto is_scaled = [&](int input) {
    const Made* m = making_of(input);
    return m != nullptr && m->scale && *m->scale != Rational(1) && m->origin.instruction != nullptr;
  };
  const Made* made = making_of(found->number);
  for (int way = 0; made != nullptr && way < kLongestWay; ++way) {
    origin = &made->origin;
    const auto input = std::ranges::find_if(made->inputs, is_scaled);
    if (input == made->inputs.end() || making_of(*input) == made) break;
    made = making_of(*input);
  }
  if (origin->instruction == nullptr) return &found->origin;
  return is_collective(origin->instruction->kind) ? &known->second.front().origin : origin;
}

const Origin* Machine::mixing_of(int device_class, const BufferRef& ref) const {
  const Slot* slot = runners_[at(device_class)].slots.find(ref, {});
  if (slot == nullptr || !slot->alive || !slot->written) return nullptr;
  const Made* made = making_of(slot->value.number);
  const Made* last = nullptr;
  for (int way = 0; made != nullptr && made != last && way < kLongestWay; ++way) {
    last = made;
    const auto best = std::ranges::max_element(
        made->inputs, {}, [&](int input) { return suspicion(input, false, std::nullopt); });
    if (best != made->inputs.end() && suspicion(*best, false, std::nullopt) > 0) {
      made = making_of(*best);
    }
  }
  return last == nullptr || last->origin.instruction == nullptr ? nullptr : &last->origin;
}

std::vector<Origin> Machine::beginnings_of_nothing() const {
  std::vector<Origin> out;
  for (int number : nothings_) {
    const Made* made = making_of(number);
    for (int way = 0; made != nullptr && way < kLongestWay; ++way) {
      const auto before = std::ranges::find_if(made->inputs, [&](int input) {
        const Made* m = making_of(input);
        return m != nullptr && m != made && m->nothing;
      });
      if (before == made->inputs.end()) break;
      made = making_of(*before);
    }
    const bool known = made == nullptr || made->origin.instruction == nullptr ||
                       std::ranges::find(out, made->origin) != out.end();
    if (!known && out.size() < kMostBeginnings) out.push_back(made->origin);
  }
  return out;
}

std::vector<Origin> Machine::movements_to(int device_class, const BufferRef& ref) const {
  std::vector<std::pair<const Instruction*, Arguments>> list;
  for_each_instruction(program_, program_.classes[at(device_class)].body, {},
                       [&](const Instruction& i, const Arguments& a) { list.emplace_back(&i, a); });
  std::vector<Origin> out;
  BufferRef now = ref;
  for (auto step = list.rbegin(); step != list.rend(); ++step) {
    const auto& [instruction, arguments] = *step;
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

/// Where two contents that should be equal part: the last of their makings that are alike but for
/// what went in, or, of two that are not, the one that the other class does not have.
const Origin* Machine::parting(int one, int other) const {
  const Origin* found = nullptr;
  for (int way = 0; way < kLongestWay; ++way) {
    const Made* a = making_of(one);
    const Made* b = making_of(other);
    if (a == nullptr || b == nullptr) return found;
    if (a->origin.instruction == nullptr || b->origin.instruction == nullptr) return found;
    found = &b->origin;
    if (!do_the_same(*a->origin.instruction, *b->origin.instruction)) {
      const bool mine = has_twin(b->origin.device_class, *a->origin.instruction);
      return mine ? &b->origin : &a->origin;
    }
    const std::size_t inputs = std::min(a->inputs.size(), b->inputs.size());
    std::size_t k = 0;
    const auto alike = [&](int x, int y) {
      const Made* p = making_of(x);
      const Made* q = making_of(y);
      return x == y || (p != nullptr && q != nullptr && p->hash == q->hash);
    };
    while (k < inputs && alike(a->inputs[k], b->inputs[k])) ++k;
    if (k == inputs) return found;
    one = a->inputs[k];
    other = b->inputs[k];
  }
  return found;
}

}  // namespace placet
