"""The MQI for programs that were written for IBM MQ: bytes in and out, over the Python client."""
