"""Feature functions as people write them for protobuf messages; none of them knows of jit.

Each module here holds the functions of one message type: every public function that it defines takes one
message (of `records.py`: many). `MESSAGE` is the full name of the type.
"""
