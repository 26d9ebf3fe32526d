-- The published views of the read model "billing_recovery". Columns are only added at the end. Zone
-- and instant are arguments: no view depends on the session's time zone.

set local role :"projector";

-- An episode without an end is open until Apple gives up; after that nobody knows how it ended.
create or replace view read_model.billing_recovery_all as
select
    e.stream as original_transaction_id,
    a.environment,
    a.bundle_id,
    e.product_id,
    e.transaction_id,
    e.ownership,
    e.was_trial_conversion,
    e.opened_at,
    e.expires_date,
    e.grace_from,
    e.grace_until,
    e.grace_source,
    e.grace_exhausted_at,
    e.retry_deadline,
    e.outcome,
    e.closed_at,
    coalesce(e.closed_at, e.retry_deadline) as ends_at,
    e.unpaid_access_ms,
    e.amount_at_risk,
    e.currency,
    case coalesce(e.expiration_intent, 2)
        when 1 then 'voluntary'
        when 2 then 'billing_retry'
        when 3 then 'price_increase'
        when 4 then 'product_not_for_sale'
        else 'other'
    end as cause,
    e.opening_position,
    e.closing_position,
    e.positions,
    e.known_to_position,
    e.app_id
from read_model.billing_episode e
join ledger.app a
    on a.app_id = e.app_id
where e.generation = (
    select generation from read_model.current where projection = 'billing_recovery'
);

comment on view read_model.billing_recovery_all is
    'Every failed charge of every subscription in every environment, family members'' included.';

-- Only who purchased can pay: a family member or the holder of a seat has no payment to mend.
create or replace function read_model.billing_recovery_in(
    of_environment text,
    instant timestamptz
)
returns table (
    original_transaction_id text,
    environment text,
    bundle_id text,
    product_id text,
    app_account_token uuid,
    state text,
    entitled boolean,
    entitled_apple boolean,
    access_until timestamptz,
    cause text,
    renewal_intent text,
    opened_at timestamptz,
    expires_date timestamptz,
    grace_from timestamptz,
    grace_until timestamptz,
    grace_source text,
    grace_exhausted_at timestamptz,
    retry_deadline timestamptz,
    days_unpaid_access numeric,
    amount_at_risk bigint,
    currency text,
    was_trial_conversion boolean,
    opening_position bigint,
    positions bigint[],
    known_to_position bigint,
    app_id integer
)
language sql stable parallel safe as $$
    select
        e.original_transaction_id,
        e.environment,
        e.bundle_id,
        e.product_id,
        o.app_account_token,
        i.state,
        i.entitled,
        i.entitled_apple,
        i.access_until,
        e.cause,
        coalesce(i.renewal_intent, 'unknown'),
        e.opened_at,
        e.expires_date,
        e.grace_from,
        e.grace_until,
        e.grace_source,
        case when e.grace_exhausted_at <= $2 then e.grace_exhausted_at end,
        e.retry_deadline,
        round(
            least(
                e.unpaid_access_ms / 1000.0,
                greatest(0, extract(epoch from $2 - e.expires_date))
            ) / 86400,
            2
        ),
        e.amount_at_risk,
        e.currency,
        e.was_trial_conversion,
        e.opening_position,
        e.positions,
        e.known_to_position,
        e.app_id
    from read_model.billing_recovery_all e
    -- Stretches of a subscription never overlap: if any holds, it is the last that has begun, and
    -- the rows before it need not be read.
    left join lateral (
        select i.state, i.entitled, i.entitled_apple, i.access_until, i.renewal_intent, i.valid_until
        from read_model.entitlement_interval i
        where i.stream = e.original_transaction_id and i.app_id = e.app_id
            and i.valid_from <= $2
            and i.generation = (
                select generation from read_model.current where projection = 'entitlement'
            )
        order by i.valid_from desc
        limit 1
    ) i on $2 < i.valid_until
    left join lateral (
        select o.app_account_token, o.valid_until
        from read_model.subscription_owner o
        where o.stream = e.original_transaction_id and o.app_id = e.app_id
            and o.valid_from <= $2
            and o.generation = (
                select generation from read_model.current where projection = 'entitlement'
            )
        order by o.valid_from desc
        limit 1
    ) o on $2 < o.valid_until
    where e.environment = $1 and e.ownership = 'PURCHASED'
        and e.opened_at <= $2 and $2 < e.ends_at
$$;

