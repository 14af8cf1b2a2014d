"""The project's test under hazards, as the documents show it."""

from scenarios.chaos.project_test import ProjectTest


def test_a_galaxy_survives(migration: ProjectTest) -> None:
    migration.load("schema.sql", number=30)
    migration.run(under=["source_killed_in_chunk", "kill_after_target_commit"], changes=600)
    migration.assert_holds()
