#include "checkpoint/reshard.h"

#include <algorithm>
#include <bit>
#include <set>

#include "execute/machine.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::checkpoint {
namespace {

using execute::EncodedSlice;
using execute::Number;
using execute::StateSlice;
using ranks::Run;

bool same_bits(const Number& a, const Number& b) { return a == b; }
bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}
bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// Only a buffer's own format is another number; exact numbers have none.
template <class Stored>
void round_to(Dtype, std::vector<Stored>&) {}
void round_to(Dtype format, std::vector<float>& numbers) {
  for (float& x : numbers) {
    x = static_cast<float>(execute::rounded_to(format, static_cast<double>(x)));
  }
}

}  // namespace

std::vector<Run> runs_of(const StateSlice& slice) {
  const ranks::Extents origin(slice.extents.size(), 0);
  std::vector<Run> inside;
  for (const Run& run :
       ranks::runs_between({slice.whole, slice.begins}, {slice.extents, origin}, slice.extents)) {
    const std::int64_t begin = std::max(run.to, slice.first);
    const std::int64_t end = std::min(run.to + run.length, slice.first + slice.count);
    if (begin >= end) continue;
    inside.push_back(
        {.from = run.from + (begin - run.to), .to = begin - slice.first, .length = end - begin});
  }
  return inside;
}

std::vector<Run> shared_runs(const std::vector<Run>& a, const std::vector<Run>& b) {
  std::vector<Run> shared;
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const std::int64_t begin = std::max(a[i].from, b[k].from);
    const std::int64_t end = std::min(a[i].from + a[i].length, b[k].from + b[k].length);
    if (begin < end) {
      shared.push_back({.from = a[i].to + (begin - a[i].from),
                        .to = b[k].to + (begin - b[k].from),
                        .length = end - begin});
    }
    (a[i].from + a[i].length == end ? i : k) += 1;
  }
  return shared;
}

Resharded::Resharded(const Checkpoint& from, std::vector<StateSlice> slices)
    : from_(from), slices_(std::move(slices)) {
  std::set<std::pair<int, std::string>> known;
  for (const IndexedSlice& one : from_.slices()) {
    if (known.insert({one.file, one.name}).second) sources_[one.slice.tensor].push_back(&one);
  }
  check_tensors();
}

void Resharded::check_tensors() const {
  std::set<std::string> wanted;
  for (const StateSlice& slice : slices_) {
    wanted.insert(slice.tensor);
    const auto found = sources_.find(slice.tensor);
    const bool has = found != sources_.end();
    if (has && found->second.front()->slice.whole == slice.whole) continue;
    throw InputError({.where = from_.where(),
                      .value = slice.tensor,
                      .problem = has ? "has another shape in the job of the new placement"
                                     : "is no tensor of the checkpoint",
                      .allowed = "a job that trains the same model with the same optimizer"});
  }
  for (const auto& [tensor, sources] : sources_) {
    if (wanted.contains(tensor)) continue;
    throw InputError({.where = from_.where(),
                      .value = tensor,
                      .problem = "would be lost: the job of the new placement has no such tensor",
                      .allowed = "a job that trains the same model with the same optimizer"});
  }
}

/// The format of the target where the checkpoint has it, else the widest that it has.
Dtype Resharded::source_format(const StateSlice& target) const {
  Dtype widest = sources_.at(target.tensor).front()->slice.format;
  for (const IndexedSlice* one : sources_.at(target.tensor)) {
    if (one->slice.format == target.format) return target.format;
    if (bits_of(one->slice.format) > bits_of(widest)) widest = one->slice.format;
  }
  return widest;
}

void Resharded::refuse_drift(const std::string& tensor, int rank) const {
  throw InputError({.where = from_.where(),
                    .value = tensor,
                    .problem = "is not the same on all ranks that hold it: rank " +
                               std::to_string(rank) + " has other numbers than one before it",
                    .allowed = "a checkpoint whose replicas agree"});
}

/// Entries that this source gives and none before it has given.
template <class Stored>
std::int64_t Resharded::take(const StateSlice& target, const IndexedSlice& source,
                             std::vector<Stored>& numbers, std::vector<char>& known) const {
  std::int64_t fresh = 0;
  std::vector<Stored> some;
  for (const Run& run : shared_runs(runs_of(source.slice), runs_of(target))) {
    some.resize(at(run.length));
    execute::decode(from_.part(source, run.from, run.length), some.data(), run.length);
    for (std::size_t k = 0; k < some.size(); ++k) {
      const std::size_t place = at(run.to) + k;
      const bool agrees = known[place] == 0 || same_bits(numbers[place], some[k]);
      if (!agrees) refuse_drift(target.tensor, source.slice.rank);
      fresh += known[place] == 0 ? 1 : 0;
      numbers[place] = some[k];
      known[place] = 1;
    }
  }
  return fresh;
}

template <class Stored>
EncodedSlice Resharded::gathered(const StateSlice& target) const {
  std::vector<Stored> numbers(at(target.count));
  std::vector<char> known(numbers.size(), 0);
  const Dtype format = source_format(target);
  std::int64_t left = target.count;
  for (const IndexedSlice* source : sources_.at(target.tensor)) {
    if (source->slice.format == format) left -= take(target, *source, numbers, known);
  }
  if (left != 0) {
    throw InputError({.where = from_.where(),
                      .value = target.tensor,
                      .problem = std::to_string(left) + " of its entries are on no rank"});
  }
  if (format != target.format) round_to(target.format, numbers);
  return execute::encoded(numbers.data(), target.count, target.format);
}

EncodedSlice Resharded::numbers(std::size_t slice) const {
  const StateSlice& target = slices_.at(slice);
  const std::string& mode = from_.facts().mode;
  if (mode == "canonical") return gathered<Number>(target);
  return mode == "f64" ? gathered<double>(target) : gathered<float>(target);
}

}  // namespace placet::checkpoint
