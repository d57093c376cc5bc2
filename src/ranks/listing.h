// What a device class executes, calls and loops opened up and buffers numbered.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "program/walk.h"

namespace placet::ranks {

/// A buffer that an instruction names. A slot is a place in memory; a form is a type at a
/// micro-batch, as a buffer that all micro-batches use one after the other may change its extents.
struct ListedRef {
  int slot = 0;
  int form = 0;
  int piece = -1;
};

struct ListedInstruction {
  const Instruction* what = nullptr;
  Arguments arguments;
  std::vector<ListedRef> inputs;
  std::vector<ListedRef> outputs;
  /// Where a kernel's positions are: the micro-batch of its first buffer of which each has a part,
  /// else that of the call.
  std::int64_t micro_batch = 0;
};

struct Slot {
  int family = 0;
  std::int64_t unit = 0;         // 0 where the family has no element for each
  std::int64_t micro_batch = 0;  // likewise
};

struct Form {
  int family = 0;
  std::int64_t micro_batch = 0;  // 0 where the type is not divided by micro-batches
};

/// One class opened up. Refers to the program's instructions.
class Listing {
 public:
  /// Throws InputError for buffers of families that do not exist and micro-batches beyond the last.
  Listing(const Program& program, const DeviceClass& device_class);

  std::vector<Slot> slots;
  std::vector<Form> forms;
  std::vector<ListedInstruction> instructions;
  std::vector<ListedRef> initial;  // as DeviceClass::initial
  std::vector<ListedRef> results;  // as DeviceClass::results

 private:
  ListedRef listed(const Program& program, const BufferRef& ref, const Arguments& arguments);
  std::int64_t micro_batch_of(const Instruction& what, const Arguments& arguments) const;

  std::vector<char> varies_;  // by family: its type is divided by micro-batches
  std::map<std::tuple<int, std::int64_t, std::int64_t>, int> slot_numbers_;
  std::map<std::tuple<int, std::int64_t>, int> form_numbers_;
};

/// How many instructions the class executes, without opening anything up. Throws InputError where
/// procedures call each other in a circle.
double instructions_in(const Program& program, const DeviceClass& device_class);

}  // namespace placet::ranks
