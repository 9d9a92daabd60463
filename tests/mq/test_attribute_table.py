"""The one attribute table holds MQ's words, selectors, ranges and defaults, and its errors name all that was wrong."""

import pytest

from trigmon.mq.attributes import (
    ATTRIBUTES,
    KINDS,
    STATUS,
    find_attribute,
    read_attributes,
)
from trigmon.mq.compatibility import CommandServerControl, Platform
from trigmon.mq.enums import (
    ApplType,
    CapExpiry,
    DefinitionType,
    DefInputOpenOption,
    ExpiryInterval,
    HardenGetBackout,
    Inhibit,
    MsgDeliverySequence,
    ObjectType,
    Persistence,
    QsgDisp,
    Shareability,
    TriggerControl,
    TriggerType,
    Usage,
)
from trigmon.mq.errors import AttrValueError, AttrValueFixed, SelectorError
from trigmon.mq.event_kinds import EventRule, ServiceIntervalEvent

# word, long name, IBM's selector, default: the table of DEFINE QLOCAL, line by line.
QLOCAL = [
    ("DESCR", "description", 2013, ""),
    ("GET", "inhibit_get", 9, Inhibit.ALLOWED),
    ("PUT", "inhibit_put", 10, Inhibit.ALLOWED),
    ("DEFPRTY", "def_priority", 6, 0),
    ("DEFPSIST", "def_persistence", 5, Persistence.NOT_PERSISTENT),
    ("DEFSOPT", "def_input_open_option", 4, DefInputOpenOption.INPUT_SHARED),
    ("SHARE", "shareability", 23, Shareability.SHAREABLE),
    ("MAXDEPTH", "max_q_depth", 15, 5000),
    ("MAXMSGL", "max_msg_length", 13, 4_194_304),
    ("MSGDLVSQ", "msg_delivery_sequence", 16, MsgDeliverySequence.PRIORITY),
    ("USAGE", "usage", 12, Usage.NORMAL),
    ("BOTHRESH", "backout_threshold", 22, 0),
    ("BOQNAME", "backout_requeue_q_name", 2019, ""),
    ("HARDENBO", "harden_get_backout", 8, HardenGetBackout.HARDENED),
    ("TRIGGER", "trigger_control", 24, TriggerControl.OFF),
    ("TRIGTYPE", "trigger_type", 28, TriggerType.FIRST),
    ("TRIGDPTH", "trigger_depth", 29, 1),
    ("TRIGMPRI", "trigger_msg_priority", 26, 0),
    ("TRIGDATA", "trigger_data", 2023, ""),
    ("PROCESS", "process_name", 2012, ""),
    ("INITQ", "initiation_q_name", 2008, ""),
    ("CAPEXPRY", "cap_expiry", 276, CapExpiry.NOLIMIT),
    ("CFSTRUCT", "cf_struc_name", 2039, ""),
    ("QDEPTHHI", "q_depth_high_limit", 40, 80),
    ("QDEPTHLO", "q_depth_low_limit", 41, 20),
    ("QDPMAXEV", "q_depth_max_event", 42, EventRule.ENABLED),
    ("QDPHIEV", "q_depth_high_event", 43, EventRule.DISABLED),
    ("QDPLOEV", "q_depth_low_event", 44, EventRule.DISABLED),
    ("QSVCINT", "q_service_interval", 54, 999_999_999),
    ("QSVCIEV", "q_service_interval_event", 46, ServiceIntervalEvent.NONE),
    ("QSGDISP", "qsg_disp", 63, QsgDisp.Q_MGR),
    ("DEFTYPE", "definition_type", 7, DefinitionType.PREDEFINED),
]
QMODEL = [*QLOCAL[:-1], ("DEFTYPE", "definition_type", 7, DefinitionType.TEMPORARY_DYNAMIC)]
QREMOTE = [
    ("RNAME", "remote_q_name", 2018, ""),
    ("RQMNAME", "remote_q_mgr_name", 2017, ""),
    ("XMITQ", "xmit_q_name", 2024, ""),
    ("DESCR", "description", 2013, ""),
    ("PUT", "inhibit_put", 10, Inhibit.ALLOWED),
    ("DEFPRTY", "def_priority", 6, 0),
    ("DEFPSIST", "def_persistence", 5, Persistence.NOT_PERSISTENT),
    ("CAPEXPRY", "cap_expiry", 276, CapExpiry.NOLIMIT),
    ("QSGDISP", "qsg_disp", 63, QsgDisp.Q_MGR),
]
NAMELIST = [
    ("DESCR", "description", 2009, ""),
    ("NAMES", "names", 2020, ()),
    ("NAMCOUNT", "name_count", 19, 0),
    ("QSGDISP", "qsg_disp", 63, QsgDisp.Q_MGR),
]
PROCESS = [
    ("DESCR", "description", 2011, ""),
    ("APPLTYPE", "appl_type", 1, ApplType.UNIX),
    ("APPLICID", "appl_id", 2001, ""),
    ("ENVRDATA", "env_data", 2007, ""),
    ("USERDATA", "user_data", 2021, ""),
]
QMGR = [
    ("DESCR", "description", 2014, ""),
    ("TRIGINT", "trigger_interval", 25, 999_999_999),
    ("DEADQ", "dead_letter_q_name", 2006, ""),
    ("DEFXMITQ", "def_xmit_q_name", 2025, ""),
    ("MAXUMSGS", "max_uncommitted_msgs", 33, 10_000),
    ("MAXHANDS", "max_handles", 11, 256),
    ("MAXMSGL", "max_msg_length", 13, 4_194_304),
    ("MAXPRTY", "max_priority", 14, 9),
    ("EXPRYINT", "expiry_interval", 39, ExpiryInterval.OFF),
    ("PERFMEV", "performance_event", 53, EventRule.DISABLED),
    ("SCMDSERV", "command_server_control", 120, CommandServerControl.Q_MGR),
    ("CMDLEVEL", "command_level", 31, 940),
    ("VERSION", "version", 2120, "09040000"),
    ("PLATFORM", "platform", 32, Platform.UNIX),
    ("CCSID", "coded_char_set_id", 2, 1208),
    ("COMMANDQ", "command_input_q_name", 2003, "SYSTEM.ADMIN.COMMAND.QUEUE"),
    ("QMID", "q_mgr_identifier", 2032, ""),
]


