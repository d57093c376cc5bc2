#include "execute/parcel.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "units/error.h"

namespace placet::execute {
namespace {

template <class Stored>
constexpr bool kHasLevels = std::is_same_v<Stored, Number>;

/// What stands before the numbers.
struct Head {
  std::uint64_t lengths = 0;
  std::uint64_t numbers = 0;
  std::uint8_t is_short = 0;   // numbers are without parts
  std::uint8_t one_level = 0;  // for all
};

class Writer {
 public:
  template <class T>
  void put(const T* from, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t size = out.size();
    out.resize(size + count * sizeof(T));
    if (count > 0) std::memcpy(out.data() + size, from, count * sizeof(T));
  }
  Bytes out;
};

class Reader {
 public:
  explicit Reader(const Bytes& bytes) : bytes_(bytes) {}
  template <class T>
  void take(T* to, std::size_t count) {
    ensure(count <= (bytes_.size() - next_) / sizeof(T), "a parcel is as long as it says");
    if (count > 0) std::memcpy(to, bytes_.data() + next_, count * sizeof(T));
    next_ += count * sizeof(T);
  }
  bool ends() const { return next_ == bytes_.size(); }
  std::size_t left() const { return bytes_.size() - next_; }

 private:
  const Bytes& bytes_;
  std::size_t next_ = 0;
};

bool are_short(const Kept<Number>& numbers) {
  return std::ranges::all_of(numbers, [](const Number& x) { return x.is_short(); });
}
template <class Real>
bool are_short(const Kept<Real>&) {
  return false;
}

void put_short(const Kept<Number>& numbers, Writer& to) {
  std::vector<Wide> high;
  high.reserve(numbers.size());
  for (const Number& x : numbers) high.push_back(x.high);
  to.put(high.data(), high.size());
}
template <class Real>
void put_short(const Kept<Real>&, Writer&) {}

void take_short(Reader& from, Kept<Number>& numbers) {
  std::vector<Wide> high(numbers.size());
  from.take(high.data(), high.size());
  for (std::size_t k = 0; k < high.size(); ++k) numbers[k].high = high[k];
}
template <class Real>
void take_short(Reader&, Kept<Real>&) {}

}  // namespace

template <class Stored>
Bytes packed(const Parcel<Stored>& parcel) {
  const std::vector<Level>& levels = parcel.levels;
  const bool one_level = std::ranges::all_of(levels, [&](Level x) { return x == levels[0]; });
  ensure(levels.size() == (kHasLevels<Stored> ? parcel.numbers.size() : 0),
         "exact numbers have levels, others have none");
  Head head{.lengths = parcel.lengths.size(),
            .numbers = parcel.numbers.size(),
            .is_short = static_cast<std::uint8_t>(are_short(parcel.numbers)),
            .one_level = static_cast<std::uint8_t>(one_level)};
  Writer to;
  to.out.reserve(sizeof(head) + parcel.lengths.size() * sizeof(std::int64_t) + levels.size() +
                 parcel.numbers.size() * sizeof(Stored));
  to.put(&head, 1);
  to.put(parcel.lengths.data(), parcel.lengths.size());
  to.put(levels.data(), one_level ? std::min<std::size_t>(levels.size(), 1) : levels.size());
  if (head.is_short != 0) {
    put_short(parcel.numbers, to);
  } else {
    to.put(parcel.numbers.data(), parcel.numbers.size());
  }
  return std::move(to.out);
}

template <class Stored>
Parcel<Stored> unpacked(const Bytes& bytes) {
  Reader from(bytes);
  Head head;
  from.take(&head, 1);
  ensure(head.lengths <= from.left() && head.numbers <= from.left(), "a parcel is no longer");
  Parcel<Stored> out;
  out.lengths.resize(head.lengths);
  out.numbers.resize(head.numbers);
  const bool has_levels = kHasLevels<Stored> && head.numbers > 0;
  out.levels.resize(has_levels ? head.numbers : 0);
  from.take(out.lengths.data(), out.lengths.size());
  if (head.one_level == 0) {
    from.take(out.levels.data(), out.levels.size());
  } else if (has_levels) {
    Level level = 0;
    from.take(&level, 1);
    std::ranges::fill(out.levels, level);
  }
  if (head.is_short != 0) {
    take_short(from, out.numbers);
  } else {
    from.take(out.numbers.data(), out.numbers.size());
  }
  ensure(from.ends(), "a parcel ends with its numbers");
  return out;
}

template Bytes packed(const Parcel<Number>&);
template Bytes packed(const Parcel<float>&);
template Bytes packed(const Parcel<double>&);
template Parcel<Number> unpacked(const Bytes&);
template Parcel<float> unpacked(const Bytes&);
template Parcel<double> unpacked(const Bytes&);

}  // namespace placet::execute
