#include "call/plan_fix.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "call/plan_constraints.h"
#include "catalog/word_file.h"

namespace placet {
namespace {

constexpr std::string_view kDigits = "0123456789";

struct Item {
  std::string name;
  std::string degree;
  std::string terms;  // with the colon in front; empty: none are said
};

Item item_of(const std::string& text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::size_t equals = std::min(text.find('='), colon);
  Item out{.name = text.substr(0, equals), .degree = {}, .terms = text.substr(colon)};
  if (equals < colon) {
    out.degree = text.substr(equals + 1, colon - equals - 1);
    return out;
  }
  // "tp8"
  const std::size_t digits = out.name.find_last_not_of(kDigits) + 1;
  out.degree = out.name.substr(digits);
  out.name.resize(digits);
  return out;
}

std::optional<std::string> axis_called(const Choices& choices, const std::string& name) {
  for (int r = 0; r < kAxisRoleCount; ++r) {
    std::string axis = axis_name(choices, static_cast<AxisRole>(r));
    if (axis == name) return axis;
  }
  return std::nullopt;
}

/// The axis of plans that may have these terms; the first where several may.
std::optional<std::string> axis_having(const Choices& choices, const Vocabulary& vocabulary,
                                       const std::string& terms) {
  const std::string wanted = canonical_terms(terms, vocabulary);
  for (const AxisRole role : {AxisRole::batch, AxisRole::layer, AxisRole::sequence,
                              AxisRole::expert, AxisRole::tensor, AxisRole::replica}) {
    for (const std::string& text : texts_of(choices, role)) {
      if (canonical_terms(text, vocabulary) == wanted) return axis_name(choices, role);
    }
  }
  return std::nullopt;
}

class Fixed {
 public:
  Fixed(const Catalog& catalog, const Choices& choices, const Vocabulary& vocabulary)
      : choices_(choices),
        vocabulary_(vocabulary),
        axes_(load_words(catalog, "axes")),
        strategies_(load_words(catalog, "strategies")) {
    for (const Strategy& one : vocabulary.strategies) names_.push_back(one.name);
    for (const Realisation& one : vocabulary.realisations) names_.push_back(one.name);
  }

  std::string item(const std::string& text) const {
    Item item = item_of(text);
    const std::string name = lower_case(item.name);
    if (auto axis = axis_called(choices_, name)) return said(*axis, item.degree, item.terms);
    for (const Alias& alias : axes_.aliases) {
      if (alias.word != name) continue;
      const auto axis = axis_having(choices_, vocabulary_, alias.means);
      if (axis) return said(*axis, item.degree, item.terms);
    }
    const std::string terms = meant_name(strategies_, names_, item.name).name;
    const auto axis = terms.empty() ? std::nullopt : axis_having(choices_, vocabulary_, terms);
    if (!axis || !item.terms.empty()) return text;
    return said(*axis, item.degree, ":" + terms);
  }

 private:
  static std::string said(const std::string& axis, const std::string& degree,
                          const std::string& terms) {
    return axis + "=" + degree + terms;
  }

  const Choices& choices_;
  const Vocabulary& vocabulary_;
  WordFile axes_, strategies_;
  std::vector<std::string> names_;
};

}  // namespace

std::string meant_fix(const Catalog& catalog, const Choices& choices, const Vocabulary& vocabulary,
                      const std::string& fix) {
  if (fix.empty()) return fix;
  const Fixed fixed(catalog, choices, vocabulary);
  std::string out;
  bool same = true;
  for (const std::string& item : split_outside_brackets(fix, " ,")) {
    const std::string meant = fixed.item(item);
    same = same && meant == item;
    if (!out.empty()) out += ' ';
    out += meant;
  }
  return same ? fix : out;
}

}  // namespace placet
