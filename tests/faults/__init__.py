"""Faults and attacks: killed processes, full disks, flipped bits, races, revocation under way."""
