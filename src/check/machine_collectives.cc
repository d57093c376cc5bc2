// Collectives and messages of the machine.
#include <algorithm>
#include <numeric>
#include <set>

#include "check/fit.h"
#include "check/machine.h"
#include "check/places.h"
#include "check/scales.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

/// Whether a sum is still open along the axis.
bool is_partial(const Share& share, int axis) {
  return std::ranges::any_of(share.open,
                             [&](const OpenSum& o) { return is_divided(o.cuts, axis); });
}

bool is_partial(const Content& content, int axis, const Rows& rows) {
  return any_share(content, [&](const Share& s) {
    const auto shifts = [&](const OpenSum& o) { return rows.shifts(o, axis); };
    return is_partial(s, axis) || std::ranges::any_of(s.open, shifts);
  });
}

/// Whether some sum is over parts of a row that lie elsewhere on devices that differ along these
/// axes: added up along them they are no sum over the row, unless it is closed as well.
bool shifts_along(const Content& content, const AxisList& axes, const Rows& rows) {
  const auto stays = [&](const Split& split) {
    return split.open && std::ranges::find(axes, split.axis) == axes.end();
  };
  const auto shifts = [&](const OpenSum& o) {
    return o.dim < 0 && std::ranges::any_of(o.cuts, stays) &&
           std::ranges::any_of(axes, [&](int axis) { return rows.shifts(o, axis); });
  };
  return any_share(content, [&](const Share& s) { return std::ranges::any_of(s.open, shifts); });
}

bool names_no_device(const Share& share) {
  return std::ranges::any_of(share.open, [](const OpenSum& o) {
    return std::ranges::any_of(o.cuts, [](const Split& s) { return s.open && s.shift < 0; });
  });
}

/// Whether a sum is over a part of a device of several axes at once that is not the device's own:
/// what is added along one of them alone has no name.
bool names_no_device(const Content& content) {
  return any_share(content, [](const Share& s) { return names_no_device(s); });
}

/// Puts a share together along an axis: closes a sum that the axis divides, else counts it once
/// per device.
void close_share(Share& share, int axis, std::int64_t degree) {
  for (OpenSum& o : share.open) {
    for (Split& c : o.cuts) {
      if (c.axis != axis || !c.open) continue;
      c.open = false;
      c.shift = 0;
      trim(o.cuts);
      return;
    }
  }
  if (share.runs.empty()) share.factor = share.factor * Rational(degree);
  for (Share::Run& r : share.runs) r.factor = r.factor * Rational(degree);
}

void close_item(Item& item, int axis, std::int64_t degree, Combine op) {
  if (item.complete()) {
    if (op == Combine::sum) item.factor = item.factor * Rational(degree);
    return;
  }
  for (Share& s : item.shares) close_share(s, axis, op == Combine::sum ? degree : 1);
}

void close_along(int axis, std::int64_t degree, Combine op, Content& content) {
  for (Tensor& t : content.pieces) {
    t.items.edit_all([&](std::vector<Item>& items) {
      for (Item& item : items) close_item(item, axis, degree, op);
    });
  }
}

bool has_open_maximum(const Content& content) {
  return std::ranges::any_of(content.pieces,
                             [](const Tensor& t) { return placet::has_open_maximum(t); });
}

/// Adds entry by entry; false: these are different parts.
bool add_part(Nodes& nodes, Content& sum, const Content& part) {
  bool fits = same_shape(sum, part);
  for (std::size_t p = 0; p < sum.pieces.size() && p < part.pieces.size(); ++p) {
    const Tensor& mine = part.pieces[p];
    if (sum.pieces[p].items.empty()) {
      sum.pieces[p] = mine;
    } else if (!mine.items.empty()) {
      if (fits) add(nodes, sum.pieces[p], mine);
    }
  }
  return fits;
}

}  // namespace

