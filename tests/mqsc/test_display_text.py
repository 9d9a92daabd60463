"""The output of runmqsc's DISPLAY, read back as words and values."""

from __future__ import annotations

from trigmon.mqsc.display_text import names_not_found, read_blocks

TEXT = """\
Starting MQSC for queue manager QM2.

     1 : DISPLAY QLOCAL(PAY) ALL
AMQ8409I: Display Queue details.
   QUEUE(PAY)                              TYPE(QLOCAL)
   DESCR(what is paid (in euros)) and due))
   CUSTOM( )                               CURDEPTH(12)
   GET(ENABLED)                            INITQ( )
   NOTRIGGER                               USAGE(NORMAL)
     2 : DISPLAY PROCESS(NONE)
AMQ8147E: IBM MQ object NONE not found.
AMQ8450: Display queue status details.
   QUEUE(PAY)                              TYPE(HANDLE)
   APPLTAG(amqsget)                        PID(4711)
2 MQSC commands read.
"""


def test_blocks_hold_words_with_values_and_words_without():
    queue, handle = read_blocks(TEXT)
    assert queue == {
        "QUEUE": "PAY",
        "TYPE": "QLOCAL",
        "DESCR": "what is paid (in euros)) and due)",
        "CUSTOM": " ",
        "CURDEPTH": "12",
        "GET": "ENABLED",
        "INITQ": " ",
        "NOTRIGGER": "",
        "USAGE": "NORMAL",
    }
    assert handle == {"QUEUE": "PAY", "TYPE": "HANDLE", "APPLTAG": "amqsget", "PID": "4711"}


def test_what_was_not_found_is_known_by_name():
    assert "NONE" in names_not_found(TEXT)
    assert "PAY" not in names_not_found(TEXT)


def test_rows_of_no_block_and_prose_are_passed_over():
    assert read_blocks("   QUEUE(PAY)   TYPE(QLOCAL)\n") == []
    assert read_blocks("AMQ8409I: Display Queue details.\nthis is prose\n   QUEUE(PAY)\n") == []
