// One collective as one of its ranks takes part in it, with messages alone (docs/theory.md §6.11).
//
// What is reduced or exchanged goes from each member straight to the one that needs it. What all
// get goes round: each member passes on what it got from the one before it, so that it sends no
// number twice. A sum for all is both, each member adding up its part of the row. Parts are those
// of the members' coordinates. Numbers are added in the order of the members, whoever is first.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "execute/parcel.h"
#include "ranks/exchange.h"
#include "ranks/groups.h"

namespace placet::execute {

/// Elements of a rank's memory.
struct Stretch {
  std::int64_t address = 0;
  std::int64_t length = 0;
};
using Stretches = std::vector<Stretch>;

/// What a rank is, for those who move its numbers.
template <class Numbers>
struct RankMemory {
  const Program& program;
  const ranks::Mesh& mesh;
  int rank = 0;
  Memory<Numbers> numbers;
  std::vector<Dtype> formats;  // by element
  bool rounds = false;         // to these when they are stored
  bool spoils_next = false;    // a bit of the next numbers that are sent is to be wrong
};

/// Takes numbers out of the memory.
template <class Numbers>
Parcel<typename Numbers::Stored> taken(const Memory<Numbers>& memory, const Stretches& from);
/// Stores them there, one stretch after the other.
template <class Numbers>
void store(RankMemory<Numbers>& memory, const Stretches& to,
           const Parcel<typename Numbers::Stored>& parcel);

/// Makes a bit of what is sent wrong where that is due, once.
template <class Numbers>
void spoil_if_due(RankMemory<Numbers>& memory, Parcel<typename Numbers::Stored>& parcel);

/// What there is to know of a collective before it begins.
struct MeetingPlan {
  const Instruction* what = nullptr;
  std::vector<int> members;            // ranks in the order of their parts
  std::vector<ranks::Member> tensors;  // of this rank: what it gives and takes
  Label label;
};

enum class Progress : std::uint8_t { none, some, done, out_of_range };

template <class Numbers>
class Meeting {
 public:
  using Stored = typename Numbers::Stored;
  Meeting(MeetingPlan plan, RankMemory<Numbers>& memory);

  /// Goes on as far as what has come allows. The first call reads what is given, the last writes
  /// what is taken.
  Progress advance(Communicator& communicator);

 private:
  using Kind = InstructionKind;
  std::size_t size() const { return plan_.members.size(); }
  std::size_t after(std::size_t member) const { return (member + 1) % size(); }
  std::size_t before(std::size_t member) const { return (member + size() - 1) % size(); }
  Label label(std::uint64_t part) const;

  Part part_of_member(std::int64_t whole, int dim, std::size_t member) const;
  Part row_part(std::size_t member) const;
  std::int64_t row() const;
  Stretches given_to(std::size_t member, std::vector<std::int64_t>& lengths) const;
  Stretches taken_from(std::size_t member) const;
  Part split_part(const ranks::Member& tensor, std::size_t member) const;

  void begin(Communicator& communicator);
  void begin_round(Communicator& communicator, Parcel<Stored> own);
  void give(Communicator& communicator, std::size_t member);
  void pass_on(Communicator& communicator, std::size_t origin, const Bytes& bytes);
  Progress collect(Communicator& communicator);
  Progress end_of_collecting(Communicator& communicator);
  Progress go_round(Communicator& communicator);
  std::optional<Parcel<Stored>> combined();

  MeetingPlan plan_;
  RankMemory<Numbers>& memory_;
  std::size_t own_ = 0;  // position among the members
  bool begun_ = false;
  // What comes from each, straight.
  std::vector<bool> expected_;
  std::vector<std::optional<Parcel<Stored>>> came_;
  // What goes round.
  bool rounds_ = false;
  std::size_t origin_ = 0;  // whose part comes next
  std::size_t left_ = 0;    // parts that are still to come
};

extern template class Meeting<CanonicalNumbers>;
extern template class Meeting<PlainNumbers<float>>;
extern template class Meeting<PlainNumbers<double>>;

}  // namespace placet::execute
