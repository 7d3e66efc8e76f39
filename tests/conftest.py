import os

from hypothesis import settings

# Continuous integration tries the same examples every time; on a desk new ones are tried.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
