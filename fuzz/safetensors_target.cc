// Files of tensors: what is read has a header that prints and reads as the same, and tensors that
// lie in the file.
#include "checkpoint/safetensors.h"
#include "target.h"

namespace placet::fuzz {

std::string_view target_name() { return "safetensors"; }

void read_one(std::string_view text) {
  const checkpoint::SafetensorsFile file(write_scratch("tensors.safetensors", text));
  const checkpoint::SafetensorsHeader& header = file.header();
  ensure(checkpoint::header_from(checkpoint::text_of(header), "print") == header,
         "the print of a header reads as the same header");
  std::vector<std::byte> some;
  for (const checkpoint::StoredTensor& tensor : header.tensors) {
    some.resize(static_cast<std::size_t>(tensor.bytes));
    file.read(tensor, 0, some);
  }
}

}  // namespace placet::fuzz
