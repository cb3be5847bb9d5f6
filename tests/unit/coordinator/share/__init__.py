"""Share groups in the coordinator, without the share coordinator that keeps what was delivered."""
