"""How a getter becomes LLVM: `outline` holds what all representations share, one module each holds the rest."""
