// Numbers for the buffers of a class, so that tables of them are lists. Inside of check/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/walk.h"

namespace placet {

/// Numbers one after the other, those of a family together, and in it those of a unit. Units that a
/// class does not touch take no room. Case: of families a (by unit) and b (one buffer), and a class
/// that touches units 3 and 5, a[3], a[5] and b are 0, 1 and 2.
class Numbering {
 public:
  Numbering(const Program& program, int device_class);
  /// Of these families alone, by number; others have none.
  Numbering(const Program& program, int device_class, const std::vector<bool>& families);

  std::size_t size() const { return size_; }

  /// Of a buffer that the class names in its body or holds when the step begins or ends.
  std::size_t of(const BufferRef& ref, const Arguments& a) const {
    const Place& family = places_[static_cast<std::size_t>(ref.family)];
    std::size_t inside = 0;
    if (family.by_unit) inside = units_[static_cast<std::size_t>(value_of(ref.unit, a))];
    if (family.by_micro_batch) {
      inside = inside * micro_batches_ + static_cast<std::size_t>(value_of(ref.micro_batch, a));
    }
    return family.begin + inside;
  }

 private:
  /// Of a family, what its buffers' numbers are made of; names and types would fill the cache.
  struct Place {
    std::size_t begin = 0;
    bool by_unit = false;
    bool by_micro_batch = false;
  };

  void note_units(const Program& program, const DeviceClass& own);
  void note(const BufferRef& ref, const Arguments& a);

  std::vector<Place> places_;  // by family
  std::size_t micro_batches_;
  std::vector<std::size_t> units_;  // by unit, its number in the class
  std::vector<bool> touched_;       // by unit
  std::size_t unit_count_ = 0;
  std::size_t size_ = 0;
};

}  // namespace placet
