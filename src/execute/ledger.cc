#include "execute/ledger.h"

#include <algorithm>
#include <sstream>

#include "units/at.h"
#include "units/error.h"

namespace placet::execute {
namespace {

constexpr std::int64_t kBitsOfByte = 8;

/// Whether two ranks differ along these axes only.
bool meet(const ProgramCoordinates& a, const ProgramCoordinates& b, const AxisList& axes) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool along = std::ranges::find(axes, static_cast<int>(i)) != axes.end();
    if (!along && a[i] != b[i]) return false;
  }
  return true;
}

/// Of one collective over some axes: bits by stage, each at the member that sends most.
std::int64_t fullest_bits(const ranks::Mesh& mesh, const std::vector<Ledger>& by_rank, int rank,
                          const Ledger::Key& key) {
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

std::map<Ledger::Key, std::int64_t> bits_of_rank(const ranks::Mesh& mesh,
                                                 const std::vector<Ledger>& by_rank, int rank) {
  std::map<Ledger::Key, std::int64_t> bits;
  for (const auto& [key, sum] : by_rank[at(rank)].sums) {
    bits[key] = fullest_bits(mesh, by_rank, rank, key);
  }
  return bits;
}

}  // namespace

std::string collective_of(InstructionKind kind) {
  if (kind == InstructionKind::permute || kind == InstructionKind::send) return "send_recv";
  const bool moves = is_collective(kind) && kind != InstructionKind::receive;
  return moves ? std::string(name_of(kind)) : "";
}

void Ledger::begin_call(const std::string& collective, const AxisList& axes) {
  if (!collective.empty()) ++sums[{collective, axes}].calls;
}

void Ledger::add(const Cargo& cargo) {
  if (cargo.collective.empty()) return;
  sums[{cargo.collective, cargo.axes}].bits[cargo.stage] += cargo.bits;
}

/// A line for each: collective, calls, bits of both stages, then its axes.
Kept<std::byte> bytes_of(const Ledger& ledger) {
  std::ostringstream text;
  for (const auto& [key, sum] : ledger.sums) {
    text << key.collective << ' ' << sum.calls << ' ' << sum.bits[0] << ' ' << sum.bits[1];
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
    words >> key.collective >> sum.calls >> sum.bits[0] >> sum.bits[1];
    ensure(!words.fail(), "a ledger's line has its figures");
    for (int axis = 0; words >> axis;) key.axes.push_back(axis);
    ledger.sums[key] = sum;
  }
  return ledger;
}

std::vector<SentBytes> sent_bytes(const Program& program, const ranks::Mesh& mesh,
                                  const std::vector<Ledger>& by_rank) {
  int busiest = 0;
  std::int64_t most = -1;
  for (std::size_t r = 0; r < by_rank.size(); ++r) {
    std::int64_t all = 0;
    for (const auto& [key, bits] : bits_of_rank(mesh, by_rank, static_cast<int>(r))) all += bits;
    if (all > most) {
      most = all;
      busiest = static_cast<int>(r);
    }
  }
  std::vector<SentBytes> out;
  if (by_rank.empty()) return out;
  for (const auto& [key, bits] : bits_of_rank(mesh, by_rank, busiest)) {
    SentBytes sent{.collective = key.collective,
                   .calls = by_rank[at(busiest)].sums.at(key).calls,
                   .bytes = (bits + kBitsOfByte - 1) / kBitsOfByte};
    for (const int axis : key.axes) sent.axes.push_back(program.axes[at(axis)].name);
    out.push_back(std::move(sent));
  }
  return out;
}

}  // namespace placet::execute
