"""Program launching: from an order to a running program. A plan is a pure value; only starting it has effects."""
