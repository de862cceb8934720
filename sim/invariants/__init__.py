"""What must hold at every step of every run, checked from what the API server commits and from what our processes send."""
