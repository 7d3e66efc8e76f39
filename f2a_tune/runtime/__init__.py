"""The loop that both plugins share: choose a call, run it with a cutoff, record the outcome."""
