"""The frames that are kept of a film. Decoding runs in a process of its own, which may crash, hang or eat memory."""
