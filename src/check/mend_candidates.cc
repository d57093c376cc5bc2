#include "check/mend_candidates.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "program/instruction_form.h"
#include "program/text.h"
#include "units/at.h"

namespace placet {
namespace {

/// Axes of a mesh that groups are made of; more make too many groups to try.
constexpr std::size_t kMostGroupAxes = 4;
/// How far an instruction is moved.
constexpr std::size_t kFarthestMove = 16;
/// Movements between a sum and what reads it.
constexpr int kMostHops = 3;
/// Steps in which two bodies that one move tells apart differ.
constexpr std::size_t kLongestShift = 24;

const Instruction* instruction_of(const Step& step) { return std::get_if<Instruction>(&step.what); }

bool shares_buffer(const Instruction& a, const Instruction& b) {
  const auto any_of_b = [&](const BufferRef& r) {
    return names_buffer(b.inputs, r) || names_buffer(b.outputs, r);
  };
  return std::ranges::any_of(a.inputs, any_of_b) || std::ranges::any_of(a.outputs, any_of_b);
}

/// Whether it puts numbers into its outputs.
bool writes(const Instruction& i) {
  return i.kind != InstructionKind::alloc && i.kind != InstructionKind::free && !i.outputs.empty();
}

/// An instruction on the same queue with nothing else said.
Instruction beside(const Instruction& i, InstructionKind kind) {
  Instruction out;
  out.kind = kind;
  out.stream = i.stream;
  out.phase = i.phase;
  out.step = i.step;
  return out;
}

class Candidates {
 public:
  Candidates(const Program& program, int multiple) : program_(program), multiple_(multiple) {
    for (int p = 0; p < static_cast<int>(program.procedures.size()); ++p) {
      add_places({.body = p, .loops = {}, .at = 0}, program.procedures[at(p)].body);
    }
    const int procedures = static_cast<int>(program.procedures.size());
    for (int c = 0; c < static_cast<int>(program.classes.size()); ++c) {
      add_places({.body = procedures + c, .loops = {}, .at = 0}, program.classes[at(c)].body);
    }
    for (std::size_t a = 0; a + 1 < program.axes.size(); ++a) {
      if (program.axes[a].degree > 1) axes_.push_back(static_cast<int>(a));
    }
    if (axes_.size() > kMostGroupAxes) axes_.resize(kMostGroupAxes);
  }

  std::vector<MendCandidate> take(const std::vector<Suspect>& suspects) {
    compare_bodies();
    // First what the findings say, of all suspects, then what might be.
    sum_up(suspects);
    for (const Suspect& s : suspects) restore(s);
    keep_sums(suspects);
    for (const Suspect& s : suspects) vary(*s.instruction);
    for (const Suspect& s : suspects) reorder(*s.instruction);
    return std::move(out_);
  }

 private:
  struct Listed {
    MendPlace place;
    const std::vector<Step>* steps = nullptr;
  };

  void add_places(const MendPlace& around, const std::vector<Step>& steps) {
    lists_.push_back({around, &steps});
    for (std::size_t k = 0; k < steps.size(); ++k) {
      MendPlace place = around;
      place.at = k;
      if (const Instruction* i = instruction_of(steps[k])) {
        places_[i] = {place, &steps};
        all_.push_back(i);
        note_use(*i);
      } else if (const auto* loop = std::get_if<Loop>(&steps[k].what)) {
        place.loops.push_back(k);
        add_places(place, loop->body);
      }
    }
  }

  void note_use(const Instruction& i) {
    if (i.kind != InstructionKind::free) {
      for (const BufferRef& ref : i.inputs) read_.insert(ref.family);
    }
  }

  std::string quoted(const Instruction& i) const { return "'" + to_text(program_, i) + "'"; }

  void add(const MendPlace& place, std::vector<Splice> splices, std::string change) {
    std::string key = std::to_string(place.body);
    for (std::size_t loop : place.loops) key += "." + std::to_string(loop);
    for (const Splice& s : splices) key += " " + std::to_string(s.at);
    if (!known_.insert(key + change).second) return;
    out_.push_back({place, std::move(splices), std::move(change)});
  }

  // --- the four changes

  void put_before(const Instruction& i, const Instruction& what) {
    const MendPlace& place = places_.at(&i).place;
    add(place, {{.at = place.at, .removes = false, .puts = {{what}}}},
        "put " + quoted(what) + " before " + quoted(i));
  }

  void put_behind(const Instruction& i, const Instruction& what) {
    const MendPlace& place = places_.at(&i).place;
    add(place, {{.at = place.at + 1, .removes = false, .puts = {{what}}}},
        "put " + quoted(what) + " behind " + quoted(i));
  }

