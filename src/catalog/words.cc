#include "catalog/words.h"

#include "units/error.h"
#include "units/nearest.h"
#include "units/number.h"

namespace placet {

std::vector<std::string> split_words(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

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

std::optional<Rational> fraction_in(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto numerator = number_in<std::int64_t>(text.substr(0, slash));
  if (!numerator) return std::nullopt;
  if (slash == std::string_view::npos) return Rational(*numerator);
  const auto denominator = number_in<std::int64_t>(text.substr(slash + 1));
  if (!denominator || *denominator <= 0) return std::nullopt;
  return Rational(*numerator, *denominator);
}

Rational read_fraction(const Reader& reader) {
  if (reader.is_whole()) return Rational(reader.whole({INT64_MIN, INT64_MAX}));
  const std::string allowed = "a whole number or a fraction such as \"3/4\"";
  if (!reader.is_text()) reader.fail("is not a fraction", allowed);
  const auto fraction = fraction_in(reader.text());
  if (!fraction) reader.fail("is not a fraction", allowed);
  return *fraction;
}

}  // namespace placet
