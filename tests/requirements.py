"""The promises that are kept, by ID, each with the tests that prove it. A module stands for all its tests."""

from __future__ import annotations

KEPT: dict[str, tuple[str, ...]] = {
    "U1": ("api/test_units.py", "api/test_published.py", "api/test_writing.py", "api/test_client.py"),
    "U2": ("api/test_published.py::test_the_schema_names_the_closed_sets_with_when_to_use_each", "api/test_refused_units.py"),
    "U3": ("unit/test_content.py", "unit/test_json_markdown.py", "api/test_refused_units.py"),
    "U4": ("unit/test_batch.py", "api/test_writers_at_once.py", "api/test_lineage_and_pages.py"),
    "U5": ("api/test_published.py::test_the_schema_names_the_closed_sets_with_when_to_use_each",),
    "U6": ("unit/test_importers.py",),
    "U7": ("api/test_kept_intact.py", "unit/test_order_keys.py", "api/test_answers.py::test_as_of_shows_what_was_known_then"),
    "U8": ("api/test_writing.py", "api/test_units.py"),
    "U9": ("api/test_writing.py", "faults/test_crashes.py", "api/test_writers_at_once.py"),
    "U10": ("api/test_kept_intact.py", "api/test_refused_units.py", "unit/test_content.py"),
    "U12": ("governance/test_erasure.py", "governance/test_tenant_erasure.py"),
    "U13": ("governance/test_retention.py",),
    "R1": ("security/test_doors.py",),
    "R3": ("faults/test_deadlines.py", "unit/test_planner.py"),
    "R5": ("api/test_answers.py",),
    "R6": ("api/test_answers.py", "api/test_what_belongs_together.py"),
    "S1": ("api/test_what_belongs_together.py", "unit/test_selection.py", "api/test_answers.py"),
    "A1": ("unit/test_adapters_registry.py",),
    "A2": ("contract/test_adapters.py",),
    "A3": ("unit/test_adapters_order.py",),
    "A5": ("unit/test_adapters_tokenizers.py", "contract/test_adapters.py", "api/test_answers.py"),
    "A7": ("api/test_what_belongs_together.py", "contract/test_adapters.py"),
    "A9": ("unit/test_adapters_fence.py",),
    "T1": ("api/test_units.py::test_a_batch_is_stored_with_its_edges_and_owner", "security/test_tenants.py"),
    "T2": ("security/test_policies.py", "security/test_visibility.py", "cli/test_sharing.py"),
    "T3": ("governance/test_quotas.py", "cli/test_governing.py"),
    "T4": ("governance/test_usage.py", "governance/test_quotas.py", "cli/test_governing.py"),
    "T5": ("security/test_places.py", "security/test_tenants.py", "security/test_policies.py"),
    "T6": ("security/test_keys.py", "security/test_key_rotation.py", "security/test_oidc.py", "security/test_doors.py"),
    "T7": ("security/test_governed_attacks.py", "security/test_leaks.py", "security/test_attacks.py", "security/test_tenants.py"),
    "O1": ("unit/test_documentation.py", "unit/test_deployment.py", "cli/test_commands.py"),
    "O2": ("integration/test_statements_run.py", "integration/test_engines.py"),
    "O3": ("cli/test_commands.py", "api/test_client.py", "api/test_published.py"),
    "O7": ("integration/test_schema.py",),
    "O9": ("faults/test_crashes.py", "faults/test_database_away.py", "integration/test_connection.py"),
}

HOUSE: dict[str, tuple[str, ...]] = {
    "statements": ("unit/test_statements.py", "integration/test_statements_run.py"),
    "promises": ("unit/test_requirements.py",),
    "import": ("unit/test_importing.py", "unit/test_importers.py"),
    "audit": ("governance/test_audit.py", "cli/test_governing.py"),
    "attacks": ("security/test_attacks.py",),
    "refusals": ("api/test_refused_queries.py", "api/test_refused_units.py"),
    "benchmarks": ("unit/test_benchmarks.py",),
}
"""How the house is kept: rules of the design and of the issue that have no ID."""
