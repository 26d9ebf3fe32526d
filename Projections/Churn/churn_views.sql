-- What the read model "churn" answers about subscribers. Every function ignores what takes effect
-- after as_of. Months are the calendar months of `zone` from the one of from_date to the one of the
-- day before to_date, and a month is half-open. Numbers of subscribers; money is in the next file.
-- Columns are only added at the end.

set local role :"projector";

create or replace function read_model.calendar_months(from_date date, to_date date, zone text)
returns table (number integer, month date, starts timestamptz, ends timestamptz)
language sql stable parallel safe rows 24
-- Nothing here depends on the session's zone; and a setting keeps the planner from opening the
-- function up, whose 24 rows it would take for 1000.
set timezone = 'UTC' as $$
    select
        row_number() over (order by m)::integer,
        m::date,
        m at time zone zone,
        (m + interval '1 month') at time zone zone
    from generate_series(
        date_trunc('month', from_date::timestamp), (to_date - 1)::timestamp, interval '1 month'
    ) as m
$$;

comment on function read_model.calendar_months is
    'The calendar months of a zone that hold a day of [from_date, to_date), with their instants.';

create or replace function read_model.known_to_position() returns bigint
language sql stable parallel safe as $$
    select least(
        (select position from ledger.head),
        (select min(position) - 1 from ledger.mark)
    )
$$;

comment on function read_model.known_to_position is
    'Every event up to this position is in the live read models.';

create or replace view read_model.lifecycle as
select
    m.stream as original_transaction_id,
    a.environment,
    a.bundle_id,
    m.effective_at,
    m.kind,
    m.cause,
    m.active_delta,
    m.product_id,
    m.plan_period,
    m.currency,
    m.storefront,
    m.offer,
    m.price_milliunits,
    m.quantity,
    m.mrr_milliunits,
    m.mrr_delta,
    m.mrr_movement,
    m.amount_milliunits,
    m.confidence,
    m.spell,
    m.paid_periods,
    m.tenure_days,
    m.active_since,
    m.held_since,
    m.related_at,
    m.price_influenced,
    m.extended,
    m.charged_at,
    m.paid_ordinals,
    m.positions,
    s.known_to_position,
    m.sequence,
    m.app_id
from read_model.lifecycle_moment m
join ledger.app a
    on a.app_id = m.app_id
left join read_model.subscription s
    on s.stream = m.stream and s.app_id = m.app_id
    and s.generation = (select generation from read_model.current where projection = 'entitlement')
where m.generation = (select generation from read_model.current where projection = 'churn');

comment on view read_model.lifecycle is
    'The moments of every subscription in every environment, those that lie ahead included.';

