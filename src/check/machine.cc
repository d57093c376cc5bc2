#include "check/machine.h"

#include <algorithm>

#include "check/identities.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr const char* kNeverWritten = "a tensor that was never written";

/// Whether the sum is over the micro-batch that the content is of.
bool sums_over_own(const Share& s) { return !s.runs.empty() && s.runs.front().first < 0; }

bool sums_over_own(const Content& content) {
  return any_share(content, [](const Share& s) { return sums_over_own(s); });
}

}  // namespace

Machine::Machine(const Program& program, Nodes& nodes, Regions& regions, KernelValues& kernels,
                 const Options& options)
    : program_(program),
      nodes_(nodes),
      regions_(regions),
      kernels_(kernels),
      traces_(options.tracing == Tracing::on),
      labels_types_(options.tracing != Tracing::off),
      forgets_(options.forgets),
      beginning_(options.beginning),
      masks_behind_(options.masks_behind),
      most_parts_(options.most_parts),
      types_(program.families.size()),
      memory_(options.memory ? options.memory : std::make_shared<Memory>()) {
  for (int c = 0; c < static_cast<int>(program.classes.size()); ++c) {
    const std::vector<Step>& body = program.classes[at(c)].body;
    for_each_written_instruction(program, body, [&](const Instruction& i) {
      const auto [place, fresh] =
          instructions_.try_emplace(&i, static_cast<int>(instructions_.size()));
      if (fresh && options.memory) place->second = memory_->number_of(i);
    });
    std::vector<bool> split(at(regions.micro_axis()));
    for (int axis = 0; axis < regions.micro_axis(); ++axis) split[at(axis)] = splits(c, axis);
    const auto local = [this, c](const Instruction& i) { return is_local(c, i); };
    const Orders orders = traces_ ? Orders::listed : Orders::left_out;
    Segments& segments = segments_.try_emplace(split, program, local, orders).first->second;
    runners_.push_back({.list = segments.list(body),
                        .arguments = {},
                        .slots = Slots(Numbering(program, c), program.families.size())});
  }
}

int Machine::Memory::number_of(const Instruction& i) {
  std::uint64_t hash =
      mixed(static_cast<std::uint64_t>(i.kind), static_cast<std::uint64_t>(i.kernel));
  for (const std::vector<BufferRef>* list : {&i.inputs, &i.outputs}) {
    for (const BufferRef& ref : *list) hash = mixed(hash, static_cast<std::uint64_t>(ref.family));
  }
  const auto [first, last] = instructions.equal_range(hash);
  for (auto k = first; k != last; ++k) {
    if (k->second.first == i) return k->second.second;
  }
  const int number = static_cast<int>(instructions.size());
  instructions.emplace(hash, std::pair(i, number));
  return number;
}

Machine::Slot& Machine::Slots::get(const BufferRef& ref, const Arguments& a) {
  std::uint32_t& place = places_[numbering_.of(ref, a)];
  if (place != 0) return at_place(place);
  ++count_[at(ref.family)];
  if (free_.empty()) {
    const auto there = static_cast<std::uint32_t>(pieces_.size() * kTogether);
    pieces_.push_back(std::make_unique<Piece>());
    for (std::size_t k = kTogether; k > 0; --k)
      free_.push_back(there + static_cast<std::uint32_t>(k));
  }
  place = free_.back();
  free_.pop_back();
  return at_place(place);
}

void Machine::Slots::erase(const BufferRef& ref, const Arguments& a) {
  std::uint32_t& place = places_[numbering_.of(ref, a)];
  if (place == 0) return;
  --count_[at(ref.family)];
  at_place(place) = {};
  free_.push_back(place);
  place = 0;
}

Machine::Slot& Machine::slot(int c, const BufferRef& ref, const Arguments& arguments) {
  return runners_[at(c)].slots.get(ref, arguments);
}

/// Where a class stands.
Origin Machine::here(int c) const {
  const Runner& runner = runners_[at(c)];
  return {.device_class = c,
          .instruction = runner.instruction,
          .arguments = runner.arguments,
          .step = step_,
          .time = time_};
}

void Machine::breach(int c, const std::string& what) {
  ++breached_;
  if (breaches_.size() < kMostBreaches) breaches_.push_back({.what = what, .origin = here(c)});
}

/// Whether a tensor of a row, or some one of all (-1), was never written while others were.
bool Machine::lacks_a_tensor(const Content& row, int piece) const {
  if (row.pieces.size() < 2) return false;
  const auto is_unwritten = [&](const Item& item) {
    return item.odd && nodes_.at(item.node).text == kNeverWritten;
  };
  for (std::size_t p = 0; p < row.pieces.size(); ++p) {
    const bool read = piece < 0 || p == at(piece);
    if (read && std::ranges::any_of(row.pieces[p].items, is_unwritten)) return true;
  }
  return false;
}

