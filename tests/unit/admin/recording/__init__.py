"""Tests of kgroup.admin.recording."""
