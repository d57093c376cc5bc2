#include "checkpoint/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "units/checked.h"
#include "units/error.h"

namespace placet::checkpoint {
namespace {

using Sax = nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kAlignment = 8;
constexpr std::size_t kMostTensors = 1'000'000;
constexpr std::size_t kMostDims = 16;
constexpr std::string_view kMetadata = "__metadata__";

constexpr std::array<std::pair<std::string_view, std::int64_t>, 14> kFormats = {{
    {"BOOL", 1},
    {"U8", 1},
    {"I8", 1},
    {"F8_E5M2", 1},
    {"F8_E4M3", 1},
    {"I16", 2},
    {"U16", 2},
    {"F16", 2},
    {"BF16", 2},
    {"I32", 4},
    {"U32", 4},
    {"F32", 4},
    {"F64", 8},
    {"I64", 8},
}};

/// Reads the header event by event, so that hostile text takes no more room than a good one.
class HeaderReader : public nlohmann::json_sax<Sax> {
 public:
  HeaderReader(std::string where, SafetensorsHeader& out) : where_(std::move(where)), out_(out) {}

  bool null() override { return refuse_value("null"); }
  bool boolean(bool) override { return refuse_value("true or false"); }
  bool number_integer(number_integer_t) override { return refuse_value("a negative number"); }
  bool number_float(number_float_t, const string_t& text) override { return refuse_value(text); }
  bool binary(binary_t&) override { return refuse_value("binary"); }

