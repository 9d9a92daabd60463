"""The words: MQ's vocabulary as Python values, and the calls that carry them."""
