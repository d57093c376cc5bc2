// Collectives and messages of the machine.
#include <algorithm>

#include "check/machine.h"
#include "units/error.h"

namespace placet {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// Whether some sum is still open along the axis.
bool is_partial(const Content& content, int axis) {
  for (const Tensor& t : content.pieces) {
    for (const Item& item : t.items) {
      for (const Share& s : item.shares) {
        for (const OpenSum& o : s.open) {
          if (is_divided(o.cuts, axis)) return true;
        }
      }
    }
  }
  return false;
}

/// Puts a share together along an axis: closes a sum that the axis divides, else counts it once
/// per device.
void close_share(Share& share, int axis, std::int64_t degree) {
  for (OpenSum& o : share.open) {
    for (Split& c : o.cuts) {
      if (c.axis != axis || !c.open) continue;
      c.open = false;
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

/// Adds entry by entry; false: these are different parts.
bool add_part(Content& sum, const Content& part) {
  bool fits = true;
  for (std::size_t p = 0; p < sum.pieces.size() && p < part.pieces.size(); ++p) {
    const Tensor& mine = part.pieces[p];
    if (sum.pieces[p].items.empty()) {
      sum.pieces[p] = mine;
    } else if (!mine.items.empty()) {
      fits = fits && sum.pieces[p].dims == mine.dims && sum.pieces[p].cuts == mine.cuts &&
             sum.flat == part.flat;
      add_to(sum.pieces[p], mine);
    }
  }
  return fits;
}

}  // namespace

bool Machine::splits(int c, int axis) const {
  const auto& box = program_.classes[at(c)].box;
  return at(axis) < box.size() && !box[at(axis)].empty() &&
         static_cast<std::int64_t>(box[at(axis)].size()) < regions_.degree(axis);
}

std::int64_t Machine::coordinates(int c, int axis, const Instruction& i) const {
  if (!splits(c, axis)) return regions_.degree(axis);
  const std::vector<std::int64_t>& mine = program_.classes[at(c)].box[at(axis)];
  if (i.among.empty()) return static_cast<std::int64_t>(mine.size());
  return std::ranges::count_if(
      mine, [&](std::int64_t x) { return std::ranges::find(i.among, x) != i.among.end(); });
}

/// Classes that take part in a collective of class `c`.
std::vector<int> Machine::members_of(int c, const Instruction& i) const {
  std::vector<int> members;
  for (int d = 0; d < static_cast<int>(program_.classes.size()); ++d) {
    bool joins = true;
    for (int axis = 0; axis < regions_.micro_axis(); ++axis) {
      const auto& a = program_.classes[at(c)].box[at(axis)];
      const auto& b = program_.classes[at(d)].box[at(axis)];
      const bool along = std::ranges::find(i.axes, axis) != i.axes.end();
      if (!along) {
        joins = joins && a == b;
      } else if (!i.among.empty()) {
        joins = joins && coordinates(d, axis, i) > 0;
      }
    }
    if (joins) members.push_back(d);
  }
  return members;
}

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
  runners_[at(c)].waits = true;
  if (!all_arrived(members, i)) return false;
  together(members, i);
  for (int m : members) {
    runners_[at(m)].waits = false;
    ++runners_[at(m)].next;
  }
  return true;
}

/// Whether all members stand at the same collective. One that stands at another one is a breach.
bool Machine::all_arrived(const std::vector<int>& members, const Instruction& i) {
  for (int m : members) {
    const Runner& runner = runners_[at(m)];
    if (!runner.waits || runner.next >= runner.list.size()) return false;
    const Instruction& other = *runner.list[runner.next].first;
    const bool same = other.kind == i.kind && other.axes == i.axes && other.op == i.op &&
                      other.dim == i.dim && other.into == i.into && other.among == i.among &&
                      other.inputs.size() == i.inputs.size();
    if (!same) return false;
  }
  return true;
}

void Machine::alone(int c, const Instruction& i, const Arguments& a) {
  for (std::size_t b = 0; b < i.inputs.size(); ++b) {
    write(c, i.outputs[b], a, worked_out(c, i, read(c, i.inputs[b], a)));
  }
}

/// A collective whose group lies in several classes: where all hold the same, it is the same for
/// all; a sum may also be of different values, one class at a time.
void Machine::together(const std::vector<int>& members, const Instruction& i) {
  for (std::size_t b = 0; b < i.inputs.size(); ++b) {
    std::vector<Content> contents;
    for (int m : members) {
      const auto& [instruction, arguments] = runners_[at(m)].list[runners_[at(m)].next];
      contents.push_back(whole_of(read(m, instruction->inputs[b], arguments)));
    }
    const bool alike = std::ranges::all_of(
        contents, [&](const Content& content) { return content == contents[0]; });
    if (alike && i.among.empty()) {
      for (std::size_t m = 0; m < members.size(); ++m) {
        contents[m] = collected(members[m], i, contents[m]);
      }
    } else {
      reduce_across(members, i, contents);
    }
    for (std::size_t m = 0; m < members.size(); ++m) {
      const auto& [instruction, arguments] =
          runners_[at(members[m])].list[runners_[at(members[m])].next];
      write(members[m], instruction->outputs[b], arguments, contents[m]);
    }
  }
}

/// Puts classes that differ along one axis only together, where all of them hold the same: what is
/// left stands for whole rows of devices along it. False: some differ, and nothing was done.
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
    std::int64_t devices = 0;
    for (std::size_t m : row) {
      devices += coordinates(members[m], axis, i);
      if (contents[m] != contents[row[0]]) return false;
    }
    if (devices != regions_.degree(axis)) return false;
    first.push_back(row[0]);
  }
  for (std::size_t m : first) close(members[m], contents[m], {axis}, i.op);
  left = std::move(first);
  return true;
}

