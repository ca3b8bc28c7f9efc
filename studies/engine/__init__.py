"""What the studies share: protocols, runs, records, verdicts and pages."""
