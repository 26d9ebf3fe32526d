-- What the read model "churn" answers about trials and about those who first paid in one month; the
-- conventions are those of churn_views.sql.

set local role :"projector";

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
            from read_model.moments(trial_conversion.environment, trial_conversion.as_of) m
            where m.kind = 'trial_started'
                and m.effective_at >= n.starts
                and m.effective_at < n.ends
            group by 1, 2, 3
        ) t
        union all
        select
            n.month, n.ends, m.product_id,
            case when m.related_at <= trial_conversion.as_of then m.cause end,
            m.confidence = 'clock',
            m.weight
        from read_model.succession_moments(
            trial_conversion.environment, trial_conversion.as_of) m
        join months n on m.effective_at >= n.starts and m.effective_at < n.ends
        where m.kind = 'trial_started'
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
        coalesce(sum(t.trials) filter (where t.outcome is null), 0) = 0
            and t.ends <= trial_conversion.as_of,
        read_model.known_to_position()
    from trial t
    group by t.month, t.ends, t.product_id
    having sum(t.trials) > 0
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
    known_to_position bigint,
    currency text,
    retained_revenue numeric
)
language sql stable parallel safe
-- Compiling the plan takes longer than running it, and so does handing rows over between processes.
set jit = off set max_parallel_workers_per_gather = 0 as $$
    with months as materialized (
        select *
        from read_model.calendar_months(
            cohort_retention.from_date, cohort_retention.to_date, cohort_retention.zone)
    ),
    -- Day by day, so that a later period is an opportunity once it was one for the whole day.
    day as materialized (
        select
            n.number,
            row_number() over (order by d)::integer as place,
            d at time zone cohort_retention.zone as starts,
            (d + interval '1 day') at time zone cohort_retention.zone as ends
        from months n
        cross join lateral generate_series(
            n.month::timestamp, n.month + interval '1 month' - interval '1 day',
            interval '1 day'
        ) as d
        where n.starts <= cohort_retention.as_of
    ),
    -- To find the day of an instant by halving is much cheaper than to join a range.
    edge as materialized (
        select
            array_agg(d.starts order by d.place) || max(d.ends) as edges,
            min(d.starts) as first_start, max(d.ends) as last_end
        from day d
    ),
    span as materialized (
        select
            d.number,
            d.place,
            p.plan_period,
            greatest(
                read_model.periods_between(d.ends, cohort_retention.as_of, p.plan_period), 0
            ) as last_period
        from day d
        cross join (values ('1w'), ('1m'), ('2m'), ('3m'), ('6m'), ('1y')) as p (plan_period)
    ),
    -- Long rows are in no index that covers them, so that the others can be.
    beginner as (
        select
            m.effective_at, m.product_id, m.plan_period, m.currency, m.paid_ordinals,
            m.paid_amounts, 1 as weight
        from read_model.moments(cohort_retention.environment, cohort_retention.as_of) m
        where m.kind = 'cohort' and cardinality(m.paid_ordinals) <= 100
            and m.effective_at >= (select first_start from edge)
            and m.effective_at < (select last_end from edge)
        union all
        select
            m.effective_at, m.product_id, m.plan_period, m.currency, m.paid_ordinals,
            m.paid_amounts, 1
        from read_model.moments(cohort_retention.environment, cohort_retention.as_of) m
        where m.kind = 'cohort' and cardinality(m.paid_ordinals) > 100
            and m.effective_at >= (select first_start from edge)
            and m.effective_at < (select last_end from edge)
        union all
        select m.*
        from read_model.succession_cohorts(
            cohort_retention.environment, cohort_retention.as_of) m
        where m.effective_at >= (select first_start from edge)
            and m.effective_at < (select last_end from edge)
    ),
    -- Those who paid the same for the same periods are counted together.
    member as materialized (
        select
            s.number, b.product_id, b.plan_period, b.currency, b.paid_ordinals, b.paid_amounts,
            s.last_period, sum(b.weight) as members
        from beginner b
        join span s
            on s.place = width_bucket(b.effective_at, (select edges from edge))
            and s.plan_period = b.plan_period
        group by 1, 2, 3, 4, 5, 6, 7
    ),
    reach as (
        select
            m.number, m.product_id, m.plan_period, m.currency, m.last_period,
            sum(m.members) as members
        from member m
        group by 1, 2, 3, 4, 5
    ),
    retained as (
        select
            m.number, m.product_id, m.plan_period, m.currency, o.period,
            sum(m.members)::bigint as members, sum(m.members * o.amount) as revenue
        from member m
        cross join lateral unnest(m.paid_ordinals, m.paid_amounts) as o (period, amount)
        where o.period <= m.last_period
        group by 1, 2, 3, 4, 5
    ),
    part as (
        select
            c.number, c.product_id, c.plan_period, c.currency, p.period, 0 as members,
            0 as retained, 0 as revenue
        from (
            select
                r.number, r.product_id, r.plan_period, r.currency,
                max(r.last_period) as last_period
            from reach r
            group by 1, 2, 3, 4
        ) c
        cross join lateral generate_series(0, c.last_period) as p (period)
        union all
        select
            r.number, r.product_id, r.plan_period, r.currency, r.last_period, r.members, 0, 0
        from reach r
        union all
        select
            r.number, r.product_id, r.plan_period, r.currency, r.period, 0, r.members, r.revenue
        from retained r
    ),
    cell as (
        -- Whoever came to a later period had the opportunity of the earlier ones too.
        select
            p.number, p.product_id, p.plan_period, p.currency, p.period,
            sum(p.retained) as retained,
            sum(p.revenue) as revenue,
            sum(sum(p.members)) over (
                partition by p.number, p.product_id, p.plan_period, p.currency
                order by p.period desc
            ) as opportunity,
            sum(sum(p.members)) over (
                partition by p.number, p.product_id, p.plan_period, p.currency
            ) as size
        from part p
        group by p.number, p.product_id, p.plan_period, p.currency, p.period
    )
    select
        n.month,
        c.product_id,
        c.plan_period,
        c.period,
        c.size::bigint,
        c.opportunity::bigint,
        c.retained::bigint,
        round(c.retained / c.opportunity, 6),
        n.ends <= cohort_retention.as_of and c.opportunity = c.size,
        read_model.known_to_position(),
        c.currency,
        c.revenue
    from cell c
    join months n on n.number = c.number
    where c.opportunity > 0
    order by n.month, c.product_id, c.plan_period, c.currency, c.period
$$;

comment on function read_model.cohort_retention is
        'Of those who first paid in a month, by product, plan and currency, how many paid for each '
        'later period, and how much (retained_revenue, less seats paid back). opportunity = '
        'those who first paid so many periods of the plan, and a day, before as_of; '
        'retention_rate = retained / opportunity; mature once everyone of the month had it. A '
        'refunded period is not retained.';
