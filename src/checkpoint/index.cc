#include "checkpoint/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "catalog/reader.h"
#include "execute/run.h"
#include "ranks/numbers.h"
#include "units/at.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet::checkpoint {
namespace {

using execute::StateSlice;

constexpr std::string_view kSchema = "placet.checkpoint/1";
constexpr std::int64_t kMostRanks = 100'000;
constexpr std::int64_t kMostExtent = std::int64_t{1} << 40;
constexpr std::int64_t kMostSteps = 1'000'000'000;
constexpr std::size_t kMostTensorDims = 16;

constexpr std::array<std::pair<StateRef::Kind, std::string_view>, 3> kKinds = {{
    {StateRef::Kind::parameter, "parameter"},
    {StateRef::Kind::state, "state"},
    {StateRef::Kind::number, "number"},
}};

std::string kind_name(StateRef::Kind kind) {
  const auto* found =
      std::ranges::find(kKinds, kind, &std::pair<StateRef::Kind, std::string_view>::first);
  ensure(found != kKinds.end(), "what is saved is a parameter, a state or a number");
  return std::string(found->second);
}

Json job_json(const JobWords& job) {
  Json out = Json::object();
  for (const auto& [flag, words] : job) {
    out[flag] = words.size() == 1 ? Json(words.front()) : Json(words);
  }
  return out;
}

JobWords job_from(const Reader& reader) {
  JobWords job;
  for (const auto& [flag, value] : reader.members()) {
    std::vector<std::string> words;
    if (value.is_list()) {
      for (const Reader& word : value.items()) words.push_back(word.text());
    } else {
      words.push_back(value.text());
    }
    if (words.empty()) value.fail("is an empty list", "a text, or a list of one or more");
    job.emplace_back(flag, std::move(words));
  }
  return job;
}

std::vector<std::int64_t> numbers_from(const Reader& reader, std::int64_t most) {
  std::vector<std::int64_t> numbers;
  for (const Reader& one : reader.items()) numbers.push_back(one.whole({.greatest = most}));
  if (numbers.size() > kMostTensorDims) reader.fail("has too many dims", "at most 16");
  return numbers;
}

/// The items of a list that must have so many.
std::vector<Reader> items_of(const Reader& reader, std::size_t count) {
  std::vector<Reader> items = reader.items();
  if (items.size() != count) reader.fail("has another length", std::to_string(count) + " items");
  return items;
}

/// A tensor as the index lists it: name, kind, shape.
struct Listed {
  std::string name;
  StateRef::Kind kind = StateRef::Kind::parameter;
  ranks::Extents shape;
};

Listed listed_from(const Reader& reader) {
  const std::vector<Reader> items = items_of(reader, 3);
  std::vector<std::string> names;
  names.reserve(kKinds.size());
  for (const auto& [kind, name] : kKinds) names.emplace_back(name);
  return {.name = items[0].text(),
          .kind = kKinds[items[1].one_of(names)].first,
          .shape = numbers_from(items[2], kMostExtent)};
}

std::vector<Listed> tensors_from(const Reader& reader) {
  std::vector<Listed> tensors;
  std::set<std::string> names;
  for (const Reader& one : reader.items()) {
    tensors.push_back(listed_from(one));
    if (!names.insert(tensors.back().name).second) {
      one.fail("is of a tensor that is there already", "each tensor once");
    }
  }
  return tensors;
}

Dtype format_from(const Reader& reader) {
  const auto format = dtype_named(reader.text());
  if (!format) reader.fail("is no format", "fp32, bf16, fp16 or another one of a buffer");
  return *format;
}

/// A part of the tensor that lies in it.
void check_part(const StateSlice& slice, const Reader& reader) {
  bool fits =
      slice.begins.size() == slice.whole.size() && slice.extents.size() == slice.whole.size();
  std::int64_t entries = 1;
  for (std::size_t d = 0; fits && d < slice.whole.size(); ++d) {
    fits = slice.begins[d] + slice.extents[d] <= slice.whole[d];
    entries = checked_multiply(entries, slice.extents[d], "entries");
  }
  if (!fits || slice.first + slice.count > entries) {
    reader.fail("is no part of '" + slice.tensor + "'", "begins and extents inside its shape");
  }
}

/// [tensor, format, begins, extents, first, count, file, name, digest].
IndexedSlice slice_from(const Reader& reader, const std::vector<Listed>& tensors, int rank,
                        std::int64_t ranks) {
  enum Item : std::uint8_t { tensor, format, begins, extents, first, count, file, name, digest };
  const std::vector<Reader> items = items_of(reader, 9);
  const auto most = static_cast<std::int64_t>(tensors.size()) - 1;
  const Listed& what = tensors[at(items[tensor].whole({.greatest = most}))];
  IndexedSlice out{.slice = {.tensor = what.name,
                             .kind = what.kind,
                             .whole = what.shape,
                             .rank = rank,
                             .format = format_from(items[format]),
                             .begins = numbers_from(items[begins], kMostExtent),
                             .extents = numbers_from(items[extents], kMostExtent),
                             .first = items[first].whole({.greatest = kMostExtent}),
                             .count = items[count].whole({.greatest = kMostExtent})},
                   .file = static_cast<int>(items[file].whole({.greatest = ranks - 1})),
                   .name = items[name].text(),
                   .digest = items[digest].text()};
  check_part(out.slice, reader);
  return out;
}

std::string mode_from(const Reader& reader) {
  std::vector<std::string> modes;
  for (const Arithmetic one :
       {Arithmetic::canonical, Arithmetic::declared, Arithmetic::binary32, Arithmetic::binary64}) {
    modes.emplace_back(name_of(one));
  }
  return modes[reader.one_of(modes)];
}

CheckpointFacts facts_from(const Reader& root) {
  CheckpointFacts facts{.steps = static_cast<int>(root.at("steps").whole({.greatest = kMostSteps})),
                        .mode = mode_from(root.at("mode")),
                        .job = job_from(root.at("job"))};
  std::set<std::string> axes;
  for (const Reader& axis : root.at("mesh").items()) {
    const std::vector<Reader> items = items_of(axis, 2);
    if (!axes.insert(items[0].text()).second) items[0].fail("is there twice", "each axis once");
    facts.mesh.emplace_back(items[0].text(), items[1].whole({1, kMostRanks}));
  }
  for (const Reader& word : root.at("meanings").items()) facts.meanings.push_back(word.text());
  return facts;
}

/// Positions in the list of tensors, in the order in which they come first.
class TensorList {
 public:
  explicit TensorList(const std::vector<IndexedSlice>& slices) {
    for (const IndexedSlice& one : slices) {
      const StateSlice& slice = one.slice;
      if (!positions_.try_emplace(slice.tensor, positions_.size()).second) continue;
      list_.push_back({slice.tensor, kind_name(slice.kind), slice.whole});
    }
  }
  const Json& list() const { return list_; }
  std::size_t position(const std::string& tensor) const { return positions_.at(tensor); }

