"""The steps of random scripts of calls: drawn by Hypothesis, or made by a seed so that they go together."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from trigmon.mq.enums import GetOption, OpenOption, ReportOption

LASTING = ("F", "E", "D", "B", "INITQ", "A")
MODELS = {"M": "T", "P": "U"}  # a temporary and a permanent model, and the queues they make
QUEUES = (*LASTING, "R", *MODELS, *MODELS.values())
APPS = ("one", "two")
CONSUMERS = ("J", "K")
REPORTS = ReportOption.EXPIRATION | ReportOption.COA | ReportOption.COD | ReportOption.EXCEPTION
IN, EXCL, OUT, BROWSE = (
    OpenOption.INPUT_SHARED,
    OpenOption.INPUT_EXCLUSIVE,
    OpenOption.OUTPUT,
    OpenOption.BROWSE,
)
OPENS = (IN, EXCL, IN | BROWSE, BROWSE, OUT, IN | OUT | BROWSE | OpenOption.SET | OpenOption.INQUIRE)
GETS = (
    0,
    GetOption.WAIT,
    GetOption.BROWSE_FIRST,
    GetOption.BROWSE_NEXT,
    GetOption.BROWSE_MSG_UNDER_CURSOR,
    GetOption.MSG_UNDER_CURSOR,
    GetOption.ACCEPT_TRUNCATED_MSG,
    GetOption.BROWSE_FIRST | GetOption.LOCK,
    GetOption.BROWSE_NEXT | GetOption.LOCK,
    GetOption.BROWSE_NEXT | GetOption.LOCK | GetOption.WAIT,
    GetOption.BROWSE_MSG_UNDER_CURSOR | GetOption.LOCK,
    GetOption.UNLOCK,
    GetOption.MARK_SKIP_BACKOUT,
    GetOption.MARK_SKIP_BACKOUT | GetOption.WAIT,
    GetOption.MARK_SKIP_BACKOUT | GetOption.MSG_UNDER_CURSOR,
    GetOption.SYNCPOINT_IF_PERSISTENT,
    GetOption.SYNCPOINT_IF_PERSISTENT | GetOption.WAIT,
)


NEVER_IN_A_UNIT = GetOption.BROWSE_FIRST | GetOption.BROWSE_NEXT | GetOption.BROWSE_MSG_UNDER_CURSOR | GetOption.UNLOCK
LOCKING = GetOption.LOCK | GetOption.UNLOCK | GetOption.BROWSE_NEXT
CHANGES = (
    {"trigger_control": "on"},
    {"trigger_control": "off"},
    {"trigger_type": "every"},
    {"trigger_type": "first"},
    {"trigger_type": "depth"},
    {"trigger_depth": 1},
    {"trigger_depth": 3},
    {"trigger_msg_priority": 1},
    {"inhibit_get": "inhibited"},
    {"inhibit_get": "allowed"},
    {"inhibit_put": "inhibited"},
    {"inhibit_put": "allowed"},
    {"rearm": "auto"},
    {"backstop_s": 1},
    {"max_wait_s": 1},
    {"backout_threshold": 1},
    {"backout_threshold": 2},
    {"backout_requeue_q_name": ""},
    {"backout_requeue": "appl"},
    {"backout_requeue": "qmgr"},
)
OF_POISON = ({"backout_requeue_q_name": ""}, {"inhibit_put": "inhibited"}, {"backout_threshold": 2})
# A message of a group, its last, a segment, a last one, a segment in a group, one that may be cut.
GROUPED = (0x8, 0x10, 0x2, 0x4, 0xA, 0x1)
app = st.sampled_from(APPS)
queue = st.sampled_from(QUEUES)
pick = st.integers(0, 7)
step = st.one_of(
    st.tuples(st.just("open"), app, queue, st.sampled_from(OPENS)),
    st.tuples(st.just("close"), app, pick, st.sampled_from([0, 0, 0, 1, 2])),
    st.tuples(st.just("put"), app, queue, st.booleans(), st.booleans(), st.integers(0, 2), st.sampled_from([-1, 5])),
    st.tuples(st.just("put"), app, queue, st.booleans(), st.booleans(), st.integers(0, 2), st.just(-1)),
    st.tuples(st.just("put_many"), app, queue, st.booleans(), st.integers(1, 4)),
    st.tuples(st.just("group"), app, pick, st.sampled_from(GROUPED), st.booleans(), st.booleans()),
    st.tuples(st.just("get"), app, pick, st.sampled_from(GETS), st.booleans()),
    st.tuples(st.just("get"), app, pick, st.just(0), st.booleans()),
    st.tuples(st.just("get"), app, pick, st.just(GetOption.MARK_SKIP_BACKOUT), st.just(True)),
    st.tuples(st.just("get_many"), app, pick, st.booleans()),
    st.tuples(st.just("fail"), app, st.sampled_from(("B", "B", "D", "E", "T")), st.booleans(), st.booleans()),
    st.tuples(st.just("commit"), app),
    st.tuples(st.just("backout"), app),
    st.tuples(st.just("set"), app, pick, st.sampled_from(CHANGES)),
    st.tuples(st.just("alter"), queue, st.sampled_from(CHANGES)),
    st.tuples(st.just("alter"), st.sampled_from(("B", "E")), st.sampled_from(OF_POISON)),
    st.tuples(st.just("monitor"), st.booleans()),
    st.tuples(st.just("advance"), st.sampled_from([1, 400, 1000])),
    st.tuples(st.just("tend")),
    st.tuples(st.just("expire")),
    st.tuples(st.just("slice")),
    st.tuples(st.just("retry"), st.sampled_from(("", "E", "T"))),
    st.tuples(st.just("reserve"), app, pick, st.sampled_from(CONSUMERS), st.integers(1, 4), st.booleans()),
    st.tuples(st.just("read"), app, st.sampled_from(CONSUMERS), st.integers(0, 2)),
    st.tuples(st.just("settle"), app, st.sampled_from(CONSUMERS), st.integers(0, 2), st.sampled_from([-1, -1, 1, 2])),
    st.tuples(
        st.just("release"), app, st.sampled_from(CONSUMERS), st.integers(0, 2), st.sampled_from([-1, 1]), st.booleans()
    ),
    st.tuples(st.just("reject"), app, st.sampled_from(CONSUMERS), st.integers(0, 2)),
    st.tuples(st.just("attempt"), app, st.sampled_from(CONSUMERS), st.integers(0, 1), st.integers(0, 2)),
    st.tuples(st.just("disconnect"), app),
    st.tuples(st.just("lose"), app),
    st.tuples(st.just("restart")),
    st.tuples(st.just("crash")),
)
scripts = st.lists(step, min_size=1, max_size=30)
long_scripts = st.lists(step, min_size=30, max_size=120)


def traffic(seed: int, steps: int = 80) -> list[tuple]:
    """Two readers of one queue, with messages, units of work, marks and locks: what a free script seldom comes to."""
    dice = random.Random(seed)
    script: list[tuple] = [("open", name, "F", IN | BROWSE) for name in APPS]
    for _ in range(steps):
        name, yes = dice.choice(APPS), dice.random() < 0.5
        happening = dice.choices(("put", "get", "mark", "end", "browse", "time", "leave"), (6, 5, 3, 4, 5, 1, 0.3))[0]
        match happening:
            case "put":
                script.append(("put", name, "F", yes, dice.random() < 0.7, dice.randrange(2), -1))
            case "get":
                script.append(("get", name, 0, dice.choice(GETS), yes))
            case "mark":
                script.append(("get", name, 0, GetOption.MARK_SKIP_BACKOUT, True))
            case "end":
                script.append(("commit" if dice.random() < 0.3 else "backout", name))
            case "browse":
                script.append(("get", name, 0, dice.choice([option for option in GETS if option & LOCKING]), False))
            case "time":
                script.append(("advance", 1000))
            case "leave":
                script.append(dice.choice([("lose", name), ("disconnect", name), ("crash",), ("restart",)]))
                script += [("open", each, "F", IN | BROWSE) for each in APPS]
    return script


def large_ends(seed: int, steps: int = 100) -> list[tuple]:
    """Units of work that put and get much, on queues that others use, with slices of what is left in between."""
    dice = random.Random(seed)
    opens = [("open", name, q_name, IN | OUT | BROWSE) for q_name in ("F", "E", "D", "B") for name in APPS]
    script: list[tuple] = [*opens]
    for _ in range(steps):
        name, q_name, which, yes = dice.choice(APPS), dice.choice("FFEDB"), dice.randrange(4), dice.random() < 0.7
        consumer, n, expiry = dice.choice(CONSUMERS), dice.randrange(1, 5), dice.choice((-1, -1, 5))
        look = dice.choice([option for option in GETS if option & LOCKING])
        mostly: list[tuple[float, list[tuple]]] = [
            (6, [("put", name, q_name, yes, dice.random() < 0.7, n % 3, expiry)]),
            (4, [("put_many", name, dice.choice("FDB"), yes, n)]),
            (6, [("get", name, which, dice.choice((0, 0, 0, GetOption.MARK_SKIP_BACKOUT)), yes)]),
            (2, [("get_many", name, which, yes)]),
            (3, [("get", name, which, look, False)]),
            (0.5, [("reserve", name, which, consumer, n, yes), ("settle", name, consumer, 0, -1)]),
            (0.5, [("reserve", name, which, consumer, n, yes), ("release", name, consumer, 0, -1, yes)]),
            (4, [("commit" if yes else "backout", name)]),
            (4, [("slice",)]),
            (0.3, [("group", name, which, flags, True, True) for flags in (8, 16)]),
            (1, [("explain", q_name)]),
            (0.5, [("advance", 400), dice.choice([("expire",), ("tend",)])]),
            (0.5, [("alter", q_name, dice.choice(CHANGES))]),
            (0.4, [dice.choice([("lose", name), ("disconnect", name), ("crash",), ("restart",)]), *opens]),
        ]
        script += dice.choices([steps for _, steps in mostly], [weight for weight, _ in mostly])[0]
    return script


def batches(seed: int, steps: int = 80) -> list[tuple]:
    """Two connections that reserve, read, settle and give back, and die, on a queue with groups and one of poison."""
    dice = random.Random(seed)
    opens = [("open", name, q_name, IN | OUT | BROWSE) for q_name in ("F", "B") for name in APPS]
    script: list[tuple] = [*opens]
    kinds = {
        "put": 6,
        "group": 2,
        "reserve": 5,
        "read": 3,
        "settle": 2,
        "release": 2,
        "reject": 0.5,
        "attempt": 1.5,
        "get": 1,
        "die": 1,
    }
    for _ in range(steps):
        name, consumer, yes = dice.choice(APPS), dice.choice(CONSUMERS), dice.random() < 0.5
        first, count = dice.choice((0, 0, 1)), dice.choice((-1, 1, 2))
        match dice.choices(list(kinds), list(kinds.values()))[0]:
            case "put":
                script.append(("put", name, dice.choice(("F", "F", "B")), False, yes, dice.randrange(3), -1))
            case "group":
                script += [("group", name, 0, flags, False, True) for flags in dice.choice(((8, 16), (8,), (8, 8, 16)))]
            case "reserve":
                script.append(("reserve", name, dice.randrange(2), consumer, dice.randrange(1, 5), yes))
            case "read":
                script.append(("read", name, consumer, first))
            case "settle":
                script.append(("settle", name, consumer, first, count))
            case "release":
                script.append(("release", name, consumer, first, count, yes))
            case "reject":
                script.append(("reject", name, consumer, first))
            case "attempt":
                script.append(("attempt", name, consumer, first, abs(count)))
            case "get":
                script.append(("get", name, dice.randrange(2), 0, yes))
            case "die":
                how = dice.choice([("lose", name), ("disconnect", name), ("crash",), ("restart",)])
                script += [how, *(opens if len(how) == 1 else [step for step in opens if step[1] == name])]
    return script
