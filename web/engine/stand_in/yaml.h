/* Stands in for libyaml, which is not compiled for a page: its parser does not start, and the reader
   says that the file cannot be read. */
#pragma once

#include <stddef.h>

typedef unsigned char yaml_char_t;

typedef enum yaml_event_type_e {
  YAML_NO_EVENT,
  YAML_STREAM_START_EVENT,
  YAML_STREAM_END_EVENT,
  YAML_DOCUMENT_START_EVENT,
  YAML_DOCUMENT_END_EVENT,
  YAML_ALIAS_EVENT,
  YAML_SCALAR_EVENT,
  YAML_SEQUENCE_START_EVENT,
  YAML_SEQUENCE_END_EVENT,
  YAML_MAPPING_START_EVENT,
  YAML_MAPPING_END_EVENT
} yaml_event_type_t;

typedef struct yaml_mark_s {
  size_t line;
} yaml_mark_t;

typedef struct yaml_event_s {
  yaml_event_type_t type;
  union {
    struct {
      yaml_char_t* anchor;
    } alias;
    struct {
      yaml_char_t* anchor;
      yaml_char_t* value;
      size_t length;
    } scalar;
    struct {
      yaml_char_t* anchor;
    } sequence_start;
    struct {
      yaml_char_t* anchor;
    } mapping_start;
  } data;
  yaml_mark_t start_mark;
} yaml_event_t;

typedef struct yaml_parser_s {
  const char* problem;
  yaml_mark_t problem_mark;
} yaml_parser_t;

static inline int yaml_parser_initialize(yaml_parser_t*) { return 0; }
static inline void yaml_parser_delete(yaml_parser_t*) {}
static inline void yaml_parser_set_input_string(yaml_parser_t*, const unsigned char*, size_t) {}
static inline int yaml_parser_parse(yaml_parser_t*, yaml_event_t*) { return 0; }
static inline void yaml_event_delete(yaml_event_t*) {}
