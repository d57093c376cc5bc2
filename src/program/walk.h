// Running through what a device class executes, calls and loops opened up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "program/program.h"
#include "units/hash.h"

namespace placet {

/// Values of the two variables where an instruction stands.
struct Arguments {
  std::int64_t unit = 0;
  std::int64_t micro_batch = 0;

  friend bool operator==(const Arguments&, const Arguments&) = default;
};

inline std::int64_t value_of(const IndexTerm& term, const Arguments& arguments) {
  switch (term.variable) {
    case IndexTerm::Variable::none:
      return term.offset;
    case IndexTerm::Variable::unit:
      return arguments.unit + term.offset;
    case IndexTerm::Variable::micro_batch:
      return arguments.micro_batch + term.offset;
  }
  return term.offset;
}

/// A buffer of a device: an element of a family.
struct BufferElement {
  int family = 0;
  std::int64_t unit = 0;
  std::int64_t micro_batch = 0;

  friend bool operator==(const BufferElement&, const BufferElement&) = default;
};

struct BufferElementHash {
  std::size_t operator()(const BufferElement& e) const {
    const std::uint64_t unit =
        mixed(static_cast<std::uint64_t>(e.family), static_cast<std::uint64_t>(e.unit));
    return static_cast<std::size_t>(mixed(unit, static_cast<std::uint64_t>(e.micro_batch)));
  }
};

inline BufferElement element_of(const BufferRef& ref, const Arguments& arguments) {
  return {.family = ref.family,
          .unit = value_of(ref.unit, arguments),
          .micro_batch = value_of(ref.micro_batch, arguments)};
}

/// Calls visit(arguments) for every value of a loop's variable.
template <class Visit>
void for_each_round(const Loop& loop, Arguments arguments, Visit&& visit) {
  const std::int64_t by = loop.last < loop.first ? -1 : 1;
  for (std::int64_t i = loop.first; i != loop.last + by; i += by) {
    (loop.variable == IndexTerm::Variable::unit ? arguments.unit : arguments.micro_batch) = i;
    visit(arguments);
  }
}

/// Goes through bodies step by step.
template <class Visit>
class Walk {
 public:
  Walk(const Program& program, Visit& visit) : program_(program), visit_(visit) {}

  void go(const std::vector<Step>& body, const Arguments& arguments) {
    for (const Step& step : body) {
      std::visit([&](const auto& what) { take(what, arguments); }, step.what);
    }
  }

 private:
  void take(const Instruction& instruction, const Arguments& arguments) {
    visit_(instruction, arguments);
  }
  void take(const Call& call, const Arguments& arguments) {
    go(program_.procedures.at(static_cast<std::size_t>(call.procedure)).body,
       {.unit = value_of(call.unit, arguments),
        .micro_batch = value_of(call.micro_batch, arguments)});
  }
  void take(const Loop& loop, const Arguments& arguments) {
    for_each_round(loop, arguments, [&](const Arguments& inner) { go(loop.body, inner); });
  }

  const Program& program_;
  Visit& visit_;
};

/// Calls visit(instruction) once for every instruction that a body and what it calls are written
/// of, however often it is executed.
template <class Visit>
void for_each_written_instruction(const Program& program, const std::vector<Step>& body,
                                  Visit&& visit) {
  std::vector<bool> seen(program.procedures.size(), false);
  const auto go = [&](const auto& self, const std::vector<Step>& steps) -> void {
    for (const Step& step : steps) {
      if (const auto* instruction = std::get_if<Instruction>(&step.what)) visit(*instruction);
      if (const auto* loop = std::get_if<Loop>(&step.what)) self(self, loop->body);
      const auto* call = std::get_if<Call>(&step.what);
      if (call == nullptr || seen[static_cast<std::size_t>(call->procedure)]) continue;
      seen[static_cast<std::size_t>(call->procedure)] = true;
      self(self, program.procedures[static_cast<std::size_t>(call->procedure)].body);
    }
  };
  go(go, body);
}

/// Calls visit(instruction, arguments) for every instruction in the order of execution.
template <class Visit>
void for_each_instruction(const Program& program, const std::vector<Step>& body,
                          const Arguments& arguments, Visit&& visit) {
  Walk(program, visit).go(body, arguments);
}

}  // namespace placet
