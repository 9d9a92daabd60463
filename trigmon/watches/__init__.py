"""Watches: each file that arrives in a directory becomes one message, once.

A process of its own, which ``trigmon run`` keeps beside the queue manager while a watch is defined: a directory that
hangs holds up no queue. It is a client like any other. ``directory.py`` is what it does with files,
``record_queue.py`` what it does with messages, ``watch.py`` the steps of one watch and ``service.py`` all of them.
"""
