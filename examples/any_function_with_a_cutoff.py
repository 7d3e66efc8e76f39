"""Give up a fit that would run for minutes after five seconds; other fits are not affected."""

from sklearn.datasets import make_classification
from sklearn.svm import SVC

from f2a_tune import CutoffPool


def fit(X, y, C):
    return SVC(kernel="linear", C=C).fit(X, y).score(X, y)


def main():
    X, y = make_classification(1000, 30, flip_y=0.4, random_state=0)
    with CutoffPool(n_workers=2) as pool:
        data = pool.share("X", 100 * X), pool.share("y", y)
        futures = {C: pool.submit(fit, *data, C, cutoff=5) for C in (1e-9, 1e-8, 1e6)}
        for C, future in futures.items():
            outcome = future.result()
            print(f"C={C:g}: {outcome.kind} after {outcome.seconds:.2f} s, score {outcome.value}")


if __name__ == "__main__":
    main()
