"""Decodes the sound of audio and video files in a sandbox, and cuts it at pauses into windows, pulled one by one.

A file of hours is never in memory as samples: the process has the file and the current window, the server the windows
that are being heard.
"""