@pytest.mark.parametrize(
    ("which", "word", "name", "selector", "default"),
    [(ObjectType.QLOCAL, *row) for row in QLOCAL]
    + [(ObjectType.QMODEL, *row) for row in QMODEL]
    + [(ObjectType.QREMOTE, *row) for row in QREMOTE]
    + [(ObjectType.NAMELIST, *row) for row in NAMELIST]
    + [(ObjectType.PROCESS, *row) for row in PROCESS]
    + [(ObjectType.QMGR, *row) for row in QMGR]
    + [
        (ObjectType.QALIAS, "TARGET", "base_q_name", 2002, ""),
        (ObjectType.QALIAS, "CAPEXPRY", "cap_expiry", 276, CapExpiry.NOLIMIT),
        (ObjectType.QALIAS, "QSGDISP", "qsg_disp", 63, QsgDisp.Q_MGR),
    ],
)
def test_an_attribute_has_mqs_word_selector_and_default(which, word, name, selector, default):
    attribute = find_attribute(which, word)
    assert (attribute.name, attribute.mqsc, attribute.selector) == (name, word, selector)
    assert attribute.default == default
    assert getattr(KINDS[which](name="X"), name) == default


@pytest.mark.parametrize(
    ("which", "rows"), [(ObjectType.QLOCAL, QLOCAL), (ObjectType.QMODEL, QMODEL), (ObjectType.QREMOTE, QREMOTE)]
)
def test_the_table_of_a_queue_has_no_attribute_beside_those_listed_here(which, rows):
    ours = {a.mqsc for a in ATTRIBUTES[which].values() if a.ours}
    assert ours == (set() if which is ObjectType.QREMOTE else {"REARM", "BACKSTOP", "MAXWAIT", "BOREQ"})
    assert ours | {row[0] for row in rows} == {a.mqsc for a in ATTRIBUTES[which].values()}


