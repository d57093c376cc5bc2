#include "check/unrolled.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "program/sizes.h"
#include "units/at.h"

namespace placet::testing {
namespace {

class Rank {
 public:
  Rank(const Program& program, const ProgramCoordinates& where) : program_(program), at_(where) {}

  Unrolled count() {
    const DeviceClass& own = program_.classes[at(class_of(program_, at_))];
    for (const Initial& initial : own.initial) make(initial.buffer, {});
    out_.rest = device_;
    for_each_instruction(program_, own.body, {}, [&](const Instruction& i, const Arguments& a) {
      if (i.kind == InstructionKind::alloc) {
        for (const BufferRef& ref : i.outputs) make(ref, a);
      } else if (i.kind == InstructionKind::free) {
        for (const BufferRef& ref : i.inputs) end(ref, a);
      } else {
        send(i, a);
      }
    });
    out_.left = device_;
    return out_;
  }

 private:
  using Element = std::tuple<int, std::int64_t, std::int64_t>;

  Element element_of(const BufferRef& ref, const Arguments& a) const {
    return {ref.family, value_of(ref.unit, a), value_of(ref.micro_batch, a)};
  }

  std::int64_t size_of(const BufferRef& ref, const Arguments& a) {
    const Family& family = program_.families[at(ref.family)];
    ProgramCoordinates where = at_;
    if (family.by_micro_batch) where.back() = value_of(ref.micro_batch, a);
    BufferType type = family.type;
    if (ref.piece >= 0) {
      type = {.dtype = type.dtype, .pieces = {type.pieces[at(ref.piece)]}, .flat = {}};
    }
    return in_bytes(stored_bytes(program_, type, where));
  }

  void make(const BufferRef& ref, const Arguments& a) {
    const std::int64_t size = size_of(ref, a);
    const Family& family = program_.families[at(ref.family)];
    if (!alive_.emplace(element_of(ref, a), size).second) {
      out_.fault = "makes " + family.name + " twice";
    }
    (family.on_host ? host_ : device_) += size;
    out_.peak = std::max(out_.peak, device_);
    out_.host_peak = std::max(out_.host_peak, host_);
  }

  void end(const BufferRef& ref, const Arguments& a) {
    const Family& family = program_.families[at(ref.family)];
    const auto found = alive_.find(element_of(ref, a));
    if (found == alive_.end()) {
      out_.fault = "frees " + family.name + ", which is not alive";
      return;
    }
    (family.on_host ? host_ : device_) -= found->second;
    alive_.erase(found);
  }

  std::int64_t sum(const std::vector<BufferRef>& refs, const Arguments& a) {
    std::int64_t bytes = 0;
    for (const BufferRef& ref : refs) bytes += size_of(ref, a);
    return bytes;
  }

  /// What this rank sends itself, its own share being what it holds of the message.
  void send(const Instruction& i, const Arguments& a) {
    if (i.kind == InstructionKind::send) {
      out_.handed_on += sum(i.inputs, a);
    } else if (i.kind == InstructionKind::reduce_scatter) {
      out_.scattered += sum(i.inputs, a) - sum(i.outputs, a);
    } else if (i.kind == InstructionKind::all_gather) {
      out_.gathered += sum(i.outputs, a) - sum(i.inputs, a);
    }
  }

  const Program& program_;
  ProgramCoordinates at_;
  std::map<Element, std::int64_t> alive_;
  std::int64_t device_ = 0;
  std::int64_t host_ = 0;
  Unrolled out_;
};

}  // namespace

Unrolled unrolled(const Program& program, const ProgramCoordinates& where) {
  return Rank(program, where).count();
}

std::vector<ProgramCoordinates> all_ranks(const Program& program) {
  std::vector<ProgramCoordinates> ranks{ProgramCoordinates(program.axes.size(), 0)};
  for (std::size_t a = 0; a + 1 < program.axes.size(); ++a) {
    std::vector<ProgramCoordinates> more;
    for (const ProgramCoordinates& rank : ranks) {
      for (std::int64_t c = 0; c < program.axes[a].degree; ++c) {
        more.push_back(rank);
        more.back()[a] = c;
      }
    }
    ranks = std::move(more);
  }
  return ranks;
}

int class_of(const Program& program, const ProgramCoordinates& where) {
  for (std::size_t c = 0; c < program.classes.size(); ++c) {
    bool inside = true;
    const auto& box = program.classes[c].box;
    for (std::size_t a = 0; a < box.size(); ++a) {
      const bool here = box[a].empty() || std::ranges::find(box[a], where[a]) != box[a].end();
      inside = inside && here;
    }
    if (inside) return static_cast<int>(c);
  }
  return -1;
}

}  // namespace placet::testing
