"""What Planner and its plugins say to each other over gRPC: plugin.proto, the code made from it, and conversion to and from records."""
