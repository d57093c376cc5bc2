#include "profile/choices.h"

namespace placet {

std::string_view name_of(AxisRole role) {
  switch (role) {
    case AxisRole::layer:
      return "layer";
    case AxisRole::replica:
      return "replica";
    case AxisRole::batch:
      return "batch";
    case AxisRole::sequence:
      return "sequence";
    case AxisRole::expert:
      return "expert";
    case AxisRole::tensor:
      return "tensor";
  }
  return "";
}

}  // namespace placet
