#include "checkpoint/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "catalog/file_text.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::checkpoint {
namespace {

using execute::EncodedSlice;
using execute::Encoding;
using execute::StateSlice;
using execute::StateView;

constexpr std::size_t kMostIndexBytes = std::size_t{16} << 20;
constexpr std::size_t kMostOpenFiles = 128;
constexpr std::int64_t kChunk = std::int64_t{1} << 20;

/// Fixed-point numbers are whole ones, in words of 64 bits along a last dim of their own.
struct StoredAs {
  Encoding encoding;
  std::string_view dtype;
  std::int64_t words;  // 0: no dim of their own
};
constexpr std::array<StoredAs, 6> kStoredAs = {{{Encoding::fixed, "I64", 2},
                                                {Encoding::long_fixed, "I64", 6},
                                                {Encoding::f64, "F64", 0},
                                                {Encoding::f32, "F32", 0},
                                                {Encoding::bf16, "BF16", 0},
                                                {Encoding::f16, "F16", 0}}};

[[noreturn]] void fail_to_write(const std::filesystem::path& path, const std::string& flag,
                                int reason) {
  throw InputError({.where = flag,
                    .value = path.string(),
                    .problem = std::string("cannot be written: ") + std::strerror(reason)});
}

/// The whole box, or a row of entries where the slice is a part of it.
std::vector<std::int64_t> shape_of(const StateSlice& slice, const StoredAs& as) {
  std::vector<std::int64_t> shape = slice.extents;
  if (ranks::elements_in(slice.extents) != slice.count) shape = {slice.count};
  if (as.words > 0) shape.push_back(as.words);
  return shape;
}

std::string key_of(const StateSlice& s) {
  return fmt::format("{} {} [{}] [{}] {} {} {}", s.rank, name_of(s.format),
                     fmt::join(s.begins, " "), fmt::join(s.extents, " "), s.first, s.count,
                     s.tensor);
}

/// A folder beside the one to be made; goes unless it was put in its place.
class TemporaryFolder {
 public:
  TemporaryFolder(std::filesystem::path target, std::string flag)
      : target_(std::move(target)), flag_(std::move(flag)) {
    std::string pattern = (parent() / ".placet-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) fail_to_write(target_, flag_, errno);
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code none;
    if (!path_.empty()) std::filesystem::remove_all(path_, none);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  void write(std::string_view name, std::string_view text) const {
    const std::filesystem::path path = path_ / name;
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) fail_to_write(path, flag_, errno);
    int failed = 0;
    while (!text.empty() && failed == 0) {
      const ssize_t count = ::write(file, text.data(), text.size());
      if (count < 0 && errno != EINTR) failed = errno;
      if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
    }
    if (failed == 0 && fsync(file) != 0 && errno != EINVAL) failed = errno;
    if (::close(file) != 0 && failed == 0) failed = errno;
    if (failed != 0) fail_to_write(path, flag_, failed);
  }

  /// A folder made by mkdtemp is its owner's alone; the checkpoint is as any other folder.
  void put_in_place() {
    const mode_t mask = umask(0);
    umask(mask);
    if (chmod(path_.c_str(), 0777 & ~mask) != 0) fail_to_write(target_, flag_, errno);
    if (rename(path_.c_str(), target_.c_str()) != 0) fail_to_write(target_, flag_, errno);
    path_.clear();
  }

 private:
  std::filesystem::path parent() const {
    const std::filesystem::path above = target_.parent_path();
    return above.empty() ? std::filesystem::path(".") : above;
  }
  std::filesystem::path target_;
  std::string flag_;
  std::filesystem::path path_;
};

/// The text of an index that can be read again.
std::string readable_text(const CheckpointIndex& index, const std::string& flag) {
  std::string text;
  try {
    text = text_of(index);
  } catch (const nlohmann::json::exception&) {
    throw InputError({.where = flag,
                      .problem = "cannot be written: a word of the job or a name of a tensor is "
                                 "not UTF-8"});
  }
  if (text.size() > kMostIndexBytes) {
    throw InputError(
        {.where = flag,
         .value = std::to_string(text.size()) + " bytes",
         .problem = "are too many for the index of a checkpoint",
         .allowed = "at most " + std::to_string(kMostIndexBytes) + ": fewer ranks or tensors"});
  }
  return text;
}

/// Without a slash at its end, which would name what is inside.
std::filesystem::path plain(const std::filesystem::path& folder) {
  return folder.has_filename() ? folder : folder.parent_path();
}

/// Writes the files of all ranks one by one.
class Writer {
 public:
  Writer(const StateView& state, std::filesystem::path folder, std::string flag)
      : state_(state), folder_(std::move(folder)), flag_(std::move(flag)) {}

