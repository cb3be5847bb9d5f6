"""The deliveries of share groups, without a broker."""
