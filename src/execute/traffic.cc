#include "execute/traffic.h"

#include <algorithm>
#include <set>

#include "execute/ledger.h"
#include "units/at.h"

namespace placet::execute {
namespace {

constexpr std::int64_t kBitsInByte = 8;

std::int64_t bytes_in(std::int64_t bits) { return (bits + kBitsInByte - 1) / kBitsInByte; }

/// One rank's buffers on their way through a step.
class Arena {
 public:
  Arena(const Program& program, const ranks::Listing& listing, const ProgramCoordinates& place,
        BufferWatcher* watcher)
      : program_(program),
        listing_(listing),
        at_(place),
        watcher_(watcher),
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
    if (watcher_ != nullptr) watcher_->rests();
  }

  HeldBytes run() {
    for (const ranks::ListedInstruction& one : listing_.instructions) {
      if (one.what->kind == InstructionKind::alloc) for_each(one, &Arena::begin);
      if (now_ > held_.peak) {
        held_.peak = now_;
        held_.at = ranks::describe(*one.what) + " in " + std::string(name_of(one.what->phase));
        if (watcher_ != nullptr) watcher_->peaks();
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
    const std::int64_t bytes = bytes_of(ref);
    std::int64_t& side = side_of(ref);
    side += bytes;
    if (watcher_ != nullptr && &side == &now_) watcher_->begins(ref.slot, bytes);
  }
  void end(const ranks::ListedRef& ref) {
    if (!alive_[at(ref.slot)]) return;
    alive_[at(ref.slot)] = false;
    std::int64_t& side = side_of(ref);
    side -= bytes_of(ref);
    if (watcher_ != nullptr && &side == &now_) watcher_->ends(ref.slot);
  }

  const Program& program_;
  const ranks::Listing& listing_;
  ProgramCoordinates at_;
  BufferWatcher* watcher_;
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

TransferCount::TransferCount(const ranks::ProgramPlan& plan, const std::vector<Dtype>& formats)
    : by_rank(plan.classes.size()), plan_(plan), formats_(formats) {
  ends_.resize(plan.classes.size(), 0);
  for (const ranks::BufferPlace& buffer : plan.buffers) {
    ends_[at(buffer.rank)] = buffer.address + buffer.elements;
  }
}

/// The rank whose buffers an address is in; -1: none, a message on the way.
int TransferCount::rank_at(std::int64_t address) const {
  const auto found = std::ranges::upper_bound(ends_, address);
  return found == ends_.end() ? -1 : static_cast<int>(found - ends_.begin());
}

std::int64_t TransferCount::bits_at(std::int64_t address) const {
  return bits_of(formats_[at(address)]);
}

void TransferCount::add_transfer(const OperationList& list, const Transfer& transfer,
                                 InstructionKind kind, BitsByRank& of) const {
  if (kind == InstructionKind::all_gather || kind == InstructionKind::broadcast) {
    return add_round(list, transfer, of);
  }
  for (std::size_t s = 0; s < transfer.source_count; ++s) {
    const std::int64_t source = list.addresses[transfer.sources + s];
    const int from = rank_at(source);
    std::int64_t others = kind == InstructionKind::all_reduce ? 1 : 0;
    for (std::size_t t = 0; others == 0 && t < transfer.target_count; ++t) {
      others = rank_at(list.addresses[transfer.targets + t]) == from ? 0 : 1;
    }
    of[from] += others * transfer.length * bits_at(source);
  }
}

/// What all get goes round: all send it but the last that it comes to.
void TransferCount::add_round(const OperationList& list, const Transfer& transfer,
                              BitsByRank& of) const {
  const std::int64_t source = list.addresses[transfer.sources];
  const std::size_t n = transfer.target_count;
  const auto member = [&](std::size_t t) { return rank_at(list.addresses[transfer.targets + t]); };
  for (std::size_t t = 0; t < n; ++t) {
    const bool is_last = member((t + 1) % n) == rank_at(source);
    of[member(t)] += is_last ? 0 : transfer.length * bits_at(source);
  }
}

void TransferCount::moves(const OperationList& list, const Operation& op) {
  if (op.rank < 0 || op.instruction < 0) return;
  const ranks::Listing& listing = *plan_.listings[at(plan_.classes[at(op.rank)])];
  const Instruction& what = *listing.instructions[at(op.instruction)].what;
  Cargo cargo{.collective = collective_of(what.kind), .axes = what.axes};
  if (cargo.collective.empty()) return;
  std::ranges::sort(cargo.axes);
  BitsByRank of;
  for (std::size_t t = op.first; t < op.first + op.count; ++t) {
    add_transfer(list, list.transfers[t], what.kind, of);
  }
  const auto members = static_cast<std::int64_t>(of.size());
  for (const auto& [rank, bits] : of) {
    Ledger& ledger = by_rank[at(rank)];
    ledger.begin_call(cargo.collective, cargo.axes);
    cargo.bits = bits;
    if (what.kind == InstructionKind::all_reduce) {
      const std::int64_t element = bits_at(list.addresses[list.transfers[op.first].sources]);
      cargo.bits = bits - bits / element / members * element;
      cargo.stage = 1;
      ledger.add(cargo);
      cargo.stage = 0;
    }
    ledger.add(cargo);
  }
}

HeldBytes held_bytes(const Program& program, const ranks::Listing& listing,
                     const ProgramCoordinates& place, BufferWatcher* watcher) {
  return Arena(program, listing, place, watcher).run();
}

HeldBytes held_bytes(const Program& program, const ranks::ProgramPlan& plan,
                     const ranks::Mesh& mesh) {
  HeldBytes most;
  for (int r = 0; r < mesh.ranks(); ++r) {
    const ranks::Listing& listing = *plan.listings[at(plan.classes[at(r)])];
    HeldBytes one = held_bytes(program, listing, mesh.at(r));
    one.rank = r;
    if (r == 0 || one.peak > most.peak) most = one;
  }
  return most;
}

template <class Numbers>
std::int64_t workspace_bytes(const OperationList& list, const FunctionTable& functions) {
  constexpr bool kIsExact = Memory<Numbers>::kHasLevels;
  constexpr auto kNumber = static_cast<std::int64_t>(sizeof(typename Numbers::Stored));
  std::set<const KernelCode*> codes;
  for (const Operation& op : list.operations) {
    if (op.code != nullptr) codes.insert(op.code);
  }
  std::int64_t most = 0;
  for (const KernelCode* code : codes) {
    const KernelPlan plan =
        plan_of(*code, functions, kIsExact ? NumberKind::exact : NumberKind::floating);
    std::int64_t bytes = workspace_entries(plan) * kNumber;
    for (const std::size_t size : code->sizes) {  // exact numbers are read into others
      if (kIsExact) bytes += static_cast<std::int64_t>(size * sizeof(double));
    }
    most = std::max(most, bytes);
  }
  return most;
}

template std::int64_t workspace_bytes<CanonicalNumbers>(const OperationList&, const FunctionTable&);
template std::int64_t workspace_bytes<PlainNumbers<float>>(const OperationList&,
                                                           const FunctionTable&);
template std::int64_t workspace_bytes<PlainNumbers<double>>(const OperationList&,
                                                            const FunctionTable&);

}  // namespace placet::execute
