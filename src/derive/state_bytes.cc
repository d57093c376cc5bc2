#include "derive/state_bytes.h"

#include "units/checked.h"

namespace placet {

StateBytes& StateBytes::operator+=(const StateBytes& other) {
  for (std::size_t s = 0; s < device.size(); ++s) {
    device[s] = checked_add(device[s], other.device[s], "memory");
    host[s] = checked_add(host[s], other.host[s], "host memory");
    nvme[s] = checked_add(nvme[s], other.nvme[s], "NVMe");
  }
  return *this;
}

StateBytes& StateBytes::operator-=(const StateBytes& other) {
  for (std::size_t s = 0; s < device.size(); ++s) {
    device[s] -= other.device[s];
    host[s] -= other.host[s];
    nvme[s] -= other.nvme[s];
  }
  return *this;
}

}  // namespace placet
