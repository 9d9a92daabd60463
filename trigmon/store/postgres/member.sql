-- In a queue manager's own schema and in its group's.

CREATE TABLE member (                 -- who serves, and until when others believe it
    name text COLLATE "C" PRIMARY KEY,
    epoch bigint NOT NULL,            -- one more each time somebody takes over: who has an older one is fenced
    beat timestamptz NOT NULL,        -- when it last said that it lives, by this database's clock
    lease_ms bigint NOT NULL,         -- who has not said so for this long may be taken over from
    serving boolean NOT NULL,         -- false after an orderly end
    backend integer NOT NULL,         -- its session here: when that is gone, nobody need wait for the lease
    backend_start timestamptz,
    host text NOT NULL,               -- for a person
    pid bigint NOT NULL
) WITH (fillfactor = 10);             -- each beat is written in place

-- A turn's transaction begins with it: nobody can take over before that has ended.
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