def test_only_a_local_queue_can_be_shared_by_a_group():
    assert read_attributes(ObjectType.QLOCAL, "Q", {"QSGDISP": "shared"}) == {"qsg_disp": QsgDisp.SHARED}
    for which in (ObjectType.QMODEL, ObjectType.QALIAS, ObjectType.QREMOTE):
        with pytest.raises(AttrValueError, match="qsg_disp must be QMGR or COPY or GROUP"):
            read_attributes(which, "Q", {"QSGDISP": "SHARED"})
        assert read_attributes(which, "Q", {"QSGDISP": "GROUP"}) == {"qsg_disp": QsgDisp.GROUP}


def test_the_structure_of_a_shared_queue_has_a_name_of_twelve_characters():
    assert read_attributes(ObjectType.QLOCAL, "Q", {"CFSTRUCT": "APPLICATION1"}) == {"cf_struc_name": "APPLICATION1"}
    with pytest.raises(AttrValueError, match="text of at most 12 bytes"):
        read_attributes(ObjectType.QLOCAL, "Q", {"CFSTRUCT": "APPLICATION12"})


def test_how_a_queue_is_made_is_an_attribute_of_its_model_and_of_no_local_queue():
    for said, meant in [
        ("PERMDYN", DefinitionType.PERMANENT_DYNAMIC),
        ("temporary_dynamic", DefinitionType.TEMPORARY_DYNAMIC),
    ]:
        assert read_attributes(ObjectType.QMODEL, "M", {"DEFTYPE": said}) == {"definition_type": meant}
        with pytest.raises(AttrValueFixed, match=r"DEFTYPE.*cannot be changed"):
            read_attributes(ObjectType.QLOCAL, "Q", {"DEFTYPE": said})
    with pytest.raises(AttrValueError, match="PERMDYN or TEMPDYN"):
        read_attributes(ObjectType.QMODEL, "M", {"DEFTYPE": "PREDEFINED"})


def test_what_a_process_has_beyond_mq_is_marked_as_ours():
    ours = {a.mqsc for a in ATTRIBUTES[ObjectType.PROCESS].values() if a.ours}
    launching = {
        "INSTANCES",
        "COALESCE",
        "OPENWAIT",
        "RETRY",
        "RETRYWAIT",
        "BREAKER",
        "UNKNOWN",
        "RECOVER",
        "TIMELIMIT",
    }
    limits = {"TMCARG", "SHELL", "MEMLIMIT", "CPULIMIT", "FILELIMIT", "RUNAS", "SECRETS"}
    spark = {"START", "ISOL", "SHORT", "MASTER", "DEPLOY", "NAME", "CLASS", "CONF", "PYFILES", "FILES", "ARCHS", "JARS"}
    spark |= {"PKGS", "DRVMEM", "DRVCORES", "EXCMEM", "EXCCORES", "EXECS", "PRINC", "KEYTAB", "ENV", "ARGS"}
    assert ours == launching | limits | {"WORKDIR", "VIRTENV", "WARM", "WARMMODS"} | {f"SPK{word}" for word in spark}
    assert ours | {row[0] for row in PROCESS} == {a.mqsc for a in ATTRIBUTES[ObjectType.PROCESS].values()}


