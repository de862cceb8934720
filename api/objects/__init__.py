"""Builders of objects that more than one controller makes, as JSON data (Manifest). Pure: same input, same output."""
