#include "execute/traffic.h"

#include <algorithm>

#include "units/at.h"

namespace placet::execute {
namespace {

constexpr std::int64_t kBitsOfByte = 8;

std::int64_t bytes_in(std::int64_t bits) { return (bits + kBitsOfByte - 1) / kBitsOfByte; }

/// As the derivation calls it; empty: nothing is sent.
std::string collective_of(InstructionKind kind) {
  if (kind == InstructionKind::permute || kind == InstructionKind::send) return "send_recv";
  const bool moves = is_collective(kind) && kind != InstructionKind::receive;
  return moves ? std::string(name_of(kind)) : "";
}

/// One rank's buffers on their way through a step.
class Arena {
 public:
  Arena(const Program& program, const ranks::Listing& listing, const ProgramCoordinates& place)
      : program_(program),
        listing_(listing),
        at_(place),
        alive_(listing.slots.size(), false),
        is_sample_(program.families.size(), false) {
    for (const DeviceClass& c : program.classes) {
      for (const Initial& initial : c.initial) {
        const bool sample = initial.pieces.front().kind == StateRef::Kind::input;
        if (sample) is_sample_[at(initial.buffer.family)] = true;
      }
    }
    for (const ranks::ListedRef& ref : listing.initial) begin(ref);
    held_.rest = now_;
    held_.peak = now_;
    held_.host = host_;
    held_.at = "the beginning of the step";
  }

  HeldBytes run() {
    for (const ranks::ListedInstruction& one : listing_.instructions) {
      if (one.what->kind == InstructionKind::alloc) for_each(one, &Arena::begin);
      if (now_ > held_.peak) {
        held_.peak = now_;
        held_.at = ranks::describe(*one.what) + " in " + std::string(name_of(one.what->phase));
      }
      held_.host = std::max(held_.host, host_);
      held_.samples = std::max(held_.samples, samples_);
      if (one.what->kind == InstructionKind::free) for_each(one, &Arena::end);
    }
    return held_;
  }

 private:
  void for_each(const ranks::ListedInstruction& one, void (Arena::*act)(const ranks::ListedRef&)) {
    for (const ranks::ListedRef& ref : one.inputs) (this->*act)(ref);
    for (const ranks::ListedRef& ref : one.outputs) (this->*act)(ref);
  }

  std::int64_t bytes_of(const ranks::ListedRef& ref) const {
    const ranks::Form& form = listing_.forms[at(ref.form)];
    ProgramCoordinates coordinates = at_;
    coordinates.back() = form.micro_batch;
    const BufferType& type = program_.families[at(form.family)].type;
    return bytes_in(ranks::shape_of(program_, type, coordinates).flat.size * bits_of(type.dtype));
  }

  /// Samples and single numbers (counts of tokens, losses, norms) are counted apart.
  std::int64_t& side_of(const ranks::ListedRef& ref) {
    const int number = listing_.slots[at(ref.slot)].family;
    const Family& family = program_.families[at(number)];
    const bool single = std::ranges::all_of(
        family.type.pieces, [](const PieceType& piece) { return piece.dims.empty(); });
    if (single || is_sample_[at(number)]) return samples_;
    return family.on_host ? host_ : now_;
  }

  void begin(const ranks::ListedRef& ref) {
    if (alive_[at(ref.slot)]) return;
    alive_[at(ref.slot)] = true;
    side_of(ref) += bytes_of(ref);
  }
  void end(const ranks::ListedRef& ref) {
    if (!alive_[at(ref.slot)]) return;
    alive_[at(ref.slot)] = false;
    side_of(ref) -= bytes_of(ref);
  }