def test_schedules_and_watches_are_ours_but_for_the_words_that_mq_has_for_other_objects():
    schedule = {"CRON", "EVERY", "TIMEZONE", "QUEUE", "PROCESS", "INITQ", "ONLYIF", "MISSED"}
    schedule |= {"LASTMOMENT", "LASTSTART", "WHYNOT"}
    watch = {"DIRECTORY", "PATTERN", "QUIET", "QUEUE", "CONTENT", "DONE", "FAILED"}
    for which, ours, others in (
        (ObjectType.SCHEDULE, schedule, {"DESCR", "QSGDISP"}),
        (ObjectType.WATCH, watch, {"DESCR"}),
    ):
        assert {a.mqsc for a in ATTRIBUTES[which].values() if a.ours} == ours
        assert {a.mqsc for a in ATTRIBUTES[which].values()} == ours | others


@pytest.mark.parametrize(
    ("said", "seconds"), [(90, 90), ("90", 90), ("90s", 90), ("15m", 900), ("2H", 7200), ("1d", 86_400)]
)
def test_a_time_is_a_number_of_seconds_or_a_number_with_its_unit(said, seconds):
    assert find_attribute(ObjectType.SCHEDULE, "EVERY").read(said, "SCHEDULE(S)") == seconds
    for wrong in ("15 m", "m", "1.5h", "-1s", "2w", "99999999d"):
        with pytest.raises(AttrValueError, match="or a time such as 90s, 15m, 2h or 1d"):
            find_attribute(ObjectType.SCHEDULE, "EVERY").read(wrong, "SCHEDULE(S)")


def test_mqset_may_change_the_five_trigger_attributes_and_the_two_inhibitions():
    settable = {a.mqsc for a in ATTRIBUTES[ObjectType.QLOCAL].values() if a.settable}
    assert settable == {"TRIGGER", "TRIGTYPE", "TRIGDPTH", "TRIGMPRI", "TRIGDATA", "GET", "PUT"}
    assert {a.mqsc for a in ATTRIBUTES[ObjectType.QALIAS].values() if a.settable} == {"GET", "PUT"}
    assert {a.mqsc for a in ATTRIBUTES[ObjectType.QREMOTE].values() if a.settable} == {"PUT"}
    for which in (ObjectType.PROCESS, ObjectType.QMGR):
        assert not [a for a in ATTRIBUTES[which].values() if a.settable]


@pytest.mark.parametrize("which", list(KINDS))
def test_words_and_selectors_are_unique_within_an_object_type(which):
    words = [a.mqsc for a in ATTRIBUTES[which].values()]
    selectors = [a.selector for a in ATTRIBUTES[which].values() if not a.ours]
    assert len(set(words)) == len(words)
    assert len(set(selectors)) == len(selectors)
    assert 0 not in selectors


def test_only_the_queue_manager_knows_depth_handles_uncommitted_work_and_type():
    assert {a.mqsc: a.selector for a in STATUS.values()} == {
        "CURDEPTH": 3,
        "IPPROCS": 17,
        "OPPROCS": 18,
        "UNCOM": 0,
        "TYPE": 20,
    }
    assert all(a.read_only for a in STATUS.values())


@pytest.mark.parametrize(
    ("word", "low", "high"),
    [
        ("DEFPRTY", 0, 9),
        ("MAXDEPTH", 0, 999_999_999),
        ("MAXMSGL", 0, 104_857_600),
        ("BOTHRESH", 0, 999_999_999),
        ("TRIGDPTH", 1, 999_999_999),
        ("TRIGMPRI", 0, 9),
    ],
)
def test_a_number_is_read_within_its_range_and_refused_beyond(word, low, high):
    attribute = find_attribute(ObjectType.QLOCAL, word)
    assert attribute.read(low, "QLOCAL(Q)") == low
    assert attribute.read(str(high), "QLOCAL(Q)") == high
    for beyond in (low - 1, high + 1, "many", 1.5, True, None):
        with pytest.raises(AttrValueError):
            attribute.read(beyond, "QLOCAL(Q)")


