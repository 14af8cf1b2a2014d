"""Playing a scenario: the stage, the faults, the run, what came of it."""
