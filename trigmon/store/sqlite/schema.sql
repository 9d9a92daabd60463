-- Version 9. A row's ``sum`` is the CRC-32 of its values, and NULL in rows written by earlier versions.

CREATE TABLE meta (key TEXT PRIMARY KEY, value, sum INTEGER) WITHOUT ROWID;

CREATE TABLE object (
    kind TEXT NOT NULL,           -- the name of an ObjectType; a new kind raises the version
    name TEXT NOT NULL,
    definition TEXT NOT NULL,     -- JSON by long attribute names; what is not there is MQ's default
    sum INTEGER,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;

CREATE TABLE queue (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, sum INTEGER);

CREATE TABLE message (
    id INTEGER PRIMARY KEY,       -- arrival number, ascending, never used again
    queue INTEGER NOT NULL,
    priority INTEGER NOT NULL,    -- as counted and placed
    persistent INTEGER NOT NULL,
    put_by INTEGER,               -- unit of work that put it and has not ended
    taken_by INTEGER,             -- unit of work, or reservation, that got it and has not ended
    held INTEGER NOT NULL,        -- a trigger message in a unit: 1 commit releases it, 2 backout too
    expires_ms INTEGER NOT NULL,  -- milliseconds since 1970, 0 never
    backout_count INTEGER NOT NULL,
    msg_id BLOB NOT NULL,
    correl_id BLOB,               -- NULL for none
    group_id BLOB,                -- NULL outside groups and segmented messages, and so are the next five
    msg_seq_number INTEGER,
    msg_offset INTEGER,
    msg_flags INTEGER,
    head INTEGER,                 -- 0 not the first item of its group; 1 the first, 2 and its logical message is
                                  -- whole, 3 and its group is whole, among what is committed and not got
    whole INTEGER,                -- of a first item: the place up to which its group is there (statements.place)
    descriptor BLOB NOT NULL,
    data BLOB NOT NULL,
    checksum INTEGER NOT NULL,    -- CRC-32 of descriptor and data
    ordinal INTEGER,              -- its place in the reservation that has it
    header INTEGER                -- the sum of the other columns, each times a number of its own (sums.py)
);
-- SQLite appends the row's id to each index, so an index that ends with the priority is in get order.
-- Messages outside groups, first items of groups, and other items each have their own index: a look-up skips no rows of
-- another kind, and a message outside groups is written to one index only.
CREATE INDEX message_ready ON message (queue, priority DESC)
    WHERE put_by IS NULL AND taken_by IS NULL AND head IS NULL;
CREATE INDEX message_heads ON message (queue, head, priority DESC)
    WHERE put_by IS NULL AND taken_by IS NULL AND head > 0;
CREATE INDEX message_rests ON message (queue, priority DESC)
    WHERE put_by IS NULL AND taken_by IS NULL AND head = 0;
CREATE INDEX message_expiring ON message (queue, expires_ms, put_by, taken_by)
    WHERE expires_ms > 0 AND put_by IS NULL AND taken_by IS NULL;
CREATE INDEX message_put_by ON message (put_by, queue, taken_by, priority DESC) WHERE put_by IS NOT NULL;
CREATE INDEX message_taken_by ON message (taken_by, ordinal, queue, priority DESC) WHERE taken_by IS NOT NULL;
CREATE INDEX message_msg_id ON message (queue, msg_id, priority DESC);
CREATE INDEX message_correl_id ON message (queue, correl_id, priority DESC) WHERE correl_id IS NOT NULL;
CREATE INDEX message_group ON message (queue, group_id, msg_seq_number, msg_offset, priority DESC)
    WHERE group_id IS NOT NULL;
CREATE INDEX message_of_group ON message (queue, group_id, priority DESC) WHERE group_id IS NOT NULL;
CREATE INDEX message_volatile ON message (id) WHERE persistent = 0;

CREATE TABLE outcome (            -- the last two units of work of each client
    client_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    outcome INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    sum INTEGER,
    PRIMARY KEY (client_id, number)
) WITHOUT ROWID;

CREATE TABLE run (                -- the run ledger
    number INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    q_name TEXT NOT NULL,
    record TEXT NOT NULL,         -- JSON
    ended_ms INTEGER,             -- NULL until it has ended
    sum INTEGER
);
CREATE INDEX run_state ON run (state, number);
CREATE INDEX run_queue ON run (q_name, number);
CREATE INDEX run_ended ON run (ended_ms) WHERE ended_ms > 0;

CREATE TABLE held (               -- the lines of runs that wait
    initiation_q TEXT NOT NULL,
    slot TEXT NOT NULL,           -- the process, or the program where none is named
    q_name TEXT NOT NULL,
    number INTEGER NOT NULL,      -- of the run
    sum INTEGER,
    PRIMARY KEY (initiation_q, slot, q_name, number)
) WITHOUT ROWID;

CREATE TABLE serving (            -- runs that are due or have programs
    run_id TEXT NOT NULL PRIMARY KEY,
    doing TEXT NOT NULL,          -- JSON
    sum INTEGER
) WITHOUT ROWID;

CREATE TABLE cause (              -- where the last run did not end well
    slot TEXT NOT NULL,
    q_name TEXT NOT NULL,
    failed INTEGER NOT NULL,
    fruitless INTEGER NOT NULL,
    until_ms INTEGER NOT NULL,
    sum INTEGER,
    PRIMARY KEY (slot, q_name)
) WITHOUT ROWID;

CREATE TABLE pause (              -- what is not to be started now
    what TEXT NOT NULL,           -- queue, process, everything
    name TEXT NOT NULL,           -- empty for everything
    by TEXT NOT NULL,
    since_ms INTEGER NOT NULL,
    reason TEXT NOT NULL,
    sum INTEGER,
    PRIMARY KEY (what, name)
) WITHOUT ROWID;

CREATE TABLE reservation (        -- fixed batches of messages, each for one consumer
    number INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    consumer TEXT NOT NULL,
    ended_ms INTEGER,             -- NULL while anything of it is left, or any row
    record TEXT NOT NULL,         -- JSON
    sum INTEGER
);
CREATE INDEX reservation_consumer ON reservation (queue, consumer, number);
CREATE INDEX reservation_left ON reservation (number) WHERE ended_ms IS NULL;