def test_the_queue_managers_ranges_are_mqs():
    table = ATTRIBUTES[ObjectType.QMGR]
    assert (table["trigger_interval"].low, table["trigger_interval"].high) == (0, 999_999_999)
    assert (table["max_uncommitted_msgs"].low, table["max_uncommitted_msgs"].high) == (1, 999_999_999)
    assert (table["max_msg_length"].low, table["max_msg_length"].high) == (32_768, 104_857_600)
    assert table["max_priority"].read_only


@pytest.mark.parametrize("said", [TriggerType.DEPTH, 3, "3", "depth", "DEPTH", " Depth "])
def test_an_enumerated_value_may_be_a_member_a_number_or_a_word(said):
    assert find_attribute(ObjectType.QLOCAL, "TRIGTYPE").read(said, "QLOCAL(Q)") is TriggerType.DEPTH


@pytest.mark.parametrize(
    ("word", "said", "value"),
    [
        ("TRIGGER", "TRIGGER", TriggerControl.ON),
        ("TRIGGER", "NOTRIGGER", TriggerControl.OFF),
        ("TRIGGER", "yes", TriggerControl.ON),
        ("TRIGGER", "no", TriggerControl.OFF),
        ("TRIGGER", "on", TriggerControl.ON),
        ("TRIGGER", True, TriggerControl.ON),
        ("GET", "DISABLED", Inhibit.INHIBITED),
        ("GET", "inhibited", Inhibit.INHIBITED),
        ("PUT", "ENABLED", Inhibit.ALLOWED),
        ("DEFPSIST", "YES", Persistence.PERSISTENT),
        ("DEFPSIST", "not_persistent", Persistence.NOT_PERSISTENT),
        ("DEFSOPT", "EXCL", DefInputOpenOption.INPUT_EXCLUSIVE),
        ("USAGE", "XMITQ", Usage.TRANSMISSION),
        ("SHARE", "NOSHARE", Shareability.NOT_SHAREABLE),
    ],
)
def test_mqscs_word_and_the_constants_tail_mean_the_same(word, said, value):
    assert find_attribute(ObjectType.QLOCAL, word).read(said, "QLOCAL(Q)") == value


def test_a_queues_default_persistence_cannot_be_as_q_def():
    with pytest.raises(AttrValueError, match="NO or YES"):
        find_attribute(ObjectType.QLOCAL, "DEFPSIST").read("as_q_def", "QLOCAL(Q)")


def test_mqsc_writes_what_it_reads():
    for which, table in ATTRIBUTES.items():
        for attribute in table.values():
            if attribute.read_only:
                continue
            said = attribute.write(attribute.default)
            assert attribute.read(said, which.name) == attribute.default


def test_plain_values_are_words_numbers_and_text():
    table = ATTRIBUTES[ObjectType.QLOCAL]
    assert table["trigger_type"].plain(TriggerType.EVERY) == "every"
    assert table["max_q_depth"].plain(12) == 12
    assert table["process_name"].plain("P") == "P"


def test_an_application_type_may_be_ibms_or_the_users_own():
    attribute = find_attribute(ObjectType.PROCESS, "APPLTYPE")
    assert attribute.read("UNIX", "PROCESS(P)") == ApplType.UNIX == 6
    assert attribute.read("WINDOWSNT", "PROCESS(P)") == ApplType.WINDOWS_NT
    assert attribute.read("spark", "PROCESS(P)") == 65_536
    assert attribute.read(999_999_999, "PROCESS(P)") == 999_999_999
    with pytest.raises(AttrValueError):
        attribute.read("VAX", "PROCESS(P)")


