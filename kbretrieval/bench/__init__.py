"""Side by side with peers: same data, same process, every raw sample kept (performance is a ratio within one run)."""
