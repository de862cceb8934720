"""An asyncio event loop with virtual time and a seeded order of what is ready: the same seed always runs the same."""