  void replace(const Instruction& i, const Instruction& what) {
    if (what == i) return;
    const MendPlace& place = places_.at(&i).place;
    add(place, {{.at = place.at, .removes = true, .puts = {{what}}}},
        "put " + quoted(what) + " in the place of " + quoted(i));
  }

  void remove(const Instruction& i) {
    const MendPlace& place = places_.at(&i).place;
    add(place, {{.at = place.at, .removes = true, .puts = {}}}, "leave out " + quoted(i));
  }

  /// Before the step that is at `to` now.
  void move(const Instruction& i, std::size_t to) {
    const auto& [place, steps] = places_.at(&i);
    if (to == place.at || to == place.at + 1 || to > steps->size()) return;
    std::vector<Splice> splices = {{.at = place.at, .removes = true, .puts = {}},
                                   {.at = to, .removes = false, .puts = {{i}}}};
    if (to < place.at) std::swap(splices[0], splices[1]);
    const bool last = to == steps->size();
    const Instruction* next = last ? nullptr : instruction_of((*steps)[to]);
    add(place, std::move(splices),
        "move " + quoted(i) +
            (next != nullptr ? " before " + quoted(*next) : " to step " + std::to_string(to + 1)));
  }

  // --- bodies that are alike but for one step

  void compare_bodies() {
    for (const Listed& mine : lists_) {
      for (const Listed& other : lists_) {
        if (&mine != &other) compare(mine, other);
      }
    }
  }

  void compare(const Listed& mine, const Listed& other) {
    const std::vector<Step>& a = *mine.steps;
    const std::vector<Step>& b = *other.steps;
    if (a.size() > b.size() + 1 || b.size() > a.size() + 1) return;
    const auto [x, y] = std::ranges::mismatch(a, b);
    const auto front = static_cast<std::size_t>(x - a.begin());
    std::size_t back = 0;
    while (back < std::min(a.size(), b.size()) - front &&
           a[a.size() - 1 - back] == b[b.size() - 1 - back]) {
      ++back;
    }
    const std::size_t left = a.size() - back - front;
    const std::size_t right = b.size() - back - front;
    if (left + right == 0) return;
    if (left <= 1 && right <= 1) return become(mine, front, left, b, right);
    if (left == right && left <= kLongestShift) shift(mine, front, left, b);
  }

  /// The step that the other body has in this place.
  void become(const Listed& mine, std::size_t front, std::size_t left, const std::vector<Step>& b,
              std::size_t right) {
    MendPlace place = mine.place;
    place.at = front;
    const Instruction* now = left == 0 ? nullptr : instruction_of((*mine.steps)[front]);
    const Instruction* then = right == 0 ? nullptr : instruction_of(b[front]);
    if ((left > 0 && now == nullptr) || (right > 0 && then == nullptr)) return;
    if (now != nullptr && then != nullptr) return replace(*now, *then);
    if (now != nullptr) return remove(*now);
    const Instruction* next =
        front < mine.steps->size() ? instruction_of((*mine.steps)[front]) : nullptr;
    if (next != nullptr) return put_before(*next, *then);
    add(place, {{.at = front, .removes = false, .puts = {{*then}}}},
        "put " + quoted(*then) + " as step " + std::to_string(front + 1));
  }

  /// The first or the last step of what differs moved to the other end, if that is all.
  void shift(const Listed& mine, std::size_t front, std::size_t length,
             const std::vector<Step>& b) {
    const auto a_first = mine.steps->begin() + static_cast<std::ptrdiff_t>(front);
    const auto b_first = b.begin() + static_cast<std::ptrdiff_t>(front);
    const auto n = static_cast<std::ptrdiff_t>(length);
    const bool down = *a_first == b_first[n - 1] && std::equal(a_first + 1, a_first + n, b_first);
    const bool up = a_first[n - 1] == *b_first && std::equal(a_first, a_first + n - 1, b_first + 1);
    const Instruction* first = instruction_of(*a_first);
    const Instruction* last = instruction_of(a_first[n - 1]);
    if (down && first != nullptr) move(*first, front + length);
    if (up && last != nullptr) move(*last, front);
  }

  // --- what the finding says

  void restore(const Suspect& s) {
    const Instruction& i = *s.instruction;
    // A group of another size is another factor.
    if (s.scale && form_of(i.kind).axes) regroup(i);
    if (s.scale) rescale(i, Rational(1) / *s.scale);
    supply(i);
    like_others(i);
  }

