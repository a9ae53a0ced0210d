"""Models that hear: samples of a window in, segments of text with their times out."""