  void write_rank(int rank, std::size_t first, std::size_t end) {
    std::vector<std::size_t> own;
    SafetensorsHeader header;
    names_.clear();
    for (std::size_t s = first; s < end; ++s) {
      if (index_slice(rank, s, header)) own.push_back(s);
    }
    SafetensorsWriter file(folder_ / file_of_rank(rank), header, flag_);
    for (const std::size_t s : own) file.write(state_.numbers(s).bytes);
    file.close();
    bytes_ += header.bytes();
  }
  std::int64_t bytes() const { return bytes_; }  // of all tensors that were stored
  std::vector<IndexedSlice> slices() && { return std::move(slices_); }

 private:
  /// Whether the slice is stored in this rank's file; otherwise an earlier rank's has its bits.
  bool index_slice(int rank, std::size_t s, SafetensorsHeader& header) {
    const StateSlice& slice = state_.slices()[s];
    const EncodedSlice numbers = state_.numbers(s);
    Digest digest;
    digest.add(numbers.bytes);
    StateSlice as_first = slice;
    as_first.rank = 0;
    std::vector<std::size_t>& known = known_[key_of(as_first)];
    for (const std::size_t k : known) {
      if (slices_[k].digest != digest.text() || state_.numbers(k).bytes != numbers.bytes) continue;
      slices_.push_back({slice, slices_[k].file, slices_[k].name, digest.text()});
      return false;
    }
    known.push_back(slices_.size());
    const std::string name = new_name(slice.tensor);
    slices_.push_back({slice, rank, name, digest.text()});
    const auto* as = std::ranges::find(kStoredAs, numbers.encoding, &StoredAs::encoding);
    header.tensors.push_back({.name = name,
                              .dtype = std::string(as->dtype),
                              .shape = shape_of(slice, *as),
                              .begin = header.bytes(),
                              .bytes = static_cast<std::int64_t>(numbers.bytes.size())});
    return true;
  }

  /// A rank may have several parts of a tensor.
  std::string new_name(const std::string& tensor) {
    std::string name = tensor;
    for (int k = 2; !names_.insert(name).second; ++k) name = tensor + " #" + std::to_string(k);
    return name;
  }

