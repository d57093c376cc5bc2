#include "execute/ledger.h"

#include <algorithm>
#include <sstream>

#include "units/at.h"
#include "units/error.h"

namespace placet::execute {
namespace {

constexpr std::int64_t kBitsOfByte = 8;
constexpr const char* kSendReceive = "send_recv";

/// Whether two ranks differ along these axes only.
bool meet(const ProgramCoordinates& a, const ProgramCoordinates& b, const AxisList& axes) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool along = std::ranges::find(axes, static_cast<int>(i)) != axes.end();
    if (!along && a[i] != b[i]) return false;
  }
  return true;
}

/// Of one collective over some axes: bits by stage, each at the member that sends most. What goes
/// from one rank to another is its sender's alone.
std::int64_t fullest_bits(const ranks::Mesh& mesh, const std::vector<Ledger>& by_rank, int rank,
                          const Ledger::Key& key) {
  if (key.collective == kSendReceive) {
    const Ledger::Sum& own = by_rank[at(rank)].sums.at(key);
    return own.bits[0] + own.bits[1];
  }
  std::array<std::int64_t, 2> most{};
  for (std::size_t r = 0; r < by_rank.size(); ++r) {
    const auto found = by_rank[r].sums.find(key);
    if (found == by_rank[r].sums.end()) continue;
    if (!meet(mesh.at(rank), mesh.at(static_cast<int>(r)), key.axes)) continue;
    for (std::size_t s = 0; s < most.size(); ++s) {
      most[s] = std::max(most[s], found->second.bits[s]);
    }
  }
  return most[0] + most[1];
}

}  // namespace

std::string collective_of(InstructionKind kind) {
  if (kind == InstructionKind::permute || kind == InstructionKind::send) return kSendReceive;
  const bool moves = is_collective(kind) && kind != InstructionKind::receive;
  return moves ? std::string(name_of(kind)) : "";
}

std::int64_t chosen_of(const Program& program, const BufferType& type, std::int64_t amount) {
  if (type.pieces.empty()) return amount;
  const std::vector<DividedDim>& dims = type.pieces.front().dims;
  for (std::size_t d = 1; d < dims.size(); ++d) {
    const LogicalDim& dim = program.dims[at(dims[d].dim)];
    if (dim.chosen != 0) amount = (amount * dim.chosen + dim.extent - 1) / dim.extent;
  }
  return amount;
}

std::int64_t chosen_of(const Program& program, const Instruction& what, std::int64_t bits) {
  const std::vector<BufferRef>& made = what.outputs.empty() ? what.inputs : what.outputs;
  return chosen_of(program, program.families[at(made.front().family)].type, bits);
}

Cargo cargo_of(const Instruction& what) {
  Cargo cargo{.collective = collective_of(what.kind), .axes = what.axes, .among = what.among};
  std::ranges::sort(cargo.axes);
  return cargo;
}

void Ledger::begin_call(const Cargo& cargo) {
  if (!cargo.collective.empty()) ++sums[{cargo.collective, cargo.axes, cargo.among}].calls;
}

void Ledger::add(const Cargo& cargo) {
  if (cargo.collective.empty()) return;
  sums[{cargo.collective, cargo.axes, cargo.among}].bits[cargo.stage] += cargo.bits;
}

/// A line for each: collective, calls, bits of both stages, how many take part of an axis and
/// which, then its axes.
Kept<std::byte> bytes_of(const Ledger& ledger) {
  std::ostringstream text;
  for (const auto& [key, sum] : ledger.sums) {
    text << key.collective << ' ' << sum.calls << ' ' << sum.bits[0] << ' ' << sum.bits[1] << ' '
         << key.among.size();
    for (const std::int64_t coordinate : key.among) text << ' ' << coordinate;
    for (const int axis : key.axes) text << ' ' << axis;
    text << '\n';
  }
  const std::string written = text.str();
  const auto* first = reinterpret_cast<const std::byte*>(written.data());
  return {first, first + written.size()};
}

Ledger ledger_from(const Kept<std::byte>& bytes) {
  std::istringstream text(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  Ledger ledger;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    Ledger::Key key;
    Ledger::Sum sum;
    std::size_t among = 0;
    words >> key.collective >> sum.calls >> sum.bits[0] >> sum.bits[1] >> among;
    for (std::int64_t c = 0; key.among.size() < among && words >> c;) key.among.push_back(c);
    ensure(!words.fail(), "a ledger's line has its figures");
    for (int axis = 0; words >> axis;) key.axes.push_back(axis);
    ledger.sums[key] = sum;
  }
  return ledger;
}

std::vector<std::vector<SentBytes>> sent_by_rank(const Program& program, const ranks::Mesh& mesh,
                                                 const std::vector<Ledger>& by_rank) {
  std::vector<std::vector<SentBytes>> out(by_rank.size());
  for (std::size_t r = 0; r < by_rank.size(); ++r) {
    std::map<std::pair<std::string, AxisList>, Ledger::Sum> together;
    for (const auto& [key, sum] : by_rank[r].sums) {
      Ledger::Sum& all = together[{key.collective, key.axes}];
      all.calls += sum.calls;
      all.bits[0] += fullest_bits(mesh, by_rank, static_cast<int>(r), key);
    }
    for (const auto& [key, sum] : together) {
      SentBytes sent{.collective = key.first,
                     .calls = sum.calls,
                     .bytes = (sum.bits[0] + kBitsOfByte - 1) / kBitsOfByte};
      for (const int axis : key.second) sent.axes.push_back(program.axes[at(axis)].name);
      out[r].push_back(std::move(sent));
    }
  }
  return out;
}

std::vector<SentBytes> busiest_of(const std::vector<std::vector<SentBytes>>& by_rank) {
  std::vector<SentBytes> busiest;
  std::int64_t most = -1;
  for (const std::vector<SentBytes>& own : by_rank) {
    std::int64_t all = 0;
    for (const SentBytes& sent : own) all += sent.bytes;
    if (all > most) busiest = own;
    most = std::max(most, all);
  }
  return busiest;
}

}  // namespace placet::execute