-- The balance, for each month, product and currency:
--   active_end = active_start + new_paid + trial_converted + reactivated + recovered + switched_in
--     - churn_voluntary - churn_involuntary - churn_price - churn_product - churn_refund
--     - churn_other - lapsed_unconfirmed - switched_out + corrections
create or replace function read_model.churn_monthly(
    from_date date,
    to_date date,
    zone text default 'UTC',
    environment text default 'Production',
    as_of timestamptz default now()
) returns table (
    month date,
    product_id text,
    currency text,
    active_start bigint,
    new_paid bigint,
    trial_converted bigint,
    reactivated bigint,
    recovered bigint,
    switched_in bigint,
    churn_voluntary bigint,
    churn_involuntary bigint,
    churn_price bigint,
    churn_product bigint,
    churn_refund bigint,
    churn_other bigint,
    lapsed_unconfirmed bigint,
    switched_out bigint,
    corrections bigint,
    active_end bigint,
    access_churn bigint,
    churned_of_start bigint,
    churned_of_start_any bigint,
    gross_churn_rate numeric,
    net_churn_rate numeric,
    reactivated_returning bigint,
    reactivated_new_run bigint,
    reactivated_win_back bigint,
    known_to_position bigint
)
language sql stable parallel safe as $$
    with months as materialized (
        select *
        from read_model.calendar_months(
            churn_monthly.from_date, churn_monthly.to_date, churn_monthly.zone)
    ),
    -- One range of the index for each month, and one for all the time before.
    span as (
        select 0 as number, '-infinity'::timestamptz as starts, min(n.starts) as ends
        from months n
        union all
        select n.number, n.starts, n.ends from months n
    ),
    total as materialized (
        select s.number, t.*
        from span s
        cross join lateral (
            select
                coalesce(m.product_id, '') as product_id,
                coalesce(m.currency, '') as currency,
                m.kind,
                m.cause,
                count(*) as moments,
                sum(m.active_delta) as delta,
                count(*) filter (where m.held_since < s.starts) as of_start,
                count(*) filter (where m.active_since < s.starts) as of_start_any
            from read_model.lifecycle_moment m
            where m.generation
                    = (select generation from read_model.current where projection = 'churn')
                and m.active_delta <> 0
                and m.effective_at >= s.starts
                and m.effective_at < s.ends
                and m.effective_at <= churn_monthly.as_of
                and m.app_id = any (array(
                    select a.app_id from ledger.app a
                    where a.environment = churn_monthly.environment))
            group by m.product_id, m.currency, m.kind, m.cause
        ) t
    ),
    padded as (
        select * from total
        union all
        select n.number, k.product_id, k.currency, null, null, 0, 0, 0, 0
        from months n
        cross join (select distinct t.product_id, t.currency from total t) k
    ),
    flow as (
        select
            p.number,
            p.product_id,
            p.currency,
            sum(p.delta) as delta,
            sum(p.moments) filter (where p.kind = 'new_paid') as new_paid,
            sum(p.moments) filter (where p.kind = 'trial_converted') as trial_converted,
            sum(p.moments) filter (where p.kind = 'reactivated') as reactivated,
            sum(p.moments) filter (where p.kind = 'recovered') as recovered,
            sum(p.moments) filter (where p.kind = 'switched_in') as switched_in,
            sum(p.moments) filter (where p.kind = 'switched_out') as switched_out,
            sum(p.moments) filter (where p.kind = 'lapsed_unconfirmed') as lapsed_unconfirmed,
            sum(p.moments) filter (where p.kind = 'churn_corrected') as corrections,
            sum(p.moments) filter (where p.kind = 'access_churn') as access_churn,
            sum(p.moments) filter (where p.kind = 'access_churn' and p.cause = 'voluntary')
                as voluntary,
            sum(p.moments) filter (where p.kind = 'access_churn' and p.cause = 'involuntary')
                as involuntary,
            sum(p.moments) filter (where p.kind = 'access_churn' and p.cause = 'price') as price,
            sum(p.moments) filter (where p.kind = 'access_churn' and p.cause = 'product')
                as product,
            sum(p.moments) filter (where p.kind = 'access_churn' and p.cause = 'refund') as refund,
            sum(p.moments) filter (where p.kind = 'access_churn' and p.cause = 'other') as other,
            sum(p.of_start) filter (where p.kind = 'access_churn') as of_start,
            sum(p.of_start_any) filter (where p.kind = 'access_churn') as of_start_any,
            sum(p.moments) filter (where p.kind = 'reactivated' and p.cause = 'returning')
                as returning_soon,
            sum(p.moments) filter (where p.kind = 'reactivated' and p.cause = 'new_run')
                as new_run,
            sum(p.moments) filter (where p.kind = 'reactivated' and p.cause = 'win_back')
                as win_back
        from padded p
        group by p.number, p.product_id, p.currency
    ),
    balance as (
        select
            f.*,
            coalesce(sum(f.delta) over earlier, 0) as active_start
        from flow f
        window earlier as (
            partition by f.product_id, f.currency order by f.number
            rows between unbounded preceding and 1 preceding
        )
    )
    select
        n.month,
        nullif(f.product_id, ''),
        nullif(f.currency, ''),
        f.active_start::bigint,
        coalesce(f.new_paid, 0)::bigint,
        coalesce(f.trial_converted, 0)::bigint,
        coalesce(f.reactivated, 0)::bigint,
        coalesce(f.recovered, 0)::bigint,
        coalesce(f.switched_in, 0)::bigint,
        coalesce(f.voluntary, 0)::bigint,
        coalesce(f.involuntary, 0)::bigint,
        coalesce(f.price, 0)::bigint,
        coalesce(f.product, 0)::bigint,
        coalesce(f.refund, 0)::bigint,
        coalesce(f.other, 0)::bigint,
        coalesce(f.lapsed_unconfirmed, 0)::bigint,
        coalesce(f.switched_out, 0)::bigint,
        coalesce(f.corrections, 0)::bigint,
        (f.active_start + f.delta)::bigint,
        coalesce(f.access_churn, 0)::bigint,
        coalesce(f.of_start, 0)::bigint,
        coalesce(f.of_start_any, 0)::bigint,
        round(coalesce(f.of_start, 0) / nullif(f.active_start, 0), 6),
        round(
            (coalesce(f.access_churn, 0) - coalesce(f.reactivated, 0) - coalesce(f.recovered, 0)
                - coalesce(f.corrections, 0)) / nullif(f.active_start, 0),
            6
        ),
        coalesce(f.returning_soon, 0)::bigint,
        coalesce(f.new_run, 0)::bigint,
        coalesce(f.win_back, 0)::bigint,
        read_model.known_to_position()
    from balance f
    join months n on n.number = f.number
    where n.starts <= churn_monthly.as_of
        and (f.active_start <> 0 or f.delta <> 0 or f.access_churn is not null
            or f.switched_in is not null or f.switched_out is not null
            or f.lapsed_unconfirmed is not null or f.new_paid is not null
            or f.trial_converted is not null or f.reactivated is not null
            or f.recovered is not null or f.corrections is not null)
    order by n.month, f.product_id, f.currency
