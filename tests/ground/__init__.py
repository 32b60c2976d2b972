"""The ground the tests stand on: engines, registries, proxies, databases, browsers and servers."""
