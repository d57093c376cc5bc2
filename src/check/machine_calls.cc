// What the machine makes of kernels, additions and slices, each worked out once for equal inputs.
#include <algorithm>
#include <optional>

#include "check/empty.h"
#include "check/machine.h"
#include "check/masks.h"
#include "check/scales.h"
#include "units/at.h"

namespace placet {
namespace {

constexpr std::size_t kLongSum = 12;  // summands

}  // namespace

/// The tensor of a buffer that a kernel's tensor number `t` is: inputs come first.
const PieceType& Machine::piece_of(const Instruction& i, std::size_t t) const {
  const BufferRef& ref = t < i.inputs.size() ? i.inputs[t] : i.outputs[t - i.inputs.size()];
  return program_.families[at(ref.family)].type.pieces[ref.piece < 0 ? 0 : at(ref.piece)];
}

/// The extent of a dim of a kernel where it is called; none: no buffer has it.
std::optional<std::int64_t> Machine::extent_of(const Instruction& i, int dim) const {
  std::optional<std::int64_t> extent;
  const Kernel& kernel = program_.kernels[at(i.kernel)];
  for (std::size_t t = 0; t < i.inputs.size() + i.outputs.size(); ++t) {
    const PieceType& piece = piece_of(i, t);
    const std::vector<int>& dims = kernel.tensors[t].dims;
    for (std::size_t d = 0; d < dims.size() && d < piece.dims.size(); ++d) {
      if (dims[d] == dim) extent = program_.dims[at(piece.dims[d].dim)].extent;
    }
  }
  return extent;
}

/// Where the code believes to be, and what it draws random numbers for.
KernelCall Machine::call_of(const Instruction& i, const Arguments& a) const {
  const Kernel& kernel = program_.kernels[at(i.kernel)];
  KernelCall call{.kernel = &kernel, .positions = {}, .key = {}, .results = {}, .factor = i.factor};
  call.positions.resize(kernel.dims.size());
  for (const Position& p : i.positions) {
    const std::int64_t extent = extent_of(i, p.dim).value_or(p.by.empty() ? 1 : -1);
    call.positions[at(p.dim)] = regions_.cuts_of(extent, p.by, p.shift);
  }
  call.most_parts = most_parts_;
  call.key = draw_key(i.key.name, value_of(i.key.unit, a), step_);
  for (std::size_t o = 0; o < i.outputs.size(); ++o) {
    const PieceType& piece = piece_of(i, i.inputs.size() + o);
    std::vector<ResultDim>& dims = call.results.emplace_back();
    for (const auto& [dim, by, shift] : piece.dims) {
      dims.push_back({dim, regions_.cuts_of(program_.dims[at(dim)].extent, by, shift)});
    }
  }
  return call;
}

/// The part of a kernel's dim that a call works on: that of the input that has the dim; else that
/// of an output, as the call makes as many entries as its buffer takes. None: no tensor has it.
std::optional<Splits> Machine::part_of(const Instruction& i, const std::vector<Numbered>& inputs,
                                       int dim) const {
  const Kernel& kernel = program_.kernels[at(i.kernel)];
  for (std::size_t t = 0; t < inputs.size() + i.outputs.size(); ++t) {
    const std::vector<int>& dims = kernel.tensors[t].dims;
    const auto k = static_cast<std::size_t>(std::ranges::find(dims, dim) - dims.begin());
    if (k == dims.size()) continue;
    if (t < inputs.size()) {
      const std::vector<Tensor>& held = inputs[t].content->pieces;
      if (held.size() == 1 && k < held[0].cuts.size()) return held[0].cuts[k];
    } else if (const PieceType& made = piece_of(i, t); k < made.dims.size()) {
      const auto& [logical, by, shift] = made.dims[k];
      return regions_.cuts_of(program_.dims[at(logical)].extent, by, shift);
    }
  }
  return std::nullopt;
}

/// Whether all tensors of a call that have a dim, and what inputs hold there, say that it is as
/// long: a position is measured on it.
bool Machine::has_one_length(const Instruction& i, const std::vector<Numbered>& inputs,
                             int dim) const {
  const Kernel& kernel = program_.kernels[at(i.kernel)];
  const std::optional<std::int64_t> extent = extent_of(i, dim);
  for (std::size_t t = 0; t < inputs.size() + i.outputs.size(); ++t) {
    const std::vector<int>& dims = kernel.tensors[t].dims;
    const auto k = static_cast<std::size_t>(std::ranges::find(dims, dim) - dims.begin());
    if (k == dims.size()) continue;
    const std::vector<DividedDim>& typed = piece_of(i, t).dims;
    if (k < typed.size() && regions_.extent_of(typed[k].dim) != extent) return false;
    if (t >= inputs.size() || inputs[t].content->pieces.size() != 1) continue;
    const std::vector<int>& held = inputs[t].content->pieces[0].dims;
    if (k < held.size() && regions_.extent_of(held[k]) != extent) return false;
  }
  return true;
}

/// What a kernel takes from a position is where its part begins. Where the code believes in another
/// part that begins at the same place on all devices of the class, it is right. True: it believes
/// in another part, rightly or not, so that what comes out is the class's own.
bool Machine::settle_positions(int c, const Instruction& i, const std::vector<Numbered>& inputs,
                               KernelCall& call) const {
  bool own = false;
  for (const int d : positions_of(*call.kernel)) {
    if (!has_one_length(i, inputs, d)) {
      call.trouble = "the code says where it is in a dim of another length";
      return true;
    }
    std::optional<Splits>& said = call.positions[at(d)];
    const Splits where = said.value_or(Splits{});
    const std::optional<Splits> part = part_of(i, inputs, d);
    if (!part || *part == where) continue;
    own = true;
    const std::int64_t extent = extent_of(i, d).value_or(0);
    if (begin_alike(program_, program_.classes[at(c)], extent, *part, where)) said = *part;
  }
  for (const auto& [query, key] : compared_positions(*call.kernel)) {
    settle_compared(c, i, inputs, {query, key}, call);
  }
  return own;
}

/// Of two positions that are only compared, their distance counts.
void Machine::settle_compared(int c, const Instruction& i, const std::vector<Numbered>& inputs,
                              const std::pair<int, int>& dims, KernelCall& call) const {
  std::optional<Splits>& first = call.positions[at(dims.first)];
  std::optional<Splits>& second = call.positions[at(dims.second)];
  const std::optional<Splits> part = part_of(i, inputs, dims.first);
  const std::optional<Splits> other = part_of(i, inputs, dims.second);
  const Splits said = first.value_or(Splits{});
  const Splits also_said = second.value_or(Splits{});
  if (!part || !other || (*part == said && *other == also_said)) return;
  const std::int64_t extent = extent_of(i, dims.first).value_or(0);
  if (extent != extent_of(i, dims.second).value_or(0)) return;
  const bool alike = begin_as_far_apart(program_, program_.classes[at(c)], extent, {*part, *other},
                                        {said, also_said});
  if (!alike) return;
  first = part;
  second = other;
}

/// What a causal mask hides is asked of the devices of the class. True: it may be.
bool Machine::see_masks(int c, KernelCall& call) const {
  if (!masks_behind_) return false;
  call.foreign_from = *masks_behind_;
  if (!is_causal(*call.kernel)) return false;
  call.hides = [this, c](const ResultDim& queries, const ResultDim& keys) {
    if (queries.logical < 0 || keys.logical < 0) return false;
    const std::int64_t extent = regions_.extent_of(queries.logical);
    return extent == regions_.extent_of(keys.logical) &&
           lies_behind(program_, program_.classes[at(c)], extent, keys.cuts, queries.cuts);
  };
  return true;
}

/// Two calls with equal keys give equal results: the instruction, what it draws for, what goes in.
std::vector<int> Machine::key_of_call(const Instruction& i, const Arguments& a,
                                      const std::vector<Numbered>& inputs) const {
  std::vector<int> key{instructions_.at(&i)};
  if (draws(program_.kernels[at(i.kernel)])) {
    key.push_back(static_cast<int>(value_of(i.key.unit, a)));
    key.push_back(step_);
  }
  for (const Numbered& n : inputs) key.push_back(n.number);
  return key;
}

/// The micro-batch that all of these are of, -1 if of none; nothing: of several.
std::optional<std::int64_t> Machine::common_micro_batch(const std::vector<Numbered>& values) {
  std::int64_t common = -1;
  for (const Numbered& n : values) {
    if (n.micro_batch >= 0 && common >= 0 && n.micro_batch != common) return std::nullopt;
    if (n.micro_batch >= 0) common = n.micro_batch;
  }
  return common;
}

std::vector<Machine::Numbered> Machine::outputs_of(const KernelCall& call,
                                                   const std::vector<Numbered>& inputs) {
  ++worked_out_;
  std::vector<ContentView> contents(inputs.size());
  std::ranges::transform(inputs, contents.begin(), [](const Numbered& input) {
    const Content& own = *input.content;
    return ContentView{.pieces = own.pieces, .flat = &own.flat, .micro_batch = input.micro_batch};
  });
  std::vector<Numbered> outputs;
  for (Content& out : kernels_.run(call, contents)) {
    const std::int64_t micro_batch = out.micro_batch;
    outputs.push_back(interned(std::move(out), micro_batch));
  }
  return outputs;
}

/// Rows that meet element by element are as long. Where they are made up differently but as long,
/// what comes out cannot be right. What cannot be right already may have any length.
void Machine::require_rows_alike(int c, const std::vector<Numbered>& inputs) {
  const Content* row = nullptr;
  for (const Numbered& input : inputs) {
    const Content& other = *input.content;
    if (other.flat.empty() && other.pieces.size() < 2) continue;
    if (row != nullptr && !same_shape(*row, other)) {
      const bool odd = is_odd_somewhere(c, *row) || is_odd_somewhere(c, other);
      const bool fits = has_room({program_, program_.classes[at(c)], {}}, *row, -1, other);
      if (!odd && !fits) breach(c, "takes parts of rows of other lengths");
    }
    row = &other;
  }
}

void Machine::call_kernel(int c, const Instruction& i, const Arguments& a) {
  std::vector<Numbered> inputs(i.inputs.size());
  std::ranges::transform(i.inputs, inputs.begin(),
                         [&](const BufferRef& ref) { return read(c, ref, a); });
  require_rows_alike(c, inputs);
  const std::optional<std::int64_t> micro_batch = common_micro_batch(inputs);
  if (!micro_batch) tell_micro_batches_apart();
  std::vector<Numbered> outputs = results_of(c, i, a, inputs, micro_batch);
  const std::int64_t mine =
      micro_batch.value_or(0) < 0 ? micro_batch_of(i, a) : micro_batch.value_or(0);
  const bool elsewhere =
      micro_batch.value_or(-1) >= 0 && takes_micro_batch(i) && mine != micro_batch_of(i, a);
  for (std::size_t o = 0; o < i.outputs.size(); ++o) {
    if (elsewhere) outputs[o] = of_another_micro_batch(outputs[o]);
    if (outputs[o].content->micro_batch >= 0) outputs[o].micro_batch = mine;
    write(c, i.outputs[o], a, outputs[o]);
  }
}

/// What a kernel makes, of which micro-batch is not said; known again for equal inputs of one.
/// `micro_batch`: the one that the inputs have in common.
std::vector<Machine::Numbered> Machine::results_of(int c, const Instruction& i, const Arguments& a,
                                                   const std::vector<Numbered>& inputs,
                                                   const std::optional<std::int64_t>& micro_batch) {
  const bool is_known =
      micro_batch && std::ranges::all_of(inputs, [](const Numbered& n) { return n.number >= 0; });
  const std::vector<int> key = key_of_call(i, a, inputs);
  const auto found = is_known ? memory_->known.find(key) : memory_->known.end();
  if (found != memory_->known.end()) {
    ++known_again_;
    return found->second;
  }
  KernelCall call = call_of(i, a);
  const bool masks = see_masks(c, call);
  bool own = settle_positions(c, i, inputs, call) || masks;
  std::vector<Numbered> outputs = outputs_of(call, inputs);
  const auto is_wrong = [](const Numbered& n) { return is_odd(*n.content); };
  if (std::ranges::any_of(outputs, is_wrong)) {
    std::vector<Numbered> left = inputs;
    bool empty = false;
    for (Numbered& input : left) empty = clear_empty(c, input) || empty;
    if (empty) outputs = outputs_of(call, left);
    own = own || empty;
  }
  is_own_ = is_own_ || own;
  if (is_known && !own) memory_->known.emplace(key, outputs);
  return outputs;
}

/// The micro-batch at which a call believes to be: that of the first of its buffers of which each
/// micro-batch has a part, else that of the procedure's call.
std::int64_t Machine::micro_batch_of(const Instruction& i, const Arguments& a) {
  const auto is_parted = [&](const BufferRef& ref) {
    return is_divided(type_of(ref.family), regions_.micro_axis());
  };
  for (const std::vector<BufferRef>* refs : {&i.inputs, &i.outputs}) {
    const auto found = std::ranges::find_if(*refs, is_parted);
    if (found != refs->end()) return value_of(found->micro_batch, a);
  }
  return a.micro_batch;
}

/// Whether the code says where it is by micro-batches.
bool Machine::takes_micro_batch(const Instruction& i) const {
  return std::ranges::any_of(i.positions, [&](const Position& p) {
    return std::ranges::any_of(p.by, [&](const AxisList& level) {
      return std::ranges::find(level, regions_.micro_axis()) != level.end();
    });
  });
}

Machine::Numbered Machine::of_another_micro_batch(const Numbered& output) {
  Content odd = whole_of(output);
  odd_content(odd, "the code takes its micro-batch for another one");
  return interned(std::move(odd), output.micro_batch);
}

/// What cannot be right in the place of a tensor; it remembers what it was made of.
Item Machine::odd_item(const Tensor& instead, const std::string& why, const Tensor* other) {
  Node node{.kind = Node::Kind::odd, .text = why, .dims = instead.dims};
  const auto remember = [&](const Tensor& of) {
    for (const Item& item : of.items) {
      node.operands.push_back({scaled(nodes_, item.node, of.scales), {}});
    }
  };
  remember(instead);
  if (other != nullptr) remember(*other);
  return nodes_.item_of(nodes_.add(std::move(node)));
}

/// What cannot be right in the place of a content; it remembers what it was made of.
void Machine::odd_content(Content& content, const std::string& why, const Content& other) {
  for (std::size_t p = 0; p < content.pieces.size(); ++p) {
    Tensor& t = content.pieces[p];
    become(t, odd_item(t, why, p < other.pieces.size() ? &other.pieces[p] : nullptr));
  }
}

/// What is done now depends on the number of a micro-batch.
void Machine::tell_micro_batches_apart() {
  names_micro_batch_ = true;
  ++named_;
}

void Machine::accumulate(int c, const Instruction& i, const Arguments& a) {
  const Numbered source = read(c, i.inputs[0], a);
  added_.emplace_back(&i, source);
  accumulate(c, i, a, source);
}

/// Whether a sum that takes another micro-batch only becomes longer. It does if it did so the last
/// time, for the micro-batch before, by what is equal; unless that completes it.
bool Machine::is_extended_by(const Slot& sum, const Numbered& source) const {
  const std::int64_t micro_batches = kernels_.micro_batches();
  const bool likewise = source.number >= 0 && sum.longer.number == sum.value.number &&
                        sum.longer.by == source.number &&
                        sum.longer.micro_batch + 1 == source.micro_batch;
  if (likewise && source.micro_batch + 1 < micro_batches) return true;
  const Content& content = *sum.value.content;
  if (!same_shape(content, *source.content)) return false;
  for (std::size_t p = 0; p < content.pieces.size(); ++p) {
    const Tensor& more = source.content->pieces[p];
    if (!extends(content.pieces[p], more, source.micro_batch, micro_batches)) return false;
  }
  return true;
}

/// One more micro-batch in a sum that nothing else holds: only its runs change, and with them
/// neither its parts nor its scale. False: nothing was done.
bool Machine::extend_sum(int c, const Instruction& i, const Arguments& a, const Numbered& source) {
  const BufferRef& ref = i.outputs[0];
  Slot* slot = runners_[at(c)].slots.find(ref, a);
  const bool sums = slot != nullptr && slot->alive && slot->written && ref.piece < 0 &&
                    source.micro_batch >= 0 && slot->value.micro_batch < 0;
  if (!sums || slot->value.content.use_count() != 1) return false;
  // Made as one that is not constant, and held by this slot alone.
  Content& sum = *std::const_pointer_cast<Content>(slot->value.content);
  if (!is_extended_by(*slot, source)) return false;
  for (Tensor& t : sum.pieces) extend(t, 1);
  note_extended(c, memory_->numbers, slot->value.number, source.number);
  slot->value.number = memory_->numbers++;
  slot->longer = {
      .number = slot->value.number, .by = source.number, .micro_batch = source.micro_batch};
  slot->writer = here(c);
  if (slot->reader.instruction == nullptr || slot->reader.step != step_) slot->reader = here(c);
  names_micro_batch_ = true;
  if (watches_) note_longer(c, ref, a);
  return true;
}

/// A sum took one more micro-batch.
void Machine::note_longer(int c, const BufferRef& ref, const Arguments& a) {
  const Family& family = program_.families[at(ref.family)];
  if (family.by_micro_batch) ++named_;
  ++added_to_[{c, ref.family, family.by_unit ? value_of(ref.unit, a) : 0}].longer;
}

/// Something else was added to a sum than one more micro-batch of the same.
void Machine::note_otherwise(int c, const BufferRef& ref, const Arguments& a) {
  const Family& family = program_.families[at(ref.family)];
  added_to_[{c, ref.family, family.by_unit ? value_of(ref.unit, a) : 0}].otherwise = true;
}

/// One of the sums on the way to a sum of very many, as that of the squares of all gradients: to
/// keep each of them would take room that grows with the square of their number, for little.
bool Machine::is_long(const Content& sum) {
  return std::ranges::any_of(sum.pieces, [](const Tensor& t) { return t.items.size() > kLongSum; });
}

void Machine::accumulate(int c, const Instruction& i, const Arguments& a, const Numbered& source) {
  const bool noted = traces_ && source.number >= 0;
  if (noted && is_zero(*source.content)) nothings_.push_back(source.number);
  if (extend_sum(c, i, a, source)) return;
  if (watches_) note_otherwise(c, i.outputs[0], a);
  const Numbered sum = read(c, i.outputs[0], a);
  if (!same_shape(*sum.content, *source.content)) require_room(c, i.outputs[0], source, -1);
  // A sum over micro-batches notes which one is added; any other is alike for all of them.
  const int micro = regions_.micro_axis();
  const auto is_alike = [&](const Numbered& n) {
    return n.number >= 0 && (n.micro_batch < 0 || is_divided(*n.content, micro));
  };
  if (!is_alike(source) || !is_alike(sum) || source.micro_batch != sum.micro_batch) {
    tell_micro_batches_apart();
    return write(c, i.outputs[0], a, sum_of(whole_of(sum), whole_of(source)));
  }
  if (!traces_ && is_long(*sum.content)) {
    return write(c, i.outputs[0], a, sum_of(whole_of(sum), whole_of(source)));
  }
  std::vector<Numbered>& known = memory_->known[{instructions_.at(&i), sum.number, source.number}];
  if (known.empty()) {
    known = {interned(sum_of(whole_of(sum), whole_of(source)), sum.micro_batch)};
  }
  Numbered out = known[0];
  out.micro_batch = out.content->micro_batch < 0 ? -1 : sum.micro_batch;
  write(c, i.outputs[0], a, out);
}

/// Entry by entry.
Content Machine::sum_of(Content sum, Content source) {
  const int micro = regions_.micro_axis();
  settle_micro_batch(source, micro);
  settle_micro_batch(sum, micro);
  if (is_zero(sum)) return source;
  if (is_zero(source)) return sum;
  if (!same_shape(sum, source)) {
    odd_content(sum, "different parts are added", source);
  } else if (sum.micro_batch != source.micro_batch) {
    odd_content(sum, "values of different micro-batches are added entry by entry");
  } else {
    bool odd = false;
    for (std::size_t p = 0; p < sum.pieces.size(); ++p) {
      odd = odd || has_open_maximum(sum.pieces[p]) || has_open_maximum(source.pieces[p]);
      // What meets nothing stays as settled as it was.
      if (add(nodes_, sum.pieces[p], source.pieces[p])) settle(sum.pieces[p], regions_);
      nodes_.share_beginning(sum.pieces[p].items);
    }
    if (odd) odd_content(sum, "maxima that are not complete are added");
  }
  return sum;
}

void Machine::slice(int c, const Instruction& i, const Arguments& a) {
  write(c, i.outputs[0], a, worked_out(i, read(c, i.inputs[0], a)));
}

/// What an instruction of one input and one output makes of a content, once for equal ones.
Machine::Numbered Machine::worked_out(const Instruction& i, const Numbered& value) {
  const auto [found, fresh] = memory_->known.try_emplace({instructions_.at(&i), value.number});
  if (fresh || value.number < 0) {
    ++worked_out_;
    Content content = whole_of(value);
    content = i.kind == InstructionKind::slice ? divided(i, std::move(content), i.shift)
                                               : collected(i, std::move(content));
    found->second = {interned(std::move(content), value.micro_batch)};
  } else {
    ++known_again_;
  }
  Numbered out = found->second[0];
  if (out.content->micro_batch >= 0) out.micro_batch = value.micro_batch;
  return out;
}

/// The device's own part of a content along the axes of an instruction, or that `shift` places
/// further on.
Content Machine::divided(const Instruction& i, Content content, std::int64_t shift) {
  if (i.dim == kFlat) {
    content.flat = regions_.row_divided(content.flat, elements_of(content), i.axes, shift);
    return content;
  }
  if (!content.flat.empty()) odd_content(content, "a part of a row of elements is cut along a dim");
  for (Tensor& t : content.pieces) {
    if (at(i.dim) >= t.dims.size()) continue;
    const std::int64_t extent = program_.dims[at(t.dims[at(i.dim)])].extent;
    t.cuts[at(i.dim)] = regions_.divided(t.cuts[at(i.dim)], extent, i.axes, shift);
  }
  return content;
}

}  // namespace placet