bool Machine::exchange(int c, const Instruction& i, const Arguments& a) {
  const bool apart = std::ranges::any_of(i.axes, [&](int axis) { return splits(c, axis); });
  if (!apart) {
    const bool all = i.among.empty() ||
                     static_cast<std::int64_t>(i.among.size()) == regions_.degree(i.axes.at(0));
    if (!all) breach(c, "is no collective of all devices that execute it");
    alone(c, i, a);
    return true;
  }
  const std::vector<int> members = members_of(c, i);
  require_group(c, members, i);
  runners_[at(c)].waits = true;
  if (!all_arrived(members, i)) return false;
  together(members, i);
  for (int m : members) {
    runners_[at(m)].waits = false;
    ++runners_[at(m)].next;
  }
  return true;
}

/// Whether two instructions are the same collective.
bool Machine::meet(const Instruction& a, const Instruction& b) {
  return a.kind == b.kind && a.axes == b.axes && a.op == b.op && a.dim == b.dim &&
         a.into == b.into && a.shift == b.shift && a.peer == b.peer && a.among == b.among &&
         a.inputs.size() == b.inputs.size();
}

/// Whether all members stand at the same collective. One that stands at another one is a breach.
bool Machine::all_arrived(const std::vector<int>& members, const Instruction& i) {
  for (int m : members) {
    const Runner& runner = runners_[at(m)];
    if (!runner.waits || runner.next >= runner.list.size()) return false;
    if (!meet(*runner.instruction, i)) return false;
  }
  return true;
}

/// All is read before anything is written.
void Machine::alone(int c, const Instruction& i, const Arguments& a) {
  require_room_between(c, i, a);
  if (i.inputs.size() == 1) {
    return write(c, i.outputs[0], a, worked_out(i, read(c, i.inputs[0], a)));
  }
  std::vector<Numbered> values(i.inputs.size());
  std::ranges::transform(i.inputs, values.begin(),
                         [&](const BufferRef& ref) { return read(c, ref, a); });
  for (std::size_t b = 0; b < values.size(); ++b) {
    write(c, i.outputs[b], a, worked_out(i, values[b]));
  }
}

/// What the members of a collective read, of a broadcast its owner alone: what the others have is
/// of no account.
std::vector<Content> Machine::read_together(const std::vector<int>& members, std::size_t input,
                                            const std::optional<std::size_t>& owner) {
  std::vector<Content> contents(members.size());
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (owner && m != *owner) continue;
    const Runner& runner = runners_[at(members[m])];
    contents[m] = whole_of(read(members[m], runner.instruction->inputs[input], runner.arguments));
  }
  return contents;
}

/// A collective whose group lies in several classes: where all hold the same, it is the same for
/// all; a sum may also be of different values, one class at a time.
void Machine::together(const std::vector<int>& members, const Instruction& i) {
  const auto step_of = [&](int m) {
    return std::pair(runners_[at(m)].instruction, runners_[at(m)].arguments);
  };
  const std::optional<std::size_t> owner = owner_of(members, i);
  // By buffer and member; and the numbers of what was read. All is read before anything is written.
  std::vector<std::vector<Content>> contents(i.inputs.size());
  std::vector<std::vector<int>> reads(i.inputs.size());
  for (std::size_t b = 0; b < i.inputs.size(); ++b) {
    reads_.clear();
    contents[b] = read_together(members, b, owner);
    reads[b] = reads_;
  }
  for (const int m : members) {
    const auto [instruction, arguments] = step_of(m);
    require_room_between(m, *instruction, arguments);
  }
  for (std::size_t b = 0; b < i.inputs.size(); ++b) {
    require_sizes_alike(members, b);
    // Of different buffers, none is the one that went wrong.
    const auto element_at = [&](int m) {
      const auto [instruction, arguments] = step_of(m);
      return element_of(instruction->inputs[b], arguments);
    };
    const bool alike = std::ranges::all_of(
        members, [&](int m) { return element_at(m) == element_at(members.front()); });
    reads_ = reads[b];
    met_ = alike ? reads_ : std::vector<int>{};
    if (owner) {
      give_from(*owner, members, i, contents[b]);
    } else {
      combine(members, i, b, contents[b]);
    }
    for (std::size_t m = 0; m < members.size(); ++m) {
      const auto [instruction, arguments] = step_of(members[m]);
      write(members[m], instruction->outputs[b], arguments, contents[b][m]);
    }
  }
}

