-- The log itself: one narrow row for each fact received, and the chain over them.

create table ledger.event (
    position bigint not null,
    signed_at timestamptz,
    recorded_at timestamptz not null,
    app_id integer not null,
    stream text collate "C" not null,
    event_key text collate "C" not null,
    kind text collate "C" not null,
    notification_type text collate "C",
    subtype text collate "C",
    provenance text collate "C" not null,
    correlation text collate "C",
    content_digest bytea not null,
    sealed_digest bytea not null,
    operator text,
    ticket text,
    constraint event_pkey primary key (stream, app_id, position),
    constraint event_stream_app_id_event_key_key unique (stream, app_id, event_key),
    constraint event_app_id_fkey foreign key (app_id) references ledger.app (app_id),
    constraint event_position_check check (position > 0),
    constraint event_stream_check check (length(stream) between 1 and 255),
    constraint event_event_key_check check (length(event_key) between 1 and 255),
    constraint event_kind_check check (length(kind) between 1 and 64),
    constraint event_provenance_check
        check (provenance in ('jws', 'tls', 'receipt', 'operator')),
    constraint event_content_digest_check check (length(content_digest) = 32),
    constraint event_sealed_digest_check check (length(sealed_digest) = 32)
) partition by hash (stream);

comment on table ledger.event is
    'One row for each fact received, in commit order. Never changes.';
comment on column ledger.event.position is
    'Dense and global; increases in commit order.';
comment on column ledger.event.stream is
    'originalTransactionId, or mass:, app:, api: for what belongs to no subscription.';
comment on column ledger.event.event_key is
    'The idempotency key: the same fact delivered again has the same key.';
comment on column ledger.event.content_digest is
    'SHA-256 of the decoded content without signedDate; tells a repeat from a conflict.';
comment on column ledger.event.sealed_digest is
    'SHA-256 over salt, operator, ticket and the received bytes; stays when those are erased.';

do $$
begin
    for i in 0..31 loop
        execute format(
            'create table ledger.event_%s partition of ledger.event'
            ' for values with (modulus 32, remainder %s)',
            lpad(i::text, 2, '0'), i);
    end loop;
end
$$;

create index event_position_idx on ledger.event (position);

create table ledger.batch (
    first_position bigint not null,
    last_position bigint not null,
    recorded_at timestamptz not null,
    root bytea not null,
    previous bytea not null,
    constraint batch_pkey primary key (first_position),
    constraint batch_position_check check (first_position between 1 and last_position),
    constraint batch_root_check check (length(root) = 32),
    constraint batch_previous_check check (length(previous) = 32)
);

comment on table ledger.batch is
    'One row for each append transaction: the Merkle root of its events and the link before it.';

create table ledger.head (
    one boolean not null default true,
    position bigint not null,
    recorded_at timestamptz not null,
    link bytea not null,
    constraint head_pkey primary key (one),
    constraint head_one_check check (one),
    constraint head_position_check check (position >= 0),
    constraint head_link_check check (length(link) = 32)
);

comment on table ledger.head is
    'The one row that writers lock: the last position, its time and the link of the last batch.';

insert into ledger.head (position, recorded_at, link)
values (0, 'epoch', decode(repeat('00', 32), 'hex'));