@pytest.mark.parametrize(("word", "most"), [("DESCR", 64), ("APPLICID", 256), ("ENVRDATA", 128), ("USERDATA", 128)])
def test_text_is_limited_in_bytes_and_loses_trailing_blanks(word, most):
    attribute = find_attribute(ObjectType.PROCESS, word)
    assert attribute.read("x" * most + "   ", "PROCESS(P)") == "x" * most
    with pytest.raises(AttrValueError, match=f"at most {most} bytes"):
        attribute.read("x" * (most + 1), "PROCESS(P)")
    with pytest.raises(AttrValueError):
        attribute.read("ü" * (most // 2) + "u", "PROCESS(P)")
    with pytest.raises(AttrValueError):
        attribute.read("a\nb", "PROCESS(P)")


def test_a_name_is_checked_where_it_is_named():
    attribute = find_attribute(ObjectType.QLOCAL, "INITQ")
    assert attribute.read("MY.INITQ", "QLOCAL(Q)") == "MY.INITQ"
    assert attribute.read("  ", "QLOCAL(Q)") == ""
    for wrong in ("MY INITQ", "A" * 49, "A-B", 5):
        with pytest.raises(AttrValueError, match="a name of at most 48"):
            attribute.read(wrong, "QLOCAL(Q)")


def test_an_error_names_object_attribute_value_and_what_is_allowed():
    with pytest.raises(AttrValueError) as caught:
        read_attributes(ObjectType.QLOCAL, "ORDERS.IN", {"trigger_type": "sometimes"})
    for part in ("QLOCAL(ORDERS.IN)", "TRIGTYPE", "trigger_type", "sometimes", "NONE or FIRST or EVERY or DEPTH"):
        assert part in str(caught.value)
    assert int(caught.value.reason) == 4005


def test_attributes_are_found_by_long_name_and_by_word_in_either_case():
    given = {"TRIGDPTH": "3", "trigger_msg_priority": 4, "initq": "I"}
    assert read_attributes(ObjectType.QLOCAL, "Q", given) == {
        "trigger_depth": 3,
        "trigger_msg_priority": 4,
        "initiation_q_name": "I",
    }
    assert find_attribute(ObjectType.QALIAS, "TARGQ").name == "base_q_name"


def test_an_unknown_attribute_and_one_of_another_object_are_refused():
    for which, name in [(ObjectType.QLOCAL, "TRIGGERS"), (ObjectType.QALIAS, "TRIGTYPE"), (ObjectType.QMGR, "INITQ")]:
        with pytest.raises(SelectorError, match=name):
            find_attribute(which, name)


def test_what_cannot_be_changed_is_refused_by_name():
    with pytest.raises(AttrValueFixed, match=r"MAXPRTY.*cannot be changed"):
        read_attributes(ObjectType.QMGR, "QM1", {"MAXPRTY": 5})


@pytest.mark.parametrize("which", list(KINDS))
def test_a_plain_value_is_read_as_the_value_it_was(which):
    for attribute in ATTRIBUTES[which].values():
        assert attribute.read(attribute.plain(attribute.default), which.name) == attribute.default


def test_times_of_definition_are_no_attributes_one_may_name():
    for which in KINDS:
        with pytest.raises(SelectorError):
            find_attribute(which, "created_ms")


@pytest.mark.parametrize(
    ("which", "word", "off", "most"),
    [(ObjectType.QLOCAL, "CAPEXPRY", "NOLIMIT", 999_999_999), (ObjectType.QMGR, "EXPRYINT", "OFF", 99_999_999)],
)
def test_a_number_that_has_one_word_is_read_and_written_either_way(which, word, off, most):
    attribute = find_attribute(which, word)
    for said in (off, off.lower(), int(attribute.default)):
        assert attribute.read(said, "") == attribute.default
    assert attribute.write(attribute.default) == off
    assert attribute.plain(attribute.default) == off.lower()
    assert [attribute.read(said, "") for said in ("600", 600, most)] == [600, 600, most]
    assert (attribute.write(600), attribute.plain(600)) == ("600", 600)
    for wrong in (most + 1, -2, "never", "1.5"):
        with pytest.raises(AttrValueError, match=rf"{word}.*must be {off} or 1 to {most}"):
            attribute.read(wrong, "")