  const Program& program_;
  const ranks::Listing& listing_;
  ProgramCoordinates at_;
  std::vector<bool> alive_;      // by slot
  std::vector<bool> is_sample_;  // by family
  std::int64_t now_ = 0;
  std::int64_t host_ = 0;
  std::int64_t samples_ = 0;
  HeldBytes held_;
};

}  // namespace

std::vector<Dtype> formats_of(const Program& program, const ranks::ProgramPlan& plan) {
  std::vector<Dtype> formats(at(plan.list.memory), Dtype::fp32);
  for (const ranks::BufferPlace& buffer : plan.buffers) {
    std::fill_n(formats.begin() + buffer.address, buffer.elements,
                program.families[at(buffer.family)].type.dtype);
  }
  for (const Transfer& transfer : plan.list.transfers) {
    if (transfer.source_count != 1 || transfer.target_count != 1) continue;
    const std::int64_t from = plan.list.addresses[transfer.sources];
    const std::int64_t to = plan.list.addresses[transfer.targets];
    const bool is_message =
        plan.buffers.empty() || to >= plan.buffers.back().address + plan.buffers.back().elements;
    if (is_message) std::fill_n(formats.begin() + to, transfer.length, formats[at(from)]);
  }
  return formats;
}

Communicator::Communicator(const Program& program, const ranks::ProgramPlan& plan,
                           const std::vector<Dtype>& formats)
    : program_(program), plan_(plan), formats_(formats) {
  ends_.resize(plan.classes.size(), 0);
  for (const ranks::BufferPlace& buffer : plan.buffers) {
    ends_[at(buffer.rank)] = buffer.address + buffer.elements;
  }
}

/// The rank whose buffers an address is in; -1: none, a message on the way.
int Communicator::rank_at(std::int64_t address) const {
  const auto found = std::ranges::upper_bound(ends_, address);
  return found == ends_.end() ? -1 : static_cast<int>(found - ends_.begin());
}

std::int64_t Communicator::bits_at(std::int64_t address) const {
  return bits_of(formats_[at(address)]);
}

void Communicator::add_transfer(const OperationList& list, const Transfer& transfer,
                                InstructionKind kind, std::map<int, OfRank>& of) {
  const auto source = [&](std::size_t s) { return list.addresses[transfer.sources + s]; };
  const auto target = [&](std::size_t t) { return list.addresses[transfer.targets + t]; };
  if (kind == InstructionKind::all_reduce) {
    for (std::size_t s = 0; s < transfer.source_count; ++s) {
      of[rank_at(source(s))].bits += transfer.length * bits_at(source(s));
    }
    return;
  }
  for (std::size_t s = 0; s < transfer.source_count; ++s) {
    const int from = rank_at(source(s));
    std::int64_t others = 0;
    for (std::size_t t = 0; t < transfer.target_count; ++t) {
      if (rank_at(target(t)) != from) ++others;
    }
    if (kind == InstructionKind::broadcast) others = std::min<std::int64_t>(others, 1);
    of[from].bits += others * transfer.length * bits_at(source(s));
  }
}

void Communicator::moves(const OperationList& list, const Operation& op) {
  if (op.rank < 0 || op.instruction < 0) return;
  const ranks::Listing& listing = *plan_.listings[at(plan_.classes[at(op.rank)])];
  const Instruction& what = *listing.instructions[at(op.instruction)].what;
  Key key{.collective = collective_of(what.kind), .axes = what.axes};
  if (key.collective.empty()) return;
  std::ranges::sort(key.axes);
  std::map<int, OfRank> of;
  for (std::size_t t = op.first; t < op.first + op.count; ++t) {
    add_transfer(list, list.transfers[t], what.kind, of);
  }
  const auto members = static_cast<std::int64_t>(of.size());
  for (const auto& [rank, one] : of) {
    OfRank& all = sent_[key][rank];
    ++all.calls;
    // Of a sum for all: twice all but the smallest part of the row.
    const bool for_all = what.kind == InstructionKind::all_reduce;
    const std::int64_t element = bits_at(list.addresses[list.transfers[op.first].sources]);
    all.bits += for_all ? 2 * (one.bits - one.bits / element / members * element) : one.bits;
  }
}

int Communicator::busiest() const {
  std::map<int, std::int64_t> bits;
  for (const auto& [key, of] : sent_) {
    for (const auto& [rank, one] : of) bits[rank] += one.bits;
  }
  const auto more = [](const auto& a, const auto& b) { return a.second < b.second; };
  return bits.empty() ? 0 : std::ranges::max_element(bits, more)->first;
}

std::vector<SentBytes> Communicator::sent() const {
  std::vector<SentBytes> all;
  const int rank = busiest();
  for (const auto& [key, of] : sent_) {
    const auto found = of.find(rank);
    if (found == of.end()) continue;
    SentBytes out{.collective = key.collective,
                  .calls = found->second.calls,
                  .bytes = bytes_in(found->second.bits)};
    for (int axis : key.axes) out.axes.push_back(program_.axes[at(axis)].name);
    all.push_back(std::move(out));
  }
  return all;
}

HeldBytes held_bytes(const Program& program, const ranks::ProgramPlan& plan,
                     const ranks::Mesh& mesh) {
  HeldBytes most;
  for (int r = 0; r < mesh.ranks(); ++r) {
    const ranks::Listing& listing = *plan.listings[at(plan.classes[at(r)])];
    HeldBytes one = Arena(program, listing, mesh.at(r)).run();
    one.rank = r;
    if (r == 0 || one.peak > most.peak) most = one;
  }
  return most;
}

}  // namespace placet::execute