/// Buffers of another family than the first member's are as large on the devices that have them:
/// the group was judged by the types of each one (`find_misfits`).
void Machine::require_sizes_alike(const std::vector<int>& members, std::size_t buffer) {
  const Runner& first = runners_[at(members[0])];
  for (const int m : members) {
    const Runner& own = runners_[at(m)];
    const auto fits = [&](std::vector<BufferRef> Instruction::*side) {
      const BufferRef& mine = (own.instruction->*side)[buffer];
      const BufferRef& its = (first.instruction->*side)[buffer];
      return are_as_large(buffer_of(m, mine, own.arguments), buffer_of(m, its, first.arguments),
                          {});
    };
    if (fits(&Instruction::inputs) && fits(&Instruction::outputs)) continue;
    breach(m, "meets a collective of tensors of another size on '" +
                  program_.classes[at(members[0])].name + "'");
  }
}

Machine::Buffer Machine::buffer_of(int c, const BufferRef& ref, const Arguments& a) {
  return {.device_class = c, .ref = &ref, .micro_batch = value_of(ref.micro_batch, a)};
}

/// Whether two buffers of classes that stand at one place but for the axes are as large. Which axes
/// these are follows from the classes.
bool Machine::are_as_large(const Buffer& one, const Buffer& other, const AxisList& apart) {
  const bool apart_in_time =
      one.micro_batch != other.micro_batch &&
      (has_uneven_micro_batches(one.ref->family) || has_uneven_micro_batches(other.ref->family));
  const bool same = one.ref->family == other.ref->family && one.ref->piece == other.ref->piece;
  if (same && apart.empty() && !apart_in_time) return true;
  const auto mine = static_cast<int>(apart_in_time ? one.micro_batch : -1);
  const auto its = static_cast<int>(apart_in_time ? other.micro_batch : -1);
  const auto [found, fresh] =
      sizes_.try_emplace({one.device_class, one.ref->family, one.ref->piece, mine,
                          other.device_class, other.ref->family, other.ref->piece, its},
                         true);
  if (fresh) {
    const auto sized = [&](const Buffer& buffer, const BufferType& type, std::int64_t micro_batch) {
      return Sized{program_.classes[at(buffer.device_class)], type, micro_batch};
    };
    const BufferType type = placet::type_of(program_, *one.ref);
    const BufferType other_type = placet::type_of(program_, *other.ref);
    found->second =
        have_one_size(program_, sized(one, type, mine), sized(other, other_type, its), apart);
  }
  return found->second;
}

/// A permute of classes of one device each along its axis, whatever each of them holds. False: it
/// is none, and nothing was done.
bool Machine::pass_on_one_by_one(const std::vector<int>& members, const Instruction& i,
                                 std::vector<Content>& contents) {
  if (i.kind != InstructionKind::permute) return false;
  const int axis = i.axes[0];
  const std::int64_t n = regions_.degree(axis);
  std::vector<Content> by_place(static_cast<std::size_t>(n));
  std::vector<std::size_t> places;
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (standing(members[m], axis) != 1) return false;
    const std::int64_t place = coordinates_of(program_, program_.classes[at(members[m])], axis)[0];
    places.push_back(static_cast<std::size_t>(place));
    by_place[places.back()] = contents[m];
  }
  if (std::set<std::size_t>(places.begin(), places.end()).size() != by_place.size()) return false;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const std::int64_t from = (static_cast<std::int64_t>(places[m]) + i.shift) % n;
    contents[m] = by_place[static_cast<std::size_t>((from + n) % n)];
    pass_on(i, contents[m]);
  }
  return true;
}

void Machine::combine(const std::vector<int>& members, const Instruction& i, std::size_t input,
                      std::vector<Content>& contents) {
  const auto are_alike = [&] {
    return std::ranges::all_of(contents, [&](const Content& c) { return c == contents[0]; });
  };
  if (!are_alike()) level_empty(members, contents);
  if (!are_alike() && pass_on_one_by_one(members, i, contents)) return;
  if (!are_alike() || !i.among.empty()) return reduce_across(members, i, input, contents);
  for (std::size_t m = 0; m < members.size(); ++m) {
    contents[m] = collected(i, contents[m]);
  }
}