$$;

comment on function read_model.churn_monthly is
        'Subscribers who pay at the start and the end of each month, and every way of coming and '
        'going between. gross_churn_rate = churned_of_start / active_start; net_churn_rate = '
        '(access_churn - reactivated - recovered - corrections) / active_start.';

create or replace function read_model.trial_conversion(
    from_date date,
    to_date date,
    zone text default 'UTC',
    environment text default 'Production',
    as_of timestamptz default now()
) returns table (
    month date,
    product_id text,
    started bigint,
    converted bigint,
    lost_voluntary bigint,
    lost_billing bigint,
    lost_other bigint,
    lost_unconfirmed bigint,
    open bigint,
    conversion_rate numeric,
    mature boolean,
    known_to_position bigint
)
language sql stable parallel safe as $$
    with months as materialized (
        select *
        from read_model.calendar_months(
            trial_conversion.from_date, trial_conversion.to_date, trial_conversion.zone)
    ),
    trial as (
        select n.month, n.ends, t.*
        from months n
        cross join lateral (
            select
                m.product_id,
                -- An outcome that lies after as_of has not come yet.
                case when m.related_at <= trial_conversion.as_of then m.cause end as outcome,
                m.confidence = 'clock' as is_clock,
                count(*) as trials
            from read_model.lifecycle_moment m
            where m.generation
                    = (select generation from read_model.current where projection = 'churn')
                and m.kind = 'trial_started'
                and m.effective_at >= n.starts
                and m.effective_at < n.ends
                and m.effective_at <= trial_conversion.as_of
                and m.app_id = any (array(
                    select a.app_id from ledger.app a
                    where a.environment = trial_conversion.environment))
            group by 1, 2, 3
        ) t
    )
    select
        t.month,
        t.product_id,
        sum(t.trials)::bigint,
        coalesce(sum(t.trials) filter (where t.outcome = 'converted'), 0)::bigint,
        coalesce(sum(t.trials) filter (
            where t.outcome = 'voluntary' and not t.is_clock), 0)::bigint,
        coalesce(sum(t.trials) filter (
            where t.outcome = 'billing' and not t.is_clock), 0)::bigint,
        coalesce(sum(t.trials) filter (
            where t.outcome = 'other' and not t.is_clock), 0)::bigint,
        coalesce(sum(t.trials) filter (
            where t.outcome <> 'converted' and t.is_clock), 0)::bigint,
        coalesce(sum(t.trials) filter (where t.outcome is null), 0)::bigint,
        round(
            coalesce(sum(t.trials) filter (where t.outcome = 'converted'), 0) / sum(t.trials), 6),
        count(*) filter (where t.outcome is null) = 0 and t.ends <= trial_conversion.as_of,
        read_model.known_to_position()
    from trial t
    group by t.month, t.ends, t.product_id
    order by t.month, t.product_id
$$;

comment on function read_model.trial_conversion is
        'What became of the trials that began in each month. conversion_rate = converted / '
        'started; mature once the month is over and none is open.';

create or replace function read_model.periods_between(
    first timestamptz, instant timestamptz, plan_period text
) returns integer
language sql immutable parallel safe as $$
    select case plan_period
        when '1w' then floor(extract(epoch from instant - first) / 604800)
        else floor(
            (extract(year from a) * 12 + extract(month from a))
            / case plan_period
                when '2m' then 2 when '3m' then 3 when '6m' then 6 when '1y' then 12 else 1
            end)
    end::integer
    from age(instant at time zone 'UTC', first at time zone 'UTC') as a
