"""What traffic comes next: planner.md §11."""