Machine::Numbered Machine::read(int c, const BufferRef& ref, const Arguments& arguments) {
  static const auto kNothing = std::make_shared<const Content>();
  Slot& s = slot(c, ref, arguments);
  if (s.reader.instruction == nullptr || s.reader.step != step_) s.reader = here(c);
  const std::string& name = program_.families[at(ref.family)].name;
  if (!s.alive) {
    breach(c, "'" + name + "' is used but not alive");
  } else if (!s.written) {
    breach(c, "'" + name + "' is used before it is written");
  } else if (lacks_a_tensor(*s.value.content, ref.piece)) {
    breach(c, "'" + name + "' is used before all its tensors are written");
  }
  if (!s.value.content) return {.content = kNothing, .number = -1, .micro_batch = -1};
  if (ref.piece < 0 || !s.value.content->flat.empty()) {
    reads_.push_back(s.value.number);
    return s.value;
  }
  const Content& all = *s.value.content;
  Content out{.pieces = {}, .flat = {}, .micro_batch = all.micro_batch};
  if (at(ref.piece) < all.pieces.size()) out.pieces = {all.pieces[at(ref.piece)]};
  const std::vector<int> key{-1, s.value.number, ref.piece};
  const auto [found, fresh] = memory_->known.try_emplace(key);
  if (fresh) found->second = {interned(std::move(out), s.value.micro_batch)};
  Numbered piece = found->second[0];
  piece.micro_batch = piece.content->micro_batch < 0 ? -1 : s.value.micro_batch;
  // A tensor of a row comes from what made the row.
  if (const Made* made = making_of(s.value.number); made != nullptr && fresh) {
    const Made row = *made;
    makings_.resize(std::max(makings_.size(), at(piece.number) + 1));
    if (making_of(piece.number) == nullptr) makings_[at(piece.number)] = row;
  }
  reads_.push_back(piece.number);
  return piece;
}

Machine::Numbered Machine::numbered(Content content, std::int64_t micro_batch) {
  drop_zeros(nodes_, content.pieces);
  const bool depends = is_divided(content, regions_.micro_axis()) || sums_over_own(content);
  content.micro_batch = depends ? 0 : -1;
  const std::int64_t mine = content.micro_batch < 0 ? -1 : micro_batch;
  return {.content = std::make_shared<Content>(std::move(content)),
          .number = memory_->numbers++,
          .micro_batch = mine};
}

/// The same, under the number that an equal content has.
Machine::Numbered Machine::interned(Content content, std::int64_t micro_batch) {
  Numbered made = numbered(std::move(content), micro_batch);
  const std::uint64_t hash = hash_of(*made.content);
  std::vector<Numbered>& contents = memory_->contents;
  const int known = memory_->places.find(
      hash, [&](int place) { return *contents[at(place)].content == *made.content; });
  if (known >= 0) {
    made.content = contents[at(known)].content;
    made.number = contents[at(known)].number;
    return made;
  }
  memory_->places.add(hash, static_cast<int>(contents.size()));
  contents.push_back(made);
  if (!traces_) return made;
  memory_->interned.resize(std::max(memory_->interned.size(), at(made.number) + 1));
  memory_->interned[at(made.number)] = made.content;
  return made;
}

/// The content with the micro-batch that it is of.
Content Machine::whole_of(const Numbered& value) {
  Content out = *value.content;
  out.micro_batch = value.micro_batch;
  return out;
}

void Machine::write(int c, const BufferRef& ref, const Arguments& arguments, Content content) {
  const std::int64_t micro_batch = content.micro_batch;
  write(c, ref, arguments, numbered(std::move(content), micro_batch));
}

void Machine::write(int c, const BufferRef& ref, const Arguments& arguments,
                    const Numbered& given) {
  const Numbered value = named_as_typed(c, ref, given);
  Slot& s = slot(c, ref, arguments);
  s.writer = here(c);
  const Family& family = program_.families[at(ref.family)];
  if (!s.alive) breach(c, "'" + family.name + "' is written but not alive");
  look_at(c, ref, arguments, value);
  note_making(c, value);
  if (ref.piece >= 0 && s.written) reads_.push_back(s.value.number);
  s.value = ref.piece < 0 ? value : with_piece(ref, s, value);
  if (ref.piece >= 0) note_making(c, s.value);
  s.written = true;
}

