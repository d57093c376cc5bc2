// Building blocks of JSON reports. Inside of report/json.
#pragma once

#include <nlohmann/json.hpp>

#include "model/listing.h"
#include "report/explanation.h"
#include "report/judged.h"

namespace placet {

using Json = nlohmann::ordered_json;

/// One memory class with its terms; one communication class; the mesh; the findings.
Json json_of(const Job& job, const MemoryClass& memory);
Json json_of(const Job& job, const CommunicationClass& communication);
Json mesh_json(const Job& job);
Json findings_json(const std::vector<Finding>& findings);

/// The whole derivation as one object.
Json derivation_object(const Judged& judged);

/// What of a model is trained: "parameters", "total", "share", "modules".
Json trained_json(const TrainedPart& part);

/// A part of a peak; null for zero: no peak is known.
Json utilisation_json(double part);
Json explanations_list(const std::vector<Explanation>& explanations);

/// Two spaces of indentation and a final newline. Text that is not UTF-8 has its bytes replaced.
std::string print_json(const Json& json);

}  // namespace placet
