"""The command `pytest` as its console script runs it: the folder that it is called in is not put on the path."""

import sys

import pytest

if __name__ == "__main__":
    sys.argv[0] = "pytest"
    sys.exit(pytest.main())
