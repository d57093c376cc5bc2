# Finds libyaml (YAML 1.1 events, C): imported target LibYaml::LibYaml.
find_path(LibYaml_INCLUDE_DIR yaml.h)
find_library(LibYaml_LIBRARY yaml)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibYaml REQUIRED_VARS LibYaml_LIBRARY LibYaml_INCLUDE_DIR)
if(LibYaml_FOUND AND NOT TARGET LibYaml::LibYaml)
  add_library(LibYaml::LibYaml UNKNOWN IMPORTED)
  set_target_properties(LibYaml::LibYaml PROPERTIES
      IMPORTED_LOCATION "${LibYaml_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${LibYaml_INCLUDE_DIR}")
endif()
mark_as_advanced(LibYaml_INCLUDE_DIR LibYaml_LIBRARY)
