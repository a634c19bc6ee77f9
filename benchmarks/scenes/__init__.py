"""Scenes for the doctor: small jobs into which a cause was put whose share of a step is known."""