/// The content of a buffer with one tensor of its row replaced, worked out once for equal ones.
Machine::Numbered Machine::with_piece(const BufferRef& ref, const Slot& old,
                                      const Numbered& value) {
  const Numbered before = old.written ? old.value : Numbered{};
  const std::optional<std::int64_t> micro_batch = common_micro_batch({before, value});
  const auto make = [&] {
    Content all = old.written ? *before.content : typed({.family = ref.family}, {});
    if (!old.written) odd_content(all, kNeverWritten);
    if (!micro_batch) odd_content(all, "a tensor of another micro-batch");
    return replaced(ref, std::move(all), value, micro_batch.value_or(value.micro_batch));
  };
  Numbered out;
  if (value.number < 0 || (old.written && before.number < 0)) {
    out = make();
  } else {
    const bool of_one = micro_batch.value_or(-1) >= 0;
    std::vector<Numbered>& made = memory_->known[{-2, before.number, ref.family, ref.piece,
                                                  value.number, micro_batch.has_value(), of_one}];
    if (made.empty()) made = {make()};
    out = made[0];
  }
  if (out.content->micro_batch >= 0) out.micro_batch = micro_batch.value_or(value.micro_batch);
  return out;
}

/// A row with one of its tensors in another content's place.
Machine::Numbered Machine::replaced(const BufferRef& ref, Content all, const Numbered& value,
                                    std::int64_t micro_batch) {
  const Content& part = *value.content;
  if (!all.flat.empty()) odd_content(all, "a part of a row of which one tensor is replaced");
  all.flat.clear();
  const bool there = !part.pieces.empty() && at(ref.piece) < all.pieces.size();
  if (there) all.pieces[at(ref.piece)] = part.pieces[0];
  if (there && (!part.flat.empty() || part.pieces.size() > 1)) {
    odd_content(all, "a part of a row is put in the place of a tensor");
  }
  return interned(std::move(all), micro_batch);
}

void Machine::note_scales(int c, const Numbered& value) {
  for (const Tensor& t : value.content->pieces) {
    for (const Item& item : t.items) note_scale(c, item, value.number);
  }
}

/// The first instruction that gave a node this scale.
void Machine::note_scale(int c, const Item& item, int number) {
  const std::optional<Rational> scale = scale_of(item);
  if (!scale) return;
  std::vector<Scaled>& known = scales_[item.node];
  const bool told = std::ranges::find(known, *scale, &Scaled::factor) != known.end();
  if (!told) known.push_back({*scale, here(c), number});
}

const Origin* Machine::scaled_at(NodeId node, const Rational& factor) const {
  const auto known = scales_.find(node);
  if (known == scales_.end()) return nullptr;
  const auto found = std::ranges::find(known->second, factor, &Scaled::factor);
  return found == known->second.end() ? nullptr : &found->origin;
}

const Origin* Machine::first_of(NodeId node) const {
  const auto known = scales_.find(node);
  return known == scales_.end() ? nullptr : &known->second.front().origin;
}

void Machine::begin(const ReferenceValues& reference) {
  for (int c = 0; c < static_cast<int>(program_.classes.size()); ++c) {
    for (const Initial& initial : program_.classes[at(c)].initial) begin(c, initial, reference);
  }
}

void Machine::begin(int c, const Initial& initial, const ReferenceValues& reference) {
  std::vector<NodeId> nodes(initial.pieces.size());
  std::ranges::transform(initial.pieces, nodes.begin(), [&](const StateRef& ref) {
    return ref.kind == StateRef::Kind::zero ? -1 : reference.value_of(ref);
  });
  Content content = typed(initial.buffer, nodes);
  for (std::size_t p = 0; p < content.pieces.size() && beginning_ == Beginning::any; ++p) {
    Tensor& t = content.pieces[p];
    const bool zero = p < nodes.size() && initial.pieces[p].kind == StateRef::Kind::zero;
    if (zero) become(t, odd_item(t, kLeftBefore));
  }
  const std::int64_t micro_batch = content.micro_batch;
  slot(c, initial.buffer, {}) = {
      .alive = true, .written = true, .value = interned(std::move(content), micro_batch)};
}

