"""Columns of many messages as machine code: loops over rows that follow all paths at once."""