  bool number_unsigned(number_unsigned_t value) override {
    const bool fits = std::in_range<std::int64_t>(value);
    if (list_ == List::none || !fits) return refuse_value(std::to_string(value));
    std::vector<std::int64_t>& numbers = list_ == List::shape ? tensor_.shape : offsets_;
    const std::size_t most = list_ == List::shape ? kMostDims : 2;
    if (numbers.size() == most) fail("has too many numbers in '" + key_ + "'");
    numbers.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(string_t& text) override {
    if (in_metadata_ && depth_ == 2) {
      out_.metadata[key_] = text;
      return true;
    }
    if (depth_ != 2 || key_ != "dtype") return refuse_value(text);
    tensor_.dtype = text;
    return true;
  }

  bool start_object(std::size_t) override {
    if (list_ != List::none || ++depth_ > 2) return refuse_value("an object");
    if (depth_ == 2 && !in_metadata_) {
      tensor_ = StoredTensor{.name = name_};
      offsets_.clear();
      keys_.clear();
    }
    return true;
  }

  bool key(string_t& text) override {
    if (depth_ == 1) return begin_member(text);
    key_ = text;
    if (in_metadata_) {
      if (out_.metadata.contains(text)) fail("is given '" + text + "' twice");
      return true;
    }
    if (text != "dtype" && text != "shape" && text != "data_offsets") {
      fail("has the unknown key '" + text + "'");
    }
    if (std::ranges::find(keys_, text) != keys_.end()) fail("is given '" + text + "' twice");
    keys_.push_back(text);
    return true;
  }

  bool end_object() override {
    if (depth_-- == 2 && !in_metadata_) add_tensor();
    return true;
  }

  bool start_array(std::size_t) override {
    const bool numbers = depth_ == 2 && !in_metadata_ && list_ == List::none && key_ != "dtype";
    if (!numbers) return refuse_value("a list");
    list_ = key_ == "shape" ? List::shape : List::offsets;
    return true;
  }
  bool end_array() override {
    list_ = List::none;
    return true;
  }

  bool parse_error(std::size_t place, const std::string&,
                   const nlohmann::detail::exception&) override {
    throw InputError(
        {.where = where_,
         .problem = "has a header that is not JSON, at its byte " + std::to_string(place),
         .allowed = "a safetensors file"});
  }

 private:
  enum class List : std::uint8_t { none, shape, offsets };

  bool begin_member(const std::string& text) {
    name_ = text;
    in_metadata_ = text == kMetadata;
    if (!names_.insert({text, names_.size()}).second) fail("is given twice");
    if (names_.size() > kMostTensors) fail("is one tensor too many");
    return true;
  }

  bool refuse_value(const std::string& value) {
    throw InputError({.where = where_ + ": " + (name_.empty() ? "header" : name_),
                      .value = value,
                      .problem = "does not belong there",
                      .allowed = "tensors with 'dtype', 'shape' and 'data_offsets'"});
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw InputError({.where = where_, .value = name_, .problem = problem});
  }

  void add_tensor() {
    if (keys_.size() != 3 || offsets_.size() != 2) {
      fail("lacks one of 'dtype', 'shape' and 'data_offsets'");
    }
    if (offsets_[1] < offsets_[0]) fail("ends before it begins");
    tensor_.begin = offsets_[0];
    tensor_.bytes = offsets_[1] - offsets_[0];
    std::int64_t bytes = bytes_of_entry(tensor_.dtype, where_ + ": " + name_);
    for (const std::int64_t n : tensor_.shape) bytes = checked_multiply(bytes, n, "bytes");
    if (bytes != tensor_.bytes) {
      fail("takes " + std::to_string(tensor_.bytes) +
           " bytes, where its shape and format ask for " + std::to_string(bytes));
    }
    out_.tensors.push_back(tensor_);
  }

  std::string where_;
  SafetensorsHeader& out_;
  int depth_ = 0;
  bool in_metadata_ = false;
  List list_ = List::none;
  std::string name_, key_;
  std::map<std::string, std::size_t> names_;
  StoredTensor tensor_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::string> keys_;
};

[[noreturn]] void fail_reading(const std::string& where, const std::string& problem) {
  throw InputError({.where = where, .problem = problem, .allowed = "a safetensors file"});
}

}  // namespace

std::int64_t bytes_of_entry(const std::string& dtype, const std::string& where) {
  for (const auto& [name, bytes] : kFormats) {
    if (name == dtype) return bytes;
  }
  throw InputError({.where = where,
                    .value = dtype,
                    .problem = "is no format of safetensors",
                    .allowed = "F32, F64, F16, BF16, I64 or another one that it has"});
}

SafetensorsHeader header_from(std::string_view text, const std::string& where) {
  if (!text.starts_with('{')) fail_reading(where, "has no header that begins with '{'");
  SafetensorsHeader header;
  HeaderReader reader(where, header);
  try {
    Sax::sax_parse(text, &reader);
  } catch (const nlohmann::json::exception&) {
    fail_reading(where, "has a header with a number beyond what JSON readers handle");
  }
  std::ranges::stable_sort(header.tensors, {}, &StoredTensor::begin);
  std::int64_t end = 0;
  for (const StoredTensor& tensor : header.tensors) {
    if (tensor.begin != end) {
      throw InputError({.where = where,
                        .value = tensor.name,
                        .problem = "begins at byte " + std::to_string(tensor.begin) +
                                   ", where the tensor before it ends at byte " +
                                   std::to_string(end)});
    }
    end = checked_add(end, tensor.bytes, "bytes");
  }
  return header;
}

std::string text_of(const SafetensorsHeader& header) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) out[std::string(kMetadata)] = header.metadata;
  std::string text = out.dump();
  text.pop_back();
  // Members one by one: the library looks through all keys for each that is added.
  std::int64_t begin = 0;
  for (const StoredTensor& tensor : header.tensors) {
    if (text.size() > 1) text += ",";
    const nlohmann::ordered_json one{{"dtype", tensor.dtype},
                                     {"shape", tensor.shape},
                                     {"data_offsets", {begin, begin + tensor.bytes}}};
    text += nlohmann::json(tensor.name).dump() + ":" + one.dump();
    begin += tensor.bytes;
  }
  text += "}";
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  return text;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : where_(path.string()) {
  file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) {
    throw InputError({.where = where_,
                      .problem = std::string("the file cannot be read: ") + std::strerror(errno)});
  }
  try {
    open_and_read();
  } catch (...) {
    ::close(file_);
    throw;
  }
}

