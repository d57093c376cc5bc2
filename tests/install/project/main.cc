// The memory of a model of the catalogue, through the installed library.
#include <iostream>

#include "catalog/catalog.h"
#include "catalog/job.h"
#include "derive/derive.h"
#include "report/judged.h"

int main() {
  const placet::Catalog catalog = placet::find_catalog();
  const placet::Job job = placet::load_job(catalog, {.model = "llama-3.1-8b",
                                                     .cluster = "h100-sxm:1",
                                                     .placement = "dp=8:zero3",
                                                     .sequence = 8192,
                                                     .global_batch = 64,
                                                     .recompute = "full"});
  const placet::Derivation result = placet::derive(job);
  std::cout << "catalogue " << catalog.root.string() << '\n' << placet::verdict_of(result) << '\n';
}