  void rescale(const Instruction& i, const Rational& by) {
    if (i.kind == InstructionKind::scale) {
      Instruction what = i;
      what.factor = what.factor * by;
      what.because.clear();
      if (what.factor == Rational(1) && i.inputs == i.outputs) {
        remove(i);
      } else {
        replace(i, what);
      }
      return;
    }
    if (!writes(i)) return;
    for (const BufferRef& ref : i.outputs) {
      Instruction what = beside(i, InstructionKind::scale);
      what.inputs = what.outputs = {ref};
      what.kernel = multiple_;
      what.factor = by;
      put_behind(i, what);
    }
  }

  // --- sums of which parts are missing

  /// What the suspects read, summed over the axes that are missing: all at once, as one bucket is,
  /// then one by one.
  void sum_up(const std::vector<Suspect>& suspects) {
    std::vector<AxisList> tried;
    for (const Suspect& s : suspects) {
      if (s.missing.empty() || std::ranges::find(tried, s.missing) != tried.end()) continue;
      tried.push_back(s.missing);
      std::vector<const Instruction*> readers;
      for (const Suspect& other : suspects) {
        if (other.missing == s.missing) readers.push_back(other.instruction);
      }
      sum_up(readers, s.missing);
    }
  }

  void sum_up(const std::vector<const Instruction*>& readers, const AxisList& axes) {
    const Instruction& first = *readers.front();
    for (std::size_t k = 0; k < first.inputs.size(); ++k) {
      std::vector<BufferRef> all;
      for (const Instruction* reader : readers) {
        const bool alike = reader->kernel == first.kernel && k < reader->inputs.size() &&
                           places_.at(reader).steps == places_.at(&first).steps;
        if (alike && !names_buffer(all, reader->inputs[k])) all.push_back(reader->inputs[k]);
      }
      if (all.size() > 1) reduce_behind_writers(first, all, axes);
    }
    for (const Instruction* reader : readers) {
      for (const BufferRef& ref : reader->inputs) {
        // What it changes as well is a state rather than a sum.
        if (names_buffer(reader->outputs, ref)) continue;
        reduce_behind_writers(*reader, {ref}, axes);
      }
      if (!writes(*reader)) continue;
      for (const BufferRef& ref : reader->outputs) {
        put_behind(*reader, reduction(*reader, {ref}, axes));
      }
    }
  }

  Instruction reduction(const Instruction& near, const std::vector<BufferRef>& buffers,
                        const AxisList& axes) const {
    Instruction what = beside(near, InstructionKind::all_reduce);
    what.axes = axes;
    what.inputs = what.outputs = buffers;
    return what;
  }

  /// Behind the last instruction before the reader that writes one of the buffers, which others may
  /// read in between; without one, before the reader.
  void reduce_behind_writers(const Instruction& reader, const std::vector<BufferRef>& buffers,
                             const AxisList& axes) {
    const Instruction what = reduction(reader, buffers, axes);
    const auto& [place, steps] = places_.at(&reader);
    for (std::size_t k = place.at; k-- > 0;) {
      const Instruction* writer = instruction_of((*steps)[k]);
      if (writer == nullptr || !writes(*writer)) continue;
      const bool makes = std::ranges::any_of(
          buffers, [&](const BufferRef& ref) { return names_buffer(writer->outputs, ref); });
      if (makes) return put_in_order(*writer, what);
    }
    put_before(reader, what);
  }

  /// Behind the writer and the wait for it, if the queue of the new instruction waits.
  void put_in_order(const Instruction& writer, const Instruction& what) {
    const auto& [place, steps] = places_.at(&writer);
    if (writer.stream == what.stream) return put_behind(writer, what);
    int event = -1;
    for (std::size_t k = place.at + 1; k < steps->size(); ++k) {
      const Instruction* step = instruction_of((*steps)[k]);
      if (step == nullptr) continue;
      const bool records = step->kind == InstructionKind::record && step->stream == writer.stream;
      if (records && event < 0) event = step->event;
      const bool waits = step->kind == InstructionKind::wait && step->event == event;
      if (event >= 0 && waits && step->stream == what.stream) return put_behind(*step, what);
    }
    Instruction same = what;
    same.stream = writer.stream;
    put_behind(writer, same);
  }