$$;

comment on function read_model.periods_between is
    'How many whole periods of a plan lie between two instants, by the calendar in UTC.';

create or replace function read_model.cohort_retention(
    from_date date,
    to_date date,
    zone text default 'UTC',
    environment text default 'Production',
    as_of timestamptz default now()
) returns table (
    month date,
    product_id text,
    plan_period text,
    period integer,
    size bigint,
    opportunity bigint,
    retained bigint,
    retention_rate numeric,
    mature boolean,
    known_to_position bigint
)
language sql stable parallel safe as $$
    with months as materialized (
        select *
        from read_model.calendar_months(
            cohort_retention.from_date, cohort_retention.to_date, cohort_retention.zone)
    ),
    -- Day by day, so that a later period is an opportunity once it was one for the whole day.
    day as (
        select
            n.number,
            d at time zone cohort_retention.zone as starts,
            (d + interval '1 day') at time zone cohort_retention.zone as ends
        from months n
        cross join lateral generate_series(
            n.month::timestamp, n.month + interval '1 month' - interval '1 day',
            interval '1 day'
        ) as d
        where n.starts <= cohort_retention.as_of
    ),
    -- Those who paid for the same periods are counted together.
    member as materialized (
        select
            d.number, t.product_id, t.plan_period, t.paid_ordinals, t.members,
            greatest(
                read_model.periods_between(d.ends, cohort_retention.as_of, t.plan_period), 0
            ) as last_period
        from day d
        cross join lateral (
            select m.product_id, m.plan_period, m.paid_ordinals, count(*) as members
            from read_model.lifecycle_moment m
            where m.generation
                    = (select generation from read_model.current where projection = 'churn')
                and m.kind = 'cohort'
                and m.effective_at >= d.starts
                and m.effective_at < d.ends
                and m.effective_at <= cohort_retention.as_of
                and m.app_id = any (array(
                    select a.app_id from ledger.app a
                    where a.environment = cohort_retention.environment))
            group by m.product_id, m.plan_period, m.paid_ordinals
        ) t
    ),
    reach as (
        select m.number, m.product_id, m.plan_period, m.last_period, sum(m.members) as members
        from member m
        group by 1, 2, 3, 4
    ),
    retained as (
        select
            m.number, m.product_id, m.plan_period, o.period, sum(m.members)::bigint as members
        from member m
        cross join lateral unnest(m.paid_ordinals) as o (period)
        where o.period <= m.last_period
        group by 1, 2, 3, 4
    ),
    padded as (
        select c.number, c.product_id, c.plan_period, p.period, 0 as members
        from (
            select r.number, r.product_id, r.plan_period, max(r.last_period) as last_period
            from reach r
            group by 1, 2, 3
        ) c
        cross join lateral generate_series(0, c.last_period) as p (period)
        union all
        select r.number, r.product_id, r.plan_period, r.last_period, r.members
        from reach r
    ),
    cell as (
        -- Whoever came to a later period had the opportunity of the earlier ones too.
        select
            p.number, p.product_id, p.plan_period, p.period,
            sum(sum(p.members)) over (
                partition by p.number, p.product_id, p.plan_period order by p.period desc
            ) as opportunity,
            sum(sum(p.members)) over (
                partition by p.number, p.product_id, p.plan_period
            ) as size
        from padded p
        group by p.number, p.product_id, p.plan_period, p.period
    )
    select
        n.month,
        c.product_id,
        c.plan_period,
        c.period,
        c.size::bigint,
        c.opportunity::bigint,
        coalesce(r.members, 0),
        round(coalesce(r.members, 0) / c.opportunity, 6),
        n.ends <= cohort_retention.as_of and c.opportunity = c.size,
        read_model.known_to_position()
    from cell c
    join months n on n.number = c.number
    left join retained r
        on r.number = c.number and r.period = c.period and r.plan_period = c.plan_period
        and r.product_id is not distinct from c.product_id
    order by n.month, c.product_id, c.plan_period, c.period
$$;

comment on function read_model.cohort_retention is
        'Of those who first paid in a month, how many paid for each later period. opportunity = '
        'those who first paid so many periods of the plan, and a day, before as_of; '
        'retention_rate = retained / opportunity; mature once everyone of the month had it. A '
        'refunded period is not retained.';
