// Clusters: the word of the flag, or, where the text begins like an object, a file.
#include "catalog/cluster_catalog.h"
#include "target.h"

namespace placet::fuzz {

std::string_view target_name() { return "cluster"; }

void read_one(std::string_view text) {
  static const Catalog kCatalog = find_catalog();
  std::string word(text);
  if (text.starts_with('{')) {
    word = "64x" + write_scratch("fuzz.json", text).string();
  } else if (word.find('/') != std::string::npos) {
    return;  // no files of this machine
  }
  const Cluster cluster = load_cluster(kCatalog, word, 64, "--cluster");
  ensure(devices_of(cluster) > 0, "a cluster has devices");
}

}  // namespace placet::fuzz