comment on function read_model.billing_recovery_in is
    'Whose payment had failed at an instant and was not recovered yet, in one environment.';

create or replace view read_model.billing_recovery_now as
select * from read_model.billing_recovery_in('Production', now());

comment on view read_model.billing_recovery_now is
    'Whose payment has failed and may still be recovered: one row for each Production subscription.';

create or replace view read_model.billing_recovery_now_sandbox as
select * from read_model.billing_recovery_in('Sandbox', now());

comment on view read_model.billing_recovery_now_sandbox is
    'billing_recovery_now of the Sandbox environment.';

create or replace function read_model.billing_recovery_at(instant timestamptz)
returns setof read_model.billing_recovery_now
language sql stable parallel safe as $$
    select * from read_model.billing_recovery_in('Production', $1)
$$;

comment on function read_model.billing_recovery_at is
    'billing_recovery_now as of an instant: what the events known today say of it.';

create or replace function read_model.billing_recovery_at_sandbox(instant timestamptz)
returns setof read_model.billing_recovery_now_sandbox
language sql stable parallel safe as $$
    select * from read_model.billing_recovery_in('Sandbox', $1)
$$;

comment on function read_model.billing_recovery_at_sandbox is
    'billing_recovery_at of the Sandbox environment.';

-- Recovered ÷ opened, by when the failures were opened. The rows of a currency weigh by amount;
-- amounts of different currencies are never added, so the row of all currencies has none.
create or replace function read_model.billing_recovery_rate(
    since date,
    until date,
    by text default 'week',
    zone text default 'UTC',
    environment text default 'Production',
    as_of timestamptz default now(),
    bundle_id text default null
)
returns table (
    cohort_start date,
    cohort_until date,
    all_currencies boolean,
    currency text,
    failures bigint,
    open bigint,
    recovered bigint,
    recovered_in_grace bigint,
    recovered_after_grace bigint,
    cancelled bigint,
    expired bigint,
    unknown bigint,
    recovery_rate numeric,
    in_grace_share numeric,
    trial_failures bigint,
    trial_recovered bigint,
    amount_at_risk numeric,
    amount_recovered numeric,
    amount_recovery_rate numeric,
    matured boolean,
    known_to_position bigint
)
language sql stable parallel safe as $$
    with episode as (
        select
            date_trunc($3, e.opened_at at time zone $4)::date as cohort,
            e.currency,
            case
                when e.ends_at > $6 then 'open'
                when e.outcome = 'open' then 'unknown'
                else e.outcome
            end as outcome,
            e.was_trial_conversion as is_trial,
            e.amount_at_risk as amount,
            e.retry_deadline,
            e.known_to_position
        from read_model.billing_recovery_all e
        where e.environment = $5 and e.ownership = 'PURCHASED'
            and ($7 is null or e.bundle_id = $7)
            and e.opened_at >= $1::timestamp at time zone $4
            and e.opened_at < $2::timestamp at time zone $4
            and e.opened_at <= $6
    ),
    counted as (
        select
            cohort,
            least((cohort + ('1 ' || $3)::interval)::date, $2) as cohort_end,
            grouping(episode.currency) = 1 as is_total,
            episode.currency,
            count(*) as failures,
            count(*) filter (where outcome = 'open') as open,
            count(*) filter (where outcome = 'recovered_in_grace') as in_grace,
            count(*) filter (where outcome = 'recovered_after_grace') as after_grace,
            count(*) filter (where outcome = 'cancelled') as cancelled,
            count(*) filter (where outcome = 'expired') as expired,
            count(*) filter (where outcome = 'unknown') as unknown,
            count(*) filter (where is_trial) as trials,
            count(*) filter (where is_trial and outcome like 'recovered%') as trials_recovered,
            sum(amount) as amount,
            coalesce(sum(amount) filter (where outcome like 'recovered%'), 0) as recovered_amount,
            bool_and(retry_deadline <= $6) as is_past_deadline,
            max(episode.known_to_position) as known_to_position
        from episode
        group by grouping sets ((cohort), (cohort, episode.currency))
    )
    select
        cohort,
        cohort_end,
        is_total,
        counted.currency,
        failures,
        counted.open,
        in_grace + after_grace,
        in_grace,
        after_grace,
        counted.cancelled,
        counted.expired,
        counted.unknown,
        round((in_grace + after_grace)::numeric / failures, 4),
        round(in_grace::numeric / nullif(in_grace + after_grace, 0), 4),
        trials,
        trials_recovered,
        case when not is_total then amount end,
        case when not is_total and amount is not null then recovered_amount end,
        case when not is_total then round(recovered_amount / nullif(amount, 0), 4) end,
        is_past_deadline and cohort_end::timestamp at time zone $4 <= $6,
        counted.known_to_position
    from counted
    order by cohort, is_total desc, counted.currency nulls last
