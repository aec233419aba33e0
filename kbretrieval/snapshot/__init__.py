"""What is kept in memory: immutable views of one commit of one tenant (VEC-8)."""
