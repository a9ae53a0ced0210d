"""Translates the settings into the plain arguments of each part: limits, rules, models and stores."""