/// A sum of what several classes hold, one class at a time.
void Machine::reduce_across(const std::vector<int>& members, const Instruction& i,
                            std::vector<Content>& contents) {
  if (i.kind != InstructionKind::all_reduce || i.op != Combine::sum) {
    for (std::size_t m = 0; m < members.size(); ++m) {
      odd_content(members[m], contents[m], "devices of one group hold different things");
    }
    return;
  }
  std::vector<std::size_t> left;
  for (std::size_t m = 0; m < members.size(); ++m) left.push_back(m);
  AxisList apart;
  for (int axis : i.axes) {
    if (!merge_along(axis, members, i, contents, left)) apart.push_back(axis);
  }
  std::optional<Content> sum;
  bool odd = false;
  for (std::size_t m : left) {
    std::int64_t times = 1;
    for (int axis : apart) {
      odd = odd || is_partial(contents[m], axis) || is_divided(contents[m], axis);
      times *= coordinates(members[m], axis, i);
    }
    for (Tensor& t : contents[m].pieces) {
      odd = odd || (left.size() > 1 && has_open_maximum(t));
      t = scaled(std::move(t), Rational(times));
    }
    if (!sum) {
      sum = contents[m];
    } else {
      odd = !add_part(*sum, contents[m]) || odd;
    }
  }
  for (Tensor& t : sum->pieces) settle(t, kernels_.micro_batches());
  if (odd) odd_content(members[0], *sum, "different parts are added by a collective");
  for (Content& content : contents) content = *sum;
}

void Machine::close(int c, Content& content, const AxisList& axes, Combine op) {
  for (int axis : axes) {
    if (regions_.degree(axis) == 1) continue;
    if (is_divided(content, axis)) {
      odd_content(c, content, "different parts are added by a collective");
      continue;
    }
    for (Tensor& t : content.pieces) {
      for (Item& item : t.items) {
        if (!item.complete() && item.combine != op) {
          odd_content(c, content, "a maximum and a sum are mixed");
          return;
        }
        close_item(item, axis, regions_.degree(axis), op);
      }
    }
  }
  for (Tensor& t : content.pieces) settle(t, kernels_.micro_batches());
}