  const StateView& state_;
  std::filesystem::path folder_;
  std::string flag_;
  std::vector<IndexedSlice> slices_;                       // as state_.slices()
  std::map<std::string, std::vector<std::size_t>> known_;  // that are stored, by all but the rank
  std::set<std::string> names_;                            // in the file being written
  std::int64_t bytes_ = 0;
};

}  // namespace

void require_new_folder(const std::filesystem::path& folder, const std::string& flag) {
  const std::filesystem::path path = plain(folder);
  struct stat status {};
  if (lstat(path.c_str(), &status) == 0) {
    throw InputError({.where = flag,
                      .value = folder.string(),
                      .problem = "is there already",
                      .allowed = "a new folder: a checkpoint is never written over another"});
  }
  const TemporaryFolder tried(path, flag);
}

void require_facts(const CheckpointFacts& facts, const std::string& flag) {
  readable_text({.facts = facts}, flag);
}

std::int64_t write_checkpoint(const std::filesystem::path& folder, const CheckpointFacts& facts,
                              const StateView& state, const std::string& flag) {
  const std::vector<StateSlice>& slices = state.slices();
  TemporaryFolder temporary(plain(folder), flag);
  Writer writer(state, temporary.path(), flag);
  CheckpointIndex index{.facts = facts, .ranks = 1};
  for (const auto& [axis, degree] : facts.mesh) index.ranks *= static_cast<int>(degree);
  std::size_t next = 0;
  for (int rank = 0; rank < index.ranks; ++rank) {
    const std::size_t first = next;
    while (next < slices.size() && slices[next].rank == rank) ++next;
    writer.write_rank(rank, first, next);
  }
  ensure(next == slices.size(), "slices are those of the mesh's ranks, in their order");
  const std::int64_t bytes = writer.bytes();
  index.slices = std::move(writer).slices();
  temporary.write(kIndexFile, readable_text(index, flag));
  temporary.put_in_place();
  return bytes;
}

Checkpoint::Checkpoint(std::filesystem::path folder)
    : folder_(std::move(folder)), where_((folder_ / kIndexFile).string()) {
  std::error_code none;
  if (!std::filesystem::is_directory(folder_, none)) {
    throw InputError({.where = folder_.string(),
                      .problem = "is not a folder",
                      .allowed = "a checkpoint that `placet run --save` wrote"});
  }
  index_ = index_from(
      read_file_text(folder_ / kIndexFile, kMostIndexBytes, "the index of a checkpoint"), where_);
  std::int64_t ranks = 1;
  for (const auto& [axis, degree] : facts().mesh) {
    ranks = std::min<std::int64_t>(ranks * degree, std::int64_t{1} << 30);
  }
  if (ranks != index_.ranks) {
    throw InputError({.where = where_ + ": ranks",
                      .value = std::to_string(index_.ranks),
                      .problem = "is not the number of ranks of its mesh",
                      .allowed = std::to_string(ranks)});
  }
  check_files();
  for (std::size_t s = 0; s < slices().size(); ++s) {
    positions_.emplace(key_of(slices()[s].slice), s);
  }
}

const SafetensorsFile& Checkpoint::file(int rank) const {
  const auto found = open_.find(rank);
  if (found != open_.end()) return found->second;
  if (open_.size() == kMostOpenFiles) open_.clear();
  return open_.emplace(rank, SafetensorsFile(folder_ / file_of_rank(rank))).first->second;
}

/// Every file is read once; what the index says of its slices must be so.
void Checkpoint::check_files() {
  std::map<std::pair<int, std::string>, std::string> digests;
  for (int rank = 0; rank < index_.ranks; ++rank) {
    std::map<std::string, std::string> of_file;
    check_file(rank, of_file);
    for (auto& [name, digest] : of_file) digests[{rank, name}] = std::move(digest);
  }
  for (const IndexedSlice& one : slices()) {
    const auto place = places_.find({one.file, one.name});
    const std::string where = (folder_ / file_of_rank(one.file)).string();
    if (place == places_.end()) {
      throw InputError(
          {.where = where, .value = one.name, .problem = "is missing: the index speaks of it"});
    }
    const auto* as = std::ranges::find(kStoredAs, place->second.encoding, &StoredAs::encoding);
    if (place->second.tensor.shape != shape_of(one.slice, *as)) {
      throw InputError({.where = where,
                        .value = one.name,
                        .problem = "does not have the shape that the index gives"});
    }
    if (digests.at({one.file, one.name}) != one.digest) {
      throw InputError({.where = where,
                        .value = one.name,
                        .problem = "has other bytes than when it was written",
                        .allowed = "the digest " + one.digest});
    }
  }
}

void Checkpoint::check_file(int rank, std::map<std::string, std::string>& digests) {
  const SafetensorsFile& from = file(rank);
  std::vector<std::byte> chunk;
  for (const StoredTensor& tensor : from.header().tensors) {
    const auto as = std::ranges::find_if(kStoredAs, [&](const StoredAs& one) {
      const bool has_words =
          one.words == 0 || (!tensor.shape.empty() && tensor.shape.back() == one.words);
      return tensor.dtype == one.dtype && has_words;
    });
    if (as == kStoredAs.end()) {
      throw InputError({.where = from.where(),
                        .value = tensor.name,
                        .problem = "is of no format that a run saves: " + tensor.dtype});
    }
    places_[{rank, tensor.name}] = {.tensor = tensor, .encoding = as->encoding};
    Digest digest;
    for (std::int64_t place = 0; place < tensor.bytes; place += kChunk) {
      chunk.resize(at(std::min(kChunk, tensor.bytes - place)));
      from.read(tensor, place, chunk);
      digest.add(chunk);
    }
    digests[tensor.name] = digest.text();
  }
}

EncodedSlice Checkpoint::numbers(const StateSlice& slice) const {
  const auto found = positions_.find(key_of(slice));
  if (found == positions_.end()) {
    throw InputError({.where = folder_.string(),
                      .value = slice.tensor,
                      .problem = "has no such part of it for rank " + std::to_string(slice.rank),
                      .allowed = "the checkpoint of this placement: `placet reshard` makes it"});
  }
  const IndexedSlice& one = slices()[found->second];
  if (one.slice.whole != slice.whole) {
    throw InputError({.where = folder_.string(),
                      .value = slice.tensor,
                      .problem = "has another shape in the checkpoint",
                      .allowed = "the model that was saved"});
  }
  return part(one, 0, one.slice.count);
}

EncodedSlice Checkpoint::part(const IndexedSlice& slice, std::int64_t first,
                              std::int64_t count) const {
  const Place& place = places_.at({slice.file, slice.name});
  const std::int64_t bytes = execute::bytes_of(place.encoding);
  EncodedSlice out{.encoding = place.encoding};
  out.bytes.resize(at(count * bytes));
  file(slice.file).read(place.tensor, first * bytes, out.bytes);
  return out;
}

}  // namespace placet::checkpoint
