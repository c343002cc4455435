"""Features of a tree of messages of one type."""

from __future__ import annotations

from typing import Any

MESSAGE = "features.Node"


def left_depth(node: Any) -> Any:
    depth = 0
    while node.HasField("left"):
        node = node.left
        depth += 1
    return depth, node.name


def size(node: Any) -> Any:
    """Without recursion: nodes that are left to visit are kept in a list."""
    count = 0
    left = [node]
    while len(left) > 0:
        at = left.pop()
        count += 1
        if at.HasField("left"):
            left.append(at.left)
        if at.HasField("right"):
            left.append(at.right)
        for other in at.others:
            left.append(other)
    return count


def grandchildren(node: Any) -> Any:
    names = 0
    for child in node.others:
        for grandchild in child.others:
            names += len(grandchild.name)
    return names


def far_below(node: Any) -> Any:
    """Absent nodes read as empty ones, however deep."""
    return node.left.right.left.value, node.left.left.left.left.name, len(node.right.right.others)


def find(node: Any) -> Any:
    """The value of the nearest node of a name on the way down to the right."""
    while node.name != "goal" and node.HasField("right"):
        node = node.right
    return node.value if node.name == "goal" else -1.0
