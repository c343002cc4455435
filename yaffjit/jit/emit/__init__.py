"""How a getter becomes LLVM: `outline` holds what all representations share."""
