-- The table of the read model "extension_audit", partitioned by generation as all are.

set local role :"projector";

create table read_model.extension_record (
    generation integer not null,
    app_id integer not null,
    stream text collate "C" not null,
    at timestamptz not null,
    sequence integer not null,
    request_identifier uuid,
    scope text not null,
    outcome text not null,
    days_requested integer,
    attempts integer not null,
    resolution text,
    counts_from timestamptz,
    is_open boolean not null,
    requested_position bigint,
    refused_position bigint,
    refused_at timestamptz,
    approved_position bigint,
    approved_at timestamptz,
    rejected_position bigint,
    rejected_at timestamptz,
    submitted_position bigint,
    submitted_at timestamptz,
    answered_position bigint,
    answered_at timestamptz,
    resolved_position bigint,
    resolved_at timestamptz,
    confirmed_position bigint,
    confirmed_at timestamptz,
    expires_before timestamptz,
    expires_before_position bigint,
    expires_acked timestamptz,
    expires_confirmed timestamptz,
    gained_ms bigint,
    state_before text,
    state_after text,
    owner uuid,
    transaction_id text,
    web_order_line_item_id text,
    product_id text,
    storefront text,
    ownership text,
    positions bigint[] not null,
    known_to_position bigint not null,
    constraint extension_record_scope_check check (scope in ('single', 'mass')),
    constraint extension_record_outcome_check check (
        outcome in (
            'requested', 'refused_locally', 'refused_by_apple', 'accepted', 'confirmed',
            'contradicted', 'unknown', 'external'
        )
    ),
    primary key (stream, app_id, at, sequence, generation)
) partition by list (generation);

comment on table read_model.extension_record is
    'One row for each request to extend, and for each extension that nobody here asked for.';

create index extension_record_by_time on read_model.extension_record (at);
create index extension_record_by_owner on read_model.extension_record (owner)
    where counts_from is not null;
create index extension_record_mass on read_model.extension_record (app_id)
    where scope = 'mass';
create index extension_record_by_request
    on read_model.extension_record (request_identifier);

do $do$
declare
    line text;
begin
    foreach line in array array[
        'generation: the generation of the read model; the views show the current one',
        'app_id: the row of ledger.app',
        'stream: Apple''s originalTransactionId, or mass: and the request''s identifier',
        'at: when it was asked for, by our clock; for what nobody asked for, when Apple signed it',
        'sequence: tells apart what was at one instant',
        'request_identifier: our requestIdentifier; null where nobody here asked',
        'scope: single, or mass for a request about a whole product',
        'outcome: requested, refused_locally, refused_by_apple, accepted, confirmed, contradicted, '
            'unknown or external',
        'days_requested: how many days were asked for',
        'attempts: how often it was sent to Apple',
        'resolution: extended or not_extended, where a lost answer was settled',
        'counts_from: from when on it counts among the two in 365 days; null where it does not',
        'is_open: whether it still waits for an approval, an answer or a decision',
        'requested_position: the event that asks for it',
        'refused_position: the event by which our own rules refused it',
        'refused_at: when they did',
        'approved_position: the event by which another operator approved it',
        'approved_at: when that was',
        'rejected_position: the event by which another operator rejected it',
        'rejected_at: when that was',
        'submitted_position: the event that says that it was about to be sent, the first time',
        'submitted_at: when that was',
        'answered_position: the event with Apple''s answer, or that there was none',
        'answered_at: when it arrived',
        'resolved_position: the event that settled a lost answer',
        'resolved_at: when that was',
        'confirmed_position: the event that Apple signed about it',
        'confirmed_at: when Apple signed that',
        'expires_before: the end of the period before it',
        'expires_before_position: the event that signs that end',
        'expires_acked: the end that Apple''s unsigned answer promises',
        'expires_confirmed: the end that Apple signed',
        'gained_ms: by how many milliseconds the end moved, as signed or else as answered',
        'state_before: the state of the subscription just before',
        'state_after: the state when it was confirmed, or else answered',
        'owner: who owned the subscription at that time',
        'transaction_id: the transaction whose end moves',
        'web_order_line_item_id: the purchase event of that transaction',
        'product_id: what was bought with it',
        'storefront: where',
        'ownership: PURCHASED, FAMILY_SHARED, ASSIGNED, or what Apple else signed',
        'positions: the positions of all events that decided this row',
        'known_to_position: the highest position among the stream''s events'
    ] loop
        execute format(
            'comment on column read_model.extension_record.%I is %L',
            split_part(line, ': ', 1), substr(line, strpos(line, ': ') + 2)
        );
    end loop;
end
$do$;

-- The first generation. Version 0 belongs to no program: the one that folds first takes it over.
create table read_model.extension_record_g1
    partition of read_model.extension_record for values in (1);
alter table read_model.extension_record_g1 alter column generation set default 1;

insert into read_model.generation
    (projection, generation, version, decoder, state, from_position, finished_at)
values ('extension_audit', 1, 0, 0, 'live', 0, now());

insert into read_model.current (projection, generation, version, decoder)
values ('extension_audit', 1, 0, 0);