/// The samples of a step, alike for all micro-batches but for their number.
void Machine::bring(int c, const Initial& initial, const ReferenceValues& reference) {
  std::vector<NodeId> nodes;
  std::vector<std::int64_t> key{step_, initial.buffer.family};
  for (const StateRef& piece : initial.pieces) {
    const bool is_input = piece.kind == StateRef::Kind::input;
    nodes.push_back(is_input ? reference.value_of(piece) : -1);
    key.push_back(is_input ? piece.tensor : -1);
  }
  if (std::ranges::all_of(nodes, [](NodeId node) { return node < 0; })) return;
  const auto [found, fresh] = inputs_.try_emplace(key);
  if (fresh) found->second = interned(typed(initial.buffer, nodes), 0);
  Slot& s = slot(c, initial.buffer, {});
  s = {.alive = true, .written = true, .value = found->second};
  if (s.value.content->micro_batch >= 0) s.value.micro_batch = initial.buffer.micro_batch.offset;
}

void Machine::run_step(const ReferenceValues& reference) {
  const int classes = static_cast<int>(program_.classes.size());
  if (step_ > 0) keep_what_is_known();
  if (step_ > 0 && !traces_ && memory_.use_count() == 1) forget_what_was_worked_out();
  foreign_from_ = nodes_.size();
  for (int c = 0; c < classes; ++c) {
    for (const Initial& initial : program_.classes[at(c)].initial) bring(c, initial, reference);
    runners_[at(c)].next = 0;
  }
  if (!traces_) leave_out_periods();
  go_on();
  if (goes_on()) require_end();
  ++step_;
}

/// Whether anything is left to find.
bool Machine::goes_on() const { return traces_ || breached_ == 0; }

/// Executes all that can be executed, class by class, until none gets any further.
void Machine::go_on() {
  bool moved = true;
  while (moved && goes_on()) {
    moved = false;
    for (int c = 0; c < static_cast<int>(program_.classes.size()); ++c) {
      while (goes_on() && advance(c)) moved = true;
    }
  }
}

/// A step makes little of what the one before made: it has other samples and other parameters.
void Machine::forget_what_was_worked_out() {
  memory_->known.clear();
  memory_->contents = {};
  memory_->places.clear();
  effects_.clear();
  named_as_typed_.clear();
  rooms_.clear();
}

/// Executes the next instruction of a class, if it can.
bool Machine::advance(int c) {
  Runner& runner = runners_[at(c)];
  if (runner.next >= runner.list.size()) return false;
  const auto& [segment, instruction, arguments] = runner.list[runner.next];
  if (segment != nullptr) {
    run(c, *segment, arguments);
    ++runner.next;
    return true;
  }
  if (instruction->step != 0 && instruction->step != step_ + 1) {
    ++runner.next;
    return true;
  }
  stand_at(c, *instruction, arguments);
  const std::size_t before = nodes_.size();
  if (instruction->kind == InstructionKind::receive) {
    if (!receive(c, *instruction, arguments)) return false;
  } else if (is_collective(instruction->kind) && instruction->kind != InstructionKind::send) {
    const std::size_t stands = runner.next;
    if (!exchange(c, *instruction, arguments)) return false;
    note_nodes(before, c, *instruction, arguments);
    if (runner.next != stands) return true;  // the group has gone on together
  } else {
    execute(c, *instruction, arguments);
  }
  note_nodes(before, c, *instruction, arguments);
  ++runner.next;
  return true;
}

void Machine::stand_at(int c, const Instruction& i, const Arguments& a) {
  reads_.clear();
  ++time_;
  standing_ = c;
  runners_[at(c)].instruction = &i;
  runners_[at(c)].arguments = a;
}

void Machine::note_nodes(std::size_t before, int c, const Instruction& i, const Arguments& a) {
  if (!traces_) return;
  for (std::size_t n = before; n < nodes_.size(); ++n) {
    origins_.try_emplace(
        static_cast<NodeId>(n),
        Origin{.device_class = c, .instruction = &i, .arguments = a, .step = step_, .time = time_});
  }
}

void Machine::begin_buffer(int c, const BufferRef& ref, const Arguments& a) {
  Slot& s = slot(c, ref, a);
  if (s.alive) {
    breach(c, "'" + program_.families[at(ref.family)].name + "' is allocated twice");
  }
  s = {.alive = true, .written = false, .value = {}};
}

void Machine::end_buffer(int c, const BufferRef& ref, const Arguments& a) {
  if (!slot(c, ref, a).alive) {
    breach(c, "'" + program_.families[at(ref.family)].name + "' is freed but not alive");
  }
  runners_[at(c)].slots.erase(ref, a);
}

void Machine::clear(int c, const BufferRef& ref, const Arguments& a) {
  Content zero = typed(ref, {});
  zero.micro_batch = -1;
  if (ref.piece >= 0 && at(ref.piece) < zero.pieces.size()) {
    zero.pieces = {zero.pieces[at(ref.piece)]};
  }
  write(c, ref, a, std::move(zero));
}

