"""Print the dependencies of a pyproject.toml as constraints that pin each to its lower bound."""

import sys

import tomli
from packaging.requirements import Requirement

with open(sys.argv[1], "rb") as file:
    project = tomli.load(file)["project"]
for text in project["dependencies"]:
    requirement = Requirement(text)
    bounds = [specifier.version for specifier in requirement.specifier if specifier.operator == ">="]
    if len(bounds) != 1:
        sys.exit(f"{text}: one lower bound is wanted, found {len(bounds)}")
    print(f"{requirement.name}=={bounds[0]}")
