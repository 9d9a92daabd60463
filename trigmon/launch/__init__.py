"""The hands: from an order to a running program. Plans are pure values; only starting touches the machine."""