  /// Clears of what the suspects read, or of what flows into it, that come too often.
  void keep_sums(const std::vector<Suspect>& suspects) {
    std::set<int> families;
    for (const Suspect& s : suspects) {
      for (const BufferRef& ref : s.instruction->inputs) families.insert(ref.family);
    }
    for (int hop = 0; hop < kMostHops; ++hop) {
      for (const Instruction* i : all_) {
        const bool flows = !calls_kernel(i->kind) && writes(*i) &&
                           std::ranges::any_of(i->outputs, [&](const BufferRef& ref) {
                             return families.contains(ref.family);
                           });
        if (!flows) continue;
        for (const BufferRef& ref : i->inputs) families.insert(ref.family);
      }
    }
    for (const Instruction* i : all_) {
      const bool clears = i->kind == InstructionKind::zero &&
                          families.contains(i->outputs[0].family) && comes_late(*i);
      if (clears) remove(*i);
    }
  }

  /// Whether what it clears may have been written before: in a procedure always.
  bool comes_late(const Instruction& zero) const {
    const auto& [place, steps] = places_.at(&zero);
    if (at(place.body) < program_.procedures.size() || !place.loops.empty()) return true;
    for (std::size_t k = 0; k < place.at; ++k) {
      const Instruction* other = instruction_of((*steps)[k]);
      const bool makes = other != nullptr && other->kind != InstructionKind::zero &&
                         writes(*other) && names_buffer(other->outputs, zero.outputs[0]);
      if (makes) return true;
    }
    return false;
  }

  /// Fields as another instruction has them that does the same to the same buffers, or elsewhere.
  void like_others(const Instruction& i) {
    for (const Instruction* other : all_) {
      const bool same = other->kind == i.kind && other->kernel == i.kernel &&
                        other->inputs.size() == i.inputs.size() &&
                        other->outputs.size() == i.outputs.size();
      if (!same || other == &i || other->outputs != i.outputs) continue;
      Instruction what = *other;
      what.inputs = i.inputs;
      what.stream = i.stream;
      what.label = i.label;
      what.line = i.line;
      replace(i, what);
    }
  }

  /// What it reads that nothing before it writes: moved there from what is written and never read.
  void supply(const Instruction& i) {
    const auto& [place, steps] = places_.at(&i);
    for (std::size_t k = place.at; k-- > 0;) {
      const Instruction* source = instruction_of((*steps)[k]);
      if (source == nullptr || !writes(*source)) continue;
      for (const BufferRef& from : source->outputs) {
        if (read_.contains(from.family)) continue;
        for (const BufferRef& to : i.inputs) bring(i, from, to);
        add_up(*source, from);
      }
    }
  }

  /// One instruction that makes `to` from `from`, as their types say.
  void bring(const Instruction& i, const BufferRef& from, const BufferRef& to) {
    const BufferType& mine = program_.families[at(from.family)].type;
    const BufferType& theirs = program_.families[at(to.family)].type;
    Instruction what = beside(i, InstructionKind::copy);
    what.inputs = {from};
    what.outputs = {to};
    if (mine.pieces == theirs.pieces && mine.flat == theirs.flat) return put_before(i, what);
    if (mine.pieces == theirs.pieces) {
      return bring_along(i, what, one_by_one(mine.flat), one_by_one(theirs.flat), kFlat);
    }
    if (mine.pieces.size() != 1 || theirs.pieces.size() != 1) return;
    const std::vector<DividedDim>& a = mine.pieces[0].dims;
    const std::vector<DividedDim>& b = theirs.pieces[0].dims;
    if (a.size() != b.size()) return;
    for (std::size_t d = 0; d < a.size(); ++d) {
      if (a[d].dim != b[d].dim) return;
      if (a[d].by != b[d].by) bring_along(i, what, a[d].by, b[d].by, static_cast<int>(d));
    }
  }

  void bring_along(const Instruction& i, Instruction what, const Division& from, const Division& to,
                   int dim) {
    const bool gathers = from.size() > to.size();
    const Division& longer = gathers ? from : to;
    const Division& shorter = gathers ? to : from;
    if (!std::ranges::equal(
            shorter, Division(longer.begin(),
                              longer.begin() + static_cast<std::ptrdiff_t>(shorter.size())))) {
      return;
    }
    for (std::size_t level = shorter.size(); level < longer.size(); ++level) {
      what.axes.insert(what.axes.end(), longer[level].begin(), longer[level].end());
    }
    what.dim = dim;
    if (gathers) {
      what.kind = InstructionKind::all_gather;
      return put_before(i, what);
    }
    what.kind = InstructionKind::reduce_scatter;
    put_before(i, what);
    what.kind = InstructionKind::slice;
    put_before(i, what);
  }

  /// A sum that lacks what is never read: each sum of the program with that type.
  void add_up(const Instruction& source, const BufferRef& from) {
    std::set<int> tried;
    for (const Instruction* other : all_) {
      if (other->kind != InstructionKind::accumulate) continue;
      const BufferRef& sum = other->outputs[0];
      const bool fits = program_.families[at(sum.family)].type.pieces ==
                        program_.families[at(from.family)].type.pieces;
      if (!fits || !tried.insert(sum.family).second) continue;
      Instruction what = *other;
      what.inputs = {from};
      put_behind(source, what);
    }
  }

