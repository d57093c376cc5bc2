#include "catalog/words.h"

#include <charconv>

#include "units/error.h"
#include "units/nearest.h"

namespace placet {

std::vector<std::string> dtype_words() {
  return words_of<Dtype>(kDtypeCount, [](Dtype d) { return name_of(d); });
}

Dtype read_dtype(const std::string& text, const std::string& where) {
  if (const auto dtype = dtype_named(text)) return *dtype;
  const std::vector<std::string> words = dtype_words();
  throw InputError({.where = where,
                    .value = text,
                    .problem = "is not a number format",
                    .allowed = list_words(words),
                    .nearest = nearest(text, words)});
}

Dtype read_dtype(const Reader& reader) { return read_dtype(reader.text(), reader.where()); }

Cut read_cut(const Reader& reader) {
  return read_enum<Cut>(reader, kCutCount, [](Cut cut) { return name_of(cut); });
}

Rational read_fraction(const Reader& reader) {
  if (reader.is_whole()) return Rational(reader.whole({INT64_MIN, INT64_MAX}));
  const std::string allowed = "a whole number or a fraction such as \"3/4\"";
  if (!reader.is_text()) reader.fail("is not a fraction", allowed);
  const std::string text = reader.text();
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;
  const char* end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, numerator);
  if (error == std::errc() && at != end && *at == '/') {
    const auto rest = std::from_chars(at + 1, end, denominator);
    at = rest.ptr;
    error = rest.ec;
  }
  if (error != std::errc() || at != end || denominator <= 0) {
    reader.fail("is not a fraction", allowed);
  }
  return {numerator, denominator};
}

}  // namespace placet
