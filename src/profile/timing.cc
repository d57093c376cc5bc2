#include "profile/timing.h"

namespace placet {

std::string_view name_of(Overlap overlap) {
  switch (overlap) {
    case Overlap::gathers:
      return "gathers";
    case Overlap::reductions:
      return "reductions";
    case Overlap::update:
      return "update";
    case Overlap::stages:
      return "stages";
    case Overlap::tensor_forward:
      return "tensor forward";
    case Overlap::tensor_backward:
      return "tensor backward";
    case Overlap::sequence:
      return "sequence";
    case Overlap::experts:
      return "experts";
    case Overlap::host:
      return "host";
  }
  return "";
}

}  // namespace placet
