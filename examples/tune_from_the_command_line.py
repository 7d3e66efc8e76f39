"""Run the command: f2a-tune tune digits --estimator svm,knn,linear --budget 20s --report …"""

import subprocess
import sys

command = "tune digits --estimator svm,knn,linear --budget 20s --cv 3 --report digits.html"
subprocess.run([sys.executable, "-m", "f2a_tune", *command.split()], check=True)
