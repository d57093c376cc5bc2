// The text of a file that somebody named: bounded, and never waited for in vain.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace placet {

/// The bytes of the file, device or pipe at `path`, without the byte order mark that some editors
/// begin a file with. Throws InputError if it is a folder, cannot be
/// read, holds more than `most` bytes, or is a pipe to which nobody writes. `what` says in messages
/// what should be there: "a table".
std::string read_file_text(const std::filesystem::path& path, std::size_t most,
                           const std::string& what);

/// The first bytes of a file, at most so many; none where it cannot be read.
std::string read_file_front(const std::filesystem::path& path, std::size_t most);

}  // namespace placet
