"""Speed beside other ways to read the same data: ``python -m benchmarks``."""
