-- The table of the read model "billing_recovery", partitioned by generation as all are.

set local role :"projector";

create table read_model.billing_episode (
    generation integer not null,
    app_id integer not null,
    stream text collate "C" not null,
    opened_at timestamptz not null,
    product_id text,
    transaction_id text not null,
    ownership text not null,
    was_trial_conversion boolean not null,
    expires_date timestamptz not null,
    grace_from timestamptz,
    grace_until timestamptz,
    grace_source text,
    grace_exhausted_at timestamptz,
    retry_deadline timestamptz not null,
    outcome text not null,
    closed_at timestamptz,
    unpaid_access_ms bigint not null,
    amount_at_risk bigint,
    currency text,
    expiration_intent integer,
    opening_position bigint not null,
    closing_position bigint,
    positions bigint[] not null,
    known_to_position bigint not null,
    constraint billing_episode_outcome_check check (
        outcome in (
            'open', 'recovered_in_grace', 'recovered_after_grace', 'cancelled', 'expired',
            'unknown'
        )
    ),
    constraint billing_episode_open_check check ((outcome = 'open') = (closed_at is null)),
    constraint billing_episode_grace_check check (
        grace_source in ('apple', 'estimated')
        and (grace_from is null) = (grace_until is null)
        and (grace_from is null) = (grace_source is null)
    ),
    primary key (stream, app_id, opened_at, generation)
) partition by list (generation);

comment on table read_model.billing_episode is
    'One row for each period that failed to renew, with its grace, its deadline and how it ended.';

-- "Who is in trouble at T" asks for those that ended, or end, after T; they are few.
create index billing_episode_by_end
    on read_model.billing_episode ((coalesce(closed_at, retry_deadline)));
create index billing_episode_by_opening
    on read_model.billing_episode (opened_at);

do $do$
declare
    line text;
begin
    foreach line in array array[
        'generation: the generation of the read model; the views show the current one',
        'app_id: the row of ledger.app',
        'stream: Apple''s originalTransactionId',
        'opened_at: when Apple first signed that the charge failed; may be before expires_date',
        'product_id: the product of the period that failed to renew',
        'transaction_id: that period''s transaction',
        'ownership: PURCHASED, FAMILY_SHARED, ASSIGNED, or what Apple else signed',
        'was_trial_conversion: whether that period was a free trial',
        'expires_date: the end of that period',
        'grace_from: the end of the period where grace follows it; null without grace',
        'grace_until: the announced, or else estimated, end of grace',
        'grace_source: apple, or estimated from the configured length',
        'grace_exhausted_at: when grace ended without a payment; of an open episode, when it will',
        'retry_deadline: until when Apple retries at the longest',
        'outcome: open, recovered_in_grace, recovered_after_grace, cancelled, expired or unknown',
        'closed_at: when it ended; null as long as no event says so',
        'unpaid_access_ms: milliseconds of unpaid access by our policy until the end, or the deadline',
        'amount_at_risk: milliunits of currency that the charge would have brought; not for accounting',
        'currency: ISO 4217',
        'expiration_intent: Apple''s expirationIntent as last signed before the next period',
        'opening_position: the event that opened it',
        'closing_position: the event that closed it; null where none did',
        'positions: the positions of all events that decided this row',
        'known_to_position: the highest position among the subscription''s events'
    ] loop
        execute format(
            'comment on column read_model.billing_episode.%I is %L',
            split_part(line, ': ', 1), substr(line, strpos(line, ': ') + 2)
        );
    end loop;
end
$do$;

-- The first generation. Version 0 belongs to no program: the one that folds first takes it over.
create table read_model.billing_episode_g1
    partition of read_model.billing_episode for values in (1);
alter table read_model.billing_episode_g1 alter column generation set default 1;

insert into read_model.generation
    (projection, generation, version, decoder, state, from_position, finished_at)
values ('billing_recovery', 1, 0, 0, 'live', 0, now());

insert into read_model.current (projection, generation, version, decoder)
values ('billing_recovery', 1, 0, 0);
