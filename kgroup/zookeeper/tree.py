"""An ensemble of one in memory."""
