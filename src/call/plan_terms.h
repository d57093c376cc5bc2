// What a plan is worth: prices of devices, tokens to train on, numbers of devices to compare. Words
// of the command line made values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "profile/job.h"

namespace placet {

/// "15T", "300B", "1.5e12": tokens; 0 of an empty text. Throws InputError.
double read_tokens(const std::string& text);

/// Puts "h100-sxm=2.5,a100-80gb-sxm=1.2", or one number for all, into the devices of the cluster.
/// Throws InputError for a device that the cluster has not.
void set_prices(const std::string& text, Cluster& cluster);

/// "64,128,256", rising. Throws InputError.
std::vector<std::int64_t> read_scale(const std::string& text);

/// A cluster of so many of the devices that `text`, as --cluster takes it, names. Throws InputError
/// of --scale unless it is "DEVICE:HOSTS" or "NUMBERxDEVICE" and can have as many.
Cluster scaled_cluster(const Catalog& catalog, const std::string& text, std::int64_t devices);

}  // namespace placet
