"""What clients see around the objects: discovery, OpenAPI, tables, content negotiation, and the HTTP listener."""
