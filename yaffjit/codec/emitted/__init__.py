"""Protobuf bytes to YaFF bytes by machine code of each schema's own: LLVM's IR, emitted without source text.

Straight cases only: a message with anything rare in it is left to the kernel for all schemas, and so is every
message that isn't accepted. What is rare is found exactly:

* parts of one message that must be merged, a text that protobuf checks given twice, two members of one oneof;
* a repeated field whose occurrences don't follow each other, or are packed and not packed;
* numbers that a closed enum doesn't have; pairs of a map with an unknown field, a key twice in a map, and a
  large map far from sorted;
* groups, padded tags, messages nested deeper than `MAX_DEPTH`.
"""
