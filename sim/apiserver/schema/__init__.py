"""What objects of a kind look like: schemas of built-in kinds and of custom resources, and what they allow."""
