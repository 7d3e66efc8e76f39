"""Repeat the paper's six experiments on a small scale, and add a policy with less regret."""

import sys

from f2a_tune.bandit import PAPER_POLICIES, PAPER_SCENARIOS, scenario, simulate
from f2a_tune.visualization.matplotlib import plot_regret


def main(file="paper.png", budget=1e5):
    results = []
    for name in PAPER_SCENARIOS:
        for policy in (*PAPER_POLICIES, "wilson-programming"):
            results.append(simulate(scenario(name), policy, budget, runs=5))
            print(f"{name:10} {policy:20} regret {results[-1].mean()[-1]:10.1f}")
    plot_regret(results).savefig(file)
    print("wrote", file)


if __name__ == "__main__":
    main(*sys.argv[1:2])
