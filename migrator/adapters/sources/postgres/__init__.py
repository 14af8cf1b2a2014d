"""PostgreSQL as a source: catalog, preflight, log reader (pgoutput), chunk reader, visibility witness,
watermark.
"""
