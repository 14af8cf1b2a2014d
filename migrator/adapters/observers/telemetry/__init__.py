"""OpenTelemetry: metrics, events and batches of a run, sent where the standard environment variables say."""
