// Mutants: programs with one fault each, drawn with a seed, and what the two judges say of them.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "program/fault.h"
#include "program/program.h"

namespace placet::testing {

/// Faults for a program: for each operation so many for each kind of instruction that it makes
/// sense for, some of them on one device, in one layer, step or micro-batch only.
std::vector<Fault> draw_faults(const Program& program, std::mt19937& generator, int per_kind);

/// Instructions in which two programs differ, kinds and families only, and what reads or makes the
/// families that they make: where a finding about the change may point.
struct ChangedPlaces {
  std::vector<std::string> changed;
  std::vector<std::string> near;
};

/// The program with the fault; nothing: it is not well-formed, or the fault matches nothing.
std::optional<Program> wellformed_mutant(const Program& program, const Fault& fault);

struct Judgement {
  Fault fault;
  InstructionKind kind = InstructionKind::compute;
  bool refused = false;    // not a well-formed program
  bool differs = false;    // the algebraic run tells it apart
  bool broken = false;     // the checker's verdict
  bool race_only = false;  // the checker finds nothing but the order of streams
  bool disguised = false;  // under other names and numbers it is judged otherwise
  bool reordered = false;  // or breaks other conditions
  bool named = false;      // the first finding stands at the change or at what touches its buffers
  bool located = false;    // some finding does
  bool in_chain = false;   // or its chain passes there
  // What others see.
  bool first_loss_differs = false;
  bool second_loss_differs = false;
  bool replicas_differ = false;
  bool types_disagree = false;
  std::string finding;
};

/// What a checker of types would say, which knows of tensors whether they are whole, divided, or
/// parts of sums, and nothing of scales, counts and versions. Empty: it accepts the program.
std::string type_error(const Program& program);

/// Both judges' opinions of one mutant.
Judgement judge(const Program& program, const Fault& fault);

/// Counts by operation and by kind of instruction.
struct MutantTally {
  int mutants = 0, refused = 0, differ = 0, found = 0, equal = 0, alarms = 0, races = 0;
  int broken = 0, named = 0, located = 0, in_chain = 0;
  int reordered = 0;  // that break other conditions under other names
  int first_loss = 0, second_loss = 0, replicas = 0, types = 0;  // of those that differ
};

class Bench {
 public:
  /// Judges mutants of one program, at most so many; what the judges disagree on is kept.
  void run(const std::string& name, const Program& program, std::uint32_t seed, int per_kind,
           std::size_t most = std::numeric_limits<std::size_t>::max());

  const MutantTally& total() const { return total_; }
  const std::vector<std::string>& missed() const { return missed_; }
  const std::vector<std::string>& alarms() const { return alarms_; }
  const std::vector<std::string>& astray() const { return astray_; }
  /// Those that are judged otherwise under other names.
  const std::vector<std::string>& disguised() const { return disguised_; }
  std::string table() const;

 private:
  void count(const std::string& name, const Judgement& judgement);

  MutantTally total_;
  std::map<std::string, MutantTally> by_op_;
  std::map<std::string, MutantTally> by_kind_;
  std::vector<std::string> missed_;
  std::vector<std::string> alarms_;
  std::vector<std::string> astray_;
  std::vector<std::string> disguised_;
};

}  // namespace placet::testing
