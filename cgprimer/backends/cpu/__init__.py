"""The fast engine for this machine's processor: tapes become machine code through LLVM."""
