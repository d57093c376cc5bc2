// The names of things along a mesh: an axis by its name, a process by its rank.
//
// An axis is called what the person who wrote the placement calls it; its name carries no meaning.
// Whoever needs to know what an axis does asks for its cut and its modes, never for its name.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string_view>

namespace placet {

/// The name of a mesh axis: a letter, then letters, digits, '_', '-' or '.'; at most 31 characters.
/// 32 bytes, trivially copyable, compared in the order of its characters.
///
///   AxisName("tp") < AxisName("tp2")          AxisName("1st") throws InputError
class AxisName {
 public:
  static constexpr std::size_t kLongest = 31;

  /// The empty name, which no axis of a mesh has.
  constexpr AxisName() = default;

  /// Throws InputError (where = "axis name") for text that is not a name.
  explicit AxisName(std::string_view text);

  constexpr std::string_view text() const { return {characters_.data(), size()}; }
  constexpr bool empty() const { return characters_[0] == '\0'; }

  friend constexpr bool operator==(const AxisName&, const AxisName&) = default;
  friend constexpr auto operator<=>(const AxisName&, const AxisName&) = default;

 private:
  constexpr std::size_t size() const {
    std::size_t length = 0;
    while (length < kLongest && characters_[length] != '\0') ++length;
    return length;
  }

  std::array<char, kLongest + 1> characters_{};  // the rest is zero, so equality is that of bytes
};

std::ostream& operator<<(std::ostream& out, const AxisName& name);

/// The index of one process among all of a job, and of the device that it drives: 0 is the first.
/// Row-major over the axes, outermost first: on a mesh pp=4 dp=8 tp=8, rank 9 is pp=0 dp=1 tp=1.
/// No arithmetic: a rank is a name, neighbours are found through the mesh.
struct Rank {
  std::int64_t index = 0;

  friend constexpr auto operator<=>(Rank, Rank) = default;
};

std::ostream& operator<<(std::ostream& out, Rank rank);

}  // namespace placet