/// What a collective makes of a value that all its devices hold in the same way.
Content Machine::collected(int c, const Instruction& i, Content content) {
  const bool reduces =
      i.kind == InstructionKind::all_reduce || i.kind == InstructionKind::reduce_scatter;
  if (reduces) close(c, content, i.axes, i.op);
  if (i.kind == InstructionKind::all_reduce) return content;
  if (i.kind == InstructionKind::broadcast) {
    for (int axis : i.axes) {
      if (is_divided(content, axis) || is_partial(content, axis)) {
        odd_content(c, content, "the part of one device is given to all");
      }
    }
    return content;
  }
  const bool gathers =
      i.kind == InstructionKind::all_gather || i.kind == InstructionKind::all_to_all;
  const int from = i.kind == InstructionKind::all_to_all ? i.into : i.dim;
  bool fits = true;
  if (gathers) {
    for (int axis : i.axes) fits = fits && !is_partial(content, axis);
    if (!fits) {
      odd_content(c, content, "parts of an incomplete sum are put side by side");
      return content;
    }
    if (from == kFlat) {
      fits = regions_.gathered(content.flat, i.axes);
    } else {
      for (Tensor& t : content.pieces) {
        fits = fits && at(from) < t.cuts.size() && regions_.gathered(t.cuts[at(from)], i.axes);
      }
    }
    if (!fits) {
      odd_content(c, content, "what is put side by side are not neighbouring parts");
      return content;
    }
  }
  if (i.kind == InstructionKind::reduce_scatter || i.kind == InstructionKind::all_to_all) {
    if (i.dim == kFlat) {
      content.flat = regions_.divided(content.flat, elements_of(content), i.axes, 0);
    } else {
      for (Tensor& t : content.pieces) {
        if (at(i.dim) >= t.dims.size()) continue;
        const std::int64_t extent = program_.dims[at(t.dims[at(i.dim)])].extent;
        t.cuts[at(i.dim)] = regions_.divided(t.cuts[at(i.dim)], extent, i.axes, 0);
      }
    }
  }
  return content;
}

// --- messages

/// The coordinate that all devices of a class have on an axis; none: they differ.
std::optional<std::int64_t> Machine::place_of(int c, int axis) const {
  const auto& box = program_.classes[at(c)].box;
  if (regions_.degree(axis) == 1) return 0;
  if (at(axis) >= box.size() || box[at(axis)].size() != 1) return std::nullopt;
  return box[at(axis)][0];
}

/// The class of the device at another coordinate of one axis.
int Machine::class_at(int c, int axis, std::int64_t coordinate) const {
  for (int d = 0; d < static_cast<int>(program_.classes.size()); ++d) {
    bool same = true;
    for (int x = 0; x < regions_.micro_axis(); ++x) {
      const auto& a = program_.classes[at(c)].box[at(x)];
      const auto& b = program_.classes[at(d)].box[at(x)];
      if (x != axis) {
        same = same && a == b;
      } else {
        same = same && (b.empty() || std::ranges::find(b, coordinate) != b.end());
      }
    }
    if (same) return d;
  }
  return -1;
}

/// The class that a message goes to or comes from; -1: there is none, or several devices stand at
/// an end.
int Machine::partner_of(int c, const Instruction& i) {
  const int axis = i.axes.at(0);
  const int other = class_at(c, axis, i.peer);
  if (other < 0) {
    breach(c, "has nobody at the other end");
  } else if (!place_of(c, axis) || !place_of(other, axis)) {
    breach(c, "is a message between groups of devices: one device at either end is required");
    return -1;
  }
  return other;
}

/// A message carries the same part of the same value to another device: nothing in it may depend on
/// where along the axis it is.
void Machine::send(int c, const Instruction& i, const Arguments& a) {
  const int to = partner_of(c, i);
  if (to < 0) return;
  Message message{.contents = {}, .origin = here(c)};
  for (const BufferRef& ref : i.inputs) {
    Numbered value = read(c, ref, a);
    const int axis = i.axes[0];
    if (is_divided(*value.content, axis) || is_partial(*value.content, axis)) {
      Content own = whole_of(value);
      odd_content(c, own, "the part of one device is given to another");
      value = numbered(std::move(own), value.micro_batch);
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
    write(c, i.outputs[b], a, message.contents[b]);
  }
  return true;
}

}  // namespace placet
