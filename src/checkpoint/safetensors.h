// Files of tensors in the safetensors format (docs/formats.md, section 19): eight bytes that give
// the length of a header, the header as JSON, then the tensors' bytes one after the other.
//
// The reader is strict. Tensors fill the rest of the file without gaps, each as long as its shape
// and format say, so that a truncated, padded or foreign file is refused before a number is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace placet::checkpoint {

struct StoredTensor {
  std::string name;
  std::string dtype;  // as the format spells it: "F32", "BF16", "I64"
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;  // behind the header
  std::int64_t bytes = 0;

  friend bool operator==(const StoredTensor&, const StoredTensor&) = default;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // by place in the file
  std::map<std::string, std::string> metadata;

  std::int64_t bytes() const {
    return tensors.empty() ? 0 : tensors.back().begin + tensors.back().bytes;
  }

  friend bool operator==(const SafetensorsHeader&, const SafetensorsHeader&) = default;
};

/// Headers longer than this are refused.
inline constexpr std::size_t kMostHeaderBytes = std::size_t{16} << 20;

/// Bytes of one entry: 4 of "F32". Throws InputError for a format that safetensors does not have.
std::int64_t bytes_of_entry(const std::string& dtype, const std::string& where);

/// Reads the text between the first eight bytes and the tensors. `where` names the file. Throws
/// InputError with the tensor and what is wrong.
SafetensorsHeader header_from(std::string_view text, const std::string& where);
/// The text of a header, filled up with spaces to a multiple of eight bytes. Places follow from the
/// order of the tensors; `begin` is not looked at.
std::string text_of(const SafetensorsHeader& header);

/// An open file whose header has been read and agrees with its length.
class SafetensorsFile {
 public:
  /// Throws InputError where it cannot be read or is no such file.
  explicit SafetensorsFile(const std::filesystem::path& path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) = delete;

  const SafetensorsHeader& header() const { return header_; }
  const std::string& where() const { return where_; }
  /// Bytes of the tensor from `offset` on. Throws InputError where the file does not give them.
  void read(const StoredTensor& tensor, std::int64_t offset, std::span<std::byte> to) const;

 private:
  void read_at(std::int64_t place, std::span<std::byte> to) const;
  void open_and_read();

  std::string where_;
  int file_ = -1;
  std::int64_t data_ = 0;  // where the tensors begin
  SafetensorsHeader header_;
};

/// Writes one file: the header at once, then the tensors' bytes in its order.
class SafetensorsWriter {
 public:
  /// Throws InputError that speaks of `flag` where the file cannot be written.
  SafetensorsWriter(const std::filesystem::path& path, const SafetensorsHeader& header,
                    std::string flag);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  void write(std::span<const std::byte> bytes);
  /// All is on the disk. REQUIRES: as many bytes were written as the header says.
  void close();

 private:
  std::string path_;
  std::string flag_;
  int file_ = -1;
  std::int64_t left_ = 0;
};

}  // namespace placet::checkpoint
