-- Used in a queue manager's own schema and in its group's.

CREATE TABLE message (
    id bigint PRIMARY KEY,            -- arrival number, ascending, never used again
    queue integer NOT NULL,           -- negative: set aside, it is not what was written
    priority smallint NOT NULL,       -- as counted and placed
    persistent smallint NOT NULL,
    put_by bigint,                    -- unit of work that put it and has not ended
    taken_by bigint,                  -- unit of work, or reservation, that got it and has not ended
    held smallint NOT NULL,           -- a trigger message in a unit: 1 commit releases it, 2 backout too
    expires_ms bigint NOT NULL,       -- milliseconds since 1970, 0 never
    backout_count integer NOT NULL,
    msg_id bytea NOT NULL,
    correl_id bytea,                  -- NULL for none
    group_id bytea,                   -- NULL outside groups and segmented messages, and so are the next five
    msg_seq_number integer,
    msg_offset integer,
    msg_flags integer,
    head smallint,                    -- 0 not the first item of its group; 1 the first, 2 and its logical message is
                                      -- whole, 3 and its group is whole, among what is committed and not got
    whole bigint,                     -- of a first item: the place up to which its group is there
    descriptor bytea NOT NULL,
    data bytea NOT NULL,
    checksum bigint NOT NULL,         -- CRC-32 of descriptor and data
    ordinal integer                   -- its place in the reservation that has it
) WITH (
    -- Queues are emptied as often as they are filled: vacuum dead rows early, at any table size, without pauses.
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0
);
-- Message data is never searched and often compressed already.
ALTER TABLE message ALTER data SET STORAGE EXTERNAL;
-- Each index ends in get order. Messages outside groups, first items of groups, and other items each have their own
-- index: a look-up skips no rows of another kind, and a message outside groups is written to one index only.
CREATE INDEX message_ready ON message (queue, priority DESC, id)
    WHERE put_by IS NULL AND taken_by IS NULL AND head IS NULL;
CREATE INDEX message_heads ON message (queue, head, priority DESC, id)
    WHERE put_by IS NULL AND taken_by IS NULL AND head > 0;
CREATE INDEX message_rests ON message (queue, priority DESC, id)
    WHERE put_by IS NULL AND taken_by IS NULL AND head = 0;
CREATE INDEX message_expiring ON message (queue, expires_ms)
    WHERE expires_ms > 0 AND put_by IS NULL AND taken_by IS NULL;
CREATE INDEX message_put_by ON message (put_by, queue, priority DESC, id) WHERE put_by IS NOT NULL;
CREATE INDEX message_taken_by ON message (taken_by, ordinal, queue, priority DESC, id) WHERE taken_by IS NOT NULL;
CREATE INDEX message_msg_id ON message (queue, msg_id, priority DESC, id);
CREATE INDEX message_correl_id ON message (queue, correl_id, priority DESC, id) WHERE correl_id IS NOT NULL;
CREATE INDEX message_group ON message (queue, group_id, msg_seq_number, msg_offset, priority DESC, id)
    WHERE group_id IS NOT NULL;
CREATE INDEX message_of_group ON message (queue, group_id, priority DESC, id) WHERE group_id IS NOT NULL;
CREATE INDEX message_volatile ON message (id) WHERE persistent = 0;
