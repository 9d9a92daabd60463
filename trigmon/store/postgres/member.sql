-- Used in a queue manager's own schema and in its group's.

CREATE TABLE member (                 -- the process that serves, and its lease
    name text COLLATE "C" PRIMARY KEY,
    epoch bigint NOT NULL,            -- one more with each takeover: a process with an older one is fenced
    beat timestamptz NOT NULL,        -- time of the last heartbeat, by this database's clock
    lease_ms bigint NOT NULL,         -- without a heartbeat for this long another process may take over
    serving boolean NOT NULL,         -- false after an orderly end
    backend integer NOT NULL,         -- its session: when it is gone, others need not wait for the lease
    backend_start timestamptz,
    host text NOT NULL,               -- for operators
    pid bigint NOT NULL
) WITH (fillfactor = 10);             -- each heartbeat is written in place

-- A turn's transaction begins with it: no process can take over before the transaction has ended.
CREATE FUNCTION fence(who text, its_epoch bigint, locks boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF locks THEN
        PERFORM 1 FROM member WHERE name = who AND epoch = its_epoch FOR SHARE;
    ELSE
        PERFORM 1 FROM member WHERE name = who AND epoch = its_epoch;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another took over from epoch % of %', its_epoch, who USING ERRCODE = 'TM001';
    END IF;
END $$;
