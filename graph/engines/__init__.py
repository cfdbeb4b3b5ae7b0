"""Where a database comes from: a given Neo4j, the embedded engine as a child process, or a local Neo4j for tests.

Each module is one engine and answers the protocol in ``base``; nothing is imported here, so that choosing one engine does not load
what another needs.
"""
