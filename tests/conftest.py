"""What every test may use; the fixtures themselves are in tests/ground."""

pytest_plugins = [
    "tests.ground.thrift",
    "tests.ground.outcome",
    "tests.ground.order",
    "tests.ground.exempt",
    "tests.ground.fixtures_database",
    "tests.ground.fixtures_engine",
    "tests.ground.fixtures_services",
]