/// Puts classes that differ along one axis only together, where all of them hold the same: what is
/// left stands for whole rows of devices along it. False: some differ, and nothing is put together.
bool Machine::merge_along(int axis, const std::vector<int>& members, const Instruction& i,
                          std::vector<Content>& contents, std::vector<std::size_t>& left) {
  if (!i.among.empty()) return false;
  std::map<std::vector<std::vector<std::int64_t>>, std::vector<std::size_t>> rows;
  for (std::size_t m : left) {
    auto box = program_.classes[at(members[m])].box;
    if (splits(members[m], axis)) box[at(axis)].clear();
    rows[box].push_back(m);
  }
  std::vector<std::size_t> first;
  for (const auto& [box, row] : rows) {
    level_empty_sums(members, row, contents);
    std::int64_t devices = 0;
    for (std::size_t m : row) {
      devices += taking_part(members[m], axis, i);
      if (contents[m] != contents[row[0]]) return false;
    }
    if (devices != regions_.degree(axis)) return false;
    first.push_back(row[0]);
  }
  for (std::size_t m : first) close(contents[m], {axis}, i.op);
  left = std::move(first);
  return true;
}

/// Of the whole tensors that a content has parts of.
double Machine::entries_of(const Content& content) const {
  double entries = 0;
  for (const Tensor& t : content.pieces) {
    double own = 1;
    for (const int dim : t.dims) own *= static_cast<double>(regions_.extent_of(dim));
    entries += own;
  }
  return entries;
}

/// The family that the instruction which a class stands at reads.
const std::string& Machine::family_read(int c, std::size_t input) const {
  return program_.families[at(runners_[at(c)].instruction->inputs[input].family)].name;
}

/// A collective of classes that hold different things: a sum of these, one class at a time; else
/// it cannot be right.
void Machine::reduce_across(const std::vector<int>& members, const Instruction& i,
                            std::size_t input, std::vector<Content>& contents) {
  for (std::size_t m = 1; m < members.size(); ++m) {
    if (entries_of(contents[m]) == entries_of(contents[0])) continue;
    breach(members[m], "meets a collective of tensors of another size, that of '" +
                           family_read(members[0], input) + "' on " +
                           program_.classes[at(members[0])].name);
  }
  const Origin* cause = traces_ ? deviation(contents) : nullptr;
  if (cause == nullptr) cause = writer_of_least(members, input, contents);
  if (i.kind == InstructionKind::all_reduce && i.op == Combine::sum) {
    return sum_across(members, i, cause, contents);
  }
  std::string what = "devices of one group hold different things";
  if (const std::optional<Lacking> lacking = lacks_micro_batches(contents)) {
    const int c = members[lacking->member];
    what += ": " + lacking->text + " on " + program_.classes[at(c)].name;
    if (const Origin* writer = writer_read_by(c, input)) cause = writer;
  }
  for (std::size_t m = 0; m < members.size(); ++m) odd_content(contents[m], what);
  blame(contents, cause);
}

