"""The web console: a process of its own, a client of the queue manager, that renders pages for a browser.

Nothing here is loaded from a network, and no page holds script: one file of styles and one of script are shipped.
"""
