"""Operational limits of the loop."""

# Ending the last pull takes this long: killing it, writing it down, calling callbacks.
CLOSING_SECONDS = 0.05
# A pull with less time than this is not started.
SHORTEST_PULL_SECONDS = 0.01
# A player without work looks for some this often.
IDLE_SECONDS = 0.005
# After Ctrl-C, players get this long to write down what they have.
INTERRUPT_SECONDS = 10.0
# The progress line is printed, and the bar redrawn, this often.
PROGRESS_LINE_SECONDS = 2.0
PROGRESS_BAR_SECONDS = 0.25
# A process of a joblib backend that starts with less time than this does nothing.
SHORTEST_JOIN_SECONDS = 0.1