$$;

comment on function read_model.billing_recovery_rate is
    'Recovered ÷ opened failures by day, week, month or year of opening in a zone, '
    'one row for all currencies and one for each.';

do $do$
declare
    published text;
    line text;
begin
    foreach line in array array[
        'original_transaction_id: Apple''s id of the subscription',
        'environment: Production or Sandbox, as Apple signed it',
        'bundle_id: the app',
        'product_id: the product of the period that failed to renew',
        'transaction_id: that period''s transaction',
        'ownership: PURCHASED, FAMILY_SHARED, ASSIGNED, or what Apple else signed',
        'was_trial_conversion: whether that period was a free trial',
        'opened_at: when Apple first signed that the charge failed; may be before expires_date',
        'expires_date: the end of the period that failed to renew',
        'grace_from: the end of the period where grace follows it; null without grace',
        'grace_until: the announced, or else estimated, end of grace',
        'grace_source: apple, or estimated from the configured length',
        'grace_exhausted_at: when grace ended without a payment; of an open episode, when it will',
        'retry_deadline: until when Apple retries at the longest',
        'outcome: open, recovered_in_grace, recovered_after_grace, cancelled, expired or unknown',
        'closed_at: when it ended; null as long as no event says so',
        'ends_at: closed_at, or else retry_deadline: an open episode is unknown from then on',
        'unpaid_access_ms: milliseconds of unpaid access by our policy until ends_at',
        'amount_at_risk: milliunits of currency that the charge would have brought; not for accounting',
        'currency: ISO 4217',
        'cause: why it fails by Apple''s expirationIntent: voluntary, billing_retry, '
            'price_increase, product_not_for_sale or other',
        'opening_position: the event that opened it',
        'closing_position: the event that closed it; null where none did',
        'positions: the positions of all events that decided this row',
        'known_to_position: the highest position among the subscription''s events',
        'app_id: the row of ledger.app'
    ] loop
        execute format(
            'comment on column read_model.billing_recovery_all.%I is %L',
            split_part(line, ': ', 1), substr(line, strpos(line, ': ') + 2)
        );
    end loop;
    foreach published in array array['billing_recovery_now', 'billing_recovery_now_sandbox'] loop
        foreach line in array array[
            'original_transaction_id: Apple''s id of the subscription',
            'environment: Production or Sandbox, as Apple signed it',
            'bundle_id: the app',
            'product_id: the product of the period that failed to renew',
            'app_account_token: the owner, whom to remind; null where none is known',
            'state: active while the old period runs, then grace_period or billing_retry',
            'entitled: whether our access policy grants access',
            'entitled_apple: whether Apple''s line does',
            'access_until: the end of the contiguous run of access; null without access',
            'cause: why it fails by Apple''s expirationIntent: voluntary, billing_retry, '
            'price_increase, product_not_for_sale or other',
            'renewal_intent: on, off or unknown; leave alone who turned it off',
            'opened_at: when Apple first signed that the charge failed; may be before expires_date',
            'expires_date: the end of the period that failed to renew',
            'grace_from: the end of the period where grace follows it; null without grace',
            'grace_until: the announced, or else estimated, end of grace',
            'grace_source: apple, or estimated from the configured length',
            'grace_exhausted_at: when grace ended; null while it runs',
            'retry_deadline: until when Apple retries at the longest',
            'days_unpaid_access: days of access by our policy since expires_date, none of them paid',
            'amount_at_risk: milliunits of currency that the charge would bring; not for accounting',
            'currency: ISO 4217',
            'was_trial_conversion: whether it is the first charge after a free trial',
            'opening_position: the event that opened it',
            'positions: the positions of all events that decided this row',
            'known_to_position: the highest position among the subscription''s events',
            'app_id: the row of ledger.app'
        ] loop
            execute format(
                'comment on column read_model.%I.%I is %L',
                published, split_part(line, ': ', 1), substr(line, strpos(line, ': ') + 2)
            );
        end loop;
    end loop;
end
$do$;
