from f2a_tune import WaitUCBPruner
from f2a_tune import WaitUCBSampler


__all__ = ["WaitUCBPruner", "WaitUCBSampler"]
