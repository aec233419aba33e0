"""Rules that hold for every test of the repository, the doctests of the package included."""

pytest_plugins = ("pytester", "tests.rules")