void Machine::execute(int c, const Instruction& i, const Arguments& a) {
  switch (i.kind) {
    case InstructionKind::alloc:
      for (const BufferRef& ref : i.outputs) begin_buffer(c, ref, a);
      return;
    case InstructionKind::free:
      for (const BufferRef& ref : i.inputs) end_buffer(c, ref, a);
      return;
    case InstructionKind::zero:
      for (const BufferRef& ref : i.outputs) clear(c, ref, a);
      return;
    case InstructionKind::compute:
    case InstructionKind::update:
    case InstructionKind::norm:
    case InstructionKind::scale:
    case InstructionKind::random:
    case InstructionKind::route:
    case InstructionKind::recompute:
      return call_kernel(c, i, a);
    case InstructionKind::accumulate:
      require_room_between(c, i, a);
      return accumulate(c, i, a);
    case InstructionKind::copy:
    case InstructionKind::host_copy:
      require_room_between(c, i, a);
      return write(c, i.outputs[0], a, read(c, i.inputs[0], a));
    case InstructionKind::slice:
      require_room_between(c, i, a);
      return slice(c, i, a);
    case InstructionKind::send:
      return send(c, i, a);
    case InstructionKind::all_reduce:
    case InstructionKind::reduce_scatter:
    case InstructionKind::all_gather:
    case InstructionKind::all_to_all:
    case InstructionKind::broadcast:
    case InstructionKind::permute:
    case InstructionKind::receive:
    case InstructionKind::record:
    case InstructionKind::wait:
      return;
  }
}

const Content* Machine::content_of(int device_class, const BufferRef& ref) const {
  const Slot* slot = runners_[at(device_class)].slots.find(ref, {});
  if (slot == nullptr || !slot->alive || !slot->written) return nullptr;
  return slot->value.content.get();
}

bool Machine::is_of_its_micro_batch(int device_class, const BufferRef& ref) const {
  const Slot* slot = runners_[at(device_class)].slots.find(ref, {});
  return slot == nullptr || slot->value.micro_batch < 0 ||
         slot->value.micro_batch == ref.micro_batch.offset;
}

const Origin* Machine::touch_of(int device_class, const BufferRef& ref) const {
  const Slot* slot = runners_[at(device_class)].slots.find(ref, {});
  if (slot == nullptr) return nullptr;
  for (const Origin* o : {&slot->writer, &slot->reader}) {
    if (o->instruction != nullptr && o->step == step_ - 1) return o;
  }
  return nullptr;
}

const Origin* Machine::origin_of(NodeId node) const {
  const auto found = origins_.find(node);
  return found == origins_.end() ? nullptr : &found->second;
}

const Origin* Machine::root_of(NodeId node) const {
  const Origin* origin = origin_of(node);
  while (origin != nullptr) {
    // What was made first is nearest to the cause.
    NodeId first = node;
    for_each_operand(nodes_.at(node), [&](NodeId o) {
      if (o < first && origin_of(o) != nullptr) first = o;
    });
    if (first == node) return origin;
    node = first;
    origin = origin_of(node);
  }
  return nullptr;
}

std::string Machine::describe(const Origin& origin) const {
  if (origin.instruction == nullptr) return "the reference";
  const Instruction& i = *origin.instruction;
  std::string text = i.line.number > 0 ? "line " + std::to_string(i.line.number) + ": " : "";
  text += name_of(i.kind);
  if (!i.label.empty()) text += " " + i.label;
  for (std::size_t a = 0; a < i.axes.size(); ++a) {
    text += (a == 0 ? " over " : ", ") + program_.axes[at(i.axes[a])].name;
  }
  const auto& refs = i.outputs.empty() ? i.inputs : i.outputs;
  if (!refs.empty()) text += " -> " + program_.families[at(refs[0].family)].name;
  // Outside of procedures the buffer says which unit it is of.
  Arguments place = origin.arguments;
  if (!refs.empty()) {
    const Family& family = program_.families[at(refs[0].family)];
    const auto is_fixed = [](const IndexTerm& term) {
      return term.variable == IndexTerm::Variable::none;
    };
    if (family.by_unit && is_fixed(refs[0].unit)) place.unit = refs[0].unit.offset;
    if (family.by_micro_batch && is_fixed(refs[0].micro_batch)) {
      place.micro_batch = refs[0].micro_batch.offset;
    }
  }
  text += " (unit " + std::to_string(place.unit) + ", micro-batch " +
          std::to_string(place.micro_batch) + ", step " + std::to_string(origin.step + 1) + ")";
  return text;
}

}  // namespace placet
