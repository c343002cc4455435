"""Fuzz targets of each entry point that takes bytes; `run.py` drives them with atheris."""