  // --- what might be

  void vary(const Instruction& i) {
    remove(i);
    if (i.kind == InstructionKind::accumulate || is_collective(i.kind)) clear(i);
    if (form_of(i.kind).axes) regroup(i);
    if (form_of(i.kind).op) combine(i);
    if (i.shift != 0) {
      Instruction what = i;
      what.shift = 0;
      replace(i, what);
    }
    rekey(i);
    await(i);
  }

  void clear(const Instruction& i) {
    for (const BufferRef& ref : i.outputs) {
      Instruction zero = beside(i, InstructionKind::zero);
      zero.outputs = {ref};
      put_before(i, zero);
    }
  }

  void regroup(const Instruction& i) {
    for (std::size_t set = 1; set < std::size_t{1} << axes_.size(); ++set) {
      Instruction what = i;
      what.axes.clear();
      for (std::size_t a = 0; a < axes_.size(); ++a) {
        if ((set >> a & 1U) != 0) what.axes.push_back(axes_[a]);
      }
      if (form_of(i.kind).one_axis && what.axes.size() > 1) continue;
      if (what.axes != i.axes) what.among.clear();
      replace(i, what);
    }
  }

  void combine(const Instruction& i) {
    Instruction what = i;
    what.op = i.op == Combine::sum ? Combine::max : Combine::sum;
    replace(i, what);
  }

  /// Random numbers drawn for what the others that draw are drawn for.
  void rekey(const Instruction& i) {
    if (i.key.name.empty()) return;
    for (const Instruction* other : all_) {
      if (other->key.name.empty() || other->key == i.key) continue;
      Instruction what = i;
      what.key = other->key;
      replace(i, what);
    }
  }

  /// Waits for what is recorded before it.
  void await(const Instruction& i) {
    const auto& [place, steps] = places_.at(&i);
    for (std::size_t k = place.at; k-- > 0;) {
      const Instruction* other = instruction_of((*steps)[k]);
      if (other == nullptr) continue;
      if (other->kind != InstructionKind::record || other->stream == i.stream) continue;
      Instruction what = beside(i, InstructionKind::wait);
      what.event = other->event;
      return put_before(i, what);
    }
  }

  // --- order

  /// Before and behind the nearest steps that use one of its buffers.
  void reorder(const Instruction& i) {
    const auto& [place, steps] = places_.at(&i);
    const std::size_t first = place.at < kFarthestMove ? 0 : place.at - kFarthestMove;
    const std::size_t last = std::min(steps->size(), place.at + kFarthestMove + 1);
    for (std::size_t k = first; k < last; ++k) {
      const Instruction* other = instruction_of((*steps)[k]);
      if (other == nullptr || k == place.at || !shares_buffer(i, *other)) continue;
      move(i, k);
      move(i, k + 1);
      move(*other, k < place.at ? place.at + 1 : place.at);
    }
  }

  const Program& program_;
  int multiple_ = 0;
  std::vector<Listed> lists_;
  std::map<const Instruction*, Listed> places_;
  std::vector<const Instruction*> all_;
  std::set<int> read_;  // families
  AxisList axes_;
  std::set<std::string> known_;
  std::vector<MendCandidate> out_;
};

}  // namespace

std::vector<MendCandidate> mend_candidates(const Program& program,
                                           const std::vector<Suspect>& suspects, int multiple) {
  return Candidates(program, multiple).take(suspects);
}

const std::vector<Step>& body_of(const Program& program, int body) {
  const std::size_t procedures = program.procedures.size();
  return at(body) < procedures ? program.procedures[at(body)].body
                               : program.classes[at(body) - procedures].body;
}

std::vector<Step>& steps_at(Program& program, const MendPlace& place) {
  const std::size_t procedures = program.procedures.size();
  const std::size_t body = at(place.body);
  std::vector<Step>* steps =
      body < procedures ? &program.procedures[body].body : &program.classes[body - procedures].body;
  for (const std::size_t loop : place.loops) steps = &std::get<Loop>((*steps)[loop].what).body;
  return *steps;
}

std::string body_name(const Program& program, const MendPlace& place) {
  const std::size_t procedures = program.procedures.size();
  const std::size_t body = at(place.body);
  if (body < procedures) return "procedure " + program.procedures[body].name;
  return "class " + program.classes[body - procedures].name;
}

}  // namespace placet
