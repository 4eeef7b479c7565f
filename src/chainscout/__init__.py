"""chainscout."""
