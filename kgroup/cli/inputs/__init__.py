"""Inputs of commands besides the shared options: names and patterns of groups, files of offsets, histories.

Each turns text into values or raises ConfigError with what to write instead.
"""