void Machine::sum_across(const std::vector<int>& members, const Instruction& i, const Origin* cause,
                         std::vector<Content>& contents) {
  std::vector<std::size_t> left(members.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  // A row that lies elsewhere along an axis is put together before.
  AxisList order = i.axes;
  std::ranges::stable_partition(order, [&](int axis) {
    return std::ranges::none_of(contents, [&](const Content& content) {
      return shifts_along(content, {axis}, kernels_.rows());
    });
  });
  AxisList apart;
  for (int axis : order) {
    if (!merge_along(axis, members, i, contents, left)) apart.push_back(axis);
  }
  bool odd = false;
  for (std::size_t m : left) odd = multiply(members[m], apart, i, contents[m]) || odd;
  std::erase_if(left, [&](std::size_t m) { return is_zero(contents[m]); });
  Content sum = contents[left.empty() ? 0 : left[0]];
  for (std::size_t k = 1; k < left.size(); ++k) {
    Content& more = contents[left[k]];
    odd = has_open_maximum(sum) || has_open_maximum(more) || odd;
    if (sum.micro_batch != more.micro_batch) {
      tell_micro_batches_apart();
      settle_micro_batch(sum, regions_.micro_axis());
      settle_micro_batch(more, regions_.micro_axis());
    }
    odd = sum.micro_batch != more.micro_batch || !add_part(nodes_, sum, more) || odd;
  }
  for (Tensor& t : sum.pieces) settle(t, regions_);
  if (odd) odd_content(sum, "different parts are added by a collective");
  std::ranges::fill(contents, sum);
  if (odd) blame({sum}, cause);
}

/// A class's own contribution to a sum along axes: all its devices hold the same. True: they hold
/// different parts.
bool Machine::multiply(int c, const AxisList& axes, const Instruction& i, Content& content) const {
  bool parts = false;
  std::int64_t times = 1;
  for (int axis : axes) {
    parts = parts || is_partial(content, axis, kernels_.rows()) || is_divided(content, axis);
    times *= taking_part(c, axis, i);
  }
  for (Tensor& t : content.pieces) t = scaled(std::move(t), Rational(times));
  return parts;
}

void Machine::close(Content& content, const AxisList& axes, Combine op) {
  const auto mixes = [&](const Tensor& t) {
    return std::ranges::any_of(
        t.items, [&](const Item& item) { return !item.complete() && item.combine != op; });
  };
  const bool shifts = shifts_along(content, axes, kernels_.rows());
  for (int axis : axes) {
    if (regions_.degree(axis) == 1) continue;
    if (shifts || is_divided(content, axis) || names_no_device(content)) {
      odd_content(content, "different parts are added by a collective");
    } else if (std::ranges::any_of(content.pieces, mixes)) {
      odd_content(content, "a maximum and a sum are mixed");
    } else {
      close_along(axis, regions_.degree(axis), op, content);
    }
  }
  for (Tensor& t : content.pieces) settle(t, regions_);
}

/// What a collective makes of a value that all its devices hold in the same way.
Content Machine::collected(const Instruction& i, Content content) {
  const InstructionKind kind = i.kind;
  if (kind == InstructionKind::broadcast) {
    give(i.axes, content);
    return content;
  }
  if (kind == InstructionKind::permute) {
    pass_on(i, content);
    return content;
  }
  if (kind == InstructionKind::all_reduce || kind == InstructionKind::reduce_scatter) {
    close(content, i.axes, i.op);
  } else {
    const int dim = kind == InstructionKind::all_to_all ? i.into : i.dim;
    if (!gather(dim, i.axes, content)) return content;
  }
  const bool takes_own =
      kind == InstructionKind::reduce_scatter || kind == InstructionKind::all_to_all;
  return takes_own ? divided(i, std::move(content), 0) : content;
}

/// Each device gets what the device some places further on has: the same content, in which every
/// part is that of a device so much further on.
void Machine::pass_on(const Instruction& i, Content& content) {
  const int axis = i.axes[0];
  bool known = !shifts_along(content, {axis}, kernels_.rows());
  known = shift_all(content.flat, axis, i.shift, regions_) && known;
  for (Tensor& t : content.pieces) known = shift_all(t, axis, i.shift, regions_) && known;
  if (!known) odd_content(content, "a part of another device is passed on");
}

/// Whether it is the device's own part along the axis.
bool Machine::is_own_along(const Content& content, int axis) const {
  return is_divided(content, axis) || is_partial(content, axis, kernels_.rows());
}

void Machine::give(const AxisList& axes, Content& content) {
  const bool own = std::ranges::any_of(axes, [&](int axis) { return is_own_along(content, axis); });
  if (own) odd_content(content, "the part of one device is given to all");
}

/// Of a broadcast along one axis that splits classes, the member that gives; none: it is none.
std::optional<std::size_t> Machine::owner_of(const std::vector<int>& members,
                                             const Instruction& i) const {
  if (i.kind != InstructionKind::broadcast || i.axes.size() != 1) return std::nullopt;
  const auto owner = std::ranges::find_if(members, [&](int m) {
    const std::vector<std::int64_t> mine =
        coordinates_of(program_, program_.classes[at(m)], i.axes[0]);
    return std::ranges::find(mine, i.peer) != mine.end();
  });
  if (owner == members.end()) return std::nullopt;
  return static_cast<std::size_t>(owner - members.begin());
}

/// All members get what the owner has.
void Machine::give_from(std::size_t owner, const std::vector<int>& members, const Instruction& i,
                        std::vector<Content>& contents) {
  const Content given = contents[owner];
  for (std::size_t m = 0; m < members.size(); ++m) {
    contents[m] = given;
    if (m != owner || standing(members[m], i.axes[0]) > 1) {
      hand_over(i.axes[0], members[owner], members[m], contents[m]);
    }
  }
}

/// What a device of one class has, in the place of one of another class that differs along one
/// axis: the same content. If it is the device's own part along the axis, then of a device so many
/// places further on, which has a name if there is one device on either side.
/// Case: [a/dp] goes from dp=0 to dp=1 of 3: the part of the device 2 places further on.
void Machine::hand_over(int axis, int from, int to, Content& content) {
  if (!is_own_along(content, axis)) return;
  bool known = standing(from, axis) == 1 && standing(to, axis) == 1 &&
               !shifts_along(content, {axis}, kernels_.rows());
  if (known) {
    const auto place = [&](int c) {
      return coordinates_of(program_, program_.classes[at(c)], axis)[0];
    };
    const std::int64_t by = place(from) - place(to);
    known = shift_all(content.flat, axis, by, regions_);
    for (Tensor& t : content.pieces) known = shift_all(t, axis, by, regions_) && known;
  }
  if (!known) odd_content(content, "the part of one device is given to another");
}

/// Parts put side by side along a dim; false: they do not fit.
bool Machine::gather(int dim, const AxisList& axes, Content& content) {
  if (std::ranges::any_of(axes,
                          [&](int axis) { return is_partial(content, axis, kernels_.rows()); })) {
    odd_content(content, "parts of an incomplete sum are put side by side");
    return false;
  }
  if (dim != kFlat && !content.flat.empty()) {
    odd_content(content, "a part of a row of elements is put together along a dim");
    return false;
  }
  bool fits = true;
  const AxisList order = regions_.level_order(axes);
  if (dim == kFlat) {
    fits = regions_.gathered(content.flat, axes);
  } else {
    for (Tensor& t : content.pieces) {
      fits = fits && at(dim) < t.cuts.size() && regions_.gathered(t.cuts[at(dim)], order);
    }
  }
  if (!fits) odd_content(content, "what is put side by side are not neighbouring parts");
  // Each device's part of one dim would stand beside parts of others of another.
  const bool twice =
      fits && std::ranges::any_of(axes, [&](int axis) { return is_divided(content, axis); });
  if (twice) odd_content(content, "what is put side by side is divided twice along one axis");
  return fits && !twice;
}

// --- messages

/// A message carries the same part of the same value to another device: nothing in it may depend on
/// where along the axis it is.
void Machine::send(int c, const Instruction& i, const Arguments& a) {
  const int to = partner_of(c, i);
  if (to < 0) return;
  Message message{.contents = {}, .origin = here(c)};
  for (const BufferRef& ref : i.inputs) {
    Numbered value = read(c, ref, a);
    const int axis = i.axes[0];
    if (is_own_along(*value.content, axis)) {
      Content own = whole_of(value);
      hand_over(axis, c, to, own);
      value = interned(std::move(own), value.micro_batch);
    }
    message.contents.push_back(std::move(value));
  }
  messages_[{c, to}].push_back(std::move(message));
}

bool Machine::receive(int c, const Instruction& i, const Arguments& a) {
  const int from = partner_of(c, i);
  if (from < 0) return true;
  auto& queue = messages_[{from, c}];
  if (queue.empty()) return false;
  const Message message = std::move(queue.front());
  queue.pop_front();
  if (message.contents.size() != i.outputs.size()) {
    breach(c, "a message has another number of tensors than it is received into");
  }
  for (std::size_t b = 0; b < i.outputs.size() && b < message.contents.size(); ++b) {
    const BufferRef& sent = message.origin.instruction->inputs[b];
    const bool fits = are_as_large(buffer_of(c, i.outputs[b], a),
                                   buffer_of(from, sent, message.origin.arguments), i.axes);
    if (!fits) breach(c, "receives what another device sends of another size");
    write(c, i.outputs[b], a, message.contents[b]);
  }
  return true;
}

}  // namespace placet