 private:
  std::map<std::string, std::size_t> positions_;
  Json list_ = Json::array();
};

}  // namespace

std::string file_of_rank(int rank) { return fmt::format("rank-{:05}.safetensors", rank); }

std::string text_of(const CheckpointIndex& index) {
  const TensorList tensors(index.slices);
  std::vector<Json> of_ranks(at(index.ranks), Json::array());
  for (const IndexedSlice& one : index.slices) {
    const StateSlice& s = one.slice;
    of_ranks[at(s.rank)].push_back({tensors.position(s.tensor), name_of(s.format), s.begins,
                                    s.extents, s.first, s.count, one.file, one.name, one.digest});
  }
  Json mesh = Json::array();
  for (const auto& [axis, degree] : index.facts.mesh) mesh.push_back({axis, degree});
  Json out{{"schema", kSchema},         {"steps", index.facts.steps},
           {"mode", index.facts.mode},  {"job", job_json(index.facts.job)},
           {"mesh", std::move(mesh)},   {"meanings", index.facts.meanings},
           {"tensors", tensors.list()}, {"ranks", of_ranks}};
  return out.dump() + "\n";
}

CheckpointIndex index_from(std::string_view text, const std::string& where) {
  const Document document{.where = where, .value = parse_json(text, where)};
  const Reader root(document);
  root.allow({"schema", "steps", "mode", "job", "mesh", "meanings", "tensors", "ranks"});
  if (const Reader schema = root.at("schema"); schema.text() != kSchema) {
    schema.fail("is no schema of a checkpoint that is read", std::string(kSchema));
  }
  CheckpointIndex index{.facts = facts_from(root)};
  const std::vector<Listed> tensors = tensors_from(root.at("tensors"));
  const std::vector<Reader> of_ranks = root.at("ranks").items();
  const auto ranks = static_cast<std::int64_t>(of_ranks.size());
  if (ranks > kMostRanks) root.at("ranks").fail("has too many ranks", std::to_string(kMostRanks));
  index.ranks = static_cast<int>(ranks);
  for (int r = 0; r < index.ranks; ++r) {
    for (const Reader& one : of_ranks[at(r)].items()) {
      index.slices.push_back(slice_from(one, tensors, r, ranks));
    }
  }
  return index;
}

void Digest::add(std::span<const std::byte> bytes) {
  constexpr unsigned kWordBits = 64;
  for (const std::byte byte : bytes) {
    word_ |= std::to_integer<std::uint64_t>(byte) << filled_;
    filled_ += 8;
    if (filled_ < kWordBits) continue;
    value_ = ranks::mixed(value_ ^ word_) + 0x632be59bd9b4e019U;
    word_ = 0;
    filled_ = 0;
  }
  length_ += bytes.size();
}

std::string Digest::text() const {
  return fmt::format("{:016x}", ranks::mixed(ranks::mixed(value_ ^ word_) ^ length_));
}

}  // namespace placet::checkpoint