void SafetensorsFile::open_and_read() {
  struct stat status {};
  if (fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) fail_reading(where_, "is no file");
  std::array<std::byte, kLengthBytes> first{};
  if (status.st_size < static_cast<off_t>(kLengthBytes)) fail_reading(where_, "is too short");
  read_at(0, first);
  std::uint64_t length = 0;
  for (std::size_t k = kLengthBytes; k-- > 0;) {
    length = length << 8U | std::to_integer<std::uint64_t>(first[k]);
  }
  const auto rest = static_cast<std::uint64_t>(status.st_size) - kLengthBytes;
  if (length > kMostHeaderBytes || length > rest) {
    fail_reading(where_, "says that its header has " + std::to_string(length) + " bytes, of " +
                             std::to_string(rest) + " that are there (at most " +
                             std::to_string(kMostHeaderBytes) + " are read)");
  }
  std::string text(length, '\0');
  read_at(kLengthBytes, std::as_writable_bytes(std::span(text.data(), text.size())));
  header_ = header_from(text, where_);
  data_ = static_cast<std::int64_t>(kLengthBytes + length);
  if (header_.bytes() != status.st_size - data_) {
    fail_reading(where_, "has " + std::to_string(status.st_size - data_) +
                             " bytes of tensors, where its header speaks of " +
                             std::to_string(header_.bytes()));
  }
}

SafetensorsFile::~SafetensorsFile() {
  if (file_ >= 0) ::close(file_);
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : where_(std::move(other.where_)),
      file_(std::exchange(other.file_, -1)),
      data_(other.data_),
      header_(std::move(other.header_)) {}

void SafetensorsFile::read_at(std::int64_t place, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t count = pread(file_, to.data(), to.size(), place);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      fail_reading(where_, count == 0 ? std::string("ends too early")
                                      : std::string("cannot be read: ") + std::strerror(errno));
    }
    to = to.subspan(static_cast<std::size_t>(count));
    place += count;
  }
}

void SafetensorsFile::read(const StoredTensor& tensor, std::int64_t offset,
                           std::span<std::byte> to) const {
  const auto size = static_cast<std::int64_t>(to.size());
  ensure(offset >= 0 && offset + size <= tensor.bytes, "what is read lies in the tensor");
  read_at(data_ + tensor.begin + offset, to);
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     const SafetensorsHeader& header, std::string flag)
    : path_(path.string()), flag_(std::move(flag)) {
  file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  const std::string text = text_of(header);
  std::array<std::byte, kLengthBytes> first{};
  for (std::size_t k = 0; k < kLengthBytes; ++k) {
    first[k] = static_cast<std::byte>(text.size() >> (8 * k) & 0xffU);
  }
  left_ = static_cast<std::int64_t>(kLengthBytes + text.size());
  for (const StoredTensor& tensor : header.tensors) left_ += tensor.bytes;
  write(first);
  write(std::as_bytes(std::span(text.data(), text.size())));
}

SafetensorsWriter::~SafetensorsWriter() {
  if (file_ >= 0) ::close(file_);
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  left_ -= static_cast<std::int64_t>(bytes.size());
  while (!bytes.empty() || file_ < 0) {
    const ssize_t count = file_ < 0 ? -1 : ::write(file_, bytes.data(), bytes.size());
    if (count < 0 && file_ >= 0 && errno == EINTR) continue;
    if (count < 0) {
      throw InputError({.where = flag_,
                        .value = path_,
                        .problem = std::string("cannot be written: ") + std::strerror(errno)});
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void SafetensorsWriter::close() {
  ensure(left_ == 0, "a file of tensors has all the bytes that its header speaks of");
  const int synced = fsync(file_) == 0 || errno == EINVAL ? 0 : errno;
  const int closed = ::close(std::exchange(file_, -1)) == 0 ? 0 : errno;
  if (synced == 0 && closed == 0) return;
  throw InputError({.where = flag_,
                    .value = path_,
                    .problem = std::string("cannot be written: ") +
                               std::strerror(synced != 0 ? synced : closed)});
}

}  // namespace placet::checkpoint
