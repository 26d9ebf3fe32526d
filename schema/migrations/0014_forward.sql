-- How far each consumer of forwarded notifications has got.
--
-- Nothing else depends on these rows: they are moved and removed, and what is lost of them is
-- delivered again.

create table ledger.forward (
    destination text collate "C" not null,
    position bigint not null,
    lease_holder text collate "C",
    lease_until timestamptz,
    attempts integer not null default 0,
    retry_at timestamptz,
    failure text,
    failed_at timestamptz,
    delivered bigint not null default 0,
    delivered_at timestamptz,
    created_at timestamptz not null default now(),
    constraint forward_pkey primary key (destination),
    constraint forward_destination_check check (destination ~ '^[A-Za-z0-9._:-]{1,100}$'),
    constraint forward_position_check check (position >= 0),
    constraint forward_lease_check check ((lease_holder is null) = (lease_until is null)),
    constraint forward_attempts_check check (attempts >= 0)
);

comment on table ledger.forward is
    'One row for each consumer that notifications were ever forwarded to.';
comment on column ledger.forward.position is
    'What is up to here was taken, or its stream has a row in ledger.forward_stream.';
comment on column ledger.forward.lease_holder is
    'The process that forwards now, until lease_until; another one may take over then.';
comment on column ledger.forward.attempts is
    'How often in a row the consumer as a whole was not to be reached.';

create table ledger.forward_stream (
    destination text collate "C" not null,
    stream text collate "C" not null,
    app_id integer not null,
    position bigint not null,
    attempts integer not null,
    retry_at timestamptz not null,
    failure text not null,
    failed_at timestamptz not null default now(),
    constraint forward_stream_pkey primary key (destination, stream, app_id),
    constraint forward_stream_position_check check (position > 0),
    constraint forward_stream_attempts_check check (attempts >= 0)
);

comment on table ledger.forward_stream is
    'One row for each stream that waits, since a consumer has not taken one of its notifications.';
comment on column ledger.forward_stream.position is
    'The first notification that was not taken; the later ones of the stream wait behind it.';

grant select, insert, update on ledger.forward to :"appender";
grant select, insert, update, delete on ledger.forward_stream to :"appender";
grant select on ledger.forward, ledger.forward_stream to :"projector", :"reader", :"auditor";
