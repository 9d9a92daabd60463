"""The post: what client and queue manager say to each other, as bytes. It opens no socket and reads no clock.

PROTOCOL.md beside this file tells the whole conversation.
"""
