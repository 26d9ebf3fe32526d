-- What is not part of the log: what waits to be folded, what could not be kept as an event, and
-- what a second delivery said otherwise.

create table ledger.mark (
    stream text collate "C" not null,
    app_id integer not null,
    position bigint not null,
    constraint mark_pkey primary key (stream, app_id, position)
);

comment on table ledger.mark is
    'One row for each append to a subscription that its read models do not hold yet.';

create table ledger.quarantine (
    stream text collate "C" not null,
    digest bytea not null,
    reason text collate "C" not null,
    app_id integer,
    claimed_stream text collate "C",
    event_key text collate "C",
    received bytea not null,
    recorded_at timestamptz not null default now(),
    constraint quarantine_pkey primary key (stream),
    constraint quarantine_digest_check check (digest = sha256(received)),
    constraint quarantine_stream_check check (stream = 'sha256:' || encode(digest, 'hex'))
);

comment on table ledger.quarantine is
    'One row for each received document that is genuine but could not become an event.';
comment on column ledger.quarantine.stream is
    'sha256: and the digest in hexadecimal, so that the same bytes are kept once.';

create table ledger.conflict (
    stream text collate "C" not null,
    app_id integer not null,
    event_key text collate "C" not null,
    digest bytea not null,
    kept_position bigint not null,
    content_digest bytea not null,
    received bytea not null,
    recorded_at timestamptz not null default now(),
    constraint conflict_pkey primary key (stream, app_id, event_key, digest),
    constraint conflict_digest_check check (digest = sha256(received))
);

comment on table ledger.conflict is
    'One row for each document that came under the key of an event and said something else.';

create table ledger.poll (
    stream text collate "C" not null,
    app_id integer not null,
    source text collate "C" not null,
    polls bigint not null,
    first_at timestamptz not null,
    last_at timestamptz not null,
    constraint poll_pkey primary key (stream, app_id, source)
);

comment on table ledger.poll is
    'One row for each stream and source that was asked: how often and when an answer was last read.';
